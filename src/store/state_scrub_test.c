/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(verdicts_are_kept_and_listed)
{
    struct fix f;
    bh_store_scrubs all = {0};
    const struct bh_store_page newest = {.limit = 1, .newest = true};
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", share_of(GPU_A, "", ""), 100, 100);
    const struct bh_slice_name share = share_of(GPU_A, "L1", "");
    CHECK_EQ(fix_verdict(&f, id, share, BH_SCRUB_CLEAN), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "verdict on share 'L1' of 'GPU-aaaa': a verdict is about"));
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(fix_verdict(&f, id, share, BH_SCRUB_UNKNOWN), 0);
    CHECK_EQ(fix_verdict(&f, 99, share, BH_SCRUB_CLEAN), BH_CONFLICT);
    CHECK_EQ(fix_verdict(&f, id, share, BH_SCRUB_VERDICTS), BH_INVALID);
    CHECK_EQ(fix_verdict(&f, id, share, BH_SCRUB_CLEAN), 0);
    /* the share is gone with it */
    CHECK_EQ(number(f.s, "SELECT count(*) FROM slices WHERE kind = 'share'"), 0);
    CHECK_EQ(fix_verdict(&f, id, share, BH_SCRUB_CLEAN), BH_CONFLICT);
    CHECK_EQ(bh_store_scrubs_list(f.s, &f.arena, id, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_EQ(all.at[0].verdict, BH_SCRUB_UNKNOWN);
    CHECK_EQ(all.at[1].verdict, BH_SCRUB_CLEAN);
    CHECK_STR(all.at[1].method, "overwrite+probe");
    CHECK_EQ(all.at[1].probed_bytes, 10);
    CHECK_STR(all.at[1].slice.key, "L1");
    all.n = 0;
    CHECK_EQ(bh_store_scrubs_list(f.s, &f.arena, 0, &newest, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    CHECK_EQ(all.at[0].verdict, BH_SCRUB_CLEAN);
    CHECK_STR(bh_scrub_verdict_str(BH_SCRUB_FOUND), "found");
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST_MAIN
