import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { zh } from './zh';

function* sources(dir: string): Generator<string> {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* sources(path);
    else if (/\.tsx?$/.test(name) && !name.includes('.test.')) yield readFileSync(path, 'utf8');
  }
}
const keys = new Set([...sources('src')].flatMap((s) => [...s.matchAll(/\bt\('((?:[^'\\]|\\.)*)'/g)].map((m) => m[1]!)));

test('every text of the pages has a Chinese one', () => {
  expect([...keys].filter((k) => !(k in zh))).toEqual([]);
});
test('no Chinese text is left over, and places for values are the same', () => {
  expect(Object.keys(zh).filter((k) => !keys.has(k))).toEqual([]);
  const places = (s: string): string[] => [...s.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!).sort();
  for (const [en, text] of Object.entries(zh)) expect(places(text), en).toEqual(places(en));
});
