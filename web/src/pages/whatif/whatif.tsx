/** What would happen if: a list of changes, played on a copy. Every list is in the address. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call } from '../../api';
import { clock, num, percent, save } from '../../format';
import { serverNow } from '../../live/socket';
import { said } from '../../parts/dialog';
import { Empty } from '../../parts/small';
import type { Whatif, WhatifChange } from '../../shapes/calls';
import { A, goQuery, param, query } from '../../state/route';
import { has } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';

const KINDS: [string, () => string, string][] = [['addNodes', () => t('Add nodes'), 'count'], ['drain', () => t('Drain nodes'), 'nodes'], ['removeNodes', () => t('Remove nodes'), 'nodes'], ['stop', () => t('Stop jobs'), 'jobs'], ['priority', () => t('Change priority of a job'), 'job'], ['queue', () => t('Change a queue'), 'name']];
export default function WhatifPage(): JSX.Element {
  const [answer, set] = useState<Whatif | null>(null);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  let changes: WhatifChange[] = [];
  try { changes = JSON.parse(param('s') || '[]') as WhatifChange[]; } catch { /* a broken link is an empty list */ }
  const put = (next: WhatifChange[]): void => goQuery(withQuery(query.value, { s: next.length ? JSON.stringify(next) : null }));
  useEffect(() => { document.title = `${t('What-if')} · Muster`; }, []);
  useEffect(() => {
    if (!changes.length || !has('whatif')) { set(null); return; }
    setBusy(true);
    call<Whatif>('POST', '/whatif', { changes, horizon: 86_400_000 }).then((a) => { set(a); setWrong(''); }, (e: unknown) => setWrong(said(e))).finally(() => setBusy(false));
  }, [param('s')]);
  const now = serverNow();
  if (!has('whatif')) return <><div class="head"><h1 tabIndex={-1}>{t('What-if')}</h1></div><Empty title={t('This server does not answer what-if questions yet')} text={t('On the command line, muster sim replays a trace with other nodes, queues and policies.')} /></>;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('What-if')}</h1><span class="sub">{t('tried on a copy; nothing is changed')}</span>{changes.length ? <span class="acts"><button class="button" onClick={() => save('scenario.json', 'application/json', JSON.stringify({ changes }, null, 2))}>{t('Save as scenario')}</button></span> : null}</div>
      <div class="body">
        <section class="card"><header><h2>{t('Changes')}</h2></header><div class="in">
          <ul class="alts">{changes.map((c, i) => <li key={i}><div><span class="strong">{KINDS.find(([k]) => k === c.kind)?.[1]() ?? c.kind}</span> <span class="mono faint">{Object.entries(c).filter(([k]) => k !== 'kind').map(([k, v]) => `${k}=${Array.isArray(v) ? v.join(',') : String(v)}`).join(' ')}</span></div><button class="button small" onClick={() => put(changes.filter((_, k) => k !== i))}>{t('Take away')}</button></li>)}</ul>
          <form class="form" style={{ marginTop: '8px' }} onSubmit={(e) => { e.preventDefault(); const f = new FormData(e.currentTarget); const kind = f.get('kind') as string; const value = (f.get('value') as string).trim(); const field = KINDS.find(([k]) => k === kind)![2]; put([...changes, { kind, [field]: field === 'count' ? Number(value) : ['nodes', 'jobs'].includes(field) ? value.split(/[\s,]+/) : value }]); e.currentTarget.reset(); }}>
            <div class="pair"><select class="field" name="kind" aria-label={t('Change')}>{KINDS.map(([k, word]) => <option key={k} value={k}>{word()}</option>)}</select><input class="field" name="value" required aria-label={t('Of what')} placeholder={t('names or a number')} /><button class="button">{t('Add change')}</button></div>
          </form></div></section>
        {wrong ? <section class="decision toned-FAILED" role="alert"><h2>{t('Refused')}</h2><p>{wrong}</p></section> : null}
        {answer ? <section class={`card ${busy ? 'asking' : ''}`}><header><h2>{t('Result')}</h2></header><div class="in"><p class="say">{answer.text}</p>
          {answer.warnings.map((w) => <p key={w} class="WAITING">{w}</p>)}
          <table class="tight names" style={{ marginTop: '8px' }}><thead><tr><th>{t('Job')}</th><th>{t('User')}</th><th class="num">{t('Start now')}</th><th class="num">{t('Start then')}</th></tr></thead><tbody>{answer.jobs.slice(0, 100).map((j) => <tr key={j.id}><td class="strong"><A href={jobHref(j.id)}>{j.name}</A></td><td>{j.user}</td><td class="num">{clock(j.before.start, now)}</td><td class="num">{clock(j.after.start, now)}</td></tr>)}</tbody></table>
          {answer.shares.length ? <table class="tight"><thead><tr><th>{t('Share')}</th><th class="num">{t('before')}</th><th class="num">{t('after')}</th></tr></thead><tbody>{answer.shares.map((s) => <tr key={s.tenant}><td>{s.tenant}</td><td class="num">{percent(s.before, 1)}</td><td class="num">{percent(s.after, 1)}</td></tr>)}</tbody></table> : null}
          {answer.evictions.length ? <p>{t('{n} evicted', { n: num(answer.evictions.length) })}: {answer.evictions.map((e) => e.id).join(', ')}</p> : null}</div></section> : changes.length ? null : <Empty title={t('No change yet')} text={t('Add one: nodes that come or go, jobs that stop, a queue with other numbers.')} />}
      </div>
    </>
  );
}
