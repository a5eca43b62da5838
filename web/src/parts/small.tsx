/** Small pieces that many pages use. */
import { useComputed } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { serverNow, skew } from '../live/socket';
import { clock, exact, num, span, tint } from '../format';
import type { Refused } from '../shapes/base';
import type { JobRow, State } from '../shapes/job';
import { t } from '../text';
import { minute } from '../state/ticker';
import { shortReason } from './reason';

/** Up to eight cells, as many filled as run. */
export function TaskCells({ running, total, state }: { running: number; total: number; state: State }): JSX.Element {
  const cells = Math.min(8, Math.max(1, total));
  const done = state === 'SUCCEEDED';
  const filled = done ? cells : total <= 8 ? running : Math.round((8 * running) / total);
  const said = t('{running} of {total} tasks run', { running: num(running), total: num(total) });
  return <span class={`cells ${state}`} role="img" aria-label={said} title={said}>{Array.from({ length: cells }, (_, i) => <i key={i} class={i < filled ? '' : 'open'} />)}</span>;
}

/** Eight open cells: the picture of every empty place. */
export const EmptyCells = (): JSX.Element => <span class="cells" aria-hidden="true">{Array.from({ length: 8 }, (_, i) => <i key={i} class="open" />)}</span>;

export const Empty = ({ title, text, children }: { title: string; text?: string; children?: ComponentChildren }): JSX.Element => (
  <div class="empty"><EmptyCells /><p class="strong">{title}</p>{text ? <p>{text}</p> : null}{children}</div>
);
export const Wrong = ({ error, again }: { error: Refused; again?: () => void }): JSX.Element => (
  <div class="empty" role="alert">
    <EmptyCells />
    <p class="strong">{error.message}</p>
    <p class="mono">{error.code}</p>
    {again ? <button class="button" onClick={again}>{t('Try again')}</button> : null}
  </div>
);

/** Bars at the places of the columns; only if the first load takes longer than 150 ms. */
export function Skeleton({ rows = 8 }: { rows?: number }): JSX.Element | null {
  const [late, setLate] = useState(false);
  useEffect(() => { const timer = setTimeout(() => setLate(true), 150); return () => clearTimeout(timer); }, []);
  if (!late) return null;
  return (
    <table class="rows ghost" aria-hidden="true"><tbody>
      {Array.from({ length: rows }, (_, i) => (
        <tr key={i}>{[30, 12, 18, 24].map((w) => <td key={w}><span class="bar8" style={{ width: `${w * 4 + ((i * 37 + w) % 5) * 8}px` }} /></td>)}</tr>
      ))}
    </tbody></table>
  );
}

export const Swatch = ({ of }: { of: string }): JSX.Element => <i class={`swatch ${tint(of)}`} aria-hidden="true" />;

/** A time as `41 min`, kept up by the minute. */
export function Ago({ at, suffix = false }: { at: number | null; suffix?: boolean }): JSX.Element {
  const text = useComputed(() => { void minute.value; void skew.value; return at === null ? '–' : span(serverNow() - at); });
  return <span title={exact(at)}>{suffix && at !== null ? t('{span} ago', { span: text.value }) : text}</span>;
}
export const Clock = ({ at, seconds = false }: { at: number | null; seconds?: boolean }): JSX.Element => <span title={exact(at)}>{clock(at, serverNow(), seconds)}</span>;

const EIGHT_HOURS = 8 * 3_600_000;
/** When a waiting job starts: now … +8 h, a pill for the range, a tick for the middle. */
export function StartStrip({ row, wide = false }: { row: JobRow; wide?: boolean }): JSX.Element {
  void minute.value;
  const wait = row.wait;
  if (row.state !== 'WAITING' || !wait) return <span class="faint">{row.started ? <Clock at={row.started} /> : '–'}</span>;
  if (wait.start === null || wait.basis === 'none') return <span class="faint">{t('no estimate')}</span>;
  const now = serverNow();
  const width = wide ? 84 : 50;
  const x = (at: number): number => Math.min(width, Math.max(0, (width * (at - now)) / EIGHT_HOURS));
  const low = x(wait.startLow ?? wait.start);
  const high = x(wait.startHigh ?? wait.start);
  return (
    <span title={wait.startLow && wait.startHigh ? t('8 in 10: {low} – {high}', { low: clock(wait.startLow, now), high: clock(wait.startHigh, now) }) : exact(wait.start)}>
      <svg class="strip" aria-hidden="true" width={width + 4} height="14" viewBox={`-1 0 ${width + 4} 14`}>
        <rect class="line" y="6.5" width={width} height="1" /><rect class="now" x="-1" width="1" height="14" />
        <rect class="range" x={low} y="4" width={Math.max(3, high - low)} height="6" rx="3" /><rect class="tick" x={x(wait.start)} y="1" width="2" height="12" rx="1" />
      </svg>
      ~{clock(Math.max(wait.start, now), now)}
    </span>
  );
}

/** What stands behind the state word in a list. */
export function statusNote(row: JobRow): string {
  const now = serverNow();
  switch (row.state) {
    case 'WAITING': return row.phase === 'starting' ? [t('starting'), row.wait?.text].filter(Boolean).join(': ') : row.wait ? shortReason(row.wait.text) : '';
    case 'RUNNING': return row.oppo ? t('on idle cells') : row.started ? span(now - row.started) : '';
    case 'STOPPING': return row.exit?.phrase ?? '';
    case 'SUCCEEDED': return row.started && row.ended ? t('took {span}', { span: span(row.ended - row.started) }) : '';
    case 'FAILED': return row.exit ? `${row.exit.phrase}${row.exit.code !== null && row.exit.code !== undefined ? ` (${row.exit.code})` : ''}` : '';
    default: return row.exit?.phrase ?? '';
  }
}

/** A button with a list under it; closes on Escape, outside click and choice. */
export function Drop({ label, children, end = false, cls = 'button', name }: { label: ComponentChildren; children: (close: () => void) => ComponentChildren; end?: boolean; cls?: string; name?: string }): JSX.Element {
  const [shown, show] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!shown) return;
    const out = (e: Event): void => { if (!box.current?.contains(e.target as Node)) show(false); };
    const key = (e: KeyboardEvent): void => {
      if (e.key === 'Escape') { e.stopPropagation(); show(false); button.current?.focus(); }
      const items = [...(box.current?.querySelectorAll<HTMLElement>('.item, .float input') ?? [])];
      const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
      if (step && items.length) { e.preventDefault(); items[(items.indexOf(document.activeElement as HTMLElement) + step + items.length) % items.length]?.focus(); }
    };
    document.addEventListener('pointerdown', out);
    document.addEventListener('keydown', key, true);
    box.current?.querySelector<HTMLElement>('.float input, .float .item')?.focus();
    return () => { document.removeEventListener('pointerdown', out); document.removeEventListener('keydown', key, true); };
  }, [shown]);
  return (
    <span class="at" ref={box}>
      <button ref={button} type="button" class={cls} aria-haspopup="true" aria-expanded={shown} aria-label={name} onClick={() => show(!shown)}>{label}</button>
      {shown ? <span class={`float ${end ? 'end' : ''}`} style={{ top: 'calc(100% + 4px)' }}>{children(() => { show(false); button.current?.focus(); })}</span> : null}
    </span>
  );
}

export function Choice<V extends string>({ of, value, set, name }: { of: readonly (readonly [V, string])[]; value: V; set: (v: V) => void; name: string }): JSX.Element {
  return (
    <span class="choice" role="group" aria-label={name}>
      {of.map(([v, word]) => <button key={v} type="button" aria-pressed={v === value} onClick={() => set(v)}>{word}</button>)}
    </span>
  );
}
