import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api';
import { dash, gpus, num, percent, span } from '../../format';
import { serverNow } from '../../live/socket';
import { useRows, useValue } from '../../live/use';
import { Glyph, stateWord } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { ShareBar, ShareLegend } from '../../parts/sharebar';
import { Empty, StartStrip, statusNote, Swatch } from '../../parts/small';
import { holders, leaves, type Counts, type Tenant, type Usage } from '../../shapes/cluster';
import type { JobRow, State } from '../../shapes/job';
import { A, lazy } from '../../state/route';
import { jobHref } from '../../state/url';
import { has, session } from '../../state/session';
import { language, t } from '../../text';

const Stacked = lazy(() => import('../../parts/stacked'));
const TILES: State[] = ['WAITING', 'RUNNING', 'FAILED', 'SUSPENDED', 'SUCCEEDED'];

export function Home(): JSX.Element {
  const counts = useValue<Counts>('counts').value.value;
  const tenants = useValue<Tenant[]>('tenants').value.value;
  const waiting = useRows<JobRow>('jobs', { user: ['me'], state: ['WAITING'], sort: '-submitted' }, 6, () => true).list.value;
  const recent = useRows<JobRow>('jobs', { user: ['me'], sort: '-submitted' }, 8, () => true);
  useEffect(() => { document.title = `${t('Home')} · Muster`; }, [language.value]);
  const mine = recent.list.value;
  const today = new Date(serverNow()).toLocaleDateString(language.value === 'zh' ? 'zh-CN' : 'en-GB', { weekday: 'long', day: 'numeric', month: 'long' });
  const nothing = !recent.loading.value && mine.total === 0;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Home')}</h1><span class="sub">{today}</span><div class="acts"><A class="button first" href="/submit"><Icon name="plus" />{t('Submit Job')}</A></div></div>
      <div class="body">
        <Tiles counts={counts} />
        <div class="three">
          <div class="stack">
            {nothing ? <FirstUse /> : waiting.total ? <Waiting rows={waiting.shown.map((id) => waiting.rows.get(id)!).filter(Boolean)} total={counts?.all['WAITING'] ?? waiting.total} /> : null}
            {tenants?.length ? <Tenants tenants={tenants} /> : null}
            <UsageCard tenants={tenants} />
          </div>
          <div class="stack">
            {counts ? <Free counts={counts} /> : null}
            {mine.total ? <Recent rows={mine.shown.map((id) => mine.rows.get(id)!).filter(Boolean)} /> : null}
            {session.value?.admin && counts?.alerts?.length ? <Watch counts={counts} /> : null}
          </div>
        </div>
      </div>
    </>
  );
}

function Tiles({ counts }: { counts: Counts | null }): JSX.Element {
  const note = (s: State): string => {
    if (!counts) return '';
    if (s === 'WAITING') return counts.mineLongestWait ? t('longest {span}', { span: span(counts.mineLongestWait) }) : t('of mine');
    if (s === 'RUNNING') return gpus(counts.mineGpus ?? 0) === t('CPU only') ? t('of mine') : gpus(counts.mineGpus);
    return s === 'SUSPENDED' ? t('of mine') : t('last 24 h');
  };
  return (
    <div class="tiles">
      {TILES.map((s) => (
        <A key={s} href={`/jobs?user=me&state=${s}`}>
          <div class="word"><Glyph state={s} />{stateWord(s)}</div>
          <div class="answer">{counts ? num(counts.mine?.[s] ?? 0) : ' '}</div>
          <div class="note">{note(s)}</div>
        </A>
      ))}
    </div>
  );
}

const Waiting = ({ rows, total }: { rows: JobRow[]; total: number }): JSX.Element => (
  <section class="card">
    <header><h2>{t('My waiting jobs')}</h2><A class="link end" href="/jobs?state=WAITING">{t('All {n} waiting', { n: num(total) })}</A></header>
    <div class="table">
      <table class="rows">
        <thead><tr><th>{t('Name')}</th><th class="less">{t('VC / queue')}</th><th class="num">{t('GPUs')}</th><th class="less">{t('Why')}</th><th>{t('Start, next 8 h')}</th></tr></thead>
        <tbody>{rows.map((r) => <tr key={r.id}><td class="name"><A href={jobHref(r.id)}>{r.name}</A></td><td class="less">{r.vc || r.queue}</td><td class="num">{num(r.gpus)}</td><td class="less cut" style={{ maxWidth: '300px' }} title={r.wait?.text}>{statusNote(r)}</td><td><StartStrip row={r} wide /></td></tr>)}</tbody>
      </table>
    </div>
  </section>
);

const Tenants = ({ tenants: all }: { tenants: Tenant[] }): JSX.Element => {
  const tenants = holders(all);
  const scale = Math.max(...tenants.map((q) => Math.max(q.capability?.gpus ?? 0, q.guarantee.gpus, q.used.gpus + q.oppo.gpus, q.capability ? 0 : q.total.gpus)), 1);
  return (
    <section class="card">
      <header><h2>{t('Virtual clusters and queues')}</h2><span class="end less"><ShareLegend /></span></header>
      <div class="table">
        <table class="rows">
          <thead><tr><th>{t('Name')}</th><th style={{ width: '40%' }} class="less">{t('GPUs, one scale for all')}</th><th class="num">{t('Used')}</th><th class="num">{t('Guarantee')}</th><th class="num">{t('Oppo')}</th><th class="num">{t('Waiting')}</th><th class="num less">{t('CPU')}</th><th class="num less">{t('Memory')}</th><th class="num less">{t('Bad cells')}</th></tr></thead>
          <tbody>
            {tenants.map((q) => (
              <tr key={q.name}>
                <td class="name"><Swatch of={q.name} /> <A href={`/queues/${q.name}`}>{q.name}</A></td>
                <td class="less"><ShareBar tenant={q} scale={scale} /></td>
                <td class="num strong">{num(q.used.gpus)}</td><td class="num">{num(q.guarantee.gpus)}</td><td class="num">{dash(q.oppo.gpus)}</td><td class="num">{dash(q.waiting.gpus)}</td>
                <td class="num less">{percent(q.used.cpuMilli, q.total.cpuMilli)}</td><td class="num less">{percent(q.used.memoryBytes, q.total.memoryBytes)}</td><td class="num less">{dash(q.badCells)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
};

function UsageCard({ tenants }: { tenants: Tenant[] | null }): JSX.Element | null {
  const [usage, setUsage] = useState<Usage | null>(null);
  useEffect(() => {
    if (!has('usage')) return;
    const ask = (): void => { get<Usage>(`/usage?from=${serverNow() - 6 * 3_600_000}&to=${serverNow()}&step=60000`).then(setUsage, () => {}); };
    ask();
    const timer = setInterval(ask, 60_000);
    return () => clearInterval(timer);
  }, []);
  if (!usage || usage.at.length < 2) return null;
  const top = tenants ? leaves(tenants) : usage.tenants;
  return (
    <section class="card">
      <header><h2>{t('GPUs in use, last 6 h')}</h2><span class="legend end">{usage.tenants.filter((n) => top.includes(n)).map((n) => <span key={n}><Swatch of={n} />{n}</span>)}</span></header>
      <div class="in"><Stacked usage={usage} only={top} /></div>
    </section>
  );
}

const Free = ({ counts }: { counts: Counts }): JSX.Element => {
  const most = Math.max(...(counts.freeBySize ?? []).map((f) => f.nodes), 1);
  const off = (counts.nodes?.cordoned ?? 0) + (counts.nodes?.notReady ?? 0);
  return (
    <section class="card">
      <header><h2>{t('Free GPUs')}</h2><span class="note end">{t('{n} of {total}', { n: num(counts.gpus?.free ?? 0), total: num(counts.gpus?.total ?? 0) })}</span></header>
      <div class="in">
        <p class="faint" style={{ marginBottom: '8px' }}>{t('Nodes by free GPUs')}</p>
        {counts.freeBySize?.length ? (
          <ul class="free">
            {counts.freeBySize.slice(0, 8).map((f) => (
              <li key={`${f.size}.${f.free}`} title={t('{nodes} nodes with {free} of {size} GPUs free', { nodes: num(f.nodes), free: f.free, size: f.size })}>
                <span class="cells" aria-hidden="true">{Array.from({ length: Math.min(8, f.size) }, (_, i) => <i key={i} class={i < f.free ? '' : 'open'} />)}</span>
                <span class="sr">{t('{nodes} nodes with {free} of {size} GPUs free', { nodes: num(f.nodes), free: f.free, size: f.size })}</span>
                <span class="bar"><i style={{ width: `${(100 * f.nodes) / most}%` }} /></span><span class="n">{num(f.nodes)}</span>
              </li>
            ))}
          </ul>
        ) : <p class="faint">{t('None is free now.')}</p>}
        {counts.gpus?.held || off ? <p class="faint" style={{ marginTop: '8px', paddingTop: '8px', borderTop: '1px solid var(--line)' }}>{counts.gpus?.held ? t('{n} more GPUs are held for reservations. ', { n: num(counts.gpus.held) }) : ''}{off ? (off === 1 ? t('1 node is cordoned or not ready.') : t('{n} nodes are cordoned or not ready.', { n: num(off) })) : ''}</p> : null}
      </div>
    </section>
  );
};

const Recent = ({ rows }: { rows: JobRow[] }): JSX.Element => (
  <section class="card">
    <header><h2>{t('My recent jobs')}</h2><A class="link end" href="/jobs?user=me">{t('All mine')}</A></header>
    <div class="in"><ul class="recent names">{rows.slice(0, 8).map((r) => <li key={r.id}><Glyph state={r.state} /><span class="sr">{stateWord(r.state)}</span><A class="strong" href={jobHref(r.id)}>{r.name}</A><span class="faint nowrap">{gpus(r.gpus)}</span><span class="end">{statusNote(r)}</span></li>)}</ul></div>
  </section>
);
const Watch = ({ counts }: { counts: Counts }): JSX.Element => (
  <section class="card">
    <header><h2>{t('Needs attention')}</h2></header>
    <div class="in"><ul class="recent names">{counts.alerts.slice(0, 6).map((a) => <li key={a.text}><span class={a.severity === 'error' ? 'FAILED' : 'WAITING'}><Icon name="warn" /></span><A href={a.href || '/events'}>{a.text}</A></li>)}</ul></div>
  </section>
);
const FirstUse = (): JSX.Element => (
  <section class="card">
    <Empty title={t('No job of yours yet')} text={has('decide') ? t('Submit one from a form, a YAML file or a template; before it is sent you see whether it would start now, on which nodes, or what it would wait for.') : t('Submit one from a form, a YAML file or a template; if it waits, its page says why.')}>
      <A class="button first" href="/submit?template=single">{t('Submit a first job')}</A>
      <p class="faint mono">muster submit pytorch --name=hello --gpus=1 --image=any "python3 -c 'print(42)'"</p>
    </Empty>
  </section>
);
