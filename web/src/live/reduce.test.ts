import { expect, test } from 'vitest';
import { changes, difference, letIn, snapshot } from './reduce';

const row = (id: string, state = 'RUNNING') => ({ id, state });
const start = () => snapshot({ rv: '1', at: 1, total: 3, counts: { RUNNING: 3 }, window: [0, 3], rows: [row('a'), row('b'), row('c')] });

test('a row that changes does so in place', () => {
  const list = difference(start(), { rv: '2', at: 2, total: 3, set: { b: row('b', 'FAILED') } }, true);
  expect(list.rows.get('b')).toEqual(row('b', 'FAILED'));
  expect(list.shown).toEqual(['a', 'b', 'c']);
  expect(changes(list)).toBe(0);
});
test('rows of the difference may be keyed by place as well as by id', () => {
  expect(difference(start(), { rv: '2', at: 2, total: 3, set: { 1: row('b', 'FAILED') } }, true).rows.get('b')).toEqual(row('b', 'FAILED'));
});
test('a new row at the top waits while the list is under the eyes', () => {
  const list = difference(start(), { rv: '2', at: 2, total: 4, set: { d: row('d') }, del: ['c'], order: ['d', 'a', 'b'] }, true);
  expect(list.shown).toEqual(['a', 'b', 'c']);
  expect(list.total).toBe(4);
  expect(list.shownTotal).toBe(3);
  expect(changes(list)).toBe(1);
  const now = letIn(list);
  expect(now.shown).toEqual(['d', 'a', 'b']);
  expect(now.shownTotal).toBe(4);
  expect(changes(now)).toBe(0);
});
test('it comes in at once when the list is free to move', () => {
  expect(difference(start(), { rv: '2', at: 2, total: 4, set: { d: row('d') }, order: ['d', 'a', 'b'] }, false).shown).toEqual(['d', 'a', 'b']);
});
test('a row that is gone stays on screen until changes are let in', () => {
  const list = difference(start(), { rv: '2', at: 2, total: 2, del: ['b'] }, true);
  expect(list.rows.has('b')).toBe(true);
  expect(changes(list)).toBe(1);
  expect(letIn(list).rows.has('b')).toBe(false);
});
test('runs of the order before keep their places beside each other', () => {
  expect(difference(start(), { rv: '2', at: 2, total: 3, set: { d: row('d') }, del: ['b'], order: ['d', [0, 1], [2, 3]] }, false).shown).toEqual(['d', 'a', 'c']);
});
test('a row that moves is one change', () => {
  expect(changes(difference(start(), { rv: '2', at: 2, total: 3, order: ['c', 'a', 'b'] }, true))).toBeGreaterThan(0);
});
test('thousands of differences leave no rows behind', () => {
  let list = start();
  for (let i = 0; i < 2000; i++) list = difference(list, { rv: String(i), at: i, total: 3, set: { x: row(`r${i}`) }, order: [`r${i}`, 'a', 'b'] }, false);
  expect(list.rows.size).toBe(3);
});
