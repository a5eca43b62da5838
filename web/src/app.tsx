/** The frame of every page: menu, top bar, banners, the page itself. */
import { effect, type Signal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { num, clock, tint } from './format';
import { connect, disconnect, heardAt, liveState, otherBuild, retryIn } from './live/socket';
import { paused, togglePause, useValue } from './live/use';
import { Icon, type IconName } from './parts/icon';
import { Dialogs, Toasts } from './parts/dialog';
import { Drop } from './parts/small';
import { Login } from './pages/login/login';
import { Home } from './pages/home/home';
import { Jobs } from './pages/jobs/jobs';
import type { Counts } from './shapes/cluster';
import { keysOff, palette, setKeys, sheet } from './state/keys';
import { A, go, lazy, path } from './state/route';
import { askSession, logOut, session } from './state/session';
import { setTheme, theme, type Theme } from './state/theme';
import { minute } from './state/ticker';
import { language, speak, t } from './text';

const Palette = lazy(() => import('./parts/palette'));
const KeySheet = lazy(() => import('./parts/keysheet'));
type Page = ComponentType<{ rest: string }>;
interface Route { at: RegExp; page: Page; admin?: boolean }
const ROUTES: Route[] = [
  { at: /^\/$/, page: Home },
  { at: /^\/jobs$/, page: Jobs },
  { at: /^\/jobs\/(.+)$/, page: lazy(() => import('./pages/job/job')) },
  { at: /^\/submit$/, page: lazy(() => import('./pages/submit/submit')) },
  { at: /^\/topology$/, page: lazy(() => import('./pages/topology/topology')) },
  { at: /^\/timeline$/, page: lazy(() => import('./pages/timeline/timeline')) },
  { at: /^\/queues(?:\/(.+))?$/, page: lazy(() => import('./pages/queues/queues')) },
  { at: /^\/nodes(?:\/(.+))?$/, page: lazy(() => import('./pages/nodes/nodes')) },
  { at: /^\/whatif$/, page: lazy(() => import('./pages/whatif/whatif')) },
  { at: /^\/sim(?:\/(.+))?$/, page: lazy(() => import('./pages/sim/sim')) },
  { at: /^\/history$/, page: lazy(() => import('./pages/history/history')) },
  { at: /^\/events$/, page: lazy(() => import('./pages/events/events')) },
  { at: /^\/profile$/, page: lazy(() => import('./pages/profile/profile')) },
  { at: /^\/admin\/users$/, page: lazy(() => import('./pages/admin/users')), admin: true },
  { at: /^\/admin\/groups$/, page: lazy(() => import('./pages/admin/groups')), admin: true },
  { at: /^\/admin\/scheduler$/, page: lazy(() => import('./pages/admin/scheduler')), admin: true },
  { at: /^\/admin\/services$/, page: lazy(() => import('./pages/admin/services')), admin: true },
  { at: /^\/admin\/audit$/, page: lazy(() => import('./pages/admin/audit')), admin: true },
];

export function App(): JSX.Element {
  const s = session.value;
  if (!s) return <Away />;
  if (!s.user || path.value === '/login') return <Login />;
  return <Frame />;
}

/** Before the first answer of the server. */
function Away(): JSX.Element {
  useEffect(() => { const timer = setInterval(() => { askSession().catch(() => {}); }, 2000); return () => clearInterval(timer); }, []);
  return <div class="login"><div class="card"><p class="say">{t('The server cannot be reached.')}</p><p class="faint">{t('Trying again every two seconds.')}</p></div></div>;
}

function Frame(): JSX.Element {
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  // Read by the parts that show a number, so that the page is not made anew with each.
  const counts = useValue<Counts>('counts', {}, undefined, 1000).value;
  const page = useMemo(() => <CurrentPage />, []);
  useEffect(() => { connect(); return disconnect; }, []);
  useEffect(() => effect(() => { void path.value; setMenu(false); queueMicrotask(() => main.current?.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })); }), []);
  const away = liveState.value === 'reconnecting';
  return (
    <div class="app">
      <a class="skip" href="#page" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>{t('Skip to the page')}</a>
      <Menu counts={counts} shown={menu} close={() => setMenu(false)} />
      <div class="main">
        <Top counts={counts} openMenu={() => setMenu(!menu)} />
        <Banners />
        <main id="page" tabIndex={-1} ref={main} class={`page ${/^\/(jobs$|topology|events|nodes$)|\/logs/.test(path.value) ? 'fixed' : ''} ${away ? 'off' : ''}`}>{page}</main>
      </div>
      {palette.value ? <Palette /> : null}
      {sheet.value ? <KeySheet /> : null}
      <Dialogs />
      <Toasts />
    </div>
  );
}

function CurrentPage(): JSX.Element {
  for (const route of ROUTES) {
    const m = route.at.exec(path.value);
    if (!m) continue;
    if (route.admin && !session.value?.admin) return <NotForYou />;
    const P = route.page;
    return <P key={route.at.source} rest={m[1] ?? ''} />;
  }
  return <div class="empty"><h1 tabIndex={-1} class="say">{t('There is no such page')}</h1><p class="mono">{path.value}</p><A class="button" href="/">{t('Home')}</A></div>;
}
const NotForYou = (): JSX.Element => (
  <div class="empty"><h1 tabIndex={-1} class="say">{t('This page is for administrators')}</h1><p>{t('You are signed in as {user}. An administrator can add you to a group that administers.', { user: session.value?.user ?? '' })}</p><A class="button" href="/">{t('Home')}</A></div>
);

type Counted = Signal<Counts | null>;
function Count({ of, say }: { of: Counted; say: (c: Counts) => number | undefined }): JSX.Element | null {
  const n = of.value ? say(of.value) : 0;
  return n ? <span class="count">{num(n)}</span> : null;
}
const Size = ({ of: { value: c } }: { of: Counted }): JSX.Element | null => (c ? <>{t('{nodes} nodes, {gpus} GPUs', { nodes: num(c.nodes?.total ?? 0), gpus: num(c.gpus?.total ?? 0) })}<br /></> : null);

function Menu({ counts, shown, close }: { counts: Counted; shown: boolean; close: () => void }): JSX.Element {
  const item = (href: string, icon: IconName, word: string, count?: (c: Counts) => number | undefined): JSX.Element => (
    <A href={href} title={word} aria-current={(href === '/' ? path.value === '/' : path.value === href || path.value.startsWith(`${href}/`)) ? 'page' : undefined} onClick={close}>
      <Icon name={icon} /><span class="word">{word}</span>{count ? <Count of={counts} say={count} /> : null}
    </A>
  );
  const s = session.value!;
  return (
    <nav class={`menu ${shown ? 'shown' : ''}`} aria-label={t('Menu')}>
      <div class="brand"><Logo /><span class="word">Muster</span><span class="only-small" style={{ marginLeft: 'auto' }}>{shown ? <button class="plain" aria-label={t('Close')} onClick={close}><Icon name="close" /></button> : null}</span></div>
      {item('/', 'home', t('Home'))}
      {item('/submit', 'plus', t('Submit Job'))}
      {item('/jobs', 'list', t('Jobs'), (c) => (c.all['WAITING'] ?? 0) + (c.all['RUNNING'] ?? 0))}
      <h2>{t('Cluster')}</h2>
      {item('/topology', 'grid', t('Topology'))}
      {item('/timeline', 'gantt', t('Timeline'))}
      {item('/queues', 'tree', t('Queues & VCs'))}
      {item('/nodes', 'server', t('Nodes'), (c) => c.nodes?.total)}
      {item('/events', 'pulse', t('Events'))}
      {item('/whatif', 'branch', t('What-if'))}
      {item('/sim', 'wave', t('Simulator'))}
      {s.admin ? (
        <>
          <h2>{t('Administration')}</h2>
          {item('/admin/users', 'users', t('User Management'))}
          {item('/admin/groups', 'shield', t('Groups'))}
          {item('/admin/scheduler', 'sliders', t('Scheduler'))}
          {item('/admin/services', 'terminal', t('Services'))}
          {item('/admin/audit', 'scroll', t('Audit'))}
        </>
      ) : null}
      <div class="foot"><span class="word">{s.cluster}<br /><Size of={counts} />muster {s.version}</span></div>
    </nav>
  );
}

export const Logo = (): JSX.Element => <span class="cells" aria-hidden="true">{[1, 1, 1, 0, 1, 1, 0, 0].map((on, i) => <i key={i} class={on ? '' : 'open'} />)}</span>;

function Alerts({ of }: { of: Counted }): JSX.Element {
  const alerts = of.value?.alerts ?? [];
  return (
    <Drop cls="plain" end name={t('{n} alerts', { n: alerts.length })} label={<><Icon name="bell" />{alerts.length ? <span class="badge">{alerts.length}</span> : null}</>}>
      {(close) => alerts.length ? alerts.map((a) => <A key={a.text} class="item" href={a.href || '/events'} onClick={close}><span class={a.severity === 'error' ? 'FAILED' : 'WAITING'}><Icon name="warn" /></span>{a.text}{a.since ? <span class="end">{clock(a.since)}</span> : null}</A>) : <span class="title">{t('No alerts')}</span>}
    </Drop>
  );
}

function Top({ counts, openMenu }: { counts: Counted; openMenu: () => void }): JSX.Element {
  const s = session.value!;
  return (
    <header class="top">
      <button class="plain only-small" aria-label={t('Menu')} onClick={openMenu}><Icon name="menu" /></button>
      <button class="search" onClick={() => { palette.value = true; }}><Icon name="search" /><span class="cut">{t('Search jobs, nodes, users')}</span><kbd>Ctrl K</kbd></button>
      <span class="grow" />
      <LiveMark />
      <Alerts of={counts} />
      <button class="plain wide" onClick={() => void speak(language.value === 'en' ? 'zh' : 'en')} lang={language.value === 'en' ? 'zh' : 'en'}>{language.value === 'en' ? '中文' : 'English'}</button>
      <Drop cls="plain" end name={t('Theme')} label={<Icon name="half" />}>
        {(close) => ([['system', t('System')], ['light', t('Light')], ['dark', t('Dark')]] as [Theme, string][]).map(([v, word]) => <button key={v} class="item" aria-pressed={theme.value === v} onClick={() => { setTheme(v); close(); }}>{word}{theme.value === v ? <span class="end"><Icon name="check" /></span> : null}</button>)}
      </Drop>
      <Drop cls="plain" end name={t('Account of {user}', { user: s.user! })} label={<><span class={`face ${tint(s.user!)}`}>{s.user![0]}</span><span class="wide">{s.user}</span></>}>
        {(close) => (
          <>
            <span class="title">{s.user}{s.admin ? ` · ${t('administrator')}` : ''}</span>
            <A class="item" href="/profile" onClick={close}><Icon name="key" />{t('Profile, tokens, password')}</A>
            <button class="item" onClick={() => { close(); void speak(language.value === 'en' ? 'zh' : 'en'); }}><Icon name="scroll" />{language.value === 'en' ? '中文' : 'English'}</button>
            <button class="item" onClick={() => { sheet.value = true; close(); }}><Icon name="list" />{t('Keyboard shortcuts')}<span class="end">?</span></button>
            <button class="item" aria-pressed={!keysOff.value} onClick={() => setKeys(keysOff.value)}><Icon name="sliders" />{keysOff.value ? t('Switch shortcuts on') : t('Switch shortcuts off')}</button>
            <hr />
            <button class="item" onClick={() => { void logOut().then(() => go('/login')); }}><Icon name="out" />{t('Sign out')}</button>
          </>
        )}
      </Drop>
    </header>
  );
}

function LiveMark(): JSX.Element {
  const state = paused.value ? 'paused' : liveState.value;
  const word = { live: t('Live'), paused: t('Paused'), polling: t('Polling'), reconnecting: t('Reconnecting'), connecting: t('Connecting') }[state];
  return <button class="plain live" title={state === 'polling' ? t('No WebSocket connection; pages refresh every 5 s.') : t('Pause or resume with the . key')} onClick={togglePause}><i class={`dot ${state}`} /><span class="wide">{word}</span></button>;
}

function Banners(): JSX.Element {
  void minute.value;
  const s = session.value!;
  return (
    <>
      {liveState.value === 'reconnecting' ? (
        <div class="banner" role="status"><Icon name="warn" /><span><b>{t('Server not reachable.')}</b> {t('Data is from {time}; actions are off. Trying again in {n} s.', { time: clock(heardAt.value, Date.now(), true), n: retryIn.value })}</span></div>
      ) : null}
      {otherBuild.value ? <div class="banner" role="status"><Icon name="warn" /><span>{t('The server runs a new version.')}</span><button class="button small" onClick={() => location.reload()}>{t('Reload')}</button></div> : null}
      {s.plainHttp ? <div class="banner"><Icon name="warn" /><span>{t('This connection is not encrypted: passwords and tokens can be read on the way.')}</span></div> : null}
      {s.defaultPassword && s.admin ? <div class="banner"><Icon name="warn" /><span>{t('The administrator still has the lab’s well-known password.')}</span><A class="button small" href="/profile">{t('Change it')}</A></div> : null}
    </>
  );
}
