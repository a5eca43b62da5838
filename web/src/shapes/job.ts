import type { JobId, Millis } from './base';

export type State = 'WAITING' | 'RUNNING' | 'STOPPING' | 'SUCCEEDED' | 'FAILED' | 'STOPPED' | 'SUSPENDED';
export const STATES: readonly State[] = ['WAITING', 'RUNNING', 'STOPPING', 'SUCCEEDED', 'FAILED', 'STOPPED', 'SUSPENDED'];

export type Phase = 'queued' | 'reserved' | 'making-room' | 'starting' | 'running' | 'requeued';

/** On what an expected start rests. `none`: no estimate, and start, startLow, startHigh are null. */
export type Basis = 'known' | 'learned' | 'none';

/** The part of a wait that a list shows. */
export interface WaitBrief {
  /** The engine's name of the reason, e.g. `NoNodeFits`. */
  reason: string;
  /** One sentence (the engine's `describe`), without a full stop. */
  text: string;
  /** 1 = next in its queue; null where the order is not known. */
  place: number | null;
  /** How many are served before it. */
  ahead: number;
  start: Millis | null;
  startLow: Millis | null;
  startHigh: Millis | null;
  basis: Basis;
}

export interface Prio {
  /** Priority class as the user wrote it (`prod`, `high`), empty if none. */
  class: string;
  number: number;
}

export interface Exit {
  /** null where the end had no exit code. */
  code: number | null;
  /** Few words: `out of memory`, `preempted`, `stopped by alice`. */
  phrase: string;
}

/** One row of the job list; the same for every kind. */
export interface JobRow {
  id: JobId;
  /** `openpai`, `pytorchjob`, `mpijob`, `vcjob`, `job`, `gang`, `pod`, … (lower case kind; `openpai` for OpenPAI's jobs). */
  kind: string;
  name: string;
  user: string;
  /** Virtual cluster, empty without one. */
  vc: string;
  /** Queue, empty without one. */
  queue: string;
  prio: Prio;
  state: State;
  /** null once it has ended. */
  phase: Phase | null;
  gpus: number;
  tasks: { running: number; total: number };
  retries: { user: number; platform: number };
  submitted: Millis;
  started: Millis | null;
  ended: Millis | null;
  tags: string[];
  exit: Exit | null;
  /** Runs on idle cells or over its queue's share, and may be evicted for their owners. */
  oppo: boolean;
  /** Only while it waits. */
  wait: WaitBrief | null;
}

export interface Shortage {
  /** `nvidia.com/gpu`, `cpu`, `memory`, or a place in words: `whole nodes of 8 in vc1`. */
  resource: string;
  wanted: number;
  available: number;
  /** The queue's limit; 0 where no limit is meant. */
  limit: number;
}

export interface Cause {
  /** The engine's text, e.g. `Insufficient nvidia.com/gpu`; also the argument of `/wait/nodes?cause=`. */
  cause: string;
  nodes: number;
  /** Colour of the bar. */
  kind: 'others' | 'in-use' | 'held' | 'unusable' | 'fits' | 'other';
}

/** A job that is served before this one. `id` is null where this user may not know it. */
export interface Ahead {
  id: JobId | null;
  name: string;
  user: string;
  prio: Prio;
  gpus: number;
  start: Millis | null;
}

/** What would start now; each was tried on a copy. */
export interface Alternative {
  /** `Run 5 workers instead of 8`. */
  change: string;
  /** `40 GPUs, starts now on r05-n11 … n15`. */
  text: string;
  verdict: 'starts' | 'waits' | 'earlier' | 'evicts';
  start: Millis | null;
  /** Names of jobs that would be evicted for it. */
  victims?: string[];
  /** The whole manifest with the change made; null where the portal cannot make it. */
  yaml: string | null;
}

/** The engine's whole refusal. */
export interface Wait extends WaitBrief {
  /** When this was true. */
  at: Millis;
  nodesTotal: number;
  byCause: Cause[];
  shortages: Shortage[];
  /** The queue whose limit refused, or in which it waits. */
  queue: string;
  /** How many wait in that queue, itself included; null where the order is not known. */
  of: number | null;
  aheadFirst: Ahead[];
  /** Whom the reason is about: holder of a reservation, victim that has yet to leave, … */
  subject: string;
  subjectId: JobId | null;
  until: Millis | null;
  /** Why eviction did not help; empty if it was not tried. */
  preemption: string;
  /** `learned from 212 runs`; empty for basis none. */
  basisText: string;
  /** Whose end most often sets the start; `id` is null where this user may not know it. */
  waitsFor?: { id: JobId | null; name: string; user: string; gpus: number; basis: Basis; runs: number; endLow: Millis | null; end: Millis | null; endHigh: Millis | null }[];
  /** What would start now; asked for apart: `GET /jobs/:id/wait/alternatives`. */
  alternatives?: Alternative[] | null;
}

export interface Failure {
  code: number | null;
  /** `killed, out of memory`. */
  reason: string;
  /** `train-2 on r13-n04 used 64.0 of 64 GiB`. */
  text: string;
  /** What to do about it. */
  advice: string;
  task: string | null;
}

/** Topic `job/<id>` and `GET /jobs/:id`. */
export interface JobDetail {
  row: JobRow;
  namespace: string;
  /** Kubernetes' UID or OpenPAI's debugId. */
  debugId: string;
  description: string;
  image: string;
  /** Roles in order, `min` = needed to start. */
  roles: { name: string; tasks: number; min: number; gpus: number; cpuMilli: number; memoryBytes: number }[];
  /** All or none. */
  gang: boolean;
  attempts: number;
  wait: Wait | null;
  failure: Failure | null;
  events: number;
  may: { stop: boolean; suspend: boolean; resume: boolean; tag: boolean; priority: boolean; exec: boolean };
}

/** Rows of topic `tasks/<id>` and of `/jobs/:id/attempts/:n`. */
export interface TaskRow {
  /** `role-index`. */
  id: string;
  role: string;
  index: number;
  state: State;
  node: string;
  /** Device indexes, empty if none or unknown. */
  gpus: number[];
  /** How many were asked for. */
  gpuCount: number;
  ip: string;
  ports: Record<string, string>;
  retries: number;
  exit: Exit | null;
  started: Millis | null;
  ended: Millis | null;
  pod: string;
  containers: string[];
  attempt: number;
}

export type SegmentKind =
  | 'queued' | 'reserved' | 'making-room' | 'starting' | 'running' | 'suspended' | 'forecast';

export interface Segment {
  kind: SegmentKind;
  from: Millis;
  /** null = still so. */
  to: Millis | null;
  /** What to say of it: the reason while it waited, nodes while it ran. */
  text: string;
}

export interface Mark {
  at: Millis;
  kind: 'submitted' | 'evicted' | 'requeued' | 'resumed' | 'ended' | 'failed' | 'stopped' | 'reason' | 'priority';
  text: string;
  /** The other job of an eviction, if this user may see it. */
  by: JobId | null;
}

/** `GET /jobs/:id/timeline`. Attempts are counted from 0; people see them from 1. */
export interface Timeline {
  now: Millis;
  attempts: { n: number; segments: Segment[]; tasks: { id: string; segments: Segment[] }[]; tasksTotal: number }[];
  marks: Mark[];
}

/** `GET /jobs/:id/wait/nodes?cause=&offset=&limit=`. */
export interface WaitNodes {
  total: number;
  rows: { node: string; text: string }[];
}

/** `GET /jobs/:id/attempts/:n`: the tasks as they were. */
export interface Attempt {
  n: number;
  state: State;
  started: Millis | null;
  ended: Millis | null;
  exit: Exit | null;
  failure: Failure | null;
  tasks: TaskRow[];
}
