import type { JobId, Millis, Refused, Tally } from './base';
import type { Counts, EventRow, NodeRow, Tenant } from './cluster';
import type { Gantt } from './gantt';
import type { JobDetail, JobRow, TaskRow } from './job';
import type { Topology, TopologyPatch } from './topology';

/** Filters of the job list. Lists are alternatives; different fields must all hold. */
export interface JobQuery {
  /** Substring of name, id or tag; without regard to case. */
  q?: string;
  /** `me` = whoever asks. */
  user?: string[];
  vc?: string[];
  queue?: string[];
  state?: string[];
  /** Names of classes or numbers. */
  prio?: string[];
  kind?: string[];
  tag?: string[];
  node?: string[];
  /** Submitted at or after, before. */
  from?: Millis;
  to?: Millis;
  /** A field of SORTS, `-` before it for descending. Default `-submitted`. Ties: id. */
  sort?: string;
  /** `counts` then also has one tally per value of this field (`groups`). */
  group?: GroupField;
}
export type GroupField = 'user' | 'vc' | 'queue' | 'state' | 'prio' | 'kind' | 'tag';
export const SORTS = [
  'name', 'submitted', 'user', 'duration', 'vc', 'kind', 'retries', 'tasks', 'gpus', 'prio', 'state', 'start', 'ended',
] as const;

export interface TaskQuery { state?: string[]; node?: string[]; q?: string; sort?: string; attempt?: number }
export interface NodeQuery { q?: string; state?: string[]; model?: string[]; vc?: string[]; rack?: string[]; free?: number; sort?: string }
export interface EventQuery { q?: string; type?: string[]; job?: JobId; node?: string; from?: Millis }
export interface GanttQuery { by?: 'node' | 'vc' | 'job'; from?: Millis; to?: Millis; jobs?: JobId[]; limit?: number }

/** What a topic asks and answers. Names of topics with an id are `job/<id>`, `tasks/<id>` (the id as it is, not encoded). */
export interface Topics {
  jobs: { query: JobQuery; row: JobRow };
  tasks: { query: TaskQuery; row: TaskRow };
  nodes: { query: NodeQuery; row: NodeRow };
  events: { query: EventQuery; row: EventRow };
  job: { query: Record<string, never>; value: JobDetail };
  counts: { query: Record<string, never>; value: Counts };
  tenants: { query: Record<string, never>; value: Tenant[] };
  topology: { query: Record<string, never>; value: Topology };
  gantt: { query: GanttQuery; value: Gantt };
}

/** [first, end): rows by position, at most 500. */
export type Window = [number, number];

export type ToServer =
  | { sub: number; topic: string; query?: object; window?: Window }
  | { win: number; window: Window }
  | { unsub: number };

/** For `group`: how many and how many GPUs a value has. */
export interface Group { value: string; jobs: number; gpus: number; states: Tally }

/** Rows of a windowed topic; also the answer of its GET. */
export interface Snapshot<Row> {
  rv: string;
  /** The server's clock, for ages and clock skew. */
  at: Millis;
  total: number;
  /** By state; of the filtered set, but without the filter of state itself, so that tabs have their numbers. */
  counts: Tally;
  groups?: Group[];
  /** The window as it was given (cut to what there is). */
  window: Window;
  rows: Row[];
}

export interface Difference<Row> {
  rv: string;
  at: Millis;
  total: number;
  counts?: Tally;
  groups?: Group[];
  /** Whole rows by id: new in the window or changed. */
  set?: Record<string, Row>;
  /** Ids that left the window. */
  del?: string[];
  /** The window's order, only if it changed: ids of rows that are new, and [first, end) of the order before. */
  order?: (string | [number, number])[];
}

export interface Hello { build: string; user: string; at: Millis }

export type FromServer =
  | { hello: Hello }
  | ({ sub: number } & Snapshot<unknown>)
  | ({ sub: number } & Difference<unknown>)
  | { sub: number; rv: string; at: Millis; value: unknown }
  | { sub: number; rv: string; at: Millis; patch: TopologyPatch }
  /** Subscribe anew (too much unsent, the job is gone, …). */
  | { sub: number; gone: true }
  /** This subscription is refused (no such topic, bad query, not allowed). */
  | { sub: number; error: Refused };

/** Close codes: 4401 = the session ended or lost a right; 4408 = too slow; 4429 = too many subscriptions or sockets. */
export const CLOSED_SESSION = 4401;

/**
 * `/api/portal/v1/log?job=&task=&attempt=&container=&tail=`: without `task` all tasks of the job, merged by time.
 * Text frames: lines as [time or null, task, text]; `end` when nothing more will come.
 */
export type LogMessage =
  | { lines: [Millis | null, string, string][] }
  | { end: true }
  | { error: Refused };

/**
 * `/api/portal/v1/exec?job=&task=&container=&command=` (command may repeat; none = a shell): Kubernetes' `v5.channel.k8s.io`,
 * binary frames of channel byte and data: 0 stdin, 1 stdout, 2 stderr, 3 status, 4 resize {"Width","Height"}, 255 close channel.
 */
export const EXEC_PROTOCOL = 'v5.channel.k8s.io';
