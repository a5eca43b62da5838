/** Draws the map: three zooms, one fill language (solid, outline, hatch, half, stroke). */
import { slot } from '../../format';
import { colour } from '../../state/theme';
import { t } from '../../text';
import type { Layout } from './layout';
import type { Plain } from './unpack';

export type ColourBy = 'job' | 'vc' | 'prio' | 'state' | 'idle';
export interface Look { by: ColourBy; selected: number; only: string; hover: number; cursor: number }
interface Palette { slots: string[]; line: string; line2: string; edge: string; text: string; text2: string; text3: string; held: string; running: string; stopping: string; waiting: string; hatch: CanvasPattern; surface: string; accent: string }

let kept: { theme: string; palette: Palette } | null = null;
function palette(c: CanvasRenderingContext2D): Palette {
  const theme = document.documentElement.dataset.theme ?? '';
  if (kept?.theme === theme) return kept.palette;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const k = tile.getContext('2d')!;
  k.strokeStyle = colour('--suspended');
  k.lineWidth = 1.2;
  k.beginPath();
  for (const d of [-6, 0, 6]) { k.moveTo(d, 6); k.lineTo(d + 6, 0); }
  k.stroke();
  const p: Palette = {
    slots: Array.from({ length: 8 }, (_, i) => colour(`--c${i}`)), line: colour('--line'), line2: colour('--line-2'), edge: colour('--edge'), text: colour('--text'), text2: colour('--text-2'), text3: colour('--text-3'),
    held: colour('--suspended'), running: colour('--running'), stopping: colour('--stopping'), waiting: colour('--waiting'), hatch: c.createPattern(tile, 'repeat')!, surface: colour('--surface'), accent: colour('--accent'),
  };
  kept = { theme, palette: p };
  return p;
}

/** Colour of a job's cells; remembered for each drawing. */
function fillOf(p: Plain, k: Palette, by: ColourBy): (owner: number) => string {
  const known = new Map<number, string>();
  return (owner) => {
    let c = known.get(owner);
    if (c) return c;
    const j = p.jobs[owner - 1];
    if (!j) c = k.edge;
    else if (by === 'job') c = k.slots[slot(j.id)]!;
    else if (by === 'vc') c = k.slots[slot(j.vc || j.queue)]!;
    else if (by === 'prio') c = k.slots[slot(j.prioClass || String(j.prio))]!;
    else if (by === 'state') c = j.state === 'STOPPING' ? k.stopping : j.state === 'WAITING' ? k.waiting : k.running;
    else c = k.line2;
    known.set(owner, c);
    return c;
  };
}
const dims = (p: Plain, look: Look, g: number, off: boolean): boolean => {
  const o = p.owner[g]!;
  if (look.selected) return o !== look.selected && o !== -look.selected;
  switch (look.only) {
    case 'used': return o <= 0;
    case 'oppo': return o <= 0 || !p.jobs[o - 1]?.oppo;
    case 'free': return o !== 0 || off;
    case 'held': return o >= 0;
    case 'off': return !(o <= 0 && (off || p.bad.has(g)));
    default: return false;
  }
};

export function draw(c: CanvasRenderingContext2D, p: Plain, l: Layout, look: Look, view: { x: number; y: number; w: number; h: number }): void {
  const k = palette(c);
  const fill = fillOf(p, k, look.by);
  // Names must show byte for byte: no ligatures (Inter prints 8x7b as 8×7b).
  c.textRendering = 'optimizeSpeed';
  c.clearRect(0, 0, view.w, view.h);
  c.save();
  c.translate(-view.x, -view.y);
  for (const b of l.blocks) {
    if (b.y + b.h < view.y || b.y > view.y + view.h || b.x + b.w < view.x || b.x > view.x + view.w) continue;
    heading(c, p, l, k, b);
    for (let i = 0; i < b.nodes.length; i++) {
      const y = b.y + l.head + i * l.row;
      if (y + l.row < view.y || y > view.y + view.h) continue;
      nodeRow(c, p, l, k, look, fill, b.nodes[i]!, b.x, y);
    }
    if (l.level === 'rack') brackets(c, p, l, k, look, b);
    if (look.selected) outline(c, p, l, k, look, b);
  }
  c.restore();
}

/** The cells of the selected job, over a picture of the whole map that is faint. */
export function light(c: CanvasRenderingContext2D, p: Plain, l: Layout, look: Look, view: { x: number; y: number; w: number; h: number }): void {
  const k = palette(c);
  const fill = fillOf(p, k, look.by);
  c.save();
  c.translate(-view.x, -view.y);
  for (const b of l.blocks) {
    if (b.y + b.h < view.y || b.y > view.y + view.h || b.x + b.w < view.x || b.x > view.x + view.w) continue;
    if (!b.nodes.some((n) => holds(p, n, look.selected))) continue;
    if (l.head >= 14) { c.clearRect(b.x, b.y, b.w, l.head); heading(c, p, l, k, b); }
    for (let i = 0; i < b.nodes.length; i++) if (holds(p, b.nodes[i]!, look.selected)) nodeRow(c, p, l, k, look, fill, b.nodes[i]!, b.x, b.y + l.head + i * l.row, true);
    outline(c, p, l, k, look, b);
  }
  c.restore();
}
function holds(p: Plain, node: number, job: number): boolean {
  for (let g = p.first[node]!; g < p.first[node + 1]!; g++) if (Math.abs(p.owner[g]!) === job) return true;
  return false;
}
/** How much of a cell that is not meant is left. */
export const FAINT = 0.3;

/** Draws anew those blocks of the whole map that have a node that changed. */
export function redraw(c: CanvasRenderingContext2D, p: Plain, l: Layout, look: Look, margin: number): void {
  for (const b of l.blocks) {
    if (!b.nodes.some((n) => p.changed.has(n))) continue;
    c.save();
    c.beginPath();
    c.rect(b.x + margin - 1, b.y + margin - 1, b.w + 2, b.h + 2);
    c.clip();
    draw(c, p, { ...l, blocks: [b] }, look, { x: -margin, y: -margin, w: l.width + 2 * margin, h: l.height + 2 * margin });
    c.restore();
  }
  p.changed.clear();
}

function heading(c: CanvasRenderingContext2D, p: Plain, l: Layout, k: Palette, b: Layout['blocks'][number]): void {
  if (l.head < 14) return;
  c.globalAlpha = 1;
  c.fillStyle = k.text;
  c.font = `600 ${l.level === 'cluster' ? 11 : 12}px ${font()}`;
  c.textBaseline = 'alphabetic';
  const name = b.name;
  c.fillText(name, b.x, b.y + l.head - 6, b.w);
  const w = Math.min(b.w, c.measureText(name).width);
  const vcs = new Set(b.nodes.map((n) => p.vcs[p.vc[n] ?? -1] ?? ''));
  let free = 0;
  for (const n of b.nodes) if (p.states[n] === 0) for (let g = p.first[n]!; g < p.first[n + 1]!; g++) if (p.owner[g] === 0 && !p.bad.has(g)) free++;
  const note = [vcs.size === 1 ? [...vcs][0] : '', free ? t('{n} free', { n: free }) : ''].filter(Boolean).join(' · ');
  c.fillStyle = k.text3;
  c.font = `400 11px ${font()}`;
  if (b.w - w > 40) c.fillText(note, b.x + w + 8, b.y + l.head - 6, b.w - w - 8);
}
let family = '';
const font = (): string => (family ||= getComputedStyle(document.body).fontFamily);

function nodeRow(c: CanvasRenderingContext2D, p: Plain, l: Layout, k: Palette, look: Look, fill: (o: number) => string, node: number, x0: number, y: number, lit = false): void {
  const off = p.states[node] !== 0;
  const first = p.first[node]!;
  const count = Math.min(l.columns, p.first[node + 1]! - first);
  if (l.label && !lit) {
    c.globalAlpha = 1;
    c.fillStyle = off ? k.text3 : k.text2;
    c.font = `400 11px ${l.level === 'node' ? font() : 'ui-monospace, "Liberation Mono", monospace'}`;
    c.fillText(shortName(p.nodes[node]!, l.level === 'node' ? 16 : 9), x0, y + (l.level === 'node' ? 20 : l.row / 2 + 3.5), l.label - 6);
  }
  const gap = l.cell < 5 ? 0 : l.cell < 12 ? 1 : 2;
  const h = l.level === 'node' ? 30 : l.row - (l.row < 4 ? 0 : l.level === 'rack' ? 3 : 1);
  for (let i = 0; i < count; ) {
    const g = first + i;
    const o = p.owner[g]!;
    let run = 1;
    // Without gaps a run of equal cells is one rectangle; in the near view a gang is one band.
    if (gap === 0 || (l.level === 'node' && o > 0)) while (i + run < count && p.owner[first + i + run] === o && p.bad.has(first + i + run) === p.bad.has(g)) run++;
    const x = x0 + l.label + i * l.cell;
    const w = run * l.cell - gap;
    i += run;
    if (lit && Math.abs(o) !== look.selected) continue;
    c.globalAlpha = dims(p, look, g, off) ? FAINT : 1;
    cell(c, p, l, k, look, fill, { g, o, off, x, y, w, h });
  }
  c.globalAlpha = 1;
  if (look.cursor >= first && look.cursor < first + count) { c.strokeStyle = k.accent; c.lineWidth = 2; c.strokeRect(x0 + l.label + (look.cursor - first) * l.cell - 1, y - 1, l.cell - gap + 2, h + 2); }
}
const shortName = (name: string, most: number): string => (name.length > most ? `…${name.slice(-most + 1)}` : name);

interface One { g: number; o: number; off: boolean; x: number; y: number; w: number; h: number }
function cell(c: CanvasRenderingContext2D, p: Plain, l: Layout, k: Palette, look: Look, fill: (o: number) => string, q: One): void {
  const small = l.cell < 5;
  if (q.o > 0) {
    const oppo = p.jobs[q.o - 1]?.oppo && l.cell >= 6;
    c.fillStyle = fill(q.o);
    if (oppo) {
      const half = l.level === 'node' ? Math.min(q.w, q.h) : q.w;
      c.beginPath(); c.moveTo(q.x, q.y); c.lineTo(q.x + half, q.y); c.lineTo(q.x, q.y + q.h); c.fill();
      c.strokeStyle = fill(q.o); c.lineWidth = 1; c.strokeRect(q.x + 0.5, q.y + 0.5, q.w - 1, q.h - 1);
    } else if (l.level === 'cluster') c.fillRect(q.x, q.y, q.w, q.h);
    else { c.beginPath(); c.roundRect(q.x, q.y, q.w, q.h, 2); c.fill(); }
    if (l.level === 'node') band(c, p, k, q, !!oppo);
  } else if (q.off || p.bad.has(q.g)) {
    c.strokeStyle = k.edge;
    c.lineWidth = 1;
    if (small) { c.globalAlpha *= 0.5; c.fillStyle = k.edge; c.fillRect(q.x, q.y + q.h / 2, q.w, 1); return; }
    c.strokeRect(q.x + 0.5, q.y + 0.5, q.w - 1, q.h - 1);
    c.beginPath(); c.moveTo(q.x, q.y + q.h); c.lineTo(q.x + q.w, q.y); c.stroke();
  } else if (q.o < 0) {
    c.fillStyle = small ? k.held : k.hatch;
    if (small) c.globalAlpha *= 0.45;
    c.fillRect(q.x, q.y, q.w, q.h);
    if (!small) { c.strokeStyle = k.held; c.lineWidth = 1; c.strokeRect(q.x + 0.5, q.y + 0.5, q.w - 1, q.h - 1); }
  } else if (look.by === 'idle' && p.freed[q.g]) {
    // Ten hours are the darkest.
    c.globalAlpha *= Math.min(1, 0.15 + (p.at - p.freed[q.g]!) / 36e6);
    c.fillStyle = k.waiting;
    c.fillRect(q.x, q.y, q.w, q.h);
  } else if (small) { c.fillStyle = k.line; c.fillRect(q.x, q.y, q.w, q.h); } else if (l.level === 'cluster') {
    // The same outline, in a fraction of the time: there are tens of thousands of them.
    c.fillStyle = k.line2;
    c.fillRect(q.x, q.y, q.w, q.h);
    c.clearRect(q.x + 1, q.y + 1, q.w - 2, q.h - 2);
  } else { c.strokeStyle = k.line2; c.lineWidth = 1; c.strokeRect(q.x + 0.5, q.y + 0.5, q.w - 1, q.h - 1); }
}
function band(c: CanvasRenderingContext2D, p: Plain, k: Palette, q: One, oppo: boolean): void {
  const j = p.jobs[q.o - 1];
  if (!j || q.w < 40) return;
  c.save();
  c.beginPath(); c.rect(q.x, q.y, q.w, q.h); c.clip();
  c.fillStyle = oppo ? k.text : k.surface;
  c.font = `600 11px ${font()}`;
  const left = q.x + (oppo ? q.h + 2 : 6);
  c.fillText(j.name, left, q.y + 13);
  c.font = `400 10.5px ${font()}`;
  c.fillText(j.user, left, q.y + 25);
  c.restore();
}

/** At the right of a rack: each run of nodes said once. */
function brackets(c: CanvasRenderingContext2D, p: Plain, l: Layout, k: Palette, look: Look, b: Layout['blocks'][number]): void {
  const whom = (node: number): string => {
    if (p.states[node] !== 0) return p.states[node] === 1 ? t('cordoned') : t('not ready');
    const owners = new Set<number>();
    for (let g = p.first[node]!; g < p.first[node + 1]!; g++) owners.add(p.owner[g]!);
    if (owners.size > 1) { const jobs = [...owners].filter((o) => o > 0); return jobs.length > 1 ? t('{n} jobs', { n: jobs.length }) : jobs.length ? (p.jobs[jobs[0]! - 1]?.name ?? '') : t('held'); }
    const o = [...owners][0] ?? 0;
    return o === 0 ? t('free') : o < 0 ? t('held, {name}', { name: p.jobs[-o - 1]?.name ?? '' }) : (p.jobs[o - 1]?.name ?? '');
  };
  const x = b.x + l.label + l.columns * l.cell + 4;
  for (let i = 0; i < b.nodes.length; ) {
    const word = whom(b.nodes[i]!);
    let n = 1;
    while (i + n < b.nodes.length && whom(b.nodes[i + n]!) === word) n++;
    const y = b.y + l.head + i * l.row;
    const mine = look.selected && p.jobs[look.selected - 1]?.name === word;
    c.strokeStyle = mine ? k.text : k.line2;
    c.lineWidth = mine ? 2 : 1;
    c.beginPath(); c.moveTo(x, y + 1); c.lineTo(x, y + n * l.row - 4); c.stroke();
    c.fillStyle = mine ? k.text : word.startsWith(t('held')) ? k.held : word === t('free') ? k.running : k.text2;
    c.font = `${mine ? 600 : 400} 11px ${font()}`;
    c.fillText(word, x + 8, y + l.row / 2 + 3.5, l.side - 16);
    if (n > 1 && l.row * n > 26) { c.fillStyle = k.text3; c.font = `400 11px ${font()}`; c.fillText(t('{n} nodes', { n }), x + 8, y + l.row * 1.5 + 3.5, l.side - 16); }
    i += n;
  }
}
function outline(c: CanvasRenderingContext2D, p: Plain, l: Layout, k: Palette, look: Look, b: Layout['blocks'][number]): void {
  // Between small cells there is room for one pixel, and a wider line would hide them; the smallest have none.
  if (l.cell < 5) return;
  const tight = l.cell < 12;
  c.strokeStyle = k.text;
  c.lineWidth = tight ? 1 : 1.5;
  c.globalAlpha = 1;
  for (let i = 0; i < b.nodes.length; i++) {
    const node = b.nodes[i]!;
    const has = (n: number | undefined): boolean => n !== undefined && p.first[n + 1]! > p.first[n]! && p.owner[p.first[n]!] === look.selected && p.owner[p.first[n + 1]! - 1] === look.selected;
    if (has(node)) {
      let n = 1;
      while (has(b.nodes[i + n])) n++;
      if (tight) c.strokeRect(b.x + l.label - 0.5, b.y + l.head + i * l.row - 0.5, l.columns * l.cell, n * l.row);
      else c.strokeRect(b.x + l.label - 2.5, b.y + l.head + i * l.row - 2.5, l.columns * l.cell + 3, n * l.row + 2);
      i += n - 1;
      continue;
    }
    for (let g = p.first[node]!; g < p.first[node + 1]!; g++) {
      if (p.owner[g] !== look.selected) continue;
      let n = 1;
      while (g + n < p.first[node + 1]! && p.owner[g + n] === look.selected) n++;
      if (tight) c.strokeRect(b.x + l.label + (g - p.first[node]!) * l.cell - 0.5, b.y + l.head + i * l.row - 0.5, n * l.cell, l.row);
      else c.strokeRect(b.x + l.label + (g - p.first[node]!) * l.cell - 1.5, b.y + l.head + i * l.row - 1.5, n * l.cell + 1, l.row);
      g += n - 1;
    }
  }
}
