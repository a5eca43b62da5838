// Takes the pictures of docs/portal.md: node pictures.mjs ADDRESS ADMIN_PASSWORD ROOT FOLDER. pictures.py starts it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';

const [address, password, root, folder] = process.argv.slice(2);
const { chromium } = createRequire(`${root}/web/package.json`)('playwright-core');
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' });
const page = await context.newPage();
const token = process.env.PORTAL_TOKEN;
await page.request.post(`${address}/api/portal/v1/session`, { data: token ? { token } : { user: 'admin', password }, headers: { Origin: address } });
const rows = async (state) => (await (await page.request.get(`${address}/api/portal/v1/jobs?state=${state}&limit=50&sort=-gpus`)).json()).rows;
const waiting = (await rows('WAITING'))[0]?.id ?? '';
const running = (await rows('RUNNING'))[0]?.id ?? '';
const failed = (await rows('FAILED'))[0]?.id ?? '';
const one = (id) => encodeURIComponent(id);
const simulation = (await (await page.request.post(`${address}/api/portal/v1/sims`, { data: { name: 'examples/sim', trace: readFileSync(`${root}/examples/sim/jobs.csv`, 'utf8'), nodes: '4x8', policyFile: readFileSync(`${root}/examples/sim/policies.yaml`, 'utf8') }, headers: { Origin: address } })).json()).id;
const question = `/whatif?s=${one(JSON.stringify([{ addNodes: { count: 4, gpus: 8 } }, { drain: { nodes: ['r02-n03'] }, at: '1h' }]))}`;
const ahead = `/timeline?from=${Date.now() - 1_200_000}&to=${Date.now() + 14_400_000}`;
const BOOK = [
  ['home', '/', 'light', 1440], ['jobs', `/jobs?sel=${one(waiting)}`, 'light', 1440], ['job', `/jobs/${waiting}`, 'light', 1440], ['failed', `/jobs/${failed}`, 'dark', 1440],
  ['topology', `/topology?sel=${one(running)}`, 'dark', 1440], ['rack', '/topology?z=21', 'light', 1440], ['submit', '/submit?template=distributed', 'light', 1440],
  ['queues', '/queues', 'dark', 1440], ['nodes', '/nodes', 'light', 1440], ['timeline', ahead, 'light', 1440], ['whatif', question, 'light', 1440], ['sim', `/sim/${simulation}`, 'light', 1440], ['drain', '/nodes/r02-n03', 'light', 1440],
  ['jobs-phone', '/jobs', 'light', 390], ['job-phone', `/jobs/${waiting}`, 'dark', 390],
];
// With a fifth argument: every page in both themes and widths, for whoever wants to look at all of them.
const PAGES = { home: '/', jobs: '/jobs', panel: `/jobs?sel=${one(waiting)}`, waits: `/jobs/${waiting}`, runs: `/jobs/${running}`, tasks: `/jobs/${running}/tasks`, story: `/jobs/${running}/timeline`, config: `/jobs/${running}/config`, logs: `/jobs/${running}/logs`, failed: `/jobs/${failed}`, submit: '/submit', topology: '/topology', rack: '/topology?z=21', node: '/topology?z=52', timeline: '/timeline', queues: '/queues', queue: '/queues/research', nodes: '/nodes', onenode: '/nodes/r01-n01', events: '/events', whatif: '/whatif', question, sim: '/sim', simulation: `/sim/${simulation}`, ahead, profile: '/profile', users: '/admin/users', groups: '/admin/groups', scheduler: '/admin/scheduler', services: '/admin/services', audit: '/admin/audit' };
const SHOTS = process.argv[6] ? Object.entries(PAGES).flatMap(([name, at]) => [1440, 390].flatMap((w) => ['light', 'dark'].map((theme) => [`${name}-${w}-${theme}`, at, theme, w]))) : BOOK;
for (const [name, at, theme, width] of SHOTS) {
  await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
  await page.goto(`${address}/login`);
  await page.evaluate((v) => localStorage.setItem('theme', v), theme);
  await page.goto(address + at);
  await page.locator('h1').first().waitFor();
  if (name.startsWith('drain')) await page.getByRole('button', { name: 'Drain' }).click();
  await page.waitForTimeout(name.startsWith('drain') || at === question ? 4000 : 1500);
  await page.screenshot({ path: `${folder}/${name}.png` });
}
await browser.close();
const files = readdirSync(folder).filter((n) => n.endsWith('.png')).map((n) => `${folder}/${n}`);
try { execFileSync('pngquant', ['--force', '--ext', '.png', '--speed', '1', '64', ...files]); } catch { console.log('pngquant is not installed: the pictures are larger than they could be'); }
console.log(`${files.length} pictures, ${(files.reduce((s, f) => s + statSync(f).size, 0) / 1000).toFixed(0)} kB`);
