/** The page of a job whose object is deleted: what its record says. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { gpus, num, span, tasks } from '../../format';
import { serverNow } from '../../live/socket';
import { StatePill } from '../../parts/glyph';
import { Ago, Clock, Skeleton, Wrong } from '../../parts/small';
import { TimelineChart } from '../../parts/timeline';
import type { Refused } from '../../shapes/base';
import { A } from '../../state/route';
import { t } from '../../text';
import { millis, recordOf, timelineOf, type JobRecord } from './records';

/** `error`: why there is no living job, said when nothing is kept of it either. */
export default function Gone({ id, error }: { id: string; error: Refused }): JSX.Element {
  const [record, set] = useState<JobRecord | null | undefined>(undefined);
  useEffect(() => { set(undefined); recordOf(id).then(set, () => set(null)); }, [id]);
  if (record === null) return <><h1 class="sr" tabIndex={-1}>{id}</h1><Wrong error={error} /></>;
  if (!record) return <><div class="head"><h1 tabIndex={-1}><span class="crumb">{t('Jobs')} / </span>{id.split(/[~/]/).at(-1)}</h1></div><Skeleton rows={8} /></>;
  return <Page r={record} id={id} />;
}

const howWord = (how: string | undefined): string => (how ? ({ succeeded: t('succeeded'), failed: t('failed'), stopped: t('stopped'), evicted: t('evicted'), lost: t('lost its node') })[how] ?? how : t('running'));
const between = (from: string, to: string | undefined): string => (to ? span(Date.parse(to) - Date.parse(from)) : '–');

function Page({ r, id }: { r: JobRecord; id: string }): JSX.Element {
  const ended = millis(r.ended);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}><span class="crumb"><A href="/jobs">{t('Jobs')}</A> / </span>{r.job}</h1><StatePill state={r.state} /><span class="sub">{t('deleted')}</span></div>
      <div class="facts">
        <span>{r.user}</span>
        {r.vc || r.queue ? <span><A class="link" href={`/queues/${r.vc || r.queue}`}>{r.vc || r.queue}</A></span> : null}
        {r.priority ? <span>{r.priority}</span> : null}
        <span><span class="strong">{gpus(r.shape.gpus)}</span>, {tasks(r.shape.tasks)}</span>
        <span>{t('submitted')} <Clock at={Date.parse(r.submitted)} />, <Ago at={Date.parse(r.submitted)} suffix /></span>
        {ended ? <span>{t('ended')} <Clock at={ended} /></span> : null}
        {r.exit !== undefined || r.exitPhrase ? <span>{r.exit !== undefined ? t('exit code {n}', { n: r.exit }) : ''}{r.exitPhrase ? ` ${r.exitPhrase}` : ''}</span> : null}
        {r.image ? <span class="mono">{r.image}</span> : null}
        <span class="mono faint" title={r.uid}>{id}</span>
      </div>
      <div class="body">
        <section class="card"><header><h2>{t('Timeline')}</h2><span class="note">{t('from its record; the job itself is deleted')}</span></header><div class="in"><TimelineChart data={timelineOf(r, serverNow())} /></div></section>
        <section class="card"><header><h2>{t('Attempts')}</h2></header>
          {r.runs.length ? <div class="table"><table class="rows"><thead><tr><th>{t('Attempt')}</th><th>{t('Started')}</th><th class="num">{t('Ran')}</th><th class="num">{t('GPUs')}</th><th>{t('Nodes')}</th><th>{t('End')}</th></tr></thead>
            <tbody>{r.runs.map((run, i) => <tr key={run.start}><td>{i + 1}</td><td><Clock at={Date.parse(run.start)} /></td><td class="num">{between(run.start, run.end)}</td><td class="num">{num(run.gpus)}</td><td class="mono cut" title={run.nodes.join(', ')}>{run.nodes.slice(0, 4).join(', ')}{run.nodes.length > 4 ? t(' and {n} more', { n: num(run.nodes.length - 4) }) : ''}</td><td>{howWord(run.how)}{run.by ? `, ${t('for {job}', { job: run.by })}` : ''}</td></tr>)}</tbody></table></div> : <p class="in faint">{t('It never started.')}</p>}</section>
        {r.waits?.length ? (
          <section class="card"><header><h2>{t('Why it waited')}</h2></header><div class="table"><table class="rows"><thead><tr><th>{t('Since')}</th><th class="num">{t('For')}</th><th>{t('Reason')}</th></tr></thead>
            <tbody>{r.waits.map((w) => <tr key={w.from + w.reason}><td><Clock at={Date.parse(w.from)} seconds /></td><td class="num">{between(w.from, w.to ?? r.ended)}</td><td>{w.text || w.reason}</td></tr>)}</tbody></table></div></section>
        ) : null}
      </div>
    </>
  );
}
