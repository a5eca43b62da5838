import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, kube } from '../../api';
import { bytes, clock, num, percent, tint } from '../../format';
import { serverNow } from '../../live/socket';
import { useRows } from '../../live/use';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { StateMark } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { Rows, type Column } from '../../parts/rows';
import { Ago, Choice, Empty, Skeleton, Wrong } from '../../parts/small';
import type { Whatif } from '../../shapes/calls';
import type { EventRow, NodeDetail, NodeRow, NodeState } from '../../shapes/cluster';
import { A, go, goQuery, param, query } from '../../state/route';
import { has } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';
import { EventTable } from '../events/table';
import { askWhatif } from '../whatif/ask';

export const nodeWord = (s: NodeState): string => ({ ready: t('ready'), cordoned: t('cordoned'), 'not-ready': t('not ready') })[s] ?? s;
const NodeMark = ({ state }: { state: NodeState }): JSX.Element => <span class={`state ${state === 'ready' ? 'RUNNING' : state === 'cordoned' ? 'STOPPED' : 'FAILED'}`}><Icon name={state === 'ready' ? 'check' : state === 'cordoned' ? 'pause' : 'warn'} />{nodeWord(state)}</span>;

export function GpuCells({ row }: { row: NodeRow }): JSX.Element {
  const used = row.gpus.filter((g) => g.job).length;
  return <span class="cells big" role="img" aria-label={t('{used} of {total} GPUs in use', { used, total: row.gpus.length })}>{row.gpus.map((g) => <i key={g.index} title={g.job ?? ''} class={g.job ? `tint ${tint(g.job)}` : g.bad || row.state !== 'ready' ? 'off' : g.held ? 'held' : 'open'} />)}</span>;
}

export default function Nodes({ rest }: { rest: string }): JSX.Element { return rest ? <OneNode name={decodeURIComponent(rest)} /> : <List />; }

function List(): JSX.Element {
  const top = useRef(true);
  const state = param('state') as NodeState | '';
  const live = useRows<NodeRow>('nodes', { ...(state ? { state: [state] } : {}), ...(param('q') ? { q: param('q') } : {}), sort: param('sort') || 'name' }, 100, () => top.current);
  useEffect(() => { document.title = `${t('Nodes')} · Muster`; }, []);
  const wide = innerWidth > 900;
  const columns: Column<NodeRow>[] = [
    { key: 'name', word: t('Node'), width: 0, cls: 'name', sort: 'name', cell: (r) => <A class="mono" href={`/nodes/${r.id}`}>{r.id}</A> },
    { key: 'state', word: t('Status'), width: 116, sort: 'state', cell: (r) => <NodeMark state={r.state} /> },
    { key: 'gpus', word: t('GPUs'), width: 136, sort: 'free', cell: (r) => <GpuCells row={r} /> },
    ...(wide ? [
      { key: 'model', word: t('Model'), width: 150, sort: 'model', cell: (r: NodeRow) => r.model || '–' },
      { key: 'vcs', word: t('VC cells'), width: 130, cell: (r: NodeRow) => r.vcs.join(', ') || '–' },
      { key: 'rack', word: t('Rack'), width: 90, sort: 'rack', cell: (r: NodeRow) => r.rack || '–' },
      { key: 'cpu', word: t('CPU'), width: 90, num: true, cell: (r: NodeRow) => <span title={`${num(r.cpuMilli.used / 1000)} / ${num(r.cpuMilli.total / 1000)}`}>{percent(r.cpuMilli.used, r.cpuMilli.total)}</span> },
      { key: 'memory', word: t('Memory'), width: 90, num: true, cell: (r: NodeRow) => <span title={`${bytes(r.memoryBytes.used)} / ${bytes(r.memoryBytes.total)}`}>{percent(r.memoryBytes.used, r.memoryBytes.total)}</span> },
      { key: 'pods', word: t('Pods'), width: 84, num: true, cell: (r: NodeRow) => `${num(r.pods.used)} / ${num(r.pods.total)}` },
    ] as Column<NodeRow>[] : []),
  ];
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Nodes')}</h1><span class="sub">{num(live.list.value.total)}</span>{live.waiting.value ? <span class="acts"><button class="news" onClick={live.letIn}>{t('{n} changes', { n: live.waiting.value })}</button></span> : null}</div>
      <div class="filters">
        <label class="find"><Icon name="search" /><span class="sr">{t('Name or label')}</span><input data-find type="search" placeholder={t('Name or label')} value={param('q')} onInput={(e) => goQuery(withQuery(query.value, { q: e.currentTarget.value }), true)} /></label>
        <Choice name={t('Status')} of={[['', t('All')], ['ready', t('ready')], ['cordoned', t('cordoned')], ['not-ready', t('not ready')]] as const} value={state} set={(v) => goQuery(withQuery(query.value, { state: v }))} />
      </div>
      {live.error.value ? <Wrong error={live.error.value} /> : <Rows live={live} columns={columns} height={32} sort={param('sort') || 'name'} setSort={(s) => goQuery(withQuery(query.value, { sort: s === 'name' ? null : s }))} label={t('Nodes')} onRow={(r) => go(`/nodes/${r.id}`)} atTop={(at) => { top.current = at; }} empty={<Empty title={t('No node matches')} text={t('Nodes appear here when their agents have registered.')} />} />}
    </>
  );
}

function OneNode({ name }: { name: string }): JSX.Element {
  const [d, set] = useState<NodeDetail | null>(null);
  const [wrong, setWrong] = useState('');
  const events = useRows<EventRow>('events', { node: name }, 50, () => true);
  const watch = useRows<NodeRow>('nodes', { q: name }, 5, () => true).list.value;
  const now = watch.rows.get(name);
  const ask = (): void => { get<NodeDetail>(`/nodes/${encodeURIComponent(name)}`).then((x) => { set(x); setWrong(''); }, (e: unknown) => setWrong(said(e))); };
  useEffect(ask, [name, watch.rv]);
  useEffect(() => { document.title = `${name} · Muster`; }, [name]);
  if (wrong && !d) return <Wrong error={{ code: name, message: wrong }} again={ask} />;
  if (!d) return <Skeleton />;
  const r = now ?? d.row;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}><span class="crumb"><A href="/nodes">{t('Nodes')}</A> / </span>{name}</h1><NodeMark state={r.state} />
        <span class="acts"><A class="button" href={`/jobs?node=${name}`}>{t('Jobs here')}</A>{d.may.cordon ? <button class="button" onClick={() => void cordon(name, r.state !== 'cordoned', ask)}>{r.state === 'cordoned' ? t('Uncordon') : t('Cordon')}</button> : null}{d.may.drain && d.tasks.length ? <button class="button danger" onClick={() => drain(d, ask)}>{t('Drain')}</button> : null}</span></div>
      <div class="facts"><span>{r.model || t('no GPU model')}</span><span class="strong">{t('{n} GPUs', { n: r.gpus.length })}</span>{r.rack ? <span>{r.rack}</span> : null}{r.vcs.length ? <span>{r.vcs.join(', ')}</span> : null}<span>{d.addresses.join(', ')}</span><span class="mono">{d.kubelet}</span></div>
      <div class="body">
        <div class="two">
          <section class="card"><header><h2>{t('GPUs')}</h2></header><div class="in">{r.gpus.length ? <div class="table"><table class="tight names"><thead><tr><th>{t('GPU')}</th><th>{t('Holder')}</th><th>{t('User')}</th><th class="num">{t('In use')}</th><th class="num">{t('Memory')}</th></tr></thead><tbody>{r.gpus.map((g) => <tr key={g.index}><td>{g.index}</td><td class="strong">{g.job ? <A href={jobHref(g.job)}>{g.job}</A> : <span class="faint">{g.bad ? t('bad') : g.held ? t('held for a reservation') : t('free')}</span>}{g.oppo ? <span class="faint"> {t('opportunistic')}</span> : null}</td><td>{g.user}</td><td class="num">{g.use === null || g.use === undefined ? '–' : percent(g.use, 1)}</td><td class="num">{g.memoryUsed ? bytes(g.memoryUsed) : '–'}</td></tr>)}</tbody></table></div> : <p class="faint">{t('This node has no GPUs.')}</p>}</div></section>
          <section class="card"><header><h2>{t('Room')}</h2></header><div class="in"><dl class="pairs"><dt>{t('CPU')}</dt><dd>{num(r.cpuMilli.used / 1000)} / {num(r.cpuMilli.total / 1000)} <Meter part={r.cpuMilli.used} of={r.cpuMilli.total} /></dd><dt>{t('Memory')}</dt><dd>{bytes(r.memoryBytes.used)} / {bytes(r.memoryBytes.total)} <Meter part={r.memoryBytes.used} of={r.memoryBytes.total} /></dd><dt>{t('Pods')}</dt><dd>{num(r.pods.used)} / {num(r.pods.total)}</dd><dt>{t('Taints')}</dt><dd class="mono">{r.taints.join(', ') || '–'}</dd>{d.conditions.map((c) => <><dt>{c.type}</dt><dd title={c.message}>{c.status}{c.reason ? <span class="faint"> {c.reason}</span> : null}</dd></>)}</dl></div></section>
        </div>
        <section class="card"><header><h2>{t('Tasks')}</h2><span class="note">{num(d.tasks.length)}</span></header>{d.tasks.length ? <div class="table"><table class="rows"><thead><tr><th>{t('Job')}</th><th>{t('Task')}</th><th>{t('User')}</th><th>{t('Status')}</th><th class="num">{t('GPUs')}</th><th class="num">{t('Ran')}</th></tr></thead><tbody>{d.tasks.map((x) => <tr key={`${x.job}/${x.task}`}><td class="name"><A href={jobHref(x.job)}>{x.job}</A></td><td>{x.task}</td><td>{x.user}</td><td><StateMark state={x.state} /></td><td class="num">{x.gpus || '–'}</td><td class="num"><Ago at={x.started} /></td></tr>)}</tbody></table></div> : <Empty title={t('Nothing runs here')} />}</section>
        <section class="card"><header><h2>{t('Labels')}</h2></header><div class="in"><dl class="pairs mono">{Object.entries(d.labels).map(([k, v]) => <><dt>{k}</dt><dd>{v || '""'}</dd></>)}</dl></div></section>
        <section class="card"><header><h2>{t('Events')}</h2></header><EventTable live={events} withObject={false} /></section>
      </div>
    </>
  );
}
const Meter = ({ part, of }: { part: number; of: number }): JSX.Element => <span class="meter"><i style={{ width: `${of ? Math.min(100, (100 * part) / of) : 0}%` }} /></span>;

async function cordon(name: string, on: boolean, after: () => void): Promise<void> {
  try { await kube('PATCH', `/api/v1/nodes/${encodeURIComponent(name)}`, { spec: { unschedulable: on || null } }, 'application/merge-patch+json'); after(); } catch (e) { toast(said(e)); }
}
/** Cordons, then evicts each pod by the eviction API, so that disruption budgets hold. */
function drain(d: NodeDetail, after: () => void): void {
  const name = d.row.id;
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState<string[]>([]);
    const [busy, setBusy] = useState(false);
    const [told, setTold] = useState<Whatif | null>(null);
    const [untold, setUntold] = useState('');
    useEffect(() => {
      if (!has('whatif')) return;
      const stop = new AbortController();
      askWhatif([{ drain: { nodes: [name] } }], '24h', stop.signal).then(setTold, (e: unknown) => { if ((e as Error).name !== 'AbortError') setUntold(said(e)); });
      return () => stop.abort();
    }, []);
    const run = async (): Promise<void> => {
      setBusy(true);
      const failed: string[] = [];
      try {
        await kube('PATCH', `/api/v1/nodes/${encodeURIComponent(name)}`, { spec: { unschedulable: true } }, 'application/merge-patch+json');
        const pods = await kube<{ items: { metadata: { name: string; namespace: string; ownerReferences?: { kind: string }[] }; status: { phase: string } }[] }>('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(name)}`);
        for (const p of pods.items) {
          if (p.metadata.ownerReferences?.some((o) => o.kind === 'DaemonSet') || /Succeeded|Failed/.test(p.status.phase)) continue;
          await kube('POST', `/api/v1/namespaces/${p.metadata.namespace}/pods/${p.metadata.name}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: p.metadata.name, namespace: p.metadata.namespace } }).catch((e: unknown) => failed.push(`${p.metadata.name}: ${said(e)}`));
        }
      } catch (e) { failed.push(said(e)); }
      if (failed.length) { setWrong(failed); setBusy(false); } else { closeDialog(); after(); }
    };
    return (
      <>
        <h2>{t('Drain {name}?', { name })}</h2><p class="soft">{t('It takes no new work, and these tasks are evicted:')}</p>
        <table class="tight" style={{ marginTop: '8px' }}><tbody>{d.tasks.slice(0, 20).map((x) => <tr key={`${x.job}/${x.task}`}><td class="strong">{x.job}</td><td>{x.task}</td><td class="faint">{x.user}</td><td class="num">{x.gpus ? `${x.gpus} GPUs` : ''}</td></tr>)}</tbody></table>
        {d.tasks.length > 20 ? <p class="faint">{t('and {n} more', { n: num(d.tasks.length - 20) })}</p> : null}
        {has('whatif') ? <div class="drain-then" role="status">{told ? <><h3 class="sub-title">{t('What it would do')}</h3><p>{told.text}</p>{told.jobs.filter((j) => j.evicted || j.after.start !== j.before.start).slice(0, 8).map((j, i) => <p key={j.id ?? i} class="soft">{j.name}{j.evicted ? ` ${t('is evicted')}` : ''}{j.after.start ? `, ${t('starts about {time}', { time: clock(j.after.start, serverNow()) })}` : ''}</p>)}</> : <p class="faint">{untold || t('Being tried on a copy…')}</p>}</div> : null}
        {wrong.map((w) => <p key={w} class="bad">{w}</p>)}
        <div class="foot">{has('whatif') ? <A class="link" href={`/whatif?s=${encodeURIComponent(JSON.stringify([{ drain: { nodes: [name] } }]))}`} onClick={closeDialog}>{t('Open as what-if')}</A> : null}<span class="grow" /><button class="button" data-first onClick={closeDialog}>{t('Keep it')}</button><button class="button kill" disabled={busy} onClick={() => void run()}>{t('Drain node')}</button></div>
      </>
    );
  };
  showDialog(t('Drain'), () => <Body />);
}
