import type { JSX } from 'preact';
import { num } from '../../format';
import { Glyph, stateWord } from '../../parts/glyph';
import { STATES } from '../../shapes/job';
import type { Group, GroupField } from '../../shapes/live';
import { A, path, query } from '../../state/route';
import { withQuery } from '../../state/url';
import { t } from '../../text';

/** The filtered jobs counted by one field; each row leads to its jobs. */
export function Groups({ groups, field }: { groups: Group[]; field: GroupField }): JSX.Element {
  const most = Math.max(...groups.map((g) => g.gpus), 1);
  return (
    <div class="table">
      <table class="rows">
        <thead><tr><th>{t('Group')}</th><th class="num">{t('Jobs')}</th><th class="num">{t('GPUs')}</th><th /><th>{t('Status')}</th></tr></thead>
        <tbody>
          {groups.map((g) => (
            <tr key={g.value}>
              <td class="name"><A href={path.value + withQuery(query.value, { [field]: g.value, group: null })}>{field === 'state' ? stateWord(g.value as never) : g.value || '–'}</A></td>
              <td class="num">{num(g.jobs)}</td><td class="num">{num(g.gpus)}</td>
              <td style={{ width: '30%' }}><span class="meter" style={{ width: '100%' }}><i style={{ width: `${(100 * g.gpus) / most}%` }} /></span></td>
              <td><span class="legend">{STATES.filter((s) => g.states?.[s]).map((s) => <span key={s} title={stateWord(s)}><Glyph state={s} />{num(g.states[s]!)}<span class="sr">{stateWord(s)}</span></span>)}</span></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
