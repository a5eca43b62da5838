// Pictures of every page of a running portal: node dev/shots.mjs ADDRESS OUT [names…]. Light and dark, 1440 and 390 px.
import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [address = 'http://127.0.0.1:8088', out = '/tmp/shots', ...only] = process.argv.slice(2);
const PAGES = { login: '/login', home: '/', jobs: '/jobs', panel: '/jobs?state=WAITING&sel=first', job: 'waiting', failed: 'failed', logs: 'running/logs', tasks: 'running/tasks', config: 'running/config', submit: '/submit', topology: '/topology', rack: '/topology?z=21', near: '/topology?z=60', queues: '/queues', queue: '/queues/vc1', nodes: '/nodes', node: '/nodes/r05-n03', timeline: '/timeline', events: '/events', users: '/admin/users', groups: '/admin/groups', scheduler: '/admin/scheduler', services: '/admin/services', audit: '/admin/audit', profile: '/profile', whatif: '/whatif', sim: '/sim' };
mkdirSync(out, { recursive: true });
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
const [wide, tall] = (process.env.SIZE ?? '1440x900').split('x').map(Number);
const context = await browser.newContext({ viewport: { width: wide, height: tall }, colorScheme: process.env.THEME ?? 'light', ignoreHTTPSErrors: true });
const page = await context.newPage();
page.on('console', (m) => { if (m.type() === 'error') console.log('console:', m.text().slice(0, 300), page.url()); });
page.on('pageerror', (e) => console.log('error:', String(e.stack).slice(0, 500), page.url()));
const job = async (state) => (await (await page.request.get(`${address}/api/portal/v1/jobs?state=${state}&limit=20`)).json()).rows.sort((a, b) => b.tasks.total - a.tasks.total)[0].id;
for (const [name, path] of Object.entries(PAGES)) {
  if (only.length && !only.includes(name)) continue;
  let at = path;
  if (name === 'login') await page.request.delete(`${address}/api/portal/v1/session`);
  else await page.request.post(`${address}/api/portal/v1/session`, { data: process.env.PORTAL_TOKEN ? { token: process.env.PORTAL_TOKEN } : { user: process.env.PORTAL_USER ?? 'alice', password: process.env.PORTAL_PASSWORD ?? 'x' }, headers: { Origin: address } });
  if (!path.startsWith('/')) { const [s, tab] = path.split('/'); at = `/jobs/${await job(s.toUpperCase())}${tab ? `/${tab}` : ''}`; }
  if (path.endsWith('first')) at = path.replace('first', encodeURIComponent(await job('WAITING')));
  await page.goto(address + at);
  await page.waitForTimeout(900);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) console.log(`${name}: ${over} px too wide`);
  await page.screenshot({ path: `${out}/${name}-${process.env.THEME ?? 'light'}-${wide}.png` });
}
await browser.close();
