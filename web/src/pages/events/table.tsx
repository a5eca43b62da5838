import type { JSX } from 'preact';
import { num } from '../../format';
import type { LiveRows } from '../../live/use';
import { Clock, Empty, Wrong } from '../../parts/small';
import type { EventRow } from '../../shapes/cluster';
import { A } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';

/** Events, at most the first window: lines of any height. */
export function EventTable({ live, withObject = true }: { live: LiveRows<EventRow>; withObject?: boolean }): JSX.Element {
  const list = live.list.value;
  if (live.error.value) return <Wrong error={live.error.value} />;
  if (!live.loading.value && !list.total) return <Empty title={t('No events')} text={t('Kubernetes keeps events for an hour; the timeline of a job is kept longer.')} />;
  return (
    <div class="table">
      <table class="rows wrap events">
        <thead><tr><th>{t('Time')}</th><th>{t('Reason')}</th>{withObject ? <th class="less">{t('Object')}</th> : null}<th>{t('Message')}</th><th class="num">{t('Count')}</th></tr></thead>
        <tbody>
          {list.shown.map((id) => {
            const e = list.rows.get(id);
            if (!e) return null;
            return (
              <tr key={id}>
                <td class="nowrap"><Clock at={e.at} seconds /></td>
                <td class={`nowrap strong ${e.type === 'Warning' ? 'WAITING' : ''}`}>{e.reason}{e.type === 'Warning' ? <span class="sr"> {t('warning')}</span> : null}</td>
                {withObject ? <td class="less">{e.job ? <A class="link" href={jobHref(e.job)}>{e.object}</A> : e.node ? <A class="link" href={`/nodes/${e.node}`}>{e.object}</A> : e.object}</td> : null}
                <td class="message">{e.message}</td><td class="num">{e.count > 1 ? num(e.count) : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
