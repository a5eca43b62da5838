/** What would happen if: a list of changes, played on a copy. Every list is in the address. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, search } from '../../api';
import { clock, num, save, span, tickWord } from '../../format';
import { serverNow } from '../../live/socket';
import { useBoxWidth } from '../../parts/box';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Choice, Empty } from '../../parts/small';
import { ticks } from '../../parts/timeline';
import type { Suggest, Whatif, WhatifChange, WhatifTimes } from '../../shapes/calls';
import { A, goQuery, param, query } from '../../state/route';
import { has } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';
import { askWhatif } from './ask';
import { KINDS, readChanges, spoken, words, type Field } from './changes';

const HORIZONS = [['6h', '6 h'], ['24h', '24 h'], ['168h', '7 d']] as const;
export default function WhatifPage(): JSX.Element {
  const [answer, set] = useState<Whatif | null>(null);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const changes = readChanges(param('s'));
  const horizon = (param('horizon') || '24h') as (typeof HORIZONS)[number][0];
  const put = (next: WhatifChange[]): void => goQuery(withQuery(query.value, { s: next.length ? JSON.stringify(next) : null }));
  const ask = (signal?: AbortSignal): void => {
    if (!changes.length || !has('whatif')) { set(null); setWrong(''); return; }
    setBusy(true);
    askWhatif(changes, horizon, signal).then((a) => { set(a); setWrong(''); }, (e: unknown) => { if ((e as Error).name !== 'AbortError') { setWrong(said(e)); set(null); } }).finally(() => setBusy(false));
  };
  useEffect(() => { document.title = `${t('What-if')} · Muster`; }, []);
  useEffect(() => { const stop = new AbortController(); ask(stop.signal); return () => stop.abort(); }, [param('s'), horizon]);
  if (!has('whatif')) return <><div class="head"><h1 tabIndex={-1}>{t('What-if')}</h1></div><Empty title={t('This server does not answer what-if questions yet')} text={t('On the command line, muster sim replays a trace with other nodes, queues and policies.')} /></>;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('What-if')}</h1><span class="sub">{t('tried on a copy; nothing is changed')}</span>
        {changes.length ? <span class="acts"><button class="button" onClick={() => save('scenario.json', 'application/json', JSON.stringify(changes, null, 2))}><Icon name="download" />{t('Save as scenario')}</button><button class="button" onClick={() => ask()}>{t('Run again')}</button></span> : null}</div>
      <div class="body">
        <section class="card"><header><h2>{t('Changes')}</h2><span class="note">{t('all of them together')}</span><span class="end"><Choice name={t('Look ahead')} of={HORIZONS} value={horizon} set={(v) => goQuery(withQuery(query.value, { horizon: v }), true)} /></span></header><div class="in">
          {changes.length ? <ul class="alts">{changes.map((c, i) => { const w = words(c); return <li key={i}><div><span class="strong">{w.title}</span> <span class="mono soft">{w.text}</span></div><button class="button small" aria-label={`${t('Remove')}: ${w.title} ${w.text}`} onClick={() => put(changes.filter((_, k) => k !== i))}>{t('Remove')}</button></li>; })}</ul> : null}
          <Add add={(c) => put([...changes, c])} /></div></section>
        {wrong ? <section class="decision toned-FAILED" role="alert"><h2>{t('Refused')}</h2><p>{wrong}</p></section> : null}
        {answer ? <Result answer={answer} busy={busy} /> : wrong ? null : changes.length ? <p class="faint" role="status">{t('Being tried…')}</p> : <Empty title={t('No change yet')} text={t('Add one: nodes that come or go, jobs that stop, a queue with other numbers.')} />}
      </div>
    </>
  );
}

function Add({ add }: { add: (c: WhatifChange) => void }): JSX.Element {
  const [key, setKey] = useState('addNodes');
  const kind = KINDS.find((k) => k.key === key)!;
  const [wrong, setWrong] = useState('');
  return (
    <form class="form whatif-add" onSubmit={(e) => {
      e.preventDefault();
      const form = e.currentTarget;
      const data = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]));
      void Promise.resolve(kind.make(data)).then((made) => { setWrong(''); add({ [key]: made, ...(data['at'] ? { at: data['at'] } : {}) }); form.reset(); }, (e: unknown) => setWrong(said(e)));
    }}>
      <label>{t('Change')}<select class="field" name="kind" value={key} onChange={(e) => setKey(e.currentTarget.value)}>{KINDS.map((k) => <option key={k.key} value={k.key}>{k.word()}</option>)}</select></label>
      {kind.fields.map((f) => <AddField key={`${key}.${f.name}`} of={f} />)}
      <label>{t('When, from now')}<input class="field" name="at" placeholder={t('now')} pattern="[0-9.]+(s|m|h)" title="2h, 30m" /></label>
      <button class="button">{t('Add change')}</button>
      {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
    </form>
  );
}
function AddField({ of: f }: { of: Field }): JSX.Element {
  const [known, set] = useState<string[]>([]);
  const look = (): void => { if (f.suggest && !known.length) get<Suggest>(`/suggest${search({ field: f.suggest })}`).then((s) => set(s.values.map((v) => v.value)), () => {}); };
  if (f.kind === 'long') return <label class="long">{f.word()}<textarea class="field mono" name={f.name} required={!f.optional} rows={6} placeholder={f.hint} spellcheck={false} /></label>;
  return (
    <label>{f.word()}<input class="field" name={f.name} type={f.kind === 'number' ? 'number' : 'text'} min={f.kind === 'number' ? 1 : undefined} required={!f.optional} placeholder={f.hint} list={f.suggest ? `known-${f.name}` : undefined} onFocus={look} autocomplete="off" />
      {f.suggest ? <datalist id={`known-${f.name}`}>{known.map((v) => <option key={v} value={v} />)}</datalist> : null}</label>
  );
}

function Result({ answer: a, busy }: { answer: Whatif; busy: boolean }): JSX.Element {
  const now = serverNow();
  const moved = a.jobs.filter((j) => !j.evicted || j.before.start !== null || j.after.start !== null);
  const evicted = a.jobs.filter((j) => j.evicted);
  const used = a.queues.some((q) => q.gpusBefore || q.gpusAfter);
  return (
    <>
      <section class={`card ${busy ? 'asking' : ''}`} data-rv={a.rv}><header><h2>{t('Result')}</h2><span class="note end">{t('{n} simulated courses, {span} ahead', { n: num(a.draws), span: span(a.horizon) })}</span></header><div class="in"><p class="say" role="status">{spoken(a.text)}</p>
        {a.warnings.map((w) => <p key={w} class="WAITING">{w}</p>)}{a.cut ? <p class="WAITING">{a.cut}</p> : null}
        {evicted.length ? <><h3 class="sub-title">{evicted.length === 1 ? t('1 job is evicted') : t('{n} jobs are evicted', { n: num(evicted.length) })}</h3><p class="names">{evicted.map((j, i) => <>{i ? ', ' : ''}{j.id ? <A class="strong" href={jobHref(j.id)}>{j.name}</A> : j.name}{j.user ? <span class="faint"> {j.user}</span> : null}</>)}</p></> : null}</div></section>
      {moved.length ? <section class="card"><header><h2>{t('Starts')}</h2><span class="legend end"><span><i class="key-before" />{t('as it is')}</span><span><i class="key-after" />{t('with the changes')}</span></span></header><Starts jobs={moved.slice(0, 100)} now={now} horizon={a.horizon} />{moved.length > 100 ? <p class="in faint">{t('and {n} more', { n: num(moved.length - 100) })}</p> : null}</section> : null}
      {a.queues.length ? <section class="card"><header><h2>{t('Queues')}</h2></header><div class="table"><table class="rows"><thead><tr><th>{t('Queue')}</th><th class="num">{t('Mean wait now')}</th><th class="num">{t('then')}</th>{used ? <><th class="num">{t('Mean GPUs in use now')}</th><th class="num">{t('then')}</th></> : null}</tr></thead><tbody>{a.queues.map((q) => <tr key={q.queue}><td class="name"><A href={`/queues/${q.queue}`}>{q.queue}</A></td><td class="num">{span(q.waitBefore * 1000)}</td><td class={`num ${q.waitAfter < q.waitBefore ? 'RUNNING' : q.waitAfter > q.waitBefore ? 'WAITING' : ''}`}>{span(q.waitAfter * 1000)}</td>{used ? <><td class="num">{num(Math.round(q.gpusBefore * 10) / 10)}</td><td class="num">{num(Math.round(q.gpusAfter * 10) / 10)}</td></> : null}</tr>)}</tbody></table></div></section> : null}
    </>
  );
}

/** Both worlds on one axis: above as it is, below with the changes. */
function Starts({ jobs, now, horizon }: { jobs: Whatif['jobs']; now: number; horizon: number }): JSX.Element {
  const latest = Math.max(now + 3_600_000, ...jobs.flatMap((j) => [j.before.high ?? j.before.start ?? 0, j.after.high ?? j.after.start ?? 0]));
  const end = Math.min(now + horizon, latest) + 600_000;
  return (
    <div class="table"><table class="rows whatif-starts">
      <thead><tr><th>{t('Job')}</th><th class="less">{t('User')}</th><th class="num">{t('Start now')}</th><th class="num">{t('Start then')}</th><th class="num less">{t('Difference')}</th><th class="axis less"><Axis now={now} end={end} /></th></tr></thead>
      <tbody>{jobs.map((j, i) => (
        <tr key={j.id ?? i}><td class="name">{j.id ? <A href={jobHref(j.id)}>{j.name}</A> : j.name}{j.evicted ? <span class="STOPPING"> {t('evicted')}</span> : null}</td><td class="less">{j.user}</td>
          <td class="num">{j.before.start ? clock(j.before.start, now) : '–'}</td><td class="num strong">{j.after.start ? clock(j.after.start, now) : '–'}</td><td class="num less"><Difference job={j} /></td>
          <td class="axis less"><Pair job={j} now={now} end={end} /></td></tr>
      ))}</tbody>
    </table></div>
  );
}
function Difference({ job: j }: { job: Whatif['jobs'][number] }): JSX.Element {
  if (j.before.start === null && j.after.start === null) return <span class="faint">–</span>;
  if (j.after.start === null) return <span class="WAITING">{t('not within that time')}</span>;
  if (j.before.start === null) return <span class="RUNNING">{t('starts only then')}</span>;
  const d = j.after.start - j.before.start;
  return <span class={d < 0 ? 'RUNNING' : 'WAITING'}>{d < 0 ? t('{span} earlier', { span: span(-d) }) : t('{span} later', { span: span(d) })}</span>;
}
function Axis({ now, end }: { now: number; end: number }): JSX.Element {
  const [box, W] = useBoxWidth<HTMLDivElement>(320);
  const x = (at: number): number => ((W - 8) * (at - now)) / (end - now) + 2;
  return <div ref={box}><svg class="tl" width={W} height="18" aria-hidden="true">{ticks(now, end, Math.max(2, Math.floor(W / 80))).filter((at) => x(at) > 20 && x(at) < W - 20).map((at, i) => <text key={at} x={x(at)} y="12" text-anchor="middle">{tickWord(at, i, now)}</text>)}</svg></div>;
}
function Pair({ job, now, end }: { job: Whatif['jobs'][number]; now: number; end: number }): JSX.Element {
  const [box, W] = useBoxWidth<HTMLDivElement>(320);
  const x = (at: number): number => 2 + ((W - 8) * (Math.min(end, Math.max(now, at)) - now)) / (end - now);
  const bar = (times: WhatifTimes, y: number, cls: string): JSX.Element | null => times.start === null ? null : (
    <g class={cls}><rect class="range" x={x(times.low ?? times.start)} y={y} width={Math.max(3, x(times.high ?? times.start) - x(times.low ?? times.start))} height="7" rx="3.5" /><line class="mid" x1={x(times.start)} x2={x(times.start)} y1={y - 1} y2={y + 8} /></g>
  );
  const text = `${t('as it is')}: ${clock(job.before.start, now)}; ${t('with the changes')}: ${clock(job.after.start, now)}`;
  return <div ref={box}><svg class="tl" width={W} height="24" role="img" aria-label={text}><line class="now" x1="2" x2="2" y1="0" y2="24" />{bar(job.before, 3, 'was')}{bar(job.after, 14, 'then')}</svg></div>;
}
