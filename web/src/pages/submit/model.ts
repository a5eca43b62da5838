/** What the form knows of a manifest, and where each field stands in it. Pure. */
import { isMap, isSeq, type Document } from 'yaml';
import { at, parse, type Path } from './edit';

export type Kind = 'openpai' | 'pytorchjob' | 'mpijob' | 'other';
export interface Role { name: string; replicas: number; gpus: number; cpu: string; memory: string; command: string; paths: { replicas: Path; gpus: Path; cpu: Path; memory: Path; command: Path } }
export interface Model {
  kind: Kind;
  name: string;
  namespace: string;
  tenant: string;
  priority: string;
  image: string;
  gang: boolean;
  roles: Role[];
  paths: { name: Path; namespace: Path | null; tenant: Path; priority: Path; images: Path[]; gang: Path | null };
}

const text = (v: unknown): string => (v === undefined || v === null || typeof v === 'object' ? '' : String(v));
const whole = (v: unknown, or: number): number => (typeof v === 'number' ? v : Number.parseInt(text(v), 10) || or);
const keys = (doc: Document, path: Path): string[] => {
  const node = doc.getIn(path);
  return isMap(node) ? node.items.map((i) => String((i.key as { value?: unknown }).value ?? i.key)) : [];
};

export function read(source: string): Model | null {
  const doc = parse(source);
  if (!doc || !isMap(doc.contents)) return null;
  if (at(doc, ['protocolVersion']) !== undefined) return openpai(doc);
  const kind = text(at(doc, ['kind'])).toLowerCase();
  if (kind === 'pytorchjob' || kind === 'mpijob') return kubeflow(doc, kind);
  return null;
}

function openpai(doc: Document): Model {
  const list = doc.getIn(['prerequisites']);
  const images = isSeq(list) ? list.items.map((_, i) => i).filter((i) => at(doc, ['prerequisites', i, 'type']) === 'dockerimage') : [];
  const roles = keys(doc, ['taskRoles']).map((name): Role => {
    const r: Path = ['taskRoles', name];
    const res: Path = [...r, 'resourcePerInstance'];
    const paths = { replicas: [...r, 'instances'], gpus: [...res, 'gpu'], cpu: [...res, 'cpu'], memory: [...res, 'memoryMB'], command: [...r, 'commands'] };
    const commands = doc.getIn(paths.command);
    return { name, replicas: whole(at(doc, paths.replicas), 1), gpus: whole(at(doc, paths.gpus), 0), cpu: text(at(doc, paths.cpu)), memory: text(at(doc, paths.memory)), command: isSeq(commands) ? commands.items.map((_, i) => text(at(doc, [...paths.command, i]))).join('\n') : '', paths };
  });
  return {
    kind: 'openpai', name: text(at(doc, ['name'])), namespace: '', tenant: text(at(doc, ['defaults', 'virtualCluster'])), priority: text(at(doc, ['extras', 'hivedScheduler', 'jobPriorityClass'])),
    image: images.length ? text(at(doc, ['prerequisites', images[0]!, 'uri'])) : '', gang: at(doc, ['extras', 'gangAllocation']) !== false, roles,
    paths: { name: ['name'], namespace: null, tenant: ['defaults', 'virtualCluster'], priority: ['extras', 'hivedScheduler', 'jobPriorityClass'], images: images.map((i) => ['prerequisites', i, 'uri']), gang: ['extras', 'gangAllocation'] },
  };
}

function kubeflow(doc: Document, kind: 'pytorchjob' | 'mpijob'): Model {
  const specs: Path = ['spec', kind === 'pytorchjob' ? 'pytorchReplicaSpecs' : 'mpiReplicaSpecs'];
  const names = keys(doc, specs);
  const roles = names.map((name): Role => {
    const r: Path = [...specs, name];
    const c: Path = [...r, 'template', 'spec', 'containers', 0];
    const limits: Path = [...c, 'resources', 'limits'];
    const paths = { replicas: [...r, 'replicas'], gpus: [...limits, 'nvidia.com/gpu'], cpu: [...limits, 'cpu'], memory: [...limits, 'memory'], command: [...c, 'command'] };
    const command = doc.getIn(paths.command);
    return { name, replicas: whole(at(doc, paths.replicas), 1), gpus: whole(at(doc, paths.gpus), 0), cpu: text(at(doc, paths.cpu)), memory: text(at(doc, paths.memory)), command: isSeq(command) ? command.items.map((_, i) => text(at(doc, [...paths.command, i]))).join(' ') : '', paths };
  });
  const policy: Path = ['spec', 'runPolicy', 'schedulingPolicy'];
  return {
    kind, name: text(at(doc, ['metadata', 'name'])), namespace: text(at(doc, ['metadata', 'namespace'])), tenant: text(at(doc, [...policy, 'queue'])), priority: text(at(doc, [...policy, 'priorityClass'])),
    image: roles.length ? text(at(doc, [...specs, names[0]!, 'template', 'spec', 'containers', 0, 'image'])) : '', gang: true, roles,
    paths: { name: ['metadata', 'name'], namespace: ['metadata', 'namespace'], tenant: [...policy, 'queue'], priority: [...policy, 'priorityClass'], images: names.map((n) => [...specs, n, 'template', 'spec', 'containers', 0, 'image']), gang: null },
  };
}

/** A name that is free: `a` → `a-2`, `a-2` → `a-3`. */
export function nextName(name: string): string {
  const m = /^(.*?)-(\d{1,6})$/.exec(name);
  return m ? `${m[1]}-${Number(m[2]) + 1}` : `${name}-2`;
}
