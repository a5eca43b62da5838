/** HiveD's cells: the physical tree, one virtual cluster, or both with bound pairs. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../api';
import { said } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Choice, Swatch } from '../../parts/small';
import type { Cell, Cells } from '../../shapes/topology';
import { t } from '../../text';

/** Asked for every few seconds, and at once when `changed` is another; the same object for as long as it says the same. */
export function useCells(wanted: boolean, changed: number): { cells: Cells | null; wrong: string } {
  const [cells, set] = useState<Cells | null>(null);
  const [wrong, setWrong] = useState('');
  const before = useRef('');
  const asked = useRef(0);
  useEffect(() => {
    if (!wanted) return;
    const ask = (): void => { asked.current = Date.now(); get<Cells>('/cells').then((c) => { const text = JSON.stringify(c); if (text !== before.current) { before.current = text; set(c); } setWrong(''); }, (e: unknown) => setWrong(said(e))); };
    // Changes may follow each other quickly: not more than one question a second.
    const soon = setTimeout(ask, Math.max(0, asked.current + 1000 - Date.now()));
    const timer = setInterval(ask, 5000);
    return () => { clearTimeout(soon); clearInterval(timer); };
  }, [wanted, changed]);
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
      <div class="cell-head"><span class="strong">{t('Cell tree')}</span><Which names={names} value={both ? 'both' : which} set={(v) => setVc(v === 'physical' ? '' : v)} /></div>
      {both || which === 'physical' ? list(cells.physicalCluster, '') : null}
      {both ? names.map((n) => <><div class="cell-head"><Swatch of={n} /><span class="strong">{n}</span></div>{list(cells.virtualClusters[n]!, n)}</>) : which !== 'physical' ? list(cells.virtualClusters[which]!, which) : null}
    </aside>
  );
}

/** Buttons for a few virtual clusters, a list for many. */
function Which({ names, value, set }: { names: string[]; value: string; set: (v: string) => void }): JSX.Element {
  const of: [string, string][] = [['physical', t('Physical')], ...names.map((n) => [n, n] as [string, string]), ['both', t('Both')]];
  if (names.length <= 3) return <Choice name={t('Cell tree')} of={of} value={value} set={set} />;
  return <select class="field" aria-label={t('Cell tree')} value={value} onChange={(e) => set(e.currentTarget.value)}>{of.map(([v, word]) => <option key={v} value={v}>{word}</option>)}</select>;
}

const leaves = (c: Cell): Cell[] => (c.cellChildren?.length ? c.cellChildren.flatMap(leaves) : [c]);
/** An address from its last name on: `node-1`, `node-1/3`, `vision/0`. */
const short = (c: Cell): string => /[^/]*[^/\d][^/]*(\/\d+)*$/.exec(c.cellAddress.replace(/-opp$/, ''))?.[0] ?? c.cellAddress;
const hasNodes = (c: Cell): boolean => !!c.cellChildren?.some((k) => k.isNodeLevel || hasNodes(k));
const isBad = (c: Cell): boolean => c.cellHealthiness === 'Bad';
/** Someone else's room, lent until its owner wants it. */
const isLent = (c: Cell): boolean => c.cellState === 'Used' && c.cellPriority < 0;
const fillOf = (c: Cell): string => (isBad(c) ? 'off' : c.cellState === 'Used' ? (isLent(c) ? 'half' : '') : /Reserv/.test(c.cellState) ? 'held' : 'open');
function Row({ cell: c, depth, vc, shut, flip, lit, light }: { cell: Cell; depth: number; vc: string; shut: Set<string>; flip: (a: string) => void; lit: string; light: (a: string) => void }): JSX.Element {
  const key = `${vc}:${c.cellAddress}`;
  const bound = vc ? c.physicalCell?.cellAddress : c.virtualCell?.cellAddress;
  // From a node on the cells are drawn, not listed, unless they are bound one by one.
  const above = hasNodes(c);
  const kids = above || (!bound && c.cellChildren?.some((k) => k.physicalCell ?? k.virtualCell)) ? (c.cellChildren ?? []) : [];
  const open = kids.length > 0 && (depth < 1 || !above) !== shut.has(key);
  const all = leaves(c);
  const used = all.filter((x) => x.cellState === 'Used').length;
  const held = all.filter((x) => /Reserv/.test(x.cellState)).length;
  const bad = all.filter(isBad).length;
  const lent = isLent(c) && (!bound || c.cellAddress.endsWith('-opp'));
  const use = [t('{used} of {total} in use', { used, total: all.length }), ...(bad ? [t('{n} of {total} bad', { n: bad, total: all.length })] : [])].join(', ');
  return (
    <>
      <li role="treeitem" aria-expanded={kids.length ? open : undefined} aria-level={depth + 1} class={`${bound && lit && (lit === c.cellAddress || lit === bound) ? 'lit' : ''}`} style={{ paddingLeft: `${8 + depth * 14}px` }} onPointerEnter={() => light(c.cellAddress)} onPointerLeave={() => light('')}>
        {kids.length ? <button class="plain twist" aria-label={open ? t('Close') : t('Open')} onClick={() => flip(key)}><Icon name={open ? 'down' : 'right'} /></button> : <span class="twist" />}
        <span class={`cut grow ${above && !vc ? 'strong' : 'mono'}`} title={`${c.cellType} ${c.cellAddress}`}>{depth === 0 && above && !vc ? c.cellType : short(c)}</span>
        {bad ? <span class="bad nowrap"><Icon name="warn" />{bad === all.length ? t('bad') : t('{n} of {total} bad', { n: bad, total: all.length })}</span> : null}
        {all.length <= 8 ? <span class="cells RUNNING" role="img" aria-label={use}>{all.map((x) => <i key={x.cellAddress} class={fillOf(x)} />)}</span> : <span class="meter" role="img" aria-label={use} title={use}><i style={{ width: `${(100 * (used + held)) / all.length}%` }} /></span>}
        <span class="bound cut">{lent ? <><Swatch of={vc || c.vc || ''} /> {t('opportunistic')}</> : bound ? <><Swatch of={vc || c.vc || bound.split('/')[0]!} /> {short(vc ? c.physicalCell! : c.virtualCell!)}</> : ''}</span>
      </li>
      {open ? kids.map((k) => <Row key={k.cellAddress} cell={k} depth={depth + 1} vc={vc} shut={shut} flip={flip} lit={lit} light={light} />) : null}
    </>
  );
}
