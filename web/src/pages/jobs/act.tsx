/** Acts on jobs: ask once, name what is hit, then do it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, Failed, get, jobPath, lines, search } from '../../api';
import { gpus, num } from '../../format';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { stateWord } from '../../parts/glyph';
import type { Act, ActLine, Impact } from '../../shapes/calls';
import type { JobRow, State } from '../../shapes/job';
import type { JobQuery } from '../../shapes/live';
import { session } from '../../state/session';
import { t } from '../../text';

const ACTIVE: State[] = ['WAITING', 'RUNNING', 'SUSPENDED', 'STOPPING'];
export const mayStop = (r: JobRow): boolean => ACTIVE.includes(r.state) && r.state !== 'STOPPING' && (session.value?.admin || (r.id.includes('~') ? r.user === session.value?.user : !!session.value?.namespaces.includes(r.id.split('/')[0]!)));

/** Runs an act and says how it ended; errors of single jobs are listed, not hidden. */
export async function act(body: Act): Promise<{ done: number; wrong: { id: string; message: string }[] }> {
  const wrong: { id: string; message: string }[] = [];
  let done = 0;
  await lines<ActLine>('/jobs:act', body, (line) => {
    if ('id' in line) { if (line.ok) done++; else wrong.push(line); }
  });
  return { done, wrong };
}

interface Ask { title: string; text: string; table: { name: string; note: string; gpus: number }[]; word: string; keep: string; body: Act; done: (n: number) => string; dangerous?: boolean }
export function askAndAct(ask: Ask, after?: () => void): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState<string[]>([]);
    const [busy, setBusy] = useState(false);
    const run = async (): Promise<void> => {
      setBusy(true);
      try {
        const { done, wrong } = await act(ask.body);
        if (wrong.length) { setWrong(wrong.slice(0, 20).map((w) => `${w.id}: ${w.message}`)); setBusy(false); return; }
        closeDialog();
        toast(ask.done(done));
        after?.();
      } catch (e) {
        const found = e instanceof Failed && e.status === 409 ? (e.body as { found?: number } | null)?.found : undefined;
        setWrong([found !== undefined ? t('{n} jobs match now. Close this and check again.', { n: num(found) }) : said(e)]);
        setBusy(false);
      }
    };
    return (
      <>
        <h2>{ask.title}</h2>
        <p class="soft">{ask.text}</p>
        <table class="tight" style={{ marginTop: '12px' }}><tbody>{ask.table.slice(0, 12).map((r) => <tr key={r.name}><td class="strong">{r.name}</td><td class="faint">{r.note}</td><td class="num">{r.gpus ? gpus(r.gpus) : ''}</td></tr>)}</tbody></table>
        {ask.table.length > 12 ? <p class="faint">{t('and {n} more', { n: num(ask.table.length - 12) })}</p> : null}
        {wrong.map((w) => <p key={w} class="bad" role="alert">{w}</p>)}
        <div class="foot"><button class="button" data-first onClick={closeDialog}>{ask.keep}</button><button class={`button ${ask.dangerous === false ? 'first' : 'kill'}`} disabled={busy} onClick={run}>{ask.word}</button></div>
      </>
    );
  };
  showDialog(ask.title, () => <Body />);
}

export function stopJobs(rows: JobRow[], after?: () => void): void {
  const one = rows.length === 1 ? rows[0]! : null;
  askAndAct({
    title: one ? t('Stop {name}?', { name: one.name }) : t('Stop {n} jobs?', { n: num(rows.length) }),
    text: t('Work since the last checkpoint is lost.'),
    table: rows.map((r) => ({ name: r.name, note: `${r.user}, ${stateWord(r.state)}`, gpus: r.gpus })),
    word: one ? t('Stop job') : t('Stop {n} jobs', { n: num(rows.length) }), keep: one ? t('Keep it') : t('Keep them'),
    body: { action: 'stop', ids: rows.map((r) => r.id) }, done: (n) => (n === 1 ? t('Stopping {name}', { name: one?.name ?? '' }) : t('Stopping {n} jobs', { n: num(n) })),
  }, after);
}

/** All that match: asks the server whom it would hit, and names the number that was seen. */
export function actOnAll(action: 'stop' | 'suspend' | 'resume', query: JobQuery, after?: () => void): void {
  const Loading = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    useEffect(() => {
      get<Impact>(`/jobs:impact${search({ ...query, sort: undefined, group: undefined })}`).then((hit) => {
        closeDialog();
        const verb = action === 'stop' ? t('Stop {n} jobs', { n: num(hit.total) }) : action === 'suspend' ? t('Suspend {n} jobs', { n: num(hit.total) }) : t('Resume {n} jobs', { n: num(hit.total) });
        askAndAct({
          title: `${verb}?`, text: action === 'stop' ? t('Work since the last checkpoint is lost.') : t('They release their GPUs and wait until they are resumed.'),
          table: hit.users.map((u) => ({ name: u.user, note: Object.entries(u.states).map(([s, n]) => `${num(n)} ${stateWord(s as State).toLowerCase()}`).join(', '), gpus: u.gpus })),
          word: verb, keep: t('Keep them'), body: { action, query, expected: hit.total }, done: (n) => t('{n} jobs done', { n: num(n) }), dangerous: action === 'stop',
        }, after);
      }, (e: unknown) => setWrong(said(e)));
    }, []);
    return <><h2>{t('All that match')}</h2>{wrong ? <p class="bad">{wrong}</p> : <p class="faint">{t('Counting …')}</p>}<div class="foot"><button class="button" onClick={closeDialog}>{t('Close')}</button></div></>;
  };
  showDialog(t('All that match'), () => <Loading />);
}

export function askTag(ids: string[], after?: () => void): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    return (
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const value = new FormData(e.currentTarget).get('tag') as string;
        try {
          const { wrong } = await act({ action: 'tag', ids, value });
          if (wrong.length) return setWrong(wrong[0]!.message);
          closeDialog();
          after?.();
        } catch (e) { setWrong(said(e)); }
      }}>
        <h2>{ids.length === 1 ? t('Tag this job') : t('Tag {n} jobs', { n: num(ids.length) })}</h2>
        <label>{t('Tag')}<input class="field" name="tag" required pattern="[^,]+" maxLength={64} data-first /><span class="hint">{t('A word without commas; jobs can be found by it.')}</span></label>
        {wrong ? <p class="wrong">{wrong}</p> : null}
        <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first">{t('Add tag')}</button></div>
      </form>
    );
  };
  showDialog(t('Tag'), () => <Body />);
}
export const untag = (id: string, tag: string): Promise<unknown> => act({ action: 'untag', ids: [id], value: tag });
export const simpleAct = async (action: Act['action'], id: string, value?: string): Promise<string> => {
  try {
    const { wrong } = await act({ action, ids: [id], ...(value === undefined ? {} : { value }) });
    return wrong[0]?.message ?? '';
  } catch (e) { return said(e); }
};
export const configOf = (id: string): string => `${jobPath(id)}/config`;
export const forget = (path: string): Promise<unknown> => call('DELETE', path);
