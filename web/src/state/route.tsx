/** Pages by path. The address is two signals; links change them without a new document. */
import { computed, signal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { prefix } from './place';

const here = (): string => (location.pathname.startsWith(prefix) ? location.pathname.slice(prefix.length) : location.pathname) || '/';
const address = signal({ path: here(), query: location.search, hash: location.hash });
export const path = computed(() => address.value.path);
export const query = computed(() => address.value.query);
export const hash = computed(() => address.value.hash);
export const param = (name: string): string => new URLSearchParams(query.value).get(name) ?? '';

/** Goes to a path of the portal (`/jobs?state=WAITING`). `replace` for what should not be a step of Back. */
export function go(to: string, replace = false): void {
  const url = new URL(to, location.origin);
  if (url.pathname === path.value && url.search === query.value && url.hash === hash.value) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', prefix + url.pathname + url.search + url.hash);
  address.value = { path: url.pathname, query: url.search, hash: url.hash };
}
/** The same page with another query. */
export const goQuery = (search: string, replace = false): void => go(path.value + search, replace);
addEventListener('popstate', () => { address.value = { path: here(), query: location.search, hash: location.hash }; });

export function A(props: JSX.IntrinsicElements['a'] & { href: string }): JSX.Element {
  const { href, onClick, ...rest } = props;
  return (
    <a
      {...rest}
      href={href.startsWith('/') ? prefix + href : href}
      onClick={(e) => {
        (onClick as ((e: MouseEvent) => void) | undefined)?.(e);
        if (e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || rest.target || !href.startsWith('/')) return;
        e.preventDefault();
        go(href);
      }}
    />
  );
}

const loaded = new Map<unknown, ComponentType<never>>();
/** A page that is fetched when it is first shown. */
export function lazy<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  return function Lazy(props: P) {
    const [, again] = useState(0);
    const [failed, setFailed] = useState(false);
    const Page = loaded.get(load) as ComponentType<P> | undefined;
    useEffect(() => {
      if (!Page) load().then((m) => { loaded.set(load, m.default as ComponentType<never>); again((n) => n + 1); }, () => setFailed(true));
    }, []);
    if (failed) return <div class="empty"><p class="strong">This part of the portal could not be fetched.</p><button class="button" onClick={() => location.reload()}>Reload</button></div>;
    return Page ? <Page {...props} /> : null;
  };
}
