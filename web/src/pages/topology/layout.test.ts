import { expect, test } from 'vitest';
import type { Topology } from '../../shapes/topology';
import { fit, hit, layout, patched, placeOf, plain, tally } from './layout';

function made(racks: number, per: number, gpus = 8): Topology {
  const n = racks * per;
  const rack = Array.from({ length: n }, (_, i) => Math.floor(i / per));
  return {
    at: 0, nodes: rack.map((r, i) => `r${r}-n${i % per}`), states: Array(n).fill(0), gpus: Array(n).fill(gpus), model: Array(n).fill(0), models: ['A100'], rack, racks: Array.from({ length: racks }, (_, i) => `r${i}`),
    chain: Array(n).fill(-1), chains: [], vc: Array(n).fill(-1), vcs: [], jobs: [{ id: 'a~x', name: 'x', user: 'a', vc: '', queue: '', prio: 0, prioClass: '', state: 'RUNNING', oppo: true, started: 0 }], owner: [1, 4, 0, n * gpus - 6, -1, 2], bad: [], idle: [],
  };
}

test('run-lengths are undone and counted', () => {
  const p = plain(made(2, 2));
  expect([...p.owner.slice(0, 6)]).toEqual([1, 1, 1, 1, 0, 0]);
  expect([...p.owner.slice(-2)]).toEqual([-1, -1]);
  expect(tally(p)).toEqual({ used: 4, oppo: 4, free: 26, held: 2, off: 0 });
});
test('a difference touches what it names', () => {
  const p = patched(plain(made(2, 2)), { at: 1, owner: [4, 1], states: [3, 1], jobs: {} });
  expect([...p.changed].sort()).toEqual([0, 3]);
  expect(p.owner[4]).toBe(1);
  expect(tally(p)).toEqual({ used: 5, oppo: 5, free: 19, held: 0, off: 8 });
});
test('a point on a cell finds that very GPU, at three zooms', () => {
  const t = made(40, 16);
  const p = plain(t);
  for (const cell of [3, 21, 52]) {
    const l = layout(t, 'rack', cell, 1100);
    for (let i = 0; i < 1000; i++) {
      const node = (i * 7919) % t.nodes.length;
      const column = (i * 31) % 8;
      const at = placeOf(l, node)!;
      expect(hit(p, l, at.x + (column + 0.5) * l.cell, at.y + l.row / 2)).toEqual({ node, gpu: p.first[node]! + column });
    }
  }
});
test('beside the cells there is no GPU, outside nothing', () => {
  const t = made(2, 2);
  const l = layout(t, 'rack', 21, 1100);
  expect(hit(plain(t), l, 1, l.head + 2)).toEqual({ node: 0, gpu: -1 });
  expect(hit(plain(t), l, 5000, 5000)).toBeNull();
});
test('10,000 nodes fit on a screen', () => {
  const t = made(625, 16);
  const cell = fit(t, 'rack', 1150, 660);
  expect(layout(t, 'rack', cell, 1150).height).toBeLessThanOrEqual(cell > 1 ? 660 : 2000);
});
test('blocks never overlap', () => {
  const l = layout(made(9, 16), 'rack', 21, 900);
  for (const a of l.blocks) for (const b of l.blocks) if (a !== b) expect(a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y).toBe(true);
});
