/** HiveD's cells: the physical tree, one virtual cluster, or both with bound pairs. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Choice, Swatch } from '../../parts/small';
import type { Cell, Cells } from '../../shapes/topology';
import { t } from '../../text';

/** Asked for every few seconds; the same object for as long as it says the same. */
export function useCells(wanted: boolean): { cells: Cells | null; wrong: string } {
  const [cells, set] = useState<Cells | null>(null);
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    if (!wanted) return;
    let before = '';
    const ask = (): void => { get<Cells>('/cells').then((c) => { const text = JSON.stringify(c); if (text !== before) { before = text; set(c); } setWrong(''); }, (e: unknown) => setWrong(said(e))); };
    ask();
    const timer = setInterval(ask, 5000);
    return () => clearInterval(timer);
  }, [wanted]);
  return { cells, wrong };
}

export function CellTree({ cells, wrong, vc, setVc }: { cells: Cells | null; wrong: string; vc: string; setVc: (v: string) => void }): JSX.Element | null {
  const [shut, setShut] = useState<Set<string>>(new Set());
  const [lit, light] = useState('');
  if (wrong || !cells) return wrong ? <aside class="cell-tree"><p class="faint" style={{ padding: '12px 16px' }}>{wrong}</p></aside> : null;
  const names = Object.keys(cells.virtualClusters ?? {});
  const both = vc === 'both';
  const which = names.includes(vc) ? vc : 'physical';
  const flip = (a: string): void => { const next = new Set(shut); if (!next.delete(a)) next.add(a); setShut(next); };
  const list = (roots: Cell[], vcName: string): JSX.Element => <ul role="tree" aria-label={vcName || t('Physical')}>{roots.map((c) => <Row key={c.cellAddress} cell={c} depth={0} vc={vcName} shut={shut} flip={flip} lit={lit} light={light} />)}</ul>;
  return (
    <aside class="cell-tree" aria-label={t('Cell tree')}>
      <div class="cell-head"><span class="strong">{t('Cell tree')}</span><Choice name={t('Cell tree')} of={[['physical', t('Physical')], ...names.slice(0, 3).map((n) => [n, n] as [string, string]), ['both', t('Both')]]} value={both ? 'both' : which} set={(v) => setVc(v === 'physical' ? '' : v)} /></div>
      {both || which === 'physical' ? list(cells.physicalCluster, '') : null}
      {both ? names.map((n) => <><div class="cell-head"><Swatch of={n} /><span class="strong">{n}</span></div>{list(cells.virtualClusters[n]!, n)}</>) : which !== 'physical' ? list(cells.virtualClusters[which]!, which) : null}
    </aside>
  );
}

const leaves = (c: Cell): Cell[] => (c.cellChildren?.length ? c.cellChildren.flatMap(leaves) : [c]);
const short = (c: Cell): string => c.cellAddress.split('/').at(-1) || c.cellAddress;
function Row({ cell: c, depth, vc, shut, flip, lit, light }: { cell: Cell; depth: number; vc: string; shut: Set<string>; flip: (a: string) => void; lit: string; light: (a: string) => void }): JSX.Element {
  const key = `${vc}:${c.cellAddress}`;
  // Below a node the cells are drawn, not listed.
  const kids = c.isNodeLevel || !c.cellChildren?.length ? [] : c.cellChildren;
  const open = kids.length > 0 && (depth < 1) !== shut.has(key);
  const all = leaves(c);
  const used = all.filter((x) => x.cellState === 'Used').length;
  const held = all.filter((x) => /Reserv/.test(x.cellState)).length;
  const bound = vc ? c.physicalCell?.cellAddress : c.virtualCell?.cellAddress;
  const bad = c.cellHealthiness === 'Bad';
  return (
    <>
      <li role="treeitem" aria-expanded={kids.length ? open : undefined} aria-level={depth + 1} class={`${bound && lit && (lit === c.cellAddress || lit === bound) ? 'lit' : ''}`} style={{ paddingLeft: `${8 + depth * 14}px` }} onPointerEnter={() => light(c.cellAddress)} onPointerLeave={() => light('')}>
        {kids.length ? <button class="plain twist" aria-label={open ? t('Close') : t('Open')} onClick={() => flip(key)}><Icon name={open ? 'down' : 'right'} /></button> : <span class="twist" />}
        <span class={`cut grow ${c.isNodeLevel ? 'mono' : 'strong'}`} title={`${c.cellType} ${c.cellAddress}`}>{depth === 0 ? c.cellType : short(c)}</span>
        {bad ? <span class="bad" title={t('bad')}><Icon name="warn" /><span class="sr">{t('bad')}</span></span> : null}
        {all.length <= 8 ? <span class="cells RUNNING" role="img" aria-label={t('{used} of {total} in use', { used, total: all.length })}>{all.map((x) => <i key={x.cellAddress} class={x.cellHealthiness === 'Bad' ? 'off' : x.cellState === 'Used' ? (x.cellPriority < 0 ? 'half' : '') : /Reserv/.test(x.cellState) ? 'held' : 'open'} />)}</span> : <span class="meter" title={t('{used} of {total} in use', { used, total: all.length })}><i style={{ width: `${(100 * (used + held)) / all.length}%` }} /></span>}
        <span class="bound cut">{bound ? <><Swatch of={vc || c.vc || bound.split('/')[0]!} /> {vc ? short(c.physicalCell!) : `${c.vc ? `${c.vc}/` : ''}${bound.split('/').slice(-1)[0]}`}</> : c.cellPriority < 0 && c.cellState === 'Used' ? t('opportunistic') : ''}</span>
      </li>
      {open ? kids.map((k) => <Row key={k.cellAddress} cell={k} depth={depth + 1} vc={vc} shut={shut} flip={flip} lit={lit} light={light} />) : null}
    </>
  );
}
