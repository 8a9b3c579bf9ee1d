/* SPDX-License-Identifier: Apache-2.0 */
/* state_room_test.c - loads go up and down with jobs; what is left of a job goes once, and only after its end. */
#include "store/state_room.h"

#include "store/state_fixture.h"
#include "store/state_history.h"

static uint64_t add(struct fix *f, const char *tenant, const char *user)
{
    struct bh_store_job j = a_job(tenant);
    uint64_t id = 0;
    j.user = user;
    return bh_store_job_add(f->s, &j, &id, &f->err) == 0 ? id : 0;
}

static struct bh_store_load load_of(struct fix *f, const char *tenant, const char *user)
{
    struct bh_store_load l;
    const int rc = bh_store_load_get(f->s, tenant, user, &l, &f->err);
    return rc == 0 ? l : (struct bh_store_load){.waiting = UINT64_MAX};
}

TEST(loads_follow_the_jobs)
{
    struct fix f;
    fix_init(&f);
    CHECK_EQ(load_of(&f, "red", "ada").waiting, 0);
    const uint64_t one = add(&f, "red", "ada");
    const uint64_t bytes = load_of(&f, "red", "ada").tenant_bytes;
    CHECK(bytes > 20);
    (void)add(&f, "red", "bob");
    (void)add(&f, "blue", "ada");
    struct bh_store_load l = load_of(&f, "red", "ada");
    CHECK(l.user_waiting == 1 && l.tenant_waiting == 2 && l.waiting == 3 && l.tenant_bytes == 2 * bytes);
    /* What runs does not wait, and is still there. */
    CHECK_EQ(bh_store_job_step(f.s, one, BH_JOB_WAITING, BH_JOB_RUNNING, 2, "", &f.err), 0);
    l = load_of(&f, "red", "ada");
    CHECK(l.user_waiting == 0 && l.tenant_waiting == 1 && l.tenant_bytes == 2 * bytes);
    CHECK_EQ(bh_store_job_end(f.s, one, BH_JOB_END_EXITED, 0, 0, 3, "", &f.err), 0);
    l = load_of(&f, "red", "ada");
    CHECK(l.tenant_waiting == 1 && l.waiting == 2 && l.tenant_bytes == bytes);
    fix_fini(&f);
}

TEST(what_is_left_goes_once)
{
    struct fix f;
    bh_store_remains rows = {0};
    struct bh_store_job got;
    uint64_t at = 0;
    fix_init(&f);
    const uint64_t one = add(&f, "red", "ada"), two = add(&f, "red", "ada");
    CHECK_EQ(bh_store_remain_measure(f.s, one, 5, &f.err), BH_NOT_FOUND); /* it has not ended */
    CHECK_EQ(bh_store_job_end(f.s, two, BH_JOB_END_CANCELLED, 0, 0, 3, "", &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, one, BH_JOB_END_CANCELLED, 0, 0, 7, "", &f.err), 0);
    CHECK_EQ(bh_store_remains_new(f.s, &f.arena, 10, &rows, &f.err), 0);
    CHECK(rows.n == 2 && rows.at[0].job == one && rows.at[1].job == two);
    CHECK_EQ(bh_store_remain_measure(f.s, one, 1000, &f.err), 0);
    CHECK_EQ(bh_store_remain_measure(f.s, two, 2000, &f.err), 0);
    CHECK_EQ(bh_store_remain_measure(f.s, two, 1, &f.err), BH_CONFLICT);
    rows.n = 0;
    CHECK_EQ(bh_store_remains_new(f.s, &f.arena, 10, &rows, &f.err), 0);
    CHECK_EQ(rows.n, 0);
    CHECK_EQ(bh_store_remains_of_tenants(f.s, &f.arena, &rows, &f.err), 0);
    CHECK(rows.n == 1 && rows.at[0].job == two && rows.at[0].ended_ms == 3 && rows.at[0].bytes > 3000);
    rows.n = 0;
    CHECK_EQ(bh_store_remains_oldest(f.s, &f.arena, "red", 10, &rows, &f.err), 0);
    CHECK(rows.n == 2 && rows.at[0].job == two && rows.at[1].job == one && rows.at[1].bytes > 1000);
    CHECK_EQ(bh_store_remain_pruned(f.s, two, &at, &f.err), 0);
    CHECK_EQ(at, 0);
    CHECK_EQ(bh_store_remain_prune(f.s, two, 9, &f.err), 0);
    CHECK_EQ(bh_store_remain_prune(f.s, two, 10, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_remain_pruned(f.s, two, &at, &f.err), 0);
    CHECK_EQ(at, 9);
    CHECK_EQ(bh_store_job_get(f.s, &f.arena, two, &got, &f.err), 0);
    CHECK(!got.argv[0] && !got.env[0]);
    CHECK_STR(got.name, "train");
    rows.n = 0;
    CHECK_EQ(bh_store_remains_of_tenants(f.s, &f.arena, &rows, &f.err), 0);
    CHECK(rows.n == 1 && rows.at[0].job == one && rows.at[0].bytes < 2000);
    /* Nothing else of it may change, nor with that. */
    CHECK(raw(f.s, "UPDATE jobs SET argv = x'', env = x'', name = 'other' WHERE id = 1") != 0);
    CHECK(raw(f.s, "UPDATE jobs SET argv = x'00', env = x'' WHERE id = 1") != 0);
    CHECK(raw(f.s, "DELETE FROM job_remains") != 0);
    bh_vec_fini(&rows);
    fix_fini(&f);
}

TEST(what_a_lease_needs_stays)
{
    struct fix f;
    bh_store_remains rows = {0};
    fix_init(&f);
    const uint64_t job = add(&f, "red", "ada");
    const struct bh_store_lease l = {
        .job = job, .tenant = "red", .user = "ada", .pool = "p", .domain = "d", .stack = "s", .detail = ""};
    uint64_t lease = 0;
    CHECK_EQ(bh_store_lease_add(f.s, &l, 1, &lease, &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, job, BH_JOB_END_CANCELLED, 0, 0, 3, "", &f.err), 0);
    CHECK_EQ(bh_store_remain_measure(f.s, job, 1, &f.err), 0);
    CHECK_EQ(bh_store_remains_oldest(f.s, &f.arena, "red", 10, &rows, &f.err), 0);
    CHECK_EQ(rows.n, 0);
    CHECK_EQ(bh_store_lease_step(f.s, lease, BH_LEASE_REQUESTED, BH_LEASE_BY_REFUSE, 4, "", NULL, &f.err), 0);
    CHECK_EQ(bh_store_remains_oldest(f.s, &f.arena, "red", 10, &rows, &f.err), 0);
    CHECK_EQ(rows.n, 1);
    bh_vec_fini(&rows);
    fix_fini(&f);
}

TEST(it_goes_with_the_job)
{
    struct fix f;
    struct bh_store_dropped gone;
    bh_store_remains rows = {0};
    fix_init(&f);
    const uint64_t old = add(&f, "red", "ada"), late = add(&f, "red", "ada");
    CHECK_EQ(bh_store_job_end(f.s, old, BH_JOB_END_CANCELLED, 0, 0, 3, "", &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, late, BH_JOB_END_CANCELLED, 0, 0, 9, "", &f.err), 0);
    CHECK_EQ(bh_store_remain_measure(f.s, old, 1000, &f.err), 0);
    CHECK_EQ(bh_store_remain_measure(f.s, late, 2000, &f.err), 0);
    CHECK_EQ(bh_store_history_drop(f.s, 5, 10, &gone, &f.err), 0);
    CHECK_EQ(gone.jobs, 1);
    bh_vec_fini(&gone.lease_ids);
    CHECK_EQ(bh_store_remains_of_tenants(f.s, &f.arena, &rows, &f.err), 0);
    CHECK(rows.n == 1 && rows.at[0].job == late && rows.at[0].bytes > 2000 && rows.at[0].bytes < 3000);
    CHECK_EQ(bh_store_remain_prune(f.s, old, 9, &f.err), BH_NOT_FOUND);
    bh_vec_fini(&rows);
    fix_fini(&f);
}

TEST_MAIN
