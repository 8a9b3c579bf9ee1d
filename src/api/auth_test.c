/* SPDX-License-Identifier: Apache-2.0 */
/* auth_test.c - peers, roles of the policy, tokens. */
#include "api/auth.h"

#include "base/scratch.h"
#include "base/test.h"
#include "store/db_sql.h"
#include "store/state_token.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static void bind_role(struct bh_policy *p, const char *subject, uint8_t role, const char *tenant)
{
    *bh_vec_push(&p->roles) = (struct bh_role_binding){.subject = subject, .role = role, .tenant.s = tenant};
}

TEST(roles_in_a_tenant_and_in_all)
{
    const struct bh_api_grant grants[] = {{BH_ROLE_TENANT_USER, "a"}, {BH_ROLE_AUDITOR, NULL}};
    const struct bh_api_caller c = {.grants = grants, .n_grants = 2};
    const uint32_t user = 1u << BH_ROLE_TENANT_USER, auditor = 1u << BH_ROLE_AUDITOR,
                   op = 1u << BH_ROLE_OPERATOR;
    CHECK(bh_api_may(&c, user, "a") && !bh_api_may(&c, user, "b") && !bh_api_may(&c, user, NULL));
    CHECK(bh_api_may(&c, auditor, "a") && bh_api_may(&c, auditor, "b") && bh_api_may(&c, auditor, NULL));
    CHECK(!bh_api_may(&c, op, "a") && bh_api_may(&c, op | user, "a"));
}

TEST(a_unix_peer)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_peer peer;
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK(bh_peer_read(pair[0], &arena, &peer));
    CHECK(peer.is_unix && peer.uid == geteuid() && peer.gid == getegid() && peer.user && peer.n_groups >= 1);
    CHECK_STR(peer.from, "unix");
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* The kernel answers SO_PEERCRED for TCP as well: nobody may become somebody by that. */
TEST(a_tcp_peer_is_nobody)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    struct bh_api_caller caller;
    struct bh_api_problem p = {0};
    struct bh_peer peer;
    const int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(l, (struct sockaddr *)&a, n) == 0 && listen(l, 1) == 0 &&
          getsockname(l, (struct sockaddr *)&a, &n) == 0);
    CHECK_EQ(connect(c, (struct sockaddr *)&a, n), 0);
    const int s = accept(l, NULL, NULL);
    CHECK(bh_peer_read(s, &arena, &peer));
    CHECK(!peer.is_unix && peer.uid == BH_API_NO_UID && !peer.user && !peer.n_groups);
    CHECK_STR(peer.from, "127.0.0.1");
    CHECK_EQ(bh_auth_caller(&peer, NULL, NULL, NULL, 0, &arena, &caller, &p), BH_UNKNOWN_CALLER);
    (void)close(s);
    (void)close(c);
    (void)close(l);
    CHECK(!bh_peer_read(l, &arena, &peer));
}

TEST(roles_by_user_and_by_group)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    const char *groups[] = {"staff", "ml"};
    const struct bh_peer ada = {.is_unix = true,
                                .uid = 1000,
                                .gid = 100,
                                .user = "ada",
                                .groups = groups,
                                .n_groups = 2,
                                .from = "unix"},
                         root = {.is_unix = true, .user = "root", .from = "unix"};
    struct bh_api_problem p = {0};
    struct bh_api_caller c;
    struct bh_policy policy;
    bh_policy_init(&policy, BH_SOURCE_POLICY);
    bind_role(&policy, "user:ada", BH_ROLE_TENANT_USER, "a");
    bind_role(&policy, "group:ml", BH_ROLE_VIEWER, NULL);
    bind_role(&policy, "user:bob", BH_ROLE_OPERATOR, NULL);
    bind_role(&policy, "group:ada", BH_ROLE_OPERATOR, NULL); /* a group, not her */
    bind_role(&policy, "user:staff", BH_ROLE_OPERATOR, NULL);
    bind_role(&policy, "ada", BH_ROLE_OPERATOR, NULL);
    CHECK_EQ(bh_auth_caller(&ada, NULL, &policy, NULL, 0, &arena, &c, &p), 0);
    CHECK_STR(c.principal, "user:ada");
    CHECK_STR(c.user, "ada");
    CHECK_EQ(c.n_grants, 2);
    CHECK(c.grants[0].role == BH_ROLE_TENANT_USER && c.grants[1].role == BH_ROLE_VIEWER &&
          !c.grants[1].tenant);
    CHECK_STR(c.grants[0].tenant, "a");
    CHECK_EQ(bh_auth_caller(&root, NULL, NULL, NULL, 0, &arena, &c, &p), 0);
    CHECK(c.n_grants == 1 && c.grants[0].role == BH_ROLE_OPERATOR && !c.grants[0].tenant);
    CHECK(bh_auth_policy_gives(&policy, "user:ada", BH_ROLE_TENANT_USER, "a"));
    CHECK(!bh_auth_policy_gives(&policy, "user:ada", BH_ROLE_TENANT_USER, "b"));
    CHECK(!bh_auth_policy_gives(&policy, "user:ada", BH_ROLE_TENANT_USER, NULL));
    CHECK(bh_auth_policy_gives(&policy, "user:bob", BH_ROLE_OPERATOR, NULL));
    CHECK(!bh_auth_policy_gives(NULL, "user:bob", BH_ROLE_OPERATOR, NULL));
    bh_policy_fini(&policy);
}

static struct bh_store *new_store(char folder[BH_SCRATCH_PATH])
{
    const struct bh_store_options options = {.mode = BH_STORE_WRITE};
    struct bh_store *s = NULL;
    char path[BH_SCRATCH_PATH + 8];
    if (!bh_scratch_make(folder, BH_SCRATCH_PATH, "auth"))
        return NULL;
    (void)snprintf(path, sizeof(path), "%s/db", folder);
    return bh_store_open(path, &options, &s, NULL) == 0 ? s : NULL;
}

TEST(tokens)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    const struct bh_peer far = {.uid = BH_API_NO_UID, .from = "192.0.2.1"};
    char text[2][BH_TOKEN_TEXT], folder[BH_SCRATCH_PATH];
    struct bh_api_problem p = {0};
    struct bh_store_token t = {
        .subject = "service:ci", .role = "viewer", .tenant = "", .created_ms = 1, .expires_ms = 100};
    struct bh_api_caller c;
    struct bh_policy policy;
    uint64_t id;
    struct bh_store *s = new_store(folder);
    CHECK(s);
    bh_policy_init(&policy, BH_SOURCE_POLICY);
    CHECK_EQ(bh_token_make(text[0], t.sha256, NULL), 0);
    CHECK_EQ(strlen(text[0]), BH_TOKEN_TEXT - 1);
    CHECK_EQ(bh_store_token_add(s, &t, &id, NULL), 0);
    CHECK_EQ(bh_auth_caller(&far, text[0], &policy, s, 50, &arena, &c, &p), 0);
    CHECK_STR(c.principal, "service:ci");
    CHECK(c.token == id && c.uid == BH_API_NO_UID && c.n_grants == 1 && c.grants[0].role == BH_ROLE_VIEWER);
    CHECK_EQ(bh_auth_caller(&far, text[0], &policy, s, 100, &arena, &c, &p), BH_UNKNOWN_CALLER);
    /* one of a user: as long as the policy says so */
    CHECK_EQ(bh_token_make(text[1], t.sha256, NULL), 0);
    CHECK(strcmp(text[0], text[1]) != 0);
    t.subject = "user:no-such-user-here";
    CHECK_EQ(bh_store_token_add(s, &t, &id, NULL), 0);
    CHECK_EQ(bh_auth_caller(&far, text[1], &policy, s, 50, &arena, &c, &p), 0);
    CHECK_EQ(c.n_grants, 0);
    bind_role(&policy, "user:no-such-user-here", BH_ROLE_VIEWER, NULL);
    CHECK_EQ(bh_auth_caller(&far, text[1], &policy, s, 50, &arena, &c, &p), 0);
    CHECK_EQ(c.n_grants, 1);
    CHECK_EQ(bh_store_token_revoke(s, id, 60, NULL), 0);
    CHECK_EQ(bh_auth_caller(&far, text[1], &policy, s, 50, &arena, &c, &p), BH_UNKNOWN_CALLER);
    bh_policy_fini(&policy);
    bh_store_close(s);
    CHECK(bh_scratch_remove(folder));
}

/* Neither let in nor turned away: whoever shows a good token meanwhile is not locked out for it. */
TEST(a_store_that_does_not_answer)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    const struct bh_peer far = {.uid = BH_API_NO_UID, .from = "192.0.2.1"};
    char text[BH_TOKEN_TEXT], folder[BH_SCRATCH_PATH];
    struct bh_api_problem p = {0};
    struct bh_store_token t = {.subject = "service:ci", .role = "operator", .tenant = "", .created_ms = 1};
    struct bh_api_caller c;
    uint64_t id;
    struct bh_store *s = new_store(folder);
    CHECK(s);
    CHECK_EQ(bh_token_make(text, t.sha256, NULL), 0);
    CHECK_EQ(bh_store_token_add(s, &t, &id, NULL), 0);
    CHECK_EQ(sqlite3_exec(bh_store_handle(s), "ALTER TABLE tokens RENAME TO hidden", NULL, NULL, NULL), 0);
    CHECK_EQ(bh_auth_caller(&far, text, NULL, s, 50, &arena, &c, &p), 0);
    CHECK(c.unsure && !c.token && !c.n_grants && c.uid == BH_API_NO_UID && c.principal && c.user && c.from);
    CHECK_EQ(bh_auth_caller(&far, "bh_none", NULL, s, 50, &arena, &c, &p), BH_UNKNOWN_CALLER);
    CHECK_EQ(sqlite3_exec(bh_store_handle(s), "ALTER TABLE hidden RENAME TO tokens", NULL, NULL, NULL), 0);
    CHECK_EQ(bh_auth_caller(&far, text, NULL, s, 50, &arena, &c, &p), 0);
    CHECK(!c.unsure && c.token == id && c.n_grants == 1);
    bh_store_close(s);
    CHECK(bh_scratch_remove(folder));
}

TEST(what_is_no_token)
{
    uint8_t digest[32];
    char text[BH_TOKEN_TEXT];
    CHECK(!bh_token_digest("", digest));
    CHECK(!bh_token_digest("bh_", digest));
    CHECK_EQ(bh_token_make(text, digest, NULL), 0);
    CHECK(bh_token_digest(text, digest));
    text[10] = 'G';
    CHECK(!bh_token_digest(text, digest));
    text[10] = '\0';
    CHECK(!bh_token_digest(text, digest));
}

TEST_MAIN
