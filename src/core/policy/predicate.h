/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predicate.h - what a mechanism or a tier can and cannot do, each said once.
 *
 * The rules and the planner ask the same questions; the answers live here so that
 * what lint refuses and what plan offers cannot disagree. Mechanisms are effective
 * ones (a fractional pool's backing).
 */
#ifndef BH_CORE_POLICY_PREDICATE_H
#define BH_CORE_POLICY_PREDICATE_H

#include "core/model/policy.h"

/* BH-020: silicon of its own, so a hard promise can be kept: whole, mig, mig-vgpu. */
bool bh_mech_keeps_hard_slo(enum bh_mechanism m);
/* BH-022: a target rather than a guarantee: mps, timeslice, gate, vgpu, or unknown. */
bool bh_mech_is_soft(enum bh_mechanism m);
/* BH-013: can be handed to a VM: whole (passthrough), vgpu, mig-vgpu. */
bool bh_mech_fits_vm(enum bh_mechanism m);
/* BH-008: accepted for regulated tenants: whole, mig-vgpu. */
bool bh_mech_fits_regulated(enum bh_mechanism m);
/* Cuts MIG instances: mig, mig-vgpu. */
bool bh_mech_cuts_mig(enum bh_mechanism m);
/* BH-001: the tenant runs on the host's kernel: process, container. */
bool bh_tier_shares_kernel(enum bh_tier t);
/* What stays shared under a mechanism behind a tier; NULL-terminated, never empty. */
const char *const *bh_mech_stays_shared(enum bh_mechanism m, enum bh_tier t);
/* Which layer bounds the noisy neighbour (R113): one phrase. */
const char *bh_mech_bounded_by(enum bh_mechanism m);
/* Is a class happy with this combination? Zero sets accept anything; BH_N_quota_model: no model was named. */
bool bh_class_accepts(const struct bh_class *c, enum bh_mechanism m, enum bh_quota_model q, enum bh_tier t);

/* BH-050: is there a driver version both accept? Who names none accepts any. */
bool bh_tenants_agree_on_driver(const struct bh_tenant *a, const struct bh_tenant *b);

#endif
