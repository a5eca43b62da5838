/** What this cluster has run, as a trace: the columns of `muster history --export trace`. */
import { kube } from '../../api';

export interface RecordRow { job: string; uid: string; user: string; queue: string; submitted: string; started?: string; ended?: string; shape: { tasks: number; gpus: number } }
const cell = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const seconds = (time: string): number => Math.floor(Date.parse(time) / 1000);

export function traceOf(rows: RecordRow[]): string {
  const ended = rows.filter((r) => r.started && r.ended).sort((a, b) => (a.submitted + a.uid < b.submitted + b.uid ? -1 : 1));
  const first = ended.length ? seconds(ended[0]!.submitted) : 0;
  const lines = ended.map((r) => {
    const tasks = Math.max(1, r.shape.tasks);
    return [cell(r.job), cell(r.user), cell(r.queue), 0, seconds(r.submitted) - first, Math.max(1, seconds(r.ended!) - seconds(r.started!)), tasks, Math.floor(Math.floor(r.shape.gpus) / tasks), 0, 0].join(',');
  });
  return ['name,user,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib', ...lines, ''].join('\n');
}
export async function historyTrace(): Promise<string> {
  const answer = await kube<{ items: RecordRow[] }>('GET', '/apis/answers.muster.dev/v1/records?limit=10000');
  const trace = traceOf(answer.items);
  if (trace.split('\n').length < 3) throw new Error('No job has ended here yet.');
  return trace;
}
