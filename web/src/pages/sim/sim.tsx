import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get } from '../../api';
import { percent } from '../../format';
import { said, toast } from '../../parts/dialog';
import { Ago, Empty } from '../../parts/small';
import type { SimRow } from '../../shapes/calls';
import { api } from '../../state/place';
import { has } from '../../state/session';
import { t } from '../../text';

export default function Sim(): JSX.Element {
  const [rows, set] = useState<SimRow[]>([]);
  useEffect(() => { document.title = `${t('Simulator')} · Muster`; }, []);
  useEffect(() => {
    if (!has('sims')) return;
    const ask = (): void => { get<SimRow[]>('/sims').then(set, () => {}); };
    ask();
    const timer = setInterval(ask, 2000);
    return () => clearInterval(timer);
  }, []);
  const start = (): void => { call('POST', '/sims', { example: 'sim' }).catch((e: unknown) => toast(said(e))); };
  return (
    <>
      <div class="head"><h1 tabIndex={-1}>{t('Simulator')}</h1>{has('sims') ? <span class="acts"><button class="button first" onClick={start}>{t('Run the example')}</button></span> : null}</div>
      {!has('sims') ? <Empty title={t('This server runs no simulations')} text={t('On the command line: muster sim examples/sim replays a trace under several policies and compares them.')} /> : !rows.length ? <Empty title={t('No simulation yet')} text={t('Run one on an example, or on this cluster’s own history.')} /> : (
        <div class="body"><section class="card"><div class="table"><table class="rows"><thead><tr><th>{t('Name')}</th><th>{t('User')}</th><th>{t('Status')}</th><th class="num">{t('Progress')}</th><th class="num">{t('Began')}</th><th /></tr></thead><tbody>{rows.map((r) => <tr key={r.id}><td class="name">{r.name}</td><td>{r.user}</td><td title={r.text}>{r.state}</td><td class="num">{percent(r.progress, 1)}</td><td class="num"><Ago at={r.began} /></td><td><a class="link" href={api(`/sims/${encodeURIComponent(r.id)}`)} download>JSON</a></td></tr>)}</tbody></table></div></section></div>
      )}
    </>
  );
}
