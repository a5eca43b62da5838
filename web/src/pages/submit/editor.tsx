/** The YAML editor: CodeMirror in a shadow root, where its styles are constructed sheets and the page's policy holds. */
import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { Annotation, EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Diagnostic } from '../../shapes/calls';

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '12px', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '19px' },
  '.cm-gutters': { backgroundColor: 'var(--bg)', color: 'var(--text-3)', border: 'none', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--sel)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line-2)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--sel)', color: 'var(--text)' },
  '.cm-panels': { backgroundColor: 'var(--bg)', color: 'var(--text)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--failed)' },
});
const colours = syntaxHighlighting(HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--succeeded)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--stopping)' },
  { tag: tags.comment, color: 'var(--text-3)', fontStyle: 'italic' },
  { tag: [tags.meta, tags.keyword], color: 'var(--suspended)' },
]));

/** A change that came from the form is not told back to it: by then the form may be further, and both would push each other for ever. */
const outside = Annotation.define<boolean>();

export interface EditorProps { text: string; changed: (text: string) => void; diagnostics?: Diagnostic[]; label: string; submit?: () => void; readOnly?: boolean }

export default function Editor(p: EditorProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(p);
  now.current = p;
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' });
    root.replaceChildren();
    const v = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: p.text,
        extensions: [
          keymap.of([{ key: 'Mod-Enter', run: () => { now.current.submit?.(); return true; } }, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...completionKeymap, indentWithTab]),
          lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), closeBrackets(), autocompletion(), search({ top: true }), lintGutter(), yaml(), indentUnit.of('  '), look, colours,
          EditorView.contentAttributes.of({ 'aria-label': p.label, tabindex: '0' }), EditorState.readOnly.of(p.readOnly ?? false),
          EditorView.updateListener.of((u) => { if (u.docChanged && !u.transactions.some((x) => x.annotation(outside))) now.current.changed(u.state.doc.toString()); }),
        ],
      }),
    });
    view.current = v;
    return () => { v.destroy(); view.current = null; };
  }, []);
  // A change from outside (form, import) replaces only what differs, so that cursor and undo stay.
  useEffect(() => {
    const v = view.current;
    if (!v) return;
    const old = v.state.doc.toString();
    if (old === p.text) return;
    let from = 0;
    while (from < old.length && from < p.text.length && old[from] === p.text[from]) from++;
    let end = 0;
    while (end < old.length - from && end < p.text.length - from && old[old.length - 1 - end] === p.text[p.text.length - 1 - end]) end++;
    v.dispatch({ changes: { from, to: old.length - end, insert: p.text.slice(from, p.text.length - end) }, annotations: outside.of(true) });
  }, [p.text]);
  useEffect(() => {
    const v = view.current;
    if (!v) return;
    const list = (p.diagnostics ?? []).map((d) => {
      const line = v.state.doc.line(Math.min(Math.max(d.line, 1), v.state.doc.lines));
      const from = Math.min(line.to, line.from + Math.max(0, d.col - 1));
      return { from, to: Math.max(from, line.to), severity: d.severity, message: d.message };
    });
    v.dispatch(setDiagnostics(v.state, list));
  }, [p.diagnostics]);
  return <div class="editor" ref={host} />;
}
