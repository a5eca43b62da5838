import { describe, expect, it } from 'vitest';
import { shortReason } from './reason';

describe('a wait in a few words', () => {
  const cases: [string, string][] = [
    ['no node could hold a member even when empty; nvidia.com/gpu: a member wants 9, the largest node has 8', 'can never run here'],
    ['queue "research" is at its limit; nvidia.com/gpu: wants 16, 3 left of 224', 'limit of 224 GPUs'],
    ['what is free is guaranteed to other queues; nvidia.com/gpu: wants 64, 6 left of 96; expected to start at 2026-11-17T13:25:18Z', 'short of 58 GPUs, guaranteed to others'],
    ['room is free, but starting now would delay "dan/bert-xl", expected to start at 2026-11-17T13:25:18Z', 'room is held for bert-xl'],
    ['its room is held; waiting for 2 evicted pods to leave ("a/b", at the latest at 2026-11-17T13:25:18Z)', 'making room'],
    ['waits for members: 1 of 2 exist', '1 of 2 tasks exist'],
    ['0 of 8 members can be placed; 0/48 nodes are available: 48 Insufficient nvidia.com/gpu. nvidia.com/gpu: a member wants 8, most free on one node 4; 3 ahead (first "a/b")', '8 GPUs on one node, at most 4 free'],
    ['queue "vc1" is first in, first out; 100 or more ahead (first "a/b")', 'behind 100+'],
    ['0/12 nodes are available: 12 Insufficient nvidia.com/gpu. preemption: 0/12 nodes are available', 'no node has the GPUs free'],
    ['its pod group "x" does not exist', 'its pod group "x" does not exist'],
  ];
  for (const [text, short] of cases) it(short, () => expect(shortReason(text)).toBe(short));
});
