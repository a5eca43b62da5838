/** Maps for tests, as the server sends them. */
import type { Names, Topology } from '../../shapes/topology';

/** Without stems in common: as good as a list. */
export const listed = (texts: string[]): Names => ({ stems: texts, widths: texts.map(() => 0), stem: texts.map((_, i) => i), number: [] });

/** The first four GPUs have an opportunistic job, and the last two are held for it. */
export function made(racks: number, per: number, gpus = 8): Topology {
  const n = racks * per;
  const rack = Array.from({ length: racks }, (_, i) => i);
  return {
    at: 600_000, nodes: listed(rack.flatMap((r) => Array.from({ length: per }, (_, i) => `r${r}-n${i}`))), states: [0, n], gpus: [gpus, n], model: [0, n], models: listed(['A100']),
    rack: rack.flatMap((r) => [r, per]), racks: listed(rack.map((r) => `r${r}`)),
    jobs: { ids: listed(['a~x']), sort: [0], sorts: [{ user: 'a', vc: '', queue: '', prio: 0, prioClass: '', state: 'RUNNING', oppo: true }] },
    owner: { who: [1, 0, -2], count: [4, n * gpus - 6, 2] }, bad: [], idle: [0, 4, 5, 1, 0, n * gpus - 5],
  };
}
