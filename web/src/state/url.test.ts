import { expect, test } from 'vitest';
import { jobHref, jobQuery, nextSort, since, splitJobPath, withQuery } from './url';

test('filters of the address become the query, unknown words are ignored', () => {
  expect(jobQuery('?vc=vc1,default&state=WAITING&q= llama &sort=-gpus&group=user&nonsense=1', 0)).toEqual({ vc: ['vc1', 'default'], state: ['WAITING'], q: 'llama', sort: '-gpus', group: 'user' });
  expect(jobQuery('?group=drop table', 0)).toEqual({ sort: '-submitted' });
});
test('a relative time is the same query within a minute', () => {
  expect(jobQuery('?from=24h', 100_000_001)).toEqual(jobQuery('?from=24h', 100_019_999));
  expect(since('7d', 1e12)).toBe(1e12 - 7 * 86_400_000);
  expect(since('tomorrow', 0)).toBeUndefined();
});
test('changing one value keeps the others, commas and ids readable', () => {
  expect(withQuery('?vc=vc1&sort=name', { state: ['WAITING', 'RUNNING'] })).toBe('?vc=vc1&sort=name&state=WAITING,RUNNING');
  expect(withQuery('?sel=x', { sel: 'alice~a' })).toBe('?sel=alice~a');
  expect(withQuery('?a=1', { a: null })).toBe('');
});
test('a second click turns the sort round', () => {
  expect(nextSort('-submitted', 'name')).toBe('name');
  expect(nextSort('name', 'name')).toBe('-name');
  expect(nextSort('name', 'gpus')).toBe('-gpus');
});
test('job ids of both kinds stand in a path', () => {
  expect(splitJobPath('alice~a/logs')).toEqual({ id: 'alice~a', tab: ['logs'] });
  expect(splitJobPath('default/pytorchjob/x/tasks/worker/3')).toEqual({ id: 'default/pytorchjob/x', tab: ['tasks', 'worker', '3'] });
  expect(jobHref('alice~a', 'logs')).toBe('/jobs/alice~a/logs');
  for (const id of ['alice~a', 'ns/mpijob/b.c']) expect(splitJobPath(jobHref(id).slice('/jobs/'.length)).id).toBe(id);
});
