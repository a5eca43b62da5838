/**
 * Texts. English is the key and the text; every other language is one table. `t('{n} GPUs', {n: 3})`.
 * The tables are complete: a test reads every key out of the sources and compares.
 */
import { signal } from '@preact/signals';

export type Language = 'en' | 'zh';
export const language = signal<Language>('en');
const table = signal<Record<string, string>>({});

export function t(key: string, values?: Record<string, string | number>): string {
  const text = table.value[key] ?? key;
  if (!values) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

export async function speak(to: Language): Promise<void> {
  table.value = to === 'zh' ? (await import('./zh')).zh : {};
  language.value = to;
  document.documentElement.lang = to === 'zh' ? 'zh-CN' : 'en';
  remember(to);
}
function remember(to: Language): void {
  try { localStorage.setItem('language', to); } catch { /* private window */ }
}
export function firstLanguage(): Language {
  try {
    const kept = localStorage.getItem('language');
    if (kept === 'en' || kept === 'zh') return kept;
  } catch { /* private window */ }
  return navigator.language.startsWith('zh') ? 'zh' : 'en';
}
