// SPDX-License-Identifier: Apache-2.0
// data.js - what the pages show: asked for when a page needs it, asked for again when the node says that it changed.
//
// Each answer keeps when it came. What could not be had again is kept, and is old: it is shown dimmed, with its time.
import {redraw} from './dom.js';
import {follow, get, getAll, hasToken, setToken} from './api.js';

const SETTLE_MS = 200; // several changes at once are one question
const GAP_MS = 750; // between two questions of the same kind
const EVERY_MS = 10000; // numbers that no event tells of: temperature, load
const AGAIN_MS = 3000; // what could not be had
const LOOK_MS = 2500;
const FORGET_MS = 600000;
const OLD_MS = 35000;
const LOG_MAX = 200;

// Which events make an answer old.
const MOVED_BY = [
  ['/v1/status', ['job', 'lease', 'gpu', 'policy', 'health']],
  ['/v1/gpus', ['lease', 'gpu', 'policy']],
  ['/v1/jobs', ['job', 'lease']],
  ['/v1/leases', ['lease']],
  ['/v1/quota', ['job', 'lease', 'policy']],
  ['/v1/tenants', ['lease', 'policy']],
  ['/v1/doctor', ['health', 'gpu', 'policy']],
  ['/v1/policy', ['policy']],
  ['/v1/audit', ['job', 'lease', 'gpu', 'policy']],
];

const entries = new Map(); // path → {data, at, error, busy, list, used, dirty, due}
let turn = 0;
let close = null;

export const live = {state: 'none', at: 0, events: [], skew: 0};

const movedBy = (path) => (MOVED_BY.find(([p]) => path.startsWith(p)) || [null, []])[1];

/** An answer of the API, for a page that is being drawn; list: the field whose pages are put together. */
export function use(path, list) {
  let e = entries.get(path);
  if (!e) {
    e = {path, list, data: undefined, at: 0, error: null, busy: false, asked: 0, timer: 0};
    entries.set(path, e);
  }
  e.used = turn;
  if (!e.asked) load(e);
  return e;
}

/** Which answers are in use is told by the drawing of a page. */
export function beginTurn() {
  turn++;
}

async function load(e) {
  if (e.busy) {
    e.again = true;
    return;
  }
  e.busy = true;
  e.asked = Date.now();
  try {
    e.data = await (e.list ? getAll(e.path, e.list) : get(e.path));
    e.at = Date.now();
    e.error = null;
  } catch (problem) {
    if (problem.status === 401) signedOut(problem);
    e.error = problem;
  }
  e.busy = false;
  redraw();
  if (e.again) {
    e.again = false;
    later(e, GAP_MS);
  }
}

function later(e, ms) {
  if (e.timer) return;
  e.timer = setTimeout(() => {
    e.timer = 0;
    load(e);
  }, Math.max(ms, e.asked + GAP_MS - Date.now()));
}

/** Asked for again now, because somebody did something that changes it. */
export function refresh(...prefixes) {
  for (const e of entries.values()) if (prefixes.some((p) => e.path.startsWith(p))) touch(e);
}

function touch(e) {
  // What no page shows is asked for when one does.
  if (turn - e.used > 2) e.asked = 0;
  else later(e, SETTLE_MS);
}

function told({kind, data}) {
  live.at = Date.now();
  if (kind !== 'reset') live.events.unshift({kind, ...data, at: Date.now()});
  live.events.length = Math.min(live.events.length, LOG_MAX);
  for (const e of entries.values()) if (kind === 'reset' || movedBy(e.path).includes(kind)) touch(e);
  redraw();
}

function changed(state) {
  // Back after a while: what was missed is told by the stream or by its reset; numbers are asked for anyway.
  if (state === 'live' && live.state === 'away') for (const e of entries.values()) touch(e);
  live.state = state;
  live.since = Date.now();
  redraw();
}

export const session = {problem: null, used: false};

function signedOut(problem) {
  session.problem = problem;
  stop();
  setToken('');
}

export function begin() {
  session.problem = null;
  if (close || !hasToken()) return;
  session.used = true;
  close = follow(told, changed);
}

export function stop() {
  if (close) close();
  close = null;
  entries.clear();
  live.state = 'none';
  live.events = [];
  redraw();
}

setInterval(() => {
  if (!close || document.hidden) return;
  for (const e of entries.values()) {
    // What no page has shown for long is forgotten.
    if (turn - e.used > 2 && Date.now() - e.asked > FORGET_MS) entries.delete(e.path);
    if (turn - e.used > 2 || e.busy || e.error?.status === 403 || e.error?.status === 404) continue;
    if (Date.now() - e.asked >= (e.error ? AGAIN_MS : EVERY_MS) && movedBy(e.path).length && !e.path.startsWith('/v1/audit')) load(e);
  }
  redraw(); // ages are shown
}, LOOK_MS);

/** The node does not answer, or has not for long: say so. */
export const isOld = (e) => e.data !== undefined && (e.error !== null || movedBy(e.path).length > 0 && Date.now() - e.at > OLD_MS);
