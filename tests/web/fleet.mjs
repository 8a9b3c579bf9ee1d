// SPDX-License-Identifier: Apache-2.0
// fleet.mjs - a fleet of any size, as the API would show it: whole cards, shares, MIG, some that are ill. The same each time.

const PROFILES = [[['1g.10gb', 0, 10], ['2g.20gb', 2, 20], ['3g.40gb', 4, 40]], [['3g.40gb', 0, 40], ['3g.40gb', 4, 40]], [['1g.10gb', 0, 10], ['1g.10gb', 1, 10], ['1g.10gb', 2, 10], ['4g.40gb', 4, 40]]];
const MIB = 81559;

/** Well spread, the same each time. */
const pick = (i, n) => (Math.imul(i + 1, 2654435761) >>> 16) % n;

function slicesOf(i) {
  const tenant = (k) => `tenant-${pick(i * 7 + k, 12)}`;
  const base = {state: 'owned', since_ms: 1750000000000 + i, why: null};
  const kind = pick(i, 10);
  if (kind < 5) return [{...base, kind: 'whole', key: null, milli: 1000, memory_mib: MIB, lease: `L${i}`, tenant: tenant(0)}];
  if (kind < 7) return [0, 1, 2].map((k) => ({...base, kind: 'share', key: `L${i}${k}`, milli: 250, memory_mib: 20480, lease: `L${i}${k}`, tenant: tenant(k)}));
  if (kind < 9) return PROFILES[i % 3].map(([p, at, gib], k) => ({...base, kind: 'mig', key: `mig:${p}@${at}`, milli: 1000, memory_mib: gib * 1011, lease: `L${i}${k}`, tenant: tenant(k)}));
  return [{...base, state: 'free', kind: 'whole', key: null, milli: 1000, memory_mib: MIB, lease: null, tenant: null}];
}

export function fleetOf(n) {
  const gpus = [];
  for (let i = 0; i < n; i++) {
    const slices = slicesOf(i);
    const state = i % 997 === 5 ? 'quarantined' : i % 499 === 3 ? 'cordoned' : 'ok';
    gpus.push({index: i, uuid: `GPU-${String(i).padStart(8, '0')}-0000-4000-8000-000000000000`, model: 'H100-80GB-SXM', pci: null, pool: `pool-${Math.floor(i / 1000)}`, state, reason: null,
      health: null, layout: 'mig', node: `node-${Math.floor(i / 8)}`, numa: i % 2, fabric: `f${Math.floor(i / 72)}`, memory_mib: MIB, used_mib: pick(i, 80000), util_percent: pick(i, 100), temperature_c: 30 + pick(i, 50),
      power_mw: 70000 + pick(i, 600) * 1000, slices, others: null});
  }
  return {gpus, others: null};
}
