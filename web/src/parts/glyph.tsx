/** Marks of states: each has a silhouette of its own, so that colour is never needed. */
import type { JSX } from 'preact';
import type { State } from '../shapes/job';
import { t } from '../text';

const SHAPES: Record<State, JSX.Element> = {
  WAITING: <><circle cx="6" cy="6" r="4.9" fill="none" stroke="currentColor" stroke-width="1.4" /><path d="M6 3.2V6l1.9 1.3" fill="none" stroke="currentColor" stroke-width="1.3" stroke-linecap="round" /></>,
  RUNNING: <path fill="currentColor" fill-rule="evenodd" d="M6 .4a5.6 5.6 0 1 0 0 11.2A5.6 5.6 0 0 0 6 .4ZM4.7 3.5 8.6 6 4.7 8.5Z" />,
  STOPPING: <><circle cx="6" cy="6" r="4.9" fill="none" stroke="currentColor" stroke-width="1.4" stroke-dasharray="2.3 1.5" /><rect x="4" y="4" width="4" height="4" rx=".6" fill="currentColor" /></>,
  SUCCEEDED: <path d="m1.6 6.6 2.9 2.9 6-7" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" />,
  FAILED: <path fill="currentColor" fill-rule="evenodd" d="M3.7.4h4.6l3.3 3.3v4.6l-3.3 3.3H3.7L.4 8.3V3.7ZM4.5 3.4 6 4.9l1.5-1.5 1.1 1.1L7.1 6l1.5 1.5-1.1 1.1L6 7.1 4.5 8.6 3.4 7.5 4.9 6 3.4 4.5Z" />,
  STOPPED: <rect x="1.5" y="1.5" width="9" height="9" rx="1.2" fill="currentColor" />,
  SUSPENDED: <><rect x="2" y="1.2" width="2.8" height="9.6" rx=".8" fill="currentColor" /><rect x="7.2" y="1.2" width="2.8" height="9.6" rx=".8" fill="currentColor" /></>,
};
export const Glyph = ({ state }: { state: State }): JSX.Element => (
  <svg class={`glyph ${state}`} viewBox="0 0 12 12" aria-hidden="true">{SHAPES[state]}</svg>
);

export const stateWord = (state: State): string =>
  ({ WAITING: t('Waiting'), RUNNING: t('Running'), STOPPING: t('Stopping'), SUCCEEDED: t('Succeeded'), FAILED: t('Failed'), STOPPED: t('Stopped'), SUSPENDED: t('Suspended') })[state];

export const StatePill = ({ state }: { state: State }): JSX.Element => (
  <span class={`pill ${state}`}><Glyph state={state} />{stateWord(state)}</span>
);
export const StateMark = ({ state }: { state: State }): JSX.Element => (
  <span class={`state ${state}`}><Glyph state={state} />{stateWord(state)}</span>
);
