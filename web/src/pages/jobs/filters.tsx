import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../api';
import { num } from '../../format';
import { Glyph, stateWord } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { useReveal } from '../../parts/reveal';
import { Drop } from '../../parts/small';
import type { Tally } from '../../shapes/base';
import type { Suggest } from '../../shapes/calls';
import { STATES } from '../../shapes/job';
import type { JobQuery } from '../../shapes/live';
import { A, goQuery, param, path, query } from '../../state/route';
import { withQuery, type ListField } from '../../state/url';
import { t } from '../../text';
import { CHOOSABLE, columnWord } from './columns';

const FIELDS: ListField[] = ['user', 'vc', 'queue', 'prio', 'kind', 'tag', 'node'];
const fieldWord = (f: string): string => ({ user: t('User'), vc: t('VC'), queue: t('Queue'), prio: t('Priority'), kind: t('Kind'), tag: t('Tag'), node: t('Node'), from: t('Submitted'), state: t('Status') })[f] ?? f;
const TIMES: [string, () => string][] = [['1h', () => t('last hour')], ['24h', () => t('last 24 h')], ['7d', () => t('last 7 days')], ['30d', () => t('last 30 days')]];

export function Filters({ query: asked }: { query: JobQuery }): JSX.Element {
  const set = (changes: Record<string, string | string[] | null>): void => goQuery(withQuery(query.value, changes));
  const from = param('from');
  return (
    <div class="filters">
      <FindBox />
      {from ? <span class="chip"><button>{fieldWord('from')}<b>{TIMES.find(([v]) => v === from)?.[1]() ?? from}</b></button><button class="x" aria-label={t('Remove filter {name}', { name: fieldWord('from') })} onClick={() => set({ from: null })}>×</button></span> : null}
      {FIELDS.filter((f) => asked[f]?.length).map((f) => <Chip key={f} field={f} values={asked[f]!} set={(v) => set({ [f]: v })} />)}
      <Drop cls="dashed" label={`+ ${t('Filter')}`}>{(close) => <AddFilter close={close} asked={asked} set={set} />}</Drop>
      <span class="grow" />
      <Drop label={<><span class="faint">{t('Group by')}</span> {asked.group ? fieldWord(asked.group) : t('none')}</>} end>
        {(close) => (['', 'user', 'vc', 'queue', 'state', 'prio', 'kind', 'tag'] as const).map((g) => <button key={g} class="item" onClick={() => { close(); set({ group: g || null }); }}>{g ? fieldWord(g) : t('none')}</button>)}
      </Drop>
      <span class="less"><Drop label={<><Icon name="columns" />{t('Columns')}</>} end>
        {() => CHOOSABLE.map((c) => {
          const hidden = (param('hide') || '').split(',').filter(Boolean);
          return <label key={c} class="item"><input type="checkbox" checked={!hidden.includes(c)} onClick={() => goQuery(withQuery(query.value, { hide: hidden.includes(c) ? hidden.filter((x) => x !== c) : [...hidden, c] }), true)} />{columnWord(c)}</label>;
        })}
      </Drop></span>
    </div>
  );
}

function FindBox(): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  const q = param('q');
  useEffect(() => { if (box.current && document.activeElement !== box.current) box.current.value = q; }, [q]);
  return (
    <label class="find"><Icon name="search" /><span class="sr">{t('Name, id, tag')}</span>
      <input ref={box} data-find type="search" placeholder={t('Name, id, tag')} onInput={(e) => { const text = e.currentTarget.value; clearTimeout(timer.current); timer.current = window.setTimeout(() => goQuery(withQuery(query.value, { q: text, sel: null }), !!param('q')), 120); }} onKeyDown={(e) => { if (e.key === 'Escape') e.currentTarget.blur(); }} />
    </label>
  );
}

function Chip({ field, values, set }: { field: ListField; values: string[]; set: (v: string[] | null) => void }): JSX.Element {
  return (
    <span class="chip">
      <Drop cls="chip-word" label={<>{fieldWord(field)}<b>{values.length === 1 ? (values[0] === 'me' ? t('me') : values[0]) : values.length}</b></>}>
        {(close) => <Pick field={field} values={values} set={set} close={close} />}
      </Drop>
      <button class="x" aria-label={t('Remove filter {name}', { name: fieldWord(field) })} onClick={() => set(null)}>×</button>
    </span>
  );
}

function AddFilter({ close, asked, set }: { close: () => void; asked: JobQuery; set: (c: Record<string, string | string[] | null>) => void }): JSX.Element {
  const [field, setField] = useState<ListField | 'from' | ''>('');
  if (!field) return <>{(['from', ...FIELDS] as const).filter((f) => f === 'from' || !asked[f]?.length).map((f) => <button key={f} class="item" onClick={() => setField(f)}>{fieldWord(f)}<span class="end"><Icon name="right" /></span></button>)}</>;
  if (field === 'from') return <>{TIMES.map(([v, word]) => <button key={v} class="item" onClick={() => { close(); set({ from: v }); }}>{word()}</button>)}</>;
  return <Pick field={field} values={[]} set={(v) => set({ [field]: v })} close={close} />;
}

/** Values of a field: those the server knows, or what is typed. */
function Pick({ field, values, set, close }: { field: ListField; values: string[]; set: (v: string[] | null) => void; close: () => void }): JSX.Element {
  const [typed, setTyped] = useState('');
  const [known, setKnown] = useState<string[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    get<Suggest>(`/suggest?field=${field}&q=${encodeURIComponent(typed)}`, stop.signal).then((s) => setKnown(s.values.map((v) => v.value)), () => {});
    return () => stop.abort();
  }, [typed]);
  const offered = [...new Set([...values, ...(field === 'user' && !typed ? ['me'] : []), ...known])].slice(0, 40);
  const toggle = (v: string): void => set(values.includes(v) ? values.filter((x) => x !== v) : [...values, v]);
  return (
    <>
      <input class="field" style={{ width: '100%', marginBottom: '4px' }} aria-label={fieldWord(field)} placeholder={fieldWord(field)} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === 'Enter' && typed.trim()) { toggle(typed.trim()); close(); } }} />
      {offered.map((v) => <label key={v} class="item"><input type="checkbox" checked={values.includes(v)} onClick={() => toggle(v)} />{v === 'me' && field === 'user' ? t('me') : v}</label>)}
    </>
  );
}

export function StateTabs({ counts }: { counts: Tally }): JSX.Element {
  const now = param('state').split(',').filter(Boolean);
  const strip = useReveal(param('state'));
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  const link = (state: string | null, body: JSX.Element, on: boolean, n: number): JSX.Element => (
    <A key={state ?? 'all'} href={path.value + withQuery(query.value, { state, sel: null })} aria-current={on ? 'true' : undefined} class={n || on || !state ? '' : 'none'} aria-label={`${state ? stateWord(state as never) : t('All')} ${num(n)}`}>{body}</A>
  );
  return (
    <nav class="states" ref={strip} aria-label={t('Status')}>
      {link(null, <>{t('All')} <b>{num(all)}</b></>, !now.length, all)}
      {STATES.map((s) => link(s, <><Glyph state={s} />{stateWord(s)} <b>{num(counts[s] ?? 0)}</b></>, now.includes(s), counts[s] ?? 0))}
    </nav>
  );
}
