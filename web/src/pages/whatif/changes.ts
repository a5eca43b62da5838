/** Kinds of changes: what is asked for in the form, and how a change reads. The address holds them as the API takes them. */
import { span } from '../../format';
import type { WhatifChange } from '../../shapes/calls';
import { t } from '../../text';

export interface Field { name: string; word: () => string; hint?: string; kind?: 'number' | 'text' | 'long'; optional?: boolean; suggest?: 'node' | 'queue' | 'priority' }
export interface Kind { key: string; word: () => string; fields: Field[]; make: (f: Record<string, string>) => unknown; say: (body: never) => string }

const list = (text: string | undefined): string[] => (text ?? '').split(/[\s,]+/).filter(Boolean);
const several = (names: string[]): string => names.join(', ');
/** `capability.gpu=64 weight=2` as an object; numbers are numbers. */
export function settings(text: string): Record<string, string | number> {
  return Object.fromEntries(list(text).map((one) => { const [k, v = ''] = one.split('='); return [k!, v !== '' && !Number.isNaN(Number(v)) ? Number(v) : v]; }));
}

export const KINDS: Kind[] = [
  { key: 'addNodes', word: () => t('Add nodes'), fields: [{ name: 'count', word: () => t('Number'), kind: 'number', hint: '4' }, { name: 'gpus', word: () => t('GPUs per node'), kind: 'number', hint: '8' }, { name: 'model', word: () => t('Model'), optional: true }],
    make: (f) => ({ count: Number(f['count']), gpus: Number(f['gpus']), ...(f['model'] ? { model: f['model'] } : {}) }), say: (b: { count: number; gpus: number; model?: string }) => `${b.count} × ${b.gpus} GPUs${b.model ? ` ${b.model}` : ''}` },
  { key: 'drain', word: () => t('Drain nodes'), fields: [{ name: 'nodes', word: () => t('Nodes'), hint: 'r01-n01, r01-n02', suggest: 'node' }], make: (f) => ({ nodes: list(f['nodes']) }), say: (b: { nodes: string[] }) => several(b.nodes) },
  { key: 'removeNodes', word: () => t('Remove nodes'), fields: [{ name: 'nodes', word: () => t('Nodes'), hint: 'r01-n01, r01-n02', suggest: 'node' }], make: (f) => ({ nodes: list(f['nodes']) }), say: (b: { nodes: string[] }) => several(b.nodes) },
  { key: 'stop', word: () => t('Stop jobs'), fields: [{ name: 'jobs', word: () => t('Jobs'), hint: 'default/job/train' }], make: (f) => ({ jobs: list(f['jobs']) }), say: (b: { jobs: string[] }) => several(b.jobs) },
  { key: 'submit', word: () => t('Submit a job'), fields: [{ name: 'manifest', word: () => t('Manifest'), kind: 'long' }, { name: 'count', word: () => t('Number'), kind: 'number', optional: true }], make: async (f) => ({ manifest: (await import('yaml')).parse(f['manifest'] ?? '') as unknown, ...(f['count'] ? { count: Number(f['count']) } : {}) }), say: (b: { manifest: { metadata?: { name?: string } }; count?: number }) => `${b.manifest.metadata?.name ?? ''}${b.count ? ` × ${b.count}` : ''}` },
  { key: 'priority', word: () => t('Change priority of a job'), fields: [{ name: 'job', word: () => t('Job'), hint: 'default/job/train' }, { name: 'class', word: () => t('Priority class'), suggest: 'priority' }], make: (f) => ({ job: f['job'], class: f['class'] }), say: (b: { job: string; class: string }) => `${b.job} → ${b.class}` },
  { key: 'lasts', word: () => t('Duration of a job'), fields: [{ name: 'job', word: () => t('Job'), hint: 'default/job/train' }, { name: 'duration', word: () => t('Duration'), hint: '2h' }], make: (f) => ({ job: f['job'], duration: f['duration'] }), say: (b: { job: string; duration: string }) => `${b.job}, ${b.duration}` },
  { key: 'queue', word: () => t('Change a queue'), fields: [{ name: 'name', word: () => t('Queue'), suggest: 'queue' }, { name: 'set', word: () => t('Settings'), hint: 'capability.gpu=64 weight=2' }], make: (f) => ({ name: f['name'], set: settings(f['set'] ?? '') }), say: (b: { name: string; set: Record<string, unknown> }) => `${b.name}: ${Object.entries(b.set).map(([k, v]) => `${k}=${String(v)}`).join(' ')}` },
  { key: 'hived', word: () => t('Other cells (HiveD)'), fields: [{ name: 'text', word: () => t('Configuration'), kind: 'long' }], make: (f) => ({ text: f['text'] }), say: (b: { text: string }) => `${b.text.split('\n').length} lines` },
  { key: 'policy', word: () => t('Other policy'), fields: [{ name: 'text', word: () => t('Configuration'), kind: 'long', hint: 'backfill: fifo' }], make: (f) => ({ text: f['text'] }), say: (b: { text: string }) => b.text.split('\n')[0]! },
];
export const kindOf = (change: WhatifChange): Kind | undefined => KINDS.find((k) => k.key in change);
export function words(change: WhatifChange): { title: string; text: string } {
  const kind = kindOf(change);
  let text = '';
  try { text = kind ? kind.say(change[kind.key] as never) : JSON.stringify(change); } catch { text = JSON.stringify(change); }
  return { title: kind?.word() ?? '?', text: change['at'] ? `${text} (${t('in {span}', { span: String(change['at']) })})` : text };
}
/** What an address says; a broken link is an empty list. */
export function readChanges(text: string): WhatifChange[] {
  try {
    const value: unknown = JSON.parse(text || '[]');
    return Array.isArray(value) ? value.filter((c): c is WhatifChange => typeof c === 'object' && c !== null) : [];
  } catch { return []; }
}

/** The server's sentence with times as pages say them: `154m` is 2 h 34. */
export const spoken = (text: string): string => text.replace(/\b(\d+)([smhd])\b/g, (_, n: string, unit: 's' | 'm' | 'h' | 'd') => span(Number(n) * { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]));
