import { expect, test } from 'vitest';
import { aroundWindow, visible } from './window';

test('never more than 80 rows are drawn', () => {
  for (const top of [0, 1000, 3_199_000]) {
    const [first, end] = visible(top, 4000, 32, 100_000);
    expect(end - first).toBeLessThanOrEqual(80);
    expect(first * 32).toBeLessThanOrEqual(top);
  }
});
test('an empty list draws nothing, the end of a list ends', () => {
  expect(visible(0, 800, 32, 0)).toEqual([0, 0]);
  expect(visible(99_990 * 32, 800, 32, 100_000)[1]).toBe(100_000);
});
test('scrolling within what is there asks for nothing', () => {
  expect(aroundWindow([20, 60], [0, 150], 1000)).toBeNull();
  expect(aroundWindow([0, 30], [0, 100], 20)).toBeNull();
});
test('near an edge a wider window is asked for, and it covers what is drawn', () => {
  const w = aroundWindow([130, 170], [0, 150], 1000)!;
  expect(w[0]).toBeLessThanOrEqual(130);
  expect(w[1]).toBeGreaterThanOrEqual(170);
  expect(w[1] - w[0]).toBeLessThanOrEqual(500);
  expect(aroundWindow([130, 170], w, 1000)).toBeNull();
});
