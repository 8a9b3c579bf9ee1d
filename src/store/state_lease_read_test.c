/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(a_lease_tells_what_it_was_given_and_how_it_came_there)
{
    struct fix f;
    bh_store_grants grants = {0};
    bh_store_lease_steps steps = {0};
    struct bh_lease_facts facts;
    const struct bh_store_page last = {.limit = 2, .newest = true};
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", share_of(GPU_A, "", ""), 250, 9000);
    CHECK_EQ(bh_store_lease_grants(f.s, &f.arena, id, &grants, &f.err), 0);
    CHECK_EQ(grants.n, 1);
    CHECK_STR(grants.at[0].slice.gpu, GPU_A);
    CHECK_STR(grants.at[0].slice.key, "L1");
    CHECK_EQ(grants.at[0].slice.kind, BH_SLICE_SHARE);
    CHECK_EQ(grants.at[0].milli, 250);
    CHECK_EQ(grants.at[0].mib, 9000);
    CHECK_EQ(grants.at[0].proved, 0);
    CHECK_EQ(bh_store_lease_history(f.s, &f.arena, id, NULL, &steps, &f.err), 0);
    CHECK_EQ(steps.n, 3);
    CHECK_STR(steps.at[0].from, "requested");
    CHECK_STR(steps.at[0].to, "admitted");
    CHECK_STR(steps.at[1].cause, "grant");
    CHECK_STR(steps.at[1].why, "room");
    CHECK_STR(steps.at[2].to, "active");
    CHECK_EQ(steps.at[2].at_ms, f.now);
    steps.n = 0;
    CHECK_EQ(bh_store_lease_history(f.s, &f.arena, id, &last, &steps, &f.err), 0);
    CHECK_EQ(steps.n, 2);
    CHECK_STR(steps.at[0].to, "active");
    CHECK_EQ(bh_store_lease_facts(f.s, id, &facts, &f.err), 0);
    CHECK_EQ(facts.state, BH_LEASE_ACTIVE);
    CHECK_EQ(facts.granted, 1);
    CHECK_EQ(facts.owned, 1);
    CHECK_EQ(facts.usage_open, 1);
    CHECK_EQ(bh_lease_invariant(&facts, &f.err), 0);
    CHECK_EQ(bh_store_lease_facts(f.s, 99, &facts, &f.err), BH_NOT_FOUND);
    bh_vec_fini(&grants);
    bh_vec_fini(&steps);
    fix_fini(&f);
}

TEST(lists_are_filtered_and_paged)
{
    static const char *const tenants[] = {NULL, "red", "blue"};
    struct fix f;
    fix_init(&f);
    for (uint32_t i = 0; i < 30; i++) {
        const uint64_t id = fix_lease(&f, i % 3 ? "red" : "blue");
        if (i % 4 == 1)
            CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_REFUSE), 0);
        if (i % 4 == 2)
            CHECK_EQ(fix_step(&f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT), 0);
    }
    bh_store_leases every = {0};
    CHECK_EQ(bh_store_leases_list(f.s, &f.arena, NULL, NULL, &every, &f.err), 0);
    CHECK_EQ(every.n, 30);
    const uint32_t masks[] = {0, bh_store_lease_live(), 1u << BH_LEASE_REFUSED, 1u << BH_LEASE_ADMITTED};
    for (uint32_t k = 0; k < 3 * 4 * 2 * 2; k++) {
        const struct bh_store_lease_filter filter = {
            .tenant = tenants[k % 3], .states = masks[k / 3 % 4], .job = k / 12 % 2 ? 7 : 0};
        struct bh_store_page page = {.limit = 4, .newest = k / 24};
        uint64_t count = 0, want = 0, seen = 0;
        for (size_t i = 0; i < every.n; i++) {
            const struct bh_store_lease *l = &every.at[i];
            want += (!filter.tenant || strcmp(filter.tenant, l->tenant) == 0) &&
                    (!filter.states || filter.states >> l->state & 1) &&
                    (!filter.job || filter.job == l->job);
        }
        CHECK_EQ(bh_store_leases_count(f.s, &filter, &count, &f.err), 0);
        CHECK_EQ(count, want);
        for (bool more = true; more;) {
            bh_store_leases part = {0};
            CHECK_EQ(bh_store_leases_list(f.s, &f.arena, &filter, &page, &part, &f.err), 0);
            for (size_t i = 0; i < part.n; i++) {
                CHECK(!page.after || (page.newest ? part.at[i].id < page.after : part.at[i].id > page.after));
                page.after = part.at[i].id;
            }
            seen += part.n;
            more = part.n == 4;
            bh_vec_fini(&part);
        }
        CHECK_EQ(seen, want);
    }
    bh_vec_fini(&every);
    fix_fini(&f);
}

/* An index that is not used is found out by nobody until there are ten thousand rows. */
TEST(live_lists_use_their_indexes)
{
    static const struct {
        const char *query, *index;
    } plans[] = {
        {"SELECT id FROM leases WHERE id > 1 AND state NOT IN ('refused', 'released') ORDER BY id",
         "leases_live"},
        {"SELECT id FROM leases WHERE tenant = 'a' AND id > 1 AND state NOT IN ('refused', 'released') ORDER BY id",
         "leases_live_of_tenant"},
        {"SELECT * FROM jobs WHERE id > 1 AND state <> 'ended' ORDER BY id", "jobs_live"},
        {"SELECT * FROM jobs WHERE tenant = 'a' AND id > 1 AND state <> 'ended' ORDER BY id",
         "jobs_live_of_tenant"},
        {"SELECT * FROM usage WHERE lease = 1 AND to_ms IS NULL", "usage_open_of_lease"},
        {"SELECT * FROM slices WHERE lease = 1", "slices_of_lease"},
    };
    struct fix f;
    fix_init(&f);
    for (size_t i = 0; i < BH_COUNT_OF(plans); i++) {
        char text[300];
        sqlite3_stmt *stmt = NULL;
        (void)snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", plans[i].query);
        CHECK_EQ(sqlite3_prepare_v2(bh_store_handle(f.s), text, -1, &stmt, NULL), SQLITE_OK);
        CHECK_EQ(sqlite3_step(stmt), SQLITE_ROW);
        const char *said = (const char *)sqlite3_column_text(stmt, 3);
        if (!strstr(said, plans[i].index))
            printf("# %s: %s\n", plans[i].query, said);
        CHECK(strstr(said, plans[i].index));
        sqlite3_finalize(stmt);
    }
    fix_fini(&f);
}

TEST_MAIN
