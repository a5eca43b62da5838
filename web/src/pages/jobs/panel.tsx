import type { JSX } from 'preact';
import { bytes, clock, gpus, num, prio, tasks } from '../../format';
import { serverNow } from '../../live/socket';
import { useValue } from '../../live/use';
import { StatePill } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { Ago, Skeleton, statusNote, Wrong } from '../../parts/small';
import { AheadList, Alternatives, Causes, ExpectedStart, Holds, Sentence, Shortages, stuck, useAlternatives } from '../../parts/why';
import type { JobDetail } from '../../shapes/job';
import { A } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';
import { FailureBox } from '../job/failure';
import { stopJobs } from './act';

/** One job beside the list. */
export function Panel({ id, place, total, move, close }: { id: string; place: number; total: number; move: (step: number) => void; close: () => void }): JSX.Element {
  const live = useValue<JobDetail>(`job/${id}`);
  const d = live.value.value?.row.id === id ? live.value.value : null;
  const w = d?.wait ?? null;
  const alts = useAlternatives(id, w);
  return (
    <aside class="panel" aria-label={id}>
      <header>
        <div class="bar">{place > 0 ? t('{n} of {total}', { n: num(place), total: num(total) }) : ''}<span class="grow" />
          <button class="plain" aria-label={t('Previous job')} onClick={() => move(-1)}><Icon name="up" /></button><button class="plain" aria-label={t('Next job')} onClick={() => move(1)}><Icon name="down" /></button>
          <A class="plain" href={jobHref(id)} aria-label={t('Open')}><Icon name="open" /></A><button class="plain" aria-label={t('Close')} onClick={close}><Icon name="close" /></button></div>
        <h2><A href={jobHref(id)}>{d?.row.name ?? id}</A></h2>
        <p class="mono faint cut">{id}</p>
        {d ? <div style={{ display: 'flex', alignItems: 'center', gap: '8px', marginTop: '8px' }}><StatePill state={d.row.state} /><span class="faint cut grow">{d.row.state === 'WAITING' ? <Ago at={d.row.submitted} /> : statusNote(d.row)}</span><span class="acts" style={{ flexWrap: 'nowrap' }}><A class="button" href={`/submit?clone=${encodeURIComponent(id)}`}>{t('Clone')}</A>{d.may.stop ? <button class="button danger" onClick={() => stopJobs([d.row])}>{t('Stop')}</button> : null}</span></div> : null}
      </header>
      {live.error.value ? <Wrong error={live.error.value} /> : !d ? <Skeleton rows={6} /> : (
        <>
          {w ? (
            <>
              <section><div class="title"><h3>{stuck(w) ? t('Why it does not start') : t('Why it waits')}</h3><span class="note">{t('as of {time}', { time: clock(w.at, serverNow(), true) })}</span></div><Sentence wait={w} /><Shortages wait={w} /><Causes id={id} wait={w} /><AheadList wait={w} /><Holds wait={w} /></section>
              {stuck(w) ? null : <section><div class="title"><h3>{t('Expected start')}</h3></div><ExpectedStart wait={w} /></section>}
              {alts.length ? <section><div class="title"><h3>{t('Would start now')}</h3></div><Alternatives list={alts} id={id} /></section> : null}
            </>
          ) : null}
          {d.failure ? <section><FailureBox detail={d} /></section> : null}
          <section><div class="title"><h3>{t('Request')}</h3></div><Request d={d} /></section>
        </>
      )}
    </aside>
  );
}

export function Request({ d }: { d: JobDetail }): JSX.Element {
  return (
    <dl class="pairs">
      {d.roles.map((r) => <><dt key={r.name}>{r.name}</dt><dd>{tasks(r.tasks)}{r.gpus ? ` × ${gpus(r.gpus)}` : ''}{r.cpuMilli ? `, ${num(r.cpuMilli / 1000)} CPU` : ''}{r.memoryBytes ? `, ${bytes(r.memoryBytes)}` : ''}{r.min < r.tasks ? `, ${t('at least {n}', { n: num(r.min) })}` : ''}</dd></>)}
      <dt>{t('Gang')}</dt><dd>{d.gang ? t('all or none') : t('tasks start one by one')}</dd>
      <dt>{t('VC / queue')}</dt><dd>{[d.row.vc, d.row.queue].filter(Boolean).join(', ') || '–'}</dd>
      <dt>{t('Priority')}</dt><dd>{prio(d.row.prio) || '–'}</dd>
      <dt>{t('Image')}</dt><dd class="mono">{d.image || '–'}</dd>
      <dt>{t('Submitted')}</dt><dd><Ago at={d.row.submitted} suffix /></dd>
      <dt>{t('Tags')}</dt><dd>{d.row.tags.join(', ') || '–'}</dd>
      <dt>{t('Kind')}</dt><dd>{d.row.kind}</dd>
    </dl>
  );
}
