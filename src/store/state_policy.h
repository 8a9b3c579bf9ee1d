/* SPDX-License-Identifier: Apache-2.0 */
/* state_policy.h - every policy that ever held, by whom and since when. One is in force at a time, or none yet. */
#ifndef BH_STORE_STATE_POLICY_H
#define BH_STORE_STATE_POLICY_H

#include "store/state.h"

enum { BH_STORE_SHA256 = 32 };

struct bh_store_policy {
    uint64_t id;
    const char *text; /* NULL in lists */
    size_t n;         /* its length */
    uint8_t sha256[BH_STORE_SHA256];
    const char *who, *why;
    uint64_t at_ms;
    bool active;
};
typedef BH_VEC(struct bh_store_policy) bh_store_policies;

/* A new version, in force from the commit on; the one before is no longer. Of `policy` id and active are not looked at. */
int bh_store_policy_apply(struct bh_store *s, const struct bh_store_policy *policy, uint64_t *ret_id,
                          struct bh_err *err) BH_MUST_USE;
/* id 0: the one in force. BH_NOT_FOUND. */
int bh_store_policy_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_policy *ret,
                        struct bh_err *err) BH_MUST_USE;
int bh_store_policies_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_page *page,
                           bh_store_policies *ret, struct bh_err *err) BH_MUST_USE;

#endif
