// SPDX-License-Identifier: Apache-2.0
// layers.js - the layers of isolation and what is known of each. Only what somebody checked can be well: what is merely seen
// (which domains there are, what runs) says nothing about whether it holds.
import * as f from './format.js';

export const ABOUT = {
  hardware: 'cards and how they are cut', fabric: 'what joins cards, and who may reach across', scheduler: 'who is given what, by which promise',
  virtualization: 'what stands around the work', lifecycle: 'what happens between two tenants', node: 'what bulkheadd itself needs',
};

// The doctor's words for what it looks at.
const LAYER_OF = {
  driver: 'hardware', gpu: 'hardware', stranger: 'hardware',
  policy: 'scheduler', scheduler: 'scheduler',
  cgroup: 'virtualization', container: 'virtualization', mps: 'virtualization', program: 'virtualization',
  canary: 'lifecycle', scrub: 'lifecycle',
  fabric: 'fabric',
};

const fact = (state, text, mend) => ({state, text, mend});
const seen = (text) => fact('none', text);

/** bad, warn or ok, as the worst of what was checked; none: nothing was. */
export const stateOf = (facts) => ['bad', 'warn', 'ok'].find((s) => facts.some((x) => x.state === s)) || 'none';

function cards(gpus, out) {
  const ill = gpus.filter((g) => g.state !== 'ok' || g.health);
  if (ill.length) out.hardware.push(fact(ill.some((g) => g.state === 'quarantined') ? 'bad' : 'warn', ill.map((g) => `GPU ${g.index} ${g.state}${g.health ? `: ${g.health}` : ''}`).join('; ')));
  else out.hardware.push(gpus.length ? fact('ok', `${f.plural(gpus.length, 'card')}, none with a fault the driver tells of`) : seen('no card'));
  const cut = gpus.filter((g) => g.slices.some((s) => s.kind === 'mig')).length;
  if (cut) out.hardware.push(seen(`${f.plural(cut, 'card')} cut by MIG`));
  const inOne = (g) => g.fabric !== null && g.fabric !== undefined;
  const domains = new Set(gpus.filter(inOne).map((g) => g.fabric));
  const outside = gpus.filter((g) => domains.size && !inOne(g));
  out.fabric.push(seen(domains.size ? `${f.plural(domains.size, 'domain')}: ${[...domains].join(', ')}` : 'this node tells of no fabric'));
  if (outside.length) out.fabric.push(fact('warn', `in no domain, while others are: ${outside.map((g) => `GPU ${g.index}`).join(', ')}`, 'see to the links of these cards: nvidia-smi nvlink --status'));
  const held = gpus.flatMap((g) => g.slices).filter((s) => s.state === 'quarantined');
  out.lifecycle.push(held.length ? fact('bad', `${f.plural(held.length, 'slice')} in quarantine: not proved clean`) : seen('no slice in quarantine'));
}

function work(leases, out) {
  const by = new Map();
  for (const l of leases.filter((x) => x.state === 'active')) by.set(`${l.mechanism}, tier ${l.tier}`, (by.get(`${l.mechanism}, tier ${l.tier}`) || 0) + 1);
  out.virtualization.push(seen(by.size ? [...by].map(([k, n]) => `${n} × ${k}`).join('; ') : 'no work runs now'));
  const moving = leases.filter((l) => l.state === 'draining' || l.state === 'scrubbing').length;
  if (moving) out.lifecycle.push(seen(`${f.plural(moving, 'lease')} being cleared`));
}

/** What each layer says, out of the doctor's checks and of what is seen: {layer: [{state, text, mend}]}. */
export function layers({gpus, leases, doctor, quotas, findings}) {
  const out = Object.fromEntries(Object.keys(ABOUT).map((l) => [l, []]));
  for (const c of doctor || []) out[LAYER_OF[c.layer] || 'node'].push(fact(c.state, `${c.layer}: ${c.sentence}`, c.mend));
  if (gpus) cards(gpus, out);
  if (quotas) {
    const waiting = quotas.reduce((n, q) => n + q.waiting_jobs, 0);
    out.scheduler.push(seen(waiting ? `${f.plural(waiting, 'job waits', 'jobs wait')}, with a reason` : 'nobody waits'));
  }
  if (findings?.list) out.scheduler.push(findings.list.length ? fact(findings.errors ? 'bad' : 'warn', `${f.plural(findings.list.length, 'finding')} about the policy in force`) : fact('ok', 'the policy in force has no finding'));
  if (leases) work(leases, out);
  if (!out.node.length) delete out.node; // who does not see all is told nothing of it
  return out;
}
