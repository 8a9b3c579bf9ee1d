/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - one ask, held against one pool. Private to core/admit. */
#ifndef BH_CORE_ADMIT_ASK_H
#define BH_CORE_ADMIT_ASK_H

#include "core/admit/admit_inside.h"

struct bh_asking {
    const struct bh_admit *a;
    const struct bh_admit_ask *ask;
    const struct bh_tenant *tenant;
    const struct bh_pool *pool;
    struct bh_admit_grant *grant; /* being filled */
    struct bh_request *request;   /* of its one role */
    uint32_t devices;             /* GPUs or instances, in all */
    uint64_t milli;               /* that they are in all, for the quota */
};

/* Each writes and returns false, so that a step ends with the last. */
bool bh_no(struct bh_admit_refusal *why, enum bh_admit_code code, const char *rule, const char *fmt, ...)
    BH_PRINTF(4, 5);
bool bh_no_needed(struct bh_admit_refusal *why, const char *fmt, ...) BH_PRINTF(2, 3);
bool bh_no_there(struct bh_admit_refusal *why, const char *fmt, ...) BH_PRINTF(2, 3);
bool bh_no_next(struct bh_admit_refusal *why, const char *fmt, ...) BH_PRINTF(2, 3);
bool bh_no_rule(struct bh_asking *c, struct bh_admit_refusal *why, const struct bh_standing *s);

/* The step that makes the request: how the silicon is divided, how much of it, and what that leaves shared. */
bool bh_admit_form(struct bh_asking *c, struct bh_admit_refusal *why);

#endif
