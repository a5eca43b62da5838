/** What would happen to this job if it were submitted now. */
import type { JSX } from 'preact';
import { clock, gpus, num, span, tasks } from '../../format';
import { serverNow } from '../../live/socket';
import type { Decision } from '../../shapes/calls';
import { A } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';

const TONE = { starts: 'RUNNING', waits: 'WAITING', never: 'FAILED', refused: 'FAILED' } as const;
export function DecisionCard({ decision: d, asking, use }: { decision: Decision; asking: boolean; use: (yaml: string) => void }): JSX.Element {
  const now = serverNow();
  const evicts = d.verdict === 'starts' && d.victims.length > 0;
  const title = {
    starts: evicts ? (d.victims.length === 1 ? t('Would start by evicting 1 job') : t('Would start by evicting {n} jobs', { n: num(d.victims.length) })) : t('Would start now'),
    waits: d.wait?.start ? t('Would wait, until about {time}', { time: clock(d.wait.start, now) }) : t('Would wait'), never: t('Can never run'), refused: t('Refused'),
  }[d.verdict];
  const lost = d.victims.reduce((s, v) => s + v.lost_s, 0);
  const nodes = [...new Set(d.placement.map((p) => p.node))];
  return (
    <section class={`decision toned-${evicts ? 'STOPPING' : TONE[d.verdict]} ${asking ? 'asking' : ''}`} role="status" aria-label={t('Decision')}>
      <h2>{title}<span class="note">{t('as of {time}', { time: clock(d.at, now, true) })}</span></h2>
      {/* Where all of it starts is said below, with the tasks that go there. */}
      {/^starts at once on /.test(d.text) && d.placement.length && !evicts ? null : <p>{d.text.charAt(0).toUpperCase() + d.text.slice(1)}</p>}
      {evicts ? <p class="names">{d.victims.map((v, i) => <>{i ? ', ' : ''}<A class="strong" href={jobHref(v.id)}>{v.id}</A> ({v.user}{v.gpus ? `, ${gpus(v.gpus)}` : ''})</>)}. <span class="faint">{t('{span} of work lost', { span: span(lost * 1000) })}{d.victims.every((v) => v.comes_back) ? `; ${d.victims.length === 1 ? t('it comes back by itself') : t('they come back by themselves')}` : ''}.</span></p> : null}
      {d.placement.length ? <p class={evicts ? 'faint' : ''}>{t('{tasks} on {nodes}', { tasks: tasks(d.placement.length), nodes: nodes.slice(0, 6).join(', ') + (nodes.length > 6 ? ` ${t('and {n} more', { n: nodes.length - 6 })}` : '') })}</p> : null}
      {d.wait && d.wait.basis !== 'none' && d.wait.startLow && d.wait.startHigh ? <p class="faint">{t('8 in 10: {low} – {high}', { low: clock(d.wait.startLow, now), high: clock(d.wait.startHigh, now) })}. {d.wait.basisText}</p> : null}
      {d.alternatives.length ? <ul class="alts">{d.alternatives.slice(0, 5).map((a) => <li key={a.change}><div><div class="strong">{a.change}</div><div class="faint">{a.text}</div></div>{a.yaml ? <button class="button small" aria-label={`${t('Use this')}: ${a.change}`} onClick={() => use(a.yaml!)}>{t('Use this')}</button> : null}</li>)}</ul> : null}
    </section>
  );
}
