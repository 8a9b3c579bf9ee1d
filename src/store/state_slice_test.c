/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(instances_come_and_go_while_they_are_free)
{
    struct fix f;
    struct bh_store_slice got;
    bh_store_slices all = {0};
    const struct bh_slice_name name = instance(GPU_A, "1g@0");
    fix_init(&f);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "1g@0", 1000, 9000, "MIG-7", 5, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "1g@0", 1000, 9000, "MIG-7", 5, &f.err), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "instance '1g@0' of 'GPU-aaaa'"));
    CHECK_EQ(bh_store_slice_add(f.s, "GPU-x", "1g@0", 1000, 9000, "", 5, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "", 1000, 9000, "", 5, &f.err), BH_INVALID);
    CHECK_EQ(bh_store_slice_get(f.s, &f.arena, &name, &got, &f.err), 0);
    CHECK_EQ(got.state, BH_SLICE_FREE);
    CHECK_EQ(got.milli, 1000);
    CHECK_EQ(got.mib, 9000);
    CHECK_STR(got.device, "MIG-7");
    CHECK_EQ(got.owner, 0);
    const uint64_t id = fix_active(&f, "red", name, 0, 0);
    CHECK(id);
    CHECK_EQ(bh_store_slice_get(f.s, &f.arena, &name, &got, &f.err), 0);
    CHECK_EQ(got.owner, id);
    CHECK_EQ(bh_store_slice_remove(f.s, GPU_A, "1g@0", &f.err), BH_CONFLICT);
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(bh_store_slice_get(f.s, &f.arena, &name, &got, &f.err), 0);
    CHECK_EQ(got.owner, 0);
    CHECK_EQ(got.lease, id);
    CHECK_EQ(bh_store_slice_remove(f.s, GPU_A, "1g@0", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_slices_list(f.s, &f.arena, NULL, 0, &all, &f.err), 0);
    CHECK_EQ(all.n, 3);
    all.n = 0;
    CHECK_EQ(bh_store_slices_list(f.s, &f.arena, GPU_B, 0, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    all.n = 0;
    CHECK_EQ(bh_store_slices_list(f.s, &f.arena, NULL, id, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    CHECK_STR(all.at[0].name.key, "1g@0");
    CHECK_EQ(fix_verdict(&f, id, name, BH_SCRUB_CLEAN), 0);
    CHECK_EQ(bh_store_slice_remove(f.s, GPU_A, "1g@0", &f.err), 0);
    CHECK_EQ(bh_store_slice_remove(f.s, GPU_A, "1g@0", &f.err), BH_NOT_FOUND);
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST(a_slice_is_quarantined_and_comes_back_only_when_it_was_looked_at)
{
    struct fix f;
    const struct bh_slice_name name = whole(GPU_A), none = instance(GPU_A, "x");
    struct bh_store_slice got;
    fix_init(&f);
    CHECK_EQ(bh_store_slice_retry(f.s, &name, 5, &f.err), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "must be quarantined"));
    CHECK_EQ(bh_store_slice_quarantine(f.s, &name, 5, "xid 79", &f.err), 0);
    CHECK_EQ(bh_store_slice_quarantine(f.s, &name, 5, "xid 79", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_slice_quarantine(f.s, &none, 5, "", &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_slice_get(f.s, &f.arena, &name, &got, &f.err), 0);
    CHECK_STR(got.why, "xid 79");
    CHECK_EQ(fix_active(&f, "red", name, 0, 0), 0);
    CHECK_EQ(fix_verdict(&f, 0, name, BH_SCRUB_CLEAN), BH_CONFLICT);
    CHECK_EQ(bh_store_slice_retry(f.s, &name, 6, &f.err), 0);
    CHECK_EQ(fix_active(&f, "red", name, 0, 0), 0);
    CHECK_EQ(fix_verdict(&f, 0, name, BH_SCRUB_CLEAN), 0);
    CHECK(fix_active(&f, "red", name, 0, 0));
    /* what a lease has is not for these */
    CHECK_EQ(bh_store_slice_quarantine(f.s, &name, 5, "xid", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_slice_leave(f.s, &name, 99, 7, &f.err), BH_CONFLICT);
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_STR(bh_slice_kind_str(BH_SLICE_MIG), "mig");
    CHECK_STR(bh_slice_state_str(BH_SLICE_DIRTY), "dirty");
    fix_fini(&f);
}

static uint64_t held_mib(struct fix *f, const char *tenant, uint64_t *ret_milli)
{
    bh_store_helds held = {0};
    uint64_t mib = 0;
    *ret_milli = 0;
    if (bh_store_held_list(f->s, &f->arena, &held, &f->err) < 0)
        return UINT64_MAX;
    for (size_t i = 0; i < held.n; i++)
        if (strcmp(held.at[i].tenant, tenant) == 0) {
            *ret_milli = held.at[i].milli;
            mib = held.at[i].mib;
        }
    bh_vec_fini(&held);
    return mib;
}

TEST(what_tenants_have_is_added_up_until_it_is_proved_clean)
{
    struct fix f;
    uint64_t milli;
    bh_store_shared_cards shared = {0};
    bh_store_slices kept = {0};
    fix_init(&f);
    CHECK_EQ(held_mib(&f, "red", &milli), 0);
    const struct bh_slice_name first = share_of(GPU_A, "L1", ""), second = share_of(GPU_A, "L2", ""),
                               other = share_of(GPU_B, "L3", "");
    const uint64_t a = fix_active(&f, "red", first, 100, 1000), b = fix_active(&f, "red", second, 200, 2000),
                   c = fix_active(&f, "blue", other, 300, 3000);
    CHECK(a == 1 && b == 2 && c == 3); /* the store names shares by their leases */
    CHECK_EQ(held_mib(&f, "red", &milli), 3000);
    CHECK_EQ(milli, 300);
    CHECK_EQ(held_mib(&f, "blue", &milli), 3000);
    CHECK_EQ(bh_store_shared_cards_list(f.s, &f.arena, &shared, &f.err), 0);
    CHECK_EQ(shared.n, 2);
    CHECK(strcmp(shared.at[0].gpu, GPU_A) == 0 && shared.at[0].n == 2 && shared.at[1].n == 1);
    /* who has left it, has it until it is clean */
    CHECK_EQ(fix_end(&f, a), 0);
    CHECK_EQ(held_mib(&f, "red", &milli), 3000);
    if (fix_verdict(&f, a, first, BH_SCRUB_CLEAN) < 0)
        printf("# %s %s\n", f.err.msg, (const char *)"");
    CHECK_EQ(held_mib(&f, "red", &milli), 2000);
    CHECK_EQ(milli, 200);
    CHECK_EQ(bh_store_slices_quarantined(f.s, &f.arena, &kept, &f.err), 0);
    CHECK_EQ(kept.n, 0);
    CHECK_EQ(fix_end(&f, b), 0);
    CHECK_EQ(fix_verdict(&f, b, second, BH_SCRUB_FOUND), 0);
    CHECK_EQ(fix_step(&f, b, BH_LEASE_SCRUBBING, BH_LEASE_BY_DIRTY), 0);
    CHECK_EQ(bh_store_slices_quarantined(f.s, &f.arena, &kept, &f.err), 0);
    CHECK_EQ(kept.n, 1);
    CHECK_STR(kept.at[0].name.key, "L2");
    CHECK_EQ(held_mib(&f, "red", &milli), 2000);
    CHECK_EQ(fix_broken(f.s), 0);
    bh_vec_fini(&shared);
    bh_vec_fini(&kept);
    fix_fini(&f);
}

TEST_MAIN
