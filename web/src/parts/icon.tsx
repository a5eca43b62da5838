import type { JSX } from 'preact';

const PATHS = {
  home: 'M2.5 7.2 8 2.5l5.5 4.7M4 6.2v7.3h8V6.2M6.7 13.5V9.8h2.6v3.7',
  plus: 'M8 3v10M3 8h10',
  list: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  grid: 'M2.5 2.5h4.6v4.6H2.5zM8.9 2.5h4.6v4.6H8.9zM2.5 8.9h4.6v4.6H2.5zM8.9 8.9h4.6v4.6H8.9z',
  gantt: 'M2.5 3.5h5M5.5 8h6M8.5 12.5h5',
  tree: 'M8 2.5v5M3.5 13.5v-3h9v3M8 7.5v3',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  branch: 'M3.5 2.5v11M3.5 8.5h5a3 3 0 0 1 3 3v2',
  wave: 'M1.5 8.5h2l2-5 3 9 2.5-6.5 1 2.5h2.5',
  users: 'M6 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6ZM1.8 13c.3-2.3 2-3.6 4.2-3.6s3.9 1.3 4.2 3.6M10.6 3.2a2.2 2.2 0 0 1 0 4.1M12 9.8c1.3.5 2 1.6 2.2 3.2',
  shield: 'M8 2.2 3 4v4c0 3 2 5 5 6 3-1 5-3 5-6V4z',
  sliders: 'M3 4.5h6M12 4.5h1M3 11.5h1M7 11.5h6M10.5 3v3M5.5 10v3',
  pulse: 'M2 8h3l1.5-3.5 3 7L11 8h3',
  scroll: 'M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.2 3.2',
  bell: 'M8 2.3a3.7 3.7 0 0 0-3.7 3.7c0 3.5-1.5 4.5-1.5 4.5h10.4s-1.5-1-1.5-4.5A3.7 3.7 0 0 0 8 2.3ZM6.8 13a1.3 1.3 0 0 0 2.4 0',
  half: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 2.5v11M8 4.5c2 0 3.5 1.5 3.5 3.5S10 11.5 8 11.5',
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  close: 'm4 4 8 8M12 4l-8 8',
  up: 'm4 10 4-4 4 4', down: 'm4 6 4 4 4-4', right: 'm6 4 4 4-4 4', left: 'm10 4-4 4 4 4',
  open: 'M9.5 2.5h4v4M13.5 2.5 8 8M11.5 9v4.5h-9v-9H7',
  bookmark: 'M4.5 2.5h7v11L8 10.8l-3.5 2.7z',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  pause: 'M5.5 3.5v9M10.5 3.5v9', play: 'M4.5 3v10l8-5z', stop: 'M4 4h8v8H4z',
  tag: 'M2.5 2.5h5l6 6-5 5-6-6zM5.3 5.3h.01',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  download: 'M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13.5h10',
  upload: 'M8 10V2.5M4.8 5.5 8 2.3l3.2 3.2M3 13.5h10',
  image: 'M2.5 3h11v10h-11zM2.5 11l3.5-3.5 3 3 2-2 2.5 2.5M10.5 6h.01',
  terminal: 'M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.5H11',
  warn: 'M8 2.5 14 13.5H2zM8 6.5v3.2M8 11.6h.01',
  check: 'm3 8.5 3.2 3.2L13 4.5',
  key: 'M10.2 9.2a3.4 3.4 0 1 0-3.4-3.4c0 .5.1.9.2 1.3L2.5 11.6v1.9h2.6v-1.7h1.7v-1.7l1.4-1.4c.6.3 1.3.5 2 .5ZM11 5h.01',
  out: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
} as const;
export type IconName = keyof typeof PATHS;
export const Icon = ({ name }: { name: IconName }): JSX.Element => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[name]} /></svg>
);
