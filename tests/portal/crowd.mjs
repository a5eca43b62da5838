// Checks of the portal in Chromium with many jobs, nodes and changes. crowd.py starts the cluster.
import { address, api, ask, axe, check, eventually, password, person, play, settled, signIn, submit, tabOf, tasksOf, within } from './page.mjs';

let admin;
const kubectl = (...words) => ask(`@kubectl ${JSON.stringify(words)}`);
const main = (page) => page.locator('main').innerText();
const sleeper = (name) => JSON.stringify({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'default' }, spec: { backoffLimit: 0, template: { metadata: { annotations: { 'muster.dev/hollow-duration': '3600s' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] } } } });

const parts = {
  async sign_in() {
    admin = await person();
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
    await ask('@idle');
  },

  /** All that match, and one more meanwhile. */
  async stops() {
    await ask('@jobs 0 1234 stop-me');
    await admin.goto(`${address}/jobs?q=stop-me`);
    await eventually(async () => /^1,234/.test(await admin.locator('.head .sub').innerText()), 60_000);
    await ask('@idle');
    await admin.locator('tbody input[type=checkbox]').first().check();
    await admin.getByRole('button', { name: 'Select all 1,234 that match' }).click();
    await admin.getByRole('toolbar').getByRole('button', { name: 'Stop', exact: true }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('heading', { name: 'Stop 1,234 jobs?' }).waitFor();
    const said = await dialog.innerText();
    check('29 the dialog counts by user and state', /alice[^]*\d+ (waiting|running)/.test(said) && /bob[^]*\d+ (waiting|running)/.test(said), said);
    const found = await axe(admin);
    check('55 axe finds nothing serious in the dialog for all that match', found.length === 0, found.join(' | '));
    check('29 keeping them is what Enter would do', (await admin.evaluate(() => document.activeElement?.textContent)) === 'Keep them');
    await ask('@jobs 1234 1235 stop-me');
    await eventually(async () => (await api(admin, 'GET', '/jobs?q=stop-me&limit=1')).body.total === 1235);
    await dialog.getByRole('button', { name: 'Stop 1,234 jobs' }).click();
    check('29 one more meanwhile: nothing is done, and the new number is shown', !!(await eventually(async () => /1,235 jobs match/.test(await dialog.innerText()))), await dialog.innerText());
    check('29 nothing was stopped', (await api(admin, 'GET', '/jobs?q=stop-me&limit=1')).body.total === 1235);
    await dialog.getByRole('button', { name: 'Keep them' }).click();
    await admin.getByRole('toolbar').getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.getByRole('button', { name: 'Stop 1,235 jobs' }).click();
    check('29 all end', !!(await eventually(async () => (await api(admin, 'GET', '/jobs?q=stop-me&limit=1')).body.total === 0, 120_000)), async () => JSON.stringify((await api(admin, 'GET', '/jobs?q=stop-me&limit=1')).body.counts));
    check('54 each of them is in the audit', (await api(admin, 'GET', '/audit?q=stop-me&user=admin&limit=1')).body.total >= 1235, async () => JSON.stringify((await api(admin, 'GET', '/audit?q=stop-me&limit=1')).body));
  },

  /** Two hundred changes a second under the pointer. */
  async jobs() {
    await admin.goto(`${address}/jobs`);
    await admin.locator('tbody tr[data-id]').nth(6).waitFor();
    const row = admin.locator('tbody tr[data-id]').nth(6);
    const id = await row.getAttribute('data-id');
    await row.hover();
    const at = async () => (await admin.locator(`tr[data-id="${id}"]`).boundingBox())?.y;
    const before = await at();
    await ask('@churn 200');
    let moved = 0;
    for (let i = 0; i < 40; i++) { await admin.waitForTimeout(100); if ((await at()) !== before) moved++; }
    check('30 the row under the pointer does not move', moved === 0, `${moved} of 40 looks`);
    const news = admin.locator('.news');
    const first = Number((await news.innerText()).replace(/\D/g, ''));
    check('30 "n changes" counts', first > 0, await news.innerText());
    await admin.mouse.move(5, 5);
    await admin.keyboard.press('.');
    check('30 . pauses', !!(await eventually(() => admin.getByText(/^Paused/).first().isVisible())));
    const ids = () => admin.evaluate(() => [...document.querySelectorAll('tbody tr[data-id]')].map((r) => r.dataset.id).join());
    const frozen = await ids();
    await admin.waitForTimeout(1500);
    const still = await ids();
    check('30 and nothing changes while it is paused', frozen.length > 0 && frozen === still, `${frozen} and ${still}`);
    const made = await ask('@quiet');
    await admin.keyboard.press('.');
    await ask('@idle');
    const truth = async () => (await api(admin, 'GET', '/jobs?limit=20')).body.rows.map((r) => r.id).join();
    const shown = async () => (await admin.evaluate(() => [...document.querySelectorAll('tbody tr[data-id]')].slice(0, 20).map((r) => r.dataset.id).join()));
    check(`30 resumed, the list is what the server has (after ${made} changes)`, !!(await eventually(async () => (await truth()).startsWith(await shown()) || (await shown()).startsWith(await truth()))), async () => `${await shown()} and ${await truth()}`);
  },

  /** What live pages cost. Of the page its processor time is judged, not the time that passed: other suites run beside this one. */
  async budgets() {
    const jobs = await ask('@fill');
    const page = await tabOf(admin);
    const cdp = await page.context().newCDPSession(page);
    let bytes = 0;
    await cdp.send('Network.enable');
    cdp.on('Network.webSocketFrameReceived', (e) => { bytes += e.response.payloadData.length; });
    await cdp.send('Performance.enable');
    await page.goto(`${address}/jobs`);
    await page.locator('tbody tr[data-id]').nth(6).waitFor();
    await ask('@churn 200');
    await eventually(() => bytes > 50_000); // well under way
    const look = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
    await cdp.send('HeapProfiler.collectGarbage');
    const [before, from] = [await look(), bytes];
    const tasks = await tasksOf(page, () => page.waitForTimeout(20_000));
    const after = await look();
    const span = after.Timestamp - before.Timestamp;
    await cdp.send('HeapProfiler.collectGarbage');
    const heap = (await look()).JSHeapUsedSize / 1e6;
    const made = await ask('@quiet');
    const busy = (100 * tasks.reduce((sum, ms) => sum + ms, 0)) / 1000 / span;
    check(`58 a live list of ${jobs} jobs at 200 changes/s keeps the page ${busy.toFixed(1)} % busy (10)`, tasks.length > 20 && busy <= 10, `${tasks.length} tasks, ${made} changes`);
    check(`58 its longest task takes ${Math.max(...tasks).toFixed(1)} ms (50)`, Math.max(...tasks) <= 50);
    check(`58 it is told ${((bytes - from) / span / 1000).toFixed(1)} kB/s (20)`, bytes > from && (bytes - from) / span / 1000 <= 20);
    check(`58 its heap has ${heap.toFixed(1)} MB (60)`, heap > 0 && heap <= 60);
    const grown = heap - before.JSHeapUsedSize / 1e6;
    check(`58 and is steady: ${grown.toFixed(1)} MB more than 20 s before (3)`, grown <= 3, `${heap} MB`);
    check('58 and at most 80 rows', (await page.evaluate(() => document.querySelectorAll('tbody tr').length)) <= 80);
    await page.context().close();
    const cost = JSON.parse(await ask('@portals 200 15'));
    check(`58 two hundred open portals take ${cost['with changes'].toFixed(1)} % of a core (25)`, cost['with changes'] <= 25, JSON.stringify(cost));
    check(`58 and ${cost.MiB.toFixed(2)} MiB each (1)`, cost.MiB <= 1, JSON.stringify(cost));
    check(`58 each is told ${cost['kB/s'].toFixed(1)} kB/s (20)`, cost['kB/s'] > 0 && cost['kB/s'] <= 20, JSON.stringify(cost));
  },

  async rights() {
    await kubectl('create', 'namespace', 'lab');
    await kubectl('create', 'serviceaccount', 'looker', '-n', 'lab');
    await kubectl('create', 'clusterrolebinding', 'looker', '--clusterrole=view', '--serviceaccount=lab:looker');
    await submit(admin, sleeper('not-yours-0'));
    const looker = await person();
    await looker.goto(`${address}/login`);
    await looker.getByText('Sign in with token').click();
    await looker.getByLabel('Token').fill(await ask('@token lab looker'));
    await looker.getByRole('button', { name: 'Sign in', exact: true }).click();
    await looker.getByRole('heading', { name: 'Home' }).waitFor();
    await looker.goto(`${address}/jobs/default/job/not-yours-0`);
    await looker.getByRole('heading', { name: /not-yours-0/ }).waitFor();
    check('12 who may only look sees no Stop', (await looker.getByRole('button', { name: 'Stop job' }).count()) === 0 && (await looker.getByRole('button', { name: 'Suspend' }).count()) === 0, await main(looker));
    await looker.goto(`${address}/nodes`);
    await looker.locator('tbody tr').first().waitFor();
    await looker.goto(`${address}/nodes/r00-n00`);
    await looker.getByRole('heading', { name: /r00-n00/ }).waitFor();
    check('12 nor Cordon', (await looker.getByRole('button', { name: /Cordon|Drain/ }).count()) === 0, await main(looker));
    const act = await api(looker, 'POST', '/jobs:act', { action: 'stop', ids: ['default/job/not-yours-0'] });
    check('12 by hand it is refused', /Forbidden/.test(JSON.stringify(act.body)), JSON.stringify(act.body));
    const direct = await looker.evaluate(async () => (await fetch('/kube/apis/batch/v1/namespaces/default/jobs/not-yours-0', { method: 'DELETE' })).status);
    check('12 and 403 in the API', direct === 403, direct);
    const rows = (await api(admin, 'GET', '/audit?q=not-yours&limit=50')).body.rows;
    check('12 both refusals are in the audit', rows.filter((r) => r.code === 403 && /looker/.test(r.user) && r.from).length >= 2, JSON.stringify(rows));
    await looker.context().close();
  },

  /** A job of two thousand tasks. */
  async many() {
    const value = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'wide', namespace: 'default' }, spec: { parallelism: 2000, completions: 2000, completionMode: 'Indexed', template: { metadata: { annotations: { 'muster.dev/hollow-duration': '3600s' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] } } } };
    await submit(admin, JSON.stringify(value));
    await eventually(async () => (await api(admin, 'GET', '/tasks/default%2Fjob%2Fwide?limit=1')).body.total === 2000, 60_000);
    await ask('@idle');
    await admin.goto(`${address}/jobs`);
    await admin.locator('tbody tr[data-id]').first().waitFor();
    const spans = [];
    for (let i = 0; i < 5; i++) {
      const begun = Date.now();
      await admin.evaluate(() => { history.pushState(null, '', '/jobs/default/job/wide/tasks'); dispatchEvent(new PopStateEvent('popstate')); });
      await admin.locator('section.card tbody tr').nth(3).waitFor();
      spans.push(Date.now() - begun);
      await admin.goto(`${address}/jobs`);
      await admin.locator('tbody tr[data-id]').first().waitFor();
    }
    spans.sort((a, b) => a - b);
    check(`32 its page is there in ${spans[2]} ms (500)`, spans[2] <= within(500), spans.join());
    await admin.goto(`${address}/jobs/default/job/wide/tasks`);
    await admin.locator('section.card tbody tr').nth(3).waitFor();
    check('32 at most 80 rows are in the page', (await admin.locator('section.card tbody tr').count()) <= 80, await admin.locator('section.card tbody tr').count());
    const all = (await api(admin, 'GET', '/tasks/default%2Fjob%2Fwide?limit=500')).body.rows;
    const node = all.find((r) => r.node)?.node;
    const here = (await api(admin, 'GET', `/tasks/default%2Fjob%2Fwide?limit=500&node=${node}`)).body;
    await admin.getByLabel('Node', { exact: true }).fill(node);
    await admin.keyboard.press('Enter');
    check('32 the filter by node', !!(await eventually(async () => Number((await admin.locator('section.card .note').first().innerText()).replace(/\D/g, '')) === here.total)) && here.total > 0 && here.total < 2000, `${await admin.locator('section.card .note').first().innerText()} and ${here.total}`);
    await admin.goto(`${address}/jobs/default/job/wide/tasks?tstate=FAILED`);
    check('32 the filter by state, where none is so', !!(await eventually(async () => /No task/.test(await main(admin)))), await main(admin));
    const running = (await api(admin, 'GET', '/tasks/default%2Fjob%2Fwide?limit=1&state=RUNNING')).body.total;
    await admin.goto(`${address}/jobs/default/job/wide/tasks?tstate=RUNNING&tnode=${node}`);
    const both = (await api(admin, 'GET', `/tasks/default%2Fjob%2Fwide?limit=500&state=RUNNING&node=${node}`)).body;
    check(`32 where ${running} are, with the node: ${both.total}`, running > 0 && both.total > 0 && both.rows.every((r) => r.state === 'RUNNING' && r.node === node) && !!(await eventually(async () => Number((await admin.locator('section.card .note').first().innerText()).replace(/\D/g, '')) === both.total && (await admin.locator('section.card tbody tr:has(td.name)').allInnerTexts()).every((t) => /Running/.test(t) && t.includes(node)))), async () => `${both.total} of ${running}: ${await main(admin)}`);
    const tabs = [];
    for (let i = 0; i < 10; i++) { const tab = await tabOf(admin); await tab.goto(`${address}/jobs/default/job/wide`); tabs.push(tab); }
    for (const tab of tabs) { await tab.getByRole('heading', { name: /wide/ }).waitFor(); await settled(tab); }
    const used = Number(await ask('@cpu'));
    await admin.waitForTimeout(10_000);
    const share = (Number(await ask('@cpu')) - used) / 10;
    check(`32 ten open pages take ${(share * 100).toFixed(1)} % of a core (10)`, share <= 0.1, share);
    for (const tab of tabs) await tab.context().close();
    await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: ['default/job/wide'] });
  },

  /** A node that is cordoned, lost, and back. */
  async nodes() {
    const list = await tabOf(admin);
    await list.goto(`${address}/nodes?q=r00-n01`);
    await list.locator('tbody tr').first().waitFor();
    await admin.goto(`${address}/topology?view=table`);
    const onMap = () => admin.locator('tbody tr', { hasText: 'r00-n01' }).first().innerText();
    await eventually(onMap);
    const follows = async (what, word, other) => {
      const begun = Date.now();
      const says = (text) => text.includes(word) && !(other && text.includes(other));
      const both = await eventually(async () => says(await list.locator('tbody').innerText()) && says(await onMap()), 6000);
      const took = Date.now() - begun;
      check(`47 ${what}: list and map follow within 2 s (${took} ms)`, !!both && took <= within(2000), async () => `${await list.locator('tbody').innerText()}, ${await onMap()}`);
    };
    await kubectl('cordon', 'r00-n01');
    await follows('cordoned', 'cordoned');
    await kubectl('uncordon', 'r00-n01');
    await follows('back', 'ready', 'cordoned');
    await kubectl('patch', 'node', 'r00-n01', '--subresource=status', '-p', '{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}');
    await follows('lost', 'not ready');
    await kubectl('patch', 'node', 'r00-n01', '--subresource=status', '-p', '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}');
    await follows('back again', 'ready', 'not ready');
    await list.context().close();
  },

  async usage() {
    const points = async () => (await api(admin, 'GET', `/usage?from=${Date.now() - 600_000}&to=${Date.now() + 60_000}&step=10000`)).body.at;
    await eventually(async () => (await points()).length >= 2, 40_000);
    const before = (await points()).length;
    const away = Number(await ask('@restart'));
    const after = await eventually(async () => { const p = await points(); return p.length >= before + 2 ? p : null; }, 60_000);
    const holes = (after ?? []).slice(1).map((at, i) => (at - after[i]) / 1000);
    check(`49 use over a restart of ${away} s has no hole larger than that (${Math.max(...holes).toFixed(0)} s between samples of 10 s)`, !!after && Math.max(...holes) <= away + 20.5, holes.join());
    await admin.goto(`${address}/queues`);
    check('49 the chart is drawn', !!(await eventually(() => admin.locator('.uplot canvas').isVisible())), await main(admin));
  },
};
await play(parts, ['sign_in']);
