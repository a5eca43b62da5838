// Serves build/web with a made-up cluster, for work on the pages: node dev/server.mjs [DIR] [PORT] [--nodes N]. Not a test, not shipped.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import * as made from './data.mjs';

const dir = process.argv[2] ?? '../build/web';
const port = Number(process.argv[3] ?? 8088);
const big = process.argv.includes('--big');
const c = big ? made.cluster(625, 16) : made.cluster();
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
let user = process.argv.includes('--in') ? 'alice' : null;
const session = () => ({ user, admin: true, groups: ['default', 'admingroup'], vcs: ['vc1', 'default', 'research', 'ads'], cluster: 'gpu-east', version: '1.4.0', build: 'dev', plainHttp: false, defaultPassword: false, features: ['check', 'hived', 'policy', 'exec', 'log', 'usage', 'audit', 'whatif'], namespaces: ['default'] });
const rv = () => String(Math.floor(Date.now() / 1000));

function filter(list, q) {
  const has = (k, v) => !q[k]?.length || q[k].includes(v);
  let out = list.filter((j) => has('user', j.user) || (q.user?.includes('me') && j.user === 'alice')).filter((j) => has('vc', j.vc) && has('queue', j.queue) && has('kind', j.kind) && has('prio', j.prio.class) && (!q.tag?.length || j.tags.some((x) => q.tag.includes(x))) && (!q.q || `${j.id} ${j.name} ${j.tags}`.toLowerCase().includes(q.q.toLowerCase())) && (!q.from || j.submitted >= q.from));
  const counts = {};
  for (const j of out) counts[j.state] = (counts[j.state] ?? 0) + 1;
  out = out.filter((j) => has('state', j.state));
  const sort = q.sort ?? '-submitted', key = sort.replace('-', '');
  const value = (j) => ({ prio: j.prio.number, tasks: j.tasks.total, start: j.wait?.start ?? 9e15, duration: (j.ended ?? Date.now()) - (j.started ?? Date.now()), retries: j.retries.user + j.retries.platform })[key] ?? j[key] ?? 0;
  out.sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : a.id < b.id ? -1 : 1) * (sort[0] === '-' ? -1 : 1); });
  const groups = q.group ? Object.values(out.reduce((o, j) => { const v = q.group === 'prio' ? j.prio.class : String(j[q.group]); const g = (o[v] ??= { value: v, jobs: 0, gpus: 0, states: {} }); g.jobs++; g.gpus += j.gpus; g.states[j.state] = (g.states[j.state] ?? 0) + 1; return o; }, {})) : undefined;
  return { out, counts, groups };
}
const nodeRow = (i) => ({ id: c.topo.nodes[i], state: ['ready', 'cordoned', 'not-ready'][c.topo.states[i]], model: c.topo.models[c.topo.model[i]], rack: c.topo.racks[c.topo.rack[i]], vcs: [c.topo.vcs[c.topo.vc[i]]], gpus: Array.from({ length: 8 }, (_, g) => { const o = c.owners[i * 8 + g]; const j = c.topo.jobs[Math.abs(o) - 1]; return { index: g, job: o > 0 ? j.id : null, user: o > 0 ? j.user : '', oppo: o > 0 && j.oppo, held: o < 0, bad: false, use: o > 0 ? 0.91 : null, memoryUsed: o > 0 ? 6e10 : null, memoryTotal: 8e10 }; }), cpuMilli: { used: 64000, total: 128000 }, memoryBytes: { used: 5e11, total: 1e12 }, pods: { used: 12, total: 110 }, taints: [], since: null });
const eventRows = Array.from({ length: 120 }, (_, i) => ({ id: `e${i}`, at: Date.now() - i * 47_000, first: Date.now() - i * 50_000, count: 1 + (i % 7), type: i % 4 ? 'Normal' : 'Warning', reason: ['Scheduled', 'FailedScheduling', 'Pulled', 'Evicted'][i % 4], message: i === 3 ? '<img src=x onerror=alert(1)> 0/240 nodes are available: 128 Insufficient nvidia.com/gpu' : 'Gang bound to 8 nodes, 64 GPUs', object: 'Pod default/llama-7b-sft-train-0', job: c.jobs[i].id, node: '', source: 'muster' }));

function topic(name, q, window) {
  const at = Date.now();
  const rows = (list, counts = {}, groups) => { const w = [window?.[0] ?? 0, Math.min(list.length, window?.[1] ?? 100)]; return { rv: rv(), at, total: list.length, counts, ...(groups ? { groups } : {}), window: w, rows: list.slice(w[0], w[1]) }; };
  if (name === 'jobs') { const f = filter(c.jobs, q); return rows(f.out, f.counts, f.groups); }
  if (name === 'nodes') { let ids = c.topo.nodes.map((_, i) => i); if (q.q) ids = ids.filter((i) => c.topo.nodes[i].includes(q.q)); if (q.state) ids = ids.filter((i) => q.state.includes(['ready', 'cordoned', 'not-ready'][c.topo.states[i]])); return rows(ids.slice(0, 400).map(nodeRow)); }
  if (name === 'events') return rows(eventRows.filter((e) => !q.type?.length || q.type.includes(e.type)));
  if (name.startsWith('tasks/')) { const j = c.jobs.find((x) => x.id === name.slice(6)); return rows(j ? made.tasks(c, j) : []); }
  const value = name.startsWith('job/') ? (() => { const j = c.jobs.find((x) => x.id === name.slice(4)); return j ? made.detail(c, j) : null; })() : name === 'counts' ? made.counts(c, 'alice') : name === 'tenants' ? made.tenants(c) : name === 'topology' ? c.packed : name === 'gantt' ? gantt(q) : null;
  return value ? { rv: rv(), at, value } : { error: { code: 'NotFound', message: `There is no ${name}` } };
}
function gantt(q) {
  const now = Date.now(), from = q.from ?? now - 6 * 3.6e6, to = q.to ?? now + 2 * 3.6e6;
  const run = c.jobs.filter((j) => j.started && (j.ended ?? now) > from && (!q.jobs || q.jobs.includes(j.id)));
  const lane = new Map();
  for (const [i, j] of run.slice(0, 120).entries()) { const key = q.by === 'vc' ? j.vc : q.by === 'job' ? j.name : c.topo.nodes[(i * 7) % 24]; if (!lane.has(key)) lane.set(key, []); lane.get(key).push({ job: j.id, name: j.name, user: j.user, vc: j.vc, kind: 'running', from: j.started, to: j.ended, forecast: false, gpus: j.gpus, attempt: 1, text: '' }); if (!j.ended) lane.get(key).push({ job: j.id, name: j.name, user: j.user, vc: j.vc, kind: 'running', from: now, to: now + ((i * 37) % 100) * 60000, forecast: true, gpus: j.gpus, attempt: 1, text: '' }); }
  const w = c.jobs.find((j) => j.wait?.start);
  if (w && !q.jobs) [...lane.values()][0]?.push({ job: w.id, name: w.name, user: w.user, vc: w.vc, kind: 'reserved', from: w.wait.start, to: w.wait.start + 3.6e6, forecast: true, gpus: w.gpus, attempt: 1, text: '' });
  return { now, from, to, lanes: [...lane].sort().map(([name, bars]) => ({ name, gpus: 8, bars })), more: 0 };
}
const parse = (p) => { const q = {}; for (const [k, v] of p) q[k] = ['q', 'sort', 'group', 'from', 'to', 'by'].includes(k) ? (/^\d+$/.test(v) ? Number(v) : v) : v.split(','); return q; };

const HIVED = "physicalCluster:\n  skuTypes:\n    gpu-machine:\n      gpu: 1\n      cpu: 4\n      memory: 8192Mi\n  cellTypes:\n    POOL:\n      childCellType: gpu-machine\n      childCellNumber: 2\nvirtualClusters:\n  default:\n    virtualCells:\n      - cellType: POOL.gpu-machine\n        cellNumber: 1\n  vc1:\n    virtualCells:\n      - cellType: POOL.gpu-machine\n        cellNumber: 1\n";
function cells() {
  const leaf = (a, i) => ({ cellType: 'A100', cellAddress: `${a}/${i}`, cellState: (i * 7) % 5 ? 'Used' : 'Free', cellHealthiness: 'Healthy', cellPriority: i === 2 ? -1 : 5 });
  const node = (r, n) => ({ cellType: 'A100-NODE', isNodeLevel: true, cellAddress: `r${r}/n${n}`, cellState: 'Used', cellHealthiness: r === 1 && n === 3 ? 'Bad' : 'Healthy', cellPriority: 5, cellChildren: Array.from({ length: 8 }, (_, i) => leaf(`r${r}/n${n}`, i)), vc: 'vc1', virtualCell: { cellAddress: `vc1/${r}/${n}` } });
  const rack = (r) => ({ cellType: 'A100-RACK', cellAddress: `r0${r}`, cellState: 'Used', cellHealthiness: 'Healthy', cellPriority: 5, cellChildren: [1, 2, 3, 4].map((n) => node(r, n)), vc: r < 6 ? 'vc1' : 'default', virtualCell: { cellAddress: `vc1/${r}` } });
  return { physicalCluster: [{ cellType: 'A100-POOL', cellAddress: 'pool', cellState: 'Used', cellHealthiness: 'Healthy', cellPriority: 5, cellChildren: [1, 2, 3, 4, 5, 6, 7, 8].map(rack) }], virtualClusters: { vc1: [rack(1), rack(2)], default: [rack(7)] } };
}
function answer(path, p, method, body) {
  const q = parse(p), win = [Number(p.get('offset') ?? 0), Number(p.get('offset') ?? 0) + Number(p.get('limit') ?? 100)];
  const job = /^\/jobs\/([^/]+)(\/.*)?$/.exec(path);
  if (path === '/session') { if (method === 'POST') user = JSON.parse(body).user ?? 'alice'; if (method === 'DELETE') user = null; return session(); }
  if (job) {
    const row = c.jobs.find((j) => j.id === decodeURIComponent(job[1]));
    if (!row) return null;
    if (job[2] === '/timeline') return made.timeline(row);
    if (job[2] === '/config') return `# as submitted\nprotocolVersion: 2\nname: ${row.name}\ntype: job\nprerequisites:\n  - name: image\n    type: dockerimage\n    uri: registry/pytorch:2.9\ntaskRoles:\n  train:\n    instances: ${row.tasks.total}\n    dockerImage: image\n    resourcePerInstance: {cpu: 64, memoryMB: 524288, gpu: 8}\n    commands:\n      - python train.py  # the real thing\ndefaults:\n  virtualCluster: ${row.vc}\nextras:\n  hivedScheduler:\n    jobPriorityClass: prod\n`;
    if (job[2]?.startsWith('/wait/nodes')) return { total: 12, rows: c.topo.nodes.slice(0, 12).map((node) => ({ node, text: '8 GPUs held' })) };
    return made.detail(c, row);
  }
  if (path === '/usage') { const at = Array.from({ length: 120 }, (_, i) => Date.now() - (120 - i) * 180_000); return { step: 180000, tenants: c.vcs.map((v) => v[0]), at, columns: c.vcs.map(([, k], n) => ({ used: at.map((_, i) => Math.round(k * 100 + 12 * Math.sin(i / 9 + n) + (i > 90 && n === 0 ? i - 90 : 0))), oppo: at.map(() => 0), guarantee: at.map(() => k * 128), deserved: at.map(() => 0), capability: at.map(() => null), waiting: at.map(() => 0) })) }; }
  if (path === '/cells') return cells();
  if (path === '/hived' || path === '/policy') return { text: HIVED, resourceVersion: '1', present: true };
  if (path === '/hived:check') return { ok: true, changes: [{ group: 'job-config-1', job: 'alice~job-config-1', user: 'alice', vc: 'vc1', effect: 'kept', text: '' }, { group: 'job-config-4', job: null, user: 'dan', vc: 'default', effect: 'downgraded', text: 'runs on as opportunistic' }], facts: ['vc1 grows by 1 cell'], warnings: [] };
  if (path.endsWith('/versions')) return [{ version: 'v3', at: Date.now() - 1e7, user: 'admin', text: HIVED }];
  if (path === '/check') return { kind: 'openpai', diagnostics: body.includes('wrong') ? [{ line: 3, col: 1, path: 'type', severity: 'error', message: 'must be job' }] : [], objects: '', decision: { verdict: body.includes('gpu: 8') ? 'waits' : 'starts', text: body.includes('gpu: 8') ? 'Short 24 GPUs in vc1, place 4 of 13' : '1 task on r05-n11', placement: body.includes('gpu: 8') ? [] : [{ task: 'train-0', node: 'r05-n11', gpus: [0] }], victims: [], wait: null, alternatives: body.includes('gpu: 8') ? [{ change: 'Run 5 workers instead of 8', text: '40 GPUs, starts now', verdict: 'starts', start: null, yaml: null }] : [], at: Date.now(), rv: '1' } };
  if (path === '/suggest') return { values: (q.field[0] === 'user' ? c.users : q.field[0] === 'vc' ? c.vcs.map((v) => v[0]) : q.field[0] === 'priority' || q.field[0] === 'prio' ? ['oppo', 'test', 'prod', 'crit'] : q.field[0] === 'kind' ? ['openpai', 'pytorchjob', 'mpijob'] : []).map((value) => ({ value, text: '' })) };
  if (path === '/search') return { jobs: filter(c.jobs, { q: p.get('q') }).out.slice(0, 6), nodes: c.topo.nodes.filter((n) => n.includes(p.get('q'))).slice(0, 5), users: c.users.filter((u) => u.includes(p.get('q'))) };
  if (path === '/pai/users') return ['admin', ...c.users].map((u, i) => ({ username: u, email: `${u}@example.org`, admin: i === 0, virtualCluster: ['default', 'vc1'].slice(0, 1 + (i % 2)), storageConfig: [], grouplist: i ? ['default', ...(i % 2 ? ['vc1'] : [])] : ['admingroup'], extension: {}, lastSeen: Date.now() - i * 7e6 }));
  if (path === '/pai/virtual-clusters') return { default: {}, vc1: {}, research: {} };
  if (path === '/pai/groups') return [{ groupname: 'admingroup', description: 'administrators', externalName: '', extension: { acls: { admin: true } } }, { groupname: 'default', description: 'everybody', externalName: '', extension: { acls: { virtualClusters: ['default'] } } }, { groupname: 'vc1', description: '', externalName: '', extension: { acls: { virtualClusters: ['vc1'] } } }];
  if (path === '/tokens') return [{ id: 'abc', application: true, note: 'nightly script', created: Date.now() - 9e7, expires: null }];
  if (path === '/sessions') return [{ id: 'a', here: true, from: '127.0.0.1', agent: 'Chromium on Linux', began: Date.now() - 7e6, seen: Date.now() }];
  if (path === '/views') return [{ name: 'my waiting', page: '/jobs', query: '?state=WAITING&user=me' }];
  if (path === '/services') return { components: ['apiserver', 'scheduler', 'controllers', 'agent', 'portal'].map((name) => ({ name, state: 'ok', version: '1.4.0', leader: '', text: '', since: Date.now() - 9e7 })), queues: [{ name: 'bindings', depth: 3, limit: 10000 }], errors: [] };
  if (path === '/audit') return { total: 40, rows: Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, at: Date.now() - i * 1e5, user: c.users[i % 5], from: '10.0.0.7', verb: i % 3 ? 'create' : 'delete', object: 'frameworks default/llama-7b-sft', code: i % 9 ? 201 : 403, text: '' })) };
  if (path === '/jobs:impact') return { total: 1204, users: c.users.map((u) => ({ user: u, states: { WAITING: 12, RUNNING: 4 }, gpus: 320 })) };
  if (path.startsWith('/nodes/')) { const i = c.topo.nodes.indexOf(path.slice(7)); return i < 0 ? null : { row: nodeRow(i), labels: { 'kubernetes.io/hostname': c.topo.nodes[i], 'nvidia.com/gpu.product': 'A100-80G' }, addresses: ['10.1.5.9'], kubelet: 'muster 1.4.0', tasks: [...new Set([...c.owners.slice(i * 8, i * 8 + 8)].filter((o) => o > 0))].map((o) => ({ job: c.topo.jobs[o - 1].id, task: 'train-0', user: c.topo.jobs[o - 1].user, state: 'RUNNING', gpus: 8, started: c.topo.jobs[o - 1].started })), conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', since: null }], may: { cordon: true, drain: true } }; }
  const got = topic(path.slice(1).replace(/^tasks\/(.*)$/, (_, x) => `tasks/${decodeURIComponent(x)}`), q, win);
  return got.error ? null : (got.value ?? got);
}

const server = createServer((req, res) => {
  const url = new URL(req.url, 'http://x');
  let body = '';
  req.on('data', (d) => { body += d; });
  req.on('end', () => {
    if (url.pathname.startsWith('/api/portal/v1')) {
      const out = answer(url.pathname.slice(14), url.searchParams, req.method, body);
      res.writeHead(out === null ? 404 : 200, { 'Content-Type': typeof out === 'string' ? 'text/yaml' : 'application/json', 'Cache-Control': 'no-store' });
      return res.end(typeof out === 'string' ? out : JSON.stringify(out ?? { code: 'NotFound', message: `There is no ${decodeURIComponent(url.pathname)}` }));
    }
    let file = join(dir, url.pathname);
    if (!url.pathname.startsWith('/assets/')) file = join(dir, url.pathname === '/terminal' ? 'terminal.html' : 'index.html');
    if (!existsSync(file)) { res.writeHead(404); return res.end(); }
    res.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': url.pathname === '/terminal' ? CSP.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'") : CSP });
    res.end(readFileSync(file));
  });
});
server.on('upgrade', (req, socket) => {
  const key = createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  const send = (m) => { const d = Buffer.from(JSON.stringify(m)); const h = d.length < 126 ? Buffer.from([0x81, d.length]) : d.length < 65536 ? Buffer.from([0x81, 126, d.length >> 8, d.length & 255]) : Buffer.concat([Buffer.from([0x81, 127, 0, 0, 0, 0]), Buffer.from([d.length >>> 24, (d.length >> 16) & 255, (d.length >> 8) & 255, d.length & 255])]); socket.write(Buffer.concat([h, d])); };
  const subs = new Map();
  if (req.url.includes('/log?')) { let i = 0; const line = () => [Date.now(), `train-${i % 4}`, i % 17 === 3 ? 'WARN NCCL slow link r05-n11:mlx5_2, 18.2 of 24 GB/s' : i % 23 === 5 ? '\u001b[31mRuntimeError\u001b[0m: CUDA out of memory: tried to allocate 2.00 GiB' : `epoch 3 step ${1800 + i++ * 10} loss ${(1.73 - i / 9000).toFixed(4)} lr 1.2e-5`].map((x) => (i++, x)); send({ lines: Array.from({ length: 400 }, line) }); const timer = setInterval(() => send({ lines: Array.from({ length: 6 }, line) }), 500); socket.on('close', () => clearInterval(timer)); socket.on('error', () => {}); return; }
  send({ hello: { build: 'dev', user, at: Date.now() } });
  let buffer = Buffer.alloc(0);
  socket.on('data', (d) => {
    buffer = Buffer.concat([buffer, d]);
    for (;;) {
      if (buffer.length < 6) return;
      let n = buffer[1] & 127, at = 2;
      if (n === 126) { n = buffer.readUInt16BE(2); at = 4; }
      if (buffer.length < at + 4 + n) return;
      const mask = buffer.subarray(at, at + 4), data = Buffer.from(buffer.subarray(at + 4, at + 4 + n)).map((b, i) => b ^ mask[i % 4]);
      const op = buffer[0] & 15;
      buffer = buffer.subarray(at + 4 + n);
      if (op === 8) { socket.end(); return; }
      const m = JSON.parse(data.toString());
      if ('unsub' in m) subs.delete(m.unsub);
      else if ('win' in m) { const s = subs.get(m.win); if (s) { s.window = m.window; send({ sub: m.win, ...topic(s.topic, s.query, s.window) }); } } else { subs.set(m.sub, m); send({ sub: m.sub, ...topic(m.topic, m.query ?? {}, m.window) }); }
    }
  });
  // Something changes: a running job's tasks flicker, now and then a job ends.
  const timer = setInterval(() => { for (const [n, s] of subs) if (s.topic === 'jobs' || s.topic === 'counts') { const t = topic(s.topic, s.query ?? {}, s.window); if (t.rows) send({ sub: n, rv: t.rv, at: t.at, total: t.total, counts: t.counts, set: Object.fromEntries(t.rows.slice(0, 3).map((r) => [r.id, r])), order: t.rows.map((r) => r.id) }); else send({ sub: n, ...t }); } }, 3000);
  socket.on('close', () => clearInterval(timer));
  socket.on('error', () => clearInterval(timer));
});
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/ (made-up data)`));
