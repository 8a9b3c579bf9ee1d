/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - the policy in force: read, judged, kept in the store, and asked. */
#ifndef BH_NODE_RULE_H
#define BH_NODE_RULE_H

#include "node/daemon.h"

void bh_rule_fini(struct bh_rule_book *b);
/* What it would take: the text read, linked with this machine and judged. Every reason against it goes into ret_findings as a
 * sentence of the arena; without one *ret is a book. BH_REFUSED where there is one. */
int bh_rule_read(const struct bh_daemon *d, const char *text, size_t n, struct bh_arena *arena,
                 struct bh_rule_book *ret, struct bh_api_diff *ret_findings, struct bh_err *err) BH_MUST_USE;
/* The one in force, from the store. BH_OK with version 0 where there is none. */
int bh_rule_load(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* A new one, in force from the commit on. It is not taken up here: bh_rule_load and bh_decide_anew do. */
int bh_rule_store(struct bh_daemon *d, const char *who, const char *reason, const char *text, size_t n,
                  uint64_t *ret_version, struct bh_err *err) BH_MUST_USE;
/* What it would change, and for whom. */
int bh_rule_diff(const struct bh_daemon *d, const struct bh_rule_book *to, struct bh_arena *arena,
                 struct bh_api_diff *ret, struct bh_err *err) BH_MUST_USE;

/* What a stored job asks for; strings are the job's. */
struct bh_admit_ask bh_rule_ask(const struct bh_store_job *job);
/* The job as the scheduler takes it, and what it runs under. False: it is refused, and why. */
bool bh_rule_judge(struct bh_rule_book *b, const struct bh_admit_ask *ask, struct bh_gang_spec *ret_job,
                   struct bh_terms *ret, struct bh_admit_grant *ret_grant, struct bh_admit_refusal *why);
/* Would who runs under either hold the same, and be held alike? (Where it may be is another matter.) */
bool bh_terms_same(const struct bh_terms *a, const struct bh_terms *b);

#endif
