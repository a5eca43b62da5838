import '../../style/map.css';
/** The GPU map: nodes × GPUs on a canvas, with a table twin, legend, hover card and the cell tree. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get } from '../../api';
import { num, prio, save, span } from '../../format';
import { serverNow } from '../../live/socket';
import { useValue } from '../../live/use';
import { Icon } from '../../parts/icon';
import { StateMark } from '../../parts/glyph';
import { Choice, Empty, Wrong } from '../../parts/small';
import type { JobDetail } from '../../shapes/job';
import { NODE_STATES, type Topology, type TopologyPatch } from '../../shapes/topology';
import { go, goQuery, param, query } from '../../state/route';
import { has } from '../../state/session';
import { shownTheme } from '../../state/theme';
import { withQuery } from '../../state/url';
import { t } from '../../text';
import { draw, FAINT, light, redraw, type ColourBy, type Look } from './draw';
import { fit, hit, layout, levelOf, placeOf, type Grouping, type Hit, type Layout } from './layout';
import { CellTree, useCells } from './tree';
import { MapTable } from './table';
import { nodeOf, patched, plain, cellsOf, type Plain } from './unpack';

export default function TopologyPage(): JSX.Element {
  const kept = useRef<{ from: Topology; plain: Plain } | null>(null);
  const [turn, setTurn] = useState(0);
  // Nodes that came, went or were cordoned: their cells have become others.
  const [states, setStates] = useState(0);
  const live = useValue<Topology>('topology', {}, (value, patch: never) => {
    if ((patch as TopologyPatch).states.length) setStates((n) => n + 1);
    if (kept.current?.from === value) { kept.current.plain = patched(kept.current.plain, patch as TopologyPatch); setTurn((n) => n + 1); }
    return value;
  });
  useEffect(() => { document.title = `${t('Topology')} · Muster`; }, []);
  const source = live.value.value;
  if (source && kept.current?.from !== source) kept.current = { from: source, plain: plain(source) };
  const map = kept.current?.plain ?? null;
  if (live.error.value && !map) return <Wrong error={live.error.value} />;
  if (!map) return <div class="head"><h1 tabIndex={-1}>{t('Topology')}</h1></div>;
  if (!map.nodes.length) return <><div class="head"><h1 tabIndex={-1}>{t('Topology')}</h1></div><Empty title={t('No nodes yet')} text={t('Nodes appear here when their agents have registered.')} /></>;
  return <MapPage map={map} turn={turn} states={states} />;
}

function MapPage({ map, turn, states }: { map: Plain; turn: number; states: number }): JSX.Element {
  const by = (param('colour') || 'job') as ColourBy;
  const { cells, wrong } = useCells(has('cells'), states);
  const celled = useMemo(() => (cells ? cellsOf(map, cells) : null), [map.nodes, cells]);
  const s = celled ? { ...map, ...celled } : map;
  const group = (param('group') || (s.racks.length ? 'rack' : s.chains.length ? 'chain' : 'model')) as Grouping;
  const sums = map.sums;
  const only = param('only');
  // Those whom one may not see have no id, and cannot be selected.
  const sel = param('sel');
  const selected = sel ? s.jobs.findIndex((j) => j?.id === sel) + 1 : 0;
  const phone = innerWidth <= 640;
  const asTable = param('view') === 'table' || (phone && param('view') !== 'map');
  // Where there is no room beside the map it is there for whoever wants it.
  const narrow = innerWidth <= 900;
  const tree = has('cells') && (narrow ? param('tree') !== '' && param('tree') !== 'none' : param('tree') !== 'none');
  const set = (c: Record<string, string | null>, replace = false): void => goQuery(withQuery(query.value, c), replace);
  const total = map.owner.length;
  const [zoomTo, setZoomTo] = useState<((cell: number) => void) | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const z = Number(param('z')) || 0;
  const [shownCell, setShown] = useState(6);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Topology')}</h1>{/* In the place of the numbers: among the filters it would push the map down under the pointer. */}
        {selected ? <span class="chip"><button>{t('Job')}<b>{s.jobs[selected - 1]!.name}</b></button><button class="x" aria-label={t('Clear selection')} onClick={() => set({ sel: null })}>×</button></span> : <span class="sub">{t('{nodes} nodes, {gpus} GPUs, {used} in use', { nodes: num(s.nodes.length), gpus: num(total), used: num(sums.used) })}</span>}
        <span class="acts">{narrow && has('cells') ? <button class="button" aria-pressed={tree} onClick={() => set({ tree: tree ? null : 'physical' })}><Icon name="tree" />{t('Cell tree')}</button> : null}<button class="button" onClick={() => set({ tree: narrow ? null : param('tree') || null, view: asTable ? 'map' : 'table' })}>{asTable ? t('As map') : t('As table')}</button>{asTable ? null : <button class="button" onClick={() => canvas.current?.toBlob((b) => { if (b) save('topology.png', 'image/png', b); })}><Icon name="image" />{t('Save PNG')}</button>}</span></div>
      <div class="filters">
        <span class="faint">{t('Colour')}</span>
        <Choice name={t('Colour')} of={[['job', t('Job')], ['vc', t('VC')], ['prio', t('Priority')], ['state', t('Status')], ['idle', t('Idle time')]] as const} value={by} set={(v) => set({ colour: v === 'job' ? null : v }, true)} />
        {s.racks.length || s.chains.length ? <><span class="faint less">{t('Group')}</span>
        <span class="less"><Choice name={t('Group')} of={[...(s.racks.length ? [['rack', t('Rack')] as const] : []), ...(s.chains.length ? [['chain', t('Cell chain')] as const] : []), ['model', t('Model')]]} value={group} set={(v) => set({ group: v }, true)} /></span></> : null}
        <span class="grow" />
        {asTable ? null : <><span class="faint less">{t('Zoom')}</span><span class="less"><Choice name={t('Zoom')} of={[['cluster', t('Cluster')], ['rack', t('Rack')], ['node', t('Node')]] as const} value={levelOf(shownCell)} set={(v) => zoomTo?.(v === 'cluster' ? Math.min(12, shownCell) : v === 'rack' ? 21 : 52)} /></span></>}
      </div>
      <div class={`map-frame ${tree && !narrow && !asTable ? 'with-tree' : ''}`}>
        {tree && narrow ? null : asTable ? <MapTable map={map} only={only} /> : <MapCanvas map={s} turn={turn} look={{ by, selected, only, hover: -1, cursor: -1 }} group={group} z={z} setZ={(v) => set({ z: v ? String(v) : null }, true)} choose={(id) => set({ sel: id === param('sel') ? null : id })} canvas={canvas} offerZoom={(f, cell) => { setZoomTo(() => f); setShown(cell); }} />}
        {tree && (narrow || !asTable) ? <CellTree cells={cells} wrong={wrong} vc={param('tree')} setVc={(v) => set({ tree: v || (narrow ? 'physical' : null) }, true)} /> : null}
      </div>
      <div class="map-legend">
        {([['used', t('in use'), sums.used, ''], ['oppo', t('of them opportunistic'), sums.oppo, 'half'], ['free', t('free'), sums.free, 'open'], ['held', t('held for a reservation'), sums.held, 'held'], ['off', t('cordoned or not ready'), sums.off, 'off']] as const).map(([key, word, n, cls]) => (
          <button key={key} aria-pressed={only === key} onClick={() => set({ only: only === key ? null : key }, true)}><span class="cells big RUNNING" aria-hidden="true"><i class={cls} /></span><b>{num(n)}</b> {word}</button>
        ))}
      </div>
    </>
  );
}

/** Room around the picture of the whole map for outlines. */
const MARGIN = 4;
interface CanvasProps { map: Plain; turn: number; look: Look; group: Grouping; z: number; setZ: (z: number) => void; choose: (id: string) => void; canvas: { current: HTMLCanvasElement | null }; offerZoom: (f: (cell: number) => void, cell: number) => void }
function MapCanvas({ map, turn, look, group, z, setZ, choose, canvas, offerZoom }: CanvasProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ w: 0, h: 0 });
  const [over, setOver] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState(-1);
  const frame = useRef(0);
  const theme = shownTheme.value;
  const best = useMemo(() => (size.w ? fit(map, group, size.w - 40, size.h - 40) : 6), [map.nodes, map.chains, group, size.w, size.h]);
  const cell = z || best;
  const l = useMemo(() => layout(map, group, cell, Math.max(200, size.w - 40)), [map.nodes, map.chains, group, cell, size.w]);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setSize({ w: box.current!.clientWidth, h: box.current!.clientHeight }));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const paint = (): void => {
    const el = canvas.current;
    if (!el || !size.w) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (el.width !== size.w * ratio || el.height !== size.h * ratio) { el.width = size.w * ratio; el.height = size.h * ratio; }
    const c = el.getContext('2d')!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const view = { x: box.current!.scrollLeft - 20, y: box.current!.scrollTop - 20, w: size.w, h: size.h };
    const whole = wholeMap(ratio);
    if (!whole) { draw(c, map, l, { ...look, cursor }, view); return; }
    c.clearRect(0, 0, size.w, size.h);
    if (look.selected) c.globalAlpha = FAINT;
    c.drawImage(whole, -view.x - MARGIN, -view.y - MARGIN, whole.width / ratio, whole.height / ratio);
    c.globalAlpha = 1;
    if (look.selected) light(c, map, l, { ...look, cursor }, view);
  };
  // From afar the map is drawn once for each change and moved while panning, and a selection is laid over it; near, only what is on screen is drawn.
  const far = useRef<{ key: unknown[]; canvas: HTMLCanvasElement } | null>(null);
  // While somebody zooms, each step is another layout, of which only what is on screen is drawn.
  const still = useRef<Layout | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => { still.current = l; paint(); }, 200);
    return () => clearTimeout(timer);
  }, [l, size]);
  const wholeMap = (ratio: number): HTMLCanvasElement | null => {
    const w = l.width + 2 * MARGIN;
    const h = l.height + 2 * MARGIN;
    if (l.level !== 'cluster' || w * h * ratio * ratio > 24e6) return null;
    if (far.current && far.current.key[1] !== l && still.current !== l) return null;
    const all = { ...look, selected: 0, cursor };
    const key = [map.nodes, l, ratio, theme, look.by, look.only, cursor];
    if (far.current && key.every((k, i) => k === far.current!.key[i])) {
      redraw(far.current.canvas.getContext('2d')!, map, l, all, MARGIN);
      return far.current.canvas;
    }
    const canvas = far.current?.canvas ?? document.createElement('canvas');
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    const c = canvas.getContext('2d')!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(c, map, l, all, { x: -MARGIN, y: -MARGIN, w, h });
    map.changed.clear();
    far.current = { key, canvas };
    return canvas;
  };
  const later = (): void => { frame.current ||= requestAnimationFrame(() => { frame.current = 0; paint(); }); };
  useLayoutEffect(paint, [map, turn, l, size, theme, look.by, look.selected, look.only, cursor]);

  const zoom = (next: number, at?: { x: number; y: number }): void => {
    const el = box.current!;
    const p = at ?? { x: size.w / 2, y: size.h / 2 };
    const under = hit(map, l, el.scrollLeft - 20 + p.x, el.scrollTop - 20 + p.y);
    const to = next === 0 ? 0 : Math.min(140, Math.max(1.5, next));
    setZ(Math.round(to * 4) / 4);
    if (under) requestAnimationFrame(() => requestAnimationFrame(() => {
      const there = placeOf(layout(map, group, to || best, Math.max(200, size.w - 40)), under.node);
      if (there) el.scrollTo(there.x - p.x, there.y + 20 - p.y);
    }));
  };
  useEffect(() => offerZoom((c) => zoom(c), cell), [l, size]);
  useEffect(() => {
    const el = box.current!;
    const wheel = (e: WheelEvent): void => { if (!e.ctrlKey) return; e.preventDefault(); const r = el.getBoundingClientRect(); zoom(cell * (e.deltaY < 0 ? 1.25 : 0.8), { x: e.clientX - r.left, y: e.clientY - r.top }); };
    el.addEventListener('wheel', wheel, { passive: false });
    return () => el.removeEventListener('wheel', wheel);
  }, [cell, l, size]);
  const pointAt = (e: MouseEvent): { hit: Hit | null; x: number; y: number } => {
    const r = box.current!.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    return { hit: hit(map, l, box.current!.scrollLeft - 20 + x, box.current!.scrollTop - 20 + y), x, y };
  };
  const key = (e: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: l.columns, ArrowUp: -l.columns }[e.key];
    if (step) { e.preventDefault(); const next = Math.min(map.owner.length - 1, Math.max(0, cursor < 0 ? 0 : cursor + step)); setCursor(next); showNode(next); }
    else if (e.key === 'Enter' && cursor >= 0 && map.owner[cursor]! > 0 && map.jobs[map.owner[cursor]! - 1]!.id) choose(map.jobs[map.owner[cursor]! - 1]!.id);
    else if (e.key === '+' || e.key === '=') zoom(cell * 1.25);
    else if (e.key === '-') zoom(cell * 0.8);
  };
  const showNode = (g: number): void => {
    const there = placeOf(l, nodeOf(map, g));
    const el = box.current!;
    if (there && (there.y < el.scrollTop - 10 || there.y > el.scrollTop + size.h - 60)) el.scrollTo(el.scrollLeft, there.y - size.h / 2);
  };
  const said = cursor >= 0 ? sentence(map, { node: nodeOf(map, cursor), gpu: cursor }) : '';
  return (
    <div class="map" ref={box} tabIndex={0} role="application" aria-label={t('Map of GPUs; arrow keys move, Enter selects the job. A table shows the same.')} data-cell={cell}
      onScroll={() => { setOver(null); later(); }} onPointerMove={(e) => { const p = pointAt(e); setOver(p.hit ? { hit: p.hit, x: p.x, y: p.y } : null); }} onPointerLeave={() => setOver(null)} onKeyDown={key}
      onClick={(e) => { const p = pointAt(e); const o = p.hit && p.hit.gpu >= 0 ? map.owner[p.hit.gpu]! : 0; const id = o === 0 ? '' : map.jobs[Math.abs(o) - 1]!.id; if (id) choose(id); else if (p.hit && o === 0 && levelOf(cell) === 'node') go(`/nodes/${map.nodes[p.hit.node]}`); }}>
      <canvas ref={canvas} class="map-canvas" />
      <div class="map-space" style={{ width: `${l.width + 40 > size.w ? l.width + 40 : 1}px`, height: `${l.height + 40}px` }} />
      <p class="sr" role="status">{said}</p>
      {over ? <Card map={map} over={over} size={size} scroll={{ x: box.current?.scrollLeft ?? 0, y: box.current?.scrollTop ?? 0 }} /> : null}
    </div>
  );
}
function sentence(map: Plain, h: Hit): string {
  const o = h.gpu >= 0 ? map.owner[h.gpu]! : 0;
  const where = `${map.nodes[h.node]}${h.gpu >= 0 ? ` GPU ${h.gpu - map.first[h.node]!}` : ''}`;
  const j = map.jobs[Math.abs(o) - 1];
  const name = j?.id ? [j.name, j.user].filter(Boolean).join(', ') : t('a job of others');
  return `${where}: ${o > 0 ? name : o < 0 ? t('held for {name}', { name }) : map.states[h.node] ? stateWord(map.states[h.node]!) : t('free')}`;
}
const stateWord = (state: number): string => t({ ready: 'ready', cordoned: 'cordoned', 'not-ready': 'not ready' }[NODE_STATES[state]!]);
/** Since when a job runs: asked once the pointer rests on it, because the map does not say it of each of its thousands. */
function useStarted(id: string): number | null {
  const [known, set] = useState<{ id: string; at: number | null }>({ id: '', at: null });
  useEffect(() => {
    if (!id) return;
    const timer = setTimeout(() => { get<JobDetail>(`/jobs/${encodeURIComponent(id)}`).then((job) => set({ id, at: job.row.started }), () => {}); }, 150);
    return () => clearTimeout(timer);
  }, [id]);
  return known.id === id ? known.at : null;
}
function Card({ map, over, size, scroll }: { map: Plain; over: { hit: Hit; x: number; y: number }; size: { w: number; h: number }; scroll: { x: number; y: number } }): JSX.Element {
  const { hit: h } = over;
  const o = h.gpu >= 0 ? map.owner[h.gpu]! : 0;
  const j = map.jobs[Math.abs(o) - 1];
  const started = useStarted(o > 0 && j ? j.id : '');
  let gpus = 0;
  if (j && o > 0) for (const x of map.owner) if (x === o) gpus++;
  const left = over.x + 236 > size.w ? over.x - 226 : over.x + 14;
  const name = j?.id ? j.name : t('a job of others');
  const idle = o === 0 && h.gpu >= 0 && map.freed[h.gpu] ? t('free for {span}', { span: span(serverNow() - map.freed[h.gpu]!) }) : t('free');
  return (
    <div class="hover-card" style={{ left: `${left + scroll.x}px`, top: `${Math.min(over.y + 14, size.h - 120) + scroll.y}px` }}>
      {j ? <><div class="strong">{o < 0 ? t('held for {name}', { name }) : name}</div><div class="faint">{[j.user, j.vc || j.queue, prio({ class: j.prioClass, number: j.prio })].filter(Boolean).join(', ')}</div>{o > 0 ? <div><StateMark state={j.state} /> {started ? span(serverNow() - started) : ''}{j.oppo ? `, ${t('opportunistic')}` : ''}</div> : null}{gpus ? <div>{t('{n} GPUs', { n: num(gpus) })}</div> : null}</> : null}
      <div class="mono faint">{map.nodes[h.node]}{h.gpu >= 0 ? ` · GPU ${h.gpu - map.first[h.node]!}` : ''}{map.states[h.node] ? ` · ${stateWord(map.states[h.node]!)}` : !j ? ` · ${idle}` : ''}</div>
    </div>
  );
}
