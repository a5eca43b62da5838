import { signal } from '@preact/signals';
import { call, Failed, get, onSessionLost } from '../api';
import type { Login, Session } from '../shapes/calls';

/** null until the first answer. */
export const session = signal<Session | null>(null);
export const has = (feature: string): boolean => session.value?.features.includes(feature) ?? false;

const nobody: Session = {
  user: null, admin: false, groups: [], vcs: [], cluster: '', version: '', build: '', plainHttp: false, defaultPassword: false, features: [], namespaces: ['default'],
};
const whole = (s: Partial<Session>): Session => ({ ...nobody, ...s });

export async function askSession(): Promise<void> {
  try {
    session.value = whole(await get<Partial<Session>>('/session'));
  } catch (e) {
    if (!(e instanceof Failed) || e.status !== 401) throw e;
    session.value = whole((e.body ?? {}) as Partial<Session>);
  }
}
export async function logIn(how: Login): Promise<void> {
  session.value = whole(await call<Partial<Session>>('POST', '/session', how));
}
export async function logOut(): Promise<void> {
  await call('DELETE', '/session');
  ended();
}
export function ended(): void {
  if (session.value?.user) session.value = { ...session.value, user: null, admin: false, groups: [], vcs: [] };
}
onSessionLost(ended);

/** Where to go after signing in: a path of this origin, or home. */
export function safeNext(next: string | null | undefined): string {
  if (!next || !next.startsWith('/') || next.startsWith('//') || /[\\\u0000-\u001f]/.test(next)) return '/';
  try {
    const url = new URL(next, 'http://origin.invalid');
    return url.host === 'origin.invalid' && !url.pathname.startsWith('/login') ? url.pathname + url.search + url.hash : '/';
  } catch { return '/'; }
}
