// SPDX-License-Identifier: Apache-2.0
// bench.mjs - a fleet of many GPUs: from data to painted page, and frames while it is scrolled. Started by bench/console_bench.py.
import {fleetOf} from './fleet.mjs';
import {launch, open, scene} from './browser.mjs';

const GPUS = Number(process.env.BULKHEAD_BENCH_GPUS || 10000);
const ROUNDS = 5;
const FRAMES = 180;
const VIEWS = {map: '.map canvas', cards: 'a.gpu', table: '[aria-label="GPUs, rows"] tbody tr'};

const body = JSON.stringify(fleetOf(GPUS));
const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, p) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * p))];
const ms = (v) => `${v.toFixed(1)} ms`;

/** Marks when the bytes were there, and when the frame that shows them was over. */
const marks = (selector) => {
  const json = Response.prototype.json;
  Response.prototype.json = async function read() {
    if (!this.url.endsWith('/v1/gpus')) return json.call(this);
    const text = await this.text();
    globalThis.began = performance.now();
    return JSON.parse(text);
  };
  const look = () => {
    if (!document.querySelector(selector)) return requestAnimationFrame(look);
    // Behind this frame's painting.
    return requestAnimationFrame(() => setTimeout(() => {
      globalThis.painted = performance.now();
    }));
  };
  requestAnimationFrame(look);
};

async function paint(browser, view) {
  const page = await open(browser, {token: scene.operator, width: 1440, height: 900});
  await page.addInitScript(marks, VIEWS[view]);
  await page.route('**/v1/gpus', (r) => r.fulfill({contentType: 'application/json', body}));
  await page.goto(`${scene.url}/#/fleet?view=${view}`);
  await page.waitForFunction(() => globalThis.painted && globalThis.began);
  const took = await page.evaluate(() => globalThis.painted - globalThis.began);
  return {page, took};
}

/** Frames while the page moves: how long each took, and how much of that was script. */
const scroll = ([frames, selector]) => new Promise((done) => {
  const inner = document.querySelector(selector)?.closest('.scroll.long');
  const times = [];
  let last = performance.now();
  const frame = (now) => {
    times.push(now - last);
    last = now;
    if (times.length > frames) return done(times.slice(1));
    if (inner) inner.scrollTop += 90;
    else scrollBy(0, 90);
    return requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});

/** Seconds of processor time that the page's own thread has had; other programs of a busy machine are not in it. */
async function meter(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', {timeDomain: 'threadTicks'});
  return async () => (await cdp.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value;
}

const browser = await launch();
console.log(`console, ${GPUS} GPUs, ${(body.length / 1e6).toFixed(1)} MB of JSON, ${browser.version()}`);
for (const [view, selector] of Object.entries(VIEWS)) {
  const took = [];
  let frames = [];
  let cpu = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const r = await paint(browser, view);
    took.push(r.took);
    if (i === ROUNDS - 1) {
      const used = await meter(r.page);
      const before = await used();
      frames = await r.page.evaluate(scroll, [FRAMES, selector]);
      cpu = 1000 * (await used() - before) / frames.length;
    }
    await r.page.context().close();
  }
  const late = frames.filter((t) => t > 25).length;
  console.log(`  ${view.padEnd(6)} data to painted: median ${ms(at(took, 0.5))}, worst ${ms(Math.max(...took))}   ` +
    `scrolling, ${frames.length} frames: median ${ms(at(frames, 0.5))}, p95 ${ms(at(frames, 0.95))}, worst ${ms(Math.max(...frames))}, ${late} late; its thread worked ${ms(cpu)} a frame`);
}
await browser.close();
