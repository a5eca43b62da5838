// Checks of HiveD's cells in Chromium: a hollow cluster of four nodes with four GPUs, two virtual clusters. cells.py starts it.
import { address, api, ask, axe, check, detail, eventually, password, person, play, seen, signIn, tabOf, within } from './page.mjs';

let admin;
const kubectl = (...words) => ask(`@kubectl ${JSON.stringify(words)}`);
const create = (...objects) => ask(`@create ${JSON.stringify(objects)}`);
/** A pod that is only said to run, on cells of a virtual cluster. */
const pod = (name, vc, priority, gpus) => ({
  apiVersion: 'v1', kind: 'Pod',
  metadata: { name, namespace: 'default', annotations: { 'muster.dev/hollow-duration': '3600s', 'hivedscheduler.microsoft.com/pod-scheduling-spec': `virtualCluster: ${vc}\npriority: ${priority}\nleafCellNumber: ${gpus}\n` } },
  spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }] },
});
const nodeOf = async (name) => (await eventually(async () => (await api(admin, 'GET', `/tasks/default%2Fpod%2F${name}`)).body.rows?.find((r) => r.node && r.state === 'RUNNING'), 20_000))?.node;
/** The rows of the tree that is open: what each says, whether it has the sign of bad ones, and how its cells are drawn. */
const rowsOf = (page = admin) => page.evaluate(() => [...document.querySelectorAll('.cell-tree [role=tree]')].flatMap((tree) => [...tree.querySelectorAll('[role=treeitem]')].map((row) => ({
  tree: tree.getAttribute('aria-label'),
  name: row.querySelector('.grow').textContent,
  bad: [...row.querySelectorAll('.bad')].filter((e) => e.getBoundingClientRect().width > 0).map((e) => e.textContent).join(),
  sign: !!row.querySelector('.bad svg'),
  fills: [...row.querySelectorAll('.cells i')].map((e) => e.className || 'used').join(),
  said: row.querySelector('[role=img]')?.getAttribute('aria-label') ?? '',
  bound: row.querySelector('.bound').textContent.trim(),
}))));
const openTree = async (which) => { await admin.goto(`${address}/topology${which ? `?tree=${which}` : ''}`); await admin.locator('.cell-tree [role=treeitem]').first().waitFor(); };
/** Rows of a tree, once they are as wanted; otherwise what is there. */
const rowsWhen = async (wanted, ms = 15_000) => (await eventually(async () => { const rows = await rowsOf(); return wanted(rows) ? rows : null; }, ms)) ?? rowsOf();
const find = (rows, name) => rows.find((r) => r.name === name);
const show = (rows) => JSON.stringify(rows);
const ready = (node, status) => kubectl('patch', 'node', node, '--subresource=status', '-p', JSON.stringify({ status: { conditions: [{ type: 'Ready', status, reason: status === 'True' ? 'KubeletReady' : 'NodeStatusUnknown' }] } }));
let holds = {};

const parts = {
  async sign_in() {
    admin = await person();
    await signIn(admin, 'admin', password);
    await admin.getByRole('heading', { name: 'Home' }).waitFor();
    await create(pod('sees', 'vision', 10, 4), pod('hears', 'speech', 10, 2));
    holds = { sees: await nodeOf('sees'), hears: await nodeOf('hears') };
    await create(pod('borrows', 'speech', -1, 4));
    holds.borrows = await nodeOf('borrows');
    check('three jobs are on three nodes', new Set(Object.values(holds)).size === 3 && !Object.values(holds).includes(undefined), JSON.stringify(holds));
    await ask('@idle');
  },

  /** Who is bound to whom, from both sides. */
  async pairs() {
    await openTree('');
    const rows = await rowsWhen((r) => find(r, holds.sees)?.bound === 'vision/0');
    check('46 the physical tree names the virtual cell that a node is bound to', find(rows, holds.sees)?.bound === 'vision/0', show(rows));
    check('46 and those of the halves of a node', rows.some((r) => r.name.startsWith(`${holds.hears}/`) && r.bound === 'speech/0'), show(rows));
    check('46 a node that is lent says so', find(rows, holds.borrows)?.bound === 'opportunistic' && find(rows, holds.borrows)?.fills === 'half,half,half,half', show(rows));
    check('46 nothing is called bad', rows.every((r) => !r.bad && !r.sign && !/off/.test(r.fills)), show(rows));
    await openTree('vision');
    const vision = await rowsOf();
    check('46 the tree of vision names the node', find(vision, 'vision/0')?.bound === holds.sees && find(vision, 'vision/1')?.bound === '', show(vision));
    await openTree('speech');
    const speech = await rowsOf();
    check('46 the tree of speech names the half of a node', find(speech, 'speech/0')?.bound.startsWith(`${holds.hears}/`) && find(speech, 'speech/1')?.bound === '', show(speech));
    const lent = speech.filter((r) => r.bound === 'opportunistic');
    check('46 and what it has borrowed, GPU by GPU', lent.length === 4 && lent.every((r) => r.name.startsWith(`${holds.borrows}/`) && r.fills === 'half'), show(speech));
    await openTree('both');
    const both = await rowsOf();
    check('46 both: the physical tree and one for each virtual cluster', [...new Set(both.map((r) => r.tree))].join() === 'Physical,vision,speech', show(both));
    await admin.locator('[role=tree][aria-label=vision] [role=treeitem]', { hasText: 'vision/0' }).hover();
    const lit = await eventually(async () => { const names = await admin.locator('.cell-tree li.lit .grow').allInnerTexts(); return names.length === 2 ? names : null; });
    check('46 pointing at a cell lights its pair', lit?.join() === `${holds.sees},vision/0`, `${lit}`);
  },

  /** Why a job waits whose virtual cluster has no cell left, in the numbers of the command. */
  async waits() {
    await create(pod('sees-too', 'vision', 10, 4));
    await nodeOf('sees-too');
    await create(pod('sees-later', 'vision', 10, 4));
    const wait = await eventually(async () => { const w = (await detail(admin, 'default/pod/sees-later')).wait; return /vision/.test(w?.text ?? '') ? w : null; }, 20_000);
    check('33 cells: the reason names the virtual cluster, and has numbers', /vision/.test(wait?.text ?? '') && /\d/.test(wait?.text ?? ''), async () => JSON.stringify((await detail(admin, 'default/pod/sees-later')).wait));
    const first = (wait?.text ?? '?').split(';')[0];
    const said = await eventually(async () => { const s = await ask('@explain sees-later'); return s.includes(first) ? s : null; }, 10_000) ?? await ask('@explain sees-later');
    check('33 cells: they are those of muster explain', said.includes(first), `${first} and ${said}`);
    await admin.goto(`${address}/jobs/default/pod/sees-later`);
    const page = await eventually(async () => { const text = await admin.locator('main').innerText(); return /Why it waits/.test(text) ? text : null; }) ?? await admin.locator('main').innerText();
    check('33 cells: and of its page', page.toLowerCase().includes(first.toLowerCase()), `${first} and ${page}`);
    for (const cause of wait?.byCause ?? []) {
      await admin.getByRole('button', { name: cause.cause }).click();
      const dialog = admin.getByRole('dialog');
      const names = await eventually(async () => { const list = await dialog.locator('td.mono').allInnerTexts(); return list.length ? list : null; });
      check(`33 cells: "${cause.cause}" opens its ${cause.nodes} nodes`, names?.length === cause.nodes, `${names}`);
      await dialog.getByRole('button', { name: 'Close' }).click();
    }
    await kubectl('delete', 'pod', 'sees-too', 'sees-later', '--grace-period=0', '--force');
    await ask('@idle');
  },

  /** A node that somebody cordons, with the portal's own button. */
  async cordoned() {
    const list = await tabOf(admin);
    await list.goto(`${address}/nodes/${holds.sees}`);
    await openTree('');
    await list.getByRole('button', { name: 'Cordon', exact: true }).click();
    const begun = Date.now();
    const rows = await rowsWhen((r) => find(r, holds.sees)?.bad === 'bad');
    check(`46 a cordoned node is bad in the physical tree, in words, with a sign and struck through (after ${Date.now() - begun} ms)`, find(rows, holds.sees)?.bad === 'bad' && find(rows, holds.sees).sign && find(rows, holds.sees).fills === 'off,off,off,off' && Date.now() - begun <= within(2000), show(rows));
    check('46 readers hear it, too', /4 of 4 bad/.test(find(rows, holds.sees)?.said ?? ''), show(rows));
    check('46 the pool counts it', rows[0].name === 'GPU-POOL' && rows[0].bad === '4 of 16 bad', show(rows));
    check('46 no other node is bad', rows.filter((r) => r.bad).length === 2, show(rows));
    check('46 it is still bound', find(rows, holds.sees)?.bound === 'vision/0', show(rows));
    await bothThemes('a bad node');
    await openTree('vision');
    const vision = await rowsWhen((r) => find(r, 'vision/0')?.bad === 'bad');
    check('46 its virtual cluster shows the cell as bad, and which node it is', find(vision, 'vision/0')?.bad === 'bad' && find(vision, 'vision/0').sign && find(vision, 'vision/0').bound === holds.sees && !find(vision, 'vision/1').bad, show(vision));
    await bothThemes('a bad virtual cell');
    await openTree('speech');
    check('46 the other virtual cluster has no bad cell', (await rowsOf()).every((r) => !r.bad), show(await rowsOf()));
    await same('with a cordoned node');
    await admin.goto(`${address}/`);
    const row = admin.getByRole('row', { name: /vision/ }).first();
    const counted = () => admin.evaluate(() => { const table = [...document.querySelectorAll('table')].find((x) => /Bad cells/.test(x.tHead?.textContent ?? '')); const at = [...(table?.tHead.rows[0].cells ?? [])].findIndex((h) => /Bad cells/.test(h.textContent)); return Object.fromEntries([...(table?.tBodies[0].rows ?? [])].map((r) => [r.cells[0].textContent.trim(), r.cells[at]?.textContent.trim()])); });
    check('46 Home counts the bad cells of vision, and none of speech', !!(await eventually(async () => { const n = await counted(); return n.vision === '4' && /^(0|–)$/.test(n.speech); })), async () => `${JSON.stringify(await counted())} ${await row.innerText()}`);
    await openTree('');
    await list.getByRole('button', { name: 'Uncordon', exact: true }).click();
    const after = await rowsWhen((r) => r.every((x) => !x.bad));
    check('46 nothing is bad once it is back', after.length > 4 && after.every((r) => !r.bad && !r.sign), show(after));
    await list.context().close();
  },

  /** A node that is not heard of any more: of the half of a node, and of what is lent. */
  async lost() {
    await openTree('');
    await ready(holds.hears, 'Unknown');
    const rows = await rowsWhen((r) => find(r, holds.hears)?.bad === 'bad');
    check('46 a lost node is bad in the physical tree', find(rows, holds.hears)?.bad === 'bad' && find(rows, holds.hears).sign, show(rows));
    await openTree('speech');
    const speech = await rowsWhen((r) => find(r, 'speech/0')?.bad === 'bad');
    check('46 and in its virtual cluster', find(speech, 'speech/0')?.bad === 'bad' && find(speech, 'speech/0').bound.startsWith(`${holds.hears}/`), show(speech));
    await openTree('vision');
    check('46 but not in the other', (await rowsOf()).every((r) => !r.bad), show(await rowsOf()));
    await same('with a lost node');
    await ready(holds.hears, 'True');
    await openTree('');
    check('46 back, it is bad no more', (await rowsWhen((r) => r.every((x) => !x.bad))).every((r) => !r.bad));
  },

  /** So few healthy nodes are left that a virtual cluster has lost what it does not even use: HiveD binds it to a bad node, so that its owner sees it. */
  async doomed() {
    const idle = ['node-0', 'node-1', 'node-2', 'node-3'].filter((n) => !Object.values(holds).includes(n));
    for (const node of [...idle, holds.borrows]) await kubectl('cordon', node);
    await openTree('vision');
    const unused = (r) => r.find((x) => x.name.startsWith('vision/') && x.bound !== holds.sees);
    const vision = await rowsWhen((r) => unused(r)?.bad === 'bad');
    check('46 a virtual cluster sees which of its unused cells are lost', unused(vision)?.bad === 'bad' && [...idle, holds.borrows].includes(unused(vision).bound) && vision.filter((r) => r.bad).length === 1, show(vision));
    await openTree('');
    const rows = await rowsWhen((r) => r[0].bad === '8 of 16 bad');
    check('46 the physical tree shows both, and whom one of them was promised to', rows[0].bad === '8 of 16 bad' && rows.filter((r) => r.bad === 'bad' && /^vision\/\d$/.test(r.bound)).length === 1 && rows.filter((r) => r.bad === 'bad').length === 2, show(rows));
    await same('with two bad nodes');
    for (const node of [...idle, holds.borrows]) await kubectl('uncordon', node);
  },

  /** On a phone the tree is behind a button. */
  async phone() {
    const phone = await tabOf(admin, { viewport: { width: 390, height: 844 } });
    await kubectl('cordon', holds.sees);
    await phone.goto(`${address}/topology`);
    await phone.getByRole('button', { name: 'Cell tree' }).click();
    const rows = await eventually(async () => { const r = await rowsOf(phone); return find(r, holds.sees)?.bad ? r : null; });
    check('46 on a phone, too', find(rows ?? [], holds.sees)?.bad === 'bad', async () => show(await rowsOf(phone)));
    check('56 the tree does not scroll sideways on a phone', (await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    const found = await axe(phone);
    check('55 axe finds nothing serious in the tree on a phone', found.length === 0, found.join(' | '));
    await kubectl('uncordon', holds.sees);
    await phone.context().close();
    check('4 nothing broke the policy, no errors on the console', seen.policy.length === 0 && seen.errors.length === 0, [...seen.policy, ...seen.errors].join(' | '));
  },
};

/** The word can be read and the sign is seen in light and dark. */
async function bothThemes(what) {
  const was = admin.url();
  for (const theme of ['light', 'dark']) {
    await admin.evaluate((v) => localStorage.setItem('theme', v), theme);
    await admin.goto(was);
    await rowsWhen((r) => r.some((x) => x.bad));
    const found = await axe(admin);
    const marks = await admin.evaluate(() => [...document.querySelectorAll('.cell-tree .bad')].every((e) => { const text = e.lastChild; const sign = e.querySelector('svg'); const range = document.createRange(); range.selectNodeContents(text); return range.getBoundingClientRect().width > 10 && sign.getBoundingClientRect().width > 8 && getComputedStyle(sign).stroke !== 'none'; }));
    check(`55 ${what} in the tree, ${theme}: word and sign are seen, axe finds nothing serious`, found.length === 0 && marks, found.join(' | '));
  }
  await admin.evaluate(() => localStorage.setItem('theme', 'light'));
}
/** The API says what the command says. */
async function same(when) {
  await ask('@idle');
  const cells = (await api(admin, 'GET', '/cells')).body;
  const command = JSON.parse(await ask('@tree'));
  check(`46 /cells says what muster hived tree says ${when}`, JSON.stringify(cells) === JSON.stringify(command) && /"Bad"/.test(JSON.stringify(cells)), `${JSON.stringify(cells).slice(0, 300)} and ${JSON.stringify(command).slice(0, 300)}`);
  for (const vc of ['vision', 'speech']) {
    const one = (await api(admin, 'GET', `/cells?vc=${vc}`)).body;
    check(`46 /cells?vc=${vc} is its part of it ${when}`, JSON.stringify(one) === JSON.stringify({ virtualClusters: { [vc]: command.virtualClusters[vc] } }), JSON.stringify(one).slice(0, 300));
  }
}

await play(parts, ['sign_in']);
