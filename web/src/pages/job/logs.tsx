/** Live logs of one task or of all, merged. The last 200,000 lines are kept, those on screen are in the document. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { jobPath, search } from '../../api';
import { num } from '../../format';
import { useRows } from '../../live/use';
import { Icon } from '../../parts/icon';
import { Swatch } from '../../parts/small';
import type { JobDetail, TaskRow } from '../../shapes/job';
import { goQuery, hash, param, query } from '../../state/route';
import { api } from '../../state/place';
import { withQuery } from '../../state/url';
import { t } from '../../text';
import { level, pieces } from './ansi';
import { LogStore } from './store';

const LINE = 19;
/** So many tasks are merged at most. */
const MERGED = 64;
export default function Logs({ detail: d }: { detail: JobDetail }): JSX.Element {
  const id = d.row.id;
  const task = param('task');
  const attempt = param('attempt');
  const tasks = useRows<TaskRow>(`tasks/${id}`, {}, 200, () => true).list.value;
  const store = useMemo(() => new LogStore(), [id, task, attempt]);
  const [, draw] = useState(0);
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(false);
  const [times, setTimes] = useState(false);
  const [hit, setHit] = useState(0);
  const [rate, setRate] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const q = param('q');
  // OpenPAI keeps the logs of its attempts; of other jobs a container that was started again has its last log.
  const former: [string, string][] = d.row.kind === 'openpai' ? Array.from({ length: d.attempts - 1 }, (_, i) => d.attempts - 2 - i).map((k) => [String(k), t('Attempt {n}', { n: k + 1 })]) : [...tasks.rows.values()].some((x) => x.retries && (!task || x.id === task)) ? [['previous', t('Before the last restart')]] : [];

  useEffect(() => {
    store.open(api(`/log${search({ job: id, task, attempt, tail: 200_000 })}`));
    let asked = 0;
    let before = 0;
    store.changed = () => { asked ||= requestAnimationFrame(() => { asked = 0; draw((n) => n + 1); }); };
    const timer = setInterval(() => { setRate(Math.max(0, Math.round((store.seen - before) / 2))); before = store.seen; }, 2000);
    return () => { store.close(); cancelAnimationFrame(asked); clearInterval(timer); };
  }, [store]);
  useLayoutEffect(() => {
    const el = box.current!;
    const measure = (): void => setView({ top: el.scrollTop, height: el.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(el);
    measure();
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; });
  const hits = useMemo(() => store.find(q), [q, store, store.seen]);
  useEffect(() => { const m = /^#L(\d+)$/.exec(hash.value); if (m) { setFollow(false); box.current!.scrollTop = (Number(m[1]) - 1 - store.first) * LINE - 80; } }, [store.seen > 0]);
  const jump = (step: number): void => {
    if (!hits.length) return;
    const next = (hit + step + hits.length) % hits.length;
    setHit(next);
    setFollow(false);
    box.current!.scrollTop = hits[next]! * LINE - view.height / 2;
  };
  const scrolled = (): void => {
    const el = box.current!;
    const bottom = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
    if (!bottom && follow && el.scrollTop < view.top) setFollow(false);
    setView({ top: el.scrollTop, height: el.clientHeight });
  };
  const n = store.lines.length;
  const first = wrap ? Math.max(0, n - 2000) : Math.max(0, Math.floor(view.top / LINE) - 20);
  const end = wrap ? n : Math.min(n, Math.ceil((view.top + view.height) / LINE) + 20);
  const merged = !task && d.row.tasks.total > 1;
  return (
    <div class="logbox">
      <div class="logbar">
        <select class="field" aria-label={t('Task')} value={task} onChange={(e) => goQuery(withQuery(query.value, { task: e.currentTarget.value }))}><option value="">{d.row.tasks.total === 1 ? t('1 task') : t('all {n} tasks', { n: num(d.row.tasks.total) })}</option>{tasks.shown.map((x) => <option key={x} value={x}>{x}</option>)}</select>
        {former.length ? <select class="field" aria-label={t('Attempt')} value={attempt} onChange={(e) => goQuery(withQuery(query.value, { attempt: e.currentTarget.value }))}><option value="">{d.row.kind === 'openpai' ? t('Attempt {n}', { n: d.attempts }) : t('Now')}</option>{former.map(([value, word]) => <option key={value} value={value}>{word}</option>)}</select> : null}
        <label class="find" style={{ width: '260px' }}><Icon name="search" /><span class="sr">{t('Find in log')}</span><input data-find type="search" placeholder={t('Find in log')} value={q} onInput={(e) => { setHit(0); goQuery(withQuery(query.value, { q: e.currentTarget.value }), true); }} onKeyDown={(e) => { if (e.key === 'Enter') jump(e.shiftKey ? -1 : 1); }} />{q ? <span class="nowrap">{hits.length ? t('{n} of {total}', { n: hit + 1, total: num(hits.length) }) : t('none')}</span> : null}</label>
        <button class="button" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>{wrap ? t('No wrap') : t('Wrap')}</button>
        <button class="button less" aria-pressed={times} onClick={() => setTimes(!times)}>{t('Times')}</button>
        <span class="grow" />
        <a class="button" href={api(`${jobPath(id)}/log${search({ task, attempt })}`)} download><Icon name="download" />{t('Download')}</a>
      </div>
      <div class={`log ${wrap ? 'wrapped' : ''}`} ref={box} tabIndex={0} role="log" aria-live="off" aria-label={t('Log')} onScroll={scrolled}>
        <div style={wrap ? undefined : { height: `${n * LINE + 12}px`, position: 'relative' }}>
          {store.lines.slice(first, end).map((l, i) => {
            const k = first + i;
            const no = store.first + k + 1;
            return (
              <div key={no} class={`line ${level(l.text)} ${hits[hit] === k && q ? 'here' : ''}`} style={wrap ? undefined : { top: `${k * LINE}px` }}>
                <a class="no" href={`#L${no}`} onClick={(e) => { e.preventDefault(); history.replaceState(null, '', `#L${no}`); }}>{num(no)}</a>
                {times ? <span class="when">{l.at ? new Date(l.at).toISOString().slice(11, 23) : ''}</span> : null}
                {merged ? <span class="who"><Swatch of={l.task} />{l.task}</span> : null}
                <span>{pieces(l.text).map((p, j) => <span key={j} class={p.cls}>{q ? marked(p.text, q) : p.text}</span>)}</span>
              </div>
            );
          })}
        </div>
        {!n ? <p class="faint" style={{ padding: '16px 24px' }}>{store.error ?? (store.ended ? t('This log is empty.') : t('Nothing printed yet.'))}</p> : null}
      </div>
      <div class="logbar" style={{ borderTop: '1px solid var(--line)', borderBottom: 0 }}>
        <i class={`dot ${store.ended ? 'paused' : follow ? '' : 'paused'}`} /><span>{store.ended ? t('Ended') : follow ? t('Following, {n} lines/s', { n: num(rate) }) : t('Paused')}</span>{store.error && n ? <span class="bad">{store.error}</span> : null}{merged && d.row.tasks.total > MERGED ? <span>{t('of the first {n} tasks', { n: MERGED })}</span> : null}
        <span class="grow" /><span class="faint">{t('{n} lines', { n: num(store.first + n) })}</span>
        {store.ended ? null : <button class="button" onClick={() => setFollow(!follow)}>{follow ? t('Pause') : t('Follow')}</button>}
      </div>
    </div>
  );
}

function marked(text: string, q: string): (string | JSX.Element)[] {
  const out: (string | JSX.Element)[] = [];
  const low = text.toLowerCase();
  const want = q.toLowerCase();
  let last = 0;
  for (let at = low.indexOf(want); at >= 0; at = low.indexOf(want, last)) {
    out.push(text.slice(last, at), <mark key={at}>{text.slice(at, at + q.length)}</mark>);
    last = at + q.length;
  }
  out.push(text.slice(last));
  return out;
}
