// SPDX-License-Identifier: Apache-2.0
// work.js - what runs, what waits, why it waits and the smallest change that would start it.
import {h} from './dom.js';
import {post} from './api.js';
import {refresh, use} from './data.js';
import {jobForm, whatIfForm, whyView} from './forms.js';
import {outputView} from './output.js';
import {answered, attempt, badge, confirm, empty, listed, tenantName, when} from './parts.js';
import {address, go, route} from './route.js';
import {table} from './table.js';
import {maySubmit, submitFor} from './who.js';
import * as f from './format.js';

const EXPLAINED = 25; // waiting jobs that are explained in the list itself

export function wants(j) {
  const each = j.profile || (j.milli && j.milli < 1000 ? `${Math.round(j.milli / 10)} %` : 'whole');
  return `${j.gpus || 1} × ${each}${j.memory_mib ? `, ${f.mib(j.memory_mib)}` : ''}`;
}

const jobLink = (j) => h('a', {href: address('work', j.id, route().params)}, h('strong', null, j.id), j.name ? ` ${j.name}` : '');
const base = [
  {key: 'job', label: 'Job', get: (j) => `${j.id} ${j.name || ''}`, show: jobLink},
  {key: 'tenant', label: 'Tenant', get: (j) => j.tenant, show: (j) => tenantName(j.tenant)},
  {key: 'user', label: 'User', get: (j) => j.user},
  {key: 'wants', label: 'Wants', get: wants},
  {key: 'pool', label: 'Pool', get: (j) => j.pool},
];

function waitingTable(jobs) {
  const why = (j) => jobs.indexOf(j) < EXPLAINED ? use(`/v1/jobs/${j.id}/why`).data : undefined;
  return table({id: 'waiting', label: 'Waiting', one: 'job', rows: jobs, rowKey: (j) => j.id, none: 'Nobody waits.', columns: [...base,
    {key: 'since', label: 'Waits', num: true, get: (j) => Math.round((Date.now() - j.submit_ms) / 1000), show: (j) => f.span(Date.now() - j.submit_ms)},
    {key: 'reason', label: 'Why, and what would start it', cls: 'wide', get: (j) => [why(j)?.sentence || j.why, why(j)?.remedies?.[0]?.sentence].filter(Boolean).join('; '),
      show: (j) => h('div', null, why(j)?.sentence || j.why || (why(j) === undefined ? '…' : 'its turn has not come yet'), why(j)?.remedies?.[0] && h('div.todo', null, h('span.muted', null, 'Smallest change: '), why(j).remedies[0].sentence))}]});
}

function runningTable(jobs, leases) {
  const of = (j) => leases.find((l) => l.job === j.id && l.state !== 'released');
  return table({id: 'running', label: 'Running', one: 'job', rows: jobs, rowKey: (j) => j.id, none: 'Nothing runs.', columns: [...base,
    {key: 'isolation', label: 'Kept apart by', get: (j) => of(j) && `${of(j).stack || of(j).mechanism}, tier ${of(j).tier}`},
    {key: 'state', label: 'State', get: (j) => of(j)?.paused ? 'paused' : of(j)?.state || j.state, show: (j) => badge(of(j)?.paused ? 'paused' : of(j)?.state || j.state)},
    {key: 'compute', label: 'Gets', num: true, get: (j) => of(j)?.live ? of(j).live.compute_ppm / 10000 : null, show: (j) => of(j)?.live ? `${Math.round(of(j).live.compute_ppm / 10000)} %, ${f.mib(of(j).live.memory_mib)}` : h('span.muted', null, '–')},
    {key: 'since', label: 'Runs', num: true, get: (j) => Math.round((Date.now() - j.state_ms) / 1000), show: (j) => f.span(Date.now() - j.state_ms)}]});
}

function endedTable(jobs) {
  return table({id: 'ended', label: 'Ended', one: 'job', rows: jobs, rowKey: (j) => j.id, none: 'Nothing has ended yet.', columns: [...base,
    {key: 'end', label: 'End', get: (j) => j.end, show: (j) => badge(j.end === 'exited' && j.status !== 0 ? 'failed' : j.end || 'ended', j.end === 'exited' ? `exit ${j.status}` : j.end || 'ended')},
    {key: 'reason', label: 'Reason', cls: 'wide', get: (j) => j.why},
    {key: 'at', label: 'When', num: true, get: (j) => j.state_ms, show: (j) => when(j.state_ms)}]});
}

// ---- one job ----

function buttons(j, lease) {
  if (!maySubmit(j.tenant) || j.state === 'ended') return null;
  const done = () => refresh('/v1/jobs', '/v1/leases', '/v1/status', '/v1/gpus', '/v1/quota');
  const order = (verb, text, words, cls) => h('button', {type: 'button', class: cls || '', onclick: () => confirm(`${text} ${j.id}?`, words, text, (reason) =>
    attempt(`${j.id}: ${verb} was ordered`, () => post(verb === 'cancel' ? `/v1/jobs/${j.id}/cancel` : `/v1/leases/${lease.id}/${verb}`, reason ? {reason} : {})).then(done))}, text);
  const name = j.name ? `${j.name} (${j.id})` : j.id;
  return h('div.row', null,
    // Who has silicon of its own is not halted for others.
    lease?.state === 'active' && !lease.paused && !['whole', 'mig'].includes(lease.mechanism) && order('pause', 'Pause', `${name} is halted where it is. It keeps its GPUs and its memory.`),
    lease?.paused && order('resume', 'Resume', `${name} goes on where it was halted.`),
    lease?.state === 'active' && j.can_suspend && order('suspend', 'Suspend', `${name} is moved to host memory and gives back its GPUs.`),
    order('cancel', 'Cancel', `${name} of ${j.tenant} ends, and what it has not saved is lost.`, 'danger'));
}

function attemptView(l) {
  const d = use(`/v1/leases/${l.id}`).data;
  return h('li', {key: l.id}, h('div', null, h('strong', null, l.id), ' ', badge(l.paused ? 'paused' : l.state), ` ${l.stack || l.mechanism}, tier ${l.tier}`),
    l.why && h('div.small', null, l.why),
    d?.stays_shared && h('details.small', null, h('summary', null, 'What stays shared with others'), listed(d.stays_shared)),
    d && h('div.small.muted', null, d.slices.map((s) => `${s.kind === 'mig' ? s.key.replace('mig:', '') : s.kind} on ${s.gpu}, ${f.mib(s.memory_mib)}${s.proved_clean ? ', proved clean' : ''}`).join('; ')),
    d && h('ol.way', {'aria-label': `The way of ${l.id}`}, d.history.map((s) => h('li', {key: `${s.at_ms}${s.to}`}, h('span.num.muted', null, f.clock(s.at_ms)), badge(s.to), s.why && h('span.small', null, s.why)))),
    d && d.scrubs.map((s, i) => h('div.small', {key: `scrub ${i}`}, 'Scrub: ', badge(s.verdict), ` ${s.method || ''}`, s.total_bytes > 0 && `, ${f.percent(s.probed_bytes, s.total_bytes)} of the card probed`, s.words && h('div.muted', null, s.words))));
}

function detail(id) {
  const close = () => {
    location.hash = address('work', '', route().params);
  };
  return h('aside.panel', {key: `panel ${id}`, 'aria-label': `Job ${id}`, hook: {mount: (el) => el.querySelector('button').focus({preventScroll: true})}, onkeydown: (e) => e.key === 'Escape' && close()},
    h('button.quiet.close', {type: 'button', onclick: close, 'aria-label': 'Close'}, '✕'),
    answered(use(`/v1/jobs/${encodeURIComponent(id)}`), (d) => {
      const j = d.job;
      const lease = d.leases.find((l) => !['released', 'quarantined'].includes(l.state));
      const why = j.state === 'waiting' ? use(`/v1/jobs/${j.id}/why`) : null;
      return [
        h('h2', null, `${j.id} ${j.name || ''} `, badge(j.state)),
        h('p', null, tenantName(j.tenant), h('span.muted', null, ` · ${j.user} · submitted `), when(j.submit_ms)),
        buttons(j, lease),
        why && h('section', null, h('h3', null, 'Why it waits'), answered(why, whyView)),
        why && submitFor().length > 0 && whatIfForm(j),
        j.state === 'ended' && j.why && h('div.notice', null, j.why),
        h('dl.pairs', null, [['Wants', wants(j)], ['Pool', j.pool], ['Tier', j.tier], ['Priority', j.priority], ['Command', d.argv.join(' ')], ['Folder', d.cwd], ['Image', d.image],
          ['May be', [j.can_pause && 'paused', j.can_suspend && 'suspended', j.can_requeue && 'started again'].filter(Boolean).join(', ') || 'interrupted only by force'],
          ['Takes at most', j.duration_ms && f.span(j.duration_ms)], ['Deadline', j.deadline_ms && f.instant(j.deadline_ms)]]
          .filter(([, v]) => v).map(([k, v]) => [h('dt', null, k), h('dd', {class: k === 'Command' ? 'code' : ''}, v)])),
        h('h3', null, 'Attempts'), d.leases.length ? h('ul.attempts', null, d.leases.map(attemptView)) : empty('None yet.'),
        maySubmit(j.tenant) && outputView(j),
      ];
    }));
}

export function workPage() {
  const {id, params: p} = route();
  const waiting = use('/v1/jobs?state=waiting', 'jobs');
  const running = use('/v1/jobs?state=running', 'jobs');
  const leases = use('/v1/leases?state=live', 'leases').data?.leases || [];
  const others = waiting.data?.others || running.data?.others;
  return h('div', {class: id ? 'with-panel' : ''}, h('div.body', null,
    submitFor().length > 0 && h('div.row', null,
      h('button', {type: 'button', class: p.form === 'submit' ? '' : 'primary', 'aria-expanded': String(p.form === 'submit'), onclick: () => go({form: p.form === 'submit' ? '' : 'submit'})}, p.form === 'submit' ? 'Close the form' : 'Submit or try a job')),
    p.form === 'submit' && jobForm(),
    h('h2', null, 'Waiting'), answered(waiting, (d) => waitingTable(d.jobs)),
    h('h2', null, 'Running'), answered(running, (d) => runningTable(d.jobs, leases)),
    others ? h('p.muted', null, `Others have ${f.plural(others, 'job')} here.`) : null,
    h('div.heading', null, h('h2', null, 'Ended'), h('button.quiet', {type: 'button', 'aria-expanded': String(p.ended === '1'), onclick: () => go({ended: p.ended ? '' : '1'})}, p.ended ? 'Hide' : 'Show the last 200')),
    p.ended && answered(use('/v1/jobs?state=ended&newest=true&limit=200'), (d) => endedTable(d.jobs))),
  id && detail(id));
}
