/** Nodes, tenants or jobs against time: past from records, future as it is foretold. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { clock, exact, jobs as countJobs, num, save, slot, span, tickWord } from '../../format';
import { serverNow } from '../../live/socket';
import { useValue } from '../../live/use';
import { useBoxWidth } from '../../parts/box';
import { Icon } from '../../parts/icon';
import { Choice, Empty, Skeleton, Wrong } from '../../parts/small';
import { Hatches, segmentWord, ticks } from '../../parts/timeline';
import type { Gantt, GanttBar } from '../../shapes/gantt';
import { go, goQuery, param, query } from '../../state/route';
import { colour } from '../../state/theme';
import { jobHref, withQuery } from '../../state/url';
import { minute } from '../../state/ticker';
import { t } from '../../text';

const HOUR = 3_600_000;
const SPANS: [string, number][] = [['1', HOUR], ['6', 6 * HOUR], ['24', 24 * HOUR], ['168', 168 * HOUR]];

export default function TimelinePage(): JSX.Element {
  void minute.value;
  const jobs = param('jobs').split(',').filter(Boolean);
  const by = (param('by') || (jobs.length ? 'job' : 'node')) as 'node' | 'vc' | 'job';
  const hours = Number(param('span')) || 6;
  const now = Math.floor(serverNow() / 60_000) * 60_000;
  const from = Number(param('from')) || now - hours * HOUR * 0.75;
  const to = Number(param('to')) || now + hours * HOUR * 0.25;
  const live = useValue<Gantt>('gantt', { by, limit: 200, ...(jobs.length ? { jobs } : {}), ...(jobs.length && !param('from') ? {} : { from: Math.round(from), to: Math.round(to) }) });
  const svg = useRef<SVGSVGElement>(null);
  useEffect(() => { document.title = `${t('Timeline')} · Muster`; }, []);
  const data = live.value.value;
  const move = (step: number): void => goQuery(withQuery(query.value, { from: String(Math.round(from + step * (to - from))), to: String(Math.round(to + step * (to - from))) }), true);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Timeline')}</h1><span class="sub">{jobs.length ? countJobs(jobs.length) : data ? `${clock(data.from, now)} – ${clock(data.to, now)}` : ''}</span>
        <span class="acts"><button class="button" onClick={() => move(-0.5)} aria-label={t('Earlier')}><Icon name="left" /></button><button class="button" onClick={() => goQuery(withQuery(query.value, { from: null, to: null }))}>{t('now')}</button><button class="button" onClick={() => move(0.5)} aria-label={t('Later')}><Icon name="right" /></button><button class="button" onClick={() => exportSvg(svg.current)}><Icon name="download" />SVG</button></span></div>
      <div class="filters">
        <Choice name={t('Rows')} of={[['node', t('Nodes')], ['vc', t('VC / queue')], ['job', t('Jobs')]] as const} value={by} set={(v) => goQuery(withQuery(query.value, { by: v }))} />
        <Choice name={t('Span')} of={SPANS.map(([h, ms]) => [h, span(ms)] as [string, string])} value={String(hours)} set={(v) => goQuery(withQuery(query.value, { span: v, from: null, to: null }), true)} />
        {jobs.length ? <button class="button" onClick={() => goQuery(withQuery(query.value, { jobs: null }))}>{t('All jobs')}</button> : null}
        <span class="grow" />
        <span class="legend less">{(['running', 'reserved', 'forecast'] as const).map((k) => <span key={k}><svg width="16" height="9" aria-hidden="true"><rect class={`seg-${k}`} x=".5" y=".5" width="15" height="8" rx="2" /></svg>{segmentWord(k)}</span>)}</span>
      </div>
      <div class="gantt-frame">
        {live.error.value ? <Wrong error={live.error.value} /> : !data ? <Skeleton rows={10} /> : !data.lanes.length ? <Empty title={t('Nothing in this time')} text={t('Choose another span, or wait for the first job.')} /> : <Chart data={data} of={svg} />}
        {data?.more ? <p class="faint" style={{ padding: '8px 24px' }}>{t('and {n} more', { n: num(data.more) })}</p> : null}
      </div>
    </>
  );
}

function Chart({ data, of }: { data: Gantt; of: { current: SVGSVGElement | null } }): JSX.Element {
  const [box, wide] = useBoxWidth<HTMLDivElement>(1100);
  const W = Math.max(560, wide);
  const LEFT = W < 700 ? 92 : 150;
  const x = (at: number): number => LEFT + ((W - LEFT - 12) * (Math.min(data.to, Math.max(data.from, at)) - data.from)) / Math.max(1, data.to - data.from);
  // Bars of one lane that overlap are stacked.
  let y = 26;
  const lanes = data.lanes.map((lane) => {
    const ends: number[] = [];
    const owner: string[] = [];
    const bars = [...lane.bars].sort((a, b) => a.from - b.from || Number(a.forecast) - Number(b.forecast)).map((bar) => {
      // What is foretold of a job goes on in the row of what it does now.
      let row = ends.findIndex((e, i) => e <= bar.from && owner[i] === bar.job);
      if (row < 0) row = ends.findIndex((e) => e <= bar.from);
      if (row < 0) row = ends.length;
      owner[row] = bar.job;
      ends[row] = bar.to ?? (bar.forecast ? data.to : data.now);
      return { bar, row };
    });
    const top = y;
    y += Math.max(1, ends.length) * 18 + 8;
    return { lane, bars, top, height: Math.max(1, ends.length) * 18 };
  });
  // On a narrow screen one begins where it is now.
  useEffect(() => { const frame = box.current?.closest('.gantt-frame'); if (frame && frame.scrollWidth > frame.clientWidth) frame.scrollLeft = Math.max(0, x(data.now) - frame.clientWidth * 0.7); }, [data.from]);
  // The names of the rows stay at the left when the picture is moved sideways.
  useEffect(() => {
    const frame = box.current?.closest<HTMLElement>('.gantt-frame');
    if (!frame) return;
    const follow = (): void => frame.style.setProperty('--scrolled', `${frame.scrollLeft}px`);
    follow();
    frame.addEventListener('scroll', follow, { passive: true });
    return () => frame.removeEventListener('scroll', follow);
  }, []);
  return (
    <div ref={box}><svg class="gantt" ref={of} width={W} height={y + 24} viewBox={`0 0 ${W} ${y + 24}`} role="img" aria-label={t('Timeline')} xmlns="http://www.w3.org/2000/svg">
      <Hatches />
      {ticks(data.from, data.to, Math.max(3, Math.floor((W - LEFT) / 100))).filter((at) => x(at) < W - 30).map((at, i) => <g key={at}><line class="grid-line" x1={x(at)} x2={x(at)} y1="18" y2={y} /><text x={x(at)} y="12" text-anchor="middle">{tickWord(at, i, data.now)}</text></g>)}
      {lanes.map(({ lane, bars, top, height }) => (
        <g key={lane.name}>
          <line class="grid-line" x1="0" x2={W} y1={top + height + 4} y2={top + height + 4} />
          {bars.map(({ bar, row }, i) => <Bar key={i} bar={bar} x={x} y={top + row * 18} now={data.now} end={data.to} />)}
          <text class="label" x="0" y={top + 12}>{lane.name.length > LEFT / 7.5 ? `${lane.name.slice(0, Math.floor(LEFT / 7.5) - 1)}…` : lane.name}</text>
        </g>
      ))}
      {data.now >= data.from && data.now <= data.to ? <><line class="now" x1={x(data.now)} x2={x(data.now)} y1="18" y2={y + 4} /><g transform={`translate(${Math.min(W - 42, Math.max(LEFT, x(data.now)))} ${y + 12})`}><rect class="nowpill" x="-38" y="-9" width="76" height="18" rx="9" /><text class="nowtext" y="4" text-anchor="middle">{t('now {time}', { time: clock(data.now, data.now) })}</text></g></> : null}
    </svg></div>
  );
}
function Bar({ bar: b, x, y, now, end }: { bar: GanttBar; x: (at: number) => number; y: number; now: number; end: number }): JSX.Element {
  const to = b.to ?? (b.forecast ? end : now);
  const solid = b.kind === 'running' && !b.forecast;
  const left = x(b.from);
  // What runs until a time that is foretold: facts left of now, the forecast right of it.
  const ran = b.forecast && b.kind === 'running';
  const done = ran ? Math.max(0, x(Math.min(now, to)) - left) : 0;
  const width = Math.max(2, x(to) - left);
  const text = `${b.name}, ${b.user}\n${segmentWord(b.kind)} ${exact(b.from)} – ${b.to ? exact(b.to) : b.from > now || b.forecast ? t('end not known') : t('now')}${b.gpus ? `\n${num(b.gpus)} GPUs` : ''}${b.text ? `\n${b.text}` : ''}`;
  // Who holds it may be nobody whom this user knows.
  const open = b.job ? { tabIndex: 0, role: 'link' as const, onClick: () => go(jobHref(b.job)), onKeyDown: (e: KeyboardEvent) => { if (e.key === 'Enter') go(jobHref(b.job)); } } : { role: 'img' as const };
  return (
    <g class={`bar k${slot(b.job)}`} {...open} aria-label={text} data-job={b.job} data-from={b.from} data-to={b.to ?? ''} data-kind={b.kind}>
      <rect class={solid ? 'seg-mine' : ran ? 'seg-forecast' : `seg-${b.kind}`} x={left} y={y} width={width} height="15" rx="2"><title>{text}</title></rect>
      {done > 1 ? <rect class="seg-mine" x={left} y={y} width={done} height="15" rx="2"><title>{text}</title></rect> : null}
      {(ran ? done : width) > 46 ? <text class={solid || ran ? 'in-bar' : 'on-hatch'} x={left + 5} y={y + 11.5}>{b.name.slice(0, Math.floor((ran ? done : width) / 6.5))}</text> : ran && width - done > 46 ? <text class="on-hatch" x={left + done + 5} y={y + 11.5}>{b.name.slice(0, Math.floor((width - done) / 6.5))}</text> : null}
    </g>
  );
}

/** A picture that stands alone: styles of this page are written into it. */
function exportSvg(svg: SVGSVGElement | null): void {
  if (!svg) return;
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [...svg.querySelectorAll<SVGElement>('*')];
  [...copy.querySelectorAll<SVGElement>('*')].forEach((el, i) => {
    const look = getComputedStyle(from[i]!);
    for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-size', 'font-weight', 'font-family']) {
      const value = look.getPropertyValue(name);
      if (value && value !== 'none' && !(name === 'stroke-width' && look.stroke === 'none')) el.setAttribute(name, value.replace(/url\("[^#]*#/, 'url("#'));
      else if (name === 'fill' || name === 'stroke') el.setAttribute(name, value || 'none');
    }
  });
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  ground.setAttribute('width', '100%');
  ground.setAttribute('height', '100%');
  ground.setAttribute('fill', colour('--surface'));
  copy.prepend(ground);
  save('timeline.svg', 'image/svg+xml', new XMLSerializer().serializeToString(copy));
}
