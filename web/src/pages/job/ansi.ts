/** Colours of a terminal in a line of a log, as pieces of text with classes; everything else of the escape codes is dropped. */
export interface Piece { text: string; cls: string }

export function pieces(line: string): Piece[] {
  if (!line.includes('\u001b')) return [{ text: line, cls: '' }];
  const out: Piece[] = [];
  let cls = '';
  let last = 0;
  const escape = /\u001b(?:\[([0-9;]*)([A-Za-z])|\][^\u0007]*(?:\u0007|$)|.)/g;
  for (let m = escape.exec(line); m; m = escape.exec(line)) {
    if (m.index > last) out.push({ text: line.slice(last, m.index), cls });
    if (m[2] === 'm') cls = style(cls, (m[1] || '0').split(';').map(Number));
    last = escape.lastIndex;
  }
  if (last < line.length) out.push({ text: line.slice(last), cls });
  return out;
}
function style(cls: string, codes: number[]): string {
  let set = new Set(cls.split(' ').filter(Boolean));
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i]!;
    if (c === 0) set = new Set();
    else if (c === 1) set.add('a1');
    else if (c === 22) set.delete('a1');
    else if (c === 39) set = new Set([...set].filter((x) => x === 'a1'));
    else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : 4;
    else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) { set = new Set([...set].filter((x) => x === 'a1')); const n = c >= 90 ? c - 60 : c; if (n !== 37) set.add(`a${n}`); }
  }
  return [...set].join(' ');
}
/** Whether a line looks like an error or a warning. */
export function level(line: string): '' | 'error' | 'warn' {
  const head = line.slice(0, 400);
  if (/\b(error|fatal|traceback|exception|critical|panic|out of memory)\b/i.test(head)) return 'error';
  return /\b(warn|warning)\b/i.test(head) ? 'warn' : '';
}
