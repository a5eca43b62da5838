/** User Management: who there is, what they may use. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get, pai } from '../../api';
import { num } from '../../format';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Ago, Empty, Skeleton, Wrong } from '../../parts/small';
import type { PaiUser } from '../../shapes/calls';
import { A, goQuery, param, query } from '../../state/route';
import { session } from '../../state/session';
import { withQuery } from '../../state/url';
import { t } from '../../text';
import { parseUsers, type NewUser } from './bulk';

export default function Users(): JSX.Element {
  const [users, set] = useState<PaiUser[] | null>(null);
  const [vcs, setVcs] = useState<string[]>([]);
  const [wrong, setWrong] = useState('');
  const [chosen, choose] = useState<Set<string>>(new Set());
  const [seen, setSeen] = useState<Record<string, number>>({});
  const ask = (): void => {
    pai.get<PaiUser[]>('/users').then((u) => { set(u); setWrong(''); }, (e: unknown) => setWrong(said(e)));
    get<Record<string, number>>('/sessions/seen').then(setSeen, () => {});
  };
  useEffect(() => { document.title = `${t('User Management')} · Muster`; ask(); pai.get<Record<string, unknown>>('/virtual-clusters').then((v) => setVcs(Object.keys(v)), () => setVcs(session.value?.vcs ?? [])); }, []);
  const q = param('q').toLowerCase();
  const shown = users?.filter((u) => !q || u.username.toLowerCase().includes(q) || (u.email ?? '').toLowerCase().includes(q)).sort((a, b) => a.username.localeCompare(b.username)) ?? [];
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('User Management')}</h1><span class="sub">{users ? num(users.length) : ''}</span>
        <span class="acts"><button class="button" onClick={() => bulk(vcs, ask)}>{t('Create Bulk Users')}</button><button class="button first" onClick={() => editUser(null, vcs, ask)}><Icon name="plus" />{t('Add User')}</button></span></div>
      <div class="filters">{chosen.size ? <><span class="strong">{t('{n} selected', { n: chosen.size })}</span><button class="button" onClick={() => batch([...chosen], vcs, 'password', () => { choose(new Set()); ask(); })}>{t('Set password')}</button><button class="button" onClick={() => batch([...chosen], vcs, 'vcs', () => { choose(new Set()); ask(); })}>{t('Set virtual clusters')}</button><button class="button" onClick={() => choose(new Set())}>{t('Clear selection')}</button></> : <label class="find"><Icon name="search" /><span class="sr">{t('Name or e-mail')}</span><input data-find type="search" placeholder={t('Name or e-mail')} value={param('q')} onInput={(e) => goQuery(withQuery(query.value, { q: e.currentTarget.value }), true)} /></label>}</div>
      {wrong ? <Wrong error={{ code: '', message: wrong }} again={ask} /> : !users ? <Skeleton /> : !shown.length ? <Empty title={t('No user matches')} /> : (
        <div class="table"><table class="rows">
          <thead><tr><th style={{ width: '46px' }}><span class="sr">{t('Select')}</span></th><th>{t('User Name')}</th><th>{t('Admin')}</th><th class="less">{t('Email')}</th><th class="less">{t('Virtual Clusters')}</th><th class="num less">{t('Last seen')}</th><th class="num">{t('Actions')}</th></tr></thead>
          <tbody>{shown.slice(0, 500).map((u) => (
            <tr key={u.username}><td><input type="checkbox" aria-label={t('Select {name}', { name: u.username })} checked={chosen.has(u.username)} onClick={() => { const next = new Set(chosen); if (!next.delete(u.username)) next.add(u.username); choose(next); }} /></td><td class="name"><A href={`/jobs?user=${encodeURIComponent(u.username)}`}>{u.username}</A></td><td>{u.admin ? t('Yes') : t('No')}</td><td class="less">{u.email || '–'}</td><td class="less cut" style={{ maxWidth: '300px' }}>{u.admin ? t('all') : u.virtualCluster?.join(', ')}</td><td class="num less"><Ago at={seen[u.username] ?? null} /></td>
              <td class="num"><button class="button small" aria-label={t('Edit {name}', { name: u.username })} onClick={() => editUser(u, vcs, ask)}>{t('Edit')}</button> <button class="button small" aria-label={t('Sign {name} out everywhere', { name: u.username })} onClick={() => { call('DELETE', `/sessions?user=${encodeURIComponent(u.username)}`).then(() => toast(t('{name} is signed out', { name: u.username })), (e: unknown) => toast(said(e))); }}>{t('Sign out')}</button> <button class="button small danger" aria-label={t('Remove {name}', { name: u.username })} disabled={u.username === session.value?.user} onClick={() => remove(u, ask)}>{t('Remove')}</button></td></tr>
          ))}</tbody>
        </table></div>
      )}
    </>
  );
}

function editUser(u: PaiUser | null, vcs: string[], after: () => void): void {
  const title = u ? t('Edit {name}', { name: u.username }) : t('Add User');
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    const [admin, setAdmin] = useState(u?.admin ?? false);
    return (
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const f = new FormData(e.currentTarget);
        const password = f.get('password') as string;
        if (password && password.length < 6) return setWrong(t('The password needs at least six characters.'));
        const body = { username: u?.username ?? (f.get('username') as string), email: f.get('email') as string, admin, virtualCluster: f.getAll('vc') as string[], ...(password ? { password } : {}) };
        try { if (u) await pai.call('PUT', '/users', { data: admin ? { ...body, virtualCluster: undefined } : body, patch: true }); else await pai.call('POST', '/users', { ...body, extension: {} }); closeDialog(); after(); } catch (e) { setWrong(said(e)); }
      }}>
        <h2>{title}</h2>
        {u ? null : <label>{t('User Name')}<input class="field" name="username" required pattern="[\w.\-]+" autocomplete="off" data-first /></label>}
        <label>{u ? t('New password') : t('Password')}<input class="field" type="password" name="password" required={!u} autocomplete="new-password" /><span class="hint">{t('At least six characters.')}</span></label>
        <label>{t('Email')}<input class="field" type="email" name="email" defaultValue={u?.email ?? ''} /></label>
        <label class="check"><input type="checkbox" checked={admin} onClick={() => setAdmin(!admin)} />{t('Administrator: may use all virtual clusters and manage people')}</label>
        {admin ? null : <fieldset><legend>{t('Virtual clusters')}</legend><div class="pair">{vcs.map((v) => <label key={v} class="check"><input type="checkbox" name="vc" value={v} defaultChecked={v === 'default' || u?.virtualCluster?.includes(v)} disabled={v === 'default'} />{v}</label>)}</div></fieldset>}
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
        <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first">{t('Save')}</button></div>
      </form>
    );
  };
  showDialog(title, () => <Body />);
}

function remove(u: PaiUser, after: () => void): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    return (<><h2>{t('Remove {name}?', { name: u.username })}</h2><p class="soft">{t('Sessions and tokens end at once. Jobs go on until they end or are stopped.')}</p>{wrong ? <p class="bad" role="alert">{wrong}</p> : null}<div class="foot"><button class="button" data-first onClick={closeDialog}>{t('Keep {name}', { name: u.username })}</button><button class="button kill" onClick={() => { pai.call('DELETE', `/users/${encodeURIComponent(u.username)}`).then(() => { closeDialog(); after(); }, (e: unknown) => setWrong(said(e))); }}>{t('Remove {name}', { name: u.username })}</button></div></>);
  };
  showDialog(t('Remove'), () => <Body />);
}

function batch(names: string[], vcs: string[], what: 'password' | 'vcs', after: () => void): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState<string[]>([]);
    return (
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const f = new FormData(e.currentTarget);
        const failed: string[] = [];
        for (const username of names) await pai.call('PUT', '/users', { data: what === 'password' ? { username, password: f.get('password') } : { username, virtualCluster: f.getAll('vc') }, patch: true }).catch((e: unknown) => failed.push(`${username}: ${said(e)}`));
        if (failed.length) setWrong(failed); else { closeDialog(); after(); }
      }}>
        <h2>{what === 'password' ? (names.length === 1 ? t('Set the password of {user}', { user: names[0]! }) : t('Set the password of {n} users', { n: names.length })) : names.length === 1 ? t('Set virtual clusters of {user}', { user: names[0]! }) : t('Set virtual clusters of {n} users', { n: names.length })}</h2><p class="soft">{names.join(', ')}</p>
        {what === 'password' ? <label>{t('New password')}<input class="field" type="password" name="password" minLength={6} required autocomplete="new-password" data-first /></label> : <fieldset><legend>{t('Virtual clusters')}</legend><div class="pair">{vcs.map((v) => <label key={v} class="check"><input type="checkbox" name="vc" value={v} />{v}</label>)}</div></fieldset>}
        {wrong.map((w) => <p key={w} class="wrong">{w}</p>)}
        <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first">{t('Save')}</button></div>
      </form>
    );
  };
  showDialog(t('Users'), () => <Body />);
}

/** A CSV with a preview: what each line would make, or why it cannot. */
function bulk(vcs: string[], after: () => void): void {
  const Body = (): JSX.Element => {
    const [text, setText] = useState('');
    const [results, setResults] = useState<Record<number, string>>({});
    const lines = parseUsers(text, vcs);
    const good = lines.filter((l): l is NewUser & { wrong: '' } => !l.wrong);
    const run = async (): Promise<void> => {
      const next: Record<number, string> = {};
      for (const l of good) next[l.line] = await pai.call('POST', '/users', { username: l.username, password: l.password, email: l.email, admin: l.admin, virtualCluster: l.vcs, extension: {} }).then(() => t('created'), (e: unknown) => said(e));
      setResults(next);
      after();
    };
    return (
      <>
        <h2>{t('Create Bulk Users')}</h2><p class="faint">{t('One user per line: name, password, e-mail, admin (true or false), virtual clusters separated by |.')}</p>
        <textarea class="field mono" rows={6} style={{ width: '100%', margin: '8px 0' }} aria-label="CSV" placeholder={'username,password,email,admin,virtual cluster\ncarol,secret-1,carol@example.org,false,vc1|default'} value={text} onInput={(e) => setText(e.currentTarget.value)} data-first />
        <input type="file" accept=".csv,text/csv" aria-label={t('Import')} onChange={(e) => { void e.currentTarget.files?.[0]?.text().then(setText); }} />
        {lines.length ? <table class="tight" style={{ marginTop: '8px' }}><thead><tr><th>{t('Line')}</th><th>{t('User Name')}</th><th>{t('Email')}</th><th>{t('Virtual Clusters')}</th><th>{t('Result')}</th></tr></thead><tbody>{lines.slice(0, 200).map((l) => <tr key={l.line}><td>{l.line}</td><td class="strong">{l.username}</td><td>{l.email}</td><td>{l.admin ? t('all') : l.vcs.join(', ')}</td><td class={l.wrong ? 'bad' : ''}>{results[l.line] ?? (l.wrong || t('will be created'))}</td></tr>)}</tbody></table> : null}
        <div class="foot"><button class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first" disabled={!good.length || Object.keys(results).length > 0} onClick={() => void run()}>{(good.length === 1 ? t('Create 1 user') : t('Create {n} users', { n: good.length }))}</button></div>
      </>
    );
  };
  showDialog(t('Create Bulk Users'), () => <Body />, { wide: true });
}
