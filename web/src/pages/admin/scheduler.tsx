/** HiveD's configuration and the policy: check what a change does to whom, then apply it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, Failed, get } from '../../api';
import { num } from '../../format';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { Ago, Choice, Drop, Empty, Skeleton } from '../../parts/small';
import type { ConfigCheck, ConfigFile, ConfigVersion, Diagnostic } from '../../shapes/calls';
import { A, goQuery, lazy, param, query } from '../../state/route';
import { has, session } from '../../state/session';
import { jobHref, withQuery } from '../../state/url';
import { t } from '../../text';

const Editor = lazy(() => import('../submit/editor'));
type Which = 'hived' | 'policy';
export default function Scheduler(): JSX.Element {
  const which = (param('file') || 'hived') as Which;
  useEffect(() => { document.title = `${t('Scheduler')} · Muster`; }, []);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Scheduler')}</h1>{has('policy') ? <Choice name={t('File')} of={[['hived', t('Virtual clusters (HiveD)')], ['policy', t('Policy')]] as const} value={which} set={(v) => goQuery(withQuery(query.value, { file: v === 'hived' ? null : v }))} /> : null}</div>
      <File key={which} which={which} />
    </>
  );
}

function File({ which }: { which: Which }): JSX.Element {
  const [file, setFile] = useState<ConfigFile | null>(null);
  const [text, setText] = useState('');
  const [check, setCheck] = useState<ConfigCheck | null>(null);
  const [wrong, setWrong] = useState('');
  const [versions, setVersions] = useState<ConfigVersion[]>([]);
  const load = (): void => {
    get<ConfigFile>(`/${which}`).then((f) => { setFile(f); setText(f.text); setCheck(null); setWrong(''); }, (e: unknown) => setWrong(said(e)));
    get<ConfigVersion[] | { versions: ConfigVersion[] }>(`/${which}/versions`).then((v) => setVersions(Array.isArray(v) ? v : v.versions), () => {});
  };
  useEffect(load, []);
  const ask = async (): Promise<ConfigCheck | null> => {
    try { const c = await call<ConfigCheck>('POST', `/${which}:check`, { text }); setCheck(c); setWrong(''); return c; } catch (e) { setWrong(said(e)); return null; }
  };
  const put = async (confirm?: string): Promise<void> => {
    try { await call('PUT', `/${which}`, { text, resourceVersion: file!.resourceVersion, ...(confirm ? { confirm } : {}) }); toast(t('Applied')); load(); } catch (e) {
      if (e instanceof Failed && e.status === 409) conflict(e.body as Partial<ConfigFile>, text, (f) => setFile(f));
      else setWrong(said(e));
    }
  };
  const apply = async (): Promise<void> => {
    const c = await ask();
    if (!c?.ok) return;
    const losers = c.changes.filter((x) => x.effect === 'downgraded' || x.effect === 'cells-lost');
    if (losers.length) confirmLoss(losers.length, (typed) => void put(typed)); else void put();
  };
  if (wrong && !file) return <Empty title={wrong} text={which === 'hived' ? t('A cluster without virtual clusters is one pool for all.') : ''}><button class="button" onClick={load}>{t('Try again')}</button></Empty>;
  if (!file) return <Skeleton />;
  const marks: Diagnostic[] = check && !check.ok ? [{ line: check.line, col: 1, path: '', severity: 'error', message: check.message }] : [];
  const changed = text !== file.text;
  return (
    <div class="body submit preview">
      <section class="card"><header><h2>{which === 'hived' ? t('Physical cluster and virtual clusters') : t('Policy of the scheduler')}</h2><span class="note">{changed ? t('changed, not applied') : file.present ? t('as it is now') : which === 'policy' ? t('the defaults are in force') : t('none yet')}</span>
        <span class="end acts">{versions.length ? <Drop label={t('Versions')} end>{(close) => versions.map((v) => <button key={v.version} class="item" onClick={() => { setText(v.text); close(); }}>{v.version} <span class="end">{v.user}, <Ago at={v.at} suffix /></span></button>)}</Drop> : null}<button class="button" onClick={() => void ask()}>{t('Check')}</button><button class="button first" disabled={!changed} onClick={() => void apply()}>{t('Apply')}</button></span></header>
        <div class="editor-frame"><Editor text={text} changed={setText} diagnostics={marks} label={which === 'hived' ? t('Virtual clusters (HiveD)') : t('Policy')} /></div></section>
      <div class="stack">
        {wrong ? <section class="decision toned-FAILED" role="alert"><h2>{t('Refused')}</h2><p>{wrong}</p></section> : null}
        {check ? <Preview check={check} which={which} text={text} /> : <section class="card"><Empty title={t('Check shows what a change does')} text={which === 'hived' ? t('Which gangs keep their place, which lose a guarantee, and whose they are. Nothing is evicted by a change itself.') : t('Which keys change and which have no effect. The scheduler follows within a second; what runs goes on running.')} /></section>}
      </div>
    </div>
  );
}

const effectWord = (e: string): string => ({ kept: t('keeps its place'), promoted: t('guaranteed again'), downgraded: t('becomes opportunistic'), 'cells-lost': t('on cells that are gone') })[e] ?? e;
function Preview({ check, which, text }: { check: ConfigCheck; which: Which; text: string }): JSX.Element {
  if (!check.ok) return <section class="decision toned-FAILED" role="alert"><h2>{check.line ? t('Line {n}', { n: check.line }) : t('Refused')}</h2><p>{check.message}</p></section>;
  if (which === 'policy') return <PolicyPreview check={check} text={text} />;
  const hurt = check.changes.filter((c) => c.effect !== 'kept');
  return (
    <section class="card"><header><h2>{t('What it does')}</h2></header><div class="in">
      <p class="say">{hurt.length ? t('{n} of {total} gangs change.', { n: num(hurt.length), total: num(check.changes.length) }) : t('No gang is affected.')}</p>
      {check.warnings.map((w) => <p key={w} class="WAITING">{w}</p>)}
      {check.changes.length ? <div class="table"><table class="tight names" style={{ marginTop: '8px' }}><tbody>{check.changes.map((c) => <tr key={c.group} title={c.text}><td class="strong">{c.job ? <A href={jobHref(c.job)}>{c.group}</A> : c.group}</td><td class="faint">{c.user} {c.vc}</td><td class={c.effect === 'downgraded' || c.effect === 'cells-lost' ? 'WAITING' : 'soft'}>{effectWord(c.effect)}</td></tr>)}</tbody></table></div> : null}
      {check.facts.length ? <><h3 class="sub-title">{t('Also')}</h3><ul>{check.facts.map((f) => <li key={f} class="soft">{f}</li>)}</ul></> : null}
    </div></section>
  );
}
/** Which keys differ; what that does to whom is a question for a copy of the cluster. */
function PolicyPreview({ check, text }: { check: ConfigCheck & { ok: true }; text: string }): JSX.Element {
  const tried = `/whatif?s=${encodeURIComponent(JSON.stringify([{ policy: { text } }]))}`;
  return (
    <section class="card"><header><h2>{t('What it does')}</h2></header><div class="in">
      <p class="say">{check.facts.length ? t('These keys change:') : t('Nothing changes.')}</p>
      {check.warnings.map((w) => <p key={w} class="WAITING">{w}</p>)}
      {check.facts.length ? <ul>{check.facts.map((f) => <li key={f} class="mono">{f}</li>)}</ul> : null}
      {check.facts.length && text.trim() && has('whatif') ? <p><A href={tried}>{t('Try it on a copy of the cluster')}</A></p> : null}
    </div></section>
  );
}
function confirmLoss(n: number, then: (typed: string) => void): void {
  const id = session.value?.cluster ?? '';
  const Body = (): JSX.Element => {
    const [typed, set] = useState('');
    return <><h2>{t('{n} gangs lose a guarantee', { n })}</h2><p class="soft">{t('They keep running but may be evicted by guaranteed work. Their owners are notified. Type {id} to continue.', { id })}</p><input class="field" style={{ width: '100%', marginTop: '8px' }} aria-label={t('Cluster')} value={typed} onInput={(e) => set(e.currentTarget.value)} data-first /><div class="foot"><button class="button" onClick={closeDialog}>{t('Leave it as it is')}</button><button class="button kill" disabled={typed !== id} onClick={() => { closeDialog(); then(typed); }}>{t('Apply')}</button></div></>;
  };
  showDialog(t('Apply'), () => <Body />);
}
/** Somebody else was faster: both texts beside each other. */
function conflict(theirs: Partial<ConfigFile>, mine: string, keep: (f: ConfigFile) => void): void {
  const a = (theirs.text ?? '').split('\n');
  const b = mine.split('\n');
  showDialog(t('Changed meanwhile'), () => (
    <><h2>{t('Somebody else has changed it')}</h2><p class="soft">{t('Lines that differ, theirs first:')}</p><pre class="code">{[...a.filter((l) => !b.includes(l)).map((l) => `- ${l}`), ...b.filter((l) => !a.includes(l)).map((l) => `+ ${l}`)].join('\n')}</pre>
      <div class="foot"><button class="button" data-first onClick={() => { if (theirs.resourceVersion) keep({ text: theirs.text ?? '', resourceVersion: theirs.resourceVersion, present: true }); closeDialog(); }}>{t('Continue from theirs')}</button></div></>
  ), { wide: true });
}
