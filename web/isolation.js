// SPDX-License-Identifier: Apache-2.0
// isolation.js - would you put a second customer here? The layers with their live state, findings with their rules, proofs.
import {h, redraw} from './dom.js';
import {ask} from './api.js';
import {isOld, use} from './data.js';
import {answered, badge, empty, listed, named, tenantName, when} from './parts.js';
import {ABOUT, layers, stateOf} from './layers.js';
import {address} from './route.js';
import {table} from './table.js';
import {mayAudit, mayOperate, seesAll} from './who.js';
import * as f from './format.js';

// ---- findings: the policy in force, judged by the same rules as it is before it is applied ----

const judged = {version: 0, list: null, errors: 0, busy: false, error: null};
function findings() {
  if (!mayOperate()) return null;
  const p = use('/v1/policy').data;
  if (p && p.version !== judged.version && !judged.busy) {
    judged.busy = true;
    judged.version = p.version;
    ask('POST', '/v1/policy/diff', {text: p.text}).then((d) => Object.assign(judged, {list: d.findings, errors: d.errors, error: null}), (e) => Object.assign(judged, {error: e.message})).finally(() => {
      judged.busy = false;
      redraw();
    });
  }
  return judged;
}

function finding(text, i) {
  const rule = /BH-\d{3}/.exec(text)?.[0];
  return h('li', {key: `${i}`}, rule && h('span.rule', null, rule), ' ', text.replace(rule || '', '').replace(/^[\s:]+/, ''));
}

// ---- the matrix ----

function matrix(node, state, old) {
  return h('div.scroll', {class: old ? 'old' : '', tabindex: 0, role: 'region', 'aria-label': 'Layers'}, h('table.matrix', null,
    h('caption.hidden', null, 'Layers of isolation and their state on each node'),
    h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Layer'), h('th', {scope: 'col', colspan: 2}, `Node ${node}`))),
    h('tbody', null, Object.entries(state).map(([layer, facts]) => h('tr', {key: layer}, h('th', {scope: 'row'}, layer, h('div.muted.small', null, ABOUT[layer])),
      h('td', null, stateOf(facts) === 'none' ? badge('free', 'not checked') : badge(stateOf(facts))),
      h('td', null, h('ul.plain', null, facts.map((x, i) => h('li', {key: `${i}`, class: x.state}, x.text, x.mend && h('div.todo', null, h('span.muted', null, 'Do: '), x.mend))))))))));
}

const poolColumns = [
  {key: 'pool', label: 'Pool', get: (r) => r.pool},
  {key: 'mechanism', label: 'Mechanism', get: (r) => r.mechanism},
  {key: 'tier', label: 'Tier', get: (r) => r.tier},
  {key: 'tenants', label: 'Tenants now', get: (r) => r.tenants.join(' '), show: (r) => h('span.names', null, r.tenants.length ? r.tenants.map((t) => tenantName(t)) : h('span.muted', null, 'nobody'))},
  {key: 'leases', label: 'Leases', num: true, get: (r) => r.leases},
  {key: 'shared', label: 'Shared', get: (r) => r.shared === undefined ? null : r.shared ? 'yes' : 'no'},
  {key: 'stays_shared', label: 'What stays shared', cls: 'wide', get: (r) => r.stays_shared, show: (r) => listed(r.stays_shared)},
];

function pools(tenants, leases) {
  const rows = new Map();
  for (const t of tenants) {
    for (const p of use(`/v1/tenants/${encodeURIComponent(t.tenant)}`).data?.pools || []) if (!rows.has(p.pool)) rows.set(p.pool, {...p, tenants: [], leases: 0});
  }
  for (const l of leases) {
    const r = rows.get(l.pool);
    if (!r || l.state !== 'active') continue;
    r.leases++;
    if (!r.tenants.includes(l.tenant)) r.tenants.push(l.tenant);
  }
  return [...rows.values()];
}

const PROOFS = /^(scrub|quarantine|selftest|escape|attestation|mig\.drift|version\.drift|gpu\.)/;
const proofColumns = [
  {key: 'time', label: 'When', get: (r) => r.at_ms, show: (r) => when(r.at_ms)},
  {key: 'event', label: 'What', get: (r) => r.event},
  {key: 'verdict', label: 'Verdict', get: (r) => r.after || r.outcome, show: (r) => badge(r.outcome, r.after || r.outcome)},
  {key: 'tenant', label: 'After', get: (r) => r.tenant, show: (r) => tenantName(r.tenant)},
  {key: 'object', label: 'On', get: (r) => r.object_id, show: (r) => named(r.object_id)},
  {key: 'reason', label: 'In words', cls: 'wide', get: (r) => r.reason},
  {key: 'record', label: 'Record', num: true, get: (r) => r.seq, show: (r) => h('a', {href: address('audit', '', {'audit.q': `seq:${r.seq}`})}, `#${r.seq}`)},
];

export function isolationPage() {
  return answered(use('/v1/status'), (s) => {
    const all = seesAll();
    const gpus = use('/v1/gpus');
    const leases = use('/v1/leases?state=live', 'leases');
    const doctor = all ? use('/v1/doctor') : null;
    const quotas = use('/v1/quota');
    const found = findings();
    const state = layers({gpus: gpus.data?.gpus, leases: leases.data?.leases, doctor: doctor?.data?.checks, quotas: quotas.data?.quotas, findings: found});
    const rows = pools(s.tenants, leases.data?.leases || []);
    return [
      h('p.lead', null, all ? 'Each layer as it is now, on this node.' : 'Each layer as it is now, as far as it concerns you.', s.simulated && ' The silicon is simulated: this shows that the parts work together, not what real cards keep apart.'),
      matrix(s.node, state, isOld(gpus)),
      h('h2', null, 'What keeps tenants apart'),
      table({id: 'pools', label: 'Pools', one: 'pool', columns: poolColumns.filter((c) => c.key !== 'stays_shared' || rows.some((r) => r.stays_shared)), rows, rowKey: (r) => r.pool, none: 'No pool.'}),
      found && [h('h2', null, 'Findings about the policy in force'), found.error ? h('p', null, found.error) : found.list === null ? h('p.muted', null, 'Judging the policy…')
        : found.list.length ? h('ul.findings', null, found.list.map(finding)) : empty('None: no rule has anything against it.')],
      mayAudit() && [h('h2', null, 'Proofs and faults'), answered(use('/v1/audit?newest=true&limit=500'), (d) => table({id: 'proofs', label: 'Proofs and faults', one: 'record', columns: proofColumns, rows: d.records.filter((r) => PROOFS.test(r.event)), rowKey: (r) => r.seq, none: 'No scrub and no fault among the last 500 records.'}))],
    ];
  });
}
