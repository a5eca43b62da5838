/**
 * One WebSocket a tab. Subscriptions outlive connections: after a loss they are made again. When no socket opens, each
 * subscription is asked by GET every 5 s instead.
 */
import { signal } from '@preact/signals';
import { Failed, get } from '../api';
import { CLOSED_SESSION, type FromServer, type Hello, type ToServer, type Window } from '../shapes/live';
import { api } from '../state/place';
import { ended } from '../state/session';

export type LiveState = 'connecting' | 'live' | 'polling' | 'reconnecting';
export const liveState = signal<LiveState>('connecting');
/** When something was last heard from the server, by this machine's clock. */
export const heardAt = signal(Date.now());
/** Seconds until the next attempt. */
export const retryIn = signal(0);
/** The server runs another build than this page: say so. */
export const otherBuild = signal(false);
/** Difference of the server's clock to ours. */
export const skew = signal(0);
export const serverNow = (): number => Date.now() + skew.value;
/** Messages take their time, some more than others: what is less than that is no difference, and would make every text with an age anew. */
function setSkew(now: number): void {
  const next = Math.abs(now) > 2000 ? now : 0;
  if (Math.abs(next - skew.value) > 1000 || !next) skew.value = next;
}

export interface Subscription {
  topic: string;
  query: object;
  window?: Window | undefined;
  heard: (message: object) => void;
  failed: (refused: { code: string; message: string }) => void;
}
interface Held extends Subscription { n: number; poll: number | null }

const held = new Map<number, Held>();
let next = 1;
let socket: WebSocket | null = null;
let build = '';
let failures = 0;
let timer = 0;
let wanted = false;
let hiddenSince = 0;
let asleep = false;

const send = (m: ToServer): void => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(m)); };
function ask(h: Held): void {
  send(h.window ? { sub: h.n, topic: h.topic, query: h.query, window: h.window } : { sub: h.n, topic: h.topic, query: h.query });
}

export function subscribe(s: Subscription): { window: (w: Window) => void; end: () => void } {
  const h: Held = { ...s, n: next++, poll: null };
  held.set(h.n, h);
  if (liveState.value === 'polling') poll(h);
  else ask(h);
  return {
    window(w) {
      h.window = w;
      if (liveState.value === 'polling') poll(h);
      else send({ win: h.n, window: w });
    },
    end() {
      held.delete(h.n);
      if (h.poll !== null) clearTimeout(h.poll);
      send({ unsub: h.n });
    },
  };
}

/** The GET of a topic: the same query and answer. */
export function topicPath(topic: string, query: object, window?: Window): string {
  const slash = topic.indexOf('/');
  const name = slash < 0 ? topic : topic.slice(0, slash);
  const id = slash < 0 ? '' : encodeURIComponent(topic.slice(slash + 1));
  const path = name === 'job' ? `/jobs/${id}` : name === 'tasks' ? `/tasks/${id}` : `/${name}`;
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== undefined) p.set(k, Array.isArray(v) ? v.join(',') : String(v));
  if (window) { p.set('offset', String(window[0])); p.set('limit', String(Math.max(1, window[1] - window[0]))); }
  const text = p.toString();
  return text ? `${path}?${text}` : path;
}

async function poll(h: Held): Promise<void> {
  if (h.poll !== null) clearTimeout(h.poll);
  try {
    const answer = await get<object>(topicPath(h.topic, h.query, h.window));
    if (!held.has(h.n)) return;
    heardAt.value = Date.now();
    h.heard(h.window || 'value' in answer ? answer : { value: answer, at: serverNow() });
  } catch (e) {
    if (e instanceof Failed && e.status >= 400 && e.status < 500) h.failed(e);
  }
  if (held.has(h.n) && liveState.value === 'polling') h.poll = window.setTimeout(() => poll(h), 5000);
}

function receive(m: FromServer): void {
  heardAt.value = Date.now();
  if ('hello' in m) return greet(m.hello);
  const h = held.get(m.sub);
  if (!h) return;
  if ('at' in m) setSkew(m.at - Date.now());
  if ('gone' in m) ask(h);
  else if ('error' in m) h.failed(m.error);
  else h.heard(m);
}

function greet(hello: Hello): void {
  if (build && build !== hello.build) otherBuild.value = true;
  build ||= hello.build;
}

export function connect(): void {
  wanted = true;
  if (socket || asleep) return;
  clearTimeout(timer);
  const url = new URL(api('/live'), location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const s = new WebSocket(url);
  socket = s;
  s.onopen = () => {
    failures = 0;
    liveState.value = 'live';
    retryIn.value = 0;
    heardAt.value = Date.now();
    for (const h of held.values()) { if (h.poll !== null) clearTimeout(h.poll); h.poll = null; ask(h); }
  };
  s.onmessage = (e) => receive(JSON.parse(e.data as string) as FromServer);
  s.onclose = (e) => {
    if (socket === s) socket = null;
    if (e.code === CLOSED_SESSION) { wanted = false; ended(); return; }
    if (wanted && !asleep) again();
  };
}

/** Back-off 0.5 … 10 s; in the first minutes no more than 4, so that a restart is noticed soon. Three failures while the server answers by HTTP mean that sockets do not pass: then poll. */
function again(): void {
  failures++;
  if (liveState.value !== 'polling') liveState.value = 'reconnecting';
  const wait = Math.min(failures > 40 ? 10_000 : 4000, 500 * 2 ** (failures - 1));
  retryIn.value = Math.round(wait / 1000);
  if (failures >= 3) void tryPolling();
  timer = window.setTimeout(connect, wait);
}
async function tryPolling(): Promise<void> {
  try {
    await get('/session');
    if (socket?.readyState === WebSocket.OPEN || liveState.value === 'polling' || !wanted) return;
    liveState.value = 'polling';
    for (const h of held.values()) void poll(h);
  } catch { if (liveState.value === 'polling') liveState.value = 'reconnecting'; }
}

export function disconnect(): void {
  wanted = false;
  clearTimeout(timer);
  socket?.close();
  socket = null;
}

/** A tab nobody sees asks for nothing after a minute, and catches up when it is shown. */
export function startVisibility(): void {
  setInterval(() => {
    if (!document.hidden) hiddenSince = 0;
    else if (!hiddenSince) hiddenSince = Date.now();
    else if (!asleep && wanted && Date.now() - hiddenSince > 60_000) { asleep = true; socket?.close(); socket = null; }
  }, 5000);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    hiddenSince = 0;
    if (asleep) { asleep = false; failures = 0; connect(); }
  });
  addEventListener('online', () => { if (wanted && !socket) { failures = 0; connect(); } });
}
