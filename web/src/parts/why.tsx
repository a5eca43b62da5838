/** Why a job waits: sentence, numbers, nodes; when it starts; what would start now. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, jobPath } from '../api';
import { bytes, clock, gpus, num, prio, span, tickWord } from '../format';
import { serverNow } from '../live/socket';
import type { Alternative, Wait, WaitNodes } from '../shapes/job';
import { A, go } from '../state/route';
import { has } from '../state/session';
import { jobHref } from '../state/url';
import { t } from '../text';
import { closeDialog, said, showDialog } from './dialog';
import { useBoxWidth } from './box';
import { Icon } from './icon';

const resourceWord = (name: string): string =>
  name === 'nvidia.com/gpu' ? t('GPUs') : name === 'cpu' ? t('CPU cores') : name === 'memory' ? t('Memory') : name === 'pods' ? t('Pods') : name;
const amount = (name: string, n: number): string => (name === 'memory' || name.includes('storage') ? bytes(n) : name === 'cpu' ? num(n / 1000) : num(n));

/** Of a gang or pod "kind:namespace/name". */
const shortName = (key: string): string => key.replace(/^.*[:/]/, '');

/** The reason in plain words where its numbers allow it; null: the engine's own words are best. */
export function plainReason(wait: Wait): string | null {
  const s = wait.shortages.find((x) => x.wanted > x.available) ?? wait.shortages[0];
  const values = s ? { wanted: amount(s.resource, s.wanted), resource: resourceWord(s.resource), available: amount(s.resource, s.available), limit: amount(s.resource, s.limit), queue: wait.queue } : null;
  switch (wait.reason) {
    case 'NoNodeFits': return values && !s!.limit ? t('Needs {wanted} {resource} on one node; most free on one is {available}.', values) : null;
    case 'NeverFits': return values ? t('Can never run here: a task wants {wanted} {resource}, the largest node has {available}.', values) : null;
    case 'TenantOverLimit': return values ? t('{queue} is at its limit: wants {wanted} {resource}, {available} are left of {limit}.', values) : null;
    case 'GuaranteedToOthers': return values ? t('What is free is guaranteed to others: {queue} wants {wanted} {resource}, {available} are left for it.', values) : null;
    case 'BehindOthers': return wait.ahead ? t('{n} ahead of it in a queue that keeps its order.', { n: num(wait.ahead) }) : null;
    case 'WaitingForVictims': return t('Room is being made: evictions are under way, and its place is held.');
    case 'HeldForReservation': return wait.subject ? t('Room is free but held for {name}.', { name: shortName(wait.subject) }) : null;
    default: return null;
  }
}

/** What has its nodes and does not come to run there. */
export const stuck = (wait: Wait): boolean => wait.reason === 'Starting';

/** The engine's words with times as people say them. */
const inOurTime = (text: string): string => text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => clock(Date.parse(at), serverNow())).replaceAll('nvidia.com/gpu', t('GPUs'));

export function Sentence({ wait }: { wait: Wait }): JSX.Element {
  const plain = plainReason(wait);
  const text = inOurTime(wait.text);
  const advice = stuck(wait) && /ErrImage|ImagePull|InvalidImageName/.test(wait.text) ? t('Check the name and the tag of the image, and that this cluster may pull it.') : null;
  return <><p class="say">{plain ?? `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`}</p>{plain ? <p class="faint engine-words">{wait.start ? wait.text.replace(/; expected to start at \S+/, '') : wait.text}</p> : null}{advice ? <p class="soft" style={{ marginTop: '6px' }}>{advice}</p> : null}</>;
}

export function Shortages({ wait }: { wait: Wait }): JSX.Element | null {
  if (!wait.shortages.length) return null;
  return (
    <table class="tight" style={{ marginTop: '10px' }}>
      <thead><tr><th scope="col">{t('Place')}</th><th scope="col" class="num">{t('Needs')}</th><th scope="col" class="num">{t('Free')}</th><th scope="col" class="num">{t('Short')}</th></tr></thead>
      <tbody>
        {wait.shortages.map((s) => (
          <tr key={s.resource}>
            <td>{resourceWord(s.resource)}{s.limit ? <span class="faint"> {t('limit {n}', { n: amount(s.resource, s.limit) })}</span> : null}</td>
            <td class="num">{amount(s.resource, s.wanted)}</td>
            <td class="num">{amount(s.resource, s.available)}</td>
            <td class="num short">{s.wanted > s.available ? amount(s.resource, s.wanted - s.available) : '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Which nodes a cause means, in a dialog. */
function showNodes(id: string, cause: string, count: number): void {
  const Body = (): JSX.Element => {
    const [got, set] = useState<WaitNodes | null>(null);
    const [wrong, setWrong] = useState('');
    const [asked, ask] = useState(false);
    if (!asked) {
      ask(true);
      get<WaitNodes>(`${jobPath(id)}/wait/nodes?cause=${encodeURIComponent(cause)}&limit=500`).then(set, (e: unknown) => setWrong(said(e)));
    }
    return (
      <>
        <h2>{t('{n} nodes: {cause}', { n: num(got?.total ?? count), cause })}</h2>
        {wrong ? <p class="bad">{wrong}</p> : null}
        <table class="tight names"><tbody>{got?.rows.map((r) => <tr key={r.node}><td class="mono"><A href={`/nodes/${r.node}`} onClick={closeDialog}>{r.node}</A></td><td class="faint">{r.text}</td></tr>)}</tbody></table>
        {got && got.total > got.rows.length ? <p class="faint">{t('and {n} more', { n: num(got.total - got.rows.length) })}</p> : null}
        <div class="foot"><button class="button" data-first onClick={closeDialog}>{t('Close')}</button></div>
      </>
    );
  };
  showDialog(cause, () => <Body />);
}

export function Causes({ id, wait }: { id: string; wait: Wait }): JSX.Element | null {
  if (!wait.byCause.length) return null;
  const total = Math.max(wait.nodesTotal, wait.byCause.reduce((n, c) => n + c.nodes, 0), 1);
  return (
    <>
      <div class="causebar" role="img" aria-label={wait.byCause.map((c) => `${c.nodes} ${c.cause}`).join(', ')}>
        {wait.byCause.map((c) => <i key={c.cause} class={`by-${c.kind}`} style={{ width: `${(100 * c.nodes) / total}%` }} />)}
      </div>
      <ul class="causes">
        {wait.byCause.map((c) => (
          <li key={c.cause}>
            <button type="button" onClick={() => showNodes(id, c.cause, c.nodes)}>
              <i class={`by-${c.kind}`} aria-hidden="true" /><span class="n">{num(c.nodes)}</span><span class="cut">{c.cause}</span><Icon name="right" />
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function AheadList({ wait }: { wait: Wait }): JSX.Element | null {
  if (!wait.aheadFirst.length && (wait.place === null || wait.of === null)) return null;
  // Several pods of one job are one job that is ahead.
  const ahead = wait.aheadFirst.filter((a, i, all) => !a.id || all.findIndex((b) => b.id === a.id) === i);
  return (
    <>
      <h3 class="sub-title">{wait.of !== null && wait.place !== null ? t('Place {k} of {n}{queue}', { k: num(wait.place), n: num(wait.of), queue: wait.queue ? ` ${t('in {queue}', { queue: wait.queue })}` : '' }) : t('{n} ahead', { n: num(wait.ahead) })}</h3>
      {wait.aheadFirst.length ? (
        <table class="tight names">
          <tbody>
            {ahead.map((a, i) => (
              <tr key={i}>
                <td class="faint" style={{ width: '18px' }}>{i + 1}</td>
                <td class="strong">{a.id ? <A href={jobHref(a.id)}>{a.name}</A> : a.name || t('another job')}</td>
                <td class="soft">{a.user}</td>
                <td class="soft prio">{prio(a.prio)}</td>
                <td class="num">{gpus(a.gpus)}</td>
                <td class="num soft">{a.start ? `~${clock(a.start, serverNow())}` : ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

export function Holds({ wait }: { wait: Wait }): JSX.Element | null {
  if (!wait.preemption && !(wait.subject && wait.until)) return null;
  return (
    <p class="faint" style={{ marginTop: '8px' }}>
      {wait.subject && wait.until ? <>{wait.subjectId ? <A class="link" href={jobHref(wait.subjectId)}>{shortName(wait.subject)}</A> : shortName(wait.subject)} {t('until {time}', { time: clock(wait.until, serverNow()) })}. </> : null}
      {wait.preemption}
    </p>
  );
}

/** The answer in large, then range and basis; with no basis a sentence and no chart. */
export function ExpectedStart({ wait, name }: { wait: Wait; name?: string }): JSX.Element {
  const now = serverNow();
  if (wait.start === null || wait.basis === 'none') {
    return (
      <>
        <p class="say">{wait.reason === 'NeverFits' ? t('No estimate: it can never start as it is') : wait.basisText ? t('No estimate: it starts beyond the time looked ahead') : t('No estimate: durations unknown')}</p>
        {wait.until && wait.until > now ? <p class="faint">{t('Not before {time}', { time: clock(wait.until, now) })}</p> : null}
      </>
    );
  }
  return (
    <>
      <p><span class="answer">{t('about {time}', { time: clock(Math.max(wait.start, now), now) })}</span>{' '}
        <span class="soft">{wait.start > now ? t('in {span}', { span: span(wait.start - now) }) : t('overdue')}{wait.startLow && wait.startHigh ? <>, {t('8 in 10 between {low} and {high}', { low: clock(wait.startLow, now), high: clock(wait.startHigh, now) })}</> : null}</span></p>
      <StartAxis wait={wait} now={now} name={name ?? ''} />
      <WaitsFor wait={wait} now={now} />
      <p class="faint">{wait.basis === 'known' ? t('From the run times that were declared.') : wait.basisText ? `${wait.basisText.charAt(0).toUpperCase()}${wait.basisText.slice(1)}.` : t('Learned from runs like those it waits for.')}</p>
    </>
  );
}

/** Whose end it waits for, with when that is expected. */
function WaitsFor({ wait, now }: { wait: Wait; now: number }): JSX.Element | null {
  if (!wait.waitsFor?.length) return null;
  return (
    <>
      <h3 class="sub-title">{t('Waits for the end of')}</h3>
      <table class="tight names"><tbody>{wait.waitsFor.map((w, i) => (
        <tr key={i}><td class="strong">{w.id ? <A href={jobHref(w.id)}>{w.name}</A> : w.name}</td><td class="soft">{w.user}</td><td class="num">{w.gpus ? gpus(w.gpus) : ''}</td><td class="num soft" title={w.endLow && w.endHigh ? t('8 in 10: {low} – {high}', { low: clock(w.endLow, now), high: clock(w.endHigh, now) }) : ''}>{w.end ? `~${clock(Math.max(w.end, now), now)}` : t('end not known')}</td></tr>
      ))}</tbody></table>
    </>
  );
}

function StartAxis({ wait, now, name }: { wait: Wait; now: number; name: string }): JSX.Element {
  const end = Math.max(wait.startHigh ?? wait.start!, now + 3_600_000) + 1_200_000;
  const [box, W] = useBoxWidth<HTMLDivElement>(340);
  const left = name && W > 420 ? 116 : 44;
  const x = (at: number): number => left + ((W - left - 8) * (Math.max(at, now) - now)) / (end - now);
  const step = [1, 2, 3, 6, 12, 24, 48].find((h) => (end - now) / (h * 3_600_000) <= W / 70) ?? 96;
  const ticks: number[] = [];
  const first = new Date(now);
  first.setMinutes(0, 0, 0);
  for (let at = first.getTime() + 3_600_000; at < end; at += 3_600_000) if (new Date(at).getHours() % Math.min(step, 24) === 0 && x(at) > left + 40) ticks.push(at);
  const low = x(wait.startLow ?? wait.start!);
  const high = x(wait.startHigh ?? wait.start!);
  return (
    <div ref={box}><svg class="tl" width={W} height="64" viewBox={`0 0 ${W} 64`} role="img" aria-label={t('8 in 10: {low} – {high}', { low: clock(wait.startLow ?? wait.start, now), high: clock(wait.startHigh ?? wait.start, now) })} style={{ margin: '6px 0' }}>
      {ticks.map((at, i) => <g key={at}><line class="grid-line" x1={x(at)} x2={x(at)} y1="16" y2="62" /><text x={x(at)} y="11" text-anchor="middle">{tickWord(at, i, now)}</text></g>)}
      <text x="0" y="38" class="label">{left > 100 ? (name.length > 14 ? `${name.slice(0, 13)}…` : name) : t('Start')}</text>
      <line class="now" x1={left} x2={left} y1="14" y2="62" /><text x={left} y="11" text-anchor="middle" class="axis-now">{t('now')}</text>
      <rect class="range" x={low} y="26" width={Math.max(4, high - low)} height="16" rx="8" />
      <line class="mid" x1={x(wait.start!)} x2={x(wait.start!)} y1="25" y2="43" />
      {high - low > 70 ? <><text x={low} y="57" text-anchor="start">{clock(wait.startLow, now)}</text><text x={high} y="57" text-anchor="end">{clock(wait.startHigh, now)}</text></> : null}
    </svg></div>
  );
}

/** What would start it now; asked for when the reason changes, since each was tried on a copy. */
export function useAlternatives(id: string, wait: Wait | null): Alternative[] {
  const [list, set] = useState<Alternative[]>([]);
  useEffect(() => {
    if (!wait || !has('forecast')) { set([]); return; }
    const stop = new AbortController();
    get<Alternative[]>(`${jobPath(id)}/wait/alternatives`, stop.signal).then(set, () => {});
    return () => stop.abort();
  }, [id, wait?.reason, wait?.place]);
  return wait ? list : [];
}
/** A few of many names. */
const some = (names: string[]): string => (names.length > 3 ? `${names.slice(0, 3).join(', ')} ${t('and {n} more', { n: num(names.length - 3) })}` : names.join(', '));
export function Alternatives({ list, id }: { list: Alternative[]; id: string }): JSX.Element | null {
  if (!list.length) return null;
  return (
    <ul class="alts">
      {list.slice(0, 5).map((a) => (
        <li key={a.change}>
          <div><div class="strong">{a.change.charAt(0).toUpperCase() + a.change.slice(1)}</div><div class="faint"><span class="mono">{a.text}</span> {a.victims?.length ? t('evicts {names}', { names: some(a.victims) }) : a.start ? t('starts about {time}', { time: clock(a.start, serverNow()) }) : ''}</div></div>
          {a.yaml ? <button class="button small" aria-label={`${t('Use this')}: ${a.change}`} onClick={() => { sessionStorage.setItem('draft', a.yaml!); go(`/submit?clone=${encodeURIComponent(id)}&draft=1`); }}>{t('Use this')}</button> : null}
        </li>
      ))}
    </ul>
  );
}
