/* SPDX-License-Identifier: Apache-2.0 */
/* Each thing that can be wrong is planted in a store whose guards were taken away, and must be found. */
#include "store/state_fixture.h"

/* Two active leases (L1 whole GPU_A, L2 a share of GPU_B), one released (L3, an instance of GPU_B). */
static const struct {
    const char *plant, *words;
} wrong[] = {
    {"UPDATE slices SET state = 'owned', lease = 2, grant_id = 2 WHERE gpu = 'GPU-bbbb' AND kind = 'whole'",
     "both have card GPU-bbbb"},
    {"UPDATE slices SET lease = NULL, grant_id = NULL WHERE lease = 1", "is owned and names nobody"},
    {"UPDATE slices SET state = 'free' WHERE lease = 1", "is free and names lease L1"},
    {"UPDATE slices SET state = 'owned', lease = 1, grant_id = 1 WHERE kind = 'mig'", "a share beside it"},
    {"INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, since_ms)"
     " VALUES ('GPU-aaaa', 'whole', 'x', '', 1000, 1, '', 'free', 1)",
     "has 2 whole slices"},
    {"UPDATE slices SET milli = 1001 WHERE lease = 2", "come to 1001 thousandths"},
    {"UPDATE slices SET mib = 80001 WHERE lease = 2", "80001 MiB"},
    {"UPDATE slices SET lease = 2 WHERE lease = 1", "is not what lease L2 was given"},
    {"UPDATE slices SET state = 'quarantined' WHERE lease = 1", "without a reason"},
    {"DELETE FROM slices WHERE kind = 'whole' AND gpu = 'GPU-bbbb'", "has no slice for all of it"},
    {"UPDATE job_counts SET n = n + 2", "2 too many are counted"},
    {"UPDATE job_loads SET waiting = waiting + 1", "is off by 1 jobs, 0 bytes"},
    {"UPDATE job_loads SET bytes = bytes + 7", "is off by 0 jobs, 7 bytes"},
    {"INSERT INTO job_remains(job, tenant, ended_ms) VALUES (1, 'red', 1)", "nobody knows what is left"},
    {"INSERT INTO tenant_remains(tenant, bytes) VALUES ('red', 9)", "is off by 9 bytes"},
    {"UPDATE lease_counts SET n = 0 WHERE state = 'active'", "too many are counted"},
    {"UPDATE tenant_held SET mib = mib + 3", "has is off by 0 thousandths, 3 MiB"},
    {"UPDATE scrubs SET verdict = 'found'", "by a verdict that is found"},
    {"UPDATE grants SET proved = 1 WHERE lease = 2", "one verdict frees 2"},
    {"DELETE FROM slices WHERE lease = 2", "names it no more and was never proved clean"},
    {"UPDATE usage SET to_ms = 1 WHERE lease = 3", "ends before it begins"},
    {"INSERT INTO usage(lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms)"
     " SELECT lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms FROM usage WHERE lease = 1",
     "overlap"},
    {"UPDATE usage SET to_ms = 2000000 WHERE lease = 1", "nobody pays"},
    {"UPDATE usage SET to_ms = NULL WHERE lease = 3", "still pays"},
    {"UPDATE usage SET tenant = 'other' WHERE lease = 1", "is not what lease L1 was given"},
    {"UPDATE leases SET job = 1 WHERE id = 2", "job J1 has 2 leases at once"},
    {"UPDATE leases SET tenant = 'other' WHERE id = 1", "is for job J1 of red"},
    {"UPDATE leases SET state = 'draining' WHERE id = 1", "its history ends with active"},
    {"DELETE FROM lease_history WHERE id = 2", "jumps from"},
    {"UPDATE leases SET state = 'released' WHERE id = 1", "a lease that is 'released' has 1 slices in use"},
    {"UPDATE leases SET state = 'asleep' WHERE id = 1", "it is in no state that there is"},
    {"INSERT INTO policies(text, sha256, who, why, at_ms, active) VALUES ('x', zeroblob(32), '', '', 1, 1),"
     " ('y', zeroblob(32), '', '', 1, 1)",
     "2 policies are in force"},
};

/* Whoever opens the file with another tool can do that. */
static int take_guards_away(struct bh_store *s)
{
    sqlite3_stmt *stmt = NULL;
    char texts[96][160];
    size_t n = 0;
    if (sqlite3_prepare_v2(bh_store_handle(s),
                           "SELECT 'DROP ' || type || ' ' || name FROM sqlite_schema WHERE type = 'trigger'"
                           " OR (type = 'index' AND sql LIKE '%UNIQUE%')",
                           -1, &stmt, NULL) != SQLITE_OK)
        return -1;
    while (sqlite3_step(stmt) == SQLITE_ROW && n < BH_COUNT_OF(texts))
        (void)snprintf(texts[n++], sizeof(texts[0]), "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    for (size_t i = 0; i < n; i++) {
        if (raw(s, texts[i]) != 0)
            return -1;
    }
    return raw(s, "PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON");
}

TEST(every_planted_fault_is_found)
{
    struct fix f;
    fix_init(&f);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_B, "3g@0", 1000, 40000, "", 1, &f.err), 0);
    CHECK_EQ(fix_active(&f, "red", whole(GPU_A), 0, 0), 1);
    const uint64_t second = fix_lease(&f, "red");
    CHECK_EQ(fix_active(&f, "blue", instance(GPU_B, "3g@0"), 0, 0), 3);
    CHECK_EQ(fix_end(&f, 3), 0);
    CHECK_EQ(fix_verdict(&f, 3, instance(GPU_B, "3g@0"), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(&f, 3, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    CHECK_EQ(fix_grant(&f, second, share_of(GPU_B, "", ""), 300, 10000), 0);
    CHECK_EQ(fix_step(&f, second, BH_LEASE_PREPARING, BH_LEASE_BY_READY), 0);
    CHECK_EQ(take_guards_away(f.s), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        struct bh_buf words;
        uint32_t broken = 0;
        bh_buf_init(&words, 1 << 16);
        CHECK_EQ(raw(f.s, "BEGIN"), 0);
        CHECK_EQ(raw(f.s, wrong[i].plant), 0);
        CHECK_EQ(bh_store_check(f.s, &words, &broken, &f.err), 0);
        if (!broken || !strstr(bh_buf_text(&words), wrong[i].words))
            printf("# '%s' gave %u: %s\n", wrong[i].plant, broken, bh_buf_text(&words));
        CHECK(broken > 0);
        CHECK(strstr(bh_buf_text(&words), wrong[i].words));
        CHECK_EQ(raw(f.s, "ROLLBACK"), 0);
        bh_buf_fini(&words);
    }
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST_MAIN
