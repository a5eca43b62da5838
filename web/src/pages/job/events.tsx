import type { JSX } from 'preact';
import { useRows } from '../../live/use';
import { EventTable } from '../events/table';
import type { EventRow } from '../../shapes/cluster';
import { t } from '../../text';

export function JobEvents({ id }: { id: string }): JSX.Element {
  const live = useRows<EventRow>('events', { job: id }, 200, () => true);
  return <section class="card"><header><h2>{t('Events')}</h2><span class="note">{t('newest first')}</span></header><EventTable live={live} withObject={false} /></section>;
}
