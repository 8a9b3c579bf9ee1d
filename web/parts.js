// SPDX-License-Identifier: Apache-2.0
// parts.js - what several pages are built of: states, tenants, bars, curves, notices, questions.
import {h, redraw} from './dom.js';
import {isOld} from './data.js';
import * as f from './format.js';

// ---- states: a sign, a word, and only then a colour ----

const LOOK = {
  ok: ['✓', 'good'], running: ['▶', 'good'], active: ['▶', 'good'], clean: ['✓', 'good'], success: ['✓', 'good'], owned: ['■', 'good'],
  released: ['✓', 'calm'], ended: ['■', 'calm'], exited: ['■', 'calm'], free: ['○', 'calm'],
  waiting: ['◔', 'warn'], admitted: ['◔', 'warn'], preparing: ['◔', 'warn'], draining: ['◑', 'warn'], scrubbing: ['◑', 'warn'], paused: ['❚❚', 'warn'],
  suspended: ['❚❚', 'warn'], cordoned: ['▲', 'warn'], warn: ['▲', 'warn'], unknown: ['?', 'warn'], cancelled: ['■', 'calm'], preempted: ['▲', 'warn'],
  quarantined: ['✖', 'bad'], bad: ['✖', 'bad'], failed: ['✖', 'bad'], failure: ['✖', 'bad'], denied: ['✖', 'bad'], lost: ['✖', 'bad'], dirty: ['✖', 'bad'],
  killed: ['✖', 'bad'], error: ['✖', 'bad'],
};
export const lookOf = (state) => LOOK[state] || ['•', 'calm'];

const WORDS = {warn: 'attention', bad: 'wrong'};

export function badge(state, word = WORDS[state] || state) {
  const [sign, kind] = lookOf(state);
  return h('span', {class: `badge ${kind}`}, h('span', {'aria-hidden': 'true'}, sign), ' ', word);
}

export const tenantName = (tenant, link = true) => !tenant ? h('span.muted', null, '–') : h(link ? 'a' : 'span', {
  class: `tenant t${f.colourOf(tenant)}`, ...(link ? {href: `#/tenants/${encodeURIComponent(tenant)}`} : {}),
}, h('span.glyph', {'aria-hidden': 'true'}, f.glyphOf(tenant)), ' ', tenant);

export const named = (text) => h('span', {title: f.short(text) === text ? null : text}, f.short(text));
export const when = (ms) => h('time', {datetime: new Date(ms).toISOString(), title: f.instant(ms)}, f.ago(ms));

// ---- bars: used, borrowed, promised and allowed on one scale ----

export function quotaBar(q, most) {
  const part = (m) => `${Math.min(100, 100 * m / most)}%`;
  const own = q.guaranteed_milli || 0;
  const within = Math.min(q.used_milli, own);
  const beyond = Math.max(0, q.used_milli - own);
  const words = `${f.milli(q.used_milli)} used, ${f.milli(q.guaranteed_milli)} guaranteed, ${f.milli(beyond)} borrowed, ` +
    `limit ${q.max_milli === null ? f.milli(own) : f.milli(q.max_milli)} GPUs`;
  return h('div.qbar', {role: 'img', 'aria-label': words},
    h('div.qroom', {style: {width: part(q.max_milli ?? own)}}),
    h('div', {class: `qown t${f.colourOf(q.tenant)}`, style: {width: part(within)}}),
    beyond > 0 && h('div', {class: `qmore t${f.colourOf(q.tenant)}`, style: {left: part(within), width: part(beyond)}}),
    own > 0 && h('div.qmark', {style: {left: part(own)}}));
}

export const meter = (part, all, words, cls = '') => h('div.meter', {class: cls, role: 'img', 'aria-label': words},
  h('div', {style: {width: `${all > 0 ? Math.min(100, 100 * part / all) : 0}%`}}));

/** Stacked areas over time: series [{tenant, values}], all of one length. */
export function areas(series, most, labels) {
  const w = 600, high = 120;
  const n = labels.length;
  if (n < 2) return h('p.muted', null, 'Nothing yet.');
  const x = (i) => (i * w / n).toFixed(1);
  const y = (v) => (high - v * high / most).toFixed(1);
  const base = new Array(n).fill(0);
  const shapes = series.map((s) => {
    const low = [...base];
    s.values.forEach((v, i) => {
      base[i] += v;
    });
    // Steps: each value is the mean of its part of the time.
    const top = base.flatMap((v, i) => [`${x(i)},${y(v)}`, `${x(i + 1)},${y(v)}`]);
    const bottom = low.flatMap((v, i) => [`${x(i)},${y(v)}`, `${x(i + 1)},${y(v)}`]).reverse();
    return h('polygon', {class: `area t${f.colourOf(s.tenant)}`, points: [...top, ...bottom].join(' ')}, h('title', null, s.tenant));
  });
  return h('svg.areas', {viewBox: `0 0 ${w} ${high}`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': `Share over time: ${series.map((s) => `${s.tenant} ${f.milli(s.values[n - 1])}`).join(', ')} GPUs at the end`},
  [0.25, 0.5, 0.75].map((p) => h('line', {class: 'grid', x1: 0, x2: w, y1: high * p, y2: high * p})), shapes);
}

// ---- what a page shows while it has nothing, or something old ----

export const problem = (p) => h('div.notice.bad', {role: 'alert'},
  h('strong', null, p.message), p.needed && h('div', null, `Needed: ${p.needed}. `, p.had && `You are ${p.had}.`), p.next && h('div', null, `Next: ${p.next}`));

/** The answer as `show` draws it; before it is there, and when it cannot be had, that is said. */
export function answered(e, show) {
  if (e.data === undefined) return e.error ? problem(e.error) : h('p.muted', {'aria-busy': 'true'}, 'Asking the node…');
  return h('div', {class: isOld(e) ? 'old' : ''}, isOld(e) && h('p.dated', {role: 'status'}, `Not up to date: this is of ${f.clock(e.at)}.`), show(e.data));
}

export const listed = (text) => !text ? null : text.includes('; ') ? h('ul.tight', null, text.split('; ').map((t, i) => h('li', {key: `${i}`}, t))) : text;
export const empty = (words) => h('p.empty', null, words);
export const stat = (label, value, note, kind = '') => h('div.stat', {class: kind}, h('div.label', null, label), h('div.value', null, value), note && h('div.note', null, note));

// ---- notices that go by themselves, and one question at a time ----

export const notices = [];
export function say(text, kind = 'good') {
  const n = {text, kind, id: Symbol('notice')};
  notices.push(n);
  setTimeout(() => {
    notices.splice(notices.indexOf(n), 1);
    redraw();
  }, 8000);
  redraw();
}

/** Done for somebody who may: what went wrong is said with what was needed. */
export async function attempt(what, fn) {
  try {
    const r = await fn();
    say(what);
    return r;
  } catch (p) {
    say([p.message, p.next].filter(Boolean).join(' – '), 'bad');
    return null;
  }
}

export const question = {now: null};
/** Something that cannot be taken back names what it does; asks for a reason, which goes into the audit log. */
export function confirm(title, words, action, go) {
  question.now = {title, words, action, go, reason: ''};
  redraw();
}
export function questionView() {
  const q = question.now;
  const end = () => {
    question.now = null;
    redraw();
  };
  return q && h('dialog', {key: 'question', 'aria-labelledby': 'question-title', hook: {mount: (el) => el.showModal()}, oncancel: end},
    h('form', {method: 'dialog', onsubmit: () => {
      end();
      q.go(q.reason);
    }},
    h('h2', {id: 'question-title'}, q.title), h('p', null, q.words),
    h('label.field', null, 'Reason, for the audit log', h('input', {type: 'text', maxlength: 200, value: q.reason, oninput: (e) => {
      q.reason = e.target.value;
    }})),
    h('div.row', null, h('button', {type: 'button', onclick: end}, 'Leave it'), h('button.danger', {type: 'submit'}, q.action))));
}
