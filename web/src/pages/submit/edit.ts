/** Changing one value of a YAML text and nothing else: lines that are not meant, and comments, stay byte for byte. */
import { isMap, isScalar, isSeq, parseDocument, Scalar, stringify, type Document, type Node, type Pair, type YAMLMap } from 'yaml';

export type Path = (string | number)[];
export type Value = string | number | boolean | null;

export function parse(text: string): Document.Parsed | null {
  const doc = parseDocument(text, { keepSourceTokens: false, strict: false });
  return doc.errors.length ? null : doc;
}
export const at = (doc: Document | null, path: Path): unknown => {
  try { return doc?.getIn(path) ?? undefined; } catch { return undefined; }
};

/** Scalars as one line of text, quoted only if they must be. */
function scalar(value: Value): string { return stringify(value).trimEnd(); }

/** Sets the value at a path; null takes the key away. Text that is not YAML comes back as it was. */
export function edit(text: string, path: Path, value: Value): string {
  const doc = parse(text);
  if (!doc) return text;
  const node = doc.getIn(path, true) as Node | undefined;
  if (value === null) return node === undefined ? text : remove(text, doc, path);
  if (isScalar(node) && node.range && isPlain(node)) {
    if (node.value === value) return text;
    const [from, to] = node.range;
    const gap = from > 0 && text[from - 1] === ':' ? ' ' : '';
    return text.slice(0, from) + gap + scalar(value) + text.slice(to);
  }
  if (node === undefined || (isScalar(node) && node.value === null)) return insert(text, doc, path, value);
  doc.setIn(path, value);
  return doc.toString({ lineWidth: 0 });
}
/** Block scalars (| and >) are replaced as a whole; their range covers several lines. */
const isPlain = (node: Scalar): boolean => node.type !== 'BLOCK_FOLDED' && node.type !== 'BLOCK_LITERAL';

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at < 0 ? text.length : at;
}
const columnOf = (text: string, at: number): number => at - (text.lastIndexOf('\n', at - 1) + 1);

function insert(text: string, doc: Document, path: Path, value: Value): string {
  // The deepest map that exists; what is missing below it becomes new lines.
  for (let n = path.length - 1; n >= 0; n--) {
    const parent = n === 0 ? doc.contents : (doc.getIn(path.slice(0, n), true) as Node | undefined);
    if (!parent) continue;
    if (!isMap(parent) || (parent as YAMLMap).flow || !(parent as YAMLMap).items.length) break;
    const items = (parent as YAMLMap).items as Pair<Node, Node | null>[];
    const key = items.find((i) => isScalar(i.key) && i.key.value === path[n]);
    if (key) break;
    const first = items[0]!.key.range![0];
    const last = items.at(-1)!;
    const indent = ' '.repeat(columnOf(text, first));
    const until = lastByte(last);
    const end = lineEnd(text, Math.max(until - 1, 0));
    const lines = path.slice(n).map((k, i, all) => `${indent}${'  '.repeat(i)}${k}:${i === all.length - 1 ? ` ${scalar(value)}` : ''}`);
    return `${text.slice(0, end)}\n${lines.join('\n')}${text.slice(end)}`;
  }
  doc.setIn(path, value);
  return doc.toString({ lineWidth: 0 });
}
/** End of a pair's value without the comments and blank lines that follow it. */
function lastByte(pair: Pair<Node, Node | null>): number {
  let node: Node | null | undefined = pair.value;
  for (;;) {
    if (isMap(node) && node.items.length && !node.flow) { const p = node.items.at(-1) as Pair<Node, Node | null>; node = p.value ?? p.key; continue; }
    if (isSeq(node) && node.items.length && !node.flow) { node = node.items.at(-1) as Node; continue; }
    break;
  }
  return (node?.range ?? pair.key.range!)[1];
}

function remove(text: string, doc: Document, path: Path): string {
  const parent = path.length === 1 ? doc.contents : (doc.getIn(path.slice(0, -1), true) as Node);
  if (isMap(parent) && !parent.flow && parent.items.length > 1) {
    const pair = (parent.items as Pair<Node, Node | null>[]).find((i) => isScalar(i.key) && i.key.value === path.at(-1));
    if (pair) {
      const from = text.lastIndexOf('\n', pair.key.range![0] - 1) + 1;
      if (columnOf(text, pair.key.range![0]) === text.slice(from, pair.key.range![0]).search(/\S|$/)) {
        const end = lineEnd(text, Math.max(lastByte(pair) - 1, 0));
        return text.slice(0, from) + text.slice(Math.min(text.length, end + 1));
      }
    }
  }
  doc.deleteIn(path);
  return doc.toString({ lineWidth: 0 });
}

/** A stored Kubernetes object as a manifest that can be created: without what the server wrote into it. */
export function asNew(text: string): string {
  const doc = parse(text);
  if (!doc || at(doc, ['apiVersion']) === undefined || at(doc, ['metadata', 'uid']) === undefined) return text;
  for (const key of ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields', 'selfLink', 'ownerReferences', 'finalizers']) doc.deleteIn(['metadata', key]);
  doc.delete('status');
  if (at(doc, ['apiVersion']) === 'batch/v1' && at(doc, ['spec', 'manualSelector']) !== true) doc.deleteIn(['spec', 'selector']);
  for (const where of [['metadata', 'labels'], ['spec', 'template', 'metadata', 'labels']]) {
    for (const label of ['controller-uid', 'job-name', 'batch.kubernetes.io/controller-uid', 'batch.kubernetes.io/job-name']) if (doc.hasIn([...where, label])) doc.deleteIn([...where, label]);
    const left = doc.getIn(where);
    if (isMap(left) && !left.items.length) doc.deleteIn(where);
  }
  return doc.toString({ lineWidth: 0 });
}

/** Line and column of an offset, from 1. */
export function place(text: string, offset: number): { line: number; col: number } {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, col: offset - before.lastIndexOf('\n') };
}
