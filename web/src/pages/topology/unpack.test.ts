import { expect, test } from 'vitest';
import type { Cell } from '../../shapes/topology';
import { made } from './made';
import { cellsOf, nameOf, names, owners, patched, plain } from './unpack';

test('columns are unpacked and counted', () => {
  const p = plain(made(2, 2));
  expect([...p.owner.slice(0, 6)]).toEqual([1, 1, 1, 1, 0, 0]);
  expect([...p.owner.slice(-2)]).toEqual([-1, -1]);
  expect(p.nodes).toEqual(['r0-n0', 'r0-n1', 'r1-n0', 'r1-n1']);
  expect(p.rack).toEqual([0, 0, 1, 1]);
  expect(p.jobs[0]).toMatchObject({ id: 'a~x', name: 'x', user: 'a' });
  expect([p.freed[3], p.freed[4], p.freed[5]]).toEqual([0, 300_000, 0]);
  expect(p.sums).toEqual({ used: 4, oppo: 4, free: 26, held: 2, off: 0 });
});
test('names are stems with numbers', () => {
  expect(names({ stems: ['r00-n', 'head', 'x'], widths: [2, 0, 1], stem: [0, 0, 1, 2, 0], number: [9, 1, -3, 5] })).toEqual(['r00-n09', 'r00-n10', 'head', 'x7', 'r00-n12']);
});
test('owners are told from the newest job', () => {
  expect([...owners({ who: [0, 1, 1, 3, -1, 2], count: [1, 2, 1, 1, 1, 1] }, 7)]).toEqual([0, 1, 1, 2, 1, -3, 3]);
});
test('the name of a job is the end of its id', () => {
  expect(['alice~a-b', 'ns/pytorchjob/a', ''].map(nameOf)).toEqual(['a-b', 'a', '']);
});
test('a difference touches what it names', () => {
  const p = patched(plain(made(2, 2)), { at: 700_000, owner: [4, 1, 0, 0], states: [3, 1], jobs: {} });
  expect([...p.changed].sort()).toEqual([0, 3]);
  expect([p.owner[4], p.freed[4], p.owner[0], p.freed[0]]).toEqual([1, 0, 0, 700_000]);
  expect(p.sums).toEqual({ used: 4, oppo: 4, free: 20, held: 0, off: 8 });
});
test('a job that is another one now is drawn and counted anew where it is', () => {
  const p = patched(plain(made(2, 2)), { at: 1, owner: [], states: [], jobs: { 0: { id: 'b~y', user: 'b', vc: '', queue: '', prio: 0, prioClass: '', state: 'STOPPING', oppo: false } } });
  expect([...p.changed].sort()).toEqual([0, 3]);
  expect(p.jobs[0]!.name).toBe('y');
  expect(p.sums.oppo).toBe(0);
});
test('cells say which chain and virtual cluster nodes are in', () => {
  const cell = (address: string, more: Partial<Cell> = {}): Cell => ({ cellType: 'T', cellAddress: address, cellState: '', cellHealthiness: '', cellPriority: 0, ...more });
  const node = (name: string, ...vcs: string[]): Cell => cell(`p/${name}`, { isNodeLevel: true, cellChildren: vcs.map((vc, i) => cell(`p/${name}/${i}`, vc ? { vc } : {})) });
  const cells = { physicalCluster: [cell('p', { cellType: 'POOL', cellChildren: [node('r0-n0', 'vc1', 'vc1'), node('r0-n1', 'vc1', 'vc2'), cell('q', { vc: 'vc2', cellChildren: [node('r1-n0')] })] })], virtualClusters: {} };
  expect(cellsOf(plain(made(2, 2)), cells)).toEqual({ chain: [0, 0, 0, -1], chains: ['POOL'], vc: [0, -1, 1, -1], vcs: ['vc1', 'vc2'] });
});
