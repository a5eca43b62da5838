/**
 * A live window of rows, pure. What is on screen (`shown`) and what the server last said (`latest`) are two orders over one
 * set of rows: a row that changes does so in place, rows that would move, appear or go wait until they are let in.
 */
import type { Tally } from '../shapes/base';
import type { Difference, Group, Snapshot, Window } from '../shapes/live';

export interface Row { id: string }
export interface List<R extends Row> {
  rv: string;
  at: number;
  total: number;
  counts: Tally;
  groups: Group[];
  window: Window;
  rows: Map<string, R>;
  shown: string[];
  latest: string[];
  /** Total that belongs to `shown`. */
  shownTotal: number;
}

export const emptyList = <R extends Row>(): List<R> => ({
  rv: '', at: 0, total: 0, counts: {}, groups: [], window: [0, 0], rows: new Map(), shown: [], latest: [], shownTotal: 0,
});

export function isSnapshot(m: object): m is Snapshot<Row> { return 'rows' in m; }

export function snapshot<R extends Row>(m: Snapshot<R>): List<R> {
  const ids = m.rows.map((r) => r.id);
  return {
    rv: m.rv, at: m.at, total: m.total, counts: m.counts ?? {}, groups: m.groups ?? [], window: m.window,
    rows: new Map(m.rows.map((r) => [r.id, r])), shown: ids, latest: ids, shownTotal: m.total,
  };
}

/** `hold`: the list is under the eyes, do not move it. */
export function difference<R extends Row>(list: List<R>, m: Difference<R>, hold: boolean): List<R> {
  const rows = new Map(list.rows);
  for (const row of Object.values(m.set ?? {})) rows.set(row.id, row);
  let latest = list.latest;
  if (m.order) latest = m.order.flatMap((x) => (typeof x === 'string' ? x : list.latest.slice(x[0], x[1])));
  else if (m.del?.length) latest = latest.filter((id) => !m.del!.includes(id));
  const next = { ...list, rv: m.rv, at: m.at, total: m.total, counts: m.counts ?? list.counts, groups: m.groups ?? list.groups, rows, latest };
  return hold ? prune(next) : letIn(next);
}

/** What waits comes in. */
export function letIn<R extends Row>(list: List<R>): List<R> {
  return prune({ ...list, shown: list.latest, shownTotal: list.total });
}

/** How many rows would move, appear or go. */
export function changes<R extends Row>(list: List<R>): number {
  if (list.shown === list.latest) return Math.abs(list.total - list.shownTotal);
  const was = new Map(list.shown.map((id, i) => [id, i]));
  let n = 0;
  let last = -1;
  for (const id of list.latest) {
    const i = was.get(id);
    if (i === undefined) n++;
    else if (i < last) n++;
    else last = i;
  }
  const now = new Set(list.latest);
  for (const id of list.shown) if (!now.has(id)) n++;
  // One that comes at the top pushes one out at the bottom: that is one change, not two.
  const pushed = Math.max(0, list.shown.length - [...list.shown].filter((id) => now.has(id)).length - Math.max(0, list.shownTotal - list.total));
  return Math.max(n - pushed, Math.abs(list.total - list.shownTotal), 0);
}

function prune<R extends Row>(list: List<R>): List<R> {
  const keep = new Set([...list.shown, ...list.latest]);
  for (const id of list.rows.keys()) if (!keep.has(id)) list.rows.delete(id);
  return list;
}
