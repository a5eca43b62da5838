/** The story of a gang: a bar an attempt, thin lanes for tasks, evictions, and what is foretold right of now. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { clock, exact, num, span, tickWord } from '../format';
import type { Segment, SegmentKind, Timeline } from '../shapes/job';
import { A } from '../state/route';
import { jobHref } from '../state/url';
import { useBoxWidth } from './box';
import { t } from '../text';

export const segmentWord = (kind: SegmentKind): string =>
  ({ queued: t('queued'), reserved: t('reserved'), 'making-room': t('making room'), starting: t('starting'), running: t('running'), suspended: t('suspended'), forecast: t('forecast') })[kind];

/** Hatches for SVG pictures; ids are shared by all of a page. */
export const Hatches = (): JSX.Element => (
  <defs>
    {(['reserved', 'forecast'] as const).map((kind) => (
      <pattern key={kind} id={`hatch-${kind}`} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="5" height="5" class="hatch-ground" /><line x1="0" y1="0" x2="0" y2="5" class={`hatch-${kind}`} />
      </pattern>
    ))}
  </defs>
);

/** Whole hours (or days) that make about n ticks. */
export function ticks(from: number, to: number, n: number): number[] {
  const steps = [300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800].map((s) => s * 1000);
  const step = steps.find((s) => (to - from) / s <= n) ?? steps.at(-1)!;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const out: number[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) out.push(at);
  return out;
}

export function TimelineChart({ data }: { data: Timeline }): JSX.Element {
  const [asList, setList] = useState(false);
  const kinds = [...new Set(data.attempts.flatMap((a) => a.segments.map((s) => s.kind)))];
  return (
    <>
      <div class="legend" style={{ marginBottom: '6px' }}>
        {kinds.map((k) => <span key={k}><svg width="16" height="9" aria-hidden="true"><Hatches /><rect class={`seg-${k}`} x=".5" y=".5" width="15" height="8" rx="2" /></svg>{segmentWord(k)}</span>)}
        <button class="link" style={{ marginLeft: 'auto' }} onClick={() => setList(!asList)}>{asList ? t('As picture') : t('As list')}</button>
      </div>
      {asList ? <List data={data} /> : <Picture data={data} />}
    </>
  );
}

function bounds(data: Timeline): [number, number] {
  const all = data.attempts.flatMap((a) => a.segments);
  const from = Math.min(data.now - 60_000, ...all.map((s) => s.from), ...data.marks.map((m) => m.at));
  const to = Math.max(data.now, ...all.map((s) => s.to ?? data.now));
  const room = Math.max((to - from) * 0.04, 30_000);
  return [from - room / 2, to + room];
}

function Picture({ data }: { data: Timeline }): JSX.Element {
  const [from, to] = bounds(data);
  const [box, W] = useBoxWidth<HTMLDivElement>(1000);
  const LEFT = W < 600 ? 76 : 144;
  const x = (at: number): number => LEFT + ((W - LEFT - 8) * (at - from)) / (to - from);
  let y = 24;
  const parts: JSX.Element[] = [];
  for (const a of data.attempts) {
    const top = y;
    const lanes = a.tasks.slice(0, 16);
    parts.push(<Attempt key={a.n} attempt={a} x={x} top={top} now={data.now} lanes={lanes} />);
    y = top + 26 + lanes.length * 5 + (a.tasksTotal > lanes.length && lanes.length ? 12 : 0) + 12;
  }
  const bottom = y + 2;
  return (
    <div ref={box}><svg class="tl" width={W} height={bottom + 24} viewBox={`0 0 ${W} ${bottom + 24}`} role="img" aria-label={t('Timeline of attempts')}>
      <Hatches />
      {ticks(from, to, Math.max(2, Math.floor((W - LEFT) / 90))).filter((at) => x(at) < W - 16).map((at, i) => <g key={at}><line class="grid-line" x1={x(at)} x2={x(at)} y1="16" y2={bottom} /><text x={x(at)} y="11" text-anchor="middle">{tickWord(at, i, data.now)}</text></g>)}
      {parts}
      {data.marks.filter((m) => m.kind === 'evicted').map((m) => (
        <g key={m.at}><line class="evicted" x1={x(m.at)} x2={x(m.at)} y1="18" y2={bottom} /><text class="evicted-text" x={x(m.at) - 5} y={bottom + 12} text-anchor="end">{t('evicted {time}', { time: clock(m.at, data.now) })}{m.by ? ` ${t('by {job}', { job: m.by })}` : ''}</text></g>
      ))}
      <line class="now" x1={x(data.now)} x2={x(data.now)} y1="16" y2={bottom + 6} />
      <g transform={`translate(${Math.min(W - 42, Math.max(LEFT + 40, x(data.now)))} ${bottom + 12})`}><rect class="nowpill" x="-38" y="-9" width="76" height="18" rx="9" /><text class="nowtext" y="4" text-anchor="middle">{t('now {time}', { time: clock(data.now, data.now) })}</text></g>
    </svg></div>
  );
}

function Attempt({ attempt: a, x, top, now, lanes }: { attempt: Timeline['attempts'][number]; x: (at: number) => number; top: number; now: number; lanes: { id: string; segments: Segment[] }[] }): JSX.Element {
  const running = a.segments.find((s) => s.kind === 'running');
  const last = a.segments.filter((s) => s.kind !== 'forecast').at(-1);
  return (
    <g>
      <text class="label" x="0" y={top + 12}>{t('Attempt {n}', { n: a.n + 1 })}</text>
      <text x="0" y={top + 26}>{running ? t('ran {span}', { span: span((running.to ?? now) - running.from) }) : last ? `${segmentWord(last.kind)} ${span((last.to ?? now) - last.from)}` : ''}</text>
      {a.segments.map((s, i) => {
        const left = x(s.from);
        const width = Math.max(2, x(s.to ?? now) - left);
        return (
          <g key={i}>
            <rect class={`seg-${s.kind}`} x={left} y={top} width={width} height="16" rx="2"><title>{`${segmentWord(s.kind)} ${exact(s.from)} – ${s.to ? exact(s.to) : t('now')}${s.text ? `\n${s.text}` : ''}`}</title></rect>
            {s.kind === 'running' && width > 90 ? <text class="in-bar" x={left + 6} y={top + 12}>{t('running {span}', { span: span((s.to ?? now) - s.from) })}</text> : null}
          </g>
        );
      })}
      {lanes.map((task, i) => task.segments.map((s, k) => <rect key={`${i}.${k}`} class={`lane seg-${s.kind}`} x={x(s.from)} y={top + 20 + i * 5} width={Math.max(1, x(s.to ?? now) - x(s.from))} height="3" rx="1.5"><title>{`${task.id} ${segmentWord(s.kind)}`}</title></rect>))}
      {lanes.length && a.tasksTotal > lanes.length ? <text x={x(lanes[0]!.segments[0]?.from ?? now)} y={top + 30 + lanes.length * 5}>{t('and {n} more', { n: num(a.tasksTotal - lanes.length) })}</text> : null}
    </g>
  );
}

function List({ data }: { data: Timeline }): JSX.Element {
  const lines = [
    ...data.attempts.flatMap((a) => a.segments.map((s) => ({ at: s.from, what: segmentWord(s.kind), text: s.text, to: s.to as number | null, n: (a.n + 1) as number | null, by: null as string | null }))),
    ...data.marks.map((m) => ({ at: m.at, what: m.kind as string, text: m.text, to: null, n: null, by: m.by })),
  ].sort((a, b) => a.at - b.at);
  return (
    <table class="tight names">
      <thead><tr><th>{t('Time')}</th><th>{t('Attempt')}</th><th>{t('What')}</th><th>{t('Detail')}</th><th class="num">{t('For')}</th></tr></thead>
      <tbody>{lines.map((l, i) => <tr key={i}><td title={exact(l.at)}>{clock(l.at, data.now, true)}</td><td>{l.n ?? ''}</td><td class="strong">{l.what}</td><td class="soft">{l.text}{l.by ? <> <A class="link" href={jobHref(l.by)}>{l.by}</A></> : null}</td><td class="num">{l.to ? span(l.to - l.at) : ''}</td></tr>)}</tbody>
    </table>
  );
}
