/** The map with its columns unpacked, and what differences do to it. Pure. */
import type { Cell, Cells, MapSort, Names, Runs, Topology, TopologyPatch } from '../../shapes/topology';

export interface MapJob extends MapSort { id: string; name: string }

export interface Tally { used: number; oppo: number; free: number; held: number; off: number }

export interface Plain {
  at: number;
  nodes: string[];
  states: number[];
  /** Number of the first GPU of each node, and one past the last. */
  first: Int32Array;
  /** Indexes into the lists below, -1 = none. */
  model: number[];
  rack: number[];
  models: string[];
  racks: string[];
  /** Of HiveD's cells, where there are some: the chain that each node is in, and the virtual cluster that it is bound to, if it is one. */
  chain: number[];
  chains: string[];
  vc: number[];
  vcs: string[];
  jobs: MapJob[];
  /** By GPU: 0 = free, k > 0 = jobs[k-1] is on it, -k = held for jobs[k-1]. */
  owner: Int32Array;
  /** When each GPU became free; 0 = not known. */
  freed: Float64Array;
  bad: Set<number>;
  sums: Tally;
  /** Nodes that differences have changed; whoever has drawn them takes them out. */
  changed: Set<number>;
}

export function runs(coded: Runs): number[] {
  const out: number[] = [];
  for (let i = 0; i + 1 < coded.length; i += 2) for (let n = coded[i + 1]!; n > 0; n--) out.push(coded[i]!);
  return out;
}

export function names(packed: Names): string[] {
  let next = 0;
  let number = 0;
  return packed.stem.map((s) => {
    const width = packed.widths[s]!;
    if (!width) return packed.stems[s]!;
    number += packed.number[next++]!;
    return packed.stems[s]! + String(number).padStart(width, '0');
  });
}

export function owners(packed: Topology['owner'], size: number): Int32Array {
  const out = new Int32Array(size);
  let highest = 0;
  let at = 0;
  for (let i = 0; i < packed.who.length; i++) {
    const who = packed.who[i]!;
    const job = who === 0 ? 0 : highest + 2 - Math.abs(who);
    highest = Math.max(highest, job);
    out.fill(who < 0 ? -job : job, at, (at += packed.count[i]!));
  }
  return out;
}

/** `user~job`, or `namespace/kind/name`: the part that people call it by. */
export const nameOf = (id: string): string => id.slice((id.includes('~') ? id.indexOf('~') : id.lastIndexOf('/')) + 1);

export function plain(t: Topology): Plain {
  const nodes = names(t.nodes);
  const gpus = runs(t.gpus);
  const first = new Int32Array(nodes.length + 1);
  for (let i = 0; i < nodes.length; i++) first[i + 1] = first[i]! + gpus[i]!;
  const size = first[nodes.length]!;
  const idle = runs(t.idle);
  const p: Plain = {
    at: t.at, nodes, states: runs(t.states), first, model: runs(t.model), models: names(t.models), rack: runs(t.rack), racks: names(t.racks), chain: [], chains: [], vc: [], vcs: [],
    jobs: names(t.jobs.ids).map((id, i) => ({ id, name: nameOf(id), ...t.jobs.sorts[t.jobs.sort[i]!]! })),
    owner: owners(t.owner, size), freed: Float64Array.from(idle, (m) => (m ? t.at - m * 60_000 : 0)), bad: new Set(t.bad),
    sums: { used: 0, oppo: 0, free: 0, held: 0, off: 0 }, changed: new Set(),
  };
  for (let n = 0; n < nodes.length; n++) count(p, n, 1);
  return p;
}

/** Adds the GPUs of a node to the sums, or takes them out. */
function count(p: Plain, node: number, by: 1 | -1): void {
  const off = p.states[node] !== 0;
  for (let g = p.first[node]!; g < p.first[node + 1]!; g++) {
    const o = p.owner[g]!;
    if (o > 0) { p.sums.used += by; if (p.jobs[o - 1]?.oppo) p.sums.oppo += by; } else if (off || p.bad.has(g)) p.sums.off += by;
    else if (o < 0) p.sums.held += by;
    else p.sums.free += by;
  }
}

/** Applies a difference in place and returns a new object, so that it is seen as changed. */
export function patched(p: Plain, d: TopologyPatch): Plain {
  const touched = new Set<number>();
  const other = new Set(Object.keys(d.jobs).map((k) => Number(k) + 1));
  for (let i = 0; i < d.owner.length; i += 2) touched.add(nodeOf(p, d.owner[i]!));
  for (let i = 0; i < d.states.length; i += 2) touched.add(d.states[i]!);
  if (d.bad) for (const g of [...d.bad, ...p.bad]) touched.add(nodeOf(p, g));
  if (other.size) for (let g = 0; g < p.owner.length; g++) if (p.owner[g] !== 0 && other.has(Math.abs(p.owner[g]!))) touched.add(nodeOf(p, g));
  for (const n of touched) count(p, n, -1);
  for (const [k, job] of Object.entries(d.jobs)) p.jobs[Number(k)] = { ...job, name: nameOf(job.id) };
  for (let i = 0; i + 1 < d.owner.length; i += 2) { p.owner[d.owner[i]!] = d.owner[i + 1]!; p.freed[d.owner[i]!] = d.owner[i + 1] === 0 ? d.at : 0; }
  for (let i = 0; i + 1 < d.states.length; i += 2) p.states[d.states[i]!] = d.states[i + 1]!;
  const next = { ...p, at: d.at, bad: d.bad ? new Set(d.bad) : p.bad };
  for (const n of touched) { count(next, n, 1); p.changed.add(n); }
  return next;
}

/** The chains and virtual clusters of nodes, from HiveD's cells. */
export function cellsOf(p: Plain, cells: Cells): Pick<Plain, 'chain' | 'chains' | 'vc' | 'vcs'> {
  const place = new Map(p.nodes.map((name, i) => [name, i]));
  const next = { chain: Array<number>(p.nodes.length).fill(-1), chains: [] as string[], vc: Array<number>(p.nodes.length).fill(-1), vcs: [] as string[] };
  const index = (list: string[], word: string): number => { const at = list.indexOf(word); return at >= 0 ? at : list.push(word) - 1; };
  const tenants = (c: Cell): string[] => (c.vc ? [c.vc] : (c.cellChildren ?? []).flatMap(tenants));
  const walk = (c: Cell, chain: string, above: string): void => {
    const node = c.isNodeLevel ? place.get(c.cellAddress.split('/').at(-1)!) : undefined;
    if (node === undefined) { for (const kid of c.cellChildren ?? []) walk(kid, chain, c.vc || above); return; }
    next.chain[node] = index(next.chains, chain);
    const held = new Set(above ? [above] : tenants(c));
    if (held.size === 1) next.vc[node] = index(next.vcs, [...held][0]!);
  };
  for (const root of cells.physicalCluster) walk(root, root.cellType, '');
  return next;
}

/** The node of a GPU. */
export function nodeOf(p: Plain, g: number): number {
  let low = 0;
  let high = p.nodes.length;
  while (high - low > 1) { const mid = (low + high) >> 1; if (p.first[mid]! <= g) low = mid; else high = mid; }
  return low;
}
