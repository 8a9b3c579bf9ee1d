// SPDX-License-Identifier: Apache-2.0
// output.js - what a job wrote, as it grows.
import {h, redraw} from './dom.js';
import {getLog} from './api.js';

const KEPT = 64 * 1024; // characters that are shown
const WAIT_MS = 20000;

let now = null; // {job, stream, text, next, error, on}

async function read(o) {
  while (o === now && o.on) {
    try {
      const r = await getLog(`/v1/jobs/${o.job}/logs?stream=${o.stream}&offset=${o.next}&wait_ms=${WAIT_MS}`);
      o.text = (o.text + r.text).slice(-KEPT);
      o.next = r.next;
      o.error = null;
      if (r.ended) o.on = false;
    } catch (p) {
      o.error = p.message;
      o.on = false;
    }
    redraw();
  }
}

function open(job, stream) {
  now = {job, stream, text: '', next: 0, error: null, on: true};
  read(now);
  redraw();
}

export function outputView(j) {
  const mine = now?.job === j.id ? now : null;
  const tab = (stream, text) => h('button', {type: 'button', 'aria-pressed': String(mine?.stream === stream), onclick: () => open(j.id, stream)}, text);
  return h('section', {key: 'output', hook: {gone: () => {
    if (now) now.on = false;
    now = null;
  }}}, h('div.heading', null, h('h3', null, 'Output'), h('div.seg', {role: 'group', 'aria-label': 'Stream'}, tab('out', 'stdout'), tab('err', 'stderr'))),
  mine && h('pre.log', {tabindex: 0, role: 'region', 'aria-label': `Output of ${j.id}`}, mine.error || mine.text || (mine.on ? 'Nothing yet…' : 'Nothing was written.')));
}
