import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pai } from '../../api';
import { num } from '../../format';
import { closeDialog, said, showDialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Skeleton, Wrong } from '../../parts/small';
import type { PaiGroup, PaiUser } from '../../shapes/calls';
import { t } from '../../text';

export default function Groups(): JSX.Element {
  const [groups, set] = useState<PaiGroup[] | null>(null);
  const [users, setUsers] = useState<PaiUser[]>([]);
  const [wrong, setWrong] = useState('');
  const ask = (): void => { pai.get<PaiGroup[]>('/groups').then(set, (e: unknown) => setWrong(said(e))); pai.get<PaiUser[]>('/users').then(setUsers, () => {}); };
  useEffect(() => { document.title = `${t('Groups')} · Muster`; ask(); }, []);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Groups')}</h1><span class="sub">{groups ? num(groups.length) : ''}</span><span class="acts"><button class="button first" onClick={() => edit(null, ask)}><Icon name="plus" />{t('Add group')}</button></span></div>
      {wrong ? <Wrong error={{ code: '', message: wrong }} again={ask} /> : !groups ? <Skeleton /> : (
        <div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th><th class="less">{t('Description')}</th><th>{t('Virtual Clusters')}</th><th>{t('Admin')}</th><th class="num">{t('Members')}</th><th class="num">{t('Actions')}</th></tr></thead>
          <tbody>{groups.map((g) => { const members = users.filter((u) => u.grouplist?.includes(g.groupname)); return <tr key={g.groupname}><td class="name">{g.groupname}</td><td class="less">{g.description}</td><td>{g.extension?.acls?.virtualClusters?.join(', ') || '–'}</td><td>{g.extension?.acls?.admin ? t('Yes') : t('No')}</td><td class="num" title={members.map((u) => u.username).join(', ')}>{num(members.length)}</td><td class="num"><button class="button small" aria-label={t('Edit {name}', { name: g.groupname })} onClick={() => edit(g, ask)}>{t('Edit')}</button> <button class="button small danger" aria-label={t('Remove {name}', { name: g.groupname })} disabled={['admingroup', 'default'].includes(g.groupname)} onClick={() => remove(g.groupname, members.length, ask)}>{t('Remove')}</button></td></tr>; })}</tbody></table></div>
      )}
    </>
  );
}
function edit(g: PaiGroup | null, after: () => void): void {
  const title = g ? t('Edit {name}', { name: g.groupname }) : t('Add group');
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    return (
      <form class="form" onSubmit={async (e) => {
        e.preventDefault();
        const f = new FormData(e.currentTarget);
        const body = { groupname: g?.groupname ?? f.get('name'), description: f.get('description'), externalName: g?.externalName ?? '', extension: { ...(g?.extension ?? {}), acls: { ...(g?.extension?.acls ?? {}), admin: f.get('admin') === 'on', virtualClusters: (f.get('vcs') as string).split(/[\s,]+/).filter(Boolean) } } };
        try { if (g) await pai.call('PUT', '/groups', { data: body, patch: true }); else await pai.call('POST', '/groups', body); closeDialog(); after(); } catch (e) { setWrong(said(e)); }
      }}>
        <h2>{title}</h2>
        {g ? null : <label>{t('Name')}<input class="field" name="name" required pattern="[A-Za-z0-9_\-]+" data-first /></label>}
        <label>{t('Description')}<input class="field" name="description" defaultValue={g?.description ?? ''} /></label>
        <label>{t('Virtual clusters')}<input class="field" name="vcs" defaultValue={g?.extension?.acls?.virtualClusters?.join(', ') ?? ''} /><span class="hint">{t('Names separated by commas.')}</span></label>
        <label class="check"><input type="checkbox" name="admin" defaultChecked={g?.extension?.acls?.admin ?? false} />{t('Members are administrators')}</label>
        {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
        <div class="foot"><button type="button" class="button" onClick={closeDialog}>{t('Close')}</button><button class="button first">{t('Save')}</button></div>
      </form>
    );
  };
  showDialog(title, () => <Body />);
}
function remove(name: string, members: number, after: () => void): void {
  const Body = (): JSX.Element => {
    const [wrong, setWrong] = useState('');
    return <><h2>{t('Remove {name}?', { name })}</h2><p class="soft">{t('{n} members lose what it grants.', { n: members })}</p>{wrong ? <p class="bad">{wrong}</p> : null}<div class="foot"><button class="button" data-first onClick={closeDialog}>{t('Keep {name}', { name })}</button><button class="button kill" onClick={() => { pai.call('DELETE', `/groups/${encodeURIComponent(name)}`).then(() => { closeDialog(); after(); }, (e: unknown) => setWrong(said(e))); }}>{t('Remove {name}', { name })}</button></div></>;
  };
  showDialog(t('Remove'), () => <Body />);
}
