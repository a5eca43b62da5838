import type { JSX } from 'preact';
import { clock, exact, gpus, num, span } from '../../format';
import { serverNow } from '../../live/socket';
import { Glyph, stateWord } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import type { Column } from '../../parts/rows';
import { Ago, StartStrip, statusNote, TaskCells } from '../../parts/small';
import type { JobRow } from '../../shapes/job';
import { A } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';
import { mayStop, stopJobs } from './act';

export interface Narrow { open: boolean; width: number; hidden: string[] }
interface Choosing { chosen: (id: string) => boolean; toggle: (id: string) => void; allShown: () => boolean; toggleAll: () => void }

/** Columns a person may hide. */
export const CHOOSABLE = ['submitted', 'user', 'duration', 'vc', 'kind', 'retries', 'tasks', 'gpus', 'prio', 'start'] as const;
export const columnWord = (key: string): string =>
  ({ name: t('Name'), submitted: t('Submitted'), user: t('User'), duration: t('Duration'), vc: t('VC / queue'), kind: t('Kind'), retries: t('Retries'), tasks: t('Tasks'), gpus: t('GPUs'), prio: t('Priority'), status: t('Status'), start: t('Start, next 8 h') })[key] ?? key;

export function duration(row: JobRow): string {
  if (!row.started) return '–';
  return span((row.ended ?? serverNow()) - row.started);
}

export function columnsFor(n: Narrow, choosing: Choosing): Column<JobRow>[] {
  const inner = n.width - (n.width > 1100 ? 200 : 52) - (n.open ? 380 : 0);
  // What leaves first when it gets tight, as few as need be.
  const gone = new Set(n.hidden);
  const off = (key: string): boolean => gone.has(key);
  const all: Column<JobRow>[] = [
    { key: 'pick', word: t('Select'), width: 46, cls: 'pick', head: () => <PickAll {...choosing} />, cell: (r) => <input type="checkbox" aria-label={t('Select {name}', { name: r.name })} checked={choosing.chosen(r.id)} onClick={() => choosing.toggle(r.id)} /> },
    { key: 'glyph', word: t('State'), width: inner < 560 ? 44 : 26, hideWord: true, cls: 'mark', cell: (r) => <Glyph state={r.state} /> },
    { key: 'name', word: t('Name'), width: 0, sort: 'name', cls: 'name', cell: (r) => <A href={jobHref(r.id)} title={r.id}>{r.name}</A> },
    { key: 'submitted', word: t('Submitted'), width: 94, num: true, sort: 'submitted', cell: (r) => <Ago at={r.submitted} /> },
    { key: 'user', word: t('User'), width: 84, sort: 'user', cell: (r) => r.user },
    { key: 'duration', word: t('Duration'), width: 84, num: true, sort: 'duration', cell: (r) => duration(r) },
    { key: 'vc', word: t('VC / queue'), width: 96, sort: 'vc', cell: (r) => r.vc || r.queue || '–' },
    { key: 'kind', word: t('Kind'), width: 96, sort: 'kind', cell: (r) => r.kind },
    { key: 'retries', word: t('Retries'), width: 66, num: true, sort: 'retries', cell: (r) => <span title={t('{user} by the user, {platform} by the platform', r.retries)}>{r.retries.user + r.retries.platform || '–'}</span> },
    { key: 'tasks', word: t('Tasks'), width: 76, sort: 'tasks', cls: 'clip', cell: (r) => <TaskCells {...r.tasks} state={r.state} /> },
    { key: 'gpus', word: t('GPUs'), width: 58, num: true, sort: 'gpus', cell: (r) => (r.gpus ? num(r.gpus) : '–') },
    { key: 'prio', word: t('Priority'), width: 84, sort: 'prio', cell: (r) => <span title={String(r.prio.number)}>{r.prio.class || r.prio.number || '–'}</span> },
    { key: 'status', word: t('Status'), width: n.open ? 172 : 230, sort: 'state', cell: (r) => <span title={r.wait?.text || statusNote(r)}><span class={`word ${r.state}`}>{stateWord(r.state)}</span> <span class="faint">{statusNote(r)}</span></span> },
    { key: 'start', word: t('Start, next 8 h'), width: 132, sort: 'start', cls: 'clip', cell: (r, _, hot) => <><StartStrip row={r} />{hot ? <RowActions row={r} /> : null}</> },
  ];
  for (const key of ['kind', 'retries', 'prio', 'duration', 'tasks', 'user', 'submitted', 'pick']) {
    const rest = inner - all.reduce((sum, c) => sum + (off(c.key) ? 0 : c.width), 0);
    if (rest < (n.open ? 150 : 190)) gone.add(key);
  }
  return all.filter((c) => !off(c.key));
}

/** A part of its own: it reads what is chosen, and the heads of the columns need not. */
const PickAll = ({ allShown, toggleAll }: Choosing): JSX.Element => <input type="checkbox" aria-label={t('Select all rows here')} checked={allShown()} onClick={toggleAll} />;

const RowActions = ({ row }: { row: JobRow }): JSX.Element => (
  <span class="acts">
    <A class="button small" href={jobHref(row.id, 'logs')} aria-label={t('Logs of {name}', { name: row.name })} title={t('Logs')}><Icon name="scroll" /></A>
    <A class="button small" href={`/submit?clone=${encodeURIComponent(row.id)}`} aria-label={t('Clone {name}', { name: row.name })} title={t('Clone')}><Icon name="copy" /></A>
    {mayStop(row) ? <button class="button small danger" aria-label={t('Stop {name}', { name: row.name })} title={t('Stop')} onClick={() => stopJobs([row])}><Icon name="stop" /></button> : null}
  </span>
);

export function PhoneRow({ row }: { row: JobRow }): JSX.Element {
  const now = serverNow();
  const start = row.state === 'WAITING' ? (row.wait?.start ? `~${clock(row.wait.start, now)}` : t('no estimate')) : clock(row.started, now);
  return (
    <div class="phone-row">
      <Glyph state={row.state} />
      <A class="strong cut" href={jobHref(row.id)}>{row.name}</A>
      <span class={row.state === 'WAITING' ? '' : 'faint'} title={exact(row.started)}>{start}</span>
      <span class="wide"><span class={`word ${row.state}`}>{stateWord(row.state)}</span> <span class="faint">{statusNote(row)}</span></span>
      <span class="wide faint">{[row.user, row.vc || row.queue, gpus(row.gpus)].filter(Boolean).join(' · ')} · <Ago at={row.submitted} suffix /></span>
    </div>
  );
}
