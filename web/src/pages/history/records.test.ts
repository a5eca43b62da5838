import { expect, test } from 'vitest';
import { timelineOf, type JobRecord } from './records';

const record: JobRecord = {
  job: 'bert', uid: 'u', namespace: 'default', kind: 'pytorchjob', user: 'alice', state: 'SUCCEEDED', shape: { tasks: 2, gpus: 16 },
  submitted: '2026-11-17T10:00:00Z', ended: '2026-11-17T11:30:00Z',
  runs: [
    { start: '2026-11-17T10:10:00Z', end: '2026-11-17T10:40:00Z', gpus: 16, nodes: ['a', 'b'], how: 'evicted', by: 'default/pytorchjob/urgent' },
    { start: '2026-11-17T11:00:00Z', end: '2026-11-17T11:30:00Z', gpus: 16, nodes: ['c'], how: 'succeeded' },
  ],
};
const at = (time: string): number => Date.parse(`2026-11-17T${time}:00Z`);

test('a record is told as waiting, running, evicted, waiting and running again', () => {
  const story = timelineOf(record, at('12:00'));
  expect(story.attempts.map((a) => a.segments.map((s) => [s.kind, s.from, s.to]))).toEqual([
    [['queued', at('10:00'), at('10:10')], ['running', at('10:10'), at('10:40')]],
    [['queued', at('10:40'), at('11:00')], ['running', at('11:00'), at('11:30')]],
  ]);
  expect(story.marks.map((m) => [m.kind, m.at])).toEqual([['submitted', at('10:00')], ['evicted', at('10:40')], ['ended', at('11:30')]]);
});
test('one that never ran has waited until its end', () => {
  const story = timelineOf({ ...record, runs: [], state: 'STOPPED' }, at('12:00'));
  expect(story.attempts[0]!.segments).toEqual([{ kind: 'queued', from: at('10:00'), to: at('11:30'), text: '' }]);
});
