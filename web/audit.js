// SPDX-License-Identifier: Apache-2.0
// audit.js - who did what, searchable; and the chain of it, checked in this page.
import {h, redraw} from './dom.js';
import {get, pagesOf} from './api.js';
import {use} from './data.js';
import {checker} from './chain.js';
import {answered, badge, named, problem, tenantName} from './parts.js';
import {go, route} from './route.js';
import {table} from './table.js';
import {mayAudit, seesAll} from './who.js';
import * as f from './format.js';

const columns = [
  {key: 'seq', label: '#', num: true, get: (r) => r.seq},
  {key: 'time', label: 'When', get: (r) => new Date(r.at_ms).toISOString(), show: (r) => h('time', {datetime: new Date(r.at_ms).toISOString()}, f.instant(r.at_ms))},
  {key: 'event', label: 'Event', get: (r) => r.event},
  {key: 'outcome', label: 'Outcome', get: (r) => r.outcome, show: (r) => badge(r.outcome)},
  {key: 'who', label: 'Who', get: (r) => r.who},
  {key: 'tenant', label: 'Tenant', get: (r) => r.tenant, show: (r) => tenantName(r.tenant)},
  {key: 'object', label: 'On', get: (r) => [r.object_type, r.object_id].filter(Boolean).join(' '), show: (r) => named([r.object_type, r.object_id].filter(Boolean).join(' '))},
  {key: 'what', label: 'From → to', cls: 'mid', get: (r) => [r.before, r.after].filter(Boolean).join(' → '), show: (r) => named([r.before, r.after].filter(Boolean).join(' → '))},
  {key: 'reason', label: 'Reason', cls: 'wide', get: (r) => [r.action, r.reason, (r.rules || []).join(' ')].filter(Boolean).join(' · ')},
];

const check = {busy: false, done: 0, result: null, error: null, at: 0};

async function run() {
  Object.assign(check, {busy: true, done: 0, result: null, error: null});
  redraw();
  try {
    if (!globalThis.crypto?.subtle) throw new Error('This page was not opened over HTTPS, so the browser gives it no SHA-256. Open it over HTTPS, or use: bulkhead audit verify');
    // The checkpoint first: records that come meanwhile are behind it.
    const checkpoint = await get('/v1/audit/checkpoint').catch(() => null);
    const checking = checker(checkpoint);
    for await (const page of pagesOf('/v1/audit?bodies=true')) {
      await checking.add(page.records, (n) => {
        check.done = n;
        redraw();
      });
    }
    check.result = await checking.end();
  } catch (p) {
    check.error = p;
  }
  check.busy = false;
  check.at = Date.now();
  redraw();
}

function verdict() {
  if (check.busy) return h('div.notice', {role: 'status'}, `Checking… ${f.count(check.done)} records`);
  if (check.error) return problem(check.error);
  const r = check.result;
  if (!r) return null;
  const good = r.wrong.length === 0;
  return h('div', {class: `notice ${good ? 'good' : 'bad'}`, role: 'status'},
    h('strong', null, good ? `✓ The chain holds: ${f.plural(r.checked, 'record')} checked here at ${f.clock(check.at)}.` : `✖ The log does not hold: ${f.plural(r.wrong.length, 'place')}.`),
    h('ul.plain', null,
      r.wrong.slice(0, 20).map((w, i) => h('li', {key: `${i}`}, `Record ${w.seq}: ${w.what}.`)),
      h('li', null, `Each record’s SHA-256 was made anew from its text; ${f.plural(r.links, 'link')} to the record before followed.`),
      r.checkpoint && h('li', null, r.checkpoint.root ? `The Merkle root over the first ${f.count(r.checkpoint.size)} is the one in the newest checkpoint; its signature ${{yes: 'is right', no: 'is WRONG', cannot: 'cannot be checked by this browser (no Ed25519)', unknown: 'is by a key that the log does not name'}[r.checkpoint.signature]}.` : 'The newest checkpoint does not fit.'),
      !r.whole && h('li', null, 'Older records were dropped after their time; the rest was checked from there on, without the checkpoint.'),
      h('li', null, 'A log rewritten by root on the node is found only with a checkpoint that was kept elsewhere.')));
}

export function auditPage() {
  if (!mayAudit()) return h('div.notice', null, 'The audit log takes the role operator, auditor or tenant-admin.');
  const limit = Math.min(1000, Number(route().params.limit) || 200);
  return [
    seesAll() ? [h('div.row', null, h('button.primary', {type: 'button', onclick: run, disabled: check.busy}, 'Verify the chain in this page')), verdict()]
      : h('p.muted', null, 'These are your tenant’s records. The chain runs through those of all tenants: an operator or an auditor can check it.'),
    answered(use(`/v1/audit?newest=true&limit=${limit}`), (d) => [
      table({id: 'audit', label: 'Audit log', one: 'record', columns, rows: d.records, rowKey: (r) => r.seq, none: 'Nothing was recorded.'}),
      d.next !== null && limit < 1000 && h('p', null, h('button.quiet', {type: 'button', onclick: () => go({limit: '1000'})}, 'Show the last 1000')),
      d.next !== null && h('p.muted.small', null, `Of the newest ${f.count(d.records.length)} records. All of them: bulkhead audit export`)]),
  ];
}
