/** The windowed table: a real table of which only the rows on screen are in the document. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LiveRows } from '../live/use';
import type { Row } from '../live/reduce';
import { nextSort } from '../state/url';
import { aroundWindow, visible } from './window';

export interface Column<R> {
  key: string;
  word: string;
  /** Pixels; 0 takes what is left. */
  width: number;
  num?: boolean;
  sort?: string;
  hideWord?: boolean;
  head?: () => ComponentChildren;
  cell: (row: R, index: number) => ComponentChildren;
  cls?: string;
}

export interface RowsProps<R extends Row> {
  live: LiveRows<R>;
  columns: Column<R>[];
  height: number;
  sort?: string;
  setSort?: (sort: string) => void;
  label: string;
  cursor?: string;
  selected?: (id: string) => boolean;
  onRow?: (row: R, e: MouseEvent) => void;
  /** On phones: one cell of three lines. */
  phone?: (row: R) => ComponentChildren;
  /** Told whether the list is at its top. */
  atTop?: (top: boolean) => void;
  empty?: ComponentChildren;
  headClass?: string;
}

export function Rows<R extends Row>(p: RowsProps<R>): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const height = p.phone ? 73 : p.height;
  const list = p.live.list.value;
  const total = list.shownTotal;

  useLayoutEffect(() => {
    const el = box.current!;
    const measure = (): void => setView({ top: el.scrollTop, height: el.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(el);
    measure();
    let asked = 0;
    const scroll = (): void => {
      if (asked) return;
      asked = requestAnimationFrame(() => { asked = 0; measure(); p.atTop?.(el.scrollTop < 4); });
    };
    el.addEventListener('scroll', scroll, { passive: true });
    return () => { watch.disconnect(); el.removeEventListener('scroll', scroll); cancelAnimationFrame(asked); };
  }, []);

  const [first, end] = visible(view.top, view.height, height, total);
  useEffect(() => {
    const w = aroundWindow([first, end], list.window, Math.max(total, 1));
    if (w && list.rv) p.live.show(w);
  }, [first, end, list.window, total]);

  const rows: JSX.Element[] = [];
  for (let i = first; i < end; i++) {
    const id = list.shown[i - list.window[0]];
    const row = id === undefined ? undefined : list.rows.get(id);
    if (!row) { rows.push(<tr key={`gap${i}`} class="ghost" aria-rowindex={i + 2}><td colSpan={p.columns.length}><span class="bar8" style={{ width: '160px' }} /></td></tr>); continue; }
    rows.push(
      <tr key={row.id} aria-rowindex={i + 2} class={p.cursor === row.id ? 'cursor' : ''} aria-selected={p.selected?.(row.id) || p.cursor === row.id ? true : undefined} data-id={row.id}
        onClick={p.onRow ? (e) => { if (!(e.target as HTMLElement).closest('a,button,input')) p.onRow!(row, e); } : undefined}>
        {p.phone ? <td>{p.phone(row)}</td> : p.columns.map((c) => <td key={c.key} class={`${c.num ? 'num ' : ''}${c.cls ?? ''}`}>{c.cell(row, i)}</td>)}
      </tr>,
    );
  }
  const many = p.phone ? 1 : p.columns.length;
  return (
    <div class="table" ref={box} tabIndex={-1}>
      <table class={`rows fixed ${p.phone ? 'phone' : ''}`} aria-label={p.label} aria-rowcount={total + 1}>
        {p.phone ? null : <colgroup>{p.columns.map((c) => <col key={c.key} style={c.width ? { width: `${c.width}px` } : undefined} />)}</colgroup>}
        <thead class={p.phone ? 'sr' : ''}><tr aria-rowindex={1}>{p.phone ? <th>{p.label}</th> : p.columns.map((c) => <Head key={c.key} column={c} sort={p.sort} set={p.setSort} />)}</tr></thead>
        <tbody>
          {first > 0 ? <tr class="gap" aria-hidden="true"><td colSpan={many} style={{ height: `${first * height}px` }} /></tr> : null}
          {rows}
          {end < total ? <tr class="gap" aria-hidden="true"><td colSpan={many} style={{ height: `${(total - end) * height}px` }} /></tr> : null}
        </tbody>
      </table>
      {total === 0 && !p.live.loading.value ? p.empty : null}
    </div>
  );
}

function Head<R>({ column: c, sort, set }: { column: Column<R>; sort: string | undefined; set: ((sort: string) => void) | undefined }): JSX.Element {
  const by = c.sort;
  const on = by && (sort === by || sort === `-${by}`);
  return (
    <th scope="col" class={`${c.num ? 'num ' : ''}${c.cls ?? ''}`} aria-sort={on ? (sort!.startsWith('-') ? 'descending' : 'ascending') : undefined}>
      {c.head ? c.head() : by && set ? <button type="button" class="sort" onClick={() => set(nextSort(sort ?? '', by))}>{c.word}</button> : c.hideWord ? <span class="sr">{c.word}</span> : c.word}
    </th>
  );
}
