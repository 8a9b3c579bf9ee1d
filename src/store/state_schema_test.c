/* SPDX-License-Identifier: Apache-2.0 */
/* What must never be is refused by the schema itself, whoever writes; and its words are core/lease's. */
#include "store/state_fixture.h"

/* Whatever core/lease answers for a lease in this state with such slices. */
static bool core_allows(enum bh_lease_state state, uint32_t owned, uint32_t dirty, uint32_t quarantined)
{
    const uint32_t n = owned + dirty + quarantined;
    const struct bh_lease_facts f = {.state = state,
                                     .granted = n,
                                     .owned = owned,
                                     .dirty = dirty,
                                     .quarantined = quarantined,
                                     .usage_open = bh_lease_is_charged(state) ? owned + dirty : 0};
    return bh_lease_invariant(&f, NULL) == 0;
}

static int64_t flag(struct bh_store *s, const char *column, enum bh_lease_state state)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "SELECT %s FROM lease_states WHERE word = '%s'", column,
                   bh_lease_state_str(state));
    return number(s, text);
}

TEST(the_tables_of_words_are_those_of_core)
{
    struct fix f;
    fix_init(&f);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM lease_states"), BH_LEASE_STATES);
    for (unsigned i = 0; i < BH_LEASE_STATES; i++) {
        const enum bh_lease_state a = (enum bh_lease_state)i;
        /* beside one of another kind, since some must have one */
        const bool none = core_allows(a, 0, 0, 0), owned = core_allows(a, 1, 0, 0),
                   dirty = core_allows(a, 0, 1, 0), away = core_allows(a, 0, 0, 1);
        printf("# %s\n", bh_lease_state_str(a));
        CHECK_EQ(flag(f.s, "owned", a), owned);
        CHECK_EQ(flag(f.s, "dirty", a), dirty);
        CHECK_EQ(flag(f.s, "quarantined", a), away);
        CHECK_EQ(flag(f.s, "some", a), !none);
        CHECK_EQ(flag(f.s, "charged", a), bh_lease_is_charged(a));
        CHECK_EQ(flag(f.s, "over", a), bh_lease_is_over(a));
        for (unsigned k = 0; k < BH_LEASE_STATES; k++) {
            const enum bh_lease_state b = (enum bh_lease_state)k;
            char text[160];
            (void)snprintf(text, sizeof(text),
                           "SELECT count(*) FROM lease_moves WHERE old = '%s' AND new = '%s'",
                           bh_lease_state_str(a), bh_lease_state_str(b));
            CHECK_EQ(number(f.s, text), bh_lease_may_become(a, b));
        }
    }
    fix_fini(&f);
}

/* Each is tried on a store with: L1 active, whole GPU_A; L2 active, share of GPU_B; L3 scrubbing, left a share of GPU_B. */
static const char *const forbidden[] = {
    /* a second owner, or one for what is not free */
    "UPDATE slices SET lease = 2 WHERE gpu = 'GPU-aaaa' AND kind = 'whole'",
    "UPDATE slices SET lease = 2, grant_id = 2 WHERE gpu = 'GPU-aaaa' AND kind = 'whole'",
    "UPDATE slices SET state = 'owned', lease = 2, grant_id = 2 WHERE gpu = 'GPU-bbbb' AND kind = 'whole'",
    "UPDATE slices SET state = 'owned', lease = 1, grant_id = 1 WHERE gpu = 'GPU-bbbb' AND kind = 'whole'",
    "UPDATE slices SET state = 'owned' WHERE state = 'dirty'",
    "UPDATE slices SET owner = 1 WHERE state = 'dirty'",
    "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, since_ms)"
    " VALUES ('GPU-aaaa', 'whole', '', '', 1000, 1, '', 'free', 1)",
    "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, lease, grant_id, since_ms)"
    " VALUES ('GPU-aaaa', 'share', 'x', '', 100, 1, '', 'owned', 2, 2, 1)",
    "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, lease, grant_id, since_ms)"
    " VALUES ('GPU-bbbb', 'share', 'x', '', 100, 1, '', 'owned', 2, 2, 1)",
    /* free, and nobody looked */
    "UPDATE slices SET state = 'free', lease = NULL, grant_id = NULL WHERE state = 'dirty'",
    "UPDATE slices SET state = 'free', lease = NULL, grant_id = NULL WHERE state = 'owned'",
    "UPDATE slices SET lease = NULL, grant_id = NULL WHERE state = 'dirty'",
    "UPDATE slices SET dirtied = 99 WHERE state = 'dirty'",
    "UPDATE slices SET dirtied = -1 WHERE state = 'dirty'",
    "UPDATE slices SET state = 'dirty', dirtied = -1 WHERE state = 'owned'",
    "DELETE FROM slices WHERE state = 'dirty'",
    "DELETE FROM slices WHERE state = 'owned'",
    "UPDATE grants SET proved = 1",
    "INSERT INTO scrubs(lease, gpu, kind, key, base, verdict, method, probed_bytes, total_bytes, words, at_ms)"
    " VALUES (1, 'GPU-aaaa', 'whole', '', '', 'clean', '', 1, 1, '', 1)",
    "INSERT INTO scrubs(lease, gpu, kind, key, base, verdict, method, probed_bytes, total_bytes, words, at_ms)"
    " VALUES (2, 'GPU-bbbb', 'share', 'L3', '', 'clean', '', 1, 1, '', 1)",
    "INSERT INTO scrubs(lease, gpu, kind, key, base, verdict, method, probed_bytes, total_bytes, words, at_ms)"
    " VALUES (3, 'GPU-bbbb', 'share', 'L3', '', 'clean', '', 2, 1, '', 1)",
    "UPDATE leases SET state = 'released' WHERE id = 3",
    "UPDATE leases SET state = 'released' WHERE id = 1",
    "UPDATE leases SET state = 'quarantined' WHERE id = 3",
    /* more than there is */
    "UPDATE grants SET milli = 900 WHERE lease = 2; UPDATE slices SET milli = 900 WHERE lease = 2",
    "UPDATE grants SET mib = 70000 WHERE lease = 2; UPDATE slices SET mib = 70000 WHERE lease = 2",
    "UPDATE slices SET milli = 600 WHERE lease = 2",
    "UPDATE slices SET base = 'x' WHERE lease = 2",
    "UPDATE slices SET milli = 1 WHERE lease = 1",
    "UPDATE cards SET memory_mib = 10 WHERE uuid = 'GPU-bbbb'",
    "DELETE FROM cards WHERE uuid = 'GPU-aaaa'",
    "INSERT INTO grants(lease, gpu, kind, key, base, milli, mib) VALUES (1, 'GPU-bbbb', 'whole', '', '', 1000, 1)",
    "DELETE FROM grants",
    "UPDATE grants SET gpu = 'GPU-bbbb' WHERE lease = 1",
    "UPDATE grants SET milli = 1 WHERE lease = 1",
    /* ways that do not exist */
    "UPDATE leases SET state = 'active' WHERE id = 3",
    "UPDATE leases SET state = 'nowhere' WHERE id = 1",
    "UPDATE leases SET state = 'scrubbing' WHERE id = 1",
    "UPDATE leases SET state = 'suspended' WHERE id = 1",
    "UPDATE leases SET tenant = 'blue' WHERE id = 1",
    "UPDATE leases SET paused = 1 WHERE id = 3",
    "DELETE FROM leases WHERE id = 3",
    "UPDATE jobs SET state = 'ended' WHERE id = 1",
    "UPDATE jobs SET tenant = 'blue' WHERE id = 1",
    "DELETE FROM jobs",
    /* the past */
    "UPDATE lease_history SET why = ''",
    "DELETE FROM lease_history",
    "UPDATE scrubs SET verdict = 'clean'",
    "DELETE FROM scrubs",
    "DELETE FROM usage",
    "UPDATE usage SET to_ms = 99 WHERE to_ms IS NOT NULL",
    "UPDATE usage SET milli = 1 WHERE to_ms IS NULL",
    "UPDATE usage SET to_ms = 0 WHERE to_ms IS NULL",
    "INSERT INTO usage(lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms)"
    " SELECT lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms FROM usage WHERE to_ms IS NULL",
    "UPDATE policies SET text = 'other'",
    "DELETE FROM policies",
    "INSERT INTO policies(text, sha256, who, why, at_ms, active) VALUES ('x', zeroblob(32), '', '', 1, 1)",
    "INSERT INTO tokens(sha256, subject, role, tenant, created_ms, expires_ms) VALUES (zeroblob(31), 'a', 'viewer', '', 1, 1)",
    "INSERT INTO tokens(sha256, subject, role, tenant, created_ms, expires_ms) VALUES (zeroblob(32), 'a', 'god', '', 1, 1)",
};

static void furnish(struct fix *f)
{
    fix_init(f);
    const uint64_t a = fix_active(f, "red", whole(GPU_A), 0, 0);
    const uint64_t b = fix_active(f, "green", share_of(GPU_B, "", ""), 500, 20000);
    const uint64_t c = fix_active(f, "blue", share_of(GPU_B, "", ""), 300, 20000);
    if (!a || !b || !c || fix_end(f, c) < 0 ||
        fix_verdict(f, c, share_of(GPU_B, "L3", ""), BH_SCRUB_FOUND) < 0 ||
        raw(f->s, "INSERT INTO policies(text, sha256, who, why, at_ms, active)"
                  " VALUES ('x', zeroblob(32), '', '', 1, 1)") != 0)
        abort();
}

TEST(what_must_never_be_is_refused_whoever_writes)
{
    struct fix f;
    furnish(&f);
    CHECK_EQ(fix_broken(f.s), 0);
    for (size_t i = 0; i < BH_COUNT_OF(forbidden); i++) {
        CHECK_EQ(raw(f.s, "BEGIN"), 0);
        const int code = raw(f.s, forbidden[i]);
        const int64_t changed = sqlite3_changes(bh_store_handle(f.s));
        if (code == 0)
            printf("# let through, %" PRId64 " rows: %s\n", changed, forbidden[i]);
        CHECK(code != 0);
        CHECK_EQ(raw(f.s, "ROLLBACK"), 0);
    }
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(instances_and_shares_keep_out_of_each_others_way)
{
    struct fix f;
    fix_init(&f);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "3g@0", 1000, 40000, "MIG-1", 1, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "3g@4", 1000, 40000, "MIG-2", 1, &f.err), 0);
    /* a share of an instance: the instance itself is nobody's then, the other one is */
    CHECK(fix_active(&f, "red", share_of(GPU_A, "", "3g@0"), 600, 30000));
    CHECK_EQ(fix_active(&f, "green", instance(GPU_A, "3g@0"), 0, 0), 0);
    CHECK(strstr(f.err.msg, "shares of it"));
    CHECK(fix_active(&f, "green", instance(GPU_A, "3g@4"), 0, 0));
    CHECK_EQ(fix_active(&f, "blue", share_of(GPU_A, "", "3g@4"), 100, 100), 0);
    CHECK(strstr(f.err.msg, "an instance of the card"));
    CHECK_EQ(fix_active(&f, "blue", share_of(GPU_A, "", "7g@0"), 100, 100), 0);
    CHECK_EQ(fix_active(&f, "blue", share_of(GPU_A, "", ""), 100, 100), 0);
    CHECK_EQ(fix_active(&f, "blue", whole(GPU_A), 0, 0), 0);
    CHECK(strstr(f.err.msg, "a part of the card"));
    /* within the instance, up to what it has */
    CHECK_EQ(fix_active(&f, "blue", share_of(GPU_A, "", "3g@0"), 100, 10001), 0);
    CHECK(strstr(f.err.msg, "more than there is"));
    CHECK(fix_active(&f, "blue", share_of(GPU_A, "", "3g@0"), 400, 10000));
    CHECK_EQ(bh_store_slice_remove(f.s, GPU_A, "3g@0", &f.err), BH_CONFLICT);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST(a_verdict_from_before_does_not_count)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_FOUND), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_DIRTY), 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_QUARANTINED, BH_LEASE_BY_RETRY), 0);
    /* a clean one is written down, and a later one found something: the later one counts */
    CHECK_EQ(raw(f.s,
                 "INSERT INTO scrubs(lease, gpu, kind, key, base, verdict, method, probed_bytes, total_bytes,"
                 " words, at_ms) VALUES (1, 'GPU-aaaa', 'whole', '', '', 'clean', '', 1, 1, '', 1)"),
             0);
    CHECK_EQ(fix_verdict(&f, id, whole(GPU_A), BH_SCRUB_FOUND), 0);
    CHECK(raw(f.s,
              "UPDATE grants SET proved = 2; UPDATE slices SET state = 'free', lease = NULL, grant_id = NULL"
              " WHERE state = 'dirty'") != 0);
    CHECK_EQ(fix_step(&f, id, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), BH_CONFLICT);
    fix_fini(&f);
}

TEST_MAIN
