/** Hooks over the live socket. */
import { signal, useSignal, type Signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Refused } from '../shapes/base';
import type { Difference, Snapshot, Window } from '../shapes/live';
import { changes, difference, emptyList, isSnapshot, letIn, snapshot, type List, type Row } from './reduce';
import { subscribe } from './socket';

export interface LiveValue<T> { value: Signal<T | null>; error: Signal<Refused | null>; at: Signal<number> }

/** One value, e.g. `useValue<Counts>('counts')`. An empty topic asks nothing. `calm`: at most every so many milliseconds, for what is shown beside something else. */
export function useValue<T>(topic: string, query: object = {}, patch?: (value: T, patch: never) => T, calm = 0): LiveValue<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<Refused | null>(null);
  const at = useSignal(0);
  const key = topic + JSON.stringify(query);
  useEffect(() => {
    error.value = null;
    if (!topic) { value.value = null; return; }
    let first = true;
    let shown = 0;
    let timer = 0;
    const show = (got: { value?: T; patch?: never; at: number }): void => {
      shown = Date.now();
      at.value = got.at;
      error.value = null;
      if (got.patch !== undefined && patch && value.value) value.value = patch(value.value, got.patch);
      else if (got.value !== undefined) value.value = got.value;
    };
    const s = subscribe({
      topic, query,
      heard(m) {
        const got = m as { value?: T; patch?: never; at: number };
        if (paused.value && !first) return;
        first = false;
        clearTimeout(timer);
        const early = shown + calm - Date.now();
        if (early > 0) timer = window.setTimeout(() => show(got), early);
        else show(got);
      },
      failed(refused) { error.value = refused; },
    });
    return () => { clearTimeout(timer); s.end(); };
  }, [key]);
  return useMemo(() => ({ value, error, at }), []);
}

/** `.` pauses everything live; what was missed is caught up by asking again. */
export const paused = signal(false);
export const pausedAt = signal(0);
const epoch = signal(0);
export function togglePause(): void {
  paused.value = !paused.value;
  pausedAt.value = Date.now();
  if (!paused.value) epoch.value++;
}

export interface LiveRows<R extends Row> {
  list: Signal<List<R>>;
  loading: Signal<boolean>;
  error: Signal<Refused | null>;
  waiting: Signal<number>;
  show: (w: Window) => void;
  letIn: () => void;
}

/** A window of rows. `free()` says whether the list may move now. */
export function useRows<R extends Row>(topic: string, query: object, first: number, free: () => boolean): LiveRows<R> {
  const list = useSignal<List<R>>(emptyList<R>());
  const loading = useSignal(true);
  const error = useSignal<Refused | null>(null);
  const waiting = useSignal(0);
  const sub = useRef<ReturnType<typeof subscribe> | null>(null);
  const now = useRef<Window>([0, first]);
  const key = topic + JSON.stringify(query);
  const turn = epoch.value;
  useEffect(() => {
    loading.value = true;
    error.value = null;
    if (!topic) return;
    now.current = [now.current[0], Math.max(now.current[1], now.current[0] + first)];
    const s = subscribe({
      topic, query, window: now.current,
      heard(m) {
        loading.value = false;
        error.value = null;
        if (isSnapshot(m)) list.value = snapshot(m as Snapshot<R>);
        else list.value = difference(list.value, m as Difference<R>, paused.value || !free());
        waiting.value = changes(list.value);
      },
      failed(refused) { loading.value = false; error.value = refused; },
    });
    sub.current = s;
    return () => s.end();
  }, [key, turn]);
  return useMemo(() => ({
    list, loading, error, waiting,
    show(w: Window) {
      if (w[0] === now.current[0] && w[1] === now.current[1]) return;
      now.current = w;
      sub.current?.window(w);
    },
    letIn() { list.value = letIn(list.value); waiting.value = 0; },
  }), []);
}
