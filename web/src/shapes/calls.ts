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

/** POST `/check` (text/yaml). */
export interface Check {
  kind: string;
  diagnostics: Diagnostic[];
  /** What would be created. */
  objects: string;
  /** null where the server cannot decide (no `check` in features) or there are errors. */
  decision: Decision | null;
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
  /** When a session or token of this user was last seen. */
  lastSeen?: Millis | null;
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

/** POST `/whatif`. */
export interface WhatifChange { kind: string; [argument: string]: unknown }
export interface Whatif {
  text: string;
  jobs: { id: JobId; name: string; user: string; before: { start: Millis | null; end: Millis | null }; after: { start: Millis | null; end: Millis | null } }[];
  evictions: { id: JobId; user: string; lost_s: number }[];
  shares: { tenant: string; before: number; after: number }[];
  warnings: string[];
  rv: string;
}

/** GET `/sims`. */
export interface SimRow { id: string; name: string; state: 'running' | 'done' | 'failed'; progress: number; began: Millis; user: string; text: string }
