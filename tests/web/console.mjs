// SPDX-License-Identifier: Apache-2.0
// console.mjs - the console in a real browser, against the real daemon on simulated silicon. Started by run.py.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import {fleetOf} from './fleet.mjs';
import {AXE, PAGES, assert, open, run, scene, settled, show, test, textOf} from './browser.mjs';

const SHOTS = process.env.BULKHEAD_SCREENSHOTS;
const shot = async (page, name, full = false) => SHOTS && page.screenshot({path: path.join(SHOTS, `console-${name}.png`), fullPage: full});
const api = async (page, method, where, body) => page.evaluate(async ([m, w, b, t]) => {
  const r = await fetch(w, {method: m, headers: {Authorization: `Bearer ${t}`}, body: b ? JSON.stringify(b) : undefined});
  return {status: r.status, json: await r.json()};
}, [method, where, body, scene.operator]);

test('a wrong token is refused in words, a right one is kept for the tab alone', async (browser) => {
  const page = await open(browser);
  await page.goto(scene.url);
  await page.getByLabel('Token').fill('bh_wrong');
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').innerText(), /token/i);
  await shot(page, 'signin');
  await page.getByLabel('Token').fill(scene.operator);
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByRole('heading', {name: 'Home'}).waitFor();
  const kept = await page.evaluate(() => [sessionStorage.getItem('bulkhead-token'), Object.values(localStorage).join(), document.cookie]);
  assert.deepEqual(kept, [scene.operator, '', '']);
  await page.getByRole('button', {name: 'Sign out'}).click();
  await page.getByLabel('Token').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('bulkhead-token')), null);
  // Somebody else in the same tab: nothing is left of what the first one saw.
  await page.evaluate(() => {
    globalThis.before = true;
  });
  await page.getByLabel('Token').fill(scene.tenant);
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByText('tenant-admin of lab').waitFor();
  await page.waitForFunction(() => globalThis.before === undefined);
  await settled(page);
  assert.ok(!/nightly/.test(await page.content()));
  assert.deepEqual(page.wrong, []);
});

test('files come compressed, guarded by their headers, and once', async (browser) => {
  const page = await open(browser);
  const got = [];
  page.on('response', (r) => got.push(r));
  await page.goto(scene.url);
  await page.getByLabel('Token').waitFor();
  assert.ok(got.length > 10, `${got.length} files`);
  let bytes = 0;
  for (const r of got) {
    const h = await r.allHeaders();
    assert.equal(r.status(), 200, r.url());
    assert.equal(h['content-encoding'], 'gzip', r.url());
    assert.match(h['content-security-policy'], /^default-src 'self';.*frame-ancestors 'none'/);
    assert.deepEqual([h['x-content-type-options'], h['x-frame-options'], h['cache-control']], ['nosniff', 'DENY', 'no-cache']);
    bytes += zlib.gzipSync(await r.body(), {level: 9}).length;
    const again = await page.context().request.get(r.url(), {headers: {'If-None-Match': h.etag}});
    assert.equal(again.status(), 304, r.url());
  }
  assert.ok(bytes < 100000, `${bytes} bytes in all`);
  console.log(`# ${got.length} files, ${bytes} bytes compressed`);
  const other = await page.context().request.get(`${scene.url}/console/../v1/status`);
  assert.equal(other.status(), 401);
  assert.equal((await page.context().request.post(`${scene.url}/console/main.js`)).status(), 401);
});

test('each page shows what the node says, and that the silicon is simulated', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 960});
  const want = {
    home: ['GPU 5 is cordoned: fan is loud', 'second-model', 'Who has what', 'nightly'],
    fleet: ['GPU 0', 'H100', 'cordoned', '3g.40gb', '20 GiB', 'free'],
    tenants: ['chat', 'train', 'lab', 'nightly', 'Share over time', 'GPU-hours'],
    work: ['second-model', 'quota', 'Smallest change', 'run-70b', 'mig 3g.40gb, tier process'],
    isolation: ['hardware', 'fabric', 'scheduler', 'virtualization', 'lifecycle', 'GPU 5 cordoned', 'scrub.verify', 'What keeps tenants apart'],
    audit: ['token.create', 'policy.change', 'gpu.cordon'],
  };
  for (const name of PAGES) {
    await show(page, name === 'tenants' ? 'tenants?range=10m' : name);
    if (name === 'home' || name === 'work') await page.getByText(/bulkhead cancel J\d+/).first().waitFor();
    for (const w of ['simulated', ...want[name]]) {
      await page.waitForFunction((x) => document.body.innerText.toLowerCase().includes(x), w.toLowerCase(), {timeout: 10000})
        .catch(async () => assert.fail(`${name}: no '${w}' in\n${await textOf(page)}`));
    }
    assert.match(await page.title(), /simulated/);
    await shot(page, name);
  }
  assert.deepEqual(page.wrong, []);
});

test('a GPU, a tenant and a job in full', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 960});
  await show(page, 'fleet');
  await page.getByRole('link', {name: /^GPU 6 .*3g\.40gb/}).click();
  const panel = page.getByRole('complementary', {name: 'GPU 6'});
  assert.match(await panel.innerText(), /3g\.40gb@\d[\s\S]*train[\s\S]*owned/);
  await shot(page, 'gpu');
  await page.keyboard.press('Escape');
  await panel.waitFor({state: 'detached'});
  await show(page, 'tenants/lab?range=10m');
  const tenant = await textOf(page);
  for (const w of ['Guaranteed', 'Borrowed', 'Remaining', 'class research', 'Pool shares', 'Stays shared', 'instances of MIG']) assert.ok(tenant.includes(w), `${w} in ${tenant}`);
  await shot(page, 'tenant');
  await show(page, 'work');
  await page.getByRole('link', {name: /notebook$/}).click();
  await page.getByRole('button', {name: 'stdout'}).click();
  await page.getByRole('region', {name: /^Output of/}).getByText('step 2').waitFor();
  assert.match(await page.getByRole('complementary').innerText(), /preparing[\s\S]*active/);
  assert.deepEqual(page.wrong, []);
});

test('a job from submit to its reason, to what would start it, to running', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 960});
  await show(page, 'work');
  // Out of the way: the one that waits for the same.
  await page.getByRole('link', {name: /second-model/}).click();
  await page.getByRole('complementary').getByRole('button', {name: 'Cancel'}).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('makes room');
  await page.getByRole('dialog').getByRole('button', {name: 'Cancel'}).click();
  await page.getByRole('complementary').getByText('makes room').first().waitFor();
  await page.keyboard.press('Escape');
  // Thought of first, then submitted.
  await page.getByRole('button', {name: 'Submit or try a job'}).click();
  const form = page.getByRole('form', {name: 'A job'});
  await form.getByLabel('Tenant').selectOption('chat');
  await form.getByLabel('Name').fill('from-the-page');
  await form.getByLabel('GPUs').fill('2');
  await form.getByLabel('Command').fill('sleep "3600"');
  await form.getByRole('button', {name: 'Would it be taken?'}).click();
  await form.getByText(/The policy takes it|quota/).first().waitFor();
  await form.getByRole('button', {name: 'Submit'}).click();
  const panel = page.getByRole('complementary', {name: /^Job J/});
  await panel.getByText('Why it waits').waitFor();
  await panel.getByText(/has all that its quota allows/).first().waitFor();
  await panel.getByText(/end J\d+, which has 1 GPU/).waitFor();
  const victim = /end (J\d+),/.exec(await panel.innerText())[1];
  await page.getByRole('region', {name: 'Waiting, rows'}).getByText(/Smallest change/).waitFor();
  await shot(page, 'why');
  // What if that one ended? Nothing is changed by asking.
  await panel.getByRole('combobox', {name: /^Job/}).selectOption(victim);
  await panel.getByRole('button', {name: 'Try'}).click();
  await panel.getByText('It would start at once.').waitFor();
  assert.match(await panel.innerText(), /waiting/);
  // It ends, and the page tells by itself that the other one runs.
  const r = await api(page, 'POST', `/v1/jobs/${victim}/cancel`);
  assert.equal(r.status, 200, JSON.stringify(r));
  await panel.getByRole('heading', {name: /from-the-page.*running/}).waitFor({timeout: 60000});
  await page.getByRole('region', {name: 'Running, rows'}).getByRole('link', {name: /from-the-page/}).waitFor();
  assert.deepEqual(page.wrong, []);
});

test('pause and resume', async (browser) => {
  const page = await open(browser, {token: scene.operator});
  await show(page, 'work');
  await page.getByRole('link', {name: /notebook-2/}).click();
  const panel = page.getByRole('complementary');
  for (const [verb, next] of [['Pause', 'Resume'], ['Resume', 'Pause']]) {
    await panel.getByRole('button', {name: verb, exact: true}).click();
    await page.getByRole('dialog').getByRole('button', {name: verb}).click();
    await panel.getByRole('button', {name: next, exact: true}).waitFor();
  }
  assert.deepEqual(page.wrong, []);
});

test('a tenant sees itself and nobody else', async (browser) => {
  const page = await open(browser, {token: scene.tenant});
  const others = /\b(chat|train|nightly|answers|run-70b|second-model|reports|eval)\b/;
  const answers = [];
  page.on('response', (r) => r.url().includes('/v1/') && !r.url().endsWith('/v1/events') && answers.push(r.text().then((t) => [r.url(), t], () => ['', ''])));
  for (const name of [...PAGES, 'tenants/lab', 'tenants/chat', 'work?form=submit&ended=1', 'fleet/6', 'fleet?view=table', 'work/J1']) {
    await show(page, name);
    const html = await page.content();
    // What was asked for by name stands in the address and in what was said back.
    assert.ok(!others.test(name === 'tenants/chat' ? html.replaceAll(/no tenant 'chat'|#\/tenants\/chat/g, '') : html), `${name}: ${others.exec(html)?.[0]} in ${await textOf(page)}`);
    assert.match(await page.locator('body').innerText(), /simulated/);
  }
  const said = await Promise.all(answers);
  assert.ok(said.length > 20, `${said.length} answers`);
  for (const [url, text] of said) {
    const clean = url.endsWith('/v1/tenants/chat') ? text.replace('no tenant \'chat\'', '') : text;
    assert.ok(!others.test(clean), `${url}: ${others.exec(clean)?.[0]}`);
  }
  await show(page, 'fleet');
  assert.match(await textOf(page), /lab[\s\S]*others/);
  await shot(page, 'one-tenant');
  await show(page, 'work/J1');
  assert.match(await textOf(page), /no job/);
  assert.equal(await page.getByRole('button', {name: 'Cordon'}).count(), 0);
  await show(page, 'audit');
  assert.match(await textOf(page), /an operator or an auditor can check it/);
  assert.equal(await page.getByRole('button', {name: /Verify the chain/}).count(), 0);
  assert.deepEqual(page.wrong, []);
});

test('who may only look is offered nothing to do', async (browser) => {
  const page = await open(browser, {token: scene.viewer});
  await show(page, 'work');
  assert.equal(await page.getByRole('button', {name: 'Submit or try a job'}).count(), 0);
  await page.getByRole('link', {name: /notebook$/}).click();
  await page.getByRole('complementary').getByText('Attempts').waitFor();
  assert.equal(await page.getByRole('button', {name: /^(Cancel|Pause)$/}).count(), 0);
  await show(page, 'fleet/0');
  assert.equal(await page.getByRole('button', {name: 'Drain'}).count(), 0);
  assert.equal(await page.getByRole('navigation').getByText('Audit').count(), 0);
  assert.deepEqual(page.wrong, []);
});

test('the chain of the audit log is checked in the page, and a change is found', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 960});
  await show(page, 'audit');
  const check = async () => {
    await page.getByRole('button', {name: /Verify the chain/}).click();
    await page.waitForTimeout(100); // what was said before is gone with the next frame
    await page.getByText(/The chain holds|does not hold/).waitFor();
    return textOf(page);
  };
  const good = await check();
  assert.match(good, /The chain holds: [\d,]+ records checked/);
  assert.match(good, /Merkle root over the first [\d,]+ is the one in the newest checkpoint; its signature is right/);
  await shot(page, 'audit');
  const spoil = (change) => page.route(/\/v1\/audit\?bodies=true/, async (route) => {
    const r = await route.fetch();
    const doc = await r.json();
    change(doc.records);
    await route.fulfill({response: r, json: doc});
  });
  // Edited, with its hash left as it was; edited with a new hash; taken out.
  await spoil((rs) => {
    rs[6].body = rs[6].body.replace('"sub":"', '"sub":"eve, not ');
  });
  assert.match(await check(), /Record 7: its text is not what was hashed/);
  await page.unroute(/\/v1\/audit/);
  await spoil((rs) => rs.splice(8, 1));
  assert.match(await check(), /Record 9: missing/);
  await page.unroute(/\/v1\/audit/);
  await spoil((rs) => {
    [rs[4].body, rs[5].body] = [rs[5].body, rs[4].body];
    [rs[4].hash, rs[5].hash] = [rs[5].hash, rs[4].hash];
  });
  assert.match(await check(), /Record 5: what is shown is not what its text says[\s\S]*does not follow/);
  assert.deepEqual(page.wrong, []);
});

test('tables are filtered, ordered and exported; the address says how', async (browser) => {
  const page = await open(browser, {token: scene.operator});
  await show(page, 'home');
  const made = await api(page, 'POST', '/v1/jobs', {tenant: 'lab', argv: ['true'], name: '=1+1, "x"', pool: 'shares', milli: 250, memory_mib: 1024, can_requeue: true});
  assert.equal(made.status, 201, JSON.stringify(made));
  await show(page, 'work?ended=1');
  const ended = page.getByRole('region', {name: 'Ended', exact: true});
  await ended.getByRole('link', {name: /=1\+1/}).waitFor({timeout: 60000});
  await ended.getByRole('searchbox').fill('tenant:lab !broken');
  await page.waitForFunction(() => location.hash.includes('ended.q=tenant%3Alab+%21broken'));
  await ended.getByRole('link', {name: /broken/}).waitFor({state: 'detached'});
  await ended.getByRole('button', {name: 'Job', exact: true}).click();
  assert.match(page.url(), /ended\.sort=job/);
  const [file] = await Promise.all([page.waitForEvent('download'), ended.getByRole('button', {name: /as CSV/}).click()]);
  const csv = fs.readFileSync(await file.path(), 'utf8');
  assert.match(csv, /^job,tenant,user,wants,pool,end,reason,at\r\n/);
  assert.ok(csv.includes(`"${made.json.id} =1+1, ""x""",lab`), csv);
  const [json] = await Promise.all([page.waitForEvent('download'), ended.getByRole('button', {name: /as JSON/}).click()]);
  const rows = JSON.parse(fs.readFileSync(await json.path(), 'utf8'));
  assert.ok(rows.every((r) => r.tenant === 'lab' && !r.job.includes('broken')) && rows.some((r) => r.job.startsWith(made.json.id)), JSON.stringify(rows));
  // The same address shows the same.
  const url = page.url();
  const second = await page.context().newPage();
  await second.goto(url);
  await second.getByRole('region', {name: 'Ended', exact: true}).getByRole('link', {name: /=1\+1/}).waitFor();
  assert.equal(await second.getByRole('region', {name: 'Ended', exact: true}).getByRole('searchbox').inputValue(), 'tenant:lab !broken');
  assert.deepEqual(page.wrong, []);
});

test('keys', async (browser) => {
  const page = await open(browser, {token: scene.operator});
  await show(page, 'home');
  await page.keyboard.press('g');
  await page.keyboard.press('w');
  await page.getByRole('heading', {name: 'Work', level: 1}).waitFor();
  await settled(page);
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const panel = page.getByRole('complementary');
  await panel.waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Close');
  await page.keyboard.press('Escape');
  await panel.waitFor({state: 'detached'});
  await page.keyboard.press('?');
  await page.getByRole('dialog', {name: 'Keys'}).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', {name: 'Keys'}).waitFor({state: 'detached'});
  // The map is walked with arrows.
  await show(page, 'fleet?view=map&group=none');
  await page.getByRole('application').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.getByText(/^GPU 1,/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', {name: 'GPU 1'}).waitFor();
  assert.deepEqual(page.wrong, []);
});

const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number));

test('dark where the system is dark, and a switch that is remembered', async (browser) => {
  const page = await open(browser, {token: scene.operator, scheme: 'dark', width: 1440, height: 960});
  await show(page, 'fleet');
  assert.ok(Math.max(...await ground(page)) < 60, `${await ground(page)}`);
  await shot(page, 'dark');
  await page.getByRole('button', {name: /^Theme: auto/}).click();
  assert.ok(Math.min(...await ground(page)) > 200, `${await ground(page)}`);
  await page.reload();
  await page.getByRole('button', {name: /^Theme: light/}).click();
  assert.ok(Math.max(...await ground(page)) < 60);
  assert.deepEqual(page.wrong, []);
});

test('nothing is wider than a phone', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 390, height: 844});
  for (const name of [...PAGES, 'tenants/lab', 'work?form=submit', 'fleet?view=map', 'fleet?view=table', 'fleet/6']) {
    await show(page, name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${name}: ${wide} pixels`);
    if (name === 'home') {
      await page.getByRole('list').filter({hasText: 'nightly'}).first().waitFor();
      await shot(page, 'phone');
    }
  }
  assert.deepEqual(page.wrong, []);
});

test('axe finds nothing serious, light and dark', async (browser) => {
  for (const scheme of ['light', 'dark']) {
    const page = await open(browser, {token: scene.operator, scheme});
    // What is not a matter of colour is the same in both.
    const options = {resultTypes: ['violations'], ...(scheme === 'dark' ? {runOnly: ['color-contrast']} : {})};
    for (const name of scheme === 'dark' ? ['home', 'fleet/6', 'work/J7', 'isolation'] : [...PAGES, 'fleet/6', 'work?form=submit', 'work/J7']) {
      await show(page, name);
      await page.evaluate(AXE);
      const found = await page.evaluate(async (o) => (await globalThis.axe.run(document, o)).violations
        .filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`), options);
      assert.deepEqual(found, [], `${scheme} ${name}`);
    }
    await page.context().close();
  }
});

test('what changes is shown by itself; when the node is gone that is said, with its time', async (browser) => {
  const page = await open(browser, {token: scene.operator});
  await show(page, 'work');
  await page.getByText(/● live/).waitFor();
  const made = await api(page, 'POST', '/v1/jobs', {tenant: 'lab', argv: ['sleep', '600'], name: 'came-later', pool: 'shares', milli: 250, memory_mib: 1024, can_requeue: true});
  assert.equal(made.status, 201, JSON.stringify(made));
  await page.getByRole('link', {name: /came-later/}).waitFor();
  await page.route('**/v1/**', (r) => r.abort());
  // Something happens, and the page asks in vain.
  await page.context().request.post(`${scene.url}/v1/jobs/${made.json.id}/cancel`, {headers: {Authorization: `Bearer ${scene.operator}`}, data: {}});
  await page.getByText(/no answer since \d\d:\d\d:\d\d/).waitFor({timeout: 30000});
  await page.getByText(/Not up to date: this is of \d\d:\d\d:\d\d/).first().waitFor();
  assert.ok(await page.locator('.old').count() > 0);
  await page.unroute('**/v1/**');
  await page.getByText(/● live/).waitFor({timeout: 30000});
});

test('ten thousand GPUs: only what is seen is drawn', async (browser) => {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 900});
  await page.route('**/v1/gpus', (r) => r.fulfill({json: fleetOf(10000)}));
  await show(page, 'fleet');
  assert.match(await textOf(page), /10,000 GPUs/);
  const count = () => page.evaluate(() => document.querySelectorAll('*').length);
  const map = await count();
  await shot(page, 'ten-thousand');
  await page.getByRole('button', {name: 'Cards'}).click();
  await page.locator('a.gpu').first().waitFor();
  const cards = await count();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight / 2));
  await page.waitForFunction(() => document.querySelector('a.gpu')?.innerText.match(/^GPU \d{4}\b/));
  const middle = await count();
  await page.getByRole('button', {name: 'Table'}).click();
  await page.getByRole('table', {name: 'GPUs'}).waitFor();
  assert.equal(await page.getByRole('table', {name: 'GPUs'}).getAttribute('aria-rowcount'), '10001');
  assert.ok(Math.max(map, cards, middle, await count()) < 3000, `${map} ${cards} ${middle} elements`);
  // A search goes through all of them.
  await show(page, 'fleet?q=tenant-7&view=cards&group=none');
  assert.ok((await page.locator('a.gpu').count()) > 0);
  assert.ok((await page.locator('a.gpu').evaluateAll((as) => as.every((a) => a.textContent.includes('tenant-7')))));
  assert.deepEqual(page.wrong, []);
});

await run();
