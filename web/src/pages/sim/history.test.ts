import { expect, test } from 'vitest';
import { traceOf } from './history';

test('what has ended becomes a trace that muster sim reads, from the first submission on', () => {
  const row = { uid: 'u', user: 'a,b', queue: 'q', shape: { tasks: 2, gpus: 8 } };
  const rows = [
    { ...row, job: 'late', submitted: '2026-11-01T00:01:00Z', started: '2026-11-01T00:02:00Z', ended: '2026-11-01T01:02:00Z' },
    { ...row, job: 'first', submitted: '2026-11-01T00:00:00Z', started: '2026-11-01T00:00:00Z', ended: '2026-11-01T00:00:00Z' },
    { ...row, job: 'runs', submitted: '2026-11-01T00:00:00Z', started: '2026-11-01T00:00:00Z' },
  ];
  expect(traceOf(rows)).toBe('name,user,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib\nfirst,"a,b",q,0,0,1,2,4,0,0\nlate,"a,b",q,0,60,3600,2,4,0,0\n');
});
