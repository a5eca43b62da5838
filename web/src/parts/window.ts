/** Which rows are on screen, and which the server should send. Pure. */
import type { Window } from '../shapes/live';

const OVER = 8;
/** Rows to draw: those on screen and a few around them; never more than 80. */
export function visible(top: number, height: number, row: number, total: number): Window {
  const first = Math.max(0, Math.floor(top / row) - OVER);
  const end = Math.min(total, Math.ceil((top + height) / row) + OVER, first + 80);
  return [Math.min(first, Math.max(0, total - 1)), Math.max(end, 0)];
}

/** A new window if what is drawn comes near the edge of what is there; null while it does not. Cut in steps of 50, so that scrolling asks seldom. */
export function aroundWindow(drawn: Window, have: Window, total: number): Window | null {
  const near = 10;
  const low = drawn[0] - near < have[0] && have[0] > 0;
  const high = drawn[1] + near > have[1] && have[1] < total;
  if (!low && !high) return null;
  const first = Math.max(0, Math.floor((drawn[0] - 60) / 50) * 50);
  const end = Math.min(first + 500, Math.ceil((drawn[1] + 60) / 50) * 50);
  return first === have[0] && end === have[1] ? null : [first, end];
}
