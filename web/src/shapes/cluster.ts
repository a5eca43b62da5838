import type { JobId, Millis, Tally } from './base';
import type { State } from './job';

/** Topic `counts`: what the menu, the home page and the foot of the menu say. */
export interface Counts {
  at: Millis;
  /** Jobs that this user may see, by state. */
  all: Tally;
  /** Own jobs by state; those that ended: of the last 24 h. */
  mine: Tally;
  mineGpus: number;
  mineLongestWait: Millis | null;
  nodes: { total: number; ready: number; cordoned: number; notReady: number };
  gpus: { total: number; used: number; oppo: number; held: number; free: number; unusable: number };
  /** Schedulable nodes by how many GPUs they have and how many are free, most free first; only rows with at least one node. */
  freeBySize: { size: number; free: number; nodes: number }[];
  /** Sentences of alert, worst first, at most 20. */
  alerts: { severity: 'warning' | 'error'; text: string; href: string; since: Millis | null }[];
}

export interface Amounts {
  gpus: number;
  cpuMilli: number;
  memoryBytes: number;
}

/** Topic `tenants`: queues and virtual clusters, parents before children. */
export interface Tenant {
  name: string;
  kind: 'queue' | 'vc';
  parent: string;
  depth: number;
  open: boolean;
  weight: number | null;
  /** What is held under guarantee; opportunistic use is never in it. */
  used: Amounts;
  /** On others' idle share. */
  oppo: Amounts;
  /** Of its own guarantee, in use by others. */
  lent: Amounts;
  guarantee: Amounts;
  deserved: Amounts | null;
  /** null = no limit but the cluster's. */
  capability: Amounts | null;
  /** What a whole VC or the cluster has. */
  total: Amounts;
  waiting: { jobs: number; gpus: number };
  running: number;
  badCells: number;
  /** Whether this user may submit to it. */
  mine: boolean;
}

/** Names of those that hold something themselves: parents only sum up. */
export const leaves = (all: Tenant[]): string[] => {
  const parents = new Set(all.map((q) => q.parent));
  const own = all.filter((q) => !parents.has(q.name));
  const busy = own.filter((q) => q.used.gpus + q.oppo.gpus + q.waiting.gpus > 0);
  return (busy.length ? busy : own).map((q) => q.name);
};

/** Parents with what those below them use and want; a parent's own figures may hold that already. */
export const withSums = (all: Tenant[]): Tenant[] => {
  const made = new Map(all.map((q) => [q.name, q]));
  const sum = (a: Amounts, list: Amounts[]): Amounts => {
    const of = (key: keyof Amounts): number => Math.max(a[key], list.reduce((n, x) => n + x[key], 0));
    return { gpus: of('gpus'), cpuMilli: of('cpuMilli'), memoryBytes: of('memoryBytes') };
  };
  for (const q of [...all].sort((a, b) => b.depth - a.depth)) {
    const below = all.filter((c) => c.parent === q.name).map((c) => made.get(c.name)!);
    if (!below.length) continue;
    const waits = (key: 'jobs' | 'gpus'): number => Math.max(q.waiting[key], below.reduce((n, c) => n + c.waiting[key], 0));
    made.set(q.name, { ...q, used: sum(q.used, below.map((c) => c.used)), oppo: sum(q.oppo, below.map((c) => c.oppo)), waiting: { jobs: waits('jobs'), gpus: waits('gpus') } });
  }
  return all.map((q) => made.get(q.name)!);
};

/** Those of them that own, use or want something; all where none does. */
export const holders = (all: Tenant[]): Tenant[] => {
  const parents = new Set(all.map((q) => q.parent));
  const own = all.filter((q) => !parents.has(q.name));
  const some = own.filter((q) => q.used.gpus + q.oppo.gpus + q.waiting.gpus + q.guarantee.gpus > 0);
  return some.length ? some : own;
};

export interface NodeGpu {
  index: number;
  /** null = free. */
  job: JobId | null;
  user: string;
  oppo: boolean;
  held: boolean;
  bad: boolean;
  /** 0…1; null = not measured. */
  use: number | null;
  memoryUsed: number | null;
  memoryTotal: number | null;
}

export type NodeState = 'ready' | 'cordoned' | 'not-ready';

/** Rows of topic `nodes`. */
export interface NodeRow {
  /** Its name. */
  id: string;
  state: NodeState;
  model: string;
  rack: string;
  vcs: string[];
  gpus: NodeGpu[];
  cpuMilli: { used: number; total: number };
  memoryBytes: { used: number; total: number };
  pods: { used: number; total: number };
  taints: string[];
  since: Millis | null;
}

/** `GET /nodes/:n`. */
export interface NodeDetail {
  row: NodeRow;
  labels: Record<string, string>;
  addresses: string[];
  kubelet: string;
  tasks: { job: JobId; task: string; user: string; state: State; gpus: number; started: Millis | null }[];
  conditions: { type: string; status: string; reason: string; message: string; since: Millis | null }[];
  may: { cordon: boolean; drain: boolean };
}

/** Rows of topic `events`, newest first. */
export interface EventRow {
  /** Its UID. */
  id: string;
  at: Millis;
  first: Millis;
  count: number;
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** `Pod default/a-worker-0`. */
  object: string;
  job: JobId | null;
  node: string;
  source: string;
}

/** `GET /usage?tenant=&from=&to=&step=`: columns of equal length; null in a column = no sample. */
export interface Usage {
  step: Millis;
  tenants: string[];
  at: Millis[];
  /** By tenant, in the order of `tenants`. */
  columns: {
    used: (number | null)[];
    oppo: (number | null)[];
    guarantee: (number | null)[];
    deserved: (number | null)[];
    capability: (number | null)[];
    waiting: (number | null)[];
  }[];
}
