import { expect, test } from 'vitest';
import { fit, hit, layout, placeOf } from './layout';
import { made } from './made';
import { plain } from './unpack';

test('a point on a cell finds that very GPU, at three zooms', () => {
  const p = plain(made(40, 16));
  for (const cell of [3, 21, 52]) {
    const l = layout(p, 'rack', cell, 1100);
    for (let i = 0; i < 1000; i++) {
      const node = (i * 7919) % p.nodes.length;
      const column = (i * 31) % 8;
      const at = placeOf(l, node)!;
      expect(hit(p, l, at.x + (column + 0.5) * l.cell, at.y + l.row / 2)).toEqual({ node, gpu: p.first[node]! + column });
    }
  }
});
test('beside the cells there is no GPU, outside nothing', () => {
  const p = plain(made(2, 2));
  const l = layout(p, 'rack', 21, 1100);
  expect(hit(p, l, 1, l.head + 2)).toEqual({ node: 0, gpu: -1 });
  expect(hit(p, l, 5000, 5000)).toBeNull();
});
test('10,000 nodes fit on a screen', () => {
  const t = plain(made(625, 16));
  const cell = fit(t, 'rack', 1150, 660);
  expect(layout(t, 'rack', cell, 1150).height).toBeLessThanOrEqual(cell > 1 ? 660 : 2000);
});
test('blocks never overlap', () => {
  const l = layout(plain(made(9, 16)), 'rack', 21, 900);
  for (const a of l.blocks) for (const b of l.blocks) if (a !== b) expect(a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y).toBe(true);
});
