// SPDX-License-Identifier: Apache-2.0
// browser.mjs - what tests and benchmark of the console share: the browser, a signed-in page, TAP.
import {createRequire} from 'node:module';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.env.BULKHEAD_NPM, 'package.json'));
const {chromium} = require('playwright-core');
export const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const scene = JSON.parse(process.env.BULKHEAD_SCENE_JSON);
export const PAGES = ['home', 'fleet', 'tenants', 'work', 'isolation', 'audit'];

export const launch = () => chromium.launch({executablePath: process.env.BULKHEAD_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage']});

/** A page with nobody's cookies; signed in where a token is given. What goes wrong in it is kept in page.wrong. */
export async function open(browser, {token, scheme = 'light', width = 1280, height = 800} = {}) {
  // The certificate is the node's own.
  const context = await browser.newContext({ignoreHTTPSErrors: true, viewport: {width, height}, colorScheme: scheme, reducedMotion: 'reduce'});
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  page.wrong = [];
  page.on('pageerror', (e) => page.wrong.push(String(e.stack || e.message)));
  page.on('console', (m) => m.type() === 'error' && !/Failed to load resource/.test(m.text()) && page.wrong.push(m.text()));
  page.on('request', (r) => r.url().startsWith(scene.url) || r.url().startsWith('blob:') || page.wrong.push(`asked elsewhere: ${r.url()}`));
  if (token) await context.addInitScript((t) => sessionStorage.getItem('out') || sessionStorage.setItem('bulkhead-token', t), token);
  return page;
}

export async function show(page, where) {
  await page.goto(`${scene.url}/#/${where}`);
  // A change of the address alone is drawn with the next frame.
  await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
  await page.locator('main h1').waitFor();
  await settled(page);
}

/** Until every answer that the page waits for is there. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('[aria-busy]'));
}

export const textOf = (page) => page.locator('body').innerText();

const tests = [];
export const test = (name, fn) => tests.push([name, fn]);

export async function run() {
  const browser = await launch();
  let bad = 0;
  for (const [i, [name, fn]] of tests.entries()) {
    const began = Date.now();
    try {
      await fn(browser);
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      bad++;
      console.log(String(e.stack || e).split('\n').map((l) => `# ${l}`).join('\n'));
      console.log(`not ok ${i + 1} - ${name}`);
    }
    console.log(`# ${Date.now() - began} ms`);
    for (const c of browser.contexts()) await c.close();
  }
  console.log(`1..${tests.length}`);
  await browser.close();
  process.exit(bad ? 1 : 0);
}

export {assert};
