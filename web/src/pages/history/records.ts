/** What the cluster keeps of jobs after they have ended, their objects deleted or not: `muster history`. */
import { kube, search } from '../../api';
import type { Mark, Segment, State, Timeline } from '../../shapes/job';

export interface RecordRow {
  job: string; uid: string; namespace: string; kind: string; user: string; queue: string; state: State; priority: string;
  shape: { tasks: number; gpus: number; model?: string };
  attempts: number; preempted: number; gpuSeconds: number; submitted: string; started?: string; ended?: string;
}
export interface Run { start: string; end?: string; gpus: number; nodes: string[]; how?: string; by?: string; opportunistic?: boolean }
export interface Waited { reason: string; from: string; to?: string; subject?: string; text?: string }
export interface JobRecord {
  job: string; uid: string; namespace: string; kind: string; user: string; queue?: string; vc?: string; priority?: string; state: State;
  shape: { tasks: number; gpus: number; model?: string };
  image?: string; submitted: string; ended?: string; exit?: number; exitPhrase?: string; runs: Run[]; waits?: Waited[];
}

const ROOT = '/apis/answers.muster.dev/v1';
export const millis = (time: string | undefined): number | null => (time ? Date.parse(time) : null);
export interface RecordQuery { name?: string; user?: string; queue?: string; state?: string; kind?: string; namespace?: string; limit?: number }
export const askRecords = async (query: RecordQuery): Promise<RecordRow[]> => (await kube<{ items: RecordRow[] }>('GET', `${ROOT}/records${search({ ...query })}`)).items;

/** The newest record of a job's id: `namespace/kind/name`, or OpenPAI's `user~job`. Null: nothing is kept of it. */
export async function recordOf(id: string): Promise<JobRecord | null> {
  const [user, pai] = id.split('~');
  const [namespace, kind, name] = id.split('/');
  const rows = await askRecords(pai !== undefined ? { user: user!, name: pai, limit: 1 } : { namespace: namespace ?? '', kind: kind ?? '', name: name ?? '', limit: 1 });
  const row = rows[0];
  return row ? kube<JobRecord>('GET', `${ROOT}/namespaces/${row.namespace}/records/${row.uid}`) : null;
}

/** The same story that the page of a living job tells. */
export function timelineOf(record: JobRecord, now: number): Timeline {
  const marks: Mark[] = [{ at: Date.parse(record.submitted), kind: 'submitted', text: '', by: null }];
  let since = Date.parse(record.submitted);
  const attempts = record.runs.map((run, n) => {
    const start = Date.parse(run.start);
    const end = millis(run.end);
    const segments: Segment[] = [];
    if (start > since) segments.push({ kind: 'queued', from: since, to: start, text: '' });
    segments.push({ kind: 'running', from: start, to: end, text: run.nodes.join(', ') });
    if (run.how === 'evicted' && end !== null) marks.push({ at: end, kind: 'evicted', text: run.by ?? '', by: null });
    since = end ?? now;
    return { n, segments, tasks: [], tasksTotal: record.shape.tasks };
  });
  const ended = millis(record.ended);
  if (!attempts.length) attempts.push({ n: 0, segments: [{ kind: 'queued', from: since, to: ended, text: '' }], tasks: [], tasksTotal: record.shape.tasks });
  if (ended !== null) marks.push({ at: ended, kind: 'ended', text: '', by: null });
  return { now, attempts, marks };
}
