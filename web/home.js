// SPDX-License-Identifier: Apache-2.0
// home.js - is everything all right; and if not, what is wrong and what to do about it.
import {h} from './dom.js';
import {live, use} from './data.js';
import {answered, badge, empty, quotaBar, stat, tenantName} from './parts.js';
import {address} from './route.js';
import {grantedOf} from './silicon.js';
import {mayAudit, seesAll} from './who.js';
import * as f from './format.js';

const SHOWN_WAITING = 5;

const item = (kind, what, todo, href, key) => ({kind, what, todo, href, key});

/** What could not be asked is not all right. */
const ofFailures = (asked) => Object.entries(asked).filter(([, e]) => e.error).map(([name, e]) => item('warn', `${name} could not be asked for: ${e.error.message}`, e.error.next, '#/home', `f ${name}`));

function ofDoctor() {
  const checks = seesAll() ? use('/v1/doctor').data?.checks || [] : [];
  return checks.filter((c) => c.state !== 'ok').map((c) => item(c.state === 'bad' ? 'bad' : 'warn', `${c.layer}: ${c.sentence}`, c.mend, '#/isolation', `doctor ${c.layer} ${c.sentence}`));
}

function ofGpus(gpus) {
  const out = [];
  for (const g of gpus) {
    const held = g.slices.filter((s) => s.state === 'quarantined');
    for (const s of held) {
      out.push(item('bad', `GPU ${g.index}: ${s.key ? s.key.replace('mig:', '') : s.kind} is in quarantine${s.why ? `: ${s.why}` : ''}`,
        'Nothing leaves quarantine by itself. Look at what the scrub said, then at the card.', address('fleet', String(g.index)), `q ${g.index} ${s.key}`));
    }
    if (held.length) continue;
    if (g.state !== 'ok') out.push(item(g.state === 'cordoned' ? 'warn' : 'bad', `GPU ${g.index} is ${g.state}${g.reason ? `: ${g.reason}` : ''}`, g.state === 'cordoned' ? 'Give it away again when it is sound.' : 'Open it to see what it says.', address('fleet', String(g.index)), `g ${g.index}`));
    else if (g.health) out.push(item('warn', `GPU ${g.index}: ${g.health}`, 'Open it to see what it says.', address('fleet', String(g.index)), `h ${g.index}`));
  }
  return out;
}

function ofJobs(jobs) {
  return jobs.slice(0, SHOWN_WAITING).map((j) => {
    const why = use(`/v1/jobs/${j.id}/why`).data;
    const sentence = why?.sentence || j.why || 'it was not looked at yet';
    return item('warn', `${j.name ? `${j.name} (${j.id})` : j.id} of ${j.tenant} waits for ${f.span(Date.now() - j.state_ms)}: ${sentence}`, why?.remedies?.[0]?.sentence, address('work', j.id), `j ${j.id}`);
  });
}

/** Who is below what was promised and waits, while others have more than their own. */
function ofShares(quotas, waiting) {
  // Who asks for more than its own quota waits for itself.
  const held = new Set(waiting.filter((j) => !['over quota', undefined].includes(use(`/v1/jobs/${j.id}/why`).data?.tier)).map((j) => j.tenant));
  const borrowed = quotas.filter((q) => q.borrowed_milli > 0);
  return quotas.filter((q) => held.has(q.tenant) && q.guaranteed_milli !== null && q.used_milli < q.guaranteed_milli && borrowed.some((b) => b.tenant !== q.tenant))
    .map((q) => item('warn', `${q.tenant} has ${f.milli(q.used_milli)} of the ${f.gpus(q.guaranteed_milli)} it was promised and waits, while ${borrowed.filter((b) => b.tenant !== q.tenant).map((b) => `${b.tenant} borrows ${f.milli(b.borrowed_milli)}`).join(', ')}`,
      'Where borrowed work may be interrupted, the scheduler takes it back; else it has to end.', address('tenants', q.tenant), `s ${q.tenant}`));
}

const problemView = (p) => h('li', {class: `problem ${p.kind}`, key: p.key},
  h('span.sign', {'aria-hidden': 'true'}, p.kind === 'bad' ? '✖' : '▲'),
  h('div.grow', null, h('a', {href: p.href}, h('span.hidden', null, p.kind === 'bad' ? 'Wrong: ' : 'Attention: '), p.what), p.todo && h('div.todo', null, h('span.muted', null, 'Do: '), p.todo)));

function verdict(list, status) {
  const bad = list.filter((p) => p.kind === 'bad').length;
  const kind = bad || status.health === 'bad' ? 'bad' : list.length || status.health === 'warn' ? 'warn' : 'good';
  const words = kind === 'good' ? 'Everything is all right.' : bad ? `${f.plural(bad, 'thing is', 'things are')} wrong${list.length > bad ? `, ${f.count(list.length - bad)} more to look at` : ''}.`
    : list.length ? `Nothing is broken. ${f.plural(list.length, 'thing', 'things')} to look at.` : 'The node gives a warning.';
  return h('div', {class: `verdict ${kind}`}, h('span.sign', {'aria-hidden': 'true'}, kind === 'good' ? '✓' : kind === 'warn' ? '▲' : '✖'), h('h2', null, words));
}

const eventLink = (e) => e.kind === 'job' ? address('work', e.id) : e.kind === 'gpu' ? address('fleet', e.id) : e.kind === 'lease' ? '#/work' : '#/isolation';
const objectLink = (r) => r.object_type === 'job' ? address('work', r.object_id) : r.object_type === 'gpu' ? address('fleet', r.object_id) : address('audit', '', {'audit.q': `seq:${r.seq}`});
const happening = (key, ms, what, href, name, tenant) => h('li', {key}, h('span.muted.num', null, f.clock(ms)), h('span', null, what), h('a', {href}, f.short(name)), tenantName(tenant));

/** From the log for who may read it; else what was told since the page was opened. */
function events() {
  const log = mayAudit() ? use('/v1/audit?newest=true&limit=30').data?.records.filter((r) => !r.event.startsWith('audit.')) || [] : null;
  const rows = log ? log.slice(0, 9).map((r) => happening(r.seq, r.at_ms, [r.event, r.outcome === 'success' ? '' : [' ', badge(r.outcome)]], objectLink(r), r.object_id || '–', r.tenant))
    : live.events.slice(0, 9).map((e, i) => happening(live.events.length - i, e.at, `${e.kind} ${e.state || 'changed'}`, eventLink(e), e.id || '', e.tenant));
  return h('section', null, h('h2', null, 'What just happened'), rows.length === 0 ? empty('Nothing since this page was opened.') : h('ol.events', null, rows));
}

export function homePage() {
  return answered(use('/v1/status'), (s) => {
    const asked = {gpus: use('/v1/gpus'), waiting: use('/v1/jobs?state=waiting', 'jobs'), quotas: use('/v1/quota'), ...(seesAll() ? {doctor: use('/v1/doctor')} : {})};
    const gpus = asked.gpus.data?.gpus || [];
    const waiting = asked.waiting.data?.jobs || [];
    const quotas = asked.quotas.data?.quotas || [];
    const open = Object.values(asked).some((e) => e.data === undefined && !e.error);
    const list = [...ofFailures(asked), ...ofDoctor(), ...ofGpus(gpus), ...ofShares(quotas, waiting.slice(0, SHOWN_WAITING)), ...ofJobs(waiting)];
    const granted = gpus.reduce((n, g) => n + grantedOf(g).milli, 0);
    const running = s.tenants.reduce((n, t) => n + t.running, 0);
    const most = Math.max(1000, ...quotas.map((q) => Math.max(q.max_milli || 0, q.guaranteed_milli || 0, q.used_milli)));
    return [
      open ? h('div.verdict.open', {'aria-busy': 'true'}, h('span.sign', {'aria-hidden': 'true'}, '…'), h('h2', null, 'Looking at the node.')) : verdict(list, s),
      list.length > 0 && h('ul.problems', {'aria-label': 'What to look at'}, list.slice(0, 20).map(problemView)),
      list.length > 20 && h('p.muted', null, `And ${f.count(list.length - 20)} more.`),
      waiting.length > SHOWN_WAITING && h('p', null, h('a', {href: '#/work'}, `${f.plural(waiting.length, 'job')} wait in all.`)),
      h('div.stats', null,
        stat('GPUs', f.count(s.gpus), `${f.milli(granted)} granted`),
        stat('Running', f.count(running), f.plural(s.tenants.reduce((n, t) => n + t.leases, 0), 'lease')),
        stat('Waiting', f.count(waiting.length), waiting.length ? `longest ${f.span(Date.now() - Math.min(...waiting.map((j) => j.submit_ms)))}` : 'nobody', waiting.length ? 'warn' : ''),
        stat('Tenants', f.count(s.tenants.length + (s.others?.tenants || 0)), s.others ? `${f.count(s.others.tenants)} others` : 'all of them'),
        stat('Policy', `v${s.policy_version}`, `driver ${s.driver || 'unknown'}`),
        stat('Up for', f.span(s.now_ms - s.started_ms), `bulkheadd ${s.version}`)),
      h('div.two', null,
        h('section', null, h('h2', null, 'Who has what'),
          !asked.quotas.data ? empty('…') : quotas.length === 0 ? empty('No tenants yet.') : h('ul.shares', null, quotas.map((q) => h('li', {key: q.tenant}, tenantName(q.tenant), quotaBar(q, most),
            h('span.num', null, `${f.milli(q.used_milli)} / ${f.milli(q.guaranteed_milli ?? 0)}`)))),
          h('p.muted.small', null, 'Solid: within what was promised. Striped: borrowed. Line: the promise. Track: the limit. In GPUs.')),
        events()),
    ];
  });
}
