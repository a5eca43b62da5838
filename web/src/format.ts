/** How numbers, times and sizes read. */
import { language, t } from './text';

const number = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });
export const num = (n: number | null | undefined): string => (n === null || n === undefined ? '–' : number.format(n));
export const dash = (n: number | null | undefined): string => (n ? number.format(n) : '–');
export const percent = (part: number, whole: number): string => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : '–');
export const gpus = (n: number): string => (n === 0 ? t('CPU only') : n === 1 ? t('1 GPU') : t('{n} GPUs', { n: num(n) }));

export const jobs = (n: number): string => (n === 1 ? t('1 job') : t('{n} jobs', { n: num(n) }));

export const tasks = (n: number): string => (n === 1 ? t('1 task') : t('{n} tasks', { n: num(n) }));

/** `prod (100)`. Numbers that only order, as hashes of names do, say nothing to people. */
export const prio = (p: { class: string; number: number }): string =>
  p.class ? (Math.abs(p.number) < 1_000_000 ? `${p.class} (${p.number})` : p.class) : p.number ? String(p.number) : '';

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  let v = n;
  while (v >= 1024 && i < units.length - 1) { v /= 1024; i++; }
  return `${v >= 100 || i === 0 || Number.isInteger(v) ? Math.round(v) : v.toFixed(1)} ${units[i]}`;
}

/** `40 s`, `41 min`, `3 h 33`, `2 d 4 h`. */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 24) return m % 60 ? `${h} h ${String(m % 60).padStart(2, '0')}` : `${h} h`;
  const d = Math.floor(h / 24);
  return d < 100 && h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
}

const two = (n: number): string => String(n).padStart(2, '0');
/** `09:43`, with the day before it unless it is today's. */
export function clock(at: number | null | undefined, now = Date.now(), seconds = false): string {
  if (at === null || at === undefined) return '–';
  const d = new Date(at);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? `:${two(d.getSeconds())}` : ''}`;
  if (new Date(now).toDateString() === d.toDateString()) return time;
  return `${day(at)} ${time}`;
}
/** Under tick i of an axis: midnight has the name of its day, so that no other tick needs it, but for the first. */
export function tickWord(at: number, i: number, now: number): string {
  const d = new Date(at);
  if (d.getHours() + d.getMinutes() === 0) return day(at);
  return i === 0 ? clock(at, now) : clock(at, at);
}
// Kept: making one takes longer than all else in a row of a list.
const days = { en: new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' }), zh: new Intl.DateTimeFormat('zh-CN', { day: 'numeric', month: 'short' }) };
export const day = (at: number): string => days[language.value === 'zh' ? 'zh' : 'en'].format(at);
/** For titles: date, seconds and UTC. */
export function exact(at: number | null | undefined): string {
  if (at === null || at === undefined) return '';
  const d = new Date(at);
  const local = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return `${local} (${d.toISOString().slice(0, 19).replace('T', ' ')} UTC)`;
}

/** Stable colour of a tenant or job: slot 0…7. */
export function slot(key: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    const byte = key.charCodeAt(i);
    if (byte > 127) return hash(encoder.encode(key));
    h = Math.imul(h ^ byte, 0x01000193);
  }
  return (h >>> 13) % 8;
}
const encoder = new TextEncoder();
function hash(bytes: Uint8Array): number {
  let h = 0x811c9dc5;
  for (const byte of bytes) h = Math.imul(h ^ byte, 0x01000193);
  return (h >>> 13) % 8;
}
export const tint = (key: string): string => `k${slot(key)}`;

export function csv(rows: (string | number | null)[][]): string {
  // A cell that begins like a formula would be run by a spreadsheet.
  const cell = (v: string | number | null): string => {
    let s = v === null ? '' : String(v);
    if (typeof v === 'string' && /^[=+\-@\t]/.test(s)) s = `'${s}`;
    return /[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
  };
  return rows.map((r) => r.map(cell).join(',')).join('\r\n');
}
export function save(name: string, type: string, data: BlobPart): void {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
