/* SPDX-License-Identifier: Apache-2.0 */
/* state_token.h - who may speak to the API. Only the digest of a token is kept: whoever reads the file cannot use it. */
#ifndef BH_STORE_STATE_TOKEN_H
#define BH_STORE_STATE_TOKEN_H

#include "store/state.h"
#include "store/state_policy.h"

struct bh_store_token {
    uint64_t id;
    uint8_t sha256[BH_STORE_SHA256]; /* of the token */
    const char *subject;             /* whose */
    const char *role;                /* `operator`, `tenant-admin`, `tenant-user`, `auditor`, `viewer` */
    const char *tenant;              /* of the two tenant roles; "" of the others */
    uint64_t created_ms, expires_ms; /* expires 0: never */
    uint64_t revoked_ms;             /* 0: it is not */
};
typedef BH_VEC(struct bh_store_token) bh_store_tokens;

/* BH_CONFLICT: the digest is known; BH_INVALID: no such role, or one without its tenant. */
int bh_store_token_add(struct bh_store *s, const struct bh_store_token *token, uint64_t *ret_id,
                       struct bh_err *err) BH_MUST_USE;
int bh_store_token_revoke(struct bh_store *s, uint64_t id, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
/* The one that holds at now_ms. BH_DENIED for unknown, expired and revoked ones alike: the answer tells nothing. */
int bh_store_token_find(struct bh_store *s, struct bh_arena *arena, const uint8_t sha256[BH_STORE_SHA256],
                        uint64_t now_ms, struct bh_store_token *ret, struct bh_err *err) BH_MUST_USE;
/* How many of a subject's hold at now_ms. */
int bh_store_tokens_live(struct bh_store *s, const char *subject, uint64_t now_ms, uint64_t *ret,
                         struct bh_err *err) BH_MUST_USE;
int bh_store_tokens_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_page *page,
                         bh_store_tokens *ret, struct bh_err *err) BH_MUST_USE;

#endif
