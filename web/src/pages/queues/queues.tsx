/** Tenants: shares, order of those that wait, who holds what, over time. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, kube } from '../../api';
import { bytes, dash, gpus, jobs, num, percent } from '../../format';
import { serverNow } from '../../live/socket';
import { useRows, useValue } from '../../live/use';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { Glyph, stateWord } from '../../parts/glyph';
import { ShareBar, ShareLegend } from '../../parts/sharebar';
import { Ago, Choice, Empty, Skeleton, StartStrip, statusNote, Swatch, Wrong } from '../../parts/small';
import { leaves, withSums, type Amounts, type Tenant, type Usage } from '../../shapes/cluster';
import type { JobRow } from '../../shapes/job';
import { A, goQuery, lazy, param, query } from '../../state/route';
import { has, session } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';

const Stacked = lazy(() => import('../../parts/stacked'));
export default function Queues({ rest }: { rest: string }): JSX.Element {
  const live = useValue<Tenant[]>('tenants');
  useEffect(() => { document.title = `${rest || t('Queues & VCs')} · Muster`; }, [rest]);
  const list = live.value.value ? withSums(live.value.value) : null;
  if (live.error.value && !list) return <Wrong error={live.error.value} />;
  if (rest) { const one = list?.find((q) => q.name === rest); return list && !one ? <Wrong error={{ code: '404', message: t('There is no queue or virtual cluster {name}', { name: rest }) }} /> : one ? <One q={one} /> : <Skeleton />; }
  const scale = Math.max(...(list ?? []).map((q) => Math.max(q.capability?.gpus ?? 0, q.guarantee.gpus, q.used.gpus + q.oppo.gpus, q.total.gpus)), 1);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Queues & VCs')}</h1><span class="sub">{list ? num(list.length) : ''}</span>{session.value?.admin ? <span class="acts"><button class="button" onClick={() => create()}>{t('Create queue')}</button></span> : null}</div>
      <div class="body">
        <section class="card">
          <header><h2>{t('Shares')}</h2><span class="end less"><ShareLegend /></span></header>
          {!list ? <Skeleton /> : !list.length ? <Empty title={t('One pool for all')} text={t('No queue and no virtual cluster is configured: everybody shares the whole cluster.')} /> : (
            <div class="table"><table class="rows">
              <thead><tr><th>{t('Name')}</th><th class="less">{t('Kind')}</th><th class="less" style={{ width: '34%' }}>{t('GPUs, one scale for all')}</th><th class="num">{t('Used')}</th><th class="num">{t('Guarantee')}</th><th class="num less">{t('Deserved')}</th><th class="num less">{t('Limit')}</th><th class="num less">{t('Weight')}</th><th class="num">{t('Oppo')}</th><th class="num less">{t('Lent')}</th><th class="num">{t('Waiting')}</th></tr></thead>
              <tbody>{list.map((q) => (
                <tr key={q.name}><td class="name" style={{ paddingLeft: `${16 + q.depth * 14}px` }}><Swatch of={q.name} /> <A href={`/queues/${q.name}`}>{q.name}</A>{q.open ? '' : <span class="faint"> {t('closed')}</span>}</td><td class="less">{q.kind === 'vc' ? t('VC') : t('queue')}</td><td class="less"><ShareBar tenant={q} scale={scale} /></td>
                  <td class="num strong">{num(q.used.gpus)}</td><td class="num">{num(q.guarantee.gpus)}</td><td class="num less">{q.deserved ? num(q.deserved.gpus) : '–'}</td><td class="num less">{q.capability ? num(q.capability.gpus) : '–'}</td><td class="num less">{q.weight ?? '–'}</td><td class="num">{dash(q.oppo.gpus)}</td><td class="num less">{dash(q.lent.gpus)}</td><td class="num">{q.waiting.jobs ? <A class="link" href={`/jobs?${q.kind}=${q.name}&state=WAITING`}>{jobs(q.waiting.jobs)}</A> : '–'}</td></tr>
              ))}</tbody>
            </table></div>
          )}
        </section>
        <Over names={leaves(list ?? [])} />
      </div>
    </>
  );
}

function Over({ names }: { names: string[] }): JSX.Element | null {
  const hours = Number(param('hours')) || 6;
  const [usage, set] = useState<Usage | null>(null);
  useEffect(() => { if (!has('usage')) return; const now = serverNow(); get<Usage>(`/usage?from=${now - hours * 3_600_000}&to=${now}&step=${Math.max(10_000, Math.round((hours * 3_600_000) / 360))}${names.length === 1 ? `&tenant=${encodeURIComponent(names[0]!)}` : ''}`).then(set, () => {}); }, [hours, names.join()]);
  if (!usage || usage.at.length < 2) return null;
  return (
    <section class="card"><header><h2>{t('GPUs in use over time')}</h2><span class="legend">{names.map((n) => <span key={n}><Swatch of={n} />{n}</span>)}</span><span class="end"><Choice name={t('Span')} of={[['6', '6 h'], ['24', '24 h'], ['168', '7 d'], ['720', '30 d']] as const} value={String(hours) as '6'} set={(v) => goQuery(withQuery(query.value, { hours: v }), true)} /></span></header><div class="in"><Stacked usage={usage} only={names} height={220} /></div></section>
  );
}

function One({ q }: { q: Tenant }): JSX.Element {
  const waiting = useRows<JobRow>('jobs', { [q.kind]: [q.name], state: ['WAITING'], sort: 'start' }, 50, () => true).list.value;
  const running = useRows<JobRow>('jobs', { [q.kind]: [q.name], state: ['RUNNING'], sort: '-gpus' }, 20, () => true).list.value;
  // What nobody has set, or nobody has, is no number.
  const line = (word: string, get: (a: Amounts) => string, none = get({ gpus: 0, cpuMilli: 0, memoryBytes: 0 })): JSX.Element => <tr><td>{word}</td><td class="num">{get(q.used)}</td>{[q.oppo, q.lent, q.guarantee, q.deserved, q.capability, q.total].map((a, i) => <td key={i} class="num">{a && get(a) !== none ? get(a) : '–'}</td>)}</tr>;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}><span class="crumb"><A href="/queues">{t('Queues & VCs')}</A> / </span>{q.name}</h1><span class="sub">{q.kind === 'vc' ? t('virtual cluster') : t('queue')}{q.parent ? `, ${t('part of {parent}', { parent: q.parent })}` : ''}{q.open ? '' : `, ${t('closed')}`}</span>
        {session.value?.admin && q.kind === 'queue' ? <span class="acts"><button class="button" onClick={() => change(q)}>{t('Edit')}</button><button class="button" onClick={() => void openClose(q)}>{q.open ? t('Close queue') : t('Open queue')}</button></span> : null}</div>
      <div class="body">
        <section class="card"><header><h2>{t('Share')}</h2><span class="end less"><ShareLegend /></span></header><div class="in"><ShareBar tenant={q} scale={Math.max(q.total.gpus, q.guarantee.gpus, q.used.gpus + q.oppo.gpus, q.capability?.gpus ?? 0)} />
          <div class="table"><table class="tight" style={{ marginTop: '12px' }}><thead><tr><th /><th class="num">{t('Used')}</th><th class="num">{t('Oppo')}</th><th class="num">{t('Lent')}</th><th class="num">{t('Guarantee')}</th><th class="num">{t('Deserved')}</th><th class="num">{t('Limit')}</th><th class="num">{t('Total')}</th></tr></thead><tbody>{line(t('GPUs'), (a) => num(a.gpus))}{line(t('CPU cores'), (a) => num(a.cpuMilli / 1000))}{line(t('Memory'), (a) => bytes(a.memoryBytes))}</tbody></table></div></div></section>
        <Over names={[q.name]} />
        <section class="card"><header><h2>{t('Waiting order')}</h2><span class="note">{num(waiting.total)}</span></header>{waiting.total ? <div class="table"><table class="rows"><thead><tr><th class="num">{t('Place')}</th><th>{t('Name')}</th><th>{t('User')}</th><th class="num">{t('GPUs')}</th><th class="less">{t('Why')}</th><th>{t('Start, next 8 h')}</th></tr></thead><tbody>{waiting.shown.map((id) => waiting.rows.get(id)!).filter(Boolean).sort((a, b) => (a.wait?.place ?? 1e9) - (b.wait?.place ?? 1e9)).map((r) => <tr key={r.id}><td class="num">{r.wait?.place ?? '–'}</td><td class="name"><A href={jobHref(r.id)}>{r.name}</A></td><td>{r.user}</td><td class="num">{num(r.gpus)}</td><td class="less cut" style={{ maxWidth: '420px' }} title={r.wait?.text}>{statusNote(r)}</td><td><StartStrip row={r} /></td></tr>)}</tbody></table></div> : <Empty title={t('Nothing waits here')} />}</section>
        <section class="card"><header><h2>{t('Who holds what')}</h2><span class="note">{jobs(running.total)}, {percent(q.used.gpus, q.guarantee.gpus || q.total.gpus)}</span><A class="link end" href={`/jobs?${q.kind}=${q.name}&state=RUNNING&group=user`}>{t('by user')}</A></header>{running.total ? <div class="table"><table class="rows"><tbody>{running.shown.map((id) => running.rows.get(id)!).filter(Boolean).map((r) => <tr key={r.id}><td class="name"><Glyph state={r.state} /><span class="sr">{stateWord(r.state)}</span> <A href={jobHref(r.id)}>{r.name}</A></td><td>{r.user}</td><td class="num">{gpus(r.gpus)}</td><td>{r.oppo ? t('opportunistic') : ''}</td><td class="num"><Ago at={r.started} /></td></tr>)}</tbody></table></div> : <Empty title={t('Nothing runs here')} />}</section>
      </div>
    </>
  );
}

const QUEUES = '/apis/scheduling.volcano.sh/v1beta1/queues';
async function openClose(q: Tenant): Promise<void> {
  try { await kube('PATCH', `${QUEUES}/${q.name}`, { spec: { state: q.open ? 'Closed' : 'Open' } }, 'application/merge-patch+json'); toast(q.open ? t('{name} takes no new jobs', { name: q.name }) : t('{name} is open', { name: q.name })); } catch (e) { toast(said(e)); }
}
function change(q: Tenant): void { dialog(t('Edit {name}', { name: q.name }), q, (name, spec) => kube('PATCH', `${QUEUES}/${name}`, { spec }, 'application/merge-patch+json')); }
function create(): void { dialog(t('Create queue'), null, (name, spec) => kube('POST', QUEUES, { apiVersion: 'scheduling.volcano.sh/v1beta1', kind: 'Queue', metadata: { name }, spec })); }
function dialog(title: string, q: Tenant | null, send: (name: string, spec: object) => Promise<unknown>): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    return (
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const f = new FormData(e.currentTarget);
        const n = (k: string): string => (f.get(k) as string).trim();
        const gpu = (k: string): object => (n(k) ? { 'nvidia.com/gpu': n(k) } : {});
        try { await send(q?.name ?? n('name'), { ...(n('weight') ? { weight: Number(n('weight')) } : {}), ...(n('guarantee') ? { guarantee: { resource: gpu('guarantee') } } : {}), ...(n('deserved') ? { deserved: gpu('deserved') } : {}), ...(n('capability') ? { capability: gpu('capability') } : {}) }); closeDialog(); } catch (e) { setWrong(said(e)); }
      }}>
        <h2>{title}</h2>
        {q ? null : <label>{t('Name')}<input class="field" name="name" required pattern="[a-z0-9]([a-z0-9.-]*[a-z0-9])?" data-first /></label>}
        <div class="pair"><label>{t('Weight')}<input class="field" type="number" min="1" name="weight" defaultValue={q?.weight ? String(q.weight) : ''} /></label><label>{t('Guarantee, GPUs')}<input class="field" type="number" min="0" name="guarantee" defaultValue={q?.guarantee.gpus ? String(q.guarantee.gpus) : ''} /></label><label>{t('Deserved, GPUs')}<input class="field" type="number" min="0" name="deserved" defaultValue={q?.deserved ? String(q.deserved.gpus) : ''} /></label><label>{t('Limit, GPUs')}<input class="field" type="number" min="0" name="capability" defaultValue={q?.capability ? String(q.capability.gpus) : ''} /></label></div>
        {wrong ? <p class="wrong">{wrong}</p> : null}
        <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first">{t('Save')}</button></div>
      </form>
    );
  };
  showDialog(title, () => <Body />);
}
