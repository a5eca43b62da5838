import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, get } from '../../api';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Drop } from '../../parts/small';
import type { View } from '../../shapes/calls';
import { go, query } from '../../state/route';
import { withQuery } from '../../state/url';
import { t } from '../../text';

/** Saved views: a name for the address as it is. */
export function SaveView(): JSX.Element {
  return <Drop end label={<><Icon name="bookmark" />{t('Views')}</>}>{(close) => <List close={close} />}</Drop>;
}
function List({ close }: { close: () => void }): JSX.Element {
  const [views, setViews] = useState<View[] | null>(null);
  const [wrong, setWrong] = useState('');
  const ask = (): void => { get<View[] | { views: View[] }>('/views').then((v) => setViews(Array.isArray(v) ? v : v.views), (e: unknown) => { setViews([]); setWrong(said(e)); }); };
  if (!views) ask();
  return (
    <>
      <form class="title" onSubmit={async (e) => {
        e.preventDefault();
        const name = (new FormData(e.currentTarget).get('name') as string).trim();
        try { await call('PUT', `/views/${encodeURIComponent(name)}`, { name, page: '/jobs', query: withQuery(query.value, { sel: null }) }); close(); } catch (e) { setWrong(said(e)); }
      }}><input class="field" name="name" required maxLength={60} placeholder={t('Name of this view')} aria-label={t('Name of this view')} /> <button class="button">{t('Save view')}</button></form>
      {wrong ? <p class="title bad">{wrong}</p> : null}
      {views?.length ? <hr /> : null}
      {views?.filter((v) => v.page === '/jobs').map((v) => (
        <div key={v.name} class="item"><button class="link grow" style={{ textAlign: 'left' }} onClick={() => { close(); go(v.page + v.query); }}>{v.name}</button><button class="plain" aria-label={t('Delete view {name}', { name: v.name })} onClick={() => { call('DELETE', `/views/${encodeURIComponent(v.name)}`).then(ask, (e: unknown) => setWrong(said(e))); }}><Icon name="close" /></button></div>
      ))}
    </>
  );
}
