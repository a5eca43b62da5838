// Checks in Chromium of why a job waits: a hollow cluster of four nodes with four GPUs. why.py starts it.
import { address, api, ask, check, detail, eventually, password, person, play, signIn } from './page.mjs';

let admin;
const kubectl = (...words) => ask(`@kubectl ${JSON.stringify(words)}`);
const create = (...objects) => ask(`@create ${JSON.stringify(objects)}`);
const main = () => admin.locator('main').innerText();
/** A pod that is only said to run for an hour, unless it says otherwise. */
const pod = (name, gpus, { seconds = 3600, node = '', prio = '', queue = '', leaves = 0 } = {}) => ({
  apiVersion: 'v1', kind: 'Pod',
  metadata: { name, namespace: 'default', annotations: { 'muster.dev/hollow-duration': `${seconds}s`, 'muster.dev/expected-duration': `${seconds}s`, ...(queue ? { 'scheduling.volcano.sh/queue-name': queue } : {}), ...(leaves ? { 'muster.dev/hollow-stop-duration': `${leaves}s` } : {}) } },
  spec: { restartPolicy: 'Never', ...(leaves ? { terminationGracePeriodSeconds: leaves } : {}), ...(prio ? { priorityClassName: prio } : {}), ...(node ? { nodeSelector: { 'kubernetes.io/hostname': node } } : {}), containers: [{ name: 'main', image: 'busybox', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }] },
});
/** All or none of so many tasks. */
const gang = (name, tasks, gpus, seconds) => {
  const one = pod('x', gpus, { seconds });
  one.spec.containers[0].name = 'pytorch';
  const role = { replicas: 1, restartPolicy: 'Never', template: { metadata: { annotations: one.metadata.annotations }, spec: one.spec } };
  return { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', metadata: { name, namespace: 'default' }, spec: { pytorchReplicaSpecs: { Master: role, Worker: { ...role, replicas: tasks - 1 } } } };
};
const running = (count) => eventually(async () => (await api(admin, 'GET', '/jobs?state=RUNNING')).body.total === count, 20_000);
const clear = async () => { await kubectl('delete', 'pods,pytorchjobs', '--all', '--wait=false', '--grace-period=0', '--force'); await eventually(async () => (await api(admin, 'GET', '/jobs?limit=1')).body.total === 0, 60_000); await ask('@idle'); };
/** The wait of a job once it is told for this reason, with its page open. */
async function waits(id, reason) {
  const wait = await eventually(async () => { const w = (await detail(admin, id)).wait; return w?.reason === reason ? w : null; }, 20_000);
  check(`33 ${reason} is why ${id} waits`, !!wait, async () => JSON.stringify((await detail(admin, id)).wait));
  await admin.goto(`${address}/jobs/${id}`);
  await eventually(() => admin.getByRole('heading', { name: 'Why it waits' }).isVisible());
  return wait;
}
/** What the command says, once it says it. */
const explained = async (name, pattern) => (await eventually(async () => { const said = await ask(`@explain ${name}`); return pattern.test(said) ? said : null; }, 15_000)) ?? `(without ${pattern}) ${await ask(`@explain ${name}`)}`;
/** The row of the table of what is needed, free and short. */
const shortage = () => eventually(async () => { const list = await admin.locator('section.says table.tight tbody tr').first().locator('td').allInnerTexts(); return list.length ? list.map((x) => x.trim()) : null; });

const parts = {
  async sign_in() {
    admin = await person({ viewport: { width: 1440, height: 2200 } });
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
  },

  /** Too few GPUs on any node, and a node that is taken out. */
  async short() {
    await kubectl('cordon', 'node-3');
    await create(...[0, 1, 2].map((i) => pod(`holds-${i}`, i === 2 ? 2 : 3, { node: `node-${i}` })));
    await running(3);
    await create(pod('wants-three', 3));
    const wait = await waits('default/pod/wants-three', 'NoNodeFits');
    const said = await explained('wants-three', /most free|Insufficient/);
    const numbers = /wants (\d+), most free on one node (\d+)/.exec(wait?.text ?? '') ?? [];
    const row = await shortage();
    check('33 short of GPUs: needed, free and short', row?.join() === 'GPUs,3,2,1' && numbers.slice(1).join() === '3,2', `${row} and ${wait?.text}`);
    check('33 short of GPUs: the numbers of explain', /3 Insufficient nvidia\.com\/gpu|3 .*GPUs/.test(said) && /unschedulable|cordoned/.test(said), said);
    const wanted = { Insufficient: 'node-0,node-1,node-2', unschedulable: 'node-3' };
    for (const [word, nodes] of Object.entries(wanted)) {
      const cause = wait?.byCause.find((c) => c.cause.includes(word));
      await admin.getByRole('button', { name: cause?.cause }).click();
      const dialog = admin.getByRole('dialog');
      const names = await eventually(async () => { const list = await dialog.locator('td.mono').allInnerTexts(); return list.length ? list.sort().join() : null; });
      check(`33 "${cause?.cause}" opens exactly ${nodes}`, names === nodes, names);
      await dialog.getByRole('button', { name: 'Close' }).click();
    }
    await kubectl('uncordon', 'node-3');
    await clear();
  },

  /** A queue that has reached what it may have. */
  async limit() {
    await create({ apiVersion: 'scheduling.volcano.sh/v1beta1', kind: 'Queue', metadata: { name: 'small' }, spec: { weight: 1, capability: { 'nvidia.com/gpu': 3 } } });
    await create(pod('in-queue', 2, { queue: 'small' }));
    await running(1);
    await create(pod('over-limit', 2, { queue: 'small' }));
    await waits('default/pod/over-limit', 'TenantOverLimit');
    const said = await explained('over-limit', /limit/);
    check('33 the limit of a queue: needed, left, short and the limit', (await shortage())?.join() === 'GPUs limit 3,2,1,1', `${await shortage()}`);
    check('33 the limit of a queue: the numbers of explain', /small/.test(said) && /\b2\b/.test(said) && /\b3\b/.test(said), said);
    await clear();
    await kubectl('delete', 'queue', 'small');
  },

  /** Room that is free, and promised to somebody else. */
  async reservation() {
    await create(pod('half', 2, { node: 'node-0', seconds: 600 }), pod('whole-1', 4, { node: 'node-1', seconds: 600 }), ...[2, 3].map((i) => pod(`long-${i}`, 4, { node: `node-${i}`, seconds: 7200 })));
    await running(4);
    await create(gang('large', 2, 4, 600));
    await waits('default/pytorchjob/large', 'NoNodeFits');
    await create(pod('slips', 2, { seconds: 3600 }));
    const wait = await waits('default/pod/slips', 'HeldForReservation');
    const page = await eventually(async () => { const seen = await main(); return /held for large/.test(seen) ? seen : null; }) ?? await main();
    check('33 a reservation: the page says for whom the room is held', /Room is free but held for large/.test(page), page);
    const promised = Date.parse(/expected to start at (\S+Z)/.exec((await detail(admin, 'default/pytorchjob/large')).wait.text)?.[1] ?? '');
    check('33 a reservation: until when, as the engine promised the holder', Math.abs((wait?.until ?? 0) - promised) <= 3000, `${promised} and ${JSON.stringify(wait)}`);
    const holder = admin.locator('section.says').getByRole('link', { name: 'large', exact: true }).first();
    check('33 a reservation: its holder is one click away', (await holder.getAttribute('href')) === '/jobs/default/pytorchjob/large', page);
    const said = await explained('slips', /delay|held/);
    const until = new Date(wait?.until ?? 0).toISOString().slice(0, 19);
    check('33 a reservation: holder and time of explain', /large/.test(said) && (said.includes(until) || said.includes(until.slice(11, 16))), `${said} and ${until}`);
    await clear();
  },

  /** Room that is being made. */
  async victims() {
    await create({ apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'urgent' }, value: 1000 });
    await create(...[0, 1, 2, 3].map((i) => pod(`leaves-${i}`, 4, { node: `node-${i}`, leaves: 25 })));
    await running(4);
    await create(pod('urgent', 4, { prio: 'urgent' }));
    const wait = await waits('default/pod/urgent', 'WaitingForVictims');
    const victim = /\("([^"]+)"/.exec(wait?.text ?? '')?.[1] ?? '?';
    const leaving = (await api(admin, 'GET', '/jobs?state=STOPPING')).body.rows.map((r) => r.id);
    check('33 victims: one is leaving, and it is the one that is counted and named', /waiting for 1 evicted pod /.test(wait?.text ?? '') && leaving.length === 1 && victim.endsWith(leaving[0].split('/').at(-1)) && wait.subject.endsWith(leaving[0].split('/').at(-1)), `${leaving} and ${wait?.text}`);
    const page = await main();
    check('33 victims: the page says that room is being made', /Room is being made/.test(page) && page.includes(victim.split('/').at(-1)), page);
    const said = await explained('urgent', /evict|leave/);
    check('33 victims: explain names the same one', said.includes(victim.split('/').at(-1)), `${said} and ${victim}`);
    check('33 victims: it starts once they have left', !!(await eventually(async () => (await detail(admin, 'default/pod/urgent')).row.state === 'RUNNING', 60_000)));
    await clear();
  },

  /** More than any node has. */
  async never() {
    await create(pod('too-wide', 9));
    await waits('default/pod/too-wide', 'NeverFits');
    const said = await explained('too-wide', /never/);
    const page = await main();
    check('33 what never fits: wanted, and what the largest node has', /Can never run here: a task wants 9 GPUs, the largest node has 4/.test(page), page);
    check('33 what never fits: the numbers of explain', /\b9\b/.test(said) && /\b4\b/.test(said), said);
    await clear();
  },
};
await play(parts, ['sign_in']);
