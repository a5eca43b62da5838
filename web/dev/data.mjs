// A made-up cluster for looking at pages while the server is not at hand. Seeded: the same every time. Not a test, not shipped.
let seed = 7;
export const rnd = () => ((seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32);
const pick = (list) => list[Math.floor(rnd() * list.length)];
const MIN = 60_000, H = 3_600_000;
export const now = () => Date.now();
const T0 = now();

export function cluster(racks = 15, perRack = 16) {
  const vcs = [['vc1', 8], ['default', 4], ['research', 2], ['ads', 1]];
  const users = ['alice', 'carol', 'dan', 'erin', 'frank'];
  const names = ['llama-7b-sft', 'vit-h-ft', 'bert-xl-mlm', 'qwen-14b-dpo', 'clip-sweep-04', 'lora-sweep-12', 'resnet50-ddp', 'whisper-ft-zh', 'dpo-judge-eval', 'tokenize-c4', 'eval-mmlu-base', 'mnist-tutorial', 'sd-xl-lora', 'moe-8x7b-sft', 'gpt2-xl-pretrain', 'ctr-dlrm-daily', 'debug-nccl', 'dreambooth-ab', 'bert-base-squad', 't5-xxl-ft'];
  const topo = { at: T0, nodes: [], states: [], gpus: [], model: [], models: ['A100-80G', 'H100-80G'], rack: [], racks: [], chain: [], chains: ['A100-POOL'], vc: [], vcs: vcs.map((v) => v[0]), jobs: [], owner: [], bad: [], idle: [] };
  const rackVc = vcs.flatMap(([n, k]) => Array(Math.round((k * racks) / 15)).fill(n));
  for (let r = 0; r < racks; r++) {
    topo.racks.push(`r${String(r + 1).padStart(2, '0')}`);
    for (let n = 0; n < perRack; n++) { topo.nodes.push(`${topo.racks[r]}-n${String(n + 1).padStart(2, '0')}`); topo.states.push(rnd() < 0.012 ? 1 : rnd() < 0.005 ? 2 : 0); topo.gpus.push(8); topo.model.push(r > 12 ? 1 : 0); topo.rack.push(r); topo.chain.push(0); topo.vc.push(Math.max(0, topo.vcs.indexOf(rackVc[r] ?? 'default'))); }
  }
  const owners = new Int32Array(topo.nodes.length * 8);
  const jobs = [];
  let at = 0, count = 0;
  const make = (state, extra = {}) => {
    const user = pick(users), base = names[count % names.length];
    const name = count < names.length ? base : `${base}-${count}`;
    count++;
    const pai = rnd() < 0.6;
    const kind = pai ? 'openpai' : pick(['pytorchjob', 'mpijob', 'vcjob', 'job']);
    const old = ['SUCCEEDED', 'FAILED', 'STOPPED'].includes(state);
    const submitted = T0 - Math.floor(rnd() ** 2 * 30 * H) - (old ? 5 * H : MIN);
    const gpus = extra.gpus ?? pick([1, 2, 4, 8, 8, 16, 24, 32, 64]);
    const total = Math.max(1, Math.ceil(gpus / 8));
    const started = ['WAITING', 'SUSPENDED'].includes(state) ? null : Math.min(T0 - MIN, submitted + Math.floor(rnd() * 20 * MIN));
    const row = { id: pai ? `${user}~${name}` : `${user}/${kind}/${name}`, kind, name, user, vc: pick(['vc1', 'vc1', 'vc1', 'default', 'default', 'research', 'ads']), queue: '', prio: pick([{ class: 'prod', number: 100 }, { class: 'test', number: 10 }, { class: 'crit', number: 1000 }]), state, phase: state === 'RUNNING' ? 'running' : state === 'WAITING' ? 'queued' : null, gpus, tasks: { running: state === 'RUNNING' ? total : 0, total }, retries: { user: rnd() < 0.1 ? 1 : 0, platform: rnd() < 0.2 ? 1 : 0 }, submitted, started, ended: ['SUCCEEDED', 'FAILED', 'STOPPED'].includes(state) ? Math.min(T0 - MIN, (started ?? submitted) + Math.floor(rnd() * 4 * H)) : null, tags: rnd() < 0.2 ? ['sweep'] : [], exit: null, oppo: false, wait: null, ...extra };
    if (state === 'FAILED') row.exit = pick([{ code: 137, phrase: 'out of memory' }, { code: 1, phrase: 'the program failed' }, { code: 127, phrase: 'command not found' }]);
    if (state === 'STOPPED') row.exit = { code: null, phrase: `by ${user}` };
    if (state === 'SUSPENDED') row.exit = { code: null, phrase: `by ${user}` };
    if (state === 'STOPPING') row.exit = { code: null, phrase: 'making room, 40 s' };
    if (state === 'WAITING') {
      const none = rnd() < 0.2, start = T0 + Math.floor((0.2 + rnd() * 4) * H);
      row.wait = { reason: 'NoNodeFits', text: pick([`Needs ${1 + Math.floor(rnd() * 4)} more whole nodes in ${row.vc}: ${total} wanted, ${Math.floor(rnd() * total)} free`, `Queue ${row.vc} is at its limit: 221 of 224 GPUs`, 'behind 11 jobs', `short ${gpus} GPUs`]), place: 1 + Math.floor(rnd() * 12), ahead: 3, start: none ? null : start, startLow: none ? null : start - 40 * MIN * rnd(), startHigh: none ? null : start + 3 * H * rnd(), basis: none ? 'none' : 'learned' };
    }
    jobs.push(row);
    return row;
  };
  while (at < owners.length * 0.86) {
    if (rnd() < 0.07) { at += Math.floor(rnd() * 5) * 8; continue; }
    const j = make(rnd() < 0.02 ? 'STOPPING' : 'RUNNING', { oppo: rnd() < 0.05 });
    topo.jobs.push({ id: j.id, name: j.name, user: j.user, vc: j.vc, queue: '', prio: j.prio.number, prioClass: j.prio.class, state: j.state, oppo: j.oppo, started: j.started });
    if (j.gpus >= 8) at = Math.ceil(at / 8) * 8;
    for (let i = 0; i < j.gpus && at < owners.length; i++, at++) if (topo.states[at >> 3] === 0) owners[at] = topo.jobs.length;
  }
  for (let i = 0; i < 37; i++) make('WAITING');
  const held = jobs.find((j) => j.state === 'WAITING');
  topo.jobs.push({ id: held.id, name: held.name, user: held.user, vc: held.vc, queue: '', prio: 1000, prioClass: 'crit', state: 'WAITING', oppo: false, started: null });
  for (let i = owners.length - 96; i < owners.length; i++) if (!owners[i]) owners[i] = -topo.jobs.length;
  for (const [s, n] of [['SUCCEEDED', 861], ['FAILED', 52], ['STOPPED', 33], ['SUSPENDED', 5]]) for (let i = 0; i < n; i++) make(s);
  for (let i = 0; i < owners.length;) { let n = 1; while (i + n < owners.length && owners[i + n] === owners[i]) n++; topo.owner.push(owners[i], n); i += n; }
  topo.idle = [0, owners.length];
  return { topo, packed: packed(topo, owners), owners, jobs, users, vcs };
}

const amounts = (gpus) => ({ gpus, cpuMilli: gpus * 12_000, memoryBytes: gpus * 96 * 2 ** 30 });
export function tenants(c) {
  const total = c.owners.length;
  return c.vcs.map(([name, share]) => {
    const run = c.jobs.filter((j) => j.vc === name && j.state === 'RUNNING');
    const g = Math.round((total * share) / 15);
    const used = Math.min(g, run.filter((j) => !j.oppo).reduce((s, j) => s + j.gpus, 0));
    const wait = c.jobs.filter((j) => j.vc === name && j.state === 'WAITING');
    return { name, kind: 'vc', parent: '', depth: 0, open: true, weight: 1, used: amounts(used), oppo: amounts(run.filter((j) => j.oppo).reduce((s, j) => s + j.gpus, 0)), lent: amounts(name === 'default' ? 32 : 0), guarantee: amounts(g), deserved: amounts(Math.round(g * 0.96)), capability: null, total: amounts(total), waiting: { jobs: wait.length, gpus: wait.reduce((s, j) => s + j.gpus, 0) }, running: run.length, badCells: name === 'vc1' ? 1 : 0, mine: true };
  });
}
export function counts(c, user) {
  const tally = (list) => list.reduce((o, j) => ({ ...o, [j.state]: (o[j.state] ?? 0) + 1 }), {});
  const mine = c.jobs.filter((j) => j.user === user);
  const free = new Map();
  for (let n = 0; n < c.topo.nodes.length; n++) { if (c.topo.states[n]) continue; let f = 0; for (let g = n * 8; g < n * 8 + 8; g++) if (!c.owners[g]) f++; if (f) free.set(f, (free.get(f) ?? 0) + 1); }
  const used = c.owners.filter((o) => o > 0).length, heldN = c.owners.filter((o) => o < 0).length;
  return { at: now(), all: tally(c.jobs), mine: tally(mine), mineGpus: mine.filter((j) => j.state === 'RUNNING').reduce((s, j) => s + j.gpus, 0), mineLongestWait: 41 * MIN, nodes: { total: c.topo.nodes.length, ready: c.topo.states.filter((s) => !s).length, cordoned: c.topo.states.filter((s) => s === 1).length, notReady: c.topo.states.filter((s) => s === 2).length }, gpus: { total: c.owners.length, used, oppo: 24, held: heldN, free: c.owners.length - used - heldN, unusable: 24 }, freeBySize: [...free].sort((a, b) => b[0] - a[0]).map(([f, n]) => ({ size: 8, free: f, nodes: n })), alerts: [{ severity: 'error', text: '1 node is not ready', href: '/nodes?state=not-ready', since: T0 - 30 * MIN }, { severity: 'warning', text: '3 jobs hold idle GPUs', href: '/jobs', since: null }] };
}
export function detail(c, row) {
  const w = row.wait && { ...row.wait, at: now(), nodesTotal: 240, byCause: [{ cause: 'in cells of other virtual clusters', nodes: 112, kind: 'others' }, { cause: 'in use at equal or higher priority', nodes: 108, kind: 'in-use' }, { cause: 'held for bert-xl-mlm', nodes: 12, kind: 'held' }, { cause: 'cordoned or not ready', nodes: 3, kind: 'unusable' }, { cause: 'fit, whole and free', nodes: 5, kind: 'fits' }], shortages: [{ resource: `whole nodes of 8 in ${row.vc}`, wanted: 8, available: 5, limit: 0 }, { resource: 'nvidia.com/gpu', wanted: 64, available: 40, limit: 0 }, { resource: 'cpu', wanted: 512_000, available: 640_000, limit: 0 }, { resource: 'memory', wanted: 4 * 2 ** 40, available: 5 * 2 ** 40, limit: 0 }], queue: row.vc, of: 12, aheadFirst: c.jobs.filter((j) => j.state === 'WAITING' && j.id !== row.id).slice(0, 2).map((j) => ({ id: j.id, name: j.name, user: j.user, prio: j.prio, gpus: j.gpus, start: j.wait.start })), subject: 'bert-xl-mlm', subjectId: null, until: T0 + H, preemption: '', basisText: row.wait.basis === 'none' ? '' : 'learned from 212 runs like those it waits for', alternatives: [{ change: 'Run 5 workers instead of 8', text: '40 GPUs, starts now on r05-n11 … n15', verdict: 'starts', start: null, yaml: 'protocolVersion: 2\nname: a\n' }, { change: 'Declare a run time of 80 min', text: 'Fits before bert-xl-mlm’s reservation at 11:03, if it really ends by then', verdict: 'starts', start: null, yaml: null }] };
  return { row, namespace: row.user, debugId: '9e07e0a2-7a5c', description: '', image: 'registry/pytorch:2.9', roles: [{ name: 'train', tasks: row.tasks.total, min: row.tasks.total, gpus: Math.min(8, row.gpus), cpuMilli: 64_000, memoryBytes: 512 * 2 ** 30 }], gang: true, attempts: row.retries.platform + 1, wait: w, failure: row.state === 'FAILED' ? { code: row.exit.code, reason: 'killed, out of memory', text: 'train-2 on r13-n04 used 64.0 of 64 GiB.', advice: 'Ask for more memory a task, or lower the number of data loader workers.', task: 'train-0' } : null, events: 14, may: { stop: !row.ended, suspend: row.state === 'RUNNING' || row.state === 'WAITING', resume: row.state === 'SUSPENDED', tag: true, priority: row.state === 'WAITING', exec: true } };
}
export function tasks(c, row) {
  return Array.from({ length: row.tasks.total }, (_, i) => ({ id: `train-${i}`, role: 'train', index: i, state: row.state === 'WAITING' ? 'WAITING' : row.state, node: row.started ? `r05-n${String((i % 16) + 1).padStart(2, '0')}` : '', gpus: [0, 1, 2, 3, 4, 5, 6, 7].slice(0, Math.min(8, row.gpus)), gpuCount: Math.min(8, row.gpus), ip: row.started ? `10.1.5.${i + 10}` : '', ports: {}, retries: row.retries.platform, exit: row.exit, started: row.started, ended: row.ended, pod: `${row.name}-train-${i}`, containers: ['main'], attempt: 1 }));
}
export function timeline(row) {
  const s = row.submitted, end = row.ended, st = row.started;
  const attempts = [];
  const lanes = (from, to, kind) => Array.from({ length: Math.min(16, row.tasks.total) }, (_, i) => ({ id: `train-${i}`, segments: [{ kind, from: from + i * 9000, to, text: '' }] }));
  if (row.retries.platform) {
    const a = s + 20 * MIN, b = Math.min(s + 3 * H, (st ?? T0) - 30 * MIN);
    if (b > a) { attempts.push({ n: 1, segments: [{ kind: 'queued', from: s, to: a, text: 'short 16' }, { kind: 'reserved', from: a, to: a + 8 * MIN, text: '' }, { kind: 'running', from: a + 8 * MIN, to: b, text: '8 nodes' }], tasks: lanes(a + 8 * MIN, b, 'running'), tasksTotal: row.tasks.total }); attempts.push({ n: 2, segments: [{ kind: 'queued', from: b, to: st, text: row.wait?.text ?? '' }, ...(st ? [{ kind: 'running', from: st, to: end, text: '' }] : row.wait?.start ? [{ kind: 'forecast', from: row.wait.start, to: row.wait.start + 2 * H, text: 'would run' }] : [])], tasks: [], tasksTotal: row.tasks.total }); return { now: now(), attempts, marks: [{ at: s, kind: 'submitted', text: '', by: null }, { at: b, kind: 'evicted', text: 'evicted', by: 'carol~eval-mmlu-crit' }] }; }
  }
  attempts.push({ n: 1, segments: [{ kind: 'queued', from: s, to: st, text: row.wait?.text ?? '' }, ...(st ? [{ kind: 'running', from: st, to: end, text: '' }] : row.wait?.start ? [{ kind: 'forecast', from: row.wait.start, to: row.wait.start + 2 * H, text: 'would run' }] : [])], tasks: st ? lanes(st, end, 'running') : [], tasksTotal: row.tasks.total });
  return { now: now(), attempts, marks: [{ at: s, kind: 'submitted', text: '', by: null }] };
}

/** As the server sends it (src/shapes/topology.ts), with jobs numbered as they come up. */
function packed(topo, owners) {
  const listed = (texts) => ({ stems: texts, widths: texts.map(() => 0), stem: texts.map((_, i) => i), number: [] });
  const runs = (values) => values.flatMap((v) => [v, 1]);
  const order = [];
  const who = [];
  for (const o of owners) {
    const job = Math.abs(o);
    if (!job) { who.push(0); continue; }
    const highest = order.length;
    if (!order.includes(job)) order.push(job);
    const back = highest - (order.indexOf(job) + 1) + 2;
    who.push(o < 0 ? -back : back);
  }
  const jobs = order.map((k) => topo.jobs[k - 1]);
  return { at: topo.at, nodes: listed(topo.nodes), states: runs(topo.states), gpus: runs(topo.gpus), model: runs(topo.model), models: listed(topo.models), rack: runs(topo.rack), racks: listed(topo.racks), jobs: { ids: listed(jobs.map((j) => j.id)), sort: jobs.map((_, i) => i), sorts: jobs.map(({ user, vc, queue, prio, prioClass, state, oppo }) => ({ user, vc, queue, prio, prioClass, state, oppo })) }, owner: { who, count: who.map(() => 1) }, bad: topo.bad, idle: topo.idle };
}
