/** Where each node stands on the map. Pure: columns in, rectangles out, and back from a point to a GPU. */
import type { Plain } from './unpack';

export type Grouping = 'rack' | 'chain' | 'model';
export type Level = 'cluster' | 'rack' | 'node';
export const levelOf = (cell: number): Level => (cell < 17 ? 'cluster' : cell < 34 ? 'rack' : 'node');

export interface Block { name: string; note: number; nodes: number[]; x: number; y: number; w: number; h: number }
export interface Layout { level: Level; cell: number; row: number; columns: number; label: number; side: number; head: number; blocks: Block[]; width: number; height: number }

/** Nodes by group in the order of the columns. Large groups, and nodes without one, are cut into blocks. */
export function groups(t: Plain, by: Grouping): { name: string; nodes: number[] }[] {
  const index = by === 'rack' ? t.rack : by === 'chain' ? t.chain : t.model;
  const names = by === 'rack' ? t.racks : by === 'chain' ? t.chains : t.models;
  const map = new Map<string, number[]>();
  for (let i = 0; i < t.nodes.length; i++) {
    const name = names[index[i] ?? -1] ?? '';
    let list = map.get(name);
    if (!list) map.set(name, (list = []));
    list.push(i);
  }
  const out: { name: string; nodes: number[] }[] = [];
  for (const [name, nodes] of map) {
    const most = name ? 64 : 16;
    const step = name ? 32 : 16;
    if (nodes.length <= most) { out.push({ name, nodes }); continue; }
    for (let i = 0; i < nodes.length; i += step) out.push({ name: name ? (i === 0 ? name : '') : t.nodes[nodes[i]!]!, nodes: nodes.slice(i, i + step) });
  }
  return out;
}

/** GPUs of the largest node, as far as they are drawn beside each other. */
function widest(t: Plain): number {
  let most = 1;
  for (let n = 0; n < t.nodes.length; n++) most = Math.max(most, t.first[n + 1]! - t.first[n]!);
  return Math.min(16, most);
}

/** Blocks flow like words: left to right, then down. `cell` is the width of one GPU in pixels. */
export function layout(t: Plain, by: Grouping, cell: number, width: number): Layout {
  const level = levelOf(cell);
  const columns = widest(t);
  const row = level === 'cluster' ? Math.max(2, Math.round(cell * (cell < 4 ? 1 : 0.68))) : level === 'rack' ? Math.round(cell * 0.7) + 4 : 46;
  const label = level === 'cluster' ? 0 : level === 'rack' ? 64 : 96;
  const side = level === 'cluster' ? 0 : level === 'rack' ? 132 : 0;
  const head = level === 'cluster' ? (cell < 4 ? 4 : 18) : 26;
  const gap = level === 'cluster' ? (cell < 4 ? 4 : 14) : 26;
  const w = label + columns * cell + side;
  const blocks: Block[] = [];
  let x = 0;
  let y = 0;
  let tall = 0;
  for (const g of groups(t, by)) {
    const h = head + g.nodes.length * row;
    if (x > 0 && x + w > width) { x = 0; y += tall + gap; tall = 0; }
    blocks.push({ name: g.name, note: 0, nodes: g.nodes, x, y, w, h });
    x += w + gap;
    tall = Math.max(tall, h);
  }
  return { level, cell, row, columns, label, side, head, blocks, width: Math.max(w, width), height: y + tall };
}

/** The largest cell with which everything is on screen; a small cluster is shown near at once. */
export function fit(t: Plain, by: Grouping, width: number, height: number): number {
  for (const near of [120, 90, 64, 48, 26, 21]) {
    const l = layout(t, by, near, width);
    if (l.height <= height && l.blocks.every((b) => b.x + b.w <= width)) return near;
  }
  let low = 1;
  let high = 16.75;
  while (high - low > 0.25) {
    const mid = (low + high) / 2;
    if (layout(t, by, mid, width).height <= height) low = mid;
    else high = mid;
  }
  return Math.max(1, Math.floor(low * 4) / 4);
}

export interface Hit { node: number; gpu: number }
/** The GPU at a point of the map; gpu is -1 beside the cells. */
export function hit(p: Plain, l: Layout, x: number, y: number): Hit | null {
  for (const b of l.blocks) {
    if (x < b.x || x >= b.x + b.w || y < b.y + l.head || y >= b.y + b.h) continue;
    const node = b.nodes[Math.floor((y - b.y - l.head) / l.row)];
    if (node === undefined) return null;
    const column = Math.floor((x - b.x - l.label) / l.cell);
    const count = p.first[node + 1]! - p.first[node]!;
    return { node, gpu: column >= 0 && column < Math.min(count, l.columns) ? p.first[node]! + column : -1 };
  }
  return null;
}
/** Rectangle of a node's cells. */
export function placeOf(l: Layout, node: number): { x: number; y: number } | null {
  for (const b of l.blocks) {
    const i = b.nodes.indexOf(node);
    if (i >= 0) return { x: b.x + l.label, y: b.y + l.head + i * l.row };
  }
  return null;
}
