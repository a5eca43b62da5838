import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api';
import { num } from '../../format';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Ago, Clock, Empty, Skeleton } from '../../parts/small';
import type { Services } from '../../shapes/calls';
import { t } from '../../text';

export default function ServicesPage(): JSX.Element {
  const [s, set] = useState<Services | null>(null);
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    document.title = `${t('Services')} · Muster`;
    const ask = (): void => { get<Services>('/services').then((x) => { set(x); setWrong(''); }, (e: unknown) => setWrong(said(e))); };
    ask();
    const timer = setInterval(ask, 5000);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Services')}</h1></div>
      {!s ? (wrong ? <Empty title={wrong} /> : <Skeleton />) : (
        <div class="body">
          <section class="card"><header><h2>{t('Components')}</h2></header><div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th><th>{t('Status')}</th><th>{t('Version')}</th><th class="less">{t('Leader')}</th><th class="less">{t('Detail')}</th><th class="num">{t('Since')}</th></tr></thead><tbody>{s.components.map((c) => <tr key={c.name}><td class="name">{c.name}</td><td><span class={`state ${c.state === 'ok' ? 'RUNNING' : c.state === 'degraded' ? 'WAITING' : 'FAILED'}`}><Icon name={c.state === 'ok' ? 'check' : 'warn'} />{c.state}</span></td><td class="mono">{c.version}</td><td class="less">{c.leader || '–'}</td><td class="less">{c.text}</td><td class="num"><Ago at={c.since} /></td></tr>)}</tbody></table></div></section>
          {s.queues.length ? <section class="card"><header><h2>{t('Queued work')}</h2></header><div class="table"><table class="rows"><tbody>{s.queues.map((q) => <tr key={q.name}><td class="name">{q.name}</td><td class="num">{num(q.depth)}{q.limit ? <span class="faint"> / {num(q.limit)}</span> : null}</td></tr>)}</tbody></table></div></section> : null}
          <section class="card"><header><h2>{t('Last errors')}</h2></header>{s.errors.length ? <div class="table"><table class="rows wrap"><tbody>{s.errors.map((e, i) => <tr key={i}><td class="nowrap"><Clock at={e.at} seconds /></td><td class="strong">{e.component}</td><td>{e.text}</td></tr>)}</tbody></table></div> : <Empty title={t('No errors')} />}</section>
        </div>
      )}
    </>
  );
}
