// The course's experiments L2 to L7 in the portal, from signing in to the result. Configurations and jobs are the course's own files.
import { readFileSync } from 'node:fs';
import { readMap } from './look.mjs';
import { address, api, ask, audited, axe, check, detail, eventually, password, person, play, root, say, seen, signIn, submit, writeEditor } from './page.mjs';

const LAB = `${root}/tests/data/lab6/`;
const text = (name) => readFileSync(LAB + name, 'utf8');
const people = {};
let admin;
let features = [];
const state = async (page, id) => (await detail(page, id)).row?.state;
const until = (page, id, wanted, ms = 30_000) => eventually(async () => wanted.includes(await state(page, id)), ms);
const tasks = async (page, id) => (await api(page, 'GET', `/tasks/${encodeURIComponent(id)}`)).body.rows;
const main = (page) => page.locator('main').innerText();

/** Submits a file as people do: Submit Job, Import, Submit. Returns once the page of the job is open, or what the page says of a refusal. */
async function byImport(page, file) {
  await page.goto(`${address}/submit`);
  await page.locator('.editor .cm-content').waitFor();
  await page.locator('input[type=file]').setInputFiles(LAB + file);
  await eventually(() => page.evaluate((name) => document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText.includes(name), `name: ${file.replace('.yaml', '')}`));
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  return eventually(async () => (/\/jobs\//.test(page.url()) ? 'taken' : (await page.getByRole('alert').isVisible()) ? await page.getByRole('alert').innerText() : null));
}
/** Decision of the card before a file is submitted. */
async function decisionOf(page, file) {
  await page.goto(`${address}/submit`);
  await page.locator('.editor .cm-content').waitFor();
  await page.locator('input[type=file]').setInputFiles(LAB + file);
  // The text is read between two looks: what is read while the page asks anew is about the text before.
  return eventually(async () => {
    const card = page.getByRole('status', { name: 'Decision' });
    const settled = async () => (await editorHas(page, file)) && !(await card.getAttribute('class')).includes('asking');
    if (!(await settled())) return null;
    const said = await card.innerText();
    return (await settled()) ? said : null;
  });
}
/** The same of a text that is written. */
async function decisionOfText(page, yaml, name) {
  await page.goto(`${address}/submit`);
  await writeEditor(page, yaml);
  const card = page.getByRole('status', { name: 'Decision' });
  const settled = async () => (await editorHas(page, name)) && !(await card.getAttribute('class')).includes('asking');
  return eventually(async () => { if (!(await settled())) return null; const said = await card.innerText(); return (await settled()) && !/Nothing to|Write/.test(said) ? said : null; });
}
const editorHas = (page, file) => page.evaluate((name) => document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText.includes(name), `name: ${file.replace('.yaml', '')}`);
/** The dialog that is open, in the eyes of axe. */
async function noFindings(what) {
  const found = await axe(admin);
  check(`55 axe finds nothing serious in the dialog for ${what}`, found.length === 0, found.join(' | '));
}
/** Administration > Scheduler, with the present file in the editor. */
async function openScheduler() {
  await admin.goto(`${address}/admin/scheduler`);
  await admin.getByText('as it is now').waitFor();
}
/** Applies a configuration on Administration > Scheduler. */
async function configure(file) {
  await openScheduler();
  await writeEditor(admin, text(file));
  await admin.getByRole('button', { name: 'Apply' }).click();
  const dialog = admin.getByRole('dialog');
  await eventually(async () => (await admin.getByText('as it is now').isVisible()) || (await dialog.isVisible()));
  if (await dialog.isVisible()) {
    await noFindings('gangs that lose a guarantee');
    await dialog.getByLabel('Cluster').fill((await api(admin, 'GET', '/session')).body.cluster);
    await dialog.getByRole('button', { name: 'Apply' }).click();
  }
  return eventually(() => admin.getByText('as it is now').isVisible());
}
/** Everything ends before the next experiment. */
async function clear(...ids) {
  for (const id of ids) await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [id] });
  for (const id of ids) await until(admin, id, ['STOPPED', 'SUCCEEDED', 'FAILED']);
  await eventually(async () => (await api(admin, 'GET', '/counts')).body.value.gpus.used === 0, 20_000);
}
const freshNames = (file, name) => text(file).replace(/^name: .*$/m, `name: ${name}`);

const parts = {
  async deploy() {
    admin = await person();
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
    features = (await api(admin, 'GET', '/session')).body.features;
    check("14 with the lab's layout admin signs in with admin-password", true);
    check('14 a banner says that the password is known to everybody', !!(await eventually(() => admin.getByText(/well-known password/i).first().isVisible())), () => 'no banner');
    await admin.getByRole('link', { name: 'User Management' }).click();
    for (const name of ['alice', 'bob', 'carol', 'dan']) {
      await admin.getByRole('button', { name: 'Add User' }).click();
      await admin.getByLabel('User Name').fill(name);
      await admin.getByLabel('Password').fill(`${name}-password`);
      await admin.getByRole('button', { name: 'Save' }).click();
      await admin.getByRole('cell', { name, exact: true }).waitFor();
      people[name] = await person();
      await signIn(people[name], name, `${name}-password`);
      await people[name].getByRole('heading', { name: 'Home' }).waitFor();
    }
    check('15 alice, bob, carol and dan are added and sign in', true);
  },

  async configuration_a() {
    await openScheduler();
    await writeEditor(admin, 'physicalCluster:\n  skuTypes:\n    GPU-C: {gpu: many}\n');
    await admin.getByRole('button', { name: 'Check', exact: true }).click();
    const line = await eventually(() => admin.getByRole('alert').innerText());
    check('51 a wrong file names its line', /Line 3/.test(line ?? ''), line);
    check('51 and marks it', !!(await eventually(() => admin.evaluate(() => !!document.querySelector('.editor').shadowRoot.querySelector('.cm-lint-marker-error')))));
    await writeEditor(admin, text('hived-config-a.yaml'));
    await admin.getByRole('button', { name: 'Check', exact: true }).click();
    const facts = await eventually(async () => { const said = await main(admin); return said.includes('virtual cluster "vc1" is added') ? said : null; });
    check('51 the preview says what configuration A changes', !!facts, await main(admin));
    check('51 configuration A is applied', !!(await configure('hived-config-a.yaml')), await main(admin));
    const vcs = await eventually(async () => { const t = (await api(admin, 'GET', '/tenants')).body.value; return t.length === 2 ? t : null; });
    check('48 the virtual clusters are the tenants: one GPU each', !!vcs && vcs.every((v) => v.kind === 'vc' && v.guarantee.gpus === 1 && v.used.gpus === 0), JSON.stringify(vcs));
  },

  async grant() {
    const alice = people.alice;
    const refused = await byImport(alice, 'job-config-0.yaml');
    check('17 alice may not use vc1 and reads why', /vc1/.test(refused ?? '') && /ForbiddenUserError|not allow/.test(refused ?? ''), refused);
    for (const name of ['alice', 'bob', 'carol', 'dan']) {
      await admin.goto(`${address}/admin/users`);
      await admin.getByRole('button', { name: `Edit ${name}`, exact: true }).click();
      await admin.getByRole('dialog').getByLabel('vc1').check();
      await admin.getByRole('button', { name: 'Save' }).click();
      await eventually(async () => (await api(admin, 'GET', '/pai/users')).body.find((u) => u.username === name).virtualCluster.includes('vc1'));
    }
    const before = alice.url();
    await alice.getByRole('button', { name: 'Submit', exact: true }).click();
    check('17 after the grant it works without signing in again', !!(await eventually(() => alice.url() !== before && /alice~job-config-0/.test(decodeURIComponent(alice.url())))), alice.url());
  },

  /** L2: four people want the one GPU of vc1; default stays idle. */
  async safety() {
    for (const name of ['bob', 'carol', 'dan']) check(`20 ${name} submits by import`, (await byImport(people[name], 'job-config-0.yaml')) === 'taken');
    const ids = ['alice', 'bob', 'carol', 'dan'].map((n) => `${n}~job-config-0`);
    await until(admin, ids[0], ['RUNNING']);
    const shown = await eventually(async () => {
      await admin.goto(`${address}/jobs?vc=vc1`);
      const rows = await admin.locator('tbody tr[data-id]').allInnerTexts();
      return rows.filter((r) => /Running/.test(r)).length === 1 && rows.filter((r) => /Waiting/.test(r)).length === 3 ? rows : null;
    });
    check('20 one runs, three wait', !!shown, await main(admin));
    const waits = [];
    for (const id of ids.slice(1)) waits.push((await detail(admin, id)).wait);
    check('20 places 1, 2, 3 in the order of submission', waits.map((w) => w?.place).join() === '1,2,3', JSON.stringify(waits));
    check('20 the reason names vc1', waits.every((w) => /vc1/.test(w?.text ?? '')), JSON.stringify(waits));
    await people.dan.goto(`${address}/jobs/dan~job-config-0`);
    check('20 the page of the last says so', !!(await eventually(async () => /vc1/.test(await main(people.dan)) && /Place 3 of 3|2 ahead/.test(await main(people.dan)))), await main(people.dan));
    check('20 the first is on hostname-dan', (await tasks(admin, ids[0]))[0].node === 'hostname-dan');
    await admin.goto(`${address}/topology?view=table`);
    const rows = await eventually(async () => { const r = await admin.locator('tbody tr').allInnerTexts(); return r.length ? r : null; });
    const carol = rows?.find((r) => r.includes('hostname-carol')) ?? '';
    check('20 carol is idle on the map', carol !== '' && !carol.includes('job-config-0'), rows?.join(' | '));
    for (const id of ids) await until(admin, id, ['SUCCEEDED'], 60_000);
    const ended = await Promise.all(ids.map((id) => detail(admin, id)));
    check('20 all four succeed without a retry, one after the other', ended.every((d, i) => d.row.state === 'SUCCEEDED' && d.row.retries.platform === 0 && (i === 0 || d.row.started >= ended[i - 1].row.ended - 1000)), JSON.stringify(ended.map((d) => d.row)));
  },

  /** L3: prod takes the place of test. */
  async priority() {
    const alice = people.alice;
    const [one, two] = ['alice~job-config-1', 'alice~job-config-2'];
    await byImport(alice, 'job-config-1.yaml');
    await until(alice, one, ['RUNNING']);
    if (features.includes('decide')) {
      const said = await decisionOf(alice, 'job-config-2.yaml');
      check('21 the card names job-config-1 as victim before submission', /evict/.test(said ?? '') && /job-config-1/.test(said ?? ''), said);
    } else say('SKIPPED 21 the decision before submission: this server does not decide beforehand');
    await byImport(alice, 'job-config-2.yaml');
    await until(alice, two, ['RUNNING']);
    const low = await eventually(async () => { const d = await detail(alice, one); return d.row.retries.platform === 1 && d.row.state === 'WAITING' ? d : null; });
    check('21 the test job waits again, tried once more by the platform', !!low, JSON.stringify((await detail(alice, one)).row));
    await alice.goto(`${address}/jobs/${one}`);
    check('21 its page shows it waiting', !!(await eventually(async () => /Waiting/.test(await main(alice)))), await main(alice));
    await until(alice, two, ['SUCCEEDED'], 40_000);
    await until(alice, one, ['SUCCEEDED'], 60_000);
    await alice.goto(`${address}/jobs/${one}/timeline`);
    await alice.getByRole('button', { name: 'As list' }).click();
    const list = await eventually(async () => { const said = await main(alice); return /ended/.test(said) ? said : null; });
    const story = (list ?? '').slice((list ?? '').indexOf('Detail')); // what stands above it has some of the words, too
    const order = ['running', 'evicted', 'requeued', 'resumed', 'ended'].map((w) => story.indexOf(w));
    check('21 the timeline: running, evicted, requeued, resumed, ended', order.every((at, i) => at >= 0 && (i === 0 || at > order[i - 1])), list);
    check('21 it names who evicted it', /job-config-2/.test(list ?? ''), list);
    check('21 and the code -101', /-101/.test(list ?? ''), list);
    const d = await detail(alice, one);
    check('21 retries 1, and it succeeded', d.row.retries.platform === 1 && d.row.state === 'SUCCEEDED', JSON.stringify(d.row));
    await alice.goto(`${address}/timeline?jobs=${one},${two}`);
    await svgEqualsRest(alice, [one, two]);
  },

  /** L4: an opportunistic job borrows carol, and its owner takes it back. */
  async opportunism() {
    const alice = people.alice;
    const [three, four, test] = ['alice~job-config-3', 'alice~job-config-4', 'alice~x-default-test'];
    await byImport(alice, 'job-config-3.yaml');
    await until(alice, three, ['RUNNING']);
    await byImport(alice, 'job-config-4.yaml');
    await until(alice, four, ['RUNNING']);
    check('22 job 4 runs on carol, outside of its virtual cluster', (await tasks(alice, four))[0].node === 'hostname-carol');
    const map = readMap((await api(alice, 'GET', '/topology')).body.value);
    check('22 the map knows it as opportunistic', map.jobs.find((j) => j.id === four)?.oppo === true, JSON.stringify(map.jobs));
    await alice.goto(`${address}/topology`);
    check('22 the legend counts one opportunistic GPU', !!(await eventually(async () => /1\s*of them opportunistic/.test(await main(alice)))), await main(alice));
    check('22 the tree says opportunistic', !!(await eventually(async () => /opportunistic/.test(await alice.locator('.cell-tree').innerText()))), async () => alice.locator('.cell-tree').innerText());
    await alice.goto(`${address}/`);
    // The column of what is used, by its head.
    const usedOf = (name) => alice.evaluate((name) => { const table = [...document.querySelectorAll('table')].find((x) => [...x.querySelectorAll('th')].some((h) => h.textContent.trim() === 'Used')); const at = [...(table?.querySelectorAll('thead th') ?? [])].findIndex((h) => h.textContent.trim() === 'Used'); return [...(table?.querySelectorAll('tbody tr') ?? [])].find((r) => r.cells[0].textContent.trim() === name)?.cells[at]?.textContent.trim() ?? null; }, name);
    const row = await eventually(async () => (await usedOf('default')) === '0' && (await usedOf('vc1')) === '1');
    const vcs = (await api(alice, 'GET', '/tenants')).body.value;
    const by = Object.fromEntries(vcs.map((v) => [v.name, v]));
    check('22 Home shows default with nothing used, and vc1 with its one GPU', by.default?.used.gpus === 0 && !!row, async () => `${await usedOf('default')}, ${await usedOf('vc1')}: ${await main(alice)}`);
    check('48 opportunistic use is counted apart and never as used', by.vc1?.used.gpus === 1 && by.vc1?.oppo.gpus === 1 && by.default?.lent.gpus === 1, JSON.stringify(by));
    const rest = (await api(admin, 'GET', '/pai/virtual-clusters')).body;
    check('48 the numbers are those of REST', Object.entries(rest).every(([n, v]) => v.resourcesUsed.gpu === by[n].used.gpus && v.resourcesGuaranteed.gpu === by[n].guarantee.gpus && v.resourcesTotal.gpu === by[n].total.gpus && v.resourcesUsed.cpu * 1000 === by[n].used.cpuMilli && v.resourcesUsed.memory * 2 ** 20 === by[n].used.memoryBytes), JSON.stringify([rest, by]));
    const cells = (await api(alice, 'GET', '/cells')).body;
    const command = JSON.parse(await ask('@muster hived tree -o json'));
    check('46 /cells says what muster hived tree says', JSON.stringify(cells) === JSON.stringify(command), `${JSON.stringify(cells).slice(0, 300)} and ${JSON.stringify(command).slice(0, 300)}`);
    await alice.goto(`${address}/topology?tree=both`);
    const tree = await eventually(async () => { const said = await alice.locator('.cell-tree').innerText(); return /vc1/.test(said) && /hostname-dan/.test(said) ? said : null; });
    check('46 the tree shows the bound pair of vc1 and dan', !!tree, tree);
    await byImport(alice, 'x-default-test.yaml');
    await until(alice, test, ['RUNNING']);
    check('22 the owner takes carol back', (await tasks(alice, test))[0].node === 'hostname-carol');
    check('22 job 4 waits, tried again by the platform', !!(await eventually(async () => (await detail(alice, four)).row.retries.platform === 1)), JSON.stringify((await detail(alice, four)).row));
    await until(alice, four, ['RUNNING', 'SUCCEEDED'], 60_000);
    check('22 job 4 resumes', ['RUNNING', 'SUCCEEDED'].includes(await state(alice, four)));
    for (const id of [three, four, test]) await until(alice, id, ['SUCCEEDED'], 60_000);
    check('22 all succeed', (await Promise.all([three, four, test].map((id) => state(alice, id)))).every((s) => s === 'SUCCEEDED'));
  },

  /** Configuration B with a job running: the preview says what happens to it, pods go on, and A comes back. */
  async configuration_b() {
    const alice = people.alice;
    await submit(alice, freshNames('job-config-3.yaml', 'rides-along'));
    await until(alice, 'alice~rides-along', ['RUNNING']);
    const pod = (await tasks(alice, 'alice~rides-along'))[0].pod;
    await openScheduler();
    await writeEditor(admin, text('hived-config-b.yaml'));
    await admin.getByRole('button', { name: 'Check', exact: true }).click();
    const preview = await eventually(async () => { const said = await main(admin); return /rides-along/.test(said) ? said : null; });
    const told = await ask(`@muster hived check ${LAB}hived-config-b.yaml`);
    check('51 the preview lists the gang and what becomes of it', !!preview && /opportunistic|cells that are gone/.test(preview), preview);
    const effect = /rides-along\S* \(\S*\): (.+?) \d+ of \d+ gangs unchanged/.exec(told)?.[1] ?? '?';
    const row = await admin.locator('tr', { hasText: 'rides-along' }).getAttribute('title');
    check('51 as muster hived check does', row === effect && /keeps running as opportunistic/.test(effect), `${effect} and ${row}`);
    check('51 B is applied', !!(await configure('hived-config-b.yaml')), await main(admin));
    check('51 the pod runs on', (await tasks(alice, 'alice~rides-along'))[0]?.pod === pod && (await state(alice, 'alice~rides-along')) === 'RUNNING');
    await clear('alice~rides-along');
    // Somebody else is faster.
    await openScheduler();
    await writeEditor(admin, `${text('hived-config-b.yaml')}# mine\n`);
    const now = (await api(admin, 'GET', '/hived')).body;
    await api(admin, 'PUT', '/hived', { text: `${text('hived-config-b.yaml')}# theirs\n`, resourceVersion: now.resourceVersion });
    await admin.getByRole('button', { name: 'Apply' }).click();
    const diff = await eventually(() => admin.getByRole('dialog').innerText());
    await noFindings('two who change the cells at once');
    check('51 a change by somebody else meanwhile is shown', /# theirs/.test(diff ?? '') && /# mine/.test(diff ?? ''), diff);
    await openScheduler();
    await admin.getByRole('button', { name: 'Versions' }).click();
    const versions = await admin.locator('.item').allInnerTexts();
    check('51 former versions are kept', versions.length >= 3, versions.join(' | '));
    await admin.locator('.item').nth(2).click();
    check('51 one of them is A', !!(await eventually(() => admin.evaluate(() => document.querySelector('.editor').shadowRoot.querySelector('.cm-content').innerText.includes('vc1')))));
    await admin.getByRole('button', { name: 'Apply' }).click();
    check('51 revert brings A back', !!(await eventually(async () => (await api(admin, 'GET', '/tenants')).body.value.some((v) => v.name === 'vc1'))));
    check('L5 B again, for the gangs', !!(await configure('hived-config-b.yaml')));
    await eventually(async () => (await api(admin, 'GET', '/tenants')).body.value.length === 1);
  },

  /** L6: all or none. */
  async gang() {
    const alice = people.alice;
    const [five, six] = ['alice~job-config-5', 'alice~job-config-6'];
    await byImport(alice, 'job-config-5.yaml');
    await until(alice, five, ['RUNNING']);
    await byImport(alice, 'job-config-6.yaml');
    const both = await eventually(async () => { const t = await tasks(alice, six); return t.length === 2 && t.every((x) => x.state === 'WAITING' && !x.node) ? t : null; });
    check('23 both tasks of the gang wait', !!both, JSON.stringify(await tasks(alice, six)));
    check('23 its page says that it starts whole or not at all', (await detail(alice, six)).gang === true);
    const counts = (await api(alice, 'GET', '/counts')).body.value;
    check('23 one GPU is idle meanwhile', counts.gpus.free === 1, JSON.stringify(counts.gpus));
    await until(alice, six, ['RUNNING', 'SUCCEEDED'], 60_000);
    const began = await eventually(async () => { const t = await tasks(alice, six); return t.every((x) => x.started) ? t : null; });
    check('23 both start within 15 s of each other, on two nodes', !!began && Math.abs(began[0].started - began[1].started) <= 15_000 && new Set(began.map((x) => x.node)).size === 2, JSON.stringify(began));
    await until(alice, six, ['SUCCEEDED'], 60_000);
    check('23 the gang succeeds', (await state(alice, six)) === 'SUCCEEDED');
  },

  /** L7: increments. */
  async increments() {
    const alice = people.alice;
    await submit(alice, freshNames('job-config-5.yaml', 'holds-one'));
    await until(alice, 'alice~holds-one', ['RUNNING']);
    await byImport(alice, 'x-7-both.yaml');
    const lanes = await eventually(async () => { const t = await tasks(alice, 'alice~x-7-both'); const s = t.map((x) => x.state).sort().join(); return s === 'RUNNING,WAITING' ? t : null; }, 20_000);
    check('23 one task runs, one waits', !!lanes, JSON.stringify(await tasks(alice, 'alice~x-7-both')));
    check('23 its page says that tasks start one by one', (await detail(alice, 'alice~x-7-both')).gang === false);
    await alice.goto(`${address}/jobs/alice~x-7-both/timeline`);
    const drawn = await eventually(() => alice.evaluate(() => { const r = document.querySelectorAll('svg.tl rect.lane.seg-running').length; const q = document.querySelectorAll('svg.tl rect.lane.seg-queued').length; return r >= 1 && q >= 1 ? { r, q } : null; }));
    check('23 its timeline has one lane that runs and one that waits', !!drawn, JSON.stringify(drawn));
    await until(alice, 'alice~x-7-both', ['SUCCEEDED'], 60_000);
    check('23 both tasks succeed', (await tasks(alice, 'alice~x-7-both')).every((x) => x.state === 'SUCCEEDED'));
    await until(alice, 'alice~holds-one', ['SUCCEEDED'], 60_000);
  },

  async decisions() {
    const alice = people.alice;
    const refused = await byImport(alice, 'x-6-four.yaml');
    check('24 a gang of four is refused with REST\'s own words', /Job requests 4 SKUs, exceeds maximum 2 SKUs in VC default\./.test(refused ?? ''), refused);
    if (!features.includes('decide')) { say('SKIPPED 24 decisions before submission: this server does not decide beforehand'); return; }
    for (const [file, said] of [['x-6-four.yaml', /Refused[^]*Job requests 4 SKUs, exceeds maximum 2 SKUs in VC default\./], ['x-7-wide.yaml', /Can never run/], ['x-6-four.yaml, opportunistic', /Can never run/], ['x-7-four.yaml', /Would start now[^]*2 of 4/]]) {
      const card = file.endsWith('.yaml') ? await decisionOf(alice, file) : await decisionOfText(alice, text('x-6-four.yaml').replace(/jobPriorityClass: \w+/, 'jobPriorityClass: oppo').replace(/^name: .*$/m, 'name: x-6-four-oppo'), 'x-6-four-oppo');
      check(`24 the card for ${file}`, said.test(card ?? ''), card);
    }
  },

  async tokens() {
    const alice = people.alice;
    await alice.goto(`${address}/profile`);
    await alice.getByLabel('What it is for').fill('a script');
    await alice.getByRole('button', { name: 'Create application token' }).click();
    const token = await alice.locator('[data-token]').innerText();
    await alice.reload();
    await alice.getByText('a script').waitFor();
    check('18 the token is shown once', (await alice.locator('[data-token]').count()) === 0 && token.length > 20);
    const rest = async (path, authorization) => (await fetch(`${address}/rest-server/api/v2${path}`, { headers: { Authorization: authorization } })).status;
    const basic = `Basic ${Buffer.from(`alice:${token}`).toString('base64')}`;
    check('18 it works as Bearer on job routes', (await rest('/jobs', `Bearer ${token}`)) === 200);
    check('18 and as Basic', [200, 401].includes(await rest('/jobs', basic)) && (await rest('/jobs', basic)) === 200, await rest('/jobs', basic));
    check('18 elsewhere it is 403', (await rest('/users/alice', `Bearer ${token}`)) === 403, await rest('/users/alice', `Bearer ${token}`));
    await alice.getByRole('button', { name: 'Revoke a script' }).click();
    check('18 after revoking it is 401', !!(await eventually(async () => (await rest('/jobs', `Bearer ${token}`)) === 401)));
    check('18 as Basic, too', (await rest('/jobs', basic)) === 401, await rest('/jobs', basic));
  },

  /** Links of OpenPAI's own pages lead to pages that show the same. */
  async old_links() {
    const alice = people.alice;
    const shows = async (what, link, seen) => { await alice.goto(address + link); check(`26 ${what}`, !!(await eventually(seen)), async () => `${alice.url()} ${await main(alice)}`); };
    const rows = () => alice.locator('tbody tr[data-id]').evaluateAll((all) => all.map((r) => r.dataset.id));
    const [one] = [(await api(alice, 'GET', '/jobs?state=SUCCEEDED&kind=openpai&user=alice&limit=1')).body.rows[0]];
    const [user, name] = one.id.split('~');
    await shows('a job', `/job-detail.html?username=${user}&jobName=${name}`, async () => (await alice.locator('h1').innerText()).includes(name) && /Succeeded/.test(await main(alice)));
    await shows('its events', `/job-event.html?userName=${user}&jobName=${name}`, async () => alice.url().endsWith(`/jobs/${one.id}/events`) && (await alice.locator('h1').innerText()).includes(name));
    const task = (await tasks(alice, one.id))[0];
    await shows('one of its tasks', `/task-attempt.html?userName=${user}&jobName=${name}&taskRoleName=${task.role}&taskIndex=${task.index}`, async () => { const ids = await alice.locator('section.card tbody td.name').allInnerTexts(); return ids.length === 1 && ids[0].trim() === task.id; });
    await shows('a clone', `/submit.html?op=resubmit&type=job&user=${user}&jobName=${name}`, async () => new RegExp(`name: ${name}\\S+`).test(await alice.evaluate(() => document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-content')?.innerText)));
    const wanted = async (query) => (await api(alice, 'GET', `/jobs?limit=100&${query}`)).body.rows.map((r) => r.id);
    for (const [link, query] of [['status=Succeeded', 'state=SUCCEEDED'], ['status=Succeeded,Failed&user=alice', 'state=SUCCEEDED,FAILED&user=alice'], ['keyword=config', 'q=config'], ['vcName=vc1', 'vc=vc1'], ['jobPriority=oppo', 'prio=oppo'], ['vcName=default&status=Succeeded&user=alice&keyword=config', 'vc=default&state=SUCCEEDED&user=alice&q=config']]) {
      const ids = await wanted(query);
      await shows(`the list with ${link}: ${ids.length} jobs`, `/job-list.html?${link}`, async () => ids.length > 0 && JSON.stringify(await rows()) === JSON.stringify(ids));
    }
  },

  async audit() {
    const rows = (await api(admin, 'GET', '/audit?limit=500')).body.rows;
    const has = (what) => rows.some(what);
    check('54 the audit knows who applied the configuration', has((r) => r.user === 'admin' && r.object === 'hived' && r.verb === 'PUT' && r.code < 300 && r.from), JSON.stringify(rows.slice(0, 3)));
    check('54 and who submitted and was refused', has((r) => r.user === 'alice' && r.code === 403), JSON.stringify(rows.filter((r) => r.user === 'alice').slice(0, 5)));
    check('54 no password is in it', !JSON.stringify(rows).includes('-password"'));
    await audited(admin);
    check('4 nothing broke the policy, nothing went elsewhere', seen.policy.length === 0 && seen.foreign.length === 0, [...seen.policy, ...seen.foreign].join(' '));
  },
};

/** The bars of the exported picture are the times of REST. */
async function svgEqualsRest(page, ids) {
  await eventually(() => page.evaluate((n) => document.querySelectorAll('svg.gantt .bar').length >= n, ids.length));
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'SVG' }).click()]);
  const svg = readFileSync(await file.path(), 'utf8');
  for (const id of ids) {
    const rest = (await api(page, 'GET', `/pai/jobs/${encodeURIComponent(id)}`)).body;
    const { submissionTime, appLaunchedTime, appCompletedTime } = rest.jobStatus;
    const bars = (kind) => [...svg.matchAll(/<g [^>]*data-job="([^"]*)" data-from="(\d*)" data-to="(\d*)" data-kind="(\w*)"/g)].filter((m) => m[1] === id && m[4] === kind).map((m) => [Number(m[2]), Number(m[3])]);
    const former = (await api(page, 'GET', `/pai/jobs/${encodeURIComponent(id)}/job-attempts`)).body.toSorted((a, b) => a.attemptIndex - b.attemptIndex);
    // An attempt that was followed at once is over when the next one begins: REST does not say more of it.
    const wanted = [...former.slice(0, -1).map((a, i) => [a.appLaunchedTime, a.attemptCompletedTime ?? former[i + 1].attemptStartedTime]), [appLaunchedTime, appCompletedTime]];
    check(`25 the bars of ${id} in the SVG, ${wanted.length}, have the times of REST, to the millisecond`, wanted.length === rest.jobStatus.retries + 1 && JSON.stringify(bars('running')) === JSON.stringify(wanted), `${JSON.stringify(bars('running'))} and ${JSON.stringify(wanted)}`);
    check(`25 and that of its wait, from its submission on`, bars('queued')[0]?.[0] === submissionTime, `${JSON.stringify(bars('queued'))} and ${submissionTime}`);
  }
  const look = await page.evaluate((svg) => new DOMParser().parseFromString(svg, 'image/svg+xml').querySelector('parsererror')?.textContent ?? '', svg);
  check('25 the SVG stands alone', look === '' && !/href="http/.test(svg), look);
}

await play(parts, ['deploy', 'configuration_a', 'grant']);
