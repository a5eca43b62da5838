/** What every program of checks in Chromium shares: node PROGRAM.mjs ADDRESS ADMIN_PASSWORD ROOT [parts…], started by chromium.py.
 *  Prints `ok WHAT`, `FAIL WHAT: why`, `SKIPPED WHAT: why`; lines that begin with `@` tell chromium.py to do something to the cluster.
 *  Numbers are those of the list of checks (README.md). */
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import * as look from './look.mjs';

export const [address, password, root, ...only] = process.argv.slice(2);
const require = createRequire(`${root}/web/package.json`);
const { chromium } = require('playwright-core');
const ARGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  // Nothing but this machine can be reached: whatever a page shows, it has from here.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'];
export const say = (line) => process.stdout.write(`${line}\n`);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Asks chromium.py for something; its answer is one line. */
export const ask = async (request) => { say(request); return (await answers.next()).value; };

/** `seen`: what was there instead, or a function that finds it out. */
export function check(what, holds, seen = '') {
  const fail = (found) => say(`FAIL ${what}: ${String(found).replaceAll('\n', ' ').slice(0, 900)}`);
  if (holds) say(`ok ${what}`);
  else Promise.resolve(typeof seen === 'function' ? seen() : seen).then(fail, fail);
  return holds;
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS });
/** What pages did that they must not: other hosts, errors, breaches of the policy. */
export const seen = { foreign: [], errors: [], policy: [], deeds: [] };
/** Requests that change something, as the audit has to name them; questions that need a body are none (portal.cc). */
function deed(response) {
  const request = response.request();
  const { pathname } = new URL(response.url());
  if (['GET', 'HEAD', 'OPTIONS'].includes(request.method()) || /check$|\/whatif$/.test(pathname)) return;
  seen.deeds.push({ verb: request.method(), object: decodeURIComponent(pathname).replace(/^\/api\/portal\/v1\//, ''), code: response.status() });
}
export async function person(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ignoreHTTPSErrors: true, locale: 'en-GB', acceptDownloads: true, ...options });
  await context.addInitScript(() => addEventListener('securitypolicyviolation', (e) => console.error(`POLICY ${e.violatedDirective} ${e.blockedURI}`)));
  const page = await context.newPage();
  page.on('request', (r) => { if (!r.url().startsWith(address) && !/^(data|blob):/.test(r.url()) && !r.url().startsWith(address.replace('http', 'ws'))) seen.foreign.push(r.url()); });
  page.on('console', (m) => { if (m.type() === 'error') (m.text().startsWith('POLICY') ? seen.policy : seen.errors).push(`${m.text()} at ${page.url()}`); });
  page.on('response', deed);
  page.on('pageerror', (e) => seen.errors.push(`${e} at ${page.url()}`));
  page.setDefaultTimeout(30_000);
  return page;
}
/** Another tab of the same browser. */
export async function tabOf(page, options = {}) {
  const other = await person(options);
  await other.context().addCookies(await page.context().cookies());
  return other;
}
export async function signIn(page, user, secret, at = '/login') {
  await page.goto(address + at);
  await page.getByLabel('User name').fill(user);
  await page.getByLabel('Password').fill(secret);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}
/** A call with the person's session, but not from within the page, which may be on its way to another. */
export async function api(page, method, path, data) {
  const type = typeof data === 'string' ? 'text/yaml' : 'application/json';
  const body = data === undefined ? {} : { data: typeof data === 'string' ? data : JSON.stringify(data) };
  const r = await page.context().request.fetch(`${address}/api/portal/v1${path}`, { method, ...body, headers: { Origin: address, 'Content-Type': type } });
  const text = await r.text();
  try { return { status: r.status(), body: JSON.parse(text) }; } catch { return { status: r.status(), body: text }; }
}
/** Everything that was done on pages so far is in the audit, with who did it, to what, from where and with which result. */
export async function audited(admin) {
  const read = async () => {
    const rows = [];
    for (let offset = 0, total = 1; offset < total; offset += 500) { const r = (await api(admin, 'GET', `/audit?limit=500&offset=${offset}`)).body; rows.push(...r.rows); total = r.total; }
    const missing = [];
    const left = rows.map((r) => `${r.verb} ${r.object} ${r.code}`);
    for (const d of seen.deeds) { const at = left.indexOf(`${d.verb} ${d.object.slice(0, 300)} ${d.code}`); if (at < 0) missing.push(`${d.verb} ${d.object} ${d.code}`); else left.splice(at, 1); }
    return { rows, missing };
  };
  const { rows, missing } = (await eventually(async () => { const found = await read(); return found.missing.length ? null : found; }, 5000)) ?? await read();
  check(`54 each of ${seen.deeds.length} acts on pages is in the audit`, seen.deeds.length > 0 && missing.length === 0, `${missing.length} are not: ${missing.slice(0, 8).join(' | ')}`);
  // Who has failed to sign in is nobody.
  const bare = rows.filter((r) => r.id.startsWith('portal-')).filter((r) => !r.from || (!r.user && r.code < 400) || !r.object || !r.code);
  check('54 each row has a user, an object, a result and an address', rows.length > 0 && bare.length === 0, () => JSON.stringify(bare.slice(0, 4)));
}
/** A limit in ms for what is done on a machine of which others take their share: longer by how much a loop takes longer than its processor time. */
export function within(ms) {
  const begun = performance.now();
  const used = process.cpuUsage();
  const own = () => { const now = process.cpuUsage(used); return (now.user + now.system) / 1000; };
  while (own() < 50);
  return ms * Math.max(1, (performance.now() - begun) / own());
}
export const eventually = async (what, ms = 30_000) => { const end = Date.now() + ms; for (;;) { try { const x = await what(); if (x) return x; } catch { /* not yet */ } if (Date.now() > end) return null; await new Promise((r) => setTimeout(r, 50)); } };
export const submit = async (page, text) => { const r = await api(page, 'POST', '/jobs', text); if (r.status >= 300) throw new Error(`submit answered ${r.status} ${JSON.stringify(r.body)}`); return r.body.id; };
export const detail = async (page, id) => (await api(page, 'GET', `/jobs/${encodeURIComponent(id)}`)).body;
/** The text of the editor on the page. */
export const editorText = (page) => page.evaluate(() => document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-content')?.innerText);
/** Replaces the editor's text as a person would: everything selected, then pasted over. */
export async function writeEditor(page, text) {
  const content = page.locator('.editor .cm-content');
  await content.waitFor();
  await content.focus();
  await page.keyboard.press('Control+a');
  await page.evaluate((text) => { const d = new DataTransfer(); d.setData('text/plain', text); document.querySelector('.editor').shadowRoot.querySelector('.cm-content').dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true })); }, text);
}
/** The page shows what it has to show: no ghosts of rows, and nothing that still fades or moves. */
export const settled = (page) => eventually(() => page.evaluate(async () => {
  const there = () => !!document.querySelector('h1')?.textContent.trim() && !document.querySelector('.ghost') && !!document.querySelector('main :is(table, canvas, svg, form, .card, .empty, .tiles, .editor-frame)');
  if (!there()) return false;
  await Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {})));
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  return there();
}));
export const tasksOf = (page, during) => look.tasksOf(browser, page, during);
/** What axe finds serious on the page, once nothing fades in any more: half there, texts lack contrast. The page's policy forbids inline script, so
    the checker is evaluated by the browser's own protocol. */
export async function axe(page) {
  await page.evaluate(() => Promise.all(document.getAnimations().filter((a) => Number.isFinite(a.effect.getComputedTiming().endTime)).map((a) => a.finished.catch(() => {}))));
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  return page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 120)}`));
}
/** Runs the parts that were asked for, all without a name; `always` go before. */
export async function play(parts, always = []) {
  for (const [name, run] of Object.entries(parts)) {
    if (only.length && !always.includes(name) && !only.includes(name)) continue;
    try { await run(); } catch (e) { check(`part ${name} ran to its end`, false, e.stack); }
  }
  await new Promise((r) => setTimeout(r, 200)); // what a failed check still finds out
  await browser.close();
  process.exit(0);
}
