import { expect, test } from 'vitest';
import { asNew, edit } from './edit';
import { nextName, read } from './model';
import { TEMPLATES } from './templates';

const TEXT = `# my job
protocolVersion: 2
name: a   # the name
taskRoles:
  train:
    instances: 1
    resourcePerInstance: {cpu: 2, memoryMB: 4096, gpu: 1}
    commands:
      - >
        python3 main.py
        --epochs 1
      - sleep 5m

# where
defaults:
  virtualCluster: vc1
`;
function changedLines(a: string, b: string): string[] {
  const old = a.split('\n');
  return b.split('\n').filter((l) => !old.includes(l));
}

test('an edit changes its own line and nothing else, comments stay', () => {
  const next = edit(TEXT, ['taskRoles', 'train', 'instances'], 4);
  expect(next).toBe(TEXT.replace('instances: 1', 'instances: 4'));
  expect(edit(TEXT, ['name'], 'b')).toBe(TEXT.replace('name: a ', 'name: b '));
  expect(edit(TEXT, ['taskRoles', 'train', 'resourcePerInstance', 'gpu'], 8)).toBe(TEXT.replace('gpu: 1', 'gpu: 8'));
});
test('a key that was not there becomes one new line in its map', () => {
  const next = edit(TEXT, ['defaults', 'deployment'], 'd');
  expect(changedLines(TEXT, next)).toEqual(['  deployment: d']);
  expect(next.startsWith(TEXT.trimEnd())).toBe(true);
});
test('missing maps on the way are made', () => {
  const next = edit(TEXT, ['extras', 'hivedScheduler', 'jobPriorityClass'], 'prod');
  expect(changedLines(TEXT, next)).toEqual(['extras:', '  hivedScheduler:', '    jobPriorityClass: prod']);
  expect(read(next)!.priority).toBe('prod');
});
test('taking a key away takes its line', () => {
  const text = TEXT.replace('  virtualCluster: vc1\n', '  virtualCluster: vc1\n  deployment: d\n');
  expect(edit(text, ['defaults', 'deployment'], null)).toBe(TEXT);
});
test('values that YAML would read as something else are quoted', () => {
  expect(edit('name: a\n', ['name'], '123')).toBe('name: "123"\n');
  expect(edit('name: a\n', ['name'], 'x: y # z')).toBe('name: "x: y # z"\n');
});
test('text that is not YAML stays as it was', () => {
  expect(edit('a: [1\nb', ['a'], 2)).toBe('a: [1\nb');
});
test('the form reads OpenPAI, PyTorchJob and MPIJob', () => {
  expect(read(TEXT)).toMatchObject({ kind: 'openpai', name: 'a', tenant: 'vc1', roles: [{ name: 'train', replicas: 1, gpus: 1 }] });
  expect(read(TEMPLATES['pytorch']!.yaml)).toMatchObject({ kind: 'pytorchjob', name: 'my-pytorch-job', tenant: 'default', roles: [{ name: 'Master', gpus: 1 }, { name: 'Worker' }] });
  expect(read(TEMPLATES['mpi']!.yaml)).toMatchObject({ kind: 'mpijob', roles: [{ name: 'Launcher', gpus: 0 }, { name: 'Worker', replicas: 2, gpus: 1 }] });
  expect(read('kind: ConfigMap\n')).toBeNull();
  expect(read(': : :')).toBeNull();
});
test('what the form writes, it reads again, for every template', () => {
  for (const { yaml } of Object.values(TEMPLATES)) {
    const m = read(yaml)!;
    let text = edit(yaml, m.paths.name, 'renamed');
    text = edit(text, m.paths.tenant, 'research');
    text = edit(text, m.roles.at(-1)!.paths.replicas, 7);
    text = edit(text, m.roles.at(-1)!.paths.gpus, 3);
    expect(read(text)).toMatchObject({ name: 'renamed', tenant: 'research' });
    expect(read(text)!.roles.at(-1)).toMatchObject({ replicas: 7, gpus: 3 });
    expect(changedLines(yaml, text).length).toBeLessThanOrEqual(4);
  }
});
test('a copy gets the next name', () => {
  expect(nextName('a')).toBe('a-2');
  expect(nextName('sweep-9')).toBe('sweep-10');
});
test('a copy of a stored object is without what the server wrote into it', () => {
  const stored = 'apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  uid: "1"\n  resourceVersion: "5"\n  labels:\n    job-name: a\nspec:\n  selector:\n    matchLabels: {controller-uid: "1"}\n  template:\n    metadata:\n      labels: {controller-uid: "1", mine: x}\nstatus: {active: 1}\n';
  expect(asNew(stored)).toBe('apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\nspec:\n  template:\n    metadata:\n      labels: { mine: x }\n');
  expect(asNew(TEXT)).toBe(TEXT);
});
