import { expect, test } from 'vitest';
import { KINDS, readChanges, settings, spoken, words } from './changes';

test('a broken address is an empty list of changes', () => {
  for (const text of ['', '{', '7', '{"drain":1}']) expect(readChanges(text)).toEqual([]);
  expect(readChanges('[{"drain":{"nodes":["a"]}},3]')).toEqual([{ drain: { nodes: ['a'] } }]);
});
test('settings of a queue are read as the API takes them', () => {
  expect(settings('capability.gpu=64 state=closed')).toEqual({ 'capability.gpu': 64, state: 'closed' });
});
test('a form becomes a change, and the change reads as what it does', () => {
  const drain = KINDS.find((k) => k.key === 'drain')!;
  const change = { drain: drain.make({ nodes: 'a, b  c' }), at: '2h' };
  expect(change.drain).toEqual({ nodes: ['a', 'b', 'c'] });
  expect(words(change).text).toBe('a, b, c (in 2h)');
  expect(words({ drain: 7 }).text).toContain('7');
});
test('lengths of time read as on other pages', () => {
  expect(spoken('4 jobs start earlier (median 154m), 0 later; queue h1 waits 8h less.')).toBe('4 jobs start earlier (median 2 h 34), 0 later; queue h1 waits 8 h less.');
});
