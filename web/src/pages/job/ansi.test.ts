import { expect, test } from 'vitest';
import { level, pieces } from './ansi';

test('colours become classes, everything else of the codes is dropped', () => {
  expect(pieces('\u001b[1;31merror\u001b[0m: x')).toEqual([{ text: 'error', cls: 'a1 a31' }, { text: ': x', cls: '' }]);
  expect(pieces('a\u001b[2Kb')).toEqual([{ text: 'a', cls: '' }, { text: 'b', cls: '' }]);
  expect(pieces('\u001b[38;5;196mx').map((p) => p.text).join('')).toBe('x');
  expect(pieces('\u001b]0;title\u0007y').map((p) => p.text).join('')).toBe('y');
});
test('markup is text', () => { expect(pieces('<img src=x onerror=alert(1)>')[0]!.text).toBe('<img src=x onerror=alert(1)>'); });
test('levels are words, not parts of words', () => {
  expect(level('RuntimeError: x')).toBe('');
  expect(level('ERROR x')).toBe('error');
  expect(level('terrors')).toBe('');
  expect(level('WARN x')).toBe('warn');
});
