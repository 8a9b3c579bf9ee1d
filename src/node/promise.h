/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promise.h - what a policy changes for whom, as records of the audit log: tenants that come and go, their class, what they were
 * promised, who may do what, and what somebody signed for. Pure: two policies in, records out.
 */
#ifndef BH_NODE_PROMISE_H
#define BH_NODE_PROMISE_H

#include "core/model/policy.h"
#include "store/audit_record.h"

/* Takes one record; what it borrows ends with the call. Below 0: no more are made, and that is answered. */
typedef int bh_promise_fn(void *arg, const struct bh_audit_event *e, struct bh_err *err);

/*
 * `tenant.create` (after: its class; reason: its quota), `tenant.delete`, `tenant.class-change`, `quota.set`, `rbac.grant`,
 * `rbac.revoke` and `policy.waiver`, each for what is not as it was. from NULL: there was none before.
 */
int bh_promise_changes(const struct bh_policy *from, const struct bh_policy *to, bh_promise_fn *take,
                       void *arg, struct bh_err *err) BH_MUST_USE;

#endif
