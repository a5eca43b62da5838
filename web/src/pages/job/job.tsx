/** One job: what it is, why it waits, its story, tasks, events, logs, configuration. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, getText, jobPath } from '../../api';
import { clock, gpus, num, prio, save, tasks } from '../../format';
import { serverNow } from '../../live/socket';
import { useValue } from '../../live/use';
import { said, toast } from '../../parts/dialog';
import { StatePill } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { useReveal } from '../../parts/reveal';
import { Ago, Clock, Drop, Skeleton, Wrong } from '../../parts/small';
import { TimelineChart } from '../../parts/timeline';
import { AheadList, Alternatives, Causes, ExpectedStart, Holds, Sentence, Shortages, stuck, useAlternatives } from '../../parts/why';
import type { JobDetail, Timeline } from '../../shapes/job';
import { keysOf } from '../../state/keys';
import { A, go, lazy } from '../../state/route';
import { jobHref, splitJobPath } from '../../state/url';
import { t } from '../../text';
import { askTag, simpleAct, stopJobs, untag } from '../jobs/act';
import { Request } from '../jobs/panel';
import { FailureBox } from './failure';
import { Tasks } from './tasks';
import { JobEvents } from './events';

const Logs = lazy(() => import('./logs'));
const Gone = lazy(() => import('../history/gone'));

export default function Job({ rest }: { rest: string }): JSX.Element {
  const { id, tab } = splitJobPath(rest);
  const live = useValue<JobDetail>(`job/${id}`);
  const d = live.value.value?.row.id === id ? live.value.value : null;
  const at = tab[0] ?? '';
  const strip = useReveal(`${at} ${!!d}`);
  useEffect(() => { document.title = `${d?.row.name ?? id} · Muster`; }, [d?.row.name, id]);
  useEffect(() => keysOf({ l: () => go(jobHref(id, 'logs')), Escape: () => history.back() }), [id]);
  if (live.error.value && !d) return <Gone id={id} error={live.error.value} />;
  if (!d) return <><div class="head"><h1 tabIndex={-1}><span class="crumb">{t('Jobs')} / </span>{id.split(/[~/]/).at(-1)}</h1></div><Skeleton rows={8} /></>;
  return (
    <>
      <Head d={d} />
      <Facts d={d} />
      <nav class="tabs" ref={strip} aria-label={t('Parts of this job')}>
        {([['', t('Overview'), 0], ['tasks', t('Tasks'), d.row.tasks.total], ['timeline', t('Timeline'), 0], ['events', t('Events'), d.events], ['logs', t('Logs'), 0], ['config', t('Config'), 0]] as const).map(([key, word, n]) => (
          <A key={key} href={jobHref(id, key)} aria-current={at === key ? 'page' : undefined}>{word}{n ? <span class="n">{num(n)}</span> : null}</A>
        ))}
      </nav>
      <p class="sr" role="status">{d.row.state}</p>
      {at === 'logs' ? <Logs detail={d} /> : (
        <div class="body">
          {at === '' ? <Overview d={d} /> : at === 'tasks' ? <Tasks d={d} full path={tab.slice(1)} /> : at === 'timeline' ? <TimelineCard id={id} state={d.row.state} /> : at === 'events' ? <JobEvents id={id} /> : at === 'config' ? <Config d={d} /> : <Wrong error={{ code: '404', message: t('There is no such page') }} />}
        </div>
      )}
    </>
  );
}

function Head({ d }: { d: JobDetail }): JSX.Element {
  const id = d.row.id;
  const run = (action: 'suspend' | 'resume') => async (): Promise<void> => { const wrong = await simpleAct(action, id); if (wrong) toast(wrong); };
  return (
    <div class="head">
      <h1 tabIndex={-1}><span class="crumb"><A href="/jobs">{t('Jobs')}</A> / </span>{d.row.name}</h1><StatePill state={d.row.state} />
      <div class="acts">
        <A class="button" href={`/submit?clone=${encodeURIComponent(id)}`}><Icon name="copy" />{t('Clone')}</A>
        {d.may.suspend ? <button class="button" onClick={run('suspend')}><Icon name="pause" />{t('Suspend')}</button> : null}
        {d.may.resume ? <button class="button" onClick={run('resume')}><Icon name="play" />{t('Resume')}</button> : null}
        {d.may.tag ? <button class="button" onClick={() => askTag([id])}><Icon name="tag" />{t('Tag')}</button> : null}
        {d.may.stop ? <button class="button danger" onClick={() => stopJobs([d.row])}>{t('Stop job')}</button> : null}
        <Drop end name={t('More')} label={<Icon name="more" />}>
          {(close) => (
            <>
              <A class="item" href={jobHref(id, 'config')} onClick={close}>{t('Configuration')}</A>
              <A class="item" href={`/timeline?jobs=${encodeURIComponent(id)}`} onClick={close}>{t('On the timeline')}</A>
              <A class="item" href={`/topology?sel=${encodeURIComponent(id)}`} onClick={close}>{t('On the map')}</A>
              <button class="item" onClick={() => { close(); void navigator.clipboard.writeText(id); }}>{t('Copy ID')}</button>
              {d.may.priority ? <Priority id={id} close={close} /> : null}
            </>
          )}
        </Drop>
      </div>
    </div>
  );
}
function Priority({ id, close }: { id: string; close: () => void }): JSX.Element {
  return (
    <form class="title" onSubmit={async (e) => { e.preventDefault(); const wrong = await simpleAct('priority', id, new FormData(e.currentTarget).get('value') as string); close(); if (wrong) toast(wrong); }}>
      <input class="field" name="value" required placeholder={t('Priority class')} aria-label={t('Priority class')} /> <button class="button small">{t('Change')}</button>
    </form>
  );
}

function Facts({ d }: { d: JobDetail }): JSX.Element {
  const r = d.row;
  return (
    <div class="facts">
      {r.user ? <span>{r.user}</span> : null}
      {r.vc || r.queue ? <span><A class="link" href={`/queues/${r.vc || r.queue}`}>{r.vc || r.queue}</A>{r.oppo ? ` (${t('opportunistic')})` : ''}</span> : null}
      {prio(r.prio) ? <span>{prio(r.prio)}</span> : null}
      <span><span class="strong">{gpus(r.gpus)}</span>, {tasks(r.tasks.total)}{d.gang ? `, ${t('all or none')}` : ''}</span>
      <span>{t('submitted')} <Clock at={r.submitted} />, <Ago at={r.submitted} suffix /></span>
      {r.started ? <span>{t('started')} <Clock at={r.started} /></span> : null}
      {r.ended ? <span>{t('ended')} <Clock at={r.ended} /></span> : null}
      {r.retries.user + r.retries.platform ? <span>{t('retries {user} user, {platform} platform', r.retries)}</span> : null}
      {r.tags.map((tag) => <span key={tag}><Icon name="tag" /> {tag}{d.may.tag ? <button class="plain" style={{ minWidth: '20px', height: '20px' }} aria-label={t('Remove tag {tag}', { tag })} onClick={() => void untag(r.id, tag)}>×</button> : null}</span>)}
      <span class="mono faint" title={d.debugId}>{r.id}</span>
    </div>
  );
}

function Overview({ d }: { d: JobDetail }): JSX.Element {
  const w = d.wait;
  const alts = useAlternatives(d.row.id, w);
  const request = <section class="card"><header><h2>{t('Request')}</h2></header><div class="in"><Request d={d} />{d.description ? <p class="soft" style={{ marginTop: '8px', overflowWrap: 'anywhere' }}>{d.description}</p> : null}</div></section>;
  // Where the reason is short there is room under it.
  const brief = !!w && !stuck(w) && w.byCause.length + w.aheadFirst.length < 4;
  return (
    <>
      <FailureBox detail={d} />
      {w ? (
        <div class="two">
          <div class="stack"><section class="card says tone toned-WAITING">
            <header><h2>{stuck(w) ? t('Why it does not start') : t('Why it waits')}</h2><span class="note end">{t('as of {time}', { time: clock(w.at, serverNow(), true) })}</span></header>
            <div class="in"><Sentence wait={w} /><Shortages wait={w} />
              {w.byCause.length ? <h3 class="sub-title">{t('The {n} nodes', { n: num(w.nodesTotal) })}<span class="faint">{t('by what stands in the way')}</span></h3> : null}
              <Causes id={d.row.id} wait={w} /><AheadList wait={w} /><Holds wait={w} /></div>
          </section>{brief ? request : null}</div>
          <div class="stack">
            {stuck(w) ? null : <section class="card"><header><h2>{t('Expected start')}</h2></header><div class="in"><ExpectedStart wait={w} name={d.row.name} /></div></section>}
            {alts.length ? <section class="card"><header><h2>{t('Would start now')}</h2><span class="note">{t('each tried on a copy of the cluster')}</span></header><div class="in"><Alternatives list={alts} id={d.row.id} /></div></section> : null}
            {brief ? null : request}
          </div>
        </div>
      ) : null}
      <TimelineCard id={d.row.id} state={d.row.state} />
      <Tasks d={d} path={[]} />
      {w ? null : request}
    </>
  );
}

function TimelineCard({ id, state }: { id: string; state: string }): JSX.Element {
  const [data, set] = useState<Timeline | null>(null);
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    const ask = (): void => { get<Timeline>(`${jobPath(id)}/timeline`).then((x) => { set(x); setWrong(''); }, (e: unknown) => setWrong(said(e))); };
    ask();
    const timer = setInterval(ask, 15_000);
    return () => clearInterval(timer);
  }, [id, state]);
  return (
    <section class="card">
      <header><h2>{t('Timeline')}</h2></header>
      <div class="in">{data ? <TimelineChart data={data} /> : wrong ? <p class="faint">{wrong}</p> : <div style={{ minHeight: '90px' }} />}</div>
    </section>
  );
}

function Config({ d }: { d: JobDetail }): JSX.Element {
  const [text, set] = useState('');
  const [wrong, setWrong] = useState('');
  useEffect(() => { getText(`${jobPath(d.row.id)}/config`).then(set, (e: unknown) => setWrong(said(e))); }, [d.row.id]);
  return (
    <section class="card">
      <header><h2>{t('Configuration')}</h2><span class="note">{t('as it was submitted; secrets are masked')}</span><span class="end acts"><button class="button small" onClick={() => void navigator.clipboard.writeText(text)}>{t('Copy')}</button><button class="button small" onClick={() => save(`${d.row.name}.yaml`, 'text/yaml', text)}><Icon name="download" />YAML</button></span></header>
      <div style={{ paddingTop: '8px' }}>{wrong ? <p class="in bad">{wrong}</p> : <pre class="code" tabIndex={0}>{text}</pre>}</div>
    </section>
  );
}
