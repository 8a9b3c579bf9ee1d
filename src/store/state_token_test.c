/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_token.h"

#include "store/state_fixture.h"

TEST(a_token_holds_until_it_expires_or_is_revoked)
{
    struct fix f;
    struct bh_store_token t = {.sha256 = {9},
                               .subject = "ada",
                               .role = "tenant-user",
                               .tenant = "red",
                               .created_ms = 1,
                               .expires_ms = 100};
    struct bh_store_token got;
    bh_store_tokens all = {0};
    const uint8_t other[BH_STORE_SHA256] = {8};
    uint64_t id = 0, more = 0;
    fix_init(&f);
    CHECK_EQ(bh_store_token_add(f.s, &t, &id, &f.err), 0);
    CHECK_EQ(bh_store_token_add(f.s, &t, &more, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_token_find(f.s, &f.arena, t.sha256, 99, &got, &f.err), 0);
    CHECK_STR(got.subject, "ada");
    CHECK_STR(got.role, "tenant-user");
    CHECK_STR(got.tenant, "red");
    CHECK_EQ(bh_store_token_find(f.s, &f.arena, other, 99, &got, &f.err), BH_DENIED);
    CHECK_EQ(bh_store_token_find(f.s, &f.arena, t.sha256, 100, &got, &f.err), BH_DENIED);
    CHECK_EQ(bh_store_token_revoke(f.s, id, 50, &f.err), 0);
    CHECK_EQ(bh_store_token_revoke(f.s, id, 51, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_token_revoke(f.s, 99, 51, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_token_find(f.s, &f.arena, t.sha256, 60, &got, &f.err), BH_DENIED);
    CHECK_STR(f.err.msg, "the token is not valid");
    t.sha256[1] = 1;
    t.tenant = "";
    CHECK_EQ(bh_store_token_add(f.s, &t, &more, &f.err), BH_INVALID);
    t.role = "root";
    CHECK_EQ(bh_store_token_add(f.s, &t, &more, &f.err), BH_INVALID);
    t.role = "viewer";
    t.expires_ms = 0;
    CHECK_EQ(bh_store_token_add(f.s, &t, &more, &f.err), 0);
    CHECK_EQ(bh_store_token_find(f.s, &f.arena, t.sha256, UINT32_MAX, &got, &f.err), 0);
    CHECK_EQ(bh_store_tokens_list(f.s, &f.arena, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    t.sha256[1] = 2;
    t.expires_ms = 70;
    CHECK_EQ(bh_store_token_add(f.s, &t, &more, &f.err), 0);
    CHECK_EQ(bh_store_tokens_live(f.s, "ada", 69, &more, &f.err), 0);
    CHECK_EQ(more, 2);
    CHECK_EQ(bh_store_tokens_live(f.s, "ada", 70, &more, &f.err), 0);
    CHECK_EQ(more, 1);
    CHECK_EQ(bh_store_tokens_live(f.s, "bob", 70, &more, &f.err), 0);
    CHECK_EQ(more, 0);
    CHECK_EQ(all.at[0].revoked_ms, 50);
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST_MAIN
