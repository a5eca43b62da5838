// Checks of the portal in Chromium on a small cluster: signing in, every page, people, jobs, lists, forms, narrow screens, a crash.
import { address, api, ask, audited, axe, check, editorText, eventually, password, person, play, seen, settled, signIn, submit, tabOf, within, writeEditor } from './page.mjs';
import { readFileSync } from 'node:fs';

const job = (name, gpus, command, extra = '') => `apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
  namespace: default
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations: {note: '<img src=x onerror=alert(1)>'}
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: python
          command: [sh, -c, ${JSON.stringify(command)}]
          resources: {limits: {nvidia.com/gpu: ${gpus}}}
${extra}`;

let admin;
const PAGES = ['/', '/jobs', '/history', '/submit', '/topology', '/timeline', '/queues', '/nodes', '/events', '/whatif', '/sim', '/profile', '/admin/users', '/admin/groups', '/admin/scheduler', '/admin/services', '/admin/audit'];
const parts = {
  async sign_in() {
    admin = await person();
    await signIn(admin, 'admin', 'wrong-password', '/jobs?state=RUNNING');
    await admin.getByRole('alert').waitFor();
    check('14 a wrong password keeps the name and says so', (await admin.getByLabel('User name').inputValue()) === 'admin');
    await admin.getByLabel('Password').fill(password);
    await admin.keyboard.press('Enter');
    await admin.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    check('14 after signing in with the printed password one is where the link led', admin.url() === `${address}/jobs?state=RUNNING`, admin.url());
    check('8 script sees no cookie and storage holds no token', await admin.evaluate(() => document.cookie === '' && ![...Object.values(localStorage), ...Object.values(sessionStorage)].some((v) => v.length > 40)));
    for (const next of ['//evil.example', 'https://evil.example', '/\\evil.example']) {
      await admin.goto(`${address}/login?next=${encodeURIComponent(next)}`);
      await admin.waitForURL(`${address}/`);
    }
    check('13 next leads nowhere else', true);
    for (const next of ['//evil.example', 'https://evil.example']) {
      const guest = await person();
      await signIn(guest, 'admin', password, `/login?next=${encodeURIComponent(next)}`);
      await guest.getByRole('heading', { name: 'Home' }).waitFor();
      check(`13 nor does it after signing in, for ${next}`, guest.url() === `${address}/`, guest.url());
      await guest.context().close();
    }
  },
  async pages() {
    for (const theme of ['light', 'dark']) {
      await admin.evaluate((v) => localStorage.setItem('theme', v), theme);
      for (const at of PAGES) {
        await admin.goto(address + at);
        const h1 = await eventually(async () => (await admin.locator('h1').first().innerText()).trim());
        check(`4 ${at} shows itself, ${theme}`, !!h1, await admin.locator('body').innerText());
      }
    }
    await admin.goto(`${address}/submit`);
    const styled = await eventually(() => admin.evaluate(() => { const s = document.querySelector('.editor')?.shadowRoot; const g = s?.querySelector('.cm-gutters'); return g && getComputedStyle(g).display === 'flex'; }));
    check('4 the editor is styled', !!styled);
    check('4 nothing breaks the policy', seen.policy.length === 0, seen.policy.join(' | '));
    check('4 no errors on the console', seen.errors.filter((e) => !/401|Failed to load resource.*40[14]/.test(e)).length === 0, () => seen.errors.join(' | '));
    check('5 all requests go to the own origin', seen.foreign.length === 0, seen.foreign.join(' '));
  },
  async people() {
    await admin.goto(`${address}/admin/users`);
    await admin.getByRole('button', { name: 'Add User' }).click();
    await admin.getByLabel('User Name').fill('alice');
    await admin.getByLabel('Password').fill('five5');
    await admin.getByRole('button', { name: 'Save' }).click();
    check('15 a password of five letters is refused in place', /six/.test(await admin.getByRole('alert').innerText()));
    await admin.getByLabel('Password').fill('alice-password');
    await admin.getByRole('button', { name: 'Save' }).click();
    await admin.getByRole('cell', { name: 'alice', exact: true }).waitFor();
    check('15 alice is in the list', true);
    await admin.getByRole('button', { name: 'Add User' }).click();
    await admin.getByLabel('User Name').fill('alice');
    await admin.getByLabel('Password').fill('alice-password');
    await admin.getByRole('button', { name: 'Save' }).click();
    check('15 a name that is taken shows the REST text', (await admin.getByRole('alert').innerText()).includes('User name alice already exists.'), await admin.getByRole('dialog').innerText());
    await admin.keyboard.press('Escape');
    await admin.getByRole('button', { name: 'Create Bulk Users' }).click();
    await admin.getByLabel('CSV').fill('carol,secret-1,,false,\ndan,x,,,');
    check('15 the preview has an error for the line that is wrong', /six characters/.test(await admin.getByRole('dialog').innerText()));
    await admin.getByRole('button', { name: 'Create 1 user' }).click();
    await admin.getByText('created', { exact: true }).waitFor();
    await admin.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    const alice = await person();
    await signIn(alice, 'alice', 'alice-password');
    await alice.getByRole('heading', { name: 'Home' }).waitFor();
    check('16 alice has no Administration', (await alice.getByText('Administration').count()) === 0);
    await alice.goto(`${address}/admin/users`);
    check('16 the page says why', !!(await eventually(async () => /administrators/.test(await alice.locator('h1').innerText()))));
    const token = (await (await fetch(`${address}/rest-server/api/v2/authn/basic/login`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ username: 'alice', password: 'alice-password' }) })).json()).token;
    const rest = await fetch(`${address}/rest-server/api/v2/users`, { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ username: 'eve', password: 'eve-password', email: '', admin: false, virtualCluster: [] }) });
    check('16 REST answers 403', rest.status === 403 && (await rest.json()).code === 'ForbiddenUserError', rest.status);
    const second = await person();
    await signIn(second, 'alice', 'alice-password');
    await second.getByRole('heading', { name: 'Home' }).waitFor();
    await alice.goto(`${address}/profile`);
    await alice.getByLabel('Current password').fill('alice-password');
    await alice.getByLabel('New password').fill('alice-password-2');
    await alice.getByLabel('Confirm password').fill('alice-password-2');
    await alice.getByRole('button', { name: 'Change password' }).click();
    check('19 a new password ends the other session within 2 s', !!(await eventually(() => second.getByRole('button', { name: 'Sign in', exact: true }).isVisible(), within(2000))));
    check('19 and keeps this one', (await api(alice, 'GET', '/session')).body.user === 'alice');
    await alice.context().close();
    await second.context().close();
  },
  async jobs() {
    await admin.goto(`${address}/jobs`);
    const first = await submit(admin, job('first', 4, 'echo begun; n=0; while true; do n=$((n+1)); echo "line $n <img src=x onerror=alert(1)>"; sleep 0.2; done'));
    const began = await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(first)}`)).body.row.state === 'RUNNING', 20_000);
    check('a job submitted by the portal runs', !!began);
    const shown = await eventually(() => admin.locator(`tr[data-id="${first}"]`).getByText('Running').isVisible(), within(1000));
    check('31 its state is on screen within a second', !!shown, await admin.locator('main').innerText());
    const big = await submit(admin, job('too-many', 4, 'sleep 1', ''));
    void big;
    const rest = []; for (const n of [1, 2, 3]) rest.push(await submit(admin, job(`waits-${n}`, 4, 'sleep 2')));
    await admin.goto(`${address}/jobs/${rest.at(-1)}`);
    check('33 the page of a waiting job says why', !!(await eventually(() => admin.getByRole('heading', { name: 'Why it waits' }).isVisible())) , await admin.locator('main').innerText());
    check('33 without known durations there is no estimate', /No estimate: durations unknown/.test(await admin.locator('main').innerText()));
    await admin.goto(`${address}/jobs/${first}/logs`);
    check('35 the log follows', !!(await eventually(async () => { const n = await admin.locator('.log .line').count(); return n > 2 && (await admin.locator('.log').innerText()).includes('<img src=x onerror=alert(1)>'); })), await admin.locator('main').innerText());
    check('11 markup in a log is text', (await admin.locator('.log img').count()) === 0);
    const popup = await tabOf(admin);
    const tasks = (await api(admin, 'GET', `/tasks/${encodeURIComponent(first)}`)).body.rows;
    await popup.goto(`${address}/terminal?job=${encodeURIComponent(first)}&task=${encodeURIComponent(tasks[0].id)}&command=sh`);
    await eventually(async () => (await popup.locator('.xterm-rows').innerText()).trim() !== '');
    await popup.keyboard.type('echo $((6*7))\n');
    check('36 the terminal answers 42', !!(await eventually(async () => (await popup.locator('.xterm-rows').innerText()).includes('42'))), await popup.locator('body').innerText());
    await popup.context().close();
    await admin.goto(`${address}/submit?clone=${encodeURIComponent(first)}`);
    const yaml = await eventually(() => editorText(admin));
    check('37 a clone opens the YAML', /kind: Job/.test(yaml ?? ''), yaml);
    await admin.goto(`${address}/jobs/${first}`);
    await admin.getByRole('button', { name: 'Stop job' }).click();
    check('the dialog names the job and does not offer stopping first', /first/.test(await admin.getByRole('dialog').innerText()) && !!(await eventually(async () => (await admin.evaluate(() => document.activeElement?.textContent)) === 'Keep it')));
    await admin.getByRole('dialog').getByRole('button', { name: 'Stop job' }).click();
    check('it stops', !!(await eventually(async () => { const r = await api(admin, 'GET', `/jobs/${encodeURIComponent(first)}`); return r.status === 404 || !['RUNNING', 'STOPPING'].includes(r.body.row.state); }, 20_000)));
    const bad = await submit(admin, job('fails', 1, 'exit 127'));
    await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(bad)}`)).body.row.state === 'FAILED', 30_000);
    await admin.goto(`${address}/jobs/${bad}`);
    await admin.goto(`${address}/jobs`);
    await admin.locator('tbody tr[data-id]').first().waitFor();
    for (const [name, command, state, word] of [['ends-well', 'sleep 1', 'SUCCEEDED', 'Succeeded'], ['ends-badly', 'sleep 1; exit 1', 'FAILED', 'Failed']]) {
      const id = await submit(admin, job(name, 1, command));
      await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(id)}`)).body.row.state === state, 30_000);
      await admin.mouse.move(5, 5);
      check(`31 ${word} is on screen within a second`, !!(await eventually(() => admin.locator(`tr[data-id="${id}"]`).getByText(word, { exact: true }).isVisible(), within(1000))), await admin.locator('main').innerText());
    }
    await admin.goto(`${address}/jobs/${bad}`);
    check('38 exit code 127 shows reason and advice', !!(await eventually(async () => /127/.test(await admin.locator('main').innerText()))), await admin.locator('main').innerText());
  },
  async list() {
    await admin.goto(`${address}/jobs`);
    await admin.getByRole('button', { name: 'Duration' }).click();
    await admin.getByRole('link', { name: /^Failed/ }).click();
    await admin.locator('[data-find]').fill('fail');
    await admin.waitForURL(/q=fail/);
    const url = admin.url();
    const rows = await eventually(async () => { const texts = await admin.locator('tbody tr[data-id]').allInnerTexts(); return texts.length === 1 ? texts : null; }) ?? [];
    await admin.reload();
    await admin.locator('tbody tr[data-id]').first().waitFor();
    check('27 filters and sort survive a reload', rows.length === 1 && !!(await eventually(async () => (await admin.locator('tbody tr[data-id]').count()) === rows.length && admin.url() === url)), url);
    await admin.keyboard.press('?');
    check('the sheet of shortcuts opens', !!(await eventually(() => admin.getByRole('dialog', { name: 'Keyboard shortcuts' }).isVisible())));
    await admin.keyboard.press('Escape');
    await admin.getByRole('dialog').waitFor({ state: 'detached' });
    await admin.keyboard.press('g');
    await admin.keyboard.press('t');
    await admin.waitForURL(/topology/);
    check('g t leads to the map', true);
    await admin.keyboard.press('Control+k');
    await admin.getByRole('combobox').fill('audit');
    await admin.keyboard.press('Enter');
    check('the palette leads to pages', !!(await eventually(() => /audit/.test(admin.url()))), admin.url());
  },
  async form() {
    await admin.goto(`${address}/submit?template=distributed`);
    const before = await eventually(async () => { const s = await editorText(admin); return s?.includes('# All of them start together') ? s : null; });
    await admin.getByLabel('Tasks', { exact: true }).fill('5');
    const text = await eventually(async () => { const s = await editorText(admin); return s?.includes('instances: 5') ? s : null; });
    check('39 a form edit changes its line and comments stay', !!text && text.includes('# All of them start together'), text);
    const lines = (s) => (s ?? '').split('\n');
    const other = lines(text).map((l, i) => [lines(before)[i], l]).filter(([a, b]) => a !== b);
    check('39 and no other line', lines(before).length === lines(text).length && other.length === 1 && /^\s*instances: \d+$/.test(other[0][0]) && /^\s*instances: 5$/.test(other[0][1]), JSON.stringify(other));
  },
  /** What is wrong with a manifest is marked where it stands, in the words of REST or of the API server. */
  async findings() {
    const pytorch = (spec) => `apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: marks, namespace: default}\nspec:\n  pytorchReplicaSpecs:\n    Master:\n${spec}`;
    const template = '      template:\n        spec:\n          containers:\n          - name: pytorch\n            image: python\n';
    const mpi = (spec) => `apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: marks, namespace: default}\nspec:\n  mpiReplicaSpecs:\n    Launcher:\n${spec}`;
    const pai = (role, more = '') => `protocolVersion: 2\nname: marks\ntype: job\nprerequisites:\n- {protocolVersion: 2, name: image, type: dockerimage, uri: python}\ntaskRoles:\n  train:\n${role}${more}`;
    const role = '    instances: 1\n    dockerImage: image\n    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 1}\n    commands: [sleep 1]\n';
    const cases = [
      ['OpenPAI, an unknown key', pai(`${role}    colour: red\n`), 12, 5],
      ['OpenPAI, a wrong type', pai(role.replace('instances: 1', 'instances: many')), 8, 5],
      ['OpenPAI, a missing field', pai(role.replace('    dockerImage: image\n', '')), 7, 3],
      ['PyTorchJob, an unknown key', pytorch(`      replicas: 1\n      colour: red\n${template}`), 8, 7],
      ['PyTorchJob, a wrong type', pytorch(`      replicas: many\n${template}`), 7, 7],
      ['PyTorchJob, a missing field', pytorch('      replicas: 1\n'), 6, 5],
      ['MPIJob, an unknown key', mpi(`      replicas: 1\n      colour: red\n${template}`), 8, 7],
      ['MPIJob, a wrong type', mpi(`      replicas: many\n${template}`), 7, 7],
      ['MPIJob, a missing field', mpi('      replicas: 1\n'), 6, 5], // which the API server takes, and its controller does not
    ];
    await admin.goto(`${address}/submit`);
    for (const [i, [what, marks, line, col]] of cases.entries()) {
      const text = marks.replace('name: marks', `name: marks-${i}`);
      await writeEditor(admin, text);
      const found = (await api(admin, 'POST', '/check', text)).body.diagnostics;
      const said = found?.[0];
      check(`40 ${what} is marked at ${line}:${col}`, said?.line === line && said?.col === col, JSON.stringify(found));
      const shown = await eventually(async () => { const list = await admin.locator('ul.in li').allInnerTexts(); return list.some((l) => l.includes(said?.message ?? '?')) ? list : null; });
      check(`40 ${what} is shown beneath the editor`, !!shown, said?.message);
      const refused = await api(admin, 'POST', '/jobs', text);
      const words = String(refused.body.message ?? '');
      // What the API server takes with a warning, kubectl refuses: it asks for strict reading.
      const strict = what.includes('unknown') && !what.startsWith('OpenPAI') ? await ask(`@kubectl ${JSON.stringify(text)}`) : '';
      const event = what.startsWith('MPIJob, a missing') ? await eventually(async () => (await api(admin, 'GET', `/events?q=marks-${i}`)).body.rows.map((r) => r.message).find((m) => m.includes('Required value'))) : '';
      const same = event ? event.includes(said?.message) : what.startsWith('OpenPAI') ? words.includes(said?.message.replace(/: colour$/, '')) : strict ? strict.includes(said?.message) : refused.status >= 400 && (words.includes(said?.message.split(': ').slice(1).join(': ')) || words.includes(said?.message));
      check(`40 ${what}: the words are those of submitting`, same, `${said?.message} | ${refused.status} ${words} | ${strict}${event}`);
      if (refused.status < 300) await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [refused.body.id] });
    }
    check('40 the line is marked in the editor', !!(await eventually(() => admin.evaluate(() => !!document.querySelector('.editor').shadowRoot.querySelector('.cm-lint-marker-error')))));
  },
  async map() {
    await admin.goto(`${address}/topology`);
    check('45 the map is there as a table', !!(await eventually(async () => { await admin.getByRole('button', { name: 'As table' }).click(); return (await admin.locator('tbody tr').count()) >= 3; })));
  },
  async narrow() {
    // A zoom of 200 % leaves half of the width and height, drawn with twice the pixels.
    for (const [how, options] of [['at 320 px', { viewport: { width: 320, height: 700 } }], ['at 200 %', { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }]]) {
      const other = await tabOf(admin, options);
      for (const at of PAGES) {
        await other.goto(address + at);
        const shown = await settled(other);
        const over = await other.evaluate(() => ({ by: document.documentElement.scrollWidth - innerWidth, widest: [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.table, .map, .gantt-box, .scroll')).slice(0, 3).map((e) => `${e.tagName}.${e.className}`) }));
        check(`56 ${at} does not scroll sideways ${how}`, shown && over.by <= 0, `${over.by} px ${over.widest}`);
        // What is hidden behind the edge of a card makes no page scroll.
        const cut = await other.evaluate(() => [...document.querySelectorAll('main :is(button, input, select, textarea, a, .editor)')].filter((e) => {
          const r = e.getBoundingClientRect();
          if (!r.width || e.closest('.sr')) return false;
          for (let up = e.parentElement; up; up = up.parentElement) if (/auto|scroll/.test(getComputedStyle(up).overflowX) && up.scrollWidth > up.clientWidth) return false;
          return r.left < -1 || r.right > innerWidth + 1 || (e.matches('.editor') && r.width < innerWidth / 2) || (() => { for (let up = e.parentElement; up; up = up.parentElement) { const b = up.getBoundingClientRect(); if (/hidden|clip/.test(getComputedStyle(up).overflowX) && (r.right > b.right + 1 || r.left < b.left - 1)) return true; } return false; })();
        }).slice(0, 4).map((e) => `${e.tagName} "${e.textContent.trim().slice(0, 30)}" ${JSON.stringify(e.getBoundingClientRect())}`));
        check(`56 nothing that can be used is cut off on ${at} ${how}`, cut.length === 0, cut.join(' | '));
      }
      const id = (await api(admin, 'GET', '/jobs?limit=1')).body.rows[0]?.id;
      for (const at of id ? [`/jobs/${id}/config`, '/jobs?state=SUSPENDED'] : []) {
        await other.goto(address + at);
        const open = other.locator('nav:not(.menu) a[aria-current]').first();
        await open.waitFor();
        const seen = () => open.evaluate((a) => { const r = a.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth; });
        check(`56 the open tab of ${at} is in view ${how}`, !!(await eventually(seen, 5000)), async () => JSON.stringify(await open.boundingBox()));
      }
      // What is below the fold can be reached, also in a dialog that is higher than the screen.
      await other.goto(`${address}/admin/users`);
      await other.getByRole('button', { name: 'Add User' }).click();
      const save = other.getByRole('dialog').getByRole('button', { name: 'Save' });
      await save.scrollIntoViewIfNeeded();
      const box = await save.boundingBox();
      check(`56 a dialog can be used to its end ${how}`, !!box && box.y >= 0 && box.y + box.height <= options.viewport.height && box.x >= 0 && box.x + box.width <= options.viewport.width, JSON.stringify(box));
      await other.context().close();
    }
  },
  /** Whoever asks for less motion gets none. */
  async motion() {
    const moves = () => [...document.querySelectorAll('*')].flatMap((e) => { const s = getComputedStyle(e); return [s.transitionDuration, s.animationDuration].some((d) => d.split(',').some((x) => parseFloat(x) > 0)) || s.scrollBehavior === 'smooth' ? [`${e.tagName}.${e.className}`] : []; });
    const usual = await tabOf(admin);
    await usual.goto(`${address}/jobs`);
    await settled(usual);
    check('56 usually something fades', (await usual.evaluate(moves)).length > 0);
    await usual.context().close();
    const still = await tabOf(admin, { reducedMotion: 'reduce' });
    for (const at of PAGES) {
      await still.goto(address + at);
      await settled(still);
      const found = await still.evaluate(moves);
      check(`56 nothing moves on ${at} for whoever wants that`, found.length === 0, found.slice(0, 5).join());
    }
    await still.keyboard.press('?');
    await still.getByRole('dialog').waitFor();
    check('56 nor in a dialog', (await still.evaluate(moves)).length === 0 && (await still.evaluate(() => document.getAnimations().length)) === 0, async () => (await still.evaluate(moves)).join());
    await still.context().close();
  },
  async axe() {
    for (const theme of ['light', 'dark']) {
      await admin.evaluate((v) => localStorage.setItem('theme', v), theme);
      for (const at of PAGES) {
        await admin.goto(address + at);
        await settled(admin);
        const found = await axe(admin);
        check(`55 axe finds nothing serious on ${at}, ${theme}`, found.length === 0, found.join(' | '));
      }
    }
    await admin.evaluate(() => localStorage.setItem('theme', 'light'));
  },
  /** Pages that are about one thing, and those that need nobody to be signed in. */
  async axe_objects() {
    const held = await submit(admin, job('looked-at', 1, 'echo line; sleep 600'));
    await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(held)}`)).body.row.state === 'RUNNING', 20_000);
    const waits = await submit(admin, job('waits-looked-at', 5, 'sleep 1')); // no node has so many
    const task = (await api(admin, 'GET', `/tasks/${encodeURIComponent(held)}`)).body.rows[0].id;
    const of = encodeURIComponent(held);
    const stranger = await person();
    const cases = [
      ...['', '/tasks', '/timeline', '/events', '/logs', '/config'].map((tab) => [admin, `/jobs/${held}${tab}`]),
      [admin, `/jobs/${waits}`], [admin, `/jobs?sel=${encodeURIComponent(waits)}`], [admin, '/jobs?group=user'], [admin, '/jobs?q=nothing-has-this-name'],
      [admin, `/topology?sel=${of}`], [admin, '/topology?view=table'], [admin, '/nodes/node-0'], [admin, '/queues/default'], [admin, `/submit?clone=${of}`],
      [admin, '/jobs/default/job/never-was'], [admin, '/no-such-page'], [stranger, '/login'], [stranger, '/login?next=/jobs'],
    ];
    for (const theme of ['light', 'dark']) {
      for (const page of [admin, stranger]) { await page.goto(`${address}/login`); await page.evaluate((v) => localStorage.setItem('theme', v), theme); }
      for (const [page, at] of cases) {
        await page.goto(address + at);
        await page.locator('h1').first().waitFor();
        await settled(page);
        const found = await axe(page);
        check(`55 axe finds nothing serious on ${at}, ${theme}`, found.length === 0, found.join(' | '));
      }
    }
    const terminal = await tabOf(admin);
    await terminal.goto(`${address}/terminal?job=${of}&task=${encodeURIComponent(task)}&command=sh`);
    await eventually(async () => (await terminal.locator('.xterm-rows').innerText()).trim() !== '');
    const found = await axe(terminal);
    check('55 axe finds nothing serious in the terminal', found.length === 0, found.join(' | '));
    await terminal.context().close();
    await stranger.context().close();
    await admin.evaluate(() => localStorage.setItem('theme', 'light'));
    await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [held, waits] });
  },
  /** Every dialog that can be opened here, in both themes. Those of the cells are in lab.mjs, those of forecasts in answers.mjs, that for all that match in crowd.mjs. */
  async dialogs() {
    await api(admin, 'POST', '/pai/users', { username: 'to-remove', password: 'some-password', email: '', admin: false, virtualCluster: [] });
    await api(admin, 'POST', '/pai/groups', { groupname: 'to-remove', description: 'x', externalName: '', extension: {} });
    const held = await submit(admin, job('in-dialogs', 1, 'sleep 600'));
    await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(held)}`)).body.row.state === 'RUNNING', 20_000);
    const waits = await submit(admin, job('waits-in-dialogs', 5, 'sleep 1')); // no node has so many
    const press = (name, scope = admin) => scope.getByRole('button', { name: new RegExp(`^${name}`) }).first().click();
    const row = (text) => admin.locator('tbody tr', { hasText: text }).first();
    const cases = {
      'adding a user': ['/admin/users', () => press('Add User')],
      'users from a CSV': ['/admin/users', async () => { await press('Create Bulk Users'); await admin.getByLabel('CSV').fill('carol2,secret-1,,false,\ndan,x,,,'); }],
      'editing a user': ['/admin/users', () => press('Edit', row('to-remove'))],
      'removing a user': ['/admin/users', () => press('Remove', row('to-remove'))],
      'a password for several users': ['/admin/users', async () => { await row('to-remove').getByRole('checkbox').check(); await press('Set password'); }],
      'virtual clusters for several users': ['/admin/users', async () => { await row('to-remove').getByRole('checkbox').check(); await press('Set virtual clusters'); }],
      'adding a group': ['/admin/groups', () => press('Add group')],
      'editing a group': ['/admin/groups', () => press('Edit', row('to-remove'))],
      'removing a group': ['/admin/groups', () => press('Remove', row('to-remove'))],
      'making a queue': ['/queues', () => press('Create queue')],
      'draining a node': ['/nodes/node-0', () => press('Drain')],
      'stopping a job': [`/jobs/${held}`, () => press('Stop job')],
      'tagging jobs': ['/jobs?q=in-dialogs', async () => { await admin.locator('tbody input[type=checkbox]').first().check(); await admin.getByRole('toolbar').getByRole('button', { name: 'Tag', exact: true }).click(); }],
      'stopping several jobs': ['/jobs?q=in-dialogs', async () => { for (const box of await admin.locator('tbody input[type=checkbox]').all()) await box.check(); await admin.getByRole('toolbar').getByRole('button', { name: 'Stop', exact: true }).click(); }],
      'the nodes of a cause': [`/jobs/${waits}`, () => admin.locator('.causes button, button.cause').first().click()],
      'a job that can never run': ['/submit', async () => {
        await writeEditor(admin, job('never-in-dialogs', 5, 'sleep 1'));
        await eventually(async () => /Can never run/.test(await admin.getByRole('status', { name: 'Decision' }).innerText()));
        await admin.getByRole('button', { name: 'Submit', exact: true }).click();
      }],
      'a simulation': ['/sim', () => press('New simulation')],
      'the shortcuts': ['/', () => admin.keyboard.press('?')],
      'the palette': ['/', () => admin.keyboard.press('Control+k')],
    };
    for (const theme of ['light', 'dark']) {
      await admin.evaluate((v) => localStorage.setItem('theme', v), theme);
      for (const [what, [at, open]] of Object.entries(cases)) {
        await admin.goto(address + at);
        await settled(admin);
        try { await open(); await admin.getByRole('dialog').waitFor(); } catch (e) { check(`55 ${what}: the dialog opens`, false, `${e.message} ${await admin.locator('main').innerText()}`); continue; }
        await settled(admin);
        const found = await axe(admin);
        check(`55 axe finds nothing serious in the dialog for ${what}, ${theme}`, found.length === 0, found.join(' | '));
        await admin.keyboard.press('Escape');
        check(`55 Escape closes the dialog for ${what}, ${theme}`, !!(await eventually(async () => (await admin.getByRole('dialog').count()) === 0)));
      }
    }
    await admin.evaluate(() => localStorage.setItem('theme', 'light'));
    await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [held, waits] });
  },
  /** What is kept of a job outlives its object. */
  async records() {
    const id = await submit(admin, job('outlived', 1, 'exit 3'));
    await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(id)}`)).body.row.state === 'FAILED', 30_000);
    await admin.evaluate(() => fetch('/kube/apis/batch/v1/namespaces/default/jobs/outlived?propagationPolicy=Background', { method: 'DELETE' }));
    await eventually(async () => (await api(admin, 'GET', `/jobs/${encodeURIComponent(id)}`)).status === 404, 20_000);
    await admin.goto(`${address}/history?name=outlived`);
    check('the history lists a job that was deleted', !!(await eventually(async () => (await admin.locator(`tr[data-id="${id}"]`).count()) === 1)), await admin.locator('main').innerText());
    await admin.getByRole('link', { name: 'outlived' }).click();
    const page = await eventually(async () => { const said = await admin.locator('main').innerText(); return /deleted/.test(said) && /Attempts/.test(said) ? said : null; }) ?? await admin.locator('main').innerText();
    check('its page says how it ended, from its record', /outlived[^]*Failed[^]*deleted[^]*exit code 3/.test(page), page);
    check('with its attempt and where it ran', /node-\d[^]*failed/.test(page), page);
    const bars = await admin.locator('svg .seg-running').count();
    check('and its timeline', bars > 0, page);
    await admin.goto(`${address}/jobs/default/job/never-was`);
    check('of a job that never was it says so', !!(await eventually(async () => /there is no job "default\/job\/never-was"/.test(await admin.getByRole('alert').innerText()))), await admin.locator('main').innerText());
  },
  /** Who did what, to what, from where and with which result; what is saved can be read by a program. */
  async audit() {
    const name = 'audited';
    await api(admin, 'POST', '/pai/users', { username: name, password: 'some-password', email: '', admin: false, virtualCluster: [] });
    const someone = await person();
    await signIn(someone, name, 'some-password');
    await someone.getByRole('heading', { name: 'Home' }).waitFor();
    const id = await submit(admin, job('audited-job', 1, 'sleep 600'));
    await api(admin, 'POST', '/jobs:act', { action: 'tag', ids: [id], value: 'seen' });
    await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [id] });
    await api(admin, 'PUT', '/views/mine', { path: '/jobs?state=RUNNING' });
    await api(someone, 'PUT', '/pai/users/me', { data: { username: name, newPassword: 'other-password', oldPassword: 'some-password' } });
    await api(someone, 'PUT', '/hived', { text: 'x', resourceVersion: '' });
    await someone.evaluate(() => fetch('/kube/api/v1/nodes/node-0', { method: 'DELETE' }));
    await api(admin, 'DELETE', `/pai/users/${name}`);
    await someone.context().close();
    const rows = (await eventually(async () => { const r = (await api(admin, 'GET', '/audit?limit=500')).body.rows; return r.some((x) => x.verb === 'DELETE' && x.object.includes(name)) ? r : null; })) ?? (await api(admin, 'GET', '/audit?limit=500')).body.rows;
    const deeds = {
      'adding a user': ['admin', 'POST', 'pai/users', (c) => c === 201],
      'signing in': [name, 'POST', 'session', (c) => c === 200],
      'submitting': ['admin', 'POST', 'jobs', (c) => c < 300],
      'acting on jobs': ['admin', 'POST', 'jobs:act', (c) => c === 200],
      'keeping a view': ['admin', 'PUT', 'views/mine', (c) => c < 300],
      'what is refused': [name, 'PUT', 'hived', (c) => c === 403],
      'what is refused by the cluster': [name, 'DELETE', '/kube/api/v1/nodes/node-0', (c) => c === 403],
      'removing a user': ['admin', 'DELETE', `pai/users/${name}`, (c) => c < 300],
    };
    for (const [what, [user, verb, object, good]] of Object.entries(deeds)) {
      const found = rows.find((r) => r.user === user && r.verb === verb && r.object === object && good(r.code));
      check(`54 ${what} is in the audit with user, object, result and address`, !!found && found.from === '127.0.0.1' && found.at > Date.now() - 600_000, () => JSON.stringify(rows.filter((r) => r.object.includes(object)).slice(0, 4)));
    }
    check('54 the stopped job itself is named', rows.some((r) => r.object.includes('audited-job') && r.user === 'admin'), () => JSON.stringify(rows.slice(0, 12)));
    check('54 no password is in it', !/some-password|other-password/.test(JSON.stringify(rows)));
    await admin.goto(`${address}/admin/audit?q=audited`);
    await admin.locator('tbody tr').first().waitFor();
    const saved = async (word) => { const [file] = await Promise.all([admin.waitForEvent('download'), admin.getByRole('button', { name: word, exact: true }).click()]); return readFileSync(await file.path(), 'utf8'); };
    const lines = (await saved('JSONL')).trim().split('\n').map((l) => JSON.parse(l));
    check('54 the JSONL parses and has every column', lines.length > 0 && lines.every((l) => ['at', 'user', 'from', 'verb', 'object', 'code', 'text'].every((k) => k in l)), () => JSON.stringify(lines[0]));
    const csv = (await saved('CSV')).trim().split(/\r?\n/);
    await audited(admin);
    check('54 so does the CSV', csv[0].replaceAll('"', '') === 'time,user,from,verb,object,code,text' && csv.length === lines.length + 1, csv.slice(0, 2).join(' | '));
  },
  /** From signing in to a stopped job, with no pointer. */
  async keyboard() {
    const hands = await person();
    const press = (key) => hands.keyboard.press(key);
    const focused = () => hands.evaluate(() => { let e = document.activeElement; while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; return `${e?.tagName} ${e?.getAttribute('aria-label') ?? ''} ${e?.labels?.[0]?.textContent ?? ''} ${e?.textContent?.slice(0, 40) ?? ''}`; });
    const tabTo = async (what) => { for (let i = 0; i < 60; i++) { if (what.test(await focused())) return true; await press('Tab'); } return false; };
    await hands.goto(`${address}/login`, { waitUntil: 'networkidle' });
    await tabTo(/User name/);
    await hands.keyboard.type('admin');
    await press('Tab');
    await hands.keyboard.type(password);
    await press('Enter');
    const home = await hands.getByRole('heading', { name: 'Home' }).waitFor({ timeout: 30_000 }).then(() => true, () => false);
    check('55 by keys: signed in', home, `${hands.url()}, focus on ${await focused()}: ${await hands.locator('body').innerText()}`);
    await press('g');
    await press('s');
    await hands.getByRole('heading', { name: 'Submit Job' }).waitFor();
    await eventually(() => editorText(hands));
    check('55 by keys: to the form', await tabTo(/INPUT.*Name/), await focused());
    await press('Control+a');
    await hands.keyboard.type('by-keys');
    check('55 by keys: to the command', await tabTo(/Command/), await focused());
    await press('Control+a');
    await hands.keyboard.type('echo typed; sleep 600');
    await eventually(async () => /by-keys[^]*sleep 600/.test(await editorText(hands)));
    await press('Control+Enter');
    const id = await eventually(() => decodeURIComponent(/\/jobs\/(.+)$/.exec(hands.url())?.[1] ?? '') || null);
    check('55 by keys: submitted', !!id && /by-keys/.test(id), hands.url());
    await eventually(async () => (await api(hands, 'GET', `/jobs/${encodeURIComponent(id)}`)).body.row.state === 'RUNNING', 30_000);
    await press('l');
    check('55 by keys: its log', !!(await eventually(async () => /typed/.test(await hands.locator('.log').innerText()), 15_000)), await hands.locator('main').innerText());
    check('55 by keys: to Stop', await tabTo(/BUTTON.*Stop job/), await focused());
    await press('Enter');
    await hands.getByRole('dialog').waitFor();
    check('55 by keys: the dialog has the focus, and not on stopping', /Keep it/.test(await eventually(async () => (/Keep it/.test(await focused()) ? focused() : null)) ?? await focused()), await focused());
    await press('Tab');
    await press('Enter');
    check('55 by keys: it stops', !!(await eventually(async () => { const r = await api(hands, 'GET', `/jobs/${encodeURIComponent(id)}`); return r.status === 404 || !['RUNNING', 'WAITING'].includes(r.body.row.state); }, 20_000)));
    await hands.context().close();
  },
  /** What comes before the first page can be used; times are in bench/portal, on a machine that does nothing else. */
  async first_load() {
    const guest = await person();
    const got = [];
    guest.on('requestfinished', async (r) => { const { responseBodySize, responseHeadersSize } = await r.sizes(); got.push({ at: new URL(r.url()).pathname, kb: responseBodySize / 1000, all: (responseBodySize + responseHeadersSize) / 1000 }); });
    await signIn(guest, 'admin', password);
    await guest.getByRole('heading', { name: 'Home' }).waitFor();
    await settled(guest);
    await guest.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: /^Jobs/ }).click();
    await guest.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    await settled(guest);
    const sum = (what, of = 'kb') => got.filter((g) => what.test(g.at)).reduce((s, g) => s + g[of], 0);
    const files = got.filter((g) => !g.at.startsWith('/api/'));
    check(`57 sign in, Home and Jobs: scripts have ${sum(/\.js$/).toFixed(0)} kB (55), styles ${sum(/\.css$/).toFixed(1)} kB (10)`, sum(/\.js$/) > 0 && sum(/\.js$/) <= 55 && sum(/\.css$/) > 0 && sum(/\.css$/) <= 10, JSON.stringify(got));
    check(`57 they are ${files.length} files (8), and all of it is ${sum(/./, 'all').toFixed(0)} kB (90)`, files.length > 2 && files.length <= 8 && sum(/./, 'all') <= 90, JSON.stringify(got));
    await guest.context().close();
  },
  /** A chart appears once there are two samples. */
  async chart() {
    // What uPlot draws lies in layers above each other, which its style sheet does; its texts are drawn in the colour of the theme.
    for (const theme of ['light', 'dark']) {
      await admin.evaluate((v) => localStorage.setItem('theme', v), theme);
      const chart = await eventually(async () => { await admin.goto(`${address}/queues?hours=1`); await admin.locator('.uplot canvas').waitFor({ timeout: 3000 }); return admin.evaluate(() => {
        const box = document.querySelector('.uplot');
        const [wrap, canvas, over] = ['.u-wrap', 'canvas', '.u-over'].map((s) => box?.querySelector(s));
        if (!canvas?.width || !over) return null;
        const rgb = (text) => (/\d+/g[Symbol.match](text) ?? []).slice(0, 3).map(Number);
        const ink = rgb(getComputedStyle(document.querySelector('main .faint, main .note, main th')).color);
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let near = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.abs(data[i] - ink[0]) + Math.abs(data[i + 1] - ink[1]) + Math.abs(data[i + 2] - ink[2]) < 60) near++;
        return near > 20 ? { wrap: getComputedStyle(wrap).position, over: getComputedStyle(over).position, canvas: getComputedStyle(canvas).display, wide: box.getBoundingClientRect().width } : null;
      }); }, 60_000);
      check(`4 the chart is styled, ${theme}`, chart?.wrap === 'relative' && chart.over === 'absolute' && chart.canvas === 'block' && chart.wide > 300, JSON.stringify(chart));
    }
    await admin.evaluate(() => localStorage.setItem('theme', 'light'));
  },
  /** All that these parts have looked at, in both themes. */
  async clean() {
    check('4 on all of these pages nothing broke the policy', seen.policy.length === 0, seen.policy.slice(0, 5).join(' | '));
    // What was refused on purpose is told on the console by the browser itself.
    const errors = seen.errors.filter((e) => !/Failed to load resource.*\b4\d\d\b/.test(e));
    check('4 and no error was on the console', errors.length === 0, errors.slice(0, 5).join(' | '));
    check('5 nothing was asked of another host, and no other could be reached', seen.foreign.length === 0, seen.foreign.slice(0, 5).join(' '));
  },
  async tabs() {
    const tabs = [];
    for (let i = 0; i < 7; i++) { const tab = await admin.context().newPage(); await tab.goto(`${address}/jobs`); tabs.push(tab); }
    for (const tab of tabs) await eventually(() => tab.getByText('Live', { exact: true }).isVisible());
    const eighth = await admin.context().newPage();
    await eighth.goto(`${address}/jobs`);
    check('59 with seven tabs open an eighth still loads', !!(await eventually(() => eighth.getByText('Live', { exact: true }).isVisible())), await eighth.locator('body').innerText());
    for (const tab of [...tabs, eighth]) await tab.close();
  },
  /** A proxy that lets no WebSocket through. */
  async polling() {
    const behind = await tabOf(admin);
    await behind.context().routeWebSocket(/./, (socket) => socket.close());
    await behind.goto(`${address}/jobs?q=polled`);
    check('59 without a socket the page says that it polls', !!(await eventually(() => behind.getByText('Polling', { exact: true }).isVisible(), 20_000)), await behind.locator('header').innerText());
    const id = await submit(admin, job('polled', 1, 'sleep 600'));
    check('59 and shows what is new', !!(await eventually(() => behind.locator(`tr[data-id="${id}"]`).isVisible(), 12_000)), await behind.locator('main').innerText());
    await api(admin, 'POST', '/jobs:act', { action: 'stop', ids: [id] });
    await behind.context().close();
  },
  async crash() {
    for (const n of [1, 2]) await submit(admin, job(`outlives-${n}`, 1, 'sleep 600'));
    await admin.goto(`${address}/jobs?sort=name`);
    await eventually(() => admin.getByText('Live', { exact: true }).isVisible());
    await admin.locator('tr[data-id$="outlives-2"]').waitFor();
    const rows = () => admin.evaluate(() => [...document.querySelectorAll('tbody tr[data-id]')].map((r) => r.dataset.id).join());
    const before = await eventually(rows);
    await admin.evaluate(() => { globalThis.notReloaded = true; });
    await ask('@kill');
    check('59 the page says that the server is away', !!(await eventually(() => admin.getByText('Server not reachable.').isVisible())));
    await ask('@start');
    check('59 and comes back by itself within 5 s', !!(await eventually(() => admin.getByText('Live', { exact: true }).isVisible(), within(5000))), await admin.locator('header').innerText());
    check('59 nothing is missing, and the page was not loaded anew', !!(await eventually(async () => (await rows()) === before && (await admin.evaluate(() => globalThis.notReloaded)))), `${before} and ${await rows()}`);
    const truth = (await api(admin, 'GET', '/jobs?sort=name&limit=500')).body.rows.map((r) => r.id).join();
    check('59 it shows what the server has', truth === (await rows()), `${truth} and ${await rows()}`);
    await ask('@other');
    check('59 another build of the pages: the page offers to reload', !!(await eventually(() => admin.getByText('The server runs a new version.').isVisible(), 15_000)), await admin.locator('body').innerText());
  },
};
await play(parts, ['sign_in']);
