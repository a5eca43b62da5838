/** How programs look at the portal's pages, whichever starts the browser. */

/** Processor time in ms of each task of the page's main thread while `during` runs, from the browser's own trace. */
export async function tasksOf(browser, page, during) {
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata'] });
  await during();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const mains = traceEvents.filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map((e) => `${e.pid}/${e.tid}`);
  const tasks = traceEvents.filter((e) => e.name === 'RunTask' && e.tdur !== undefined);
  // The page that was looked at is the renderer that had most to do.
  const busiest = mains.map((m) => tasks.filter((e) => `${e.pid}/${e.tid}` === m)).sort((a, b) => b.length - a.length)[0] ?? [];
  return busiest.map((e) => e.tdur / 1000);
}

/** What the page is told of the map from now on; `states` counts the nodes whose state changed, and `heard(n)` is kept once it has been told
    of so many. Before the page opens its socket. */
export function mapNews(page) {
  const waiting = [];
  const told = { states: 0, owners: 0, heard: (states, ms = 30_000) => new Promise((done, fail) => {
    const late = setTimeout(() => fail(new Error(`the map was told of ${told.states} nodes of ${states} within ${ms} ms`)), ms);
    waiting.push(() => { if (told.states < states) return false; clearTimeout(late); done(); return true; });
    if (waiting.at(-1)()) waiting.pop();
  }) };
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => {
    const patch = /"patch":\{/.test(payload) ? JSON.parse(payload).patch : null;
    if (!patch) return;
    told.states += patch.states.length / 2;
    told.owners += patch.owner.length / 2;
    for (let i = waiting.length - 1; i >= 0; i--) if (waiting[i]()) waiting.splice(i, 1);
  }));
  return told;
}

/** The answer of GET topology as lists (web/src/shapes/topology.ts): who is on each GPU, which GPU of which node is which, and the jobs. */
export function readMap(map) {
  const runs = (coded) => coded.flatMap((v, i) => (i % 2 ? [] : Array(coded[i + 1]).fill(v)));
  const names = ({ stems, widths, stem, number }) => {
    let sum = 0;
    let next = 0;
    return stem.map((s) => stems[s] + (widths[s] ? String((sum += number[next++])).padStart(widths[s], '0') : ''));
  };
  const owner = [];
  let highest = 0;
  map.owner.who.forEach((who, i) => {
    const job = who === 0 ? 0 : highest + 2 - Math.abs(who);
    highest = Math.max(highest, job);
    for (let k = 0; k < map.owner.count[i]; k++) owner.push(Math.sign(who) * job);
  });
  const first = {};
  let sum = 0;
  const gpus = runs(map.gpus);
  names(map.nodes).forEach((name, i) => { first[name] = sum; sum += gpus[i]; });
  return { owner, first, states: runs(map.states), jobs: names(map.jobs.ids).map((id, i) => ({ id, ...map.jobs.sorts[map.jobs.sort[i]] })) };
}
