/** What a tenant holds, on one scale for a whole table. */
import type { JSX } from 'preact';
import { num, tint } from '../format';
import type { Tenant } from '../shapes/cluster';
import { t } from '../text';

export function ShareBar({ tenant: q, scale }: { tenant: Tenant; scale: number }): JSX.Element {
  const x = (n: number): string => `${Math.min(100, (100 * n) / Math.max(scale, 1))}%`;
  const promise = q.guarantee.gpus;
  const used = q.used.gpus;
  const oppoFrom = Math.max(promise, used);
  const label = t('{name}: {used} GPUs used of {promise} guaranteed, {oppo} opportunistic, {lent} lent', { name: q.name, used: num(used), promise: num(promise), oppo: num(q.oppo.gpus), lent: num(q.lent.gpus) });
  return (
    <div class={`share ${tint(q.name)}`} role="img" aria-label={label} title={label} style={{ width: q.capability ? x(q.capability.gpus) : '100%', minWidth: 0 }}>
      <Inner q={q} scale={q.capability?.gpus || scale} promise={promise} used={used} oppoFrom={oppoFrom} />
    </div>
  );
}
function Inner({ q, scale, promise, used, oppoFrom }: { q: Tenant; scale: number; promise: number; used: number; oppoFrom: number }): JSX.Element {
  const x = (n: number): string => `${Math.min(100, (100 * n) / Math.max(scale, 1))}%`;
  return (
    <>
      {promise ? <i class="promise" style={{ width: x(promise) }} /> : null}
      {used ? <i class="used" style={{ width: x(used) }} /> : null}
      {q.lent.gpus ? <i class="lent" style={{ left: x(Math.max(used, promise - q.lent.gpus)), width: x(Math.min(q.lent.gpus, promise - used)) }} /> : null}
      {q.oppo.gpus ? <i class="oppo" style={{ left: x(oppoFrom), width: x(q.oppo.gpus) }} /> : null}
      {promise ? <i class="mark" style={{ left: x(promise) }} /> : null}
      {q.deserved ? <i class="deserved" style={{ left: x(q.deserved.gpus) }} /> : null}
    </>
  );
}
export const ShareLegend = (): JSX.Element => (
  <span class="legend k5">
    <span><i class="share"><i class="used" style={{ width: '100%' }} /></i>{t('used')}</span>
    <span><i class="share"><i class="oppo" style={{ left: 0, width: '100%' }} /></i>{t('opportunistic')}</span>
    <span><i class="share"><i class="lent" style={{ left: 0, width: '100%' }} /></i>{t('lent')}</span>
    <span><i class="share" style={{ width: '2px', minWidth: '2px' }}><i class="mark" style={{ left: '1px' }} /></i>{t('guarantee')}</span>
    <span><i class="share" style={{ width: '8px', minWidth: '8px' }}><i class="deserved" style={{ left: '4px', top: '2px' }} /></i>{t('deserved')}</span>
  </span>
);
