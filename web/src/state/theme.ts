import { signal } from '@preact/signals';

export type Theme = 'light' | 'dark' | 'system';
export const theme = signal<Theme>('system');
/** What is shown: `system` resolved. */
export const shownTheme = signal<'light' | 'dark'>('light');
const dark = matchMedia('(prefers-color-scheme: dark)');

function show(): void {
  shownTheme.value = theme.value === 'system' ? (dark.matches ? 'dark' : 'light') : theme.value;
  document.documentElement.dataset.theme = shownTheme.value;
}
export function setTheme(to: Theme): void {
  theme.value = to;
  try { localStorage.setItem('theme', to); } catch { /* private window */ }
  show();
}
export function startTheme(): void {
  try {
    const kept = localStorage.getItem('theme');
    if (kept === 'light' || kept === 'dark') theme.value = kept;
  } catch { /* private window */ }
  dark.addEventListener('change', show);
  show();
}
/** The value of a colour of tokens.css, for canvases. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
