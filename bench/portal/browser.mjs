// Measures the portal's pages in Chromium: node browser.mjs ADDRESS PASSWORD ROOT SECONDS PARTS…. run starts it and prints the table.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';

const [address, password, root, seconds, ...parts] = process.argv.slice(2);
const { chromium } = createRequire(`${root}/web/package.json`)('playwright-core');
const { mapNews, tasksOf } = await import(`${root}/tests/portal/look.mjs`);
const ARGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-precise-memory-info'];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS });
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (request) => { process.stdout.write(`${request}\n`); return (await answers.next()).value; };
const tell = (what, value, limit, unit, least = false) => process.stdout.write(`${JSON.stringify({ what, value, limit, unit, least })}\n`);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** Signed in once: an address may not sign in as often as pages are opened here. */
let cookies = null;
async function person() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  if (cookies) await context.addCookies(cookies);
  else {
    const answer = await page.request.post(`${address}/api/portal/v1/session`, { data: { user: 'admin', password }, headers: { Origin: address } });
    if (!answer.ok()) throw new Error(`signing in was answered ${answer.status()} ${await answer.text()}`);
    cookies = await context.cookies();
  }
  return { context, page };
}
const rowsThere = (page) => page.waitForFunction(() => document.querySelectorAll('tbody tr[data-id]').length > 5);
/** Until the page has nothing to do. */
const idle = (page) => page.evaluate(() => new Promise((done) => requestIdleCallback(() => done())));
/** Milliseconds in the page from doing something to the first frame in which `seen` holds. */
const until = (page, act, seen) => page.evaluate(async ([act, seen]) => {
  const does = new Function(`return ${act}`)();
  const holds = new Function(`return ${seen}`)();
  const begun = performance.now();
  does();
  while (!holds()) { await new Promise(requestAnimationFrame); if (performance.now() - begun > 20_000) throw new Error(`not seen within 20 s: ${seen}`); }
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}, [act, seen]);

async function coldLoad(slow) {
  const { context, page } = await person();
  const cdp = await context.newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
  if (slow) await cdp.send('Emulation.setCPUThrottlingRate', { rate: slow });
  const begun = Date.now();
  await page.goto(`${address}/jobs`, { waitUntil: 'commit' });
  await rowsThere(page);
  const ms = Date.now() - begun;
  const got = await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((e) => ({ name: e.name, bytes: e.encodedBodySize })));
  await context.close();
  return { ms, got };
}

const measures = {
  async first() {
    const { got } = await coldLoad(0);
    const own = got.filter((g) => !g.name.includes('/api/'));
    const kb = (ending) => own.filter((g) => g.name.endsWith(ending)).reduce((s, g) => s + g.bytes, 0) / 1000;
    tell('first page: scripts (br)', kb('.js'), 55, 'kB');
    tell('first page: styles (br)', kb('.css'), 10, 'kB');
    tell('first page: requests', got.length, 8, '');
    tell('first page: all that comes', got.reduce((s, g) => s + g.bytes, 0) / 1000, 90, 'kB');
  },
  async load() {
    const usual = [];
    for (let i = 0; i < 5; i++) usual.push((await coldLoad(0)).ms);
    tell('first load to rows on screen, cold cache', median(usual), 600, 'ms');
    const slow = [];
    for (let i = 0; i < 3; i++) slow.push((await coldLoad(4)).ms);
    tell('the same with the processor slowed four times', median(slow), 2000, 'ms');
    const { context, page } = await person();
    await page.goto(`${address}/jobs`);
    await rowsThere(page);
    const turns = [];
    for (let i = 0; i < 5; i++) {
      turns.push(await until(page, "() => document.querySelector('nav a[href$=\"/nodes\"]').click()", "() => document.querySelector('h1')?.textContent === 'Nodes' && document.querySelectorAll('tbody tr').length > 5"));
      turns.push(await until(page, "() => document.querySelector('nav a[href$=\"/jobs\"]').click()", "() => document.querySelector('h1')?.textContent === 'Jobs' && document.querySelectorAll('tbody tr[data-id]').length > 5"));
    }
    tell('from page to page', median(turns), 150, 'ms');
    await context.close();
  },
  async lists() {
    const { context, page } = await person();
    await page.goto(`${address}/jobs`);
    await rowsThere(page);
    const head = (word) => `() => [...document.querySelectorAll('thead button')].find((b) => b.textContent.includes('${word}')).click()`;
    // Other rows: the first of them may be the same in two orders.
    const others = "(() => { const ids = () => [...document.querySelectorAll('tbody tr[data-id]')].map((r) => r.dataset.id).join(); const was = ids(); return () => ids() && ids() !== was; })()";
    for (const word of ['GPUs', 'Name', 'User']) {
      const spans = [];
      for (let i = 0; i < 4; i++) { await idle(page); spans.push(await until(page, head(word), others)); }
      tell(`sort by ${word} to rows on screen`, median(spans), 200, 'ms');
    }
    const spans = [];
    for (const text of ['llama-0012', 'bert-00', 'gnn-001', 'whisper-002']) {
      spans.push(await until(page, `() => { const f = document.querySelector('[data-find]'); f.value = '${text}'; f.dispatchEvent(new Event('input', { bubbles: true })); }`, `() => { const r = document.querySelector('tbody tr[data-id]'); return r && r.textContent.includes('${text}'); }`));
    }
    tell('filter by text to rows on screen', median(spans), 200, 'ms');
    tell('rows in the page', await page.evaluate(() => document.querySelectorAll('tbody tr').length), 80, '');
    await context.close();
  },
  async live() {
    const { context, page } = await person();
    const cdp = await context.newCDPSession(page);
    let bytes = 0;
    await cdp.send('Network.enable');
    cdp.on('Network.webSocketFrameReceived', (e) => { bytes += e.response.payloadData.length; });
    await cdp.send('Performance.enable');
    await page.addInitScript(() => { globalThis.longest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) globalThis.longest = Math.max(globalThis.longest, e.duration); }).observe({ entryTypes: ['longtask'] }); });
    await page.goto(`${address}/jobs`);
    await rowsThere(page);
    await page.waitForTimeout(3000);
    await ask('@churn 200');
    await page.waitForTimeout(3000);
    const look = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
    await page.evaluate(() => { globalThis.longest = 0; });
    await cdp.send('HeapProfiler.collectGarbage');
    const before = await look();
    const from = bytes;
    await page.waitForTimeout(Number(seconds) * 1000);
    const after = await look();
    const span = after.Timestamp - before.Timestamp;
    await cdp.send('HeapProfiler.collectGarbage');
    const heap = (await look()).JSHeapUsedSize / 1e6;
    await ask('@quiet');
    tell(`live list, 200 changes/s for ${seconds} s: main thread busy`, (100 * (after.TaskDuration - before.TaskDuration)) / span, 10, '%');
    tell('live list: longest task', await page.evaluate(() => globalThis.longest), 50, 'ms');
    tell('live list: received', (bytes - from) / span / 1000, 20, 'kB/s');
    tell('live list: heap at the end', heap, 60, 'MB');
    tell('live list: heap, more than at the beginning', heap - before.JSHeapUsedSize / 1e6, 3, 'MB');
    await context.close();
  },
  async map() {
    const { context, page } = await person();
    const news = mapNews(page);
    await page.goto(`${address}/jobs`);
    await rowsThere(page);
    const size = await page.evaluate(async () => { await (await fetch('/api/portal/v1/topology')).text(); return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/topology')).at(-1).encodedBodySize; });
    tell('map: answer, gzip', size / 1000, 150, 'kB');
    const drawn = "() => { const c = document.querySelector('.map-canvas'); return c && c.width > 300 && c.getContext('2d', { willReadFrequently: false }).getImageData(30, 60, 120, 120).data.some((x) => x); }";
    const paints = [];
    for (let i = 0; i < 5; i++) {
      paints.push(await until(page, "() => document.querySelector('nav a[href$=\"/topology\"]').click()", drawn));
      await page.evaluate(() => document.querySelector('nav a[href$="/jobs"]').click());
      await rowsThere(page);
    }
    tell('map: first paint', median(paints), 800, 'ms');
    await page.evaluate(() => document.querySelector('nav a[href$="/topology"]').click());
    await page.waitForFunction(new Function(`return (${drawn})()`));
    await idle(page);
    const fps = await page.evaluate(async () => { const box = document.querySelector('.map'); let frames = 0; const begun = performance.now(); while (performance.now() - begun < 3000) { box.scrollTop = (box.scrollTop + 40) % Math.max(1, box.scrollHeight - box.clientHeight); await new Promise(requestAnimationFrame); frames++; } return (frames * 1000) / (performance.now() - begun); });
    tell('map: panning', fps, 30, 'frames/s', true);
    const zooming = await page.evaluate(async () => { const box = document.querySelector('.map'); const r = box.getBoundingClientRect(); let frames = 0; const begun = performance.now(); while (performance.now() - begun < 3000) { box.dispatchEvent(new WheelEvent('wheel', { ctrlKey: true, deltaY: frames % 16 < 8 ? -1 : 1, clientX: r.left + 300, clientY: r.top + 200, bubbles: true, cancelable: true })); await new Promise(requestAnimationFrame); frames++; } return (frames * 1000) / (performance.now() - begun); });
    tell('map: zooming', zooming, 30, 'frames/s', true);
    // The whole map is drawn once more a fifth of a second after the last step.
    await page.waitForTimeout(500);
    // 125 nodes with 8 GPUs change at once: each task of the page until it is drawn.
    const tasks = await tasksOf(browser, page, async () => {
      await ask('@cordon 125 on');
      await news.heard(125);
      await page.evaluate(async () => { for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); });
    });
    tell('map: 1,000 GPUs change, longest task', Math.max(...tasks), 16, 'ms');
    await ask('@cordon 125 off');
    await context.close();
  },
  async tasks() {
    const { context, page } = await person();
    await page.goto(`${address}/jobs`);
    await page.locator('tbody tr[data-id]').first().waitFor();
    const spans = [];
    for (let i = 0; i < 5; i++) {
      spans.push(await until(page, "() => document.querySelector('tbody tr[data-id$=wide] .name a').click()", "() => document.querySelector('h1')?.textContent.includes('wide') && document.querySelectorAll('section.card tbody tr').length > 3"));
      await page.evaluate(() => history.back());
      await page.locator('tbody tr[data-id]').first().waitFor();
    }
    tell('job of 2,000 tasks: its page', median(spans), 500, 'ms');
    const tabs = [];
    for (let i = 0; i < 10; i++) { const p = await context.newPage(); await p.goto(`${address}/jobs/default/job/wide`); await p.getByRole('heading', { name: /wide/ }).waitFor(); tabs.push(p); }
    await page.waitForTimeout(3000);
    const used = Number(await ask('@cpu'));
    await page.waitForTimeout(15_000);
    tell('ten open pages of it: processor', ((Number(await ask('@cpu')) - used) / 15) * 100, 10, '% of a core');
    await context.close();
  },
  async log() {
    const { context, page } = await person();
    await page.goto(`${address}/jobs/default/pod/talks/logs`);
    await page.locator('.log .line').nth(3).waitFor();
    const late = await page.evaluate(async () => {
      const spans = [];
      let last = '';
      const end = performance.now() + 10_000;
      while (performance.now() < end) {
        const text = [...document.querySelectorAll('.log .line')].at(-1)?.textContent ?? '';
        const at = /line (\d{13})\d{6}/.exec(text)?.[1];
        if (at && at !== last) { last = at; spans.push(Date.now() - Number(at)); }
        await new Promise(requestAnimationFrame);
      }
      return spans.slice(3).sort((a, b) => a - b);
    });
    tell('log line printed to on screen: median', late[late.length >> 1], 500, 'ms');
    tell('log line printed to on screen: longest', late.at(-1), 500, 'ms');
    await context.close();
  },
};
let failed = 0;
for (const part of parts) {
  try { await measures[part](); } catch (e) { failed++; process.stdout.write(`${part}: ${String(e.stack).replaceAll('\n', ' ')}\n`); }
}
await browser.close();
process.exit(failed ? 1 : 0);
