/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"
#include "store/state_totals.h"

/* Sums as somebody keeps them who reads only the tail. */
struct sums {
    struct bh_store_tail tail;
    uint64_t milli_ms, waits, waited_ms, evicted, scrubs[BH_SLICE_KINDS][BH_SCRUB_VERDICTS];
};

static int read_on(struct fix *f, struct sums *s)
{
    struct bh_store_tail to;
    bh_store_turns turns = {0};
    bh_store_useds used = {0};
    int rc = bh_store_tail_now(f->s, f->now, &to, &f->err);
    if (rc == 0)
        rc = bh_store_tail_turns(f->s, &f->arena, &s->tail, &to, &turns, &f->err);
    if (rc == 0)
        rc = bh_store_tail_scrubs(f->s, &s->tail, &to, s->scrubs, &f->err);
    if (rc == 0)
        rc = bh_store_tail_used(f->s, &f->arena, s->tail.closed_ms, to.closed_ms, &used, &f->err);
    for (size_t i = 0; i < turns.n; i++) {
        s->evicted += turns.at[i].evicted;
        s->waits += !turns.at[i].evicted;
        s->waited_ms += turns.at[i].evicted ? 0 : turns.at[i].waited_ms;
    }
    for (size_t i = 0; i < used.n; i++)
        s->milli_ms += used.at[i].milli_ms;
    s->tail = to;
    bh_vec_fini(&turns);
    bh_vec_fini(&used);
    return rc;
}

/* All of it: what was closed, what was closed at this very moment, what is open. */
static uint64_t total(struct fix *f, const struct sums *s, size_t *ret_open)
{
    bh_store_useds late = {0};
    bh_store_usings open = {0};
    uint64_t sum = s->milli_ms;
    if (bh_store_tail_used(f->s, &f->arena, s->tail.closed_ms, INT64_MAX, &late, &f->err) < 0 ||
        bh_store_usage_open(f->s, &f->arena, f->now, &open, &f->err) < 0)
        return 0;
    for (size_t i = 0; i < late.n; i++)
        sum += late.at[i].milli_ms;
    for (size_t i = 0; i < open.n; i++)
        sum += open.at[i].used.milli_ms;
    *ret_open = open.n;
    bh_vec_fini(&late);
    bh_vec_fini(&open);
    return sum;
}

/* It ends, and what it had is proved clean. */
static int over(struct fix *f, uint64_t id)
{
    bh_store_grants grants = {0};
    int rc = fix_end(f, id);
    if (rc == 0)
        rc = bh_store_lease_grants(f->s, &f->arena, id, &grants, &f->err);
    for (size_t i = 0; rc == 0 && i < grants.n; i++)
        rc = fix_verdict(f, id, grants.at[i].slice, BH_SCRUB_CLEAN);
    bh_vec_fini(&grants);
    return rc < 0 ? rc : fix_step(f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN);
}

TEST(the_tail_and_the_whole_are_one)
{
    struct fix f;
    struct sums often = {0};
    size_t open = 0;
    uint64_t before = 0;
    fix_init(&f);
    for (int round = 0; round < 20; round++) {
        const uint64_t a = fix_active(&f, "red", share_of(GPU_A, "", ""), 300, 10000);
        const uint64_t b = fix_active(&f, "blue", whole(GPU_B), 0, 0);
        CHECK_EQ(read_on(&f, &often), 0);
        f.now += 700;
        CHECK_EQ(over(&f, a), 0);
        if (round % 2)
            CHECK_EQ(read_on(&f, &often), 0);
        const uint64_t now = total(&f, &often, &open);
        CHECK_EQ(open, 1);
        CHECK(now > before); /* a counter never falls */
        before = now;
        CHECK_EQ(over(&f, b), 0);
        CHECK(total(&f, &often, &open) >= before);
    }
    struct sums once = {0};
    f.now++;
    CHECK_EQ(read_on(&f, &once), 0);
    CHECK_EQ(read_on(&f, &often), 0);
    CHECK_EQ(often.milli_ms, once.milli_ms);
    CHECK_EQ((int64_t)once.milli_ms, number(f.s, "SELECT sum(milli * (to_ms - from_ms)) FROM usage"));
    CHECK_EQ(often.waits, 40);
    CHECK_EQ(once.waits, 40);
    CHECK_EQ(often.waited_ms, once.waited_ms);
    CHECK_EQ(once.scrubs[BH_SLICE_SHARE][BH_SCRUB_CLEAN], 20);
    CHECK_EQ(memcmp(often.scrubs, once.scrubs, sizeof(once.scrubs)), 0);
    fix_fini(&f);
}

TEST(evictions_and_instances)
{
    struct fix f;
    struct sums s = {0};
    bh_store_usings open = {0};
    fix_init(&f);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "3g.40gb@0", 428, 40000, "", f.now, &f.err), 0);
    const uint64_t id = fix_active(&f, "red", instance(GPU_A, "3g.40gb@0"), 0, 0);
    f.now += 1000;
    CHECK_EQ(bh_store_usage_open(f.s, &f.arena, f.now, &open, &f.err), 0);
    CHECK_EQ(open.n, 1);
    CHECK_STR(open.at[0].used.instance, "3g.40gb@0");
    CHECK_EQ(open.at[0].lease, id);
    CHECK_EQ(open.at[0].before_milli_ms, 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_EVICT), 0);
    CHECK_EQ(read_on(&f, &s), 0);
    CHECK_EQ(s.evicted, 1);
    CHECK_EQ(s.waits, 1);
    bh_vec_fini(&open);
    fix_fini(&f);
}

TEST(not_while_something_may_be_undone)
{
    struct fix f;
    struct bh_store_tail to;
    fix_init(&f);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_tail_now(f.s, f.now, &to, &f.err), BH_BUSY);
    bh_store_rollback(f.s);
    CHECK_EQ(bh_store_tail_now(f.s, f.now, &to, &f.err), 0);
    fix_fini(&f);
}

TEST_MAIN
