/** Dialogs and toasts. One dialog at a time; Escape closes it and gives focus back. */
import { signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Failed } from '../api';
import { A } from '../state/route';
import { Icon } from './icon';

interface Shown { body: () => ComponentChildren; wide: boolean; cls: string; label: string }
const shown = signal<Shown | null>(null);
export const dialogOpen = (): boolean => shown.value !== null;
export function showDialog(label: string, body: () => ComponentChildren, options: { wide?: boolean; cls?: string } = {}): void {
  shown.value = { label, body, wide: options.wide ?? false, cls: options.cls ?? '' };
}
export function closeDialog(): void { shown.value = null; }

export function Dialogs(): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  const now = shown.value;
  useEffect(() => {
    if (!now) return;
    const before = document.activeElement as HTMLElement | null;
    (box.current?.querySelector<HTMLElement>('[data-first]') ?? box.current?.querySelector<HTMLElement>('input, select, textarea, button'))?.focus();
    const key = (e: KeyboardEvent): void => {
      if (e.key === 'Escape') { e.stopPropagation(); closeDialog(); }
      if (e.key === 'Tab') keepInside(e, box.current!);
    };
    document.addEventListener('keydown', key, true);
    return () => { document.removeEventListener('keydown', key, true); before?.focus?.(); };
  }, [now]);
  if (!now) return null;
  return (
    <div class="sheet-back" onPointerDown={(e) => { if (e.target === e.currentTarget) closeDialog(); }}>
      <div ref={box} class={`dialog ${now.wide ? 'wide' : ''} ${now.cls}`} role="dialog" aria-modal="true" aria-label={now.label}>{now.body()}</div>
    </div>
  );
}
function keepInside(e: KeyboardEvent, box: HTMLElement): void {
  const all = [...box.querySelectorAll<HTMLElement>('a[href], button:not(:disabled), input, select, textarea, [tabindex="0"]')];
  const first = all[0];
  const last = all.at(-1);
  if (e.shiftKey && document.activeElement === first) { e.preventDefault(); last?.focus(); }
  else if (!e.shiftKey && document.activeElement === last) { e.preventDefault(); first?.focus(); }
}

interface Toast { n: number; text: string; href: string; word: string }
const toasts = signal<Toast[]>([]);
let count = 0;
/** Only for what the user did and cannot see on this page. */
export function toast(text: string, href = '', word = ''): void {
  const n = ++count;
  toasts.value = [...toasts.value.slice(-2), { n, text, href, word }];
  setTimeout(() => gone(n), 5000);
}
function gone(n: number): void {
  if (document.querySelector('.toasts:hover')) { setTimeout(() => gone(n), 1000); return; }
  toasts.value = toasts.value.filter((x) => x.n !== n);
}
export const Toasts = (): JSX.Element => (
  <div class="toasts" role="status">
    {toasts.value.map((x) => <div class="toast" key={x.n}><span class="SUCCEEDED"><Icon name="check" /></span><span>{x.text}</span>{x.href ? <A class="link" href={x.href}>{x.word}</A> : null}</div>)}
  </div>
);

export const said = (e: unknown): string => (e instanceof Failed || e instanceof Error ? e.message : String(e));
