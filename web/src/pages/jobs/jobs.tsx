/** The job list: filters in the address, live rows that do not jump, a panel beside it. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { num, span } from '../../format';
import { serverNow } from '../../live/socket';
import { paused, pausedAt, togglePause, useRows } from '../../live/use';
import { Icon } from '../../parts/icon';
import { Rows } from '../../parts/rows';
import { Empty, Skeleton, Wrong } from '../../parts/small';
import type { JobRow } from '../../shapes/job';
import { keysOf } from '../../state/keys';
import { A, go, goQuery, param, query } from '../../state/route';
import { jobHref, jobQuery, withQuery } from '../../state/url';
import { minute } from '../../state/ticker';
import { language, t } from '../../text';
import { columnsFor, PhoneRow, type Narrow } from './columns';
import { Filters, StateTabs } from './filters';
import { Groups } from './groups';
import { Panel } from './panel';
import { SelectionBar } from './selection';
import { SaveView } from './views';

function useWidth(): number {
  const [w, set] = useState(innerWidth);
  useEffect(() => { const on = (): void => set(innerWidth); addEventListener('resize', on); return () => removeEventListener('resize', on); }, []);
  return w;
}

export function Jobs(): JSX.Element {
  const search = query.value;
  const asked = useMemo(() => jobQuery(search, serverNow()), [withoutView(search)]);
  const top = useRef(true);
  const over = useRef(false);
  const live = useRows<JobRow>('jobs', asked, 100, () => top.current && !over.current && chosen.value.size === 0);
  const chosen = useSignal<Set<string>>(new Set());
  const all = useSignal(false);
  const width = useWidth();
  const phone = width <= 640;
  const panelId = param('sel');
  const open = !!panelId && !phone;
  const list = live.list.value;
  const sort = asked.sort ?? '-submitted';
  useEffect(() => { document.title = `${t('Jobs')} · Muster`; }, [language.value]);
  useEffect(() => { chosen.value = new Set(); all.value = false; }, [JSON.stringify(asked)]);

  const select = (id: string | null): void => goQuery(withQuery(query.value, { sel: id }), !!param('sel'));
  const move = (step: number): void => {
    const ids = live.list.value.shown;
    const at = ids.indexOf(param('sel'));
    const next = ids[at < 0 ? 0 : Math.min(ids.length - 1, Math.max(0, at + step))];
    if (next) { select(next); document.querySelector(`tr[data-id="${CSS.escape(next)}"]`)?.scrollIntoView({ block: 'nearest' }); }
  };
  const toggle = (id: string): void => {
    const next = new Set(chosen.value);
    if (!next.delete(id)) next.add(id);
    chosen.value = next;
    all.value = false;
  };
  useEffect(() => keysOf({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), x: () => { if (param('sel')) toggle(param('sel')); },
    Enter: () => { if (param('sel')) go(jobHref(param('sel'))); }, l: () => { if (param('sel')) go(jobHref(param('sel'), 'logs')); }, Escape: () => select(null),
  }), []);

  const hidden = param('hide');
  // The same columns for as long as they are the same: then rows that have not changed are not made again.
  const columns = useMemo(() => {
    const narrow: Narrow = { open, width, hidden: hidden.split(',') };
    return columnsFor(narrow, {
      chosen: (id) => all.value || chosen.value.has(id), toggle,
      allShown: () => chosen.value.size > 0 && live.list.value.shown.every((id) => chosen.value.has(id)),
      toggleAll: () => { chosen.value = chosen.value.size ? new Set() : new Set(live.list.value.shown); all.value = false; },
    });
  }, [open, width, hidden, language.value]);
  return (
    <div class={`split ${open ? 'open' : ''}`}>
      <div class="left" onPointerEnter={() => { over.current = true; }} onPointerLeave={() => { over.current = false; }}>
        <div class="head">
          <h1 tabIndex={-1}>{t('Jobs')}</h1>
          <span class="sub">{live.loading.value && !list.rv ? '' : num(list.total)}</span>
          <span class="acts">
            <News waiting={live.waiting.value} letIn={() => { live.letIn(); document.querySelector('.table')?.scrollTo(0, 0); }} />
            {phone ? null : <SaveView />}
            <A class="button" href="/history" aria-label={t('Job history')} title={t('Ended jobs, deleted ones included')}><Icon name="scroll" />{phone ? null : t('History')}</A>
            <A class="button first" href="/submit" aria-label={t('Submit Job')}><Icon name="plus" />{phone ? null : t('Submit Job')}</A>
          </span>
        </div>
        {chosen.value.size || all.value ? <SelectionBar chosen={chosen} all={all} list={list} query={asked} /> : <Filters query={asked} />}
        <StateTabs counts={list.counts} />
        {asked.group ? <Groups groups={list.groups} field={asked.group} /> : live.error.value ? <Wrong error={live.error.value} /> : live.loading.value && !list.rv ? <Skeleton rows={16} /> : (
          <Rows
            live={live} columns={columns} height={32} sort={sort} setSort={(s) => goQuery(withQuery(query.value, { sort: s === '-submitted' ? null : s }))} label={t('Jobs')}
            cursor={panelId} selected={(id) => all.value || chosen.value.has(id)} atTop={(at) => { top.current = at; if (at && !paused.value) live.letIn(); }}
            onRow={(row) => (phone ? go(jobHref(row.id)) : select(row.id === panelId ? null : row.id))}
            {...(phone ? { phone: (row: JobRow) => <PhoneRow row={row} /> } : {})}
            empty={<NoJobs search={search} />}
          />
        )}
      </div>
      {open ? <Panel id={panelId} place={list.window[0] + list.shown.indexOf(panelId) + 1} total={list.total} move={move} close={() => select(null)} /> : null}
    </div>
  );
}

const withoutView = (search: string): string => withQuery(search, { sel: null, hide: null });

function News({ waiting, letIn }: { waiting: number; letIn: () => void }): JSX.Element | null {
  void minute.value;
  if (paused.value) return <button class="news paused" onClick={togglePause}>{t('Paused {span}, {n} changes', { span: span(Date.now() - pausedAt.value), n: waiting })}</button>;
  return waiting ? <button class="news" onClick={letIn}>{waiting === 1 ? t('1 change') : t('{n} changes', { n: num(waiting) })}</button> : null;
}

function NoJobs({ search }: { search: string }): JSX.Element {
  const filtered = withQuery(search, { sort: null, sel: null, hide: null, group: null });
  if (!filtered) return <Empty title={t('No job yet')} text={t('Jobs appear here however they are submitted: in the portal, on the command line or with kubectl.')}><A class="button first" href="/submit">{t('Submit Job')}</A></Empty>;
  return <Empty title={t('No job matches these filters')} text={t('Remove one of them, or all.')}><A class="button" href="/jobs">{t('Clear all filters')}</A></Empty>;
}
