/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_history.h"

#include "store/state_fixture.h"

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
