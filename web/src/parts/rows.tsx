/** The windowed table: a real table of which only the rows on screen are in the document. */
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LiveRows } from '../live/use';
import type { Row } from '../live/reduce';
import { minute } from '../state/ticker';
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
  /** `hot`: the pointer or the focus is in the row. */
  cell: (row: R, index: number, hot: boolean) => ComponentChildren;
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

interface LineProps<R> { row: R; index: number; columns: Column<R>[]; cursor: boolean; selected: boolean; hot: boolean; age: number; phone: ((row: R) => ComponentChildren) | undefined; onRow: ((row: R, e: MouseEvent) => void) | undefined }
/**
 * A line is made anew only when something of it differs: its row (another object), its place, what marks it, the columns
 * (the same array means the same columns) or the minute, for texts with an age. Of a list that changes four times a second
 * nearly all lines stay.
 */
class Line<R extends Row> extends Component<LineProps<R>> {
  override shouldComponentUpdate(next: LineProps<R>): boolean {
    const p = this.props;
    return p.row !== next.row || p.index !== next.index || p.columns !== next.columns || p.cursor !== next.cursor || p.selected !== next.selected || p.hot !== next.hot || p.age !== next.age || !p.phone !== !next.phone;
  }

  override render({ row, index, columns, cursor, selected, hot, phone, onRow }: LineProps<R>): JSX.Element {
    return (
      <tr aria-rowindex={index + 2} class={cursor ? 'cursor' : ''} aria-selected={selected || cursor ? true : undefined} data-id={row.id}
        onClick={onRow ? (e) => { if (!(e.target as HTMLElement).closest('a,button,input')) this.props.onRow?.(row, e); } : undefined}>
        {phone ? <td>{phone(row)}</td> : columns.map((c) => <td key={c.key} class={`${c.num ? 'num ' : ''}${c.cls ?? ''}`}>{c.cell(row, index, hot)}</td>)}
      </tr>
    );
  }
}

export function Rows<R extends Row>(p: RowsProps<R>): JSX.Element {
  const now = useRef(p);
  now.current = p;
  const [hot, setHot] = useState({ pointer: '', focus: '' });
  const at = (which: keyof typeof hot, target: EventTarget | null): void => { const id = (target as HTMLElement | null)?.closest?.('tr')?.dataset['id'] ?? ''; if (id !== hot[which]) setHot({ ...hot, [which]: id }); };
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
      asked = requestAnimationFrame(() => { asked = 0; measure(); now.current.atTop?.(el.scrollTop < 4); });
    };
    el.addEventListener('scroll', scroll, { passive: true });
    return () => { watch.disconnect(); el.removeEventListener('scroll', scroll); cancelAnimationFrame(asked); };
  }, []);

  const [first, end] = visible(view.top, view.height, height, total);
  useEffect(() => {
    const w = aroundWindow([first, end], list.window, Math.max(total, 1));
    if (w && list.rv) p.live.show(w);
  }, [first, end, list.window, total]);

  const age = minute.value;
  const click = (row: R, e: MouseEvent): void => now.current.onRow?.(row, e);
  const rows: JSX.Element[] = [];
  for (let i = first; i < end; i++) {
    const id = list.shown[i - list.window[0]];
    const row = id === undefined ? undefined : list.rows.get(id);
    if (!row) { rows.push(<tr key={`gap${i}`} class="ghost" aria-rowindex={i + 2}><td colSpan={p.columns.length}><span class="bar8" style={{ width: '160px' }} /></td></tr>); continue; }
    // Its click is passed on by `now`: a line that is not made anew has the functions of the time when it was.
    rows.push(<Line key={row.id} row={row} index={i} columns={p.columns} cursor={p.cursor === row.id} selected={!!p.selected?.(row.id)} hot={hot.pointer === row.id || hot.focus === row.id} age={age} phone={p.phone} onRow={p.onRow ? click : undefined} />);
  }
  const many = p.phone ? 1 : p.columns.length;
  const head = useMemo(() => (
    <>
      {p.phone ? null : <colgroup>{p.columns.map((c) => <col key={c.key} style={c.width ? { width: `${c.width}px` } : undefined} />)}</colgroup>}
      <thead class={p.phone ? 'sr' : ''}><tr aria-rowindex={1}>{p.phone ? <th>{p.label}</th> : p.columns.map((c) => <Head key={c.key} column={c} sort={p.sort} set={p.setSort ? (by) => now.current.setSort?.(by) : undefined} />)}</tr></thead>
    </>
  ), [p.columns, p.sort, p.label, !p.setSort, !p.phone]);
  return (
    <div class="table" ref={box} tabIndex={-1}>
      <table class={`rows fixed ${p.phone ? 'phone' : ''}`} aria-label={p.label} aria-rowcount={total + 1}>
        {head}
        <tbody onPointerOver={(e) => at('pointer', e.target)} onPointerLeave={() => at('pointer', null)} onFocusIn={(e) => at('focus', e.target)} onFocusOut={(e) => at('focus', e.relatedTarget)}>
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
