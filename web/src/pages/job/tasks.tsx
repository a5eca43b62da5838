import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, jobPath } from '../../api';
import { csv, exact, num, save, span } from '../../format';
import { serverNow } from '../../live/socket';
import { useRows } from '../../live/use';
import { said } from '../../parts/dialog';
import { StateMark } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { Rows, type Column } from '../../parts/rows';
import { Clock, Empty } from '../../parts/small';
import { STATES, type Attempt, type JobDetail, type TaskRow } from '../../shapes/job';
import { A, goQuery, param, query } from '../../state/route';
import { has } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { page } from '../../state/place';
import { t } from '../../text';
import { stateWord } from '../../parts/glyph';

/** Tasks, windowed; an earlier attempt as it was. */
export function Tasks({ d, full = false, path }: { d: JobDetail; full?: boolean; path: string[] }): JSX.Element {
  const id = d.row.id;
  const asked = { ...(param('tstate') ? { state: [param('tstate')] } : {}), ...(param('tnode') ? { node: [param('tnode')] } : {}), ...(path.length === 2 ? { q: `${path[0]}-${path[1]}` } : {}) };
  const live = useRows<TaskRow>(`tasks/${id}`, asked, full ? 80 : 50, () => true);
  const [attempt, setAttempt] = useState(-1);
  const [past, setPast] = useState<Attempt | null>(null);
  const [wrong, setWrong] = useState('');
  useEffect(() => { setPast(null); setWrong(''); if (attempt >= 0) get<Attempt>(`${jobPath(id)}/attempts/${attempt}`).then(setPast, (e: unknown) => setWrong(said(e))); }, [attempt, id]);
  const total = live.list.value.total;
  const columns = columnsOf(d);
  const shown = full ? 640 : 9 * 32;
  const least = total ? 2 : 5; // room for what an empty table says
  const rows = past?.tasks ?? null;
  return (
    <section class="card">
      <header>
        <h2>{t('Tasks')}</h2><span class="note">{num(rows?.length ?? total)}{d.gang ? `, ${t('all or none')}` : ''}</span>
        <span class="end acts">
          {d.attempts > 1 ? <select class="field" aria-label={t('Attempt')} value={attempt} onChange={(e) => setAttempt(Number(e.currentTarget.value))}><option value={-1}>{t('Attempt {n}', { n: d.attempts })}</option>{Array.from({ length: d.attempts - 1 }, (_, i) => d.attempts - 2 - i).map((n) => <option key={n} value={n}>{t('Attempt {n}', { n: n + 1 })}</option>)}</select> : null}
          {full ? (
            <>
              <select class="field" aria-label={t('Status')} value={param('tstate')} onChange={(e) => goQuery(withQuery(query.value, { tstate: e.currentTarget.value }), true)}><option value="">{t('any status')}</option>{STATES.map((s) => <option key={s} value={s}>{stateWord(s)}</option>)}</select>
              <input class="field" aria-label={t('Node')} placeholder={t('Node')} value={param('tnode')} onChange={(e) => goQuery(withQuery(query.value, { tnode: e.currentTarget.value }), true)} />
            </>
          ) : null}
          <button class="link" onClick={() => save(`${d.row.name}-tasks.csv`, 'text/csv', csv([['task', 'state', 'node', 'gpus', 'ip', 'retries', 'exit', 'started', 'ended'], ...(rows ?? [...live.list.value.rows.values()]).map((r) => [r.id, r.state, r.node, r.gpus.join(' '), r.ip, r.retries, r.exit?.code ?? '', exact(r.started), exact(r.ended)])]))}>CSV</button>
        </span>
      </header>
      {attempt >= 0 && wrong ? <p class="in bad" role="alert">{wrong}</p> : attempt >= 0 && rows ? <Plain rows={rows} columns={columns} /> : (
        <div style={{ height: `${Math.min(shown, 44 + Math.max(total, least) * 32)}px`, display: 'flex', marginTop: '8px' }}>
          <Rows live={live} columns={columns} height={32} label={t('Tasks')} empty={d.row.ended ? <Empty title={t('Its tasks are gone')} text={t('The job has ended, and its pods were removed. Its timeline and record stay.')} /> : asked.state || asked.node ? <Empty title={t('No task matches')} text={t('Choose another status or node.')} /> : <Empty title={t('No task yet')} text={t('Tasks appear once the job is accepted.')} />} />
        </div>
      )}
    </section>
  );
}

function columnsOf(d: JobDetail): Column<TaskRow>[] {
  const wide = innerWidth > 900;
  const all: Column<TaskRow>[] = [
    { key: 'task', word: t('Task'), width: 0, cls: 'name', cell: (r) => (r.role ? <A href={jobHref(d.row.id, `tasks/${r.role}/${r.index}`)}>{r.id}</A> : r.id) },
    { key: 'state', word: t('Status'), width: 116, cell: (r) => <StateMark state={r.state} /> },
    { key: 'node', word: t('Node'), width: 130, cell: (r) => (r.node ? <A class="mono" href={`/nodes/${r.node}`}>{r.node}</A> : '–') },
    { key: 'gpus', word: t('GPUs'), width: 72, num: true, cell: (r) => <span title={r.gpus.join(', ')}>{r.gpuCount || '–'}</span> },
    { key: 'ip', word: 'IP', width: 110, cell: (r) => <span class="mono">{r.ip || '–'}{Object.keys(r.ports ?? {}).length ? <span class="faint" title={Object.entries(r.ports).map(([k, v]) => `${k} ${v}`).join('\n')}> :{Object.values(r.ports)[0]}</span> : null}</span> },
    { key: 'exit', word: t('Last exit'), width: 150, cell: (r) => (r.exit ? `${r.exit.code ?? ''}${r.exit.phrase ? `, ${r.exit.phrase}` : ''}` : '–') },
    { key: 'retries', word: t('Retries'), width: 64, num: true, cell: (r) => r.retries || '–' },
    { key: 'started', word: t('Start'), width: 84, num: true, cell: (r) => <Clock at={r.started} /> },
    { key: 'ran', word: t('Ran'), width: 76, num: true, cell: (r) => (r.started ? span((r.ended ?? serverNow()) - r.started) : '–') },
    { key: 'open', word: t('Log'), width: 116, cls: 'clip', cell: (r) => <><A class="link" href={`${jobHref(d.row.id, 'logs')}?task=${r.id}`}>{t('Log')}</A>{' '}{d.may.exec && r.state === 'RUNNING' && has('exec') ? <a class="link" target="_blank" rel="noopener" href={page(`/terminal?job=${encodeURIComponent(d.row.id)}&task=${encodeURIComponent(r.id)}`)}><Icon name="terminal" /><span class="sr">{t('Terminal of {task}', { task: r.id })}</span></a> : null}</> },
  ];
  const narrow: Record<string, number> = { task: 0, state: 100, node: 78, open: 66 };
  return wide ? all : all.filter((c) => c.key in narrow).map((c) => ({ ...c, width: narrow[c.key]! }));
}
const Plain = ({ rows, columns }: { rows: TaskRow[]; columns: Column<TaskRow>[] }): JSX.Element => (
  <div class="table" style={{ maxHeight: '640px' }}><table class="rows"><thead><tr>{columns.map((c) => <th key={c.key} class={c.num ? 'num' : ''}>{c.word}</th>)}</tr></thead><tbody>{rows.slice(0, 500).map((r, i) => <tr key={r.id}>{columns.map((c) => <td key={c.key} class={`${c.num ? 'num ' : ''}${c.cls ?? ''}`}>{c.cell(r, i, false)}</td>)}</tr>)}</tbody></table></div>
);
