import { expect, test } from 'vitest';
import { tickWord } from './format';

test('midnight has the name of its day, and no other tick but the first needs one', () => {
  const at = (d: number, h: number): number => new Date(2026, 10, d, h).getTime();
  const now = at(17, 15);
  expect([at(17, 22), at(18, 0), at(18, 2)].map((x, i) => tickWord(x, i, now))).toEqual(['22:00', '18 Nov', '02:00']);
  expect(tickWord(at(16, 4), 0, now)).toBe('16 Nov 04:00');
});
