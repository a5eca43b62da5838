/** Simulations: a trace replayed under several policies, in a process of its own on the server. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get } from '../../api';
import { num, percent, span } from '../../format';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Ago, Empty, Skeleton, Swatch, Wrong } from '../../parts/small';
import type { Refused } from '../../shapes/base';
import type { Sim, SimAsk, SimPolicy, SimRow } from '../../shapes/calls';
import { api } from '../../state/place';
import { A, go } from '../../state/route';
import { has } from '../../state/session';
import { t } from '../../text';
import jobs from '../../../../examples/sim/jobs.csv?raw';
import policies from '../../../../examples/sim/policies.yaml?raw';
import { historyTrace } from './history';

const NAMES = ['backfill', 'backfill-unknown', 'fifo', 'skip', 'spread', 'fragmentation'];
const stateWord = (s: SimRow['state']): string => ({ waiting: t('waiting'), running: t('running'), done: t('done'), failed: t('failed') })[s];
const TONE = { waiting: 'WAITING', running: 'RUNNING', done: 'SUCCEEDED', failed: 'FAILED' } as const;

export default function SimPage({ rest }: { rest: string }): JSX.Element {
  useEffect(() => { document.title = `${t('Simulator')} · Muster`; }, []);
  if (!has('sims')) return <><div class="head"><h1 tabIndex={-1}>{t('Simulator')}</h1></div><Empty title={t('This server runs no simulations')} text={t('On the command line, muster sim replays a trace with other nodes, queues and policies.')} /></>;
  return rest ? <One id={rest} key={rest} /> : <List />;
}

async function start(ask: SimAsk): Promise<void> {
  const made = await call<{ id: string }>('POST', '/sims', ask);
  go(`/sim/${made.id}`);
}

function List(): JSX.Element {
  const [rows, set] = useState<SimRow[] | null>(null);
  const ask = (): void => { get<SimRow[]>('/sims').then(set, () => {}); };
  useEffect(() => { ask(); const timer = setInterval(ask, 2000); return () => clearInterval(timer); }, []);
  const example = (): void => { start({ name: 'examples/sim', trace: jobs, nodes: '4x8', policyFile: policies }).catch((e: unknown) => toast(said(e))); };
  const remove = (r: SimRow): void => { call('DELETE', `/sims/${encodeURIComponent(r.id)}`).then(ask, (e: unknown) => toast(said(e))); };
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Simulator')}</h1><span class="sub">{t('jobs of a trace, replayed through the engine that runs this cluster')}</span><span class="acts"><button class="button" onClick={example}>{t('Run the example')}</button><button class="button first" onClick={() => showDialog(t('New simulation'), () => <New />, { wide: true })}><Icon name="plus" />{t('New simulation')}</button></span></div>
      {!rows ? <Skeleton /> : !rows.length ? <Empty title={t('No simulation yet')} text={t('Run one on an example, on a trace of your own, or on what this cluster has run.')} /> : (
        <div class="body"><section class="card"><div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th><th>{t('Status')}</th><th class="less">{t('User')}</th><th class="num">{t('Began')}</th><th class="num less">{t('Took')}</th><th /></tr></thead><tbody>{rows.map((r) => (
          <tr key={r.id}><td class="name"><A href={`/sim/${r.id}`}>{r.name}</A></td><td title={r.text}><span class={TONE[r.state]}>{stateWord(r.state)}</span> <span class="faint">{r.text}</span></td><td class="less">{r.user}</td><td class="num"><Ago at={r.began} suffix /></td><td class="num less">{r.ended ? span(r.ended - r.began) : '–'}</td>
            <td class="num"><button class="button small" aria-label={`${t('Remove')} ${r.name}`} onClick={() => remove(r)}>{t('Remove')}</button></td></tr>
        ))}</tbody></table></div></section></div>
      )}
    </>
  );
}

const readFile = async (input: HTMLInputElement): Promise<string> => {
  const file = input.files?.[0];
  if (!file) return '';
  if (!file.name.endsWith('.gz')) return file.text();
  return new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text();
};

function New(): JSX.Element {
  const [wrong, setWrong] = useState('');
  const [from, setFrom] = useState<'file' | 'history'>('file');
  const [busy, setBusy] = useState(false);
  const run = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    const f = new FormData(form);
    const field = (name: string): HTMLInputElement => form.elements.namedItem(name) as HTMLInputElement;
    try {
      const trace = from === 'history' ? await historyTrace() : await readFile(field('trace'));
      const nodes = (f.get('nodes') as string).trim();
      await start({ name: (f.get('name') as string).trim() || (from === 'history' ? t('what this cluster has run') : field('trace').files?.[0]?.name ?? ''), trace, nodes: (await readFile(field('nodesFile'))) || nodes, policies: f.getAll('policy') as string[], policyFile: await readFile(field('policyFile')), tenants: f.get('tenants') === 'on', resume: f.get('resume') === 'on' });
      closeDialog();
    } catch (e) { setWrong(said(e)); } finally { setBusy(false); }
  };
  return (
    <form class="form" onSubmit={(e) => { e.preventDefault(); void run(e.currentTarget); }}>
      <h2>{t('New simulation')}</h2>
      <label>{t('Name')}<input class="field" name="name" maxLength={100} data-first /></label>
      <div class="pair">
        <label>{t('Jobs')}<select class="field" value={from} onChange={(e) => setFrom(e.currentTarget.value as 'file')}><option value="file">{t('of a trace (CSV or CSV.gz)')}</option><option value="history">{t('that this cluster has run')}</option></select></label>
        {from === 'file' ? <label>{t('Trace')}<input class="field" type="file" name="trace" accept=".csv,.gz" required /></label> : null}
      </div>
      <div class="pair"><label>{t('Nodes × GPUs')}<input class="field" name="nodes" defaultValue="4x8" placeholder="64x8" /></label><label>{t('or a CSV of nodes')}<input class="field" type="file" name="nodesFile" accept=".csv" /></label></div>
      <fieldset class="checks"><legend>{t('Policies')}</legend>{NAMES.map((n, i) => <label key={n}><input type="checkbox" name="policy" value={n} defaultChecked={i === 0 || n === 'fifo'} /> {n}</label>)}</fieldset>
      <label>{t('and those of a file (YAML)')}<input class="field" type="file" name="policyFile" accept=".yaml,.yml" /></label>
      <fieldset class="checks"><legend>{t('Rules')}</legend><label><input type="checkbox" name="tenants" /> {t('each queue of the trace is a queue')}</label><label><input type="checkbox" name="resume" /> {t('preempted jobs keep their progress')}</label></fieldset>
      {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
      <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first" disabled={busy}>{t('Simulate')}</button></div>
    </form>
  );
}

function One({ id }: { id: string }): JSX.Element {
  const [sim, set] = useState<Sim | null>(null);
  const [wrong, setWrong] = useState<Refused | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = (): void => { get<Sim>(`/sims/${encodeURIComponent(id)}`).then((s) => { set(s); if (s.row.state === 'waiting' || s.row.state === 'running') timer = setTimeout(ask, 500); }, (e: unknown) => setWrong({ code: '', message: said(e) })); };
    ask();
    return () => clearTimeout(timer);
  }, [id]);
  const r = sim?.row;
  const file = (kind: string): string => api(`/sims/${encodeURIComponent(id)}/${kind}`);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}><span class="crumb"><A href="/sim">{t('Simulator')}</A> / </span>{r?.name ?? id}</h1>{r ? <span class={TONE[r.state]}>{stateWord(r.state)}</span> : null}
        {r?.state === 'done' ? <span class="acts"><a class="button" href={file('json')} download><Icon name="download" />JSON</a><a class="button" href={file('html')} download><Icon name="download" />{t('Charts (HTML)')}</a></span> : null}</div>
      {wrong ? <Wrong error={wrong} /> : !sim ? <Skeleton /> : r!.state === 'failed' ? <Empty title={t('It failed')} text={r!.text} /> : !sim.policies ? <Empty title={r!.state === 'waiting' ? t('It waits for earlier simulations') : t('It is running')} /> : <Compare policies={sim.policies} />}
    </>
  );
}

type Figure = { key: keyof SimPolicy; word: () => string; show: (v: number) => string; best: 'least' | 'most' | null };
const seconds = (v: number): string => span(v * 1000);
const FIGURES: Figure[] = [
  { key: 'jobs', word: () => t('Jobs'), show: num, best: null }, { key: 'started', word: () => t('Started'), show: num, best: 'most' }, { key: 'evictions', word: () => t('Evictions'), show: num, best: 'least' },
  { key: 'meanWaitSeconds', word: () => t('Mean wait'), show: seconds, best: 'least' }, { key: 'p50WaitSeconds', word: () => t('Median wait'), show: seconds, best: 'least' }, { key: 'p99WaitSeconds', word: () => t('Wait, p99'), show: seconds, best: 'least' }, { key: 'meanWaitSecondsOver8Gpus', word: () => t('Mean wait, over 8 GPUs'), show: seconds, best: 'least' },
  { key: 'meanJobSeconds', word: () => t('Mean completion time'), show: seconds, best: 'least' }, { key: 'makespanSeconds', word: () => t('Time until the last job ends'), show: seconds, best: 'least' },
  { key: 'utilisation', word: () => t('GPUs in use'), show: (v) => percent(v, 1), best: 'most' }, { key: 'freeGpusStranded', word: () => t('Free GPUs that no job can use'), show: (v) => percent(v, 1), best: 'least' },
];
function Compare({ policies: list }: { policies: SimPolicy[] }): JSX.Element {
  const value = (p: SimPolicy, f: Figure): number => p[f.key] as number;
  const bestOf = (f: Figure): number | null => { const all = list.map((p) => value(p, f)); const b = f.best === 'most' ? Math.max(...all) : Math.min(...all); return f.best && all.some((v) => v !== b) ? b : null; };
  const tenants = [...new Set(list.flatMap((p) => p.tenants.map((x) => x.name)))];
  const most = Math.max(1, ...list.map((p) => p.meanWaitSeconds));
  return (
    <div class="body">
      <section class="card"><header><h2>{t('Policies side by side')}</h2><span class="note">{t('the best of each row is marked')}</span></header><div class="table"><table class="rows sim-compare">
        <thead><tr><th scope="col">{t('Figure')}</th>{list.map((p) => <th scope="col" key={p.policy} class="num">{p.policy}</th>)}</tr></thead>
        <tbody>{FIGURES.map((f) => { const best = bestOf(f); return <tr key={f.key} data-figure={f.key}><th scope="row">{f.word()}</th>{list.map((p) => <td key={p.policy} class={`num ${best !== null && value(p, f) === best ? 'best' : ''}`} data-policy={p.policy} data-value={value(p, f)} title={String(value(p, f))}>{f.show(value(p, f))}</td>)}</tr>; })}</tbody>
      </table></div></section>
      <section class="card"><header><h2>{t('Mean wait')}</h2></header><div class="in"><ul class="sim-bars">{list.map((p) => <li key={p.policy}><span class="strong">{p.policy}</span><span class="bar"><i style={{ width: `${(100 * p.meanWaitSeconds) / most}%` }} /></span><span class="num">{seconds(p.meanWaitSeconds)}</span></li>)}</ul></div></section>
      {tenants.length > 1 ? <section class="card"><header><h2>{t('Tenants')}</h2><span class="note">{t('mean wait, GPU hours')}</span></header><div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th>{list.map((p) => <th key={p.policy} class="num">{p.policy}</th>)}</tr></thead><tbody>{tenants.map((name) => <tr key={name}><td class="name"><Swatch of={name} /> {name}</td>{list.map((p) => { const x = p.tenants.find((y) => y.name === name); return <td key={p.policy} class="num">{x ? <>{seconds(x.meanWaitSeconds)} <span class="faint">{num(Math.round(x.gpuHours * 10) / 10)} h</span></> : '–'}</td>; })}</tr>)}</tbody></table></div></section> : null}
    </div>
  );
}
