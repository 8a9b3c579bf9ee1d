/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_storm_fixture.h"

TEST(usage_is_what_was_granted_to_the_millisecond)
{
    struct fix f;
    bh_store_usages all = {0};
    bh_store_usage_sums sums = {0};
    fix_init(&f);
    f.now = 1000;
    const uint64_t a = fix_active(&f, "red", share_of(GPU_A, "", ""), 300, 10000);
    const uint64_t from_a = f.now;
    const uint64_t b = fix_active(&f, "blue", whole(GPU_B), 0, 0);
    const uint64_t from_b = f.now;
    f.now = 5000;
    CHECK_EQ(fix_end(&f, a), 0);
    const uint64_t to_a = f.now;
    struct bh_store_usage_filter when = {.to_ms = 10000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_TENANT, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 2);
    CHECK_STR(sums.at[0].tenant, "blue");
    CHECK_EQ(sums.at[0].milli_ms, 1000 * (10000 - from_b));
    CHECK_EQ(sums.at[0].mib_ms, CARD_MIB * (10000 - from_b));
    CHECK_STR(sums.at[1].tenant, "red");
    CHECK_EQ(sums.at[1].milli_ms, 300 * (to_a - from_a));
    CHECK_EQ(sums.at[1].leases, 1);
    CHECK_EQ(sums.at[1].mechanism, BH_MECH_GATE);
    /* two halves are the whole */
    const uint64_t whole_red = sums.at[1].mib_ms;
    uint64_t halves = 0;
    for (int i = 0; i < 2; i++) {
        sums.n = 0;
        when = (struct bh_store_usage_filter){
            .tenant = "red", .from_ms = i ? 3333 : 0, .to_ms = i ? 10000 : 3333};
        CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_TENANT, &sums, &f.err), 0);
        CHECK_EQ(sums.n, 1);
        halves += sums.at[0].mib_ms;
    }
    CHECK_EQ(halves, whole_red);
    when = (struct bh_store_usage_filter){.lease = b};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_TENANT, &sums, &f.err), BH_INVALID);
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    CHECK_EQ(all.at[0].to_ms, 0);
    CHECK_EQ(all.at[0].from_ms, from_b);
    CHECK_STR(all.at[0].slice.gpu, GPU_B);
    all.n = 0;
    when = (struct bh_store_usage_filter){.from_ms = to_a};
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    bh_vec_fini(&all);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

/* Who asks for few of many looks at so many at a time, and goes on from there. */
TEST(a_list_looks_at_no_more_than_it_is_told)
{
    struct fix f;
    bh_store_usages rows = {0};
    uint64_t upto = 99;
    fix_init(&f);
    for (int i = 0; i < 4; i++)
        CHECK(fix_active(&f, i % 2 ? "red" : "blue", share_of(GPU_A, "", ""), 100, 1000) != 0);
    struct bh_store_usage_filter when = {0};
    CHECK_EQ(bh_store_usage_upto(f.s, &when, 0, 3, &upto, &f.err), 0);
    CHECK_EQ(upto, 3);
    CHECK_EQ(bh_store_usage_upto(f.s, &when, 2, 3, &upto, &f.err), 0);
    CHECK_EQ(upto, 0);
    when.tenant = "red";
    CHECK_EQ(bh_store_usage_upto(f.s, &when, 0, 1, &when.upto, &f.err), 0);
    CHECK_EQ(when.upto, 2);
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &rows, &f.err), 0);
    CHECK_EQ(rows.n, 1);
    CHECK_EQ(bh_store_usage_upto(f.s, &when, 2, 1, &when.upto, &f.err), 0);
    CHECK_EQ(when.upto, 4);
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &rows, &f.err), 0);
    CHECK_EQ(rows.n, 3);
    bh_vec_fini(&rows);
    fix_fini(&f);
}

static int count_step(void *arg)
{
    ++*(uint64_t *)arg;
    return 0;
}

/* In steps of SQLite's machine, which are the same on every computer. */
static void work_of_red(struct fix *f, uint64_t *ret)
{
    const struct bh_store_usage_filter when = {.tenant = "red", .to_ms = UINT32_MAX};
    bh_store_usage_sums sums = {0};
    bh_store_usages all = {0};
    *ret = 0;
    sqlite3_progress_handler(bh_store_handle(f->s), 1, count_step, ret);
    for (int by = 0; by < BH_USAGE_OFS; by++)
        CHECK_EQ(bh_store_usage_sum(f->s, &f->arena, &when, (enum bh_store_usage_by)by, &sums, &f->err), 0);
    for (int newest = 0; newest < 2; newest++)
        CHECK_EQ(bh_store_usage_list(f->s, &f->arena, &when, &(struct bh_store_page){.newest = newest != 0},
                                     &all, &f->err),
                 0);
    sqlite3_progress_handler(bh_store_handle(f->s), 0, NULL, NULL);
    CHECK_EQ(sums.n, BH_USAGE_OFS);
    CHECK_EQ(all.n, 2);
    bh_vec_fini(&sums);
    bh_vec_fini(&all);
}

TEST(what_a_tenant_asks_of_its_own_costs_what_it_had)
{
    struct fix f;
    fix_init(&f);
    f.now = 1000;
    (void)fix_active(&f, "red", whole(GPU_A), 0, 0);
    uint64_t alone, among;
    work_of_red(&f, &alone);
    for (int i = 0; i < 30; i++)
        (void)fix_active(&f, "blue", share_of(GPU_B, "", ""), 10, 100);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM usage"), 31);
    work_of_red(&f, &among);
    CHECK(alone > 0 && among <= alone + alone / 10);
    fix_fini(&f);
}

TEST(an_instance_counts_as_what_it_is_of_its_card)
{
    struct fix f;
    bh_store_usage_sums sums = {0};
    fix_init(&f);
    f.now = 1000;
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "3g@0", 428, 40000, "MIG-1", 1, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "4g@4", 571, 40000, "MIG-2", 1, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_B, "0g@0", 0, 1, "", 1, &f.err), BH_INVALID);
    const uint64_t a = fix_active(&f, "red", (struct bh_slice_name){GPU_A, BH_SLICE_MIG, "3g@0", ""}, 0, 0);
    const uint64_t from_a = f.now;
    const uint64_t b = fix_active(&f, "blue", share_of(GPU_A, "", "4g@4"), 500, 10000);
    const uint64_t from_b = f.now;
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(number(f.s, "SELECT milli FROM grants ORDER BY id LIMIT 1"), 428);
    f.now = 9000;
    CHECK_EQ(fix_end(&f, a), 0);
    const uint64_t to_a = f.now;
    CHECK_EQ(fix_end(&f, b), 0);
    const uint64_t to_b = f.now;
    const struct bh_store_usage_filter when = {.to_ms = 20000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_TENANT, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 2);
    CHECK_EQ(sums.at[0].milli_ms, 285 * (to_b - from_b)); /* a half of 571 */
    CHECK_EQ(sums.at[1].milli_ms, 428 * (to_a - from_a));
    CHECK_EQ(fix_broken(f.s), 0);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

TEST(a_clock_that_goes_back_ends_an_interval_where_it_began)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    f.now = 10;
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(number(f.s, "SELECT to_ms - from_ms FROM usage"), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(what_two_instances_leave_is_stranded)
{
    static const struct bh_slice_name instance = {
        .gpu = GPU_A, .kind = BH_SLICE_MIG, .key = "mig:3g.40gb@0", .base = ""};
    struct fix f;
    bh_store_usages all = {0};
    bh_store_usage_sums sums = {0};
    bh_store_usage_cards cards = {0};
    fix_init(&f);
    f.now = 1000;
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, instance.key, 428, 40000, "", f.now, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "mig:3g.40gb@4", 428, 39000, "", f.now, &f.err), 0);
    const uint64_t a = fix_active(&f, "red", instance, 0, 0);
    const uint64_t from_a = f.now;
    struct bh_slice_name other = instance;
    other.key = "mig:3g.40gb@4";
    const uint64_t b = fix_active(&f, "blue", other, 0, 0);
    const uint64_t from_b = f.now;
    (void)a;
    const struct bh_store_usage_filter when = {.to_ms = 10000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_GPU, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 2);
    CHECK_STR(sums.at[1].tenant, "red");
    CHECK_STR(sums.at[1].of, GPU_A);
    CHECK_EQ(sums.at[1].milli_ms, 428 * (10000 - from_a));
    CHECK_EQ(sums.at[1].mib_ms, 40000 * (10000 - from_a));
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_EQ(all.at[0].milli, 428);
    CHECK_EQ(all.at[1].lease, b);
    /* both together leave a seventh that nobody can have */
    CHECK_EQ(bh_store_usage_cards_list(f.s, &f.arena, &when, &cards, &f.err), 0);
    CHECK_EQ(cards.n, 2);
    CHECK_STR(cards.at[0].gpu, GPU_A);
    CHECK_EQ(cards.at[0].milli_ms, 428 * (10000 - from_a) + 428 * (10000 - from_b));
    CHECK_EQ(cards.at[0].stranded_milli_ms, 144 * (10000 - from_b));
    CHECK_EQ(cards.at[0].stranded_mib_ms, 0);
    CHECK_EQ(cards.at[1].milli_ms, 0);
    bh_vec_fini(&all);
    bh_vec_fini(&sums);
    bh_vec_fini(&cards);
    fix_fini(&f);
}

TEST(an_attempt_that_had_to_make_room_is_told_apart)
{
    struct fix f;
    bh_store_usages all = {0};
    bh_store_usage_sums sums = {0};
    fix_init(&f);
    f.now = 1000;
    const uint64_t a = fix_active(&f, "red", whole(GPU_A), 0, 0), from = f.now;
    (void)fix_active(&f, "red", whole(GPU_B), 0, 0);
    CHECK_EQ(bh_store_lease_step(f.s, a, BH_LEASE_ACTIVE, BH_LEASE_BY_EVICT, 4000, "for J9", NULL, &f.err),
             0);
    const struct bh_store_usage_filter when = {.to_ms = 5000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, BH_USAGE_OF_USER, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 1);
    CHECK_EQ(sums.at[0].leases, 2);
    CHECK_EQ(sums.at[0].lost_milli_ms, 1000 * (5000 - from)); /* it is charged until nothing of it is left */
    CHECK(sums.at[0].milli_ms > sums.at[0].lost_milli_ms);
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK(all.at[0].lost && !all.at[1].lost);
    bh_vec_fini(&all);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

/* Whatever becomes of leases: what is charged is what was given away at each moment, by whom or where it is added up. */
TEST(random_lives_are_charged_for_what_they_had)
{
    enum { SEEDS = 20, COMMANDS = 400 };
    static uint8_t bytes[COMMANDS * STORM_COMMAND];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fix f;
        struct storm t = {.at_ms = 1};
        uint64_t given = 0, charged = 0, again = 0;
        bh_store_usage_sums sums = {0};
        memset(&f, 0, sizeof(f));
        scratch_init(&f.at);
        fix_open(&f);
        t.s = f.s;
        CHECK_EQ(storm_found(&t), 0);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        CHECK_EQ(bh_store_begin(t.s, &t.err), 0); /* one sync for all of it */
        for (size_t at = 0; at + STORM_COMMAND <= sizeof(bytes); at += STORM_COMMAND) {
            const uint64_t ms = bytes[at] % 50;
            given += storm_given(t.s) * ms;
            t.at_ms += ms;
            t.c = (struct bh_choice){bytes + at, STORM_COMMAND};
            (void)(bytes[at + 1] % 4 ? storm_forward(&t)
                                     : storm_command(&t)); /* what is refused changes nothing */
            bh_arena_fini(&t.arena);
        }
        CHECK_EQ(bh_store_commit(t.s, &t.err), 0);
        bh_store_close(f.s);
        fix_open(&f);
        const struct bh_store_usage_filter whole_time = {.to_ms = t.at_ms};
        CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &whole_time, BH_USAGE_OF_TENANT, &sums, &f.err), 0);
        for (size_t i = 0; i < sums.n; i++)
            charged += sums.at[i].milli_ms;
        CHECK_EQ(charged, given);
        /* two periods that meet are the whole, by user too */
        for (int i = 0; i < 2; i++) {
            const struct bh_store_usage_filter part = {.from_ms = i ? t.at_ms / 3 : 0,
                                                       .to_ms = i ? t.at_ms : t.at_ms / 3};
            sums.n = 0;
            CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &part, BH_USAGE_OF_USER, &sums, &f.err), 0);
            for (size_t k = 0; k < sums.n; k++)
                again += sums.at[k].milli_ms;
        }
        CHECK_EQ(again, given);
        CHECK(given > 0);
        bh_vec_fini(&sums);
        fix_fini(&f);
    }
}

TEST_MAIN
