import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { csv, exact, num, save } from '../../format';
import { useRows } from '../../live/use';
import { Choice } from '../../parts/small';
import { Icon } from '../../parts/icon';
import type { EventRow } from '../../shapes/cluster';
import { goQuery, param, query } from '../../state/route';
import { withQuery } from '../../state/url';
import { t } from '../../text';
import { EventTable } from './table';

export default function Events(): JSX.Element {
  const type = param('type');
  const top = useRef(true);
  const live = useRows<EventRow>('events', { ...(type ? { type: [type] } : {}), ...(param('q') ? { q: param('q') } : {}) }, 300, () => top.current);
  useEffect(() => { document.title = `${t('Events')} · Muster`; }, []);
  const waiting = live.waiting.value;
  const rows = (): EventRow[] => live.list.value.shown.map((id) => live.list.value.rows.get(id)!).filter(Boolean);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Events')}</h1><span class="sub">{num(live.list.value.total)}</span>
        <span class="acts">{waiting ? <button class="news" onClick={live.letIn}>{t('{n} changes', { n: waiting })}</button> : null}
          <button class="button" onClick={() => save('events.csv', 'text/csv', csv([['time', 'type', 'reason', 'object', 'message', 'count'], ...rows().map((e) => [exact(e.at), e.type, e.reason, e.object, e.message, e.count])]))}>CSV</button>
          <button class="button" onClick={() => save('events.jsonl', 'application/x-ndjson', rows().map((e) => JSON.stringify(e)).join('\n'))}>JSONL</button></span></div>
      <div class="filters">
        <label class="find"><Icon name="search" /><span class="sr">{t('Find in events')}</span><input data-find type="search" placeholder={t('Find in events')} value={param('q')} onChange={(e) => goQuery(withQuery(query.value, { q: e.currentTarget.value }))} /></label>
        <Choice name={t('Type')} of={[['', t('All')], ['Warning', t('Warnings')], ['Normal', t('Normal')]] as const} value={type as '' | 'Warning' | 'Normal'} set={(v) => goQuery(withQuery(query.value, { type: v }))} />
      </div>
      <div class="table" onScroll={(e) => { top.current = (e.currentTarget as HTMLElement).scrollTop < 4; }}><EventTable live={live} /></div>
    </>
  );
}
