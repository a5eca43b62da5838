import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get, pai } from '../../api';
import { said, toast } from '../../parts/dialog';
import { Ago } from '../../parts/small';
import type { PaiUser, SessionRow, TokenRow } from '../../shapes/calls';
import { has, session } from '../../state/session';
import { api } from '../../state/place';
import { t } from '../../text';

export default function Profile(): JSX.Element {
  const s = session.value!;
  const [me, setMe] = useState<PaiUser | null>(null);
  useEffect(() => { document.title = `${t('Profile')} · Muster`; pai.get<PaiUser>(`/users/${encodeURIComponent(s.user!)}`).then(setMe, () => {}); }, []);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{s.user}</h1><span class="sub">{s.admin ? t('administrator') : ''}</span>{has('kubeconfig') ? <span class="acts"><a class="button" href={api('/kubeconfig')} download="kubeconfig">{t('Download kubeconfig')}</a></span> : null}</div>
      <div class="body">
        <div class="two">
          <section class="card"><header><h2>{t('About you')}</h2></header><div class="in"><dl class="pairs"><dt>{t('E-mail')}</dt><dd>{me?.email || '–'}</dd><dt>{t('Groups')}</dt><dd>{s.groups.join(', ') || '–'}</dd><dt>{t('Virtual clusters')}</dt><dd>{s.vcs.join(', ') || '–'}</dd><dt>{t('Storages')}</dt><dd>{me?.storageConfig?.join(', ') || '–'}</dd></dl></div></section>
          <Password />
        </div>
        {has('tokens') ? <Tokens /> : null}
        <Sessions />
      </div>
    </>
  );
}

function Password(): JSX.Element {
  const [wrong, setWrong] = useState('');
  const [done, setDone] = useState('');
  return (
    <section class="card"><header><h2>{t('Password')}</h2></header><div class="in">
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const form = e.currentTarget;
        const f = new FormData(form);
        setWrong(''); setDone('');
        if (f.get('new') !== f.get('again')) return setWrong(t('The two new passwords differ.'));
        try { await pai.call('PUT', '/users/me', { data: { username: session.value!.user, oldPassword: f.get('old'), newPassword: f.get('new') }, patch: true }); form.reset(); setDone(t('Changed. Your other sessions have ended.')); } catch (e) { setWrong(said(e)); }
      }}>
        <input type="text" name="username" autocomplete="username" value={session.value!.user ?? ''} readOnly hidden />
        <label>{t('Current password')}<input class="field" type="password" name="old" autocomplete="current-password" required /></label>
        <div class="pair"><label>{t('New password')}<input class="field" type="password" name="new" minLength={6} autocomplete="new-password" required /></label><label>{t('Confirm password')}<input class="field" type="password" name="again" minLength={6} autocomplete="new-password" required /></label></div>
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}{done ? <p class="SUCCEEDED" role="status">{done}</p> : null}
        <div><button class="button">{t('Change password')}</button></div>
      </form></div></section>
  );
}

function Tokens(): JSX.Element {
  const [rows, set] = useState<TokenRow[]>([]);
  const [fresh, setFresh] = useState('');
  const [wrong, setWrong] = useState('');
  const ask = (): void => { get<TokenRow[] | { tokens: TokenRow[] }>('/tokens').then((x) => set(Array.isArray(x) ? x : x.tokens), (e: unknown) => setWrong(said(e))); };
  useEffect(ask, []);
  const make = async (e: Event): Promise<void> => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    try { setFresh((await call<{ token: string }>('POST', '/tokens', { note: new FormData(form).get('note') })).token); form.reset(); ask(); } catch (e) { setWrong(said(e)); }
  };
  return (
    <section class="card"><header><h2>{t('Application tokens')}</h2><span class="note">{t('for scripts: job routes of the REST API')}</span></header><div class="in">
      {fresh ? <p class="decision toned-WAITING"><span class="strong">{t('Copy it now; it is shown only once.')}</span><br /><code class="mono" style={{ overflowWrap: 'anywhere' }} data-token>{fresh}</code> <button class="button small" onClick={() => void navigator.clipboard.writeText(fresh)}>{t('Copy')}</button> <button class="button small" onClick={() => setFresh('')}>{t('Hide')}</button></p> : null}
      {rows.length ? <table class="tight"><thead><tr><th>{t('Note')}</th><th>{t('Kind')}</th><th class="num">{t('Created')}</th><th class="num" /></tr></thead><tbody>{rows.map((r) => <tr key={r.id}><td class="strong">{r.note || r.id.slice(0, 12)}</td><td class="faint">{r.application ? t('application') : t('browser')}</td><td class="num"><Ago at={r.created} /></td><td class="num"><button class="button small danger" aria-label={t('Revoke {name}', { name: r.note || r.id })} onClick={() => { call('DELETE', `/tokens/${encodeURIComponent(r.id)}`).then(ask, (e: unknown) => toast(said(e))); }}>{t('Revoke')}</button></td></tr>)}</tbody></table> : null}
      {wrong ? <p class="bad">{wrong}</p> : null}
      <form class="form" style={{ marginTop: '12px' }} onSubmit={make}><div class="with-button"><input class="field" name="note" maxLength={60} placeholder={t('What it is for')} aria-label={t('What it is for')} /><button class="button">{t('Create application token')}</button></div></form>
    </div></section>
  );
}

/** `Chrome 156 on Linux`; what is not known stays as it is. */
function browserWord(agent: string): string {
  const name = /(Edg|OPR|Firefox|Chrome|HeadlessChrome|Version)\/(\d+)/.exec(agent);
  const system = /Windows|Mac OS X|Android|iPhone|iPad|Linux|CrOS/.exec(agent)?.[0];
  if (!name) return agent.slice(0, 80);
  const word = { Edg: 'Edge', OPR: 'Opera', Version: 'Safari', HeadlessChrome: 'Chrome' }[name[1]!] ?? name[1]!;
  return system ? t('{browser} on {system}', { browser: `${word} ${name[2]!}`, system: system.replace('Mac OS X', 'macOS') }) : `${word} ${name[2]!}`;
}

function Sessions(): JSX.Element {
  const [rows, set] = useState<SessionRow[]>([]);
  const ask = (): void => { get<SessionRow[] | { sessions: SessionRow[] }>('/sessions').then((x) => set(Array.isArray(x) ? x : x.sessions), () => {}); };
  useEffect(ask, []);
  if (!rows.length) return <></>;
  return (
    <section class="card"><header><h2>{t('Where you are signed in')}</h2></header><div class="in"><table class="tight"><thead><tr><th>{t('From')}</th><th>{t('Browser')}</th><th class="num">{t('Since')}</th><th class="num">{t('Last seen')}</th><th class="num" /></tr></thead><tbody>{rows.map((r) => <tr key={r.id}><td class="mono">{r.from}</td><td class="cut soft" style={{ maxWidth: '360px' }}><span title={r.agent}>{browserWord(r.agent)}</span></td><td class="num"><Ago at={r.began} /></td><td class="num"><Ago at={r.seen} /></td><td class="num">{r.here ? <span class="faint">{t('this one')}</span> : <button class="button small" onClick={() => { call('DELETE', `/sessions/${encodeURIComponent(r.id)}`).then(ask, (e: unknown) => toast(said(e))); }}>{t('End')}</button>}</td></tr>)}</tbody></table></div></section>
  );
}
