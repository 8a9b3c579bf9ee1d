/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_history.h"

#include "store/state_fixture.h"
#include "store/state_totals.h"

static int drop(struct fix *f, uint64_t before_ms, uint32_t most, struct bh_store_dropped *ret)
{
    int rc = bh_store_begin(f->s, &f->err);
    if (rc == 0)
        rc = bh_store_history_drop(f->s, before_ms, most, ret, &f->err);
    if (rc == 0)
        return bh_store_commit(f->s, &f->err);
    bh_store_rollback(f->s);
    return rc;
}

/* A job that ran on a whole card, was cleared away and is over. */
static uint64_t over(struct fix *f, const char *tenant)
{
    const uint64_t lease = fix_active(f, tenant, whole(GPU_A), 0, 0);
    struct bh_store_lease row;
    const bool ok = lease && fix_end(f, lease) == 0 &&
                    fix_verdict(f, lease, whole(GPU_A), BH_SCRUB_CLEAN) == 0 &&
                    fix_step(f, lease, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN) == 0 &&
                    bh_store_lease_get(f->s, &f->arena, lease, &row, &f->err) == 0 &&
                    bh_store_job_end(f->s, row.job, BH_JOB_END_EXITED, 0, 0, f->now, "", &f->err) == 0;
    if (!ok)
        printf("# %s\n", f->err.msg);
    return ok ? lease : 0;
}

TEST(what_is_long_over_goes_whole)
{
    struct fix f;
    struct bh_store_dropped gone;
    fix_init(&f);
    const uint64_t first = over(&f, "red"), second = over(&f, "blue");
    CHECK(first && second);
    const uint64_t edge = f.now + 1;
    f.now += 1000;
    const uint64_t third = over(&f, "red");
    const uint64_t runs = fix_active(&f, "blue", whole(GPU_B), 0, 0);
    CHECK(third && runs);
    CHECK_EQ(drop(&f, 1, 100, &gone), 0); /* nothing is so old */
    CHECK_EQ(gone.jobs + gone.leases + gone.lease_ids.n, 0);
    uint64_t whole_from = 1;
    CHECK_EQ(bh_store_history_whole_from(f.s, &whole_from, &f.err), 0);
    CHECK_EQ(whole_from, 0);
    CHECK_EQ(drop(&f, edge, 1, &gone), 0);
    CHECK_EQ(gone.jobs, 1);
    CHECK_EQ(gone.leases, 1);
    CHECK_EQ(gone.usages, 1);
    CHECK_EQ(gone.lease_ids.at[0], first);
    CHECK_EQ(bh_store_history_whole_from(f.s, &whole_from, &f.err), 0);
    CHECK_EQ(whole_from, edge);
    bh_vec_fini(&gone.lease_ids);
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(drop(&f, UINT64_C(1) << 60, 100, &gone), 0);
    CHECK_EQ(gone.jobs, 2);
    CHECK_EQ(gone.lease_ids.n, 2);
    bh_vec_fini(&gone.lease_ids);
    CHECK_EQ(drop(&f, edge, 100, &gone), 0); /* an earlier time makes nothing whole again */
    CHECK_EQ(bh_store_history_whole_from(f.s, &whole_from, &f.err), 0);
    CHECK_EQ(whole_from, UINT64_C(1) << 60);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM jobs"), 1); /* it runs */
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage"), 1);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM scrubs"), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM history_permit"), 0);
    CHECK_EQ(number(f.s, "SELECT sum(n) FROM job_counts"), 1);
    CHECK_EQ(number(f.s, "SELECT sum(n) FROM lease_counts"), 1);
    CHECK_EQ(fix_broken(f.s), 0);
    /* cards can be had again, and numbers are never given twice */
    const uint64_t next = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK(next > runs);
    CHECK_EQ(fix_end(&f, next), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

/* All there ever was: what is in the books, and what was dropped. */
static bool sums_are(struct fix *f, int64_t milli_ms, int64_t scrubs, int64_t waits, int64_t waited_ms)
{
    bh_store_useds used = {0};
    bh_store_gone_turns turns = {0};
    uint64_t gone[BH_SLICE_KINDS][BH_SCRUB_VERDICTS] = {{0}};
    if (bh_store_gone_used(f->s, &f->arena, &used, &f->err) < 0 ||
        bh_store_gone_turns_list(f->s, &f->arena, &turns, &f->err) < 0 ||
        bh_store_gone_scrubs(f->s, gone, &f->err) < 0)
        return false;
    milli_ms -= number(f->s, "SELECT coalesce(sum(milli * (to_ms - from_ms)), 0) FROM usage");
    scrubs -= number(f->s, "SELECT count(*) FROM scrubs") + (int64_t)gone[BH_SLICE_WHOLE][BH_SCRUB_CLEAN];
    waits -= number(f->s, "SELECT count(*) FROM lease_history WHERE cause = 'grant'");
    waited_ms -= number(f->s, "SELECT coalesce(sum(h.at_ms - l.created_ms), 0) FROM lease_history h"
                              " JOIN leases l ON l.id = h.lease WHERE h.cause = 'grant'");
    for (size_t i = 0; i < used.n; i++)
        milli_ms -= (int64_t)used.at[i].milli_ms;
    for (size_t i = 0; i < turns.n; i++) {
        waits -= turns.at[i].evicted ? 0 : (int64_t)turns.at[i].n;
        waited_ms -= (int64_t)turns.at[i].waited_ms;
    }
    bh_vec_fini(&used);
    bh_vec_fini(&turns);
    printf("# off by %lld milli_ms, %lld verdicts, %lld waits, %lld ms\n", (long long)milli_ms,
           (long long)scrubs, (long long)waits, (long long)waited_ms);
    return !milli_ms && !scrubs && !waits && !waited_ms;
}

TEST(what_goes_is_kept_in_sums)
{
    struct fix f;
    struct bh_store_dropped gone;
    fix_init(&f);
    for (int i = 0; i < 6; i++) {
        f.now += 1000;
        CHECK(over(&f, i % 2 ? "red" : "blue"));
    }
    const int64_t used = number(f.s, "SELECT sum(milli * (to_ms - from_ms)) FROM usage"),
                  waited = number(f.s, "SELECT sum(h.at_ms - l.created_ms) FROM lease_history h"
                                       " JOIN leases l ON l.id = h.lease WHERE h.cause = 'grant'");
    CHECK(used > 0);
    CHECK(sums_are(&f, used, 6, 6, waited));
    for (int i = 0; i < 3; i++) { /* by and by */
        CHECK_EQ(drop(&f, UINT64_C(1) << 60, 2, &gone), 0);
        CHECK_EQ(gone.jobs, 2);
        bh_vec_fini(&gone.lease_ids);
        CHECK(sums_are(&f, used, 6, 6, waited));
    }
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage"), 0);
    /* undone is not counted */
    CHECK(over(&f, "red"));
    const int64_t more = number(f.s, "SELECT sum(milli * (to_ms - from_ms)) FROM usage");
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_history_drop(f.s, UINT64_C(1) << 60, 2, &gone, &f.err), 0);
    bh_vec_fini(&gone.lease_ids);
    bh_store_rollback(f.s);
    CHECK_EQ(number(f.s, "SELECT sum(milli_ms) FROM gone_usage"), used);
    CHECK(more > 0);
    CHECK_EQ(raw(f.s, "DELETE FROM gone_usage") & 0xff, SQLITE_CONSTRAINT);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(nothing_goes_without_the_permit)
{
    static const char *const texts[] = {"DELETE FROM jobs",   "DELETE FROM leases",
                                        "DELETE FROM usage",  "DELETE FROM grants",
                                        "DELETE FROM scrubs", "DELETE FROM lease_history"};
    struct fix f;
    fix_init(&f);
    CHECK(over(&f, "red"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_EQ(raw(f.s, texts[i]) & 0xff, SQLITE_CONSTRAINT);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST_MAIN
