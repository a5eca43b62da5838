/** Keys that hold everywhere. None fires inside a field, and all can be switched off. */
import { signal } from '@preact/signals';
import { togglePause } from '../live/use';
import { go } from './route';

export const palette = signal(false);
export const sheet = signal(false);
export const keysOff = signal(false);
try { keysOff.value = localStorage.getItem('keys') === 'off'; } catch { /* private window */ }
export function setKeys(on: boolean): void {
  keysOff.value = !on;
  try { localStorage.setItem('keys', on ? 'on' : 'off'); } catch { /* private window */ }
}

/** Keys of the page that is open; a page sets them while it is shown. */
const local = new Map<string, () => void>();
export function keysOf(keys: Record<string, () => void>): () => void {
  for (const [k, f] of Object.entries(keys)) local.set(k, f);
  return () => { for (const [k, f] of Object.entries(keys)) if (local.get(k) === f) local.delete(k); };
}

const PLACES: Record<string, string> = { h: '/', j: '/jobs', s: '/submit', t: '/topology', q: '/queues', n: '/nodes', w: '/whatif' };
export function inField(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) || !!el.shadowRoot) && (el as HTMLInputElement).type !== 'checkbox';
}

export function startKeys(): void {
  let after = 0;
  addEventListener('keydown', (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') { e.preventDefault(); palette.value = !palette.value; return; }
    if (keysOff.value || e.ctrlKey || e.metaKey || e.altKey || inField(e.composedPath()[0] ?? e.target)) return;
    if (document.querySelector('[role=dialog]')) return;
    if (after && Date.now() - after < 1500 && PLACES[e.key]) { after = 0; e.preventDefault(); go(PLACES[e.key]!); return; }
    after = 0;
    const onButton = e.key === 'Enter' && (e.target as HTMLElement).closest('a,button');
    if (e.key === 'g') after = Date.now();
    else if (e.key === '?') sheet.value = true;
    else if (e.key === '/') { e.preventDefault(); const f = document.querySelector<HTMLInputElement>('[data-find]'); if (f) f.focus(); else palette.value = true; }
    else if (e.key === '.') togglePause();
    else if (!onButton && local.has(e.key)) { e.preventDefault(); local.get(e.key)!(); }
  });
}
