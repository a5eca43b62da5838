/** Use over time, stacked by tenant: areas at 30 % with a line, in the order of the table. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { num, slot } from '../format';
import type { Usage } from '../shapes/cluster';
import { colour, shownTheme } from '../state/theme';
import { language, t } from '../text';

/** Seconds between two times on the axis. */
const STEPS = [60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 345600];
/** GPUs between two lines: never a part of one, however few there are. */
const GPUS = [1, 2, 5].flatMap((n) => [1, 10, 100, 1000, 10000].map((of) => n * of)).sort((a, b) => a - b);
function tick(at: number, step: number): string {
  const d = new Date(at * 1000);
  if (step >= 86400) return `${d.getDate()} ${d.toLocaleDateString(language.value === 'zh' ? 'zh-CN' : 'en-GB', { month: 'short' })}`;
  return `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`;
}

export default function Stacked({ usage, only, height = 190 }: { usage: Usage; only?: string[]; height?: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const theme = shownTheme.value;
  useEffect(() => {
    const names = usage.tenants.filter((n) => !only || only.includes(n));
    const data: (number | null)[][] = [];
    let below: (number | null)[] = usage.at.map(() => 0);
    for (const n of names) {
      const c = usage.columns[usage.tenants.indexOf(n)]!;
      below = below.map((v, i) => (v === null || c.used[i] === null || c.used[i] === undefined ? null : v + c.used[i]! + (c.oppo[i] ?? 0)));
      data.push(below);
    }
    const text = colour('--text-3');
    const axis = { stroke: text, font: `11px ${getComputedStyle(document.body).fontFamily}`, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: box.current!.clientWidth, height, legend: { show: false }, cursor: { points: { show: false }, drag: { x: false, y: false } },
        scales: { y: { range: (_u, _min, max) => [0, Math.max(max * 1.05, 1)] } },
        axes: [{ ...axis, size: 26, grid: { show: false }, incrs: STEPS, values: (_u, at, _axis, _space, step) => at.map((s) => tick(s, step)) }, { ...axis, size: 48, incrs: GPUS, values: (_u, v) => v.map(num) }],
        series: [{}, ...names.map((n, i) => ({ label: n, stroke: colour(`--c${slot(n)}`), width: 1.5, fill: `${colour(`--c${slot(n)}`)}4d`, points: { show: false }, ...(i ? {} : {}) })).reverse()],
        bands: names.slice(1).map((_, i) => ({ series: [i + 1, i + 2] as [number, number] })),
      },
      [usage.at.map((at) => at / 1000), ...[...data].reverse()] as uPlot.AlignedData,
      box.current!,
    );
    const watch = new ResizeObserver(() => { if (box.current) plot.setSize({ width: box.current.clientWidth, height }); });
    watch.observe(box.current!);
    return () => { watch.disconnect(); plot.destroy(); };
  }, [usage, theme, only?.join()]);
  const last = usage.at.length - 1;
  return <div class="chart" ref={box} role="img" aria-label={t('GPUs in use over time') + ': ' + usage.tenants.map((n, i) => `${n} ${num(usage.columns[i]!.used[last] ?? 0)}`).join(', ')} />;
}
