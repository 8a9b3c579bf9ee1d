// SPDX-License-Identifier: Apache-2.0
// tenants.js - what each was promised, has, borrows and may have; over time; how it is kept apart; what it cost.
import {h} from './dom.js';
import {use} from './data.js';
import {latest} from './latest.js';
import {answered, areas, empty, listed, quotaBar, stat, tenantName} from './parts.js';
import {address, go, route} from './route.js';
import {table} from './table.js';
import * as f from './format.js';

const HOUR = 3600000;
const RANGES = {'10m': ['10 minutes', HOUR / 6], '1h': ['1 hour', HOUR], '24h': ['24 hours', 24 * HOUR], '7d': ['7 days', 168 * HOUR]};
const PARTS = 24;
const STEP = 10000; // the end of what is asked for moves in such steps, so that answers can be used again

const range = () => RANGES[route().params.range] ? route().params.range : '1h';

/** What was used in each part of the range: past parts do not change and are asked for once. */
function history() {
  const length = RANGES[range()][1] / PARTS;
  const now = Math.floor(Date.now() / STEP) * STEP;
  const end = Math.ceil(now / length) * length;
  const out = [];
  for (let i = PARTS; i > 0; i--) {
    const from = end - i * length;
    const to = Math.min(from + length, now);
    if (to <= from) continue;
    out.push({from, to, data: use(`/v1/usage?from_ms=${from}&to_ms=${to}`).data});
  }
  return out;
}

let lastCurve = null; // shown while the newest part is on its way

function curve(only) {
  const parts = history();
  const complete = parts.every((p) => p.data);
  const key = `${range()} ${only || ''}`;
  if (!complete && (!lastCurve || lastCurve.key !== key)) return h('p.muted', {'aria-busy': 'true'}, 'Reading the books…');
  if (complete) {
    const names = [...new Set(parts.flatMap((p) => p.data.usage.map((u) => u.tenant)))].filter((t) => !only || t === only).sort((a, b) => f.colourOf(a) - f.colourOf(b));
    const series = names.map((tenant) => ({tenant, values: parts.map((p) => p.data.usage.filter((u) => u.tenant === tenant).reduce((n, u) => n + u.milli_ms, 0) / (p.to - p.from))}));
    const sums = parts.map((_, i) => series.reduce((n, s) => n + s.values[i], 0));
    // It begins where there is something: a node that is new has no long past.
    const first = Math.max(0, Math.min(sums.findIndex((v) => v > 0), parts.length - 2));
    for (const s of series) s.values = s.values.slice(first);
    lastCurve = {key, series, labels: parts.slice(first).map((p) => p.from), most: Math.max(1000, Math.ceil(Math.max(0, ...sums) / 1000) * 1000)};
  }
  const c = lastCurve;
  return [h('div.chart', null, h('div.yaxis', {'aria-hidden': 'true'}, h('span', null, f.gpus(c.most)), h('span', null, '0')), areas(c.series, c.most, c.labels)),
    h('div.xaxis', {'aria-hidden': 'true'}, h('span', null, RANGES[range()][1] > HOUR ? f.instant(c.labels[0]).slice(5, 16) : f.clock(c.labels[0])), h('span', null, 'now'))];
}

const ranges = () => h('div.seg', {role: 'group', 'aria-label': 'Range'}, Object.entries(RANGES).map(([k, [name]]) => h('button', {type: 'button', 'aria-pressed': String(range() === k), onclick: () => go({range: k})}, name)));

// ---- cost ----

const shown = latest(); // the answer that is shown while the next one is on its way

/** Sums of a range: by tenant; money where the policy has prices; known: there is an answer, of now or of a moment ago. */
function usageOf() {
  const now = Math.floor(Date.now() / STEP) * STEP;
  const e = use(`/v1/usage?from_ms=${Math.floor((now - RANGES[range()][1]) / STEP) * STEP}`);
  const data = shown(range(), e.data);
  const by = new Map();
  for (const u of data?.usage || []) {
    const t = by.get(u.tenant) || {milli_ms: 0, mib_ms: 0, leases: 0, mechanisms: new Map()};
    t.milli_ms += u.milli_ms;
    t.mib_ms += u.mib_ms;
    t.leases += u.leases;
    t.mechanisms.set(u.mechanism, (t.mechanisms.get(u.mechanism) || 0) + u.milli_ms);
    by.set(u.tenant, t);
  }
  return {by, prices: data?.prices || null, known: Boolean(data), error: e.error};
}

function cost(u, prices) {
  if (!prices || !u) return null;
  return (u.milli_ms / 1000 * prices.gpu_hour_micro + u.mib_ms / 1024 * prices.memory_gib_hour_micro) / HOUR / 1e6;
}
const money = (v, prices) => v === null ? '–' : `${v.toLocaleString('en', {minimumFractionDigits: 2, maximumFractionDigits: 2})} ${prices.currency || ''}`.trim();

// ---- one tenant ----

const MECHANISM = {whole: 'whole cards', mig: 'instances of MIG', mps: 'MPS', gate: 'shares behind the gate', fractional: 'shares', timeslice: 'time slices', vgpu: 'vGPU'};

function isolation(pools, leases) {
  if (!pools.length) return empty('It is in no pool.');
  return h('div.cards', null, pools.map((p) => {
    const here = leases.filter((l) => l.pool === p.pool);
    return h('div.card', {key: p.pool}, h('h3', null, `Pool ${p.pool}`),
      h('dl.pairs', null, h('dt', null, 'Mechanism'), h('dd', null, MECHANISM[p.mechanism] || p.mechanism), h('dt', null, 'Tier'), h('dd', null, p.tier),
        h('dt', null, 'Shared'), h('dd', null, p.shared ? 'yes' : 'no'),
        h('dt', null, 'Stays shared'), h('dd', null, listed(p.stays_shared) || 'this node does not say'),
        h('dt', null, 'Now'), h('dd', null, here.length ? [...new Set(here.map((l) => l.stack || l.mechanism))].map((s) => `${here.filter((l) => (l.stack || l.mechanism) === s).length} × ${s}`).join(', ') : 'nothing')));
  }));
}

function one(name) {
  const leases = use('/v1/leases?state=live', 'leases').data?.leases || [];
  const {by, prices, known} = usageOf();
  const u = by.get(name);
  return [h('p', null, h('a', {href: address('tenants')}, '← all tenants')),
    answered(use(`/v1/tenants/${encodeURIComponent(name)}`), (d) => {
      const q = d.quota;
      const most = Math.max(1000, q.max_milli || 0, q.guaranteed_milli || 0, q.used_milli);
      return [
        h('h2', null, tenantName(name, false)),
        h('p.muted', null, [d.use.class && `class ${d.use.class}`, d.trust && `trust ${d.trust}`, d.domain && `domain ${d.domain}`, d.cost_center && `cost center ${d.cost_center}`].filter(Boolean).join(' · ')),
        h('div.stats', null, stat('Has now', f.milli(q.used_milli), 'GPUs'), stat('Guaranteed', f.milli(q.guaranteed_milli), 'GPUs'),
          stat('Borrowed', f.milli(q.borrowed_milli), q.may_borrow ? 'may borrow' : 'may not borrow', q.borrowed_milli ? 'warn' : ''),
          stat('Remaining', f.milli(Math.max(0, (q.max_milli ?? q.guaranteed_milli ?? 0) - q.used_milli)), `limit ${f.milli(q.max_milli ?? q.guaranteed_milli)}`),
          stat('Waiting', f.count(q.waiting_jobs), 'jobs', q.waiting_jobs ? 'warn' : ''),
          stat('Cost', money(cost(u, prices), prices), prices ? `last ${RANGES[range()][0]}` : known ? 'no prices are told' : 'reading the books')),
        quotaBar({...q, tenant: name}, most),
        h('div.heading', null, h('h2', null, 'Share over time'), ranges()), curve(name),
        h('h2', null, 'What keeps it apart'), isolation(d.pools, leases.filter((l) => l.tenant === name)),
      ];
    })];
}

// ---- all of them ----

export function tenantsPage() {
  const {id} = route();
  if (id) return one(id);
  return answered(use('/v1/quota'), (data) => {
    const uses = use('/v1/tenants').data;
    const {by, prices, known, error} = usageOf();
    const most = Math.max(1000, ...data.quotas.map((q) => Math.max(q.max_milli || 0, q.guaranteed_milli || 0, q.used_milli)));
    const use1 = (q) => uses?.tenants.find((t) => t.tenant === q.tenant);
    const o = uses?.others;
    // What is not known yet is not nought, on the page and in what is exported.
    const hours = (q, field, unit) => known ? (by.get(q.tenant)?.[field] || 0) / unit / HOUR : null;
    const columns = [
      {key: 'tenant', label: 'Tenant', get: (q) => q.tenant, show: (q) => tenantName(q.tenant)},
      {key: 'class', label: 'Class', get: (q) => use1(q)?.class},
      {key: 'share', label: 'Used, promised, limit', cls: 'wide', get: (q) => q.used_milli / 1000, show: (q) => quotaBar(q, most)},
      {key: 'used', label: 'Used', num: true, get: (q) => q.used_milli / 1000, show: (q) => f.milli(q.used_milli)},
      {key: 'guaranteed', label: 'Guaranteed', num: true, get: (q) => q.guaranteed_milli === null ? null : q.guaranteed_milli / 1000, show: (q) => f.milli(q.guaranteed_milli)},
      {key: 'borrowed', label: 'Borrowed', num: true, get: (q) => q.borrowed_milli / 1000, show: (q) => f.milli(q.borrowed_milli)},
      {key: 'limit', label: 'Limit', num: true, get: (q) => q.max_milli === null ? null : q.max_milli / 1000, show: (q) => f.milli(q.max_milli ?? q.guaranteed_milli)},
      {key: 'memory_mib', label: 'Memory', num: true, get: (q) => use1(q)?.memory_mib, show: (q) => f.mib(use1(q)?.memory_mib)},
      {key: 'running', label: 'Running', num: true, get: (q) => use1(q)?.running ?? 0},
      {key: 'waiting', label: 'Waiting', num: true, get: (q) => q.waiting_jobs},
      {key: 'gpu_hours', label: 'GPU-hours', num: true, get: (q) => hours(q, 'milli_ms', 1000), show: (q) => known ? f.gpuHours(by.get(q.tenant)?.milli_ms || 0) : '…'},
      {key: 'gib_hours', label: 'GiB-hours', num: true, get: (q) => hours(q, 'mib_ms', 1024), show: (q) => known ? f.gibHours(by.get(q.tenant)?.mib_ms || 0) : '…'},
      ...(prices ? [{key: 'cost', label: 'Cost', num: true, get: (q) => cost(by.get(q.tenant), prices) || 0, show: (q) => money(cost(by.get(q.tenant), prices) || 0, prices)}] : []),
    ];
    return [
      h('div.heading', null, h('h2', null, 'Share over time'), ranges()), curve(),
      h('p.legend', null, data.quotas.map((q) => tenantName(q.tenant))),
      table({id: 'tenants', label: 'Tenants', one: 'tenant', columns, rows: data.quotas, rowKey: (q) => q.tenant}),
      o && o.tenants > 0 && h('p.muted', null, `Others: ${f.plural(o.tenants, 'tenant')} with ${f.gpus(o.milli)} and ${f.mib(o.memory_mib)}.`),
      h('p.muted.small', null, `Hours and cost: the last ${RANGES[range()][0]}, from the node’s books${prices ? ', at the prices of the policy' : ''}. All amounts in GPUs unless another unit is written.`),
      error && h('p.warnword', null, `▲ The books could not be read just now: ${error.message}. Hours and cost are of before that.`),
    ];
  });
}
