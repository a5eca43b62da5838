import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { sheet } from '../state/keys';
import { t } from '../text';

export default function KeySheet(): JSX.Element {
  const box = useRef<HTMLButtonElement>(null);
  const close = (): void => { sheet.value = false; };
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.focus();
    const key = (e: KeyboardEvent): void => { if (e.key === 'Escape') { e.stopPropagation(); close(); } };
    document.addEventListener('keydown', key, true);
    return () => { document.removeEventListener('keydown', key, true); before?.focus?.(); };
  }, []);
  const rows: [string, string][] = [
    ['?', t('this sheet')], ['Ctrl K', t('search and open')], ['/', t('focus the filter')], ['.', t('pause or resume live data')],
    ['g h', t('Home')], ['g j', t('Jobs')], ['g s', t('Submit Job')], ['g t', t('Topology')], ['g q', t('Queues & VCs')], ['g n', t('Nodes')], ['g w', t('What-if')],
    ['j k', t('next and previous row')], ['x', t('select the row')], ['Enter', t('open')], ['l', t('logs')], ['Ctrl Enter', t('submit')], ['Esc', t('close')],
  ];
  return (
    <div class="sheet-back" onPointerDown={(e) => { if (e.target === e.currentTarget) close(); }}>
      <div class="dialog wide" role="dialog" aria-modal="true" aria-label={t('Keyboard shortcuts')}>
        <h2>{t('Keyboard shortcuts')}</h2>
        <div class="keys">{rows.map(([k, what]) => <div key={k}><span>{what}</span><span>{k.split(' ').map((x) => <><kbd>{x}</kbd> </>)}</span></div>)}</div>
        <div class="foot"><button ref={box} class="button" onClick={close}>{t('Close')}</button></div>
      </div>
    </div>
  );
}
