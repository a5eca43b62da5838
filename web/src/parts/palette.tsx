/** Ctrl-K: pages, jobs, users, nodes. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get } from '../api';
import type { Search } from '../shapes/calls';
import type { JobRow, State } from '../shapes/job';
import type { Snapshot } from '../shapes/live';
import { palette } from '../state/keys';
import { go } from '../state/route';
import { logOut, session } from '../state/session';
import { jobHref } from '../state/url';
import { t } from '../text';
import { Glyph } from './glyph';
import { Icon, type IconName } from './icon';

interface Entry { group: string; text: string; note: string; icon: IconName | null; state?: State; run: () => void }
const to = (href: string) => (): void => go(href);

function places(): Entry[] {
  const list: [string, string, IconName][] = [
    ['/', t('Home'), 'home'], ['/submit', t('Submit Job'), 'plus'], ['/jobs', t('Jobs'), 'list'], ['/jobs?user=me', t('My jobs'), 'list'], ['/jobs?state=WAITING', t('Waiting jobs'), 'list'],
    ['/history', t('Job history'), 'scroll'],
    ['/topology', t('Topology'), 'grid'], ['/timeline', t('Timeline'), 'gantt'], ['/queues', t('Queues & VCs'), 'tree'], ['/nodes', t('Nodes'), 'server'],
    ['/events', t('Events'), 'pulse'], ['/whatif', t('What-if'), 'branch'], ['/sim', t('Simulator'), 'wave'], ['/profile', t('Profile, tokens, password'), 'key'],
  ];
  if (session.value?.admin) list.push(['/admin/users', t('User Management'), 'users'], ['/admin/groups', t('Groups'), 'shield'], ['/admin/scheduler', t('Scheduler'), 'sliders'], ['/admin/services', t('Services'), 'terminal'], ['/admin/audit', t('Audit'), 'scroll']);
  return [...list.map(([href, text, icon]) => ({ group: t('Pages'), text, note: '', icon, run: to(href) })), { group: t('Pages'), text: t('Sign out'), note: '', icon: 'out', run: () => void logOut() }];
}

async function find(q: string, signal: AbortSignal): Promise<Entry[]> {
  const found = await get<Search>(`/search?q=${encodeURIComponent(q)}`, signal).catch(async (): Promise<Search> => {
    const jobs = await get<Snapshot<JobRow>>(`/jobs?q=${encodeURIComponent(q)}&limit=8`, signal);
    return { jobs: jobs.rows, nodes: [], users: [] };
  });
  return [
    ...found.jobs.map((j) => ({ group: t('Jobs'), text: j.name, note: j.user, icon: null, state: j.state as State, run: to(jobHref(j.id)) })),
    ...found.nodes.map((n) => ({ group: t('Nodes'), text: n, note: '', icon: 'server' as const, run: to(`/nodes/${n}`) })),
    ...found.users.map((u) => ({ group: t('Users'), text: u, note: t('jobs of this user'), icon: 'users' as const, run: to(`/jobs?user=${u}`) })),
  ];
}

export default function Palette(): JSX.Element {
  const [q, setQ] = useState('');
  const [found, setFound] = useState<Entry[]>([]);
  const [at, setAt] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const before = useMemo(() => document.activeElement as HTMLElement | null, []);
  const close = (): void => { palette.value = false; before?.focus?.(); };
  useEffect(() => box.current?.focus(), []);
  useEffect(() => {
    const stop = new AbortController();
    if (q.trim().length < 2) { setFound([]); return; }
    const timer = setTimeout(() => { find(q.trim(), stop.signal).then(setFound, () => {}); }, 80);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [q]);
  const low = q.trim().toLowerCase();
  const all = [...found, ...places().filter((p) => !low || p.text.toLowerCase().includes(low))];
  const now = Math.min(at, all.length - 1);
  const key = (e: KeyboardEvent): void => {
    if (e.key === 'ArrowDown') setAt((now + 1) % all.length);
    else if (e.key === 'ArrowUp') setAt((now - 1 + all.length) % all.length);
    else if (e.key === 'Enter') { close(); all[now]?.run(); }
    else if (e.key === 'Escape' || e.key === 'Tab') close();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="sheet-back" onPointerDown={(e) => { if (e.target === e.currentTarget) close(); }}>
      <div class="dialog palette" role="dialog" aria-modal="true" aria-label={t('Search')}>
        <div class="line"><Icon name="search" /><input ref={box} role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={`found-${now}`} aria-label={t('Search jobs, nodes, users')} placeholder={t('Search jobs, nodes, users')} value={q} onInput={(e) => { setQ(e.currentTarget.value); setAt(0); }} onKeyDown={key} /><kbd>Esc</kbd></div>
        <ul id="found" role="listbox" aria-label={t('Search')}>
          {all.map((x, i) => (
            <>
              {i === 0 || all[i - 1]!.group !== x.group ? <li class="group" role="presentation">{x.group}</li> : null}
              <li id={`found-${i}`} role="option" aria-selected={i === now} onPointerMove={() => setAt(i)} onClick={() => { close(); x.run(); }}>{x.state ? <Glyph state={x.state} /> : x.icon ? <Icon name={x.icon} /> : null}<span class="cut">{x.text}</span><span class="faint">{x.note}</span></li>
            </>
          ))}
        </ul>
      </div>
    </div>
  );
}
