/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - from a connection to a caller: who it is, and which roles it has.
 *
 * Over the unix socket the kernel says who connected; root is operator there, others have what the policy's `roles` give
 * to their user and groups. Anywhere a token may be shown instead: it stands for one role. A token of `user:NAME` holds as
 * long as the policy gives NAME that role; one of `service:NAME`, which only operators make, until it expires or is revoked.
 */
#ifndef BH_API_AUTH_H
#define BH_API_AUTH_H

#include "api/ops.h"
#include "api/problem.h"

struct bh_store;

enum { BH_TOKEN_TEXT = 68 }; /* `bh_` and 64 hexadecimal digits, NUL */

/* Who is at the other end of a connection; strings are the connection's. */
struct bh_peer {
    bool is_unix;
    uint32_t uid, gid;   /* of a unix socket, else BH_API_NO_UID */
    const char *user;    /* its name, or its number where it has none; NULL: not a unix socket */
    const char **groups; /* likewise */
    size_t n_groups;
    char from[64]; /* `unix`, or the address */
};
/* Asks the kernel about a connected socket, and the system for names. False: it cannot be told. */
bool bh_peer_read(int fd, struct bh_arena *arena, struct bh_peer *ret);

/*
 * bearer: what stood behind `Authorization: Bearer`; NULL: no token was shown. BH_UNKNOWN_CALLER where nobody is known;
 * a caller without any role is one all the same. Strings are copied into the arena.
 */
int bh_auth_caller(const struct bh_peer *peer, const char *bearer, const struct bh_policy *policy,
                   struct bh_store *store, uint64_t now_ms, struct bh_arena *arena, struct bh_api_caller *ret,
                   struct bh_api_problem *p) BH_MUST_USE;
/* Does the policy give this role in this tenant (NULL: in all) to `user:NAME`, by name or by a group of its account? */
bool bh_auth_policy_gives(const struct bh_policy *policy, const char *subject, uint8_t role,
                          const char *tenant);

/* A new token: its text, shown once, and what is kept of it. */
int bh_token_make(char ret[BH_TOKEN_TEXT], uint8_t ret_sha256[32], struct bh_err *err) BH_MUST_USE;
/* The digest of a token's text; false: it does not look like one. */
bool bh_token_digest(const char *text, uint8_t ret_sha256[32]);

#endif
