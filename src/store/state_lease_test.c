/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

static enum bh_lease_state state_of(struct fix *f, uint64_t id)
{
    struct bh_store_lease l = {0};
    return bh_store_lease_get(f->s, &f->arena, id, &l, &f->err) < 0 ? BH_LEASE_STATES : l.state;
}

static enum bh_slice_state slice_state(struct fix *f, struct bh_slice_name name)
{
    struct bh_store_slice sl;
    return bh_store_slice_get(f->s, &f->arena, &name, &sl, &f->err) < 0 ? BH_SLICE_STATES : sl.state;
}

TEST(a_whole_life_of_a_lease)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK_EQ(id, 1);
    CHECK_EQ(state_of(&f, id), BH_LEASE_ACTIVE);
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_OWNED);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL AND milli = 1000 AND mib = 80000"),
             1);
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_DIRTY);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    /* no verdict, no release */
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), BH_CONFLICT);
    CHECK_EQ(state_of(&f, id), BH_LEASE_SCRUBBING);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_FOUND), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), BH_CONFLICT);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_FREE);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(state_of(&f, id), BH_LEASE_RELEASED);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_step_compares_before_it_sets)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "L1 is active, not preparing"));
    /* nothing of the step was done */
    CHECK_EQ(fix_step(&f, id, BH_LEASE_DRAINING, BH_LEASE_BY_EMPTY), BH_CONFLICT);
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_OWNED);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 1);
    CHECK_EQ(fix_step(&f, 99, BH_LEASE_ACTIVE, BH_LEASE_BY_END), BH_NOT_FOUND);
    /* a cause that leads nowhere, and the two that give slices */
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_CLEAN), BH_CONFLICT);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ADMITTED, BH_LEASE_BY_GRANT), BH_INVALID);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_grant_is_all_or_nothing)
{
    struct fix f;
    fix_init(&f);
    CHECK(fix_active(&f, "red", whole(GPU_B), 0, 0));
    const uint64_t id = fix_lease(&f, "blue");
    CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT), 0);
    const struct bh_store_grant both[] = {{.slice = whole(GPU_A)}, {.slice = whole(GPU_B)}};
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_GRANT, both, 2, ++f.now, "", &f.err), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "card 'GPU-bbbb': it is owned, by lease L1"));
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_FREE);
    CHECK_EQ(state_of(&f, id), BH_LEASE_ADMITTED);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM grants WHERE lease = 2"), 0);
    /* none at all is no grant either */
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_GRANT, both, 0, ++f.now, "", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_READY, both, 1, ++f.now, "", &f.err), BH_INVALID);
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_GRANT, both, 1, ++f.now, "", &f.err), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_lease_that_could_not_be_scrubbed_is_quarantined_and_may_come_back)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_lease(&f, "red");
    const struct bh_store_grant both[] = {{.slice = whole(GPU_A)}, {.slice = whole(GPU_B)}};
    CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT), 0);
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_GRANT, both, 2, ++f.now, "", &f.err), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PREPARING, BH_LEASE_BY_BREAK), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_FAILED, BH_LEASE_BY_EMPTY), 0);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_B), BH_SCRUB_FOUND), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_DIRTY), 0);
    CHECK_EQ(slice_state(&f, whole(GPU_A)), BH_SLICE_FREE);
    CHECK_EQ(slice_state(&f, whole(GPU_B)), BH_SLICE_QUARANTINED);
    CHECK_EQ(fix_broken(f.s), 0);
    /* nobody gets it, no verdict is taken on it */
    const uint64_t other = fix_lease(&f, "blue");
    CHECK_EQ(fix_grant(&f, other, whole(GPU_B), 0, 0), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "it is quarantined"));
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_B), BH_SCRUB_CLEAN), BH_CONFLICT);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_QUARANTINED, BH_LEASE_BY_RETRY), 0);
    CHECK_EQ(slice_state(&f, whole(GPU_B)), BH_SLICE_DIRTY);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_B), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_lease_that_cannot_be_ended_keeps_its_slices_from_everybody)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", share_of(GPU_A, "", ""), 300, 9000);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_BREACH), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_DRAINING, BH_LEASE_BY_STUCK), 0);
    CHECK_EQ(slice_state(&f, share_of(GPU_A, "L1", "")), BH_SLICE_QUARANTINED);
    /* it goes on counting, and the card is no longer anybody's as a whole */
    CHECK_EQ(fix_grant(&f, fix_lease(&f, "blue"), share_of(GPU_A, "", ""), 800, 9000), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "more than there is"));
    CHECK_EQ(fix_grant(&f, fix_lease(&f, "green"), whole(GPU_A), 0, 0), BH_CONFLICT);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(parking_leaves_slices_one_by_one_and_waking_takes_others)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_lease(&f, "red");
    const struct bh_store_grant both[] = {{.slice = whole(GPU_A)}, {.slice = whole(GPU_B)}};
    CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT), 0);
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_GRANT, both, 2, ++f.now, "", &f.err), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY), 0);
    CHECK_EQ(bh_store_slice_leave(f.s, &both[0].slice, id, ++f.now, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_lease_pause(f.s, id, true, &f.err), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_PARK), 0);
    CHECK_EQ(bh_store_slice_leave(f.s, &both[0].slice, id, ++f.now, &f.err), 0);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PARKING, BH_LEASE_BY_PARKED), BH_CONFLICT);
    CHECK_EQ(bh_store_slice_leave(f.s, &both[1].slice, id, ++f.now, &f.err), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 1);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_B), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PARKING, BH_LEASE_BY_PARKED), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(bh_store_lease_grant(f.s, id, BH_LEASE_BY_WAKE, both, 1, ++f.now, "", &f.err), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY), 0);
    CHECK_EQ(fix_end(&f, id), 0);
    /* what it left before does not stand for what it took since */
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), BH_CONFLICT);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM grants WHERE proved IS NOT NULL"), 3);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_suspended_lease_drains_without_slices)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    const struct bh_slice_name name = whole(GPU_A);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_PARK), 0);
    CHECK_EQ(bh_store_slice_leave(f.s, &name, id, ++f.now, &f.err), 0);
    CHECK_EQ(fix_verdict(&f, id, name, BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PARKING, BH_LEASE_BY_PARKED), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SUSPENDED, BH_LEASE_BY_CANCEL), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_DRAINING, BH_LEASE_BY_EMPTY), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_share_changes_its_size_and_its_usage_goes_on)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", share_of(GPU_A, "", ""), 400, 20000);
    const uint64_t other = fix_active(&f, "blue", share_of(GPU_A, "", ""), 600, 20000);
    const struct bh_slice_name mine = share_of(GPU_A, "L1", ""), theirs = share_of(GPU_A, "L2", "");
    CHECK(id && other);
    CHECK_EQ(bh_store_lease_resize(f.s, id, &mine, 500, 20000, ++f.now, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_lease_resize(f.s, id, &theirs, 100, 20000, ++f.now, &f.err), BH_NOT_FOUND);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage"), 2);
    CHECK_EQ(bh_store_lease_resize(f.s, other, &theirs, 0, 20000, ++f.now, &f.err), 0);
    CHECK_EQ(bh_store_lease_resize(f.s, id, &mine, 1000, 60000, ++f.now, &f.err), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage"), 4);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage WHERE to_ms IS NULL"), 2);
    /* no gap, no overlap */
    CHECK_EQ(
        number(
            f.s,
            "SELECT count(*) FROM usage a JOIN usage b ON a.grant_id = b.grant_id AND a.to_ms = b.from_ms"),
        2);
    /* a clock that goes back leaves them in order */
    f.now -= 5000;
    CHECK_EQ(bh_store_lease_resize(f.s, id, &mine, 900, 60000, f.now, &f.err), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_job_has_one_lease_at_a_time_of_its_own_tenant)
{
    struct fix f;
    fix_init(&f);
    const uint64_t job = fix_job(&f, "red");
    const uint64_t id = fix_lease_of(&f, job, "red");
    CHECK(id);
    CHECK_EQ(fix_lease_of(&f, job, "red"), 0);
    CHECK_EQ(f.err.code, BH_CONFLICT);
    CHECK_EQ(fix_lease_of(&f, fix_job(&f, "blue"), "red"), 0);
    CHECK(strstr(f.err.msg, "a job of its own tenant"));
    CHECK_EQ(fix_lease_of(&f, 99, "red"), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_REFUSE), 0);
    const uint64_t next = fix_lease_of(&f, job, "red");
    CHECK(next > id);
    CHECK_EQ(bh_store_job_end(f.s, job, BH_JOB_END_CANCELLED, 0, 0, ++f.now, "", &f.err), 0);
    CHECK_EQ(fix_step(&f, next, BH_LEASE_REQUESTED, BH_LEASE_BY_CANCEL), 0);
    CHECK_EQ(fix_lease_of(&f, job, "red"), 0);
    fix_fini(&f);
}

TEST(what_is_planned_can_change_until_something_is_given)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_lease(&f, "red");
    struct bh_store_lease l = {.domain = "d2",
                               .mechanism = BH_MECH_WHOLE,
                               .stack = "whole",
                               .tier = BH_TIER_CONTAINER,
                               .uid = 5,
                               .gid = 6,
                               .until_ms = 77,
                               .detail = "new"};
    CHECK_EQ(bh_store_lease_plan(f.s, id, &l, &f.err), 0);
    CHECK_EQ(fix_grant(&f, id, whole(GPU_A), 0, 0), 0);
    CHECK_EQ(bh_store_lease_plan(f.s, id, &l, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_lease_detail(f.s, id, "pipe=/run/x", &f.err), 0);
    CHECK_EQ(bh_store_lease_until(f.s, id, 99, &f.err), 0);
    CHECK_EQ(bh_store_lease_get(f.s, &f.arena, id, &l, &f.err), 0);
    CHECK_STR(l.domain, "d2");
    CHECK_STR(l.detail, "pipe=/run/x");
    CHECK_EQ(l.mechanism, BH_MECH_WHOLE);
    CHECK_EQ(l.tier, BH_TIER_CONTAINER);
    CHECK_EQ(l.until_ms, 99);
    CHECK_EQ(l.uid, 5);
    CHECK_STR(l.cause, "grant");
    l.mechanism = 200;
    CHECK_EQ(bh_store_lease_plan(f.s, id, &l, &f.err), BH_INVALID);
    fix_fini(&f);
}

TEST(only_what_is_active_can_be_paused)
{
    struct fix f;
    struct bh_store_lease l;
    fix_init(&f);
    const uint64_t id = fix_lease(&f, "red");
    CHECK_EQ(bh_store_lease_pause(f.s, id, true, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_lease_pause(f.s, 99, true, &f.err), BH_NOT_FOUND);
    CHECK_EQ(fix_grant(&f, id, whole(GPU_A), 0, 0), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY), 0);
    CHECK_EQ(bh_store_lease_pause(f.s, id, true, &f.err), 0);
    CHECK_EQ(bh_store_lease_get(f.s, &f.arena, id, &l, &f.err), 0);
    CHECK(l.paused);
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(bh_store_lease_get(f.s, &f.arena, id, &l, &f.err), 0);
    CHECK(!l.paused);
    fix_fini(&f);
}

TEST_MAIN
