import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, search } from '../../api';
import { csv, exact, num, save } from '../../format';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Clock, Empty, Skeleton, Wrong } from '../../parts/small';
import type { AuditRow, Page } from '../../shapes/calls';
import { goQuery, param, query } from '../../state/route';
import { withQuery } from '../../state/url';
import { t } from '../../text';

export default function Audit(): JSX.Element {
  const [page, set] = useState<Page<AuditRow> | null>(null);
  const [wrong, setWrong] = useState('');
  const offset = Number(param('offset')) || 0;
  useEffect(() => { document.title = `${t('Audit')} · Muster`; }, []);
  useEffect(() => {
    const ask = (): void => { get<Page<AuditRow>>(`/audit${search({ q: param('q'), user: param('user'), offset, limit: 200 })}`).then((p) => { set(p); setWrong(''); }, (e: unknown) => setWrong(said(e))); };
    ask();
    const timer = setInterval(() => { if (!offset && !document.hidden) ask(); }, 5000);
    return () => clearInterval(timer);
  }, [query.value]);
  const field = (key: string, word: string): JSX.Element => <label class="find"><Icon name="search" /><span class="sr">{word}</span><input data-find={key === 'q' ? '' : undefined} type="search" placeholder={word} value={param(key)} onChange={(e) => goQuery(withQuery(query.value, { [key]: e.currentTarget.value, offset: null }))} /></label>;
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Audit')}</h1><span class="sub">{page ? num(page.total) : ''}</span><span class="acts"><button class="button" disabled={!page} onClick={() => save('audit.csv', 'text/csv', csv([['time', 'user', 'from', 'verb', 'object', 'code', 'text'], ...page!.rows.map((r) => [exact(r.at), r.user, r.from, r.verb, r.object, r.code, r.text])]))}>CSV</button><button class="button" disabled={!page} onClick={() => save('audit.jsonl', 'application/x-ndjson', page!.rows.map((r) => JSON.stringify(r)).join('\n'))}>JSONL</button></span></div>
      <div class="filters">{field('q', t('Find in audit'))}{field('user', t('User'))}</div>
      {wrong ? <Wrong error={{ code: '', message: wrong }} /> : !page ? <Skeleton /> : !page.rows.length ? <Empty title={t('No entry matches')} /> : (
        <div class="table"><table class="rows"><thead><tr><th>{t('Time')}</th><th>{t('User')}</th><th>{t('What')}</th><th>{t('Object')}</th><th class="num">{t('Result')}</th><th class="less">{t('From')}</th><th class="less">{t('Detail')}</th></tr></thead><tbody>{page.rows.map((r) => <tr key={r.id}><td><Clock at={r.at} seconds /></td><td class="name">{r.user}</td><td>{r.verb}</td><td class="mono cut" style={{ maxWidth: '380px' }} title={r.object}>{r.object.replace(/\/$/, '')}</td><td class={`num ${r.code >= 400 ? 'bad' : ''}`}>{r.code}</td><td class="less mono">{r.from}</td><td class="less cut" style={{ maxWidth: '300px' }} title={r.text}>{r.text}</td></tr>)}</tbody></table></div>
      )}
      {page && page.total > 200 ? <p class="filters" style={{ paddingTop: '8px' }}><button class="button" disabled={!offset} onClick={() => goQuery(withQuery(query.value, { offset: String(Math.max(0, offset - 200)) }))}>{t('Newer')}</button><button class="button" disabled={offset + 200 >= page.total} onClick={() => goQuery(withQuery(query.value, { offset: String(offset + 200) }))}>{t('Older')}</button></p> : null}
    </>
  );
}
