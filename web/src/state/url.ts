/** The query of the address is the state of a page. Pure functions; hooks are in use.ts. */
import type { JobQuery } from '../shapes/live';

const LISTS = ['user', 'vc', 'queue', 'state', 'prio', 'kind', 'tag', 'node'] as const;
export type ListField = (typeof LISTS)[number];
export const LIST_FIELDS: readonly ListField[] = LISTS;
const GROUPS = ['user', 'vc', 'queue', 'state', 'prio', 'kind', 'tag'];

/** Time filters: `24h`, `7d`, or milliseconds. */
export function since(text: string, now: number): number | undefined {
  const m = /^(\d+)([mhd])$/.exec(text);
  if (m) return now - Number(m[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000 }[m[2] as 'm' | 'h' | 'd'];
  return /^\d{12,}$/.test(text) ? Number(text) : undefined;
}

/** The job query that an address asks for. Relative times are rounded to the minute, so that the same address stays the same query. */
export function jobQuery(search: string, now: number): JobQuery {
  const p = new URLSearchParams(search);
  const out: JobQuery = {};
  for (const f of LISTS) {
    const values = (p.get(f) ?? '').split(',').filter(Boolean);
    if (values.length) out[f] = values;
  }
  const q = p.get('q')?.trim();
  if (q) out.q = q;
  const minute = Math.floor(now / 60_000) * 60_000;
  const from = since(p.get('from') ?? '', minute);
  const to = since(p.get('to') ?? '', minute);
  if (from !== undefined) out.from = from;
  if (to !== undefined) out.to = to;
  out.sort = p.get('sort') || '-submitted';
  const group = p.get('group');
  if (group && GROUPS.includes(group)) out.group = group as NonNullable<JobQuery['group']>;
  return out;
}

/** The address with some values changed; null or empty takes one away. Order of the others stays. */
export function withQuery(search: string, changes: Record<string, string | string[] | null | undefined>): string {
  const p = new URLSearchParams(search);
  for (const [k, v] of Object.entries(changes)) {
    const text = Array.isArray(v) ? v.join(',') : v;
    if (text) p.set(k, text);
    else p.delete(k);
  }
  const text = p.toString().replaceAll('%2C', ',').replaceAll('%7E', '~').replaceAll('%2F', '/');
  return text ? `?${text}` : '';
}

/** Sorting by a column: first as that column is mostly wanted, then the other way. */
export function nextSort(now: string, column: string): string {
  const downFirst = ['submitted', 'duration', 'gpus', 'tasks', 'retries', 'prio', 'ended'].includes(column);
  if (now === column) return `-${column}`;
  if (now === `-${column}`) return column;
  return downFirst ? `-${column}` : column;
}

/** A job's id and what follows it in a page's path: `alice~a/logs`, `ns/kind/name/events`. */
export function splitJobPath(rest: string): { id: string; tab: string[] } {
  const parts = rest.split('/').filter(Boolean).map(decodeURIComponent);
  const n = parts[0]?.includes('~') || parts[0]?.includes('/') ? 1 : 3;
  return { id: parts.slice(0, n).join('/'), tab: parts.slice(n) };
}
export const jobHref = (id: string, tab = ''): string => `/jobs/${id.split('/').map(encodeURIComponent).join('/').replaceAll('%7E', '~')}${tab ? `/${tab}` : ''}`;
