// SPDX-License-Identifier: Apache-2.0
// silicon.js - a card as a drawing has it: which part of its compute and of its memory each slice is, and whose.
import {GEOMETRY} from './geometry.js';

const FALLBACK = [7, 8]; // a model that the catalogue does not know: as on most

/** {compute, memory}: into how many units MIG divides this model. */
export function gridOf(model) {
  const [compute, memory] = GEOMETRY[model] || FALLBACK;
  return {compute, memory};
}

/** `mig:3g.40gb@4` → where it stands; null: no such name. */
export function cutOf(key, gpu, mib) {
  const m = /^mig:((\d+)g\.[^@]+)@(\d+)$/.exec(key || '');
  const grid = gridOf(gpu.model);
  if (!m || !grid.compute) return null;
  const start = Number(m[3]);
  // A profile's memory is a whole number of units; names round, and the driver keeps some.
  const size = Math.max(1, Math.round(grid.memory * mib / gpu.memory_mib));
  const step = Math.max(1, Math.round(grid.memory / grid.compute));
  return {profile: m[1], start, size, slices: Number(m[2]), from: Math.floor(start / step), grid};
}

const clamp = (v) => Math.max(0, Math.min(1, v));

/** Slices as parts of the whole, 0 to 1: [{c0, c1, m0, m1, label, tenant, state, lease, slice}]; useless: what none can have. */
export function partsOf(gpu) {
  const parts = [];
  let c = 0, m = 0;
  for (const s of gpu.slices) {
    const base = {slice: s, tenant: s.tenant, state: s.state, lease: s.lease};
    if (s.kind === 'whole') {
      if (s.state !== 'free') parts.push({...base, c0: 0, c1: 1, m0: 0, m1: 1, label: 'whole'});
      continue;
    }
    const cut = s.kind === 'mig' ? cutOf(s.key, gpu, s.memory_mib) : null;
    if (cut) {
      parts.push({...base, c0: clamp(cut.from / cut.grid.memory * step(cut.grid)), c1: clamp((cut.from + cut.slices) / cut.grid.memory * step(cut.grid)),
        m0: clamp(cut.start / cut.grid.memory), m1: clamp((cut.start + cut.size) / cut.grid.memory), label: cut.profile, mig: true});
      continue;
    }
    const dc = s.milli / 1000, dm = s.memory_mib / gpu.memory_mib;
    parts.push({...base, c0: clamp(c), c1: clamp(c + dc), m0: clamp(m), m1: clamp(m + dm), label: `${Math.round(s.milli / 10)} %`});
    c += dc;
    m += dm;
  }
  const o = gpu.others;
  if (o && o.slices) {
    // Neighbours are a total without a name; where on the card they are is not told, so they are drawn at its end, below one's own.
    const dm = Math.min(1 - m, o.memory_mib / gpu.memory_mib);
    const dc = isCut(gpu) ? dm : Math.min(1 - c, o.milli / 1000);
    parts.unshift({tenant: null, others: true, state: 'owned', c0: clamp(1 - dc), c1: 1, m0: clamp(1 - dm), m1: 1, label: 'others'});
  }
  return isCut(gpu) ? [...parts, ...uselessOf(gridOf(gpu.model), parts)] : parts;
}

/** Units that stand next to each other, as parts of one lane. */
function runs(units, n, from, to) {
  const out = [];
  for (const i of units) {
    const last = out[out.length - 1];
    if (last && Math.abs(last[to] * n - i) < 0.5) last[to] = (i + 1) / n;
    else out.push({tenant: null, useless: true, state: 'useless', label: 'cannot be used', c0: 0, c1: 0, m0: 0, m1: 0, [from]: i / n, [to]: (i + 1) / n});
  }
  return out;
}

/**
 * What is left over and no instance can have: compute when all memory is given away, memory when all compute is; and where
 * there are fewer units of compute than of memory, the place of those that do not exist.
 */
function uselessOf(grid, parts) {
  const n = grid.memory;
  const all = Array.from({length: n}, (_, i) => i);
  const left = (from, to) => all.filter((i) => !parts.some((p) => p[from] <= (i + 0.5) / n && (i + 0.5) / n < p[to]));
  const compute = left('c0', 'c1');
  const memory = left('m0', 'm1');
  const exists = (i) => i < grid.compute * step(grid);
  return [...runs(memory.length ? compute.filter((i) => !exists(i)) : compute, n, 'c0', 'c1'), ...(compute.some(exists) ? [] : runs(memory, n, 'm0', 'm1'))];
}

const step = (grid) => Math.max(1, Math.round(grid.memory / grid.compute));

export const isCut = (gpu) => gpu.slices.some((s) => s.kind === 'mig');

/** Granted to somebody, in thousandths of the card and in MiB. */
export function grantedOf(gpu) {
  let milli = 0, mib = 0;
  for (const s of gpu.slices) {
    if (s.state === 'free') continue;
    mib += s.memory_mib;
    if (s.kind === 'mig') {
      const cut = cutOf(s.key, gpu, s.memory_mib);
      milli += cut ? 1000 * cut.slices / cut.grid.compute : 0;
    } else milli += s.milli;
  }
  if (gpu.others) {
    milli += gpu.others.milli;
    mib += gpu.others.memory_mib;
  }
  return {milli: Math.min(1000, milli), mib: Math.min(gpu.memory_mib, mib)};
}
