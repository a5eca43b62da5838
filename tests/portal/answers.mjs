// Checks of forecasts in Chromium: a hollow cluster of four nodes with four GPUs. answers.py starts it.
import { address, api, ask, axe, check, detail, eventually, password, person, play, root, seen, signIn, tabOf } from './page.mjs';

let admin;
const kubectl = (...words) => ask(`@kubectl ${JSON.stringify(words)}`);
const create = (...objects) => ask(`@create ${JSON.stringify(objects)}`);
const main = (page) => page.locator('main').innerText();
/** A pod that is only said to run, for so many seconds; `told`: its owner says so, or says something else. */
const pod = (name, gpus, seconds, { told = true, says = seconds, node = '', prio = '' } = {}) => ({
  apiVersion: 'v1', kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { user: 'alice' }, annotations: { 'muster.dev/hollow-duration': `${seconds}s`, ...(told ? { 'muster.dev/expected-duration': `${says}s` } : {}) } },
  spec: { restartPolicy: 'Never', ...(prio ? { priorityClassName: prio } : {}), ...(node ? { nodeSelector: { 'kubernetes.io/hostname': node } } : {}), containers: [{ name: 'main', image: 'busybox', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }] },
});
/** All or none of so many tasks. */
const gang = (name, tasks, gpus, seconds) => {
  const one = pod('x', gpus, seconds);
  one.spec.containers[0].name = 'pytorch';
  const role = { replicas: 1, restartPolicy: 'Never', template: { metadata: { annotations: one.metadata.annotations }, spec: one.spec } };
  return { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', metadata: { name, namespace: 'default' }, spec: { pytorchReplicaSpecs: { Master: role, Worker: { ...role, replicas: tasks - 1 } } } };
};
const clear = async () => { await kubectl('delete', 'pods,jobs,pytorchjobs', '--all', '--wait=false', '--grace-period=0'); await eventually(async () => (await api(admin, 'GET', '/jobs?limit=1')).body.total === 0, 30_000); await ask('@idle'); };
const fill = async (seconds = 3600, told = true) => { await create(...[0, 1, 2, 3].map((i) => pod(`holds-${i}`, 4, seconds, { told, node: `node-${i}` }))); await eventually(async () => (await api(admin, 'GET', '/jobs?state=RUNNING')).body.total === 4, 20_000); };

const parts = {
  async sign_in() {
    admin = await person({ viewport: { width: 1440, height: 2200 } });
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
    const features = (await api(admin, 'GET', '/session')).body.features;
    check('this server foretells, tries and simulates', ['forecast', 'whatif', 'sims', 'decide'].every((f) => features.includes(f)), features.join());
  },

  /** Each cause of a wait opens the nodes that it means, and no other. */
  async causes() {
    await kubectl('cordon', 'node-3');
    await create(...[0, 1].map((i) => pod(`full-${i}`, 4, 3600, { node: `node-${i}` })), pod('half-2', 2, 3600, { node: 'node-2' }));
    await eventually(async () => (await api(admin, 'GET', '/jobs?state=RUNNING')).body.total === 3, 20_000);
    await create(pod('why', 4, 600));
    const wait = await eventually(async () => { const d = await detail(admin, 'default/pod/why'); return d.wait?.byCause.length >= 2 ? d.wait : null; });
    const wanted = { Insufficient: ['node-0', 'node-1', 'node-2'], unschedulable: ['node-3'] };
    await admin.goto(`${address}/jobs/default/pod/why`);
    for (const [word, nodes] of Object.entries(wanted)) {
      const cause = wait?.byCause.find((c) => c.cause.includes(word));
      await admin.getByRole('button', { name: cause?.cause }).click();
      const dialog = admin.getByRole('dialog');
      const names = await eventually(async () => { const list = await dialog.locator('td.mono').allInnerTexts(); return list.length ? list : null; });
      check(`33 "${cause?.cause}" opens exactly its ${nodes.length} nodes`, cause?.nodes === nodes.length && names?.sort().join() === nodes.join(), `${names} of ${cause?.nodes}`);
      await dialog.getByRole('button', { name: 'Close' }).click();
    }
    const said = await eventually(async () => JSON.parse(await ask('@kubectl ["get","--raw","/apis/answers.muster.dev/v1/namespaces/default/jobs/pod.why/when"]')));
    check('33 the sentence is that of the scheduler', wait.text.length > 0 && !!said?.refusal.text.startsWith(wait.text.split(';')[0]), `${wait.text} | ${said?.refusal.text}`);
    await kubectl('uncordon', 'node-3');
    await clear();
  },

  /** What the page of a job shows of a limit, and of a request that no node can meet, are the scheduler's own numbers. */
  async numbers() {
    const inQueue = (name, gpus) => { const one = pod(name, gpus, 3600); one.metadata.annotations['scheduling.volcano.sh/queue-name'] = 'small'; return one; };
    await create({ apiVersion: 'scheduling.volcano.sh/v1beta1', kind: 'Queue', metadata: { name: 'small' }, spec: { weight: 1, capability: { 'nvidia.com/gpu': 3 } } });
    await create(inQueue('in-queue', 2));
    await eventually(async () => (await api(admin, 'GET', '/jobs?state=RUNNING')).body.total === 1, 20_000);
    await create(inQueue('over-limit', 2), pod('too-wide', 9, 60));
    const told = (name) => eventually(async () => JSON.parse(await kubectl('get', '--raw', `/apis/answers.muster.dev/v1/namespaces/default/jobs/pod.${name}/when`)).refusal?.text);
    const limit = /wants (\d+), (\d+) left of (\d+)/.exec((await told('over-limit')) ?? '') ?? [];
    await admin.goto(`${address}/jobs/default/pod/over-limit`);
    const row = await eventually(async () => { const list = await admin.locator('section.says table.tight tbody tr').first().locator('td').allInnerTexts(); return list.length ? list : null; });
    check('33 the limit of a queue: wanted, left and the limit are the scheduler\'s numbers', limit.length === 4 && row?.[0] === `GPUs limit ${limit[3]}` && row[1] === limit[1] && row[2] === limit[2] && Number(row[3]) === limit[1] - limit[2], `${row} and ${limit}: ${await main(admin)}`);
    const never = (await told('too-wide')) ?? '';
    await admin.goto(`${address}/jobs/default/pod/too-wide`);
    const page = await eventually(async () => { const said = await main(admin); return /The 4 nodes/.test(said) ? said : null; }) ?? await main(admin);
    check('33 what never fits: the sentence is the scheduler\'s, and all nodes stand in the way', never.length > 0 && page.includes(never.split(';')[0].replaceAll('nvidia.com/gpu', 'GPUs').split(':')[0]), `${never} and ${page}`);
    const causes = await admin.locator('.causes li').allInnerTexts();
    check('33 its causes count the nodes of the cluster', causes.reduce((n, c) => n + Number(/\d+/.exec(c)?.[0] ?? 0), 0) === 4, causes.join(' | '));
    await kubectl('delete', 'pods', '--all', '--grace-period=0');
    await kubectl('delete', 'queue', 'small');
    await clear();
  },

  /** Nothing has run here that one could learn from. */
  async unknown() {
    await fill(3600, false);
    await create(pod('unknown', 4, 60, { told: false }));
    await admin.goto(`${address}/jobs/default/pod/unknown`);
    check('34 without durations the page says that there is no estimate', !!(await eventually(async () => /No estimate: durations unknown/.test(await main(admin)))), await main(admin));
    const row = await eventually(async () => { const r = (await api(admin, 'GET', '/jobs?q=unknown')).body.rows[0]; return r?.wait?.place ? r : null; });
    check('34 and its row invents nothing', row?.wait.basis === 'none' && row.wait.start === null && row.wait.startLow === null && row.wait.startHigh === null, JSON.stringify(row?.wait));
    await admin.goto(`${address}/jobs?q=unknown`);
    check('34 the list says so, too', !!(await eventually(() => admin.getByText('no estimate').isVisible())));
    await clear();
  },

  /** Fifty jobs of known duration: what their rows said, held against when they started. */
  async starts() {
    await fill(40); // long enough for fifty more to be made meanwhile, also on a busy machine
    const lasts = [6, 7, 8, 9, 10, 11, 12];
    await create(...Array.from({ length: 50 }, (_, i) => pod(`known-${String(i).padStart(2, '0')}`, [1, 2, 2, 4][i % 4], lasts[i % 7])));
    await admin.goto(`${address}/jobs?q=known-&state=WAITING&sort=name`);
    const rows = await eventually(async () => { const list = (await api(admin, 'GET', '/jobs?q=known-&state=WAITING&limit=100')).body.rows; return list.length === 50 && list.every((r) => r.wait?.start) ? list : null; });
    check('34 each of fifty rows has an expected start, known', !!rows && rows.every((r) => r.wait.basis === 'known'), async () => JSON.stringify((await api(admin, 'GET', '/jobs?q=known-&state=WAITING&limit=100')).body.rows.filter((r) => !r.wait?.start).slice(0, 3)));
    const ordered = (await api(admin, 'GET', '/jobs?sort=start&limit=100')).body.rows;
    const begins = ordered.map((r) => r.started ?? r.wait?.start ?? Infinity);
    check(`28 sorted by start: ${ordered.filter((r) => r.started).length} that run, then fifty by when they are expected to`, ordered.length === 54 && ordered.slice(0, 4).every((r) => r.started) && ordered.slice(4).every((r) => r.wait?.start) && begins.slice(4).every((at, i, all) => i === 0 || all[i - 1] <= at), JSON.stringify(ordered.map((r) => [r.name, r.started, r.wait?.start])));
    const shown = await eventually(() => admin.evaluate(() => { const strips = [...document.querySelectorAll('tbody tr[data-id] .strip')]; return strips.length >= 40 ? strips.map((s) => s.parentElement.title + s.parentElement.innerText) : null; }));
    check('34 the list shows them with their range', !!shown && shown.every((s) => /8 in 10: \S+ – \S+/.test(s) && /~\d\d:\d\d/.test(s)), shown?.[0]);
    const last = rows?.toSorted((a, b) => a.wait.start - b.wait.start).at(-1);
    await admin.goto(`${address}/jobs/${last?.id}`);
    check('34 the page of one has its time, range and basis', !!(await eventually(async () => /about \d\d:\d\d[^]*8 in 10 between[^]*From the run times that were declared/.test(await main(admin)))), await main(admin));
    check('34 and names whom it waits for', !!(await eventually(async () => /Waits for the end of/.test(await main(admin)))), await main(admin));
    await admin.goto(`${address}/queues/default`);
    check('34 so does the page of the queue, with places', !!(await eventually(() => admin.evaluate(() => document.querySelectorAll('.strip').length >= 20 && [...document.querySelectorAll('tbody tr')].some((r) => r.cells[0].innerText === '1')))), await main(admin));
    await admin.goto(`${address}/jobs?q=known-`);
    const ended = await eventually(async () => { const list = (await api(admin, 'GET', '/jobs?q=known-&limit=100')).body.rows; return list.length === 50 && list.every((r) => r.started) ? list : null; }, 150_000);
    const began = new Map((ended ?? []).map((r) => [r.id, r.started]));
    // The screen says minutes, and a start is told in whole seconds.
    const minute = (at) => Math.floor(at / 60_000);
    const inRange = (rows ?? []).filter((r) => minute(began.get(r.id)) >= minute(r.wait.startLow) && minute(began.get(r.id)) <= minute(r.wait.startHigh)).length;
    check(`34 ${inRange} of 50 started within the range that was shown (40)`, inRange >= 40, JSON.stringify((rows ?? []).map((r) => [r.name, began.get(r.id) - r.wait.start]).slice(0, 12)));
    const near = (rows ?? []).filter((r) => Math.abs(began.get(r.id) - r.wait.start) <= 20_000).length;
    check(`34 ${near} of 50 started within 20 s of the time that was said (40)`, near >= 40, JSON.stringify((rows ?? []).map((r) => Math.round((began.get(r.id) - r.wait.start) / 1000))));
    await clear();
  },

  /** A gang that waits for two nodes has a place in the future, and the place moves. */
  async reservation() {
    // Two say that they end soon and do not; two end in a quarter of an hour.
    await create(...[0, 1].map((i) => pod(`overruns-${i}`, 4, 3600, { says: 25, node: `node-${i}` })), ...[2, 3].map((i) => pod(`long-${i}`, 4, 900, { node: `node-${i}` })));
    await eventually(async () => (await api(admin, 'GET', '/jobs?state=RUNNING')).body.total === 4, 20_000);
    await create(gang('whole', 2, 4, 600));
    await admin.goto(`${address}/timeline?span=6`);
    const bars = () => admin.evaluate(() => [...document.querySelectorAll('svg.gantt .bar[data-kind=reserved]')].map((b) => ({ job: b.dataset.job, from: Number(b.dataset.from), to: Number(b.dataset.to), text: b.getAttribute('aria-label'), lane: b.parentElement.querySelector('.label').textContent })));
    const first = await eventually(async () => { const all = await bars(); return all.length === 2 && all.every((b) => b.to > b.from) ? all : null; }, 20_000) ?? await bars();
    const now = Date.now();
    check('50 the Gantt shows a reservation in the future with its holder', first.length === 2 && first.every((b) => b.job === 'default/pytorchjob/whole' && b.from > now - 2000 && b.from < now + 60_000 && b.to - b.from === 600_000 && /whole/.test(b.text)) && first.map((b) => b.lane).sort().join() === 'node-0,node-1', `${now} ${JSON.stringify(first)}`);
    const drawn = await admin.evaluate(() => { const r = document.querySelector('.bar[data-kind=reserved] rect'); const line = document.querySelector('line.now'); return { x: Number(r.getAttribute('x')), now: Number(line.getAttribute('x1')), fill: getComputedStyle(r).fill }; });
    check('50 hatched, right of now', drawn.x >= drawn.now && /url\(/.test(drawn.fill), JSON.stringify(drawn));
    // The time passes and nobody leaves: when the engine decides next, it promises a later time.
    await eventually(() => Date.now() > first[0].from + 1000, 40_000);
    await create(pod('passes-by', 0, 600));
    const moved = await eventually(async () => { const all = await bars(); return all.length === 2 && all.every((b) => b.from > first[0].from + 5000) ? all : null; }, 20_000);
    const said = (await detail(admin, 'default/pytorchjob/whole')).wait?.text ?? '';
    const promised = Date.parse(/expected to start at (\S+Z)/.exec(said)?.[1] ?? '');
    check('50 it moves when the engine moves it, to where the engine says', !!moved && Math.abs(moved[0].from - promised) <= 3000, `${JSON.stringify(await bars())} and ${said}`);
    await admin.goto(`${address}/timeline?by=job&span=6`);
    const foretold = await eventually(() => admin.evaluate(() => { const b = [...document.querySelectorAll('.bar[data-kind=forecast]')].find((x) => x.dataset.job.endsWith('/whole')); return b ? Number(b.dataset.from) : null; }));
    check('50 rows of jobs show when it is expected to start', (foretold ?? 0) > now, `${foretold} and ${now}`);
    await clear();
  },

  /** Drains and questions: whom they hit, and that nothing is touched. */
  async whatif() {
    await fill(1800);
    const asked = JSON.stringify(pod('asked', 4, 600));
    const quick = (await api(admin, 'POST', '/check', asked)).body.decision;
    check('43 a check says at once that it waits and why, and no time that it did not work out', quick?.verdict === 'waits' && !!quick.wait.reason && quick.wait.start === null && quick.alternatives.length === 0, JSON.stringify(quick));
    const whole = (await api(admin, 'POST', '/check?whole=true', asked)).body.decision;
    check('43 asked for all of it, also when it would start', whole?.verdict === 'waits' && whole.wait.basis === 'known' && whole.wait.start > Date.now() + 600_000, JSON.stringify(whole));
    await create(pod('next', 4, 600));
    await eventually(async () => (await api(admin, 'GET', '/jobs?q=next')).body.rows[0]?.wait);
    await admin.goto(`${address}/nodes/node-2`);
    await admin.getByRole('button', { name: 'Drain' }).click();
    const dialog = admin.getByRole('dialog');
    const preview = await eventually(async () => { const said = await dialog.innerText(); return /evicted and come back/.test(said) ? said : null; }, 15_000);
    check('52 the preview of a drain names whom it hits, and what comes of it', !!preview && /holds-2/.test(preview) && !/holds-1 /.test(preview) && /1 evicted/.test(preview), preview ?? await dialog.innerText());
    check('55 axe finds nothing serious in the preview', (await axe(admin)).length === 0, (await axe(admin)).join(' | '));
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    check('52 keeping it leaves the node as it is', /"unschedulable"/.test(await kubectl('get', 'node', 'node-2', '-o', 'json')) === false);
    await admin.goto(`${address}/whatif`);
    await admin.getByRole('heading', { name: 'What-if' }).waitFor();
    // What was foretold for the pages before is written down.
    await eventually(async () => JSON.parse(await kubectl('get', 'jobrecords', '-A', '-o', 'json')).items.some((r) => /"next"|pod\/next/.test(JSON.stringify(r)) && /"said":\[\{/.test(JSON.stringify(r))));
    const before = await ask('@all');
    await admin.getByLabel('Number').fill('1');
    await admin.getByLabel('GPUs per node').fill('4');
    await admin.getByRole('button', { name: 'Add change' }).click();
    const result = () => admin.evaluate(() => { const c = document.querySelector('[data-rv]'); return c ? { rv: c.dataset.rv, text: c.querySelector('.say').innerText, jobs: [...document.querySelectorAll('.whatif-starts tbody tr')].map((r) => r.innerText) } : null; });
    const first = await eventually(result, 15_000);
    check('52 one more node: the job that waits starts earlier', /1 jobs? starts? earlier/.test(first?.text ?? '') && first.jobs.some((j) => /next/.test(j) && /earlier/.test(j)), JSON.stringify(first ?? await main(admin)));
    check('52 the question is in the address', /addNodes/.test(decodeURIComponent(admin.url())), admin.url());
    const other = await tabOf(admin);
    await other.goto(admin.url());
    const again = await eventually(() => other.evaluate(() => { const c = document.querySelector('[data-rv]'); return c ? { rv: c.dataset.rv, text: c.querySelector('.say').innerText } : null; }), 15_000);
    check('52 its link gives the same answer on an unchanged cluster', !!again && again.rv === first?.rv && again.text === first?.text, `${JSON.stringify(again)} and ${JSON.stringify(first)}`);
    await other.context().close();
    await admin.goto(`${address}/whatif?s=${encodeURIComponent(JSON.stringify([{ drain: { nodes: ['node-1'] } }]))}`);
    const drained = await eventually(async () => { const r = await result(); return r && /evicted/.test(r.text) ? main(admin) : null; }, 15_000);
    check('52 a drain as what-if names whom it evicts', /holds-1/.test(drained ?? ''), drained);
    const after = await ask('@all');
    check('52 objects, events and revision are untouched', before === after, `${before} and ${after}`);
    await admin.goto(`${address}/whatif?s=${encodeURIComponent(JSON.stringify([{ drain: { nodes: ['no-such-node'] } }]))}`);
    check('52 a node that is not there is refused in words', !!(await eventually(async () => /no-such-node/.test(await admin.getByRole('alert').innerText()))));
    await admin.goto(`${address}/whatif?s=%7Bbroken`);
    check('52 a broken link is an empty list', !!(await eventually(async () => /No change yet/.test(await main(admin)))));
    await clear();
  },

  /** The example of `muster sim`, by the button and by files. */
  async simulation() {
    const wanted = JSON.parse(await ask('@sim'));
    const shows = async (how) => {
      const got = await eventually(() => admin.evaluate(() => { const out = {}; for (const c of document.querySelectorAll('.sim-compare td[data-policy]')) (out[c.dataset.policy] ??= {})[c.closest('tr').dataset.figure] = Number(c.dataset.value); return Object.keys(out).length ? out : null; }), 20_000);
      const wrong = wanted.flatMap((p) => Object.entries(got?.[p.policy] ?? { missing: 1 }).filter(([k, v]) => p[k] !== v).map(([k, v]) => `${p.policy}.${k}: ${v}, not ${p[k]}`));
      const figures = Object.values(got ?? {}).reduce((n, p) => n + Object.keys(p).length, 0);
      check(`53 ${how}: ${figures} figures of ${wanted.length} policies are those of muster sim --json`, wrong.length === 0 && figures >= 10 * wanted.length, `${wrong.slice(0, 5).join('; ')} ${await main(admin)}`);
    };
    await admin.goto(`${address}/sim`);
    await admin.getByRole('button', { name: 'Run the example' }).click();
    await shows('the example');
    const [file] = await Promise.all([admin.waitForEvent('download'), admin.getByRole('link', { name: 'JSON' }).click()]);
    const text = await (await import('node:fs/promises')).readFile(await file.path(), 'utf8');
    check('53 the file is what the command writes', JSON.stringify(JSON.parse(text)) === JSON.stringify(wanted), text.slice(0, 300));
    await admin.goto(`${address}/sim`);
    await admin.getByRole('button', { name: 'New simulation' }).click();
    await admin.locator('input[name=trace]').setInputFiles(`${root}/examples/sim/jobs.csv`);
    for (const box of await admin.getByRole('dialog').locator('input[name=policy]').all()) await box.setChecked(false);
    await admin.getByLabel('and those of a file (YAML)').setInputFiles(`${root}/examples/sim/policies.yaml`);
    await admin.getByRole('button', { name: 'Simulate', exact: true }).click();
    await shows('files of one\'s own');
    await admin.goto(`${address}/sim`);
    check('53 both are in the list', !!(await eventually(async () => (await admin.locator('tbody tr').count()) === 2 && !/failed|running/.test(await main(admin)))), await main(admin));
    const refused = await api(admin, 'POST', '/sims', { trace: 'a', nodes: '4x8', policies: ['/etc/passwd'] });
    check('53 a path is no policy', refused.status === 400 && /policies/.test(refused.body.message), JSON.stringify(refused));
    const broken = await api(admin, 'POST', '/sims', { name: 'broken', trace: 'no,such,columns\n1,2,3\n', nodes: '4x8' });
    await admin.goto(`${address}/sim/${broken.body.id}`);
    check('53 what is wrong with a trace is said', !!(await eventually(async () => /It failed[^]*column/.test(await main(admin)))), await main(admin));
    check('4 no errors on the console, nothing against the policy', seen.policy.length === 0 && seen.errors.filter((e) => !/Failed to load resource.*40[0-9]/.test(e)).length === 0, [...seen.policy, ...seen.errors].join(' | '));
  },
};
await play(parts, ['sign_in']);
