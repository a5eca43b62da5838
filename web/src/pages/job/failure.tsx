import type { JSX } from 'preact';
import type { JobDetail } from '../../shapes/job';
import { A } from '../../state/route';
import { jobHref } from '../../state/url';
import { t } from '../../text';

/** Exit → reason → what to do. */
export function FailureBox({ detail: d }: { detail: JobDetail }): JSX.Element | null {
  const f = d.failure;
  if (!f) return null;
  return (
    <section class="card says tone toned-FAILED"><div class="in" style={{ paddingTop: '12px' }}>
      <p class="strong bad">{f.code !== null ? t('Exit {code}: {reason}', { code: f.code, reason: f.reason }) : f.reason}</p>
      {f.text && f.text !== f.reason ? <p style={{ overflowWrap: 'anywhere' }}>{f.text}</p> : null}
      {f.advice ? <p class="faint">{f.advice}</p> : null}
      <p style={{ display: 'flex', gap: '8px', marginTop: '8px' }}><A class="button small" href={`${jobHref(d.row.id, 'logs')}${f.task ? `?task=${f.task}` : ''}`}>{t('Open log')}</A><A class="button small" href={`/submit?clone=${encodeURIComponent(d.row.id)}`}>{t('Clone')}</A></p>
    </div></section>
  );
}
