import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { get, search } from '../../api';
import { csv, exact, num, save } from '../../format';
import type { List } from '../../live/reduce';
import { said, toast } from '../../parts/dialog';
import type { JobRow } from '../../shapes/job';
import type { JobQuery, Snapshot } from '../../shapes/live';
import { t } from '../../text';
import { actOnAll, askAndAct, askTag, stopJobs } from './act';

/** What stands in the filter bar's place while rows are chosen. */
export function SelectionBar({ chosen, all, list, query }: { chosen: Signal<Set<string>>; all: Signal<boolean>; list: List<JobRow>; query: JobQuery }): JSX.Element {
  const rows = [...chosen.value].map((id) => list.rows.get(id)).filter((r): r is JobRow => !!r);
  const clear = (): void => { chosen.value = new Set(); all.value = false; };
  return (
    <div class="filters" role="toolbar" aria-label={t('Selection')}>
      <span class="strong">{t('{n} selected', { n: num(all.value ? list.total : chosen.value.size) })}</span>
      {all.value || list.total <= chosen.value.size ? null : <button class="link" onClick={() => { all.value = true; }}>{t('Select all {n} that match', { n: num(list.total) })}</button>}
      <span class="acts" style={{ marginLeft: '8px' }}>
        <button class="button danger" onClick={() => (all.value ? actOnAll('stop', query, clear) : stopJobs(rows, clear))}>{t('Stop')}</button>
        <button class="button" onClick={() => (all.value ? actOnAll('suspend', query, clear) : suspend(rows, clear))}>{t('Suspend')}</button>
        {all.value ? null : <button class="button" onClick={() => askTag([...chosen.value], clear)}>{t('Tag')}</button>}
        <button class="button" onClick={() => void download(all.value ? null : rows, query)}>CSV</button>
      </span>
      <span class="grow" />
      <button class="button" onClick={clear}>{t('Clear selection')}</button>
    </div>
  );
}
function suspend(rows: JobRow[], after: () => void): void {
  askAndAct({
    title: t('Suspend {n} jobs', { n: num(rows.length) }) + '?', text: t('They release their GPUs and wait until they are resumed.'), table: rows.map((r) => ({ name: r.name, note: r.user, gpus: r.gpus })),
    word: t('Suspend {n} jobs', { n: num(rows.length) }), keep: t('Keep them'), body: { action: 'suspend', ids: rows.map((r) => r.id) }, done: (n) => t('{n} jobs done', { n: num(n) }), dangerous: false,
  }, after);
}

export async function download(rows: JobRow[] | null, query: JobQuery): Promise<void> {
  try {
    const all = rows ?? (await everything(query));
    const head = ['id', 'kind', 'name', 'user', 'vc', 'queue', 'priority', 'state', 'gpus', 'tasks', 'retries', 'submitted', 'started', 'ended', 'exit', 'tags'];
    save('jobs.csv', 'text/csv', csv([head, ...all.map((r) => [r.id, r.kind, r.name, r.user, r.vc, r.queue, r.prio.class || r.prio.number, r.state, r.gpus, r.tasks.total, r.retries.user + r.retries.platform, exact(r.submitted), exact(r.started), exact(r.ended), r.exit?.code ?? '', r.tags.join(' ')])]));
  } catch (e) { toast(said(e)); }
}
async function everything(query: JobQuery): Promise<JobRow[]> {
  const out: JobRow[] = [];
  for (let offset = 0; offset < 20_000; offset += 500) {
    const page = await get<Snapshot<JobRow>>(`/jobs${search({ ...query, group: undefined, offset, limit: 500 })}`);
    out.push(...page.rows);
    if (page.rows.length < 500) break;
  }
  return out;
}
