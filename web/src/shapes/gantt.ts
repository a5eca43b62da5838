import type { JobId, Millis } from './base';
import type { SegmentKind } from './job';

export interface GanttBar {
  job: JobId;
  name: string;
  user: string;
  vc: string;
  kind: SegmentKind;
  from: Millis;
  /** null = still running and no expected end. */
  to: Millis | null;
  /** The end or the whole bar is foretold. */
  forecast: boolean;
  gpus: number;
  attempt: number;
  text: string;
}

/** Topic `gantt`, query {by, from, to, jobs, lanes}. */
export interface Gantt {
  now: Millis;
  from: Millis;
  to: Millis;
  /** A node, a tenant or a job, as `by` asks. */
  lanes: { name: string; gpus: number; bars: GanttBar[] }[];
  /** Lanes that were left out by the limit. */
  more: number;
}
