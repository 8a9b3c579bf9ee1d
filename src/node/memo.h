/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo.h - verdicts of one policy on one machine, kept by what was asked for.
 *
 * Whether a job is allowed is up to the policy, the machine and what it asks for, and to nothing else (core/admit). Jobs come
 * in thousands that ask for the same, and a daemon that starts judges all of them again: so each kind of ask is judged once. A
 * memo belongs to one book and goes with it; nothing in it outlives the policy that it was judged by.
 */
#ifndef BH_NODE_MEMO_H
#define BH_NODE_MEMO_H

#include "core/admit/admit.h"

enum { BH_MEMO_MOST = 512 }; /* then it begins anew */

struct bh_memo {
    const struct bh_admit *of;
    struct bh_arena arena; /* of the keys */
    struct bh_map index;
    BH_VEC(struct bh_admit_grant) grants;
    uint64_t judged; /* asks that were not known */
};

/* As bh_admit_job. Refusals are not kept: their words are about one job. */
bool bh_memo_judge(struct bh_memo *m, const struct bh_admit_ask *ask, struct bh_admit_grant *ret,
                   struct bh_admit_refusal *why);
void bh_memo_fini(struct bh_memo *m);

#endif
