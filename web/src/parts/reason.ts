/** The scheduler's sentence about a wait in the few words that a row has room for; its whole sentence is in the title. */
import { num } from '../format';
import { t } from '../text';

const resource = (name: string): string => (name === 'nvidia.com/gpu' ? t('GPUs') : name === 'cpu' ? t('CPU cores') : name);
const name = (key: string): string => key.replace(/^.*[:/]/, '');

const RULES: [RegExp, (m: string[]) => string][] = [
  [/even when empty/, () => t('can never run here')],
  [/is at its limit; (\S+): wants \S+, \S+ left of ([\d.]+)/, (m) => t('limit of {n} {resource}', { n: num(Number(m[2])), resource: resource(m[1]!) })],
  [/guaranteed to other queues; (\S+): wants (\d+), (\d+) left/, (m) => t('short of {n} {resource}, guaranteed to others', { n: num(Number(m[2]) - Number(m[3])), resource: resource(m[1]!) })],
  [/guaranteed to other queues/, () => t('what is free is guaranteed to others')],
  [/has used up its share/, () => t('its queue has used up its share')],
  [/would delay "([^"]+)"/, (m) => t('room is held for {name}', { name: name(m[1]!) })],
  [/would delay those ahead/, () => t('room is held for those ahead')],
  [/evicted pods? to leave/, () => t('making room')],
  [/waits for members.*: (\d+) of (\d+) exist/, (m) => t('{n} of {total} tasks exist', { n: num(Number(m[1])), total: num(Number(m[2])) })],
  [/(\S+): a member wants (\d+), most free on one node (\d+)/, (m) => t('{n} {resource} on one node, at most {free} free', { n: num(Number(m[2])), resource: resource(m[1]!), free: num(Number(m[3])) })],
  [/first in, first out.*?(\d+)( or more)? ahead/, (m) => t('behind {n}', { n: m[2] ? `${num(Number(m[1]))}+` : num(Number(m[1])) })],
  [/^0\/\d+ nodes are available: \d+ Insufficient (\S+?)\.?( |$)/, (m) => t('no node has the {resource} free', { resource: resource(m[1]!) })],
];

export function shortReason(text: string): string {
  for (const [pattern, say] of RULES) {
    const found = pattern.exec(text);
    if (found) return say(found);
  }
  return text.replaceAll('nvidia.com/gpu', t('GPUs'));
}
