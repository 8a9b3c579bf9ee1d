// SPDX-License-Identifier: Apache-2.0
// api.js - the node's API: the token, one request, lists in pages, and the stream of what changes.

const PAGE = 1000;
const PAGES_MAX = 50;
const RETRY_MS = [500, 1000, 2000, 5000, 10000];
const SILENT_MS = 40000; // the node gives a sign of life every 15 s

let token = sessionStorage.getItem('bulkhead-token') || '';

export const hasToken = () => token !== '';

export function setToken(text) {
  token = text;
  // Of this tab alone, and gone with it.
  if (text) sessionStorage.setItem('bulkhead-token', text);
  else sessionStorage.removeItem('bulkhead-token');
}

export class Problem extends Error {
  constructor(status, error) {
    super(error.message || `the node answered ${status}`);
    this.status = status;
    this.code = error.code || '';
    this.needed = error.needed;
    this.had = error.had;
    this.next = error.next;
  }
}

const headers = (more, by = token) => ({Authorization: `Bearer ${by}`, ...more});

async function refusal(r) {
  let body = {};
  try {
    body = await r.json();
  } catch {
    // not JSON: said by something in between
  }
  return new Problem(r.status, body.error || {});
}

/** What the node answers, as an object; throws a Problem that can be shown as it is. by: with this token instead. */
export async function ask(method, path, body, more, by) {
  let r;
  try {
    r = await fetch(path, {method, headers: headers({...(body ? {'Content-Type': 'application/json'} : {}), ...more}, by),
      body: body ? JSON.stringify(body) : undefined, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer'});
  } catch {
    throw new Problem(0, {code: 'away', message: 'the node does not answer', next: 'is bulkheadd running, and is the network there?'});
  }
  if (!r.ok) throw await refusal(r);
  return r.json();
}

export const get = (path) => ask('GET', path);
export const post = (path, body, more) => ask('POST', path, body || {}, more);

/** One page of a list after another, until there are no more. */
export async function* pagesOf(path) {
  const start = `${path}${path.includes('?') ? '&' : '?'}limit=${PAGE}`;
  for (let after = null, page; after !== undefined; after = page.next || undefined) {
    page = await get(after === null ? start : `${start}&after=${after}`);
    yield page;
  }
}

/** Pages of a list as one answer; `next` says that there are more than a page can show. */
export async function getAll(path, field) {
  let all = null;
  let n = 0;
  for await (const page of pagesOf(path)) {
    if (all) all[field].push(...page[field]);
    all = {...(all || page), next: page.next};
    if (n++ >= PAGES_MAX) break;
  }
  return all;
}

/** What a job wrote, as text; bytes that are no text become a mark. */
export async function getLog(path) {
  const r = await fetch(path, {headers: headers(), cache: 'no-store', credentials: 'omit'});
  if (!r.ok) throw await refusal(r);
  return {text: new TextDecoder().decode(await r.arrayBuffer()), next: Number(r.headers.get('Bulkhead-Next-Offset') || 0),
    ended: r.headers.get('Bulkhead-Ended') === 'true'};
}

/**
 * One stream for the page. EventSource cannot send a token, so it is read by hand. Comes back by itself with the last id;
 * told({kind, data}) for each event, state('live' | 'away' | 'denied') whenever that changes.
 */
export function follow(told, state) {
  let last = '';
  let tries = 0;
  let stop = new AbortController();
  let ended = false;

  async function read(r) {
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENT_MS);
    };
    alive();
    try {
      for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        alive();
        text += value;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) event(text.slice(0, end));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  function event(block) {
    const field = {};
    for (const line of block.split('\n')) {
      const at = line.indexOf(': ');
      if (at > 0) field[line.slice(0, at)] = line.slice(at + 2);
    }
    if (field.id) last = field.id;
    if (!field.event) return;
    let data = {};
    try {
      data = JSON.parse(field.data || '{}');
    } catch {
      // what is no JSON tells nothing but that something changed
    }
    told({kind: field.event, data});
  }

  async function run() {
    while (!ended) {
      stop = new AbortController();
      try {
        const r = await fetch('/v1/events', {headers: headers(last ? {'Last-Event-ID': last} : {}), signal: stop.signal,
          cache: 'no-store', credentials: 'omit'});
        if (r.status === 401 || r.status === 403) return state('denied');
        if (r.ok) {
          tries = 0;
          state('live');
          await read(r);
        }
      } catch {
        // away: tried again below
      }
      if (ended) return undefined;
      if (tries > 0) state('away');
      await new Promise((go) => setTimeout(go, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]));
      tries++;
    }
    return undefined;
  }
  run();
  return () => {
    ended = true;
    stop.abort();
  };
}
