import type { JobId, Millis, Refused, Tally } from './base';
import type { Alternative, Wait } from './job';

/** GET `/session`: 200 always. Without a session `user` is null and what only a user may know is empty. POST answers the same. */
export interface Session {
  user: string | null;
  admin: boolean;
  groups: string[];
  vcs: string[];
  /** Name of the cluster, version and build of the program. */
  cluster: string;
  version: string;
  build: string;
  plainHttp: boolean;
  /** The lab's known password is still the administrator's: a banner. */
  defaultPassword: boolean;
  /** Which parts this server has: `check`, `decide` (checks have decisions), `whatif`, `sims`, `forecast`, `hived`, `policy`, `exec`, `rest` … */
  features: string[];
  /** Namespaces in which this user may create jobs, the default first. */
  namespaces: string[];
}

/** POST `/session`. 401 {code: 'LoginFailed'}; 429 with Retry-After. */
export type Login = { user: string; password: string } | { token: string };

/** GET `/sessions`, DELETE `/sessions/:id`: own sessions. */
export interface SessionRow { id: string; here: boolean; from: string; agent: string; began: Millis; seen: Millis }

export interface Diagnostic {
  /** From 1; 0 = the whole text. */
  line: number;
  col: number;
  path: string;
  severity: 'error' | 'warning' | 'info';
  message: string;
}

export interface Decision {
  verdict: 'starts' | 'waits' | 'never' | 'refused';
  /** One sentence. */
  text: string;
  placement: { task: string; node: string; gpus: number[] }[];
  victims: { id: JobId; user: string; gpus: number; lost_s: number; comes_back: boolean }[];
  wait: Wait | null;
  alternatives: Alternative[];
  /** When, and at which revision, this was true. */
  at: Millis;
  rv: string;
}

/** POST `/check` (text/yaml); `?whole=true`: also when it would start and what would start now, which takes longer. */
export interface Check {
  kind: string;
  diagnostics: Diagnostic[];
  /** What would be created. */
  objects: string;
  /** null where the server cannot decide (no `check` in features) or there are errors. */
  decision: Decision | null;
  /** Why there is none now, e.g. that too many ask at once. */
  undecided?: string;
}

/** POST `/jobs` (text/yaml): 201 (Kubernetes kinds), 202 (OpenPAI). */
export interface Submitted { id: JobId; name: string }

/** POST `/jobs:act`. `ids`, or `query` (JobQuery as in the list) with `expected`; 409 {code, message, found} if the count differs. */
export interface Act {
  action: 'stop' | 'suspend' | 'resume' | 'tag' | 'untag' | 'priority';
  ids?: JobId[];
  query?: object;
  expected?: number;
  value?: string;
}
/** Answer: one JSON line (application/x-ndjson) for each job as it is done, then one {done, failed}. */
export type ActLine = { id: JobId; ok: true } | ({ id: JobId; ok: false } & Refused) | { done: number; failed: number };

/** GET `/jobs:impact?…query`: whom an act on all that match would hit. */
export interface Impact { total: number; users: { user: string; states: Tally; gpus: number }[] }

/** GET `/hived`, `/policy`; PUT takes {text, resourceVersion, confirm?}; 409 {code, message, text, resourceVersion} if it changed meanwhile. */
export interface ConfigFile { text: string; resourceVersion: string; present: boolean }
/** POST `/hived:check`, `/policy:check` {text}. */
export type ConfigCheck =
  | {
      ok: true;
      changes: { group: string; job: JobId | null; user: string; vc: string; effect: 'kept' | 'promoted' | 'downgraded' | 'cells-lost'; text: string }[];
      facts: string[];
      warnings: string[];
    }
  | { ok: false; line: number; message: string };
/** GET `/hived/versions`, newest first. */
export interface ConfigVersion { version: string; at: Millis; user: string; text: string }

/** GET `/audit?user=&q=&from=&to=&offset=&limit=`. */
export interface AuditRow {
  id: string;
  at: Millis;
  user: string;
  from: string;
  verb: string;
  object: string;
  code: number;
  text: string;
}
export interface Page<Row> { total: number; rows: Row[] }

/** GET `/views`; PUT, DELETE `/views/:name`. `query` is the query string of the page. */
export interface View { name: string; page: string; query: string }

/** GET `/services`. */
export interface Services {
  components: { name: string; state: 'ok' | 'degraded' | 'down'; version: string; leader: string; text: string; since: Millis | null }[];
  queues: { name: string; depth: number; limit: number | null }[];
  errors: { at: Millis; component: string; text: string }[];
}

/**
 * People. `/api/portal/v1/pai/…` is OpenPAI's REST `/api/v2/…` with the session's identity and the portal's rules against
 * forged requests: the same handlers, bodies, answers and error codes.
 */
export interface PaiUser {
  username: string;
  email: string;
  admin: boolean;
  virtualCluster: string[];
  storageConfig: string[];
  grouplist: string[];
  extension: Record<string, unknown>;
}
export interface PaiGroup {
  groupname: string;
  description: string;
  externalName: string;
  extension: { acls?: { admin?: boolean; virtualClusters?: string[]; storageConfigs?: string[] } };
}
/** GET `/tokens`: never the token itself; POST `/tokens` {note} answers {token} once; DELETE `/tokens/:id`. */
export interface TokenRow { id: string; application: boolean; note: string; created: Millis; expires: Millis | null }

/** GET `/suggest?field=image|vc|queue|sku|priority|namespace|user|node&q=`: what one may write there, best first. */
export interface Suggest { values: { value: string; text: string }[] }

/** GET `/search?q=`: the palette. */
export interface Search {
  jobs: { id: JobId; name: string; user: string; state: string }[];
  nodes: string[];
  users: string[];
}

/**
 * POST `/whatif` {changes, horizon: "24h", jobs?}; 202 {id}: ask again with GET `/whatif/:id`. A change is an object with one of
 * addNodes {count, gpus, model?}, removeNodes {nodes}, drain {nodes}, stop {jobs}, submit {manifest, count?}, priority {job, class},
 * lasts {job, duration}, queue {name, set}, hived {text}, policy {text}, and `at` ("2h": not now but then).
 */
export type WhatifChange = Record<string, unknown>;
export interface WhatifTimes { start: Millis | null; low: Millis | null; high: Millis | null; end: Millis | null }
export interface Whatif {
  /** One sentence. */
  text: string;
  /** Those that move, or are evicted. `id` is null where this user may not know it. */
  jobs: { id: JobId | null; name: string; user: string; evicted: boolean; before: WhatifTimes; after: WhatifTimes }[];
  /** Mean wait in seconds, mean GPUs in use. */
  queues: { queue: string; waitBefore: number; waitAfter: number; gpusBefore: number; gpusAfter: number }[];
  warnings: string[];
  /** What is missing because the time for it was over; empty: nothing. */
  cut: string;
  horizon: Millis;
  draws: number;
  rv: string;
}

/** GET `/sims`, newest first; POST `/sims` takes a SimAsk and answers 201 {id}; DELETE `/sims/:id`. */
export interface SimRow { id: string; name: string; state: 'waiting' | 'running' | 'done' | 'failed'; began: Millis; ended: Millis | null; user: string; text: string }
/** Texts of files, as `muster sim` reads them. */
export interface SimAsk { name: string; trace: string; nodes?: string; hived?: string; policies?: string[]; policyFile?: string; limit?: number; speed?: string; tenants?: boolean; resume?: boolean }
/** What `muster sim --json` writes of one policy. */
export interface SimPolicy {
  policy: string; jobs: number; started: number; evictions: number;
  meanWaitSeconds: number; p50WaitSeconds: number; p99WaitSeconds: number; meanWaitSecondsOver8Gpus: number; meanJobSeconds: number; makespanSeconds: number;
  utilisation: number; freeGpusStranded: number;
  tenants: { name: string; jobs: number; gpuHours: number; meanWaitSeconds: number }[];
}
/** GET `/sims/:id`; `/sims/:id/json` and `/sims/:id/html` are files. */
export interface Sim { row: SimRow; policies: SimPolicy[] | null }
