import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { num, tint } from '../../format';
import { A, param } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';
import type { Plain } from './unpack';

const PAGE = 200;
/** The map as a table: the same facts for keyboards and readers. */
export function MapTable({ map, only }: { map: Plain; only: string }): JSX.Element {
  const [shown, show] = useState(PAGE);
  const s = map;
  const sel = param('sel');
  const rows: number[] = [];
  for (let n = 0; n < s.nodes.length; n++) {
    const owners = [...map.owner.subarray(map.first[n]!, map.first[n + 1]!)];
    const off = s.states[n] !== 0;
    if (sel && !owners.some((o) => s.jobs[Math.abs(o) - 1]?.id === sel)) continue;
    if (only === 'free' && (off || !owners.includes(0))) continue;
    if (only === 'used' && !owners.some((o) => o > 0)) continue;
    if (only === 'held' && !owners.some((o) => o < 0)) continue;
    if (only === 'off' && !off) continue;
    if (only === 'oppo' && !owners.some((o) => s.jobs[o - 1]?.oppo)) continue;
    rows.push(n);
  }
  return (
    <div class="table">
      <table class="rows" aria-rowcount={rows.length + 1}>
        <thead><tr><th>{t('Node')}</th><th>{t('Status')}</th><th class="less">{t('Rack')}</th><th class="less">{t('Model')}</th><th>{t('GPUs')}</th><th>{t('Jobs')}</th></tr></thead>
        <tbody>
          {rows.slice(0, shown).map((n) => {
            const owners = [...map.owner.subarray(map.first[n]!, map.first[n + 1]!)];
            const jobs = [...new Set(owners.filter((o) => o > 0))];
            const off = s.states[n] !== 0;
            return (
              <tr key={s.nodes[n]}>
                <td class="name"><A class="mono" href={`/nodes/${s.nodes[n]}`}>{s.nodes[n]}</A></td>
                <td>{[t('ready'), t('cordoned'), t('not ready')][s.states[n] ?? 0]}</td><td class="less">{s.racks[s.rack[n] ?? -1] ?? '–'}</td><td class="less">{s.models[s.model[n] ?? -1] ?? '–'}</td>
                <td><span class="cells big" role="img" aria-label={t('{used} of {total} GPUs in use', { used: owners.filter((o) => o > 0).length, total: owners.length })}>{owners.map((o, i) => <i key={i} class={o > 0 ? `tint ${tint(s.jobs[o - 1]!.id)}` : off || map.bad.has(map.first[n]! + i) ? 'off' : o < 0 ? 'held' : 'open'} />)}</span></td>
                <td>{jobs.slice(0, 3).map((o, i) => <>{i ? ', ' : ''}<A class="link" href={jobHref(s.jobs[o - 1]!.id)}>{s.jobs[o - 1]!.name}</A></>)}{jobs.length > 3 ? ` ${t('and {n} more', { n: jobs.length - 3 })}` : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > shown ? <p style={{ padding: '12px 24px' }}><button class="button" onClick={() => show(shown + PAGE * 5)}>{t('Show more of {n}', { n: num(rows.length) })}</button></p> : null}
    </div>
  );
}
