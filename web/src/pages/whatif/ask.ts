/** A question about a change, asked until it is answered: long ones are answered later. */
import { call, get } from '../../api';
import type { Whatif, WhatifChange } from '../../shapes/calls';

type Later = { id: string };
export async function askWhatif(changes: WhatifChange[], horizon = '24h', signal?: AbortSignal): Promise<Whatif> {
  let answer = await call<Whatif | Later>('POST', '/whatif', { changes, horizon }, signal);
  while (!('text' in answer)) {
    await new Promise((r) => setTimeout(r, 700));
    answer = await get<Whatif | Later>(`/whatif/${encodeURIComponent(answer.id)}`, signal);
  }
  return answer;
}
