/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include "store/state_fixture.h"

static int64_t jobs_in(const char *path)
{
    const struct bh_store_options o = {.mode = BH_STORE_READ, .full_check = true};
    struct bh_store *s = NULL;
    struct bh_err err = {0};
    if (bh_store_open(path, &o, &s, &err) < 0) {
        printf("# %s\n", err.msg);
        return -1;
    }
    const int64_t n = fix_broken(s) ? -2 : number(s, "SELECT count(*) FROM jobs");
    bh_store_close(s);
    return n;
}

TEST(a_backup_is_made_while_the_store_is_used)
{
    struct fix f;
    struct bh_backup *b = NULL;
    struct stat st;
    char path[512], name[600];
    uint32_t steps = 0, percent = 0;
    int rc;
    fix_init(&f);
    for (int i = 0; i < 300; i++)
        CHECK(fix_job(&f, "red"));
    (void)scratch_file(&f.at, "copy.db", path);
    CHECK_EQ(bh_backup_new(f.s, path, &b, &f.err), 0);
    while ((rc = bh_backup_step(b, 5, &f.err)) == 0) {
        CHECK(steps++ < 100000);
        CHECK(access(path, F_OK) < 0);
        if (steps % 3 == 0 && steps < 60)
            CHECK(fix_job(&f, "blue"));
        if (steps == 5) {
            /* in the middle of a transaction it waits */
            CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
            CHECK_EQ(bh_store_note_set_text(f.s, "x", "y", &f.err), 0);
            CHECK_EQ(bh_backup_step(b, 5, &f.err), 0);
            CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
        }
        percent = bh_backup_percent(b);
    }
    CHECK_EQ(rc, 1);
    CHECK(steps > 5 && percent > 0);
    CHECK_EQ(bh_backup_step(b, 5, &f.err), BH_CONFLICT);
    bh_backup_free(b);
    CHECK_EQ(jobs_in(path), number(f.s, "SELECT count(*) FROM jobs"));
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    /* one file, nothing beside it */
    (void)snprintf(name, sizeof(name), "%s-wal", path);
    CHECK(access(name, F_OK) < 0);
    (void)snprintf(name, sizeof(name), "%s.part", path);
    CHECK(access(name, F_OK) < 0);
    CHECK_EQ(bh_store_backup(f.s, path, &f.err), BH_CONFLICT);
    CHECK_EQ(jobs_in(f.at.path), number(f.s, "SELECT count(*) FROM jobs"));
    fix_fini(&f);
}

TEST(a_backup_that_is_given_up_leaves_nothing)
{
    struct fix f;
    struct bh_backup *b = NULL;
    char path[512], part[600];
    fix_init(&f);
    (void)scratch_file(&f.at, "copy.db", path);
    (void)snprintf(part, sizeof(part), "%s.part", path);
    CHECK_EQ(bh_backup_new(f.s, path, &b, &f.err), 0);
    CHECK_EQ(bh_backup_step(b, 1, &f.err), 0);
    CHECK_EQ(access(part, F_OK), 0);
    bh_backup_free(b);
    CHECK(access(part, F_OK) < 0 && access(path, F_OK) < 0);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_backup(f.s, path, &f.err), BH_CONFLICT);
    bh_store_rollback(f.s);
    CHECK_EQ(bh_backup_new(f.s, "/nowhere/at/all", &b, &f.err), BH_SYSTEM);
    bh_backup_free(NULL);
    fix_fini(&f);
}

TEST(a_store_comes_back_and_gives_no_id_again)
{
    struct fix f;
    char copy[512], aside[600];
    fix_init(&f);
    const uint64_t first = fix_active(&f, "red", whole(GPU_A), 0, 0);
    (void)scratch_file(&f.at, "copy.db", copy);
    CHECK_EQ(bh_store_backup(f.s, copy, &f.err), 0);
    uint64_t last = first, job = 0;
    for (int i = 0; i < 5; i++)
        last = fix_lease(&f, "blue");
    job = fix_job(&f, "blue");
    /* while a daemon has it, it stays as it is */
    CHECK_EQ(bh_store_restore(copy, f.at.path, true, &f.err), BH_BUSY);
    bh_store_close(f.s);
    CHECK_EQ(bh_store_restore(copy, f.at.path, false, &f.err), BH_CONFLICT);
    CHECK_EQ(jobs_in(f.at.path), 7);
    CHECK_EQ(bh_store_restore(copy, f.at.path, true, &f.err), 0);
    CHECK_EQ(jobs_in(f.at.path), 1);
    (void)snprintf(aside, sizeof(aside), "%s.replaced", f.at.path);
    CHECK_EQ(jobs_in(aside), 7);
    fix_open(&f);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM leases WHERE state = 'active'"), 1);
    CHECK_EQ(fix_job(&f, "red"), job + 1);
    CHECK_EQ(fix_lease(&f, "red"), last + 1);
    bh_store_close(f.s);
    /* into an empty folder, nobody knows what was given: far ahead */
    CHECK_EQ(unlink(f.at.path), 0);
    CHECK_EQ(bh_store_restore(copy, f.at.path, false, &f.err), 0);
    fix_open(&f);
    CHECK(fix_job(&f, "red") > 1000000);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

/* Copies a file, for what a killed daemon leaves. */
static bool copy_file(const char *from, const char *to)
{
    char buf[65536];
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    bool ok = in && out;
    for (size_t n; ok && (n = fread(buf, 1, sizeof(buf), in)) > 0;)
        ok = fwrite(buf, 1, n, out) == n;
    if (in)
        (void)fclose(in);
    return out && fclose(out) == 0 && ok;
}

TEST(a_store_that_was_not_closed_is_put_aside_whole)
{
    struct fix f;
    char copy[512], aside[600], log[640], killed[512], killed_log[600];
    fix_init(&f);
    (void)scratch_file(&f.at, "copy.db", copy);
    (void)scratch_file(&f.at, "killed.db", killed);
    (void)snprintf(killed_log, sizeof(killed_log), "%s-wal", killed);
    (void)snprintf(log, sizeof(log), "%s-wal", f.at.path);
    CHECK_EQ(bh_store_backup(f.s, copy, &f.err), 0);
    CHECK(fix_job(&f, "red"));
    /* what it wrote is in the log and nowhere else */
    CHECK(copy_file(f.at.path, killed) && copy_file(log, killed_log));
    CHECK_EQ(bh_store_restore(copy, killed, true, &f.err), 0);
    CHECK_EQ(jobs_in(killed), 0);
    (void)snprintf(aside, sizeof(aside), "%s.replaced", killed);
    CHECK_EQ(jobs_in(aside), 1);
    /* one that is damaged goes aside with its log, which must not meet the new file */
    CHECK(copy_file(log, killed_log) && copy_file("/proc/self/exe", killed));
    CHECK_EQ(bh_store_restore(copy, killed, true, &f.err), 0);
    CHECK(access(killed_log, F_OK) < 0);
    CHECK_EQ(jobs_in(killed), 0);
    (void)snprintf(log, sizeof(log), "%s-wal", aside);
    CHECK_EQ(access(log, F_OK), 0);
    fix_fini(&f);
}

TEST(a_damaged_or_foreign_backup_is_refused_and_nothing_changes)
{
    struct fix f;
    char copy[512], bad[512];
    struct stat st;
    sqlite3 *other = NULL;
    fix_init(&f);
    CHECK(fix_active(&f, "red", whole(GPU_A), 0, 0));
    (void)scratch_file(&f.at, "copy.db", copy);
    (void)scratch_file(&f.at, "bad.db", bad);
    CHECK_EQ(bh_store_backup(f.s, copy, &f.err), 0);
    CHECK(fix_job(&f, "red"));
    bh_store_close(f.s);
    f.s = NULL;
    CHECK_EQ(bh_store_restore(bad, f.at.path, true, &f.err), BH_NOT_FOUND);
    CHECK_EQ(sqlite3_open(bad, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "CREATE TABLE theirs(x)", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(other), SQLITE_OK);
    CHECK_EQ(bh_store_restore(bad, f.at.path, true, &f.err), BH_REFUSED);
    /* sound pages, and books that were cooked */
    CHECK_EQ(sqlite3_open(copy, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "DROP TRIGGER usage_closes_once; UPDATE usage SET to_ms = 99999999", NULL,
                          NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_close(other), SQLITE_OK);
    CHECK_EQ(bh_store_restore(copy, f.at.path, true, &f.err), BH_REFUSED);
    CHECK(strstr(f.err.msg, "do not add up"));
    CHECK_EQ(stat(copy, &st), 0);
    CHECK_EQ(truncate(copy, st.st_size - 4096 * 3), 0);
    CHECK_EQ(bh_store_restore(copy, f.at.path, true, &f.err), BH_REFUSED);
    CHECK_EQ(jobs_in(f.at.path), 2);
    fix_fini(&f);
}

TEST(a_backup_of_an_older_schema_is_brought_up_to_date)
{
    struct scratch t;
    struct bh_err err = {0};
    struct bh_store *s = NULL;
    const struct bh_store_options one = {.mode = BH_STORE_WRITE, .to_version = 1};
    char copy[512], to[512];
    scratch_init(&t);
    CHECK_EQ(bh_store_open(t.path, &one, &s, &err), 0);
    (void)scratch_file(&t, "copy.db", copy);
    (void)scratch_file(&t, "new.db", to);
    CHECK_EQ(bh_store_backup(s, copy, &err), 0);
    bh_store_close(s);
    CHECK_EQ(bh_store_restore(copy, to, false, &err), 0);
    CHECK_EQ(jobs_in(to), 0);
    scratch_fini(&t);
}

TEST_MAIN
