// SPDX-License-Identifier: Apache-2.0
// forms.js - a job that is thought of: would it start, and if not, what would start it; then submit it. And what if.
import {h, redraw} from './dom.js';
import {post} from './api.js';
import {refresh, use} from './data.js';
import {attempt, problem, tenantName} from './parts.js';
import {address, route} from './route.js';
import {mayOperate, submitFor} from './who.js';
import * as f from './format.js';

const GIB = 1024;

/** Words as a shell would split them, quotes and all; no variables, no patterns. */
export function wordsOf(line) {
  const out = [];
  let word = null;
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (quote) {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && i + 1 < line.length) word += line[++i];
      else word += c;
    } else if (c === '"' || c === '\'') {
      quote = c;
      word ??= '';
    } else if (/\s/.test(c)) {
      if (word !== null) out.push(word);
      word = null;
    } else word = (word ?? '') + (c === '\\' && i + 1 < line.length ? line[++i] : c);
  }
  if (word !== null) out.push(word);
  return out;
}

/** The answer of why and of what-if. */
export function whyView(w) {
  return h('div.why', null,
    w.starts ? h('p', null, h('strong', null, 'It would start at once.')) : h('p', null, h('strong', null, w.sentence || 'Its turn has not come yet.')),
    !w.starts && h('p.muted', null, [`needs ${f.gpus(w.need_milli)}`, `${f.gpus(w.free_milli)} free for it`, w.ahead > 0 && `${f.plural(w.ahead, 'job')} ahead`, w.until_ms && `expected ${f.instant(w.until_ms)}`].filter(Boolean).join(' · ')),
    w.remedies.length > 0 && [h('h4', null, 'What would start it, smallest change first'), h('ol.remedies', null, w.remedies.map((r, i) => h('li', {key: `${i}`}, r.sentence, r.tenant && [' (', tenantName(r.tenant), ')'], r.touches_others && h('span.muted', null, ' touches others'), r.at_ms && h('span.muted', null, `, ${f.instant(r.at_ms)}`))))],
    w.holders.length > 0 && [h('h4', null, 'Who has what it needs'), h('ul', null, w.holders.map((x) => h('li', {key: x.job}, h('a', {href: address('work', x.job)}, x.job), ' ', tenantName(x.tenant), ` ${f.gpus(x.milli)}`, x.end_ms && `, until ${f.instant(x.end_ms)}`)), w.others.jobs > 0 && h('li', {key: 'others'}, `others: ${f.plural(w.others.jobs, 'job')}, ${f.gpus(w.others.milli)}`))],
    w.holders.length === 0 && w.others.jobs > 0 && h('p.muted', null, `Others have ${f.gpus(w.others.milli)} in ${f.plural(w.others.jobs, 'job')}.`));
}

// ---- a job ----

const fresh = () => ({tenant: '', command: '', name: '', pool: '', profile: '', gpus: '1', share: '', memory: '', priority: '', requeue: false, pause: false, hours: ''});
let draft = fresh();
let answer = null; // {why} or {problem}

const set = (k) => (e) => {
  draft[k] = e.target.type === 'checkbox' ? e.target.checked : e.target.value;
  redraw();
};
const field = (k, label, props = {}, hint) => h('label.field', null, label, h('input', {type: 'text', value: draft[k], oninput: set(k), ...props}), hint && h('span.muted.small', null, hint));
const pick = (k, label, options) => h('label.field', null, label, h('select', {value: draft[k], onchange: set(k)}, options.map(([v, t]) => h('option', {value: v}, t))));
const tick = (k, label) => h('label.tick', null, h('input', {type: 'checkbox', checked: draft[k], onchange: set(k)}), ` ${label}`);

function asSubmit() {
  const n = (text) => Number(text);
  return {tenant: draft.tenant, argv: wordsOf(draft.command),
    ...(draft.name && {name: draft.name}), ...(draft.pool && {pool: draft.pool}), ...(draft.profile && {profile: draft.profile}), ...(draft.priority && {priority: draft.priority}),
    ...(n(draft.gpus) > 1 && {gpus: n(draft.gpus)}), ...(n(draft.share) > 0 && {milli: Math.round(n(draft.share) * 10)}), ...(n(draft.memory) > 0 && {memory_mib: Math.round(n(draft.memory) * GIB)}),
    ...(n(draft.hours) > 0 && {duration_ms: Math.round(n(draft.hours) * 3600000)}), ...(draft.requeue && {can_requeue: true}), ...(draft.pause && {can_pause: true})};
}

async function ask() {
  answer = null;
  try {
    // Whether the policy takes it; then, where the node can think of a job that is not there, whether it would start.
    await post('/v1/jobs', {...asSubmit(), dry_run: true});
    answer = {taken: true};
    answer.why = await post('/v1/what-if', {submit: asSubmit()});
  } catch (p) {
    if (!answer?.taken) answer = {problem: p};
  }
  redraw();
}

async function submit() {
  // The same key however often the button is pressed: one job.
  draft.key ??= crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
  try {
    const made = await attempt('The job was taken.', () => post('/v1/jobs', asSubmit(), {'Idempotency-Key': draft.key}));
    draft.key = undefined;
    if (!made) return;
    answer = null;
    draft = {...fresh(), tenant: draft.tenant};
    refresh('/v1/jobs', '/v1/status');
    location.hash = address('work', made.id, {...route().params, form: ''});
  } finally {
    redraw();
  }
}

export function jobForm() {
  const tenants = submitFor();
  if (!tenants.includes(draft.tenant)) draft.tenant = tenants[0] || '';
  const pools = draft.tenant ? use(`/v1/tenants/${encodeURIComponent(draft.tenant)}`).data?.pools || [] : [];
  const mechanism = pools.find((p) => p.pool === draft.pool)?.mechanism;
  return h('form.sheet', {key: 'job', 'aria-label': 'A job', onsubmit: (e) => {
    e.preventDefault();
    submit();
  }},
  h('div.fields', null,
    pick('tenant', 'Tenant', tenants.map((t) => [t, t])),
    pick('pool', 'Pool', [['', 'whichever fits'], ...pools.map((p) => [p.pool, `${p.pool} (${p.mechanism})`])]),
    field('name', 'Name', {maxlength: 100}),
    field('gpus', 'GPUs', {type: 'number', min: 1, max: 4096}),
    mechanism !== 'mig' && field('share', 'Share of each, %', {type: 'number', min: 1, max: 100, placeholder: 'all of it'}),
    mechanism !== 'mig' && field('memory', 'Memory of each, GiB', {type: 'number', min: 1, placeholder: 'what the slice has'}),
    (mechanism === 'mig' || !draft.pool) && field('profile', 'MIG profile', {placeholder: 'any'}),
    pick('priority', 'Priority', [['', 'normal'], ['low', 'low'], ['high', 'high']]),
    field('hours', 'Takes at most, hours', {type: 'number', min: 0, step: 'any', placeholder: 'not known'})),
  h('label.field', null, 'Command', h('input', {type: 'text', class: 'code', required: true, value: draft.command, oninput: set('command'), placeholder: 'python3 main.py --steps 1000', autocomplete: 'off', spellcheck: 'false'})),
  h('div.row', null, tick('requeue', 'may be ended and started again'), tick('pause', 'may be paused')),
  h('div.row', null, h('button', {type: 'button', onclick: ask, disabled: !draft.command}, 'Would it be taken?'), h('button.primary', {type: 'submit'}, 'Submit')),
  h('div', {'aria-live': 'polite'}, answer?.why && whyView(answer.why),
    answer?.taken && !answer.why && h('div.notice.good', null, h('strong', null, '✓ The policy takes it.'), ' Once it waits, this page says why, and what would start it.'), answer?.problem && problem(answer.problem)));
}

// ---- what if ----

let change = {job: '', kind: 'end-job', victim: '', tenant: '', gpus: '', count: '1', answer: null};

async function tryChange(j) {
  const c = change.kind === 'end-job' ? {kind: 'end-job', job: change.victim} : change.kind === 'quota' ? {kind: 'quota', tenant: change.tenant || j.tenant, gpus_milli: Math.round(Number(change.gpus) * 1000)} : {kind: 'gpus', count: Number(change.count)};
  try {
    change.answer = {why: await post('/v1/what-if', {job: j.id, changes: [c]})};
  } catch (p) {
    change.answer = {problem: p};
  }
  redraw();
}

/** For one that waits: would it start if something were otherwise? Nothing is changed by asking. */
export function whatIfForm(j) {
  if (change.job !== j.id) change = {job: j.id, kind: 'end-job', victim: '', tenant: j.tenant, gpus: '', count: '1', answer: null};
  const running = (use('/v1/jobs?state=running', 'jobs').data?.jobs || []);
  if (!change.victim && running.length) change.victim = running[0].id;
  const on = (k) => (e) => {
    change[k] = e.target.value;
    redraw();
  };
  return h('form.sheet', {key: `whatif ${j.id}`, 'aria-label': 'What if', onsubmit: (e) => {
    e.preventDefault();
    tryChange(j);
  }},
  h('h3', null, 'What if…'),
  h('div.row', null,
    h('label.field', null, 'Change', h('select', {value: change.kind, onchange: on('kind')}, h('option', {value: 'end-job'}, 'a job ended'), mayOperate() && h('option', {value: 'quota'}, 'the quota were'), mayOperate() && h('option', {value: 'gpus'}, 'there were more GPUs'))),
    change.kind === 'end-job' && h('label.field', null, 'Job', h('select', {value: change.victim, onchange: on('victim')}, running.map((x) => h('option', {value: x.id, key: x.id}, `${x.id} ${x.name || ''} (${x.tenant})`)))),
    change.kind === 'quota' && h('label.field', null, 'GPUs', h('input', {type: 'number', min: 0, step: 'any', required: true, value: change.gpus, oninput: on('gpus')})),
    change.kind === 'gpus' && h('label.field', null, 'How many more', h('input', {type: 'number', min: 1, value: change.count, oninput: on('count')})),
    h('button', {type: 'submit'}, 'Try')),
  h('div', {'aria-live': 'polite'}, change.answer?.why && whyView(change.answer.why), change.answer?.problem && problem(change.answer.problem)));
}
