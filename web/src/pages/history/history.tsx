/** Jobs that have ended, also those whose objects are deleted, as long as the cluster keeps records of them. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { csv, exact, num, save, span } from '../../format';
import { said } from '../../parts/dialog';
import { StateMark, stateWord } from '../../parts/glyph';
import { Icon } from '../../parts/icon';
import { Choice, Clock, Empty, Skeleton, Wrong } from '../../parts/small';
import { A, goQuery, param, query } from '../../state/route';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';
import { askRecords, millis, type RecordRow } from './records';

const MOST = 500;
const ENDS = ['', 'SUCCEEDED', 'FAILED', 'STOPPED'] as const;
const idOf = (r: { namespace: string; kind: string; job: string }): string => `${r.namespace}/${r.kind}/${r.job}`;
const ran = (r: RecordRow): number | null => (r.started && r.ended ? Date.parse(r.ended) - Date.parse(r.started) : null);
const waited = (r: RecordRow): number | null => (r.started ? Date.parse(r.started) - Date.parse(r.submitted) : null);
const length = (ms: number | null): string => (ms === null ? '–' : span(ms));

export default function History(): JSX.Element {
  const [rows, set] = useState<RecordRow[] | null>(null);
  const [wrong, setWrong] = useState('');
  useEffect(() => { document.title = `${t('Job history')} · Muster`; }, []);
  useEffect(() => {
    const asked = { name: param('name'), user: param('user'), queue: param('queue'), state: param('state'), limit: MOST };
    askRecords(Object.fromEntries(Object.entries(asked).filter(([, v]) => v))).then((list) => { set(list.filter((r) => r.ended)); setWrong(''); }, (e: unknown) => setWrong(said(e)));
  }, [query.value]);
  const field = (key: string, word: string): JSX.Element => <label class="find"><Icon name="search" /><span class="sr">{word}</span><input data-find={key === 'name' ? '' : undefined} type="search" placeholder={word} value={param(key)} onChange={(e) => goQuery(withQuery(query.value, { [key]: e.currentTarget.value }))} /></label>;
  const table = (list: RecordRow[]): (string | number | null)[][] => [['name', 'kind', 'namespace', 'user', 'queue', 'state', 'gpus', 'tasks', 'attempts', 'submitted', 'started', 'ended'], ...list.map((r) => [r.job, r.kind, r.namespace, r.user, r.queue, r.state, r.shape.gpus, r.shape.tasks, r.attempts, exact(millis(r.submitted)), exact(millis(r.started)), exact(millis(r.ended))])];
  return (
    <>
      <div class="head"><h1 tabIndex={-1}><span class="crumb"><A href="/jobs">{t('Jobs')}</A> / </span>{t('History')}</h1><span class="sub">{rows ? (rows.length >= MOST ? t('the newest {n}', { n: num(MOST) }) : num(rows.length)) : ''}</span>
        <span class="acts"><button class="button" disabled={!rows?.length} onClick={() => save('history.csv', 'text/csv', csv(table(rows!)))}>CSV</button></span></div>
      <div class="filters">{field('name', t('Name'))}{field('user', t('User'))}{field('queue', t('Queue'))}<Choice name={t('Status')} of={ENDS.map((s) => [s, s ? stateWord(s) : t('All')] as const)} value={param('state') as (typeof ENDS)[number]} set={(v) => goQuery(withQuery(query.value, { state: v || null }))} /></div>
      {wrong ? <Wrong error={{ code: '', message: wrong }} /> : !rows ? <Skeleton /> : !rows.length ? <Empty title={t('No record matches')} text={t('Jobs are listed here once they have ended, and stay after they are deleted.')} /> : (
        <div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th><th>{t('Status')}</th><th>{t('User')}</th><th class="less">{t('Queue')}</th><th class="less">{t('Kind')}</th><th class="num">{t('GPUs')}</th><th class="num less">{t('Attempts')}</th><th class="num">{t('Waited')}</th><th class="num">{t('Ran')}</th><th>{t('Ended')}</th></tr></thead>
          <tbody>{rows.map((r) => <tr key={r.uid} data-id={idOf(r)}><td class="name"><A href={jobHref(idOf(r))}>{r.job}</A></td><td><StateMark state={r.state} /></td><td>{r.user}</td><td class="less">{r.queue || '–'}</td><td class="less">{r.kind}</td><td class="num">{num(r.shape.gpus)}</td><td class="num less">{num(r.attempts)}</td><td class="num">{length(waited(r))}</td><td class="num">{length(ran(r))}</td><td><Clock at={millis(r.ended)} /></td></tr>)}</tbody></table></div>
      )}
    </>
  );
}
