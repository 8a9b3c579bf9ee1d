/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_tally.h"

#include "store/state_history.h"
#include "store/state_storm_fixture.h"

/* The tally says what adding up everything says. */
static bool holds(struct bh_store *s, struct bh_store_tally *t, uint64_t now_ms)
{
    const struct bh_store_usage_filter all = {.to_ms = now_ms};
    bh_store_usage_sums quick = {0}, slow = {0};
    struct bh_arena arena = {0};
    struct bh_err err;
    const bool same = bh_store_tally_sum(s, &arena, t, now_ms, &quick, &err) == 0 &&
                      bh_store_usage_sum(s, &arena, &all, BH_USAGE_OF_TENANT, &slow, &err) == 0 &&
                      fix_same_sums(&quick, &slow);
    bh_vec_fini(&quick);
    bh_vec_fini(&slow);
    bh_arena_fini(&arena);
    return same;
}

/* Leases park and come back, are made narrower, have to make room after they had something before. */
TEST(whatever_becomes_of_leases_the_tally_is_the_sum)
{
    enum { SEEDS = 12, COMMANDS = 500 };
    static uint8_t bytes[COMMANDS * STORM_COMMAND];
    uint64_t lost = 0, again = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fix f;
        struct storm t = {.at_ms = 1};
        struct bh_store_tally tally = {0};
        bool same = true;
        memset(&f, 0, sizeof(f));
        scratch_init(&f.at);
        fix_open(&f);
        CHECK_EQ(raw(f.s, "PRAGMA synchronous=OFF"), 0); /* nobody pulls the plug here */
        t.s = f.s;
        CHECK_EQ(storm_found(&t), 0);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (size_t at = 0; at + STORM_COMMAND <= sizeof(bytes); at += STORM_COMMAND) {
            t.at_ms += bytes[at] % 50;
            t.c = (struct bh_choice){bytes + at, STORM_COMMAND};
            (void)(bytes[at + 1] % 4 ? storm_forward(&t) : storm_command(&t));
            bh_arena_fini(&t.arena);
            if (bytes[at + 2] % 4 == 0)
                same = same && holds(f.s, &tally, t.at_ms);
        }
        CHECK(same);
        CHECK(holds(f.s, &tally, t.at_ms + 10));
        CHECK(holds(f.s, &tally, t.at_ms)); /* and of a time before, which it does not remember */
        lost += (uint64_t)number(
            f.s, "SELECT count(*) FROM usage u WHERE u.to_ms < (SELECT h.at_ms FROM lease_history h"
                 " WHERE h.lease = u.lease AND h.new = 'draining' AND h.cause = 'evict')");
        again += (uint64_t)number(f.s, "SELECT count(*) - count(DISTINCT lease) FROM usage");
        bh_store_tally_fini(&tally);
        fix_fini(&f);
    }
    CHECK(lost > 0 && again > 0); /* what is hard about it was there */
}

TEST(what_is_undone_is_not_remembered)
{
    struct fix f;
    struct bh_store_tally t = {0};
    fix_init(&f);
    f.now = 1000;
    const uint64_t a = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK(holds(f.s, &t, 2000));
    f.now = 3000;
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(fix_end(&f, a), 0);
    CHECK(holds(f.s, &t, 4000));
    bh_store_rollback(f.s);
    CHECK(holds(f.s, &t, 4000));
    f.now = 5000;
    CHECK_EQ(fix_end(&f, a), 0);
    CHECK(holds(f.s, &t, f.now));     /* closed at this very time, */
    CHECK(holds(f.s, &t, f.now + 1)); /* and before it */
    bh_store_tally_fini(&t);
    fix_fini(&f);
}

TEST(what_is_dropped_is_not_counted)
{
    struct fix f;
    struct bh_store_tally t = {0};
    struct bh_store_dropped gone;
    struct bh_store_lease row;
    fix_init(&f);
    const uint64_t a = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK(fix_active(&f, "blue", whole(GPU_B), 0, 0) != 0);
    f.now += 1000;
    CHECK_EQ(fix_end(&f, a), 0);
    CHECK_EQ(fix_verdict(&f, a, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, a, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(bh_store_lease_get(f.s, &f.arena, a, &row, &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, row.job, BH_JOB_END_EXITED, 0, 0, f.now, "", &f.err), 0);
    CHECK(holds(f.s, &t, f.now + 5));
    CHECK_EQ(t.sums.n, 1);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_history_drop(f.s, f.now + 5, 10, &gone, &f.err), 0);
    CHECK_EQ(gone.usages, 1);
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    CHECK(holds(f.s, &t, f.now + 6));
    CHECK_EQ(t.sums.n, 0);
    bh_vec_fini(&gone.lease_ids);
    bh_store_tally_fini(&t);
    fix_fini(&f);
}

static int count_step(void *arg)
{
    ++*(uint64_t *)arg;
    return 0;
}

/* In steps of SQLite's machine, which are the same on every computer. */
static void work_of(struct fix *f, struct bh_store_tally *t, uint64_t *ret)
{
    bh_store_usage_sums sums = {0};
    *ret = 0;
    sqlite3_progress_handler(bh_store_handle(f->s), 1, count_step, ret);
    CHECK_EQ(bh_store_tally_sum(f->s, &f->arena, t, ++f->now, &sums, &f->err), 0);
    sqlite3_progress_handler(bh_store_handle(f->s), 0, NULL, NULL);
    CHECK_EQ(sums.n, 1);
    bh_vec_fini(&sums);
}

TEST(what_is_over_costs_nothing)
{
    struct fix f;
    struct bh_store_tally t = {0};
    fix_init(&f);
    CHECK(fix_active(&f, "red", share_of(GPU_A, "", ""), 10, 10) != 0);
    uint64_t alone, more, after;
    work_of(&f, &t, &alone);
    work_of(&f, &t, &alone);
    for (int i = 0; i < 40; i++) {
        const uint64_t a = fix_active(&f, "red", share_of(GPU_B, "", ""), 10, 10);
        CHECK(a && fix_end(&f, a) == 0);
    }
    work_of(&f, &t, &more);
    work_of(&f, &t, &after);
    CHECK(more > alone); /* they are added, once */
    CHECK(after <= alone + alone / 10);
    bh_store_tally_fini(&t);
    fix_fini(&f);
}

TEST_MAIN
