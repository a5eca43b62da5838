// What people look at closely, in Chromium on real pods. details.py starts the cluster.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { address, api, ask, check, detail, editorText, eventually, password, person, play, seen, settled, signIn, submit, tabOf, tasksOf, within, writeEditor } from './page.mjs';

let admin;
const MARKUP = '<img src=x onerror=globalThis.hurt=1>';
const main = (page = admin) => page.locator('main').innerText();
const kubectl = async (words, input) => Buffer.from(await ask(`@kubectl ${JSON.stringify({ words, input })}`), 'base64').toString();
const create = (object) => kubectl(['create', '-f', '-'], JSON.stringify(object));
/** A job of so many tasks that each run this in a shell. */
const job = (name, command, { tasks = 1, gpus = 0, image = 'python', ...more } = {}) => JSON.stringify({
  apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'default', annotations: more.annotations ?? {} },
  spec: { backoffLimit: 0, parallelism: tasks, completions: tasks, completionMode: 'Indexed', template: { spec: { restartPolicy: 'Never', ...(more.volumes ? { volumes: more.volumes } : {}), containers: [{ name: 'main', image, command: ['sh', '-c', command], env: more.env ?? [], resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }] } } },
});
const state = async (id) => (await detail(admin, id)).row?.state;
const becomes = (id, ...states) => eventually(async () => states.includes(await state(id)), 40_000);
const stop = (...ids) => api(admin, 'POST', '/jobs:act', { action: 'stop', ids });
const lines = (page = admin) => page.locator('.log .line').allInnerTexts();
const openLog = async (id, query = '') => { await admin.goto(`${address}/jobs/${id}/logs${query}`); await admin.locator('.log .line').first().waitFor({ timeout: 20_000 }); };

const parts = {
  async sign_in() {
    admin = await person();
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
  },

  async long_log() {
    const count = 200_000;
    const id = await submit(admin, job('prints', `seq -f 'line %.0f of many' ${count}; sleep 600`));
    await becomes(id, 'RUNNING');
    await openLog(id);
    check('35 all of 200,000 lines are there', !!(await eventually(async () => /200,000 lines/.test(await main()), 60_000)), main);
    const tasks = await tasksOf(admin, () => admin.evaluate(async () => {
      const box = document.querySelector('.log');
      for (let i = 0; i < 120; i++) { box.scrollTop = ((i * 7919) % 120) / 120 * box.scrollHeight; await new Promise(requestAnimationFrame); }
    }));
    check(`35 they scroll without a task above ${Math.max(...tasks).toFixed(1)} ms (50)`, tasks.length > 60 && Math.max(...tasks) <= 50, tasks.length);
    check('35 only those on screen are in the page', (await admin.locator('.log .line').count()) < 120);
    await admin.locator('[data-find]').fill('line 1999');
    // 1999, 19990 to 19999, 199900 to 199999.
    check('35 the search counts what it finds', !!(await eventually(async () => /1 of 111/.test(await admin.locator('.logbar').first().innerText()))), () => admin.locator('.logbar').first().innerText());
    await admin.keyboard.press('Enter');
    check('35 and goes to each', !!(await eventually(async () => /^19,990/.test(await admin.locator('.line.here').innerText()))), () => admin.locator('.line.here').innerText());
    const [file] = await Promise.all([admin.waitForEvent('download'), admin.getByRole('link', { name: 'Download' }).click()]);
    const wanted = Array.from({ length: count }, (_, i) => `line ${i + 1} of many\n`).join('');
    const sum = (text) => createHash('sha256').update(text).digest('hex');
    check('35 the download is the log byte for byte', sum(readFileSync(await file.path())) === sum(wanted));
    await stop(id);
  },

  /** From the moment a line is printed to the frame that shows it. */
  async quick_log() {
    const id = await submit(admin, job('ticks', 'while :; do echo tick $(date +%s%N); sleep 0.2; done'));
    await becomes(id, 'RUNNING');
    await openLog(id);
    const limit = within(500);
    const late = await admin.evaluate(async () => {
      const spans = [];
      let last = '';
      const end = performance.now() + 8000;
      while (performance.now() < end) {
        const at = /tick (\d{13})\d{6}/.exec([...document.querySelectorAll('.log .line')].at(-1)?.textContent ?? '')?.[1];
        if (at && at !== last) { last = at; spans.push(Date.now() - Number(at)); }
        await new Promise(requestAnimationFrame);
      }
      return spans.slice(3).sort((a, b) => a - b);
    });
    check(`35 the log follows: the median of ${late.length} lines is on screen after ${late[late.length >> 1]} ms, nine in ten after ${late[Math.floor(late.length * 0.9)]} ms (500)`, late.length > 15 && late[Math.floor(late.length * 0.9)] <= limit, late.join());
    await stop(id);
  },

  async merged_log() {
    const id = await submit(admin, job('together', 'for i in $(seq 50); do echo at $(date +%s%N) end; sleep 0.02; done; sleep 600', { tasks: 3 }));
    await becomes(id, 'RUNNING');
    await openLog(id);
    const shown = await eventually(async () => { await admin.evaluate(() => { document.querySelector('.log').scrollTop = 0; }); const list = await lines(); return /150 lines/.test(await main()) && list.length > 30 ? list : null; }, 30_000) ?? [];
    await admin.getByRole('button', { name: 'Times' }).click();
    const times = await eventually(async () => { const list = await admin.locator('.log .line .when').allInnerTexts(); return list.length > 30 ? list : null; }) ?? [];
    check('35 lines of all tasks stand in the order of their times', times.length > 30 && times.every((at, i) => /^[\d:.]{12}$/.test(at) && (i === 0 || times[i - 1] <= at)), times.slice(0, 6).join());
    check('35 each with its task', new Set(shown.map((l) => /main-\d|together-\d/.exec(l)?.[0])).size > 1, shown.slice(0, 4).join(' | '));
    await stop(id);
  },

  /** OpenPAI starts a job again that its user's program has failed: the log of the first time is still there. */
  async earlier_attempt() {
    const text = `protocolVersion: 2\nname: tries-twice\ntype: job\njobRetryCount: 1\nprerequisites:\n- {protocolVersion: 2, name: image, type: dockerimage, uri: python}\ntaskRoles:\n  train:\n    instances: 1\n    dockerImage: image\n    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 1}\n    commands: ['echo said at $(date +%s%N)', exit 1]\n`;
    const id = await submit(admin, text);
    await becomes(id, 'FAILED');
    check('35 there were two attempts', (await detail(admin, id)).attempts === 2, async () => JSON.stringify(await detail(admin, id)));
    await openLog(id);
    const said = async () => /said at (\d+)/.exec((await lines()).join(' '))?.[1];
    const second = await eventually(said, 20_000);
    await admin.getByLabel('Attempt').selectOption('Attempt 1');
    const first = await eventually(async () => { const x = await said(); return x && x !== second ? x : null; }, 20_000);
    check('35 the log of an earlier attempt can be read', !!first && BigInt(first) < BigInt(second ?? 0), `${first} and ${second}: ${await main()}`);
    const href = await admin.getByRole('link', { name: 'Download' }).getAttribute('href');
    check('35 and downloaded', (await admin.evaluate(async (href) => (await fetch(href)).text(), href)).includes(first ?? '?'), href);
    await admin.goto(`${address}/jobs/${id}/tasks`);
    await admin.getByLabel('Attempt').selectOption('Attempt 1');
    check('the tasks of an earlier attempt are shown as they ended', !!(await eventually(async () => /train-0[^]*Failed[^]*node-\d[^]*1/.test(await main()))), main);
  },

  async restarted() {
    await create({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'again', namespace: 'default' }, spec: { restartPolicy: 'Always', containers: [{ name: 'main', image: 'python', command: ['sh', '-c', 'echo said at $(date +%s%N); sleep 1; exit 3'] }] } });
    const restarts = async () => (await api(admin, 'GET', '/tasks/default%2Fpod%2Fagain')).body.rows?.[0]?.retries ?? 0;
    await eventually(async () => (await restarts()) >= 1, 60_000);
    await openLog('default/pod/again', '?attempt=previous');
    check('35 so can the log before a restart', !!(await eventually(async () => (await admin.getByLabel('Attempt').inputValue()) === 'previous' && /said at \d+/.test((await lines()).join(' ')))), main);
    await kubectl(['delete', 'pod', 'again', '--grace-period=0', '--force']);
  },

  async shell() {
    const id = await submit(admin, job('sleeps', 'sleep 600'));
    await becomes(id, 'RUNNING');
    const task = (await api(admin, 'GET', `/tasks/${encodeURIComponent(id)}`)).body.rows[0];
    const at = `${address}/terminal?job=${encodeURIComponent(id)}&task=${encodeURIComponent(task.id)}&command=sh`;
    const shell = await tabOf(admin);
    await shell.goto(at);
    const screen = () => shell.locator('.xterm-rows').innerText();
    await eventually(async () => (await screen()).trim() !== '');
    const type = async (text, pattern) => { await shell.keyboard.type(`${text}\n`); return eventually(async () => pattern.exec((await screen()).replaceAll('\u00a0', ' '))); };
    const size = async (word) => (await type(`echo ${word} $(stty size)`, new RegExp(`${word} (\\d+) (\\d+)\\n`)))?.slice(1).map(Number);
    const wide = await size('first');
    await shell.setViewportSize({ width: 700, height: 500 });
    const narrow = await eventually(async () => { const now = await size('then'); return now && now[1] < (wide?.[1] ?? 0) ? now : null; });
    check('36 the size follows the window', !!wide && !!narrow && narrow[0] < wide[0], `${wide} then ${narrow}`);
    check('36 UTF-8 passes', !!(await type('echo "grün 中文" | tr a-z A-Z', /GR.N 中\s*文/)), screen);
    const alive = () => kubectl(['exec', task.pod, '--', 'sh', '-c', 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null; echo; done']);
    await type('echo ready; sleep 98765', /ready/);
    await eventually(async () => /sleep 98765/.test(await alive()));
    await shell.context().close();
    check('36 closing the window ends what ran in it', !!(await eventually(async () => !/sleep 98765/.test(await alive()), 20_000)), alive);
    await kubectl(['create', 'serviceaccount', 'looker']);
    await kubectl(['create', 'clusterrolebinding', 'looker', '--clusterrole=view', '--serviceaccount=default:looker']);
    const looker = await person();
    await looker.goto(`${address}/login`);
    await looker.getByText('Sign in with token').click();
    await looker.getByLabel('Token').fill(await ask('@token default looker'));
    await looker.getByRole('button', { name: 'Sign in', exact: true }).click();
    await looker.getByRole('heading', { name: 'Home' }).waitFor();
    await looker.goto(at);
    check('36 without the right a sentence says so', !!(await eventually(async () => /right|forbidden/i.test(await looker.locator('#note').innerText()))), () => looker.locator('body').innerText());
    await looker.context().close();
    await stop(id);
  },

  async clone() {
    const id = await submit(admin, job('original', 'sleep 600'));
    await admin.goto(`${address}/submit?clone=${encodeURIComponent(id)}`);
    const text = await eventually(async () => { const t = await editorText(admin); return /kind: Job/.test(t ?? '') ? t : null; });
    const name = /name: (original\S+)/.exec(text ?? '')?.[1];
    check('37 a clone has a name that is free', !!name && name !== 'original', text);
    check('37 and the same command', /sleep 600/.test(text ?? ''), text);
    await eventually(async () => /Would|Can never/.test(await admin.getByRole('status', { name: 'Decision' }).innerText()));
    await admin.getByRole('button', { name: 'Submit', exact: true }).click();
    check('37 it can be submitted at once', !!(await eventually(() => admin.url().endsWith(`/jobs/default/job/${name}`))), `${admin.url()} ${await main()}`);
    await stop(id, `default/job/${name}`);
  },

  async endings() {
    for (const [code, command, words] of [[1, 'exit 1', /Exit 1: the program ended with an error[^]*last lines of its log/], [127, 'no-such-program', /Exit 127: the command was not found[^]*Check its name/], [137, "sh -c 'kill -9 $PPID'", /Exit 137: killed[^]*memory/]]) {
      const id = await submit(admin, job(`ends-${code}`, command));
      await becomes(id, 'FAILED');
      await admin.goto(`${address}/jobs/${id}`);
      const box = await eventually(async () => { const said = await admin.locator('.toned-FAILED').first().innerText(); return words.test(said) ? said : null; });
      check(`38 exit code ${code} shows reason and advice`, !!box && box.split('\n').filter((l) => l.trim()).length >= 3, async () => main());
    }
  },

  /** An image that is not there: as the kubelet of a node writes it down. This cluster takes the machine's files instead of images. */
  async image() {
    await create({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'no-image', namespace: 'default' }, spec: { nodeName: 'node-of-others', restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.com/no-such:1' }] } });
    const waiting = { reason: 'ErrImagePull', message: 'failed to pull and unpack image "example.com/no-such:1": not found' };
    await kubectl(['patch', 'pod', 'no-image', '--subresource=status', '-p', JSON.stringify({ status: { phase: 'Pending', containerStatuses: [{ name: 'main', image: 'example.com/no-such:1', imageID: '', ready: false, restartCount: 0, state: { waiting } }] } })]);
    await admin.goto(`${address}/jobs/default/pod/no-image`);
    const said = await eventually(async () => { const text = await main(); return /Why it does not start/.test(text) ? text : null; }) ?? await main();
    check('38 an image that is not found shows reason and advice', /Why it does not start[^]*ErrImagePull[^]*example\.com\/no-such:1[^]*not found[^]*Check the name and the tag of the image/.test(said), said);
    await kubectl(['delete', 'pod', 'no-image', '--grace-period=0', '--force']);
  },

  /** It has a node, and does not come to run there: that is said, and why. */
  async stuck() {
    const id = await submit(admin, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'stuck', namespace: 'default' }, spec: { restartPolicy: 'Never', volumes: [{ name: 'v', configMap: { name: 'never-made' } }], containers: [{ name: 'main', image: 'python', command: ['sleep', '600'], volumeMounts: [{ name: 'v', mountPath: '/v' }] }] } }));
    await admin.goto(`${address}/jobs?q=stuck`);
    check('38 the list says that it starts, and what fails', !!(await eventually(async () => /starting: .*never-made/.test(await admin.locator(`tr[data-id="${id}"]`).innerText()), 20_000)), main);
    await admin.goto(`${address}/jobs/${id}`);
    check('38 its page says why it does not start', !!(await eventually(async () => /Why it does not start[^]*never-made/.test(await main()))), main);
    await kubectl(['create', 'configmap', 'never-made']);
    check('38 and no longer once it runs', !!(await becomes(id, 'RUNNING')) && !!(await eventually(async () => !/never-made/.test(await main()))), main);
    await stop(id);
  },

  async form() {
    await admin.goto(`${address}/submit?template=distributed`);
    const text = await eventually(() => editorText(admin));
    await writeEditor(admin, text.replaceAll('\u200b', '').replace(/instances: \d+/, 'instances: 7'));
    check('39 an edit of the YAML moves the form', !!(await eventually(async () => (await admin.getByLabel('Tasks', { exact: true }).first().inputValue()) === '7')), () => admin.getByLabel('Tasks', { exact: true }).first().inputValue());
  },

  /** Another browser with the link shows the same; so do Back and a saved view. */
  async links() {
    const ids = [];
    for (const n of [1, 2, 3]) ids.push(await submit(admin, job(`linked-${n}`, 'sleep 600')));
    await admin.goto(`${address}/jobs?q=linked`);
    await eventually(async () => (await admin.locator('tbody tr[data-id]').count()) === 3);
    await admin.getByRole('button', { name: 'Name', exact: true }).click();
    await admin.waitForURL(/sort=name/);
    await admin.getByRole('button', { name: 'Columns' }).click();
    await admin.getByRole('checkbox', { name: 'Priority' }).click();
    await admin.waitForURL(/cols?=|hide=|columns=/);
    await admin.keyboard.press('Escape');
    const look = async (page) => ({ rows: await page.locator('tbody tr[data-id]').evaluateAll((all) => all.map((r) => r.dataset.id)), heads: (await page.locator('thead th').allInnerTexts()).join('|') });
    const before = await eventually(async () => { const l = await look(admin); return /Status/.test(l.heads) && !/Priority/.test(l.heads) && l.rows[0] === ids[0] ? l : null; });
    check('27 sort and columns are shown', !!before, async () => JSON.stringify(await look(admin)));
    const url = admin.url();
    const same = async (page) => !!(await eventually(async () => JSON.stringify(await look(page)) === JSON.stringify(before)));
    const other = await person();
    await signIn(other, 'admin', password, url.slice(address.length));
    check('27 a second browser with the link shows the same', await same(other), async () => `${other.url()} ${JSON.stringify(await look(other))}`);
    await other.context().close();
    await admin.getByRole('button', { name: 'Views' }).click();
    await admin.getByLabel('Name of this view').fill('mine');
    await admin.getByRole('button', { name: 'Save view' }).click();
    await admin.getByRole('link', { name: /^Failed/ }).click();
    await admin.waitForURL(/state=FAILED/);
    await admin.goBack();
    check('27 so does going back', (await same(admin)) && admin.url() === url, admin.url());
    await admin.goto(`${address}/jobs`);
    await admin.getByRole('button', { name: 'Views' }).click();
    await admin.getByRole('button', { name: 'mine', exact: true }).click();
    check('27 and a saved view', await same(admin), async () => `${admin.url()} ${JSON.stringify(await look(admin))}`);
    await admin.reload();
    check('27 all of it survives a reload', await same(admin), async () => `${admin.url()} ${JSON.stringify(await look(admin))}`);
    await admin.goto(`${address}/jobs?q=linked`);
    await admin.getByRole('button', { name: /^Group by/ }).click();
    await admin.locator('.float').getByRole('button', { name: 'User', exact: true }).click();
    const groups = async (page) => JSON.stringify(await page.locator('main table tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent.trim()))));
    const grouped = await eventually(async () => { const g = await groups(admin); return /group=user/.test(admin.url()) && /admin/.test(g) && /"3"/.test(g) ? g : null; });
    check('27 jobs are grouped by user', !!grouped, async () => `${admin.url()} ${await groups(admin)}`);
    const sameGroups = async (page) => !!grouped && !!(await eventually(async () => (await groups(page)) === grouped && /group=user/.test(page.url())));
    await admin.reload();
    check('27 groups survive a reload', await sameGroups(admin), () => groups(admin));
    const third = await person();
    await signIn(third, 'admin', password, admin.url().slice(address.length));
    check('27 and a second browser with the link', await sameGroups(third), () => groups(third));
    await third.context().close();
    await admin.getByRole('link', { name: /^Failed/ }).click();
    await admin.waitForURL(/state=FAILED/);
    await admin.goBack();
    check('27 and going back', await sameGroups(admin), () => groups(admin));
    await stop(...ids);
  },

  /** Whatever people write is text. */
  async markup() {
    const id = await submit(admin, job('marked', 'sleep 600', { env: [{ name: 'NOTE', value: MARKUP }], annotations: { description: MARKUP } }));
    await becomes(id, 'RUNNING');
    await api(admin, 'POST', '/jobs:act', { action: 'tag', ids: [id], value: MARKUP });
    await api(admin, 'POST', '/pai/groups', { groupname: 'marked', description: MARKUP, externalName: '', extension: {} });
    await kubectl(['annotate', 'node', 'node-0', `note=${MARKUP}`]);
    await kubectl(['label', 'node', 'node-0', 'img=src.onerror']);
    await create({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'marked', namespace: 'default' }, involvedObject: { apiVersion: 'batch/v1', kind: 'Job', name: 'marked', namespace: 'default' }, type: 'Warning', reason: 'Marked', message: MARKUP, firstTimestamp: new Date().toISOString(), lastTimestamp: new Date().toISOString(), count: 1 });
    const places = { 'the description': [`/jobs/${id}`], 'an environment': [`/jobs/${id}/config`], 'the text of a group': ['/admin/groups'], 'an event': ['/events?q=onerror'] };
    for (const [what, [at]] of Object.entries(places)) {
      await admin.goto(address + at);
      check(`11 markup in ${what} is text`, !!(await eventually(async () => (await main()).includes(MARKUP))), main);
      check(`11 and makes nothing in the page for ${what}`, await admin.evaluate(() => !document.querySelector('img[src=x]') && globalThis.hurt === undefined));
    }
    await admin.goto(`${address}/jobs/${id}`);
    check('11 markup in a tag is text', !!(await eventually(async () => (await admin.locator('.facts').innerText()).includes(MARKUP))), main);
    await admin.goto(`${address}/nodes/node-0`);
    check('11 a label of a node is shown', !!(await eventually(async () => /src\.onerror/.test(await main()))), main);
    check('11 nothing breaks the policy', seen.policy.length === 0, seen.policy.join(' | '));
    await stop(id);
  },

  async map() {
    const id = await submit(admin, job('on-the-map', 'sleep 600', { gpus: 2 }));
    await becomes(id, 'RUNNING');
    await admin.goto(`${address}/topology`);
    await settled(admin);
    await admin.locator('.map').focus();
    const said = () => admin.locator('.map [role=status]').innerText();
    let found = null;
    for (let i = 0; i < 10 && !found; i++) { await admin.keyboard.press('ArrowRight'); found = await eventually(async () => (/on-the-map/.test(await said()) ? said() : null), 300); }
    check('45 arrow keys name what is on each GPU', /node-\d GPU \d: on-the-map/.test(found ?? ''), said);
    await admin.keyboard.press('Enter');
    check('45 Enter selects its job', !!(await eventually(() => new URL(admin.url()).searchParams.get('sel') === id)), admin.url());
    await lights(id);
    const cdp = await admin.context().newCDPSession(admin);
    await admin.goto(`${address}/jobs`);
    await settled(admin);
    for (const type of ['deuteranopia', 'achromatopsia']) {
      await cdp.send('Emulation.setEmulatedVisionDeficiency', { type });
      const marks = await admin.locator('nav.states a, .tabs a, [role=tablist] a').evaluateAll((all) => all.filter((a) => a.querySelector('svg')).map((a) => ({ glyph: a.querySelector('svg').innerHTML, word: a.textContent.replace(/[\d,]/g, '').trim() })));
      check(`45 with ${type} states differ by glyph and word`, marks.length === 7 && new Set(marks.map((m) => m.glyph)).size === 7 && new Set(marks.map((m) => m.word)).size === 7, JSON.stringify(marks.map((m) => m.word)));
    }
    await cdp.send('Emulation.setEmulatedVisionDeficiency', { type: 'none' });
    await stop(id);
  },
};

/** A job that is selected is drawn in its full colour on each of its GPUs, and all that others hold is faint. */
async function lights(id) {
  const wide = await submit(admin, job('beside', 'sleep 600', { tasks: 2, gpus: 2 }));
  await becomes(wide, 'RUNNING');
  const holders = async () => (await Promise.all([id, wide].map(async (j) => (await api(admin, 'GET', `/tasks/${encodeURIComponent(j)}`)).body.rows.flatMap((r) => r.gpus.map((g) => [`${r.node} ${g}`, j]))))).flat();
  const held = Object.fromEntries((await eventually(async () => { const h = await holders(); return h.length === 6 ? h : null; })) ?? []);
  await admin.goto(`${address}/topology?z=10`);
  await settled(admin);
  // Where each GPU is, as the pointer finds it: the middle of all points that say so.
  const spots = await admin.evaluate(async () => {
    const box = document.querySelector('.map');
    const channel = new MessageChannel();
    const turn = () => new Promise((done) => { channel.port1.onmessage = () => done(); channel.port2.postMessage(0); });
    const r = box.getBoundingClientRect();
    const found = {};
    for (let y = 10; y < 140; y += 3) for (let x = 10; x < 320; x += 3) {
      box.dispatchEvent(new PointerEvent('pointermove', { clientX: r.left + x, clientY: r.top + y, bubbles: true }));
      await turn();
      await turn();
      const m = /^(\S+) · GPU (\d+)/.exec(document.querySelector('.hover-card .mono')?.textContent ?? '');
      if (m) { const s = (found[`${m[1]} ${m[2]}`] ??= { x: 0, y: 0, n: 0 }); s.x += x; s.y += y; s.n++; }
    }
    return Object.fromEntries(Object.entries(found).map(([k, s]) => [k, [s.x / s.n, s.y / s.n]]));
  });
  check('44 the pointer finds each of eight GPUs', Object.keys(spots).length === 8, JSON.stringify(spots));
  // At most how far the colour of a point is from the ground.
  const strength = () => admin.evaluate((spots) => {
    const canvas = document.querySelector('.map-canvas');
    const ratio = canvas.width / canvas.clientWidth;
    const c = canvas.getContext('2d');
    const ground = /\d+/g[Symbol.match](getComputedStyle(document.querySelector('.map-frame')).backgroundColor).map(Number);
    return Object.fromEntries(Object.entries(spots).map(([k, [x, y]]) => { const p = c.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data; return [k, (p[3] / 255) * [0, 1, 2].reduce((s, i) => s + Math.abs(p[i] - ground[i]), 0)]; }));
  }, spots);
  const before = await strength();
  for (const chosen of [id, wide]) {
    await admin.goto(`${address}/topology?z=10&sel=${encodeURIComponent(chosen)}`);
    await settled(admin);
    const seen = async () => { const now = await strength(); return Object.entries(held).every(([gpu, j]) => (j === chosen ? now[gpu] > 0.9 * before[gpu] : now[gpu] < 0.7 * before[gpu])); };
    check(`44 all GPUs of ${chosen} light up, and no other`, Object.keys(held).length === 6 && !!(await eventually(seen, 5000)), async () => `${JSON.stringify(held)} ${JSON.stringify(before)} ${JSON.stringify(await strength())}`);
  }
  await stop(wide);
}

await play(parts, ['sign_in']);
