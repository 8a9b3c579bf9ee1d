/* SPDX-License-Identifier: Apache-2.0 */
/* limit_test.c - buckets refill at their rate, counts come back, and a crowd pushes out only who has nothing open. */
#include "api/limit.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_limit *fresh(void)
{
    struct bh_limit *l = bh_alloc(1, sizeof(*l));
    struct bh_api_limits limits;
    bh_api_limits_init(&limits);
    limits.per_second = 10;
    limits.burst = 3;
    limits.connections = 4;
    limits.connections_per_caller = 2;
    limits.streams = 2;
    limits.streams_per_caller = 1;
    limits.auth_failures = 3;
    limits.lockout_ms = 1000;
    bh_limit_init(l, &limits);
    return l;
}

TEST(a_bucket_refills_at_its_rate)
{
    BH_AUTOFREE struct bh_limit *l = fresh();
    struct bh_limit_caller *c = bh_limit_find(l, "uid:1", 5000);
    uint64_t wait = 0;
    for (int i = 0; i < 3; i++)
        CHECK(bh_limit_request(l, c, 5000, &wait));
    CHECK(!bh_limit_request(l, c, 5000, &wait));
    CHECK_EQ(wait, 100);
    CHECK(!bh_limit_request(l, c, 5099, &wait));
    CHECK_EQ(wait, 1);
    CHECK(bh_limit_request(l, c, 5100, &wait));
    CHECK(!bh_limit_request(l, c, 5100, &wait));
    CHECK(!bh_limit_request(l, c, 4000, &wait)); /* the clock went back */
    for (int i = 0; i < 3; i++)
        CHECK(bh_limit_request(l, c, UINT64_MAX / 2, &wait)); /* never more than the burst */
    CHECK(!bh_limit_request(l, c, UINT64_MAX / 2, &wait));
}

TEST(connections_of_one_and_of_all)
{
    BH_AUTOFREE struct bh_limit *l = fresh();
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:1", 0), false));
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:1", 0), false));
    CHECK(!bh_limit_connect(l, bh_limit_find(l, "uid:1", 0), false));
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:2", 0), false));
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:3", 0), false));
    CHECK(!bh_limit_connect(l, bh_limit_find(l, "uid:4", 0), false));
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:0", 0), true));
    bh_limit_disconnect(l, "uid:0");
    bh_limit_disconnect(l, "uid:2");
    CHECK(!bh_limit_connect(l, bh_limit_find(l, "uid:1", 0), false));
    CHECK(bh_limit_connect(l, bh_limit_find(l, "uid:4", 0), false));
    CHECK_EQ(l->connections, 4);
}

TEST(streams_of_one_and_of_all)
{
    BH_AUTOFREE struct bh_limit *l = fresh();
    CHECK(bh_limit_stream(l, bh_limit_find(l, "uid:1", 0)));
    CHECK(!bh_limit_stream(l, bh_limit_find(l, "uid:1", 0)));
    CHECK(bh_limit_stream(l, bh_limit_find(l, "uid:2", 0)));
    CHECK(!bh_limit_stream(l, bh_limit_find(l, "uid:3", 0)));
    bh_limit_stream_end(l, "uid:1");
    CHECK(bh_limit_stream(l, bh_limit_find(l, "uid:3", 0)));
}

TEST(wrong_tokens_lock_out_for_a_while)
{
    BH_AUTOFREE struct bh_limit *l = fresh();
    struct bh_limit_caller *c = bh_limit_find(l, "addr:192.0.2.7", 10000);
    CHECK(!bh_limit_auth_failed(l, c, 10000));
    CHECK(!bh_limit_auth_failed(l, c, 10500));
    CHECK(!bh_limit_auth_failed(l, c, 11600)); /* the first is long ago: counted anew */
    CHECK(!bh_limit_auth_failed(l, c, 11700));
    CHECK(!bh_limit_is_locked(c, 11700));
    CHECK(bh_limit_auth_failed(l, c, 11800));
    CHECK(bh_limit_is_locked(c, 12799));
    CHECK(!bh_limit_is_locked(c, 12800));
}

TEST(a_crowd_pushes_out_only_the_idle)
{
    BH_AUTOFREE struct bh_limit *l = fresh();
    char key[BH_LIMIT_KEY];
    l->limits.connections = l->limits.streams = BH_LIMIT_CALLERS * 2;
    CHECK(bh_limit_connect(l, bh_limit_find(l, "kept", 1), false));
    (void)bh_limit_auth_failed(l, bh_limit_find(l, "locked", 1), 1);
    l->callers[1].locked_until_ms = 1000000;
    for (unsigned i = 0; i < BH_LIMIT_CALLERS * 3; i++) {
        (void)snprintf(key, sizeof(key), "addr:%u", i);
        CHECK(bh_limit_find(l, key, 2 + i));
    }
    CHECK_STR(l->callers[0].key, "kept");
    CHECK_STR(l->callers[1].key, "locked");
    for (unsigned i = 0; i < BH_LIMIT_CALLERS - 2; i++) {
        (void)snprintf(key, sizeof(key), "holds:%u", i);
        struct bh_limit_caller *c = bh_limit_find(l, key, 5000 + i);
        CHECK(c && bh_limit_connect(l, c, false));
    }
    CHECK(!bh_limit_find(l, "newcomer", 9000));
    CHECK(bh_limit_find(l, "newcomer", 1000000)); /* the lockout is over */
}

TEST_MAIN
