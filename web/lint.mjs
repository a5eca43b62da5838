// What the page's policy forbids must not be in the sources: strings that become markup, code or styles.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const FORBIDDEN = [
  [/\b(inner|outer)HTML\b/, 'innerHTML: build elements instead'],
  [/\binsertAdjacentHTML\b|\bdocument\.write\b|\bdangerouslySetInnerHTML\b|\bcreateContextualFragment\b|\bDOMParser\b/, 'markup from a string'],
  [/\beval\s*\(|\bnew Function\b|\bset(Timeout|Interval)\(\s*['"`]/, 'code from a string'],
  [/setAttribute\(\s*['"]style['"]/, 'a style attribute: set el.style instead'],
  [/\bstyle="/, 'an inline style'],
  [/\son[a-z]+="/, 'an inline handler'],
  [/https?:\/\/(?!www\.w3\.org\/2000\/svg|origin\.invalid)/, 'an address of another host'],
];
function* files(dir) {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (/\.(tsx?|html|css)$/.test(name)) yield path;
  }
}
let found = 0;
for (const path of [...files('src'), 'index.html', 'terminal.html']) {
  readFileSync(path, 'utf8').split('\n').forEach((line, i) => {
    for (const [pattern, why] of FORBIDDEN) if (pattern.test(line)) { console.error(`${path}:${i + 1}: ${why}`); found++; }
  });
}
console.log(found ? `${found} breaches` : 'lint: clean');
process.exit(found ? 1 : 0);
