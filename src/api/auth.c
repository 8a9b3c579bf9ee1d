/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - peers of unix sockets, roles of the policy, tokens. */
#include "api/auth.h"

#include "base/str.h"
#include "store/state_token.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>

enum { GROUPS_MAX = 1024, NAME_BUF = 16384, SECRET_BYTES = 32 };

bool bh_api_may(const struct bh_api_caller *c, uint32_t roles, const char *tenant)
{
    for (size_t i = 0; i < c->n_grants; i++) {
        const struct bh_api_grant *g = &c->grants[i];
        if (roles & UINT32_C(1) << g->role && (!g->tenant || bh_str_eq(g->tenant, tenant)))
            return true;
    }
    return false;
}

/* ---- peers ---- */

static const char *user_name(struct bh_arena *arena, uint32_t uid)
{
    BH_AUTOFREE char *buf = bh_alloc(1, NAME_BUF);
    struct passwd pw, *found = NULL;
    if (getpwuid_r(uid, &pw, buf, NAME_BUF, &found) == 0 && found)
        return bh_arena_str(arena, found->pw_name);
    return bh_arena_printf(arena, "%u", uid);
}

static const char *group_name(struct bh_arena *arena, uint32_t gid)
{
    BH_AUTOFREE char *buf = bh_alloc(1, NAME_BUF);
    struct group gr, *found = NULL;
    if (getgrgid_r(gid, &gr, buf, NAME_BUF, &found) == 0 && found)
        return bh_arena_str(arena, found->gr_name);
    return bh_arena_printf(arena, "%u", gid);
}

/* The groups it had when it connected; a kernel that does not tell leaves the first one. */
static void read_groups(int fd, struct bh_arena *arena, struct bh_peer *ret)
{
    gid_t gids[GROUPS_MAX];
    socklen_t n = sizeof(gids);
    size_t count = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &n) == 0 ? n / sizeof(gids[0]) : 0;
    ret->groups = bh_arena_alloc(arena, (count + 1) * sizeof(*ret->groups));
    ret->groups[ret->n_groups++] = group_name(arena, ret->gid);
    for (size_t i = 0; i < count; i++)
        if (gids[i] != ret->gid)
            ret->groups[ret->n_groups++] = group_name(arena, gids[i]);
}

bool bh_peer_read(int fd, struct bh_arena *arena, struct bh_peer *ret)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);
    *ret = (struct bh_peer){.uid = BH_API_NO_UID, .gid = BH_API_NO_UID};
    if (getpeername(fd, (struct sockaddr *)&a, &n) < 0)
        return false;
    /* Of a TCP socket SO_PEERCRED answers too, with nobody in it: the family is looked at first. */
    if (a.ss_family == AF_UNIX) {
        struct ucred cred;
        socklen_t size = sizeof(cred);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 || size != sizeof(cred) ||
            cred.uid == (uid_t)-1)
            return false;
        ret->is_unix = true;
        ret->uid = cred.uid;
        ret->gid = cred.gid;
        ret->user = user_name(arena, cred.uid);
        read_groups(fd, arena, ret);
        (void)snprintf(ret->from, sizeof(ret->from), "unix");
        return true;
    }
    const void *addr = a.ss_family == AF_INET    ? (const void *)&((struct sockaddr_in *)&a)->sin_addr
                       : a.ss_family == AF_INET6 ? (const void *)&((struct sockaddr_in6 *)&a)->sin6_addr
                                                 : NULL;
    return addr && inet_ntop(a.ss_family, addr, ret->from, sizeof(ret->from));
}

/* ---- roles ---- */

static bool is_subject(const struct bh_peer *peer, const char *subject)
{
    if (bh_str_starts(subject, "user:"))
        return bh_str_eq(subject + 5, peer->user);
    if (!bh_str_starts(subject, "group:"))
        return false;
    for (size_t i = 0; i < peer->n_groups; i++)
        if (bh_str_eq(subject + 6, peer->groups[i]))
            return true;
    return false;
}

/* The account of a token's user, as if it had connected: its groups are looked up where the policy names any. */
static void account_groups(const char *user, struct bh_arena *arena, struct bh_peer *ret)
{
    BH_AUTOFREE char *buf = bh_alloc(1, NAME_BUF);
    struct passwd pw, *found = NULL;
    gid_t gids[GROUPS_MAX];
    int n = GROUPS_MAX;
    if (getpwnam_r(user, &pw, buf, NAME_BUF, &found) != 0 || !found ||
        getgrouplist(user, found->pw_gid, gids, &n) < 0)
        return;
    ret->groups = bh_arena_alloc(arena, (size_t)n * sizeof(*ret->groups));
    for (int i = 0; i < n; i++)
        ret->groups[ret->n_groups++] = group_name(arena, gids[i]);
}

bool bh_auth_policy_gives(const struct bh_policy *policy, const char *subject, uint8_t role,
                          const char *tenant)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_peer who = {.user = subject + strlen("user:")};
    bool looked_up = false;
    for (size_t i = 0; policy && i < policy->roles.n; i++) {
        const struct bh_role_binding *b = &policy->roles.at[i];
        if (b->role != role || (b->tenant.s && !bh_str_eq(b->tenant.s, tenant)))
            continue;
        if (bh_str_starts(b->subject, "group:") && !looked_up) {
            account_groups(who.user, &arena, &who);
            looked_up = true;
        }
        if (is_subject(&who, b->subject))
            return true;
    }
    return false;
}

static void peer_caller(const struct bh_peer *peer, const struct bh_policy *policy, struct bh_arena *arena,
                        struct bh_api_caller *ret)
{
    const size_t most = 1 + (policy ? policy->roles.n : 0);
    struct bh_api_grant *grants = bh_arena_alloc(arena, most * sizeof(*grants));
    *ret = (struct bh_api_caller){.uid = peer->uid, .gid = peer->gid, .grants = grants};
    ret->principal = bh_arena_printf(arena, "user:%s", peer->user);
    ret->user = ret->principal + 5;
    if (peer->uid == 0)
        grants[ret->n_grants++] = (struct bh_api_grant){.role = BH_ROLE_OPERATOR};
    for (size_t i = 0; policy && i < policy->roles.n; i++) {
        const struct bh_role_binding *b = &policy->roles.at[i];
        if (is_subject(peer, b->subject)) /* copied: a policy may be replaced while an answer is awaited */
            grants[ret->n_grants++] =
                (struct bh_api_grant){b->role, b->tenant.s ? bh_arena_str(arena, b->tenant.s) : NULL};
    }
}

/* ---- tokens ---- */

bool bh_token_digest(const char *text, uint8_t ret_sha256[32])
{
    if (!bh_str_starts(text, "bh_") || strlen(text) != BH_TOKEN_TEXT - 1)
        return false;
    for (const char *c = text + 3; *c; c++)
        if (!bh_is_digit(*c) && (*c < 'a' || *c > 'f'))
            return false;
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, BH_TOKEN_TEXT - 1, ret_sha256) == 0;
}

int bh_token_make(char ret[BH_TOKEN_TEXT], uint8_t ret_sha256[32], struct bh_err *err)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t secret[SECRET_BYTES];
    if (gnutls_rnd(GNUTLS_RND_KEY, secret, sizeof(secret)) < 0)
        return bh_fail(err, BH_SYSTEM, "no random numbers are to be had for a token");
    (void)snprintf(ret, BH_TOKEN_TEXT, "bh_");
    for (size_t i = 0; i < sizeof(secret); i++) {
        ret[3 + 2 * i] = hex[secret[i] >> 4];
        ret[4 + 2 * i] = hex[secret[i] & 15];
    }
    ret[BH_TOKEN_TEXT - 1] = '\0';
    gnutls_memset(secret, 0, sizeof(secret));
    return bh_token_digest(ret, ret_sha256) ? 0 : bh_fail(err, BH_SYSTEM, "SHA-256 of a token cannot be had");
}

static int no_token(struct bh_api_problem *p)
{
    /* One sentence for all: which tokens there once were is nobody's business. */
    bh_api_hint(p, "a token that holds", NULL, "ask an operator for one, or use the unix socket");
    return bh_api_refuse(p, BH_UNKNOWN_CALLER, "the token is unknown, revoked or expired");
}

/*
 * The store did not answer. That is no wrong token: it counts for no lockout and is no failed sign-in, so it is not refused here, where
 * only those are. He has no role, and whatever he asks for is put off (route.c).
 */
static int unsure(const struct bh_peer *peer, struct bh_arena *arena, struct bh_api_caller *ret)
{
    *ret = (struct bh_api_caller){.principal = bh_arena_printf(arena, "address:%s", peer->from),
                                  .user = "",
                                  .from = bh_arena_str(arena, peer->from),
                                  .uid = BH_API_NO_UID,
                                  .gid = BH_API_NO_UID,
                                  .unsure = true};
    return 0;
}

static int token_caller(const struct bh_peer *peer, const char *bearer, const struct bh_policy *policy,
                        struct bh_store *store, uint64_t now_ms, struct bh_arena *arena,
                        struct bh_api_caller *ret, struct bh_api_problem *p)
{
    struct bh_store_token t;
    uint8_t digest[32];
    if (!bh_token_digest(bearer, digest))
        return no_token(p);
    const int rc = bh_store_token_find(store, arena, digest, now_ms, &t, NULL);
    if (rc == BH_DENIED)
        return no_token(p);
    if (rc < 0)
        return unsure(peer, arena, ret);
    /* The store looked it up by its digest; what it found is compared again without telling where it differs. */
    if (gnutls_memcmp(digest, t.sha256, sizeof(digest)) != 0)
        return no_token(p);
    const int role = bh_words_find(&bh_words_role, t.role);
    const char *colon = strchr(t.subject, ':');
    if (role < 0 || !colon)
        return no_token(p);
    struct bh_api_grant *grant = bh_arena_alloc(arena, sizeof(*grant));
    *grant = (struct bh_api_grant){(uint8_t)role, t.tenant[0] ? t.tenant : NULL};
    *ret = (struct bh_api_caller){.principal = t.subject,
                                  .user = colon + 1,
                                  .uid = BH_API_NO_UID,
                                  .gid = BH_API_NO_UID,
                                  .token = t.id,
                                  .grants = grant};
    ret->n_grants = bh_str_starts(t.subject, "service:") ||
                    (bh_str_starts(t.subject, "user:") &&
                     bh_auth_policy_gives(policy, t.subject, grant->role, grant->tenant));
    ret->from = bh_arena_str(arena, peer->from);
    return 0;
}

int bh_auth_caller(const struct bh_peer *peer, const char *bearer, const struct bh_policy *policy,
                   struct bh_store *store, uint64_t now_ms, struct bh_arena *arena, struct bh_api_caller *ret,
                   struct bh_api_problem *p)
{
    if (bearer)
        return token_caller(peer, bearer, policy, store, now_ms, arena, ret, p);
    if (!peer->is_unix) {
        bh_api_hint(p, "Authorization: Bearer TOKEN", "nothing", "bulkhead token create, on the node itself");
        return bh_api_refuse(p, BH_UNKNOWN_CALLER, "who asks is not known: no token was shown");
    }
    peer_caller(peer, policy, arena, ret);
    ret->from = bh_arena_str(arena, peer->from);
    return 0;
}
