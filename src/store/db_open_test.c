/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_open.h"

#include "store/db_schema.h"
#include "store/state_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static int try_open(const char *path, struct bh_err *err)
{
    struct bh_store *s = NULL;
    const struct bh_store_options o = {.mode = BH_STORE_WRITE};
    const int rc = bh_store_open(path, &o, &s, err);
    bh_store_close(s);
    return rc;
}

static bool write_file(const char *path, const char *text, size_t n)
{
    FILE *out = fopen(path, "we");
    const bool ok = out && fwrite(text, 1, n, out) == n;
    return out && fclose(out) == 0 && ok;
}

TEST(a_second_daemon_is_refused_until_the_first_is_gone)
{
    struct fix f;
    struct bh_err err = {0};
    char pid[32];
    int status;
    fix_init(&f);
    CHECK_EQ(try_open(f.at.path, &err), BH_BUSY);
    (void)snprintf(pid, sizeof(pid), "process %ld;", (long)getpid());
    CHECK(strstr(err.msg, pid));
    bh_store_close(f.s);
    f.s = NULL;
    CHECK_EQ(try_open(f.at.path, &err), 0);
    /* one that is killed leaves nothing behind that would have to be cleaned up */
    int up[2];
    CHECK_EQ(pipe(up), 0);
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        fix_open(&f);
        if (write(up[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    char c;
    CHECK_EQ(read(up[0], &c, 1), 1);
    CHECK_EQ(try_open(f.at.path, &err), BH_BUSY);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(try_open(f.at.path, &err), 0);
    close(up[0]);
    close(up[1]);
    fix_fini(&f);
}

TEST(a_lock_file_that_is_removed_lets_nobody_else_in_by_its_new_name)
{
    struct scratch t;
    struct bh_err err = {0};
    char lock[600];
    int first = -1, second = -1;
    scratch_init(&t);
    (void)snprintf(lock, sizeof(lock), "%s.lock", t.path);
    CHECK_EQ(bh_store_lock(t.path, &first, &err), 0);
    CHECK_EQ(bh_store_lock(t.path, &second, &err), BH_BUSY);
    bh_store_unlock(first);
    CHECK_EQ(bh_store_lock(t.path, &second, &err), 0);
    bh_store_unlock(second);
    bh_store_unlock(-1);
    scratch_fini(&t);
}

TEST(what_is_not_ours_is_refused_and_left_alone)
{
    struct scratch t;
    struct bh_err err = {0};
    sqlite3 *other = NULL;
    scratch_init(&t);
    CHECK(write_file(t.path, "this is a text and by no means a database, however long it may be", 64));
    CHECK_EQ(try_open(t.path, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "no store of Bulkhead's"));
    scratch_empty(&t);
    CHECK_EQ(sqlite3_open(t.path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "CREATE TABLE theirs(x)", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(other), SQLITE_OK);
    CHECK_EQ(try_open(t.path, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "a database of another program"));
    CHECK_EQ(sqlite3_open(t.path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "SELECT x FROM theirs", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(other), SQLITE_OK);
    scratch_fini(&t);
}

TEST(a_newer_schema_is_refused_with_words)
{
    struct fix f;
    struct bh_err err = {0};
    struct bh_store *r = NULL;
    const struct bh_store_options read = {.mode = BH_STORE_READ};
    fix_init(&f);
    CHECK_EQ(raw(f.s, "PRAGMA user_version=4711"), 0);
    bh_store_close(f.s);
    f.s = NULL;
    CHECK_EQ(try_open(f.at.path, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "written by a newer Bulkhead (schema 4711"));
    CHECK_EQ(bh_store_open(f.at.path, &read, &r, &err), BH_REFUSED);
    fix_fini(&f);
}

TEST(a_damaged_store_is_refused)
{
    struct fix f;
    struct bh_err err = {0};
    struct stat st;
    char junk[4096];
    uint32_t refused = 0, tried = 0;
    fix_init(&f);
    for (int i = 0; i < 50; i++)
        CHECK(fix_job(&f, "red"));
    bh_store_close(f.s);
    f.s = NULL;
    CHECK_EQ(stat(f.at.path, &st), 0);
    /* one page after the other: it is found, or it was a page that holds nothing */
    memset(junk, 0x5a, sizeof(junk));
    for (off_t at = 0; at + 4096 <= st.st_size; at += 4096, tried++) {
        char page[4096];
        const int fd = open(f.at.path, O_RDWR | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_EQ(pread(fd, page, sizeof(page), at), sizeof(page));
        CHECK_EQ(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
        refused += try_open(f.at.path, &err) == BH_REFUSED;
        CHECK_EQ(pwrite(fd, page, sizeof(page), at), sizeof(page));
        close(fd);
    }
    printf("# %u of %u pages\n", refused, tried);
    CHECK(tried > 40);
    CHECK_EQ(refused, tried);
    CHECK_EQ(try_open(f.at.path, &err), 0);
    /* half a copy */
    CHECK_EQ(truncate(f.at.path, st.st_size / 2), 0);
    CHECK_EQ(try_open(f.at.path, &err), BH_REFUSED);
    fix_fini(&f);
}

TEST(every_older_schema_is_brought_up_to_date)
{
    char want[65536] = "";
    for (uint32_t from = bh_migrations_n; from + 1 > 0; from--) {
        struct scratch t;
        struct bh_err err = {0};
        struct bh_store *s = NULL;
        struct bh_store_options o = {.mode = BH_STORE_WRITE, .to_version = from};
        const struct bh_store_options read = {.mode = BH_STORE_READ};
        char got[65536] = "";
        scratch_init(&t);
        if (from) {
            CHECK_EQ(bh_store_open(t.path, &o, &s, &err), 0);
            CHECK_EQ(bh_store_schema_version(s), from);
            /* something that must still be there */
            CHECK_EQ(bh_store_note_set_text(s, "old", "yes", &err), 0);
            bh_store_close(s);
            s = NULL;
            CHECK_EQ(bh_store_open(t.path, &read, &s, &err), from < bh_migrations_n ? BH_REFUSED : 0);
            bh_store_close(s);
            s = NULL;
        }
        o.to_version = 0;
        CHECK_EQ(bh_store_open(t.path, &o, &s, &err), 0);
        CHECK_EQ(bh_store_schema_version(s), bh_migrations_n);
        CHECK_EQ(number(s, "PRAGMA user_version"), bh_migrations_n);
        CHECK_EQ(number(s, "SELECT count(*) FROM notes WHERE key = 'old'"), from != 0);
        CHECK_EQ(fix_broken(s), 0);
        CHECK_EQ(bh_store_verify(s, true, &err), 0);
        /* whichever way it came, it is the same schema */
        sqlite3_stmt *stmt = NULL;
        CHECK_EQ(sqlite3_prepare_v2(bh_store_handle(s),
                                    "SELECT group_concat(sql, ';') FROM"
                                    " (SELECT sql FROM sqlite_schema ORDER BY name)",
                                    -1, &stmt, NULL),
                 SQLITE_OK);
        CHECK_EQ(sqlite3_step(stmt), SQLITE_ROW);
        (void)snprintf(got, sizeof(got), "%s", (const char *)sqlite3_column_text(stmt, 0));
        sqlite3_finalize(stmt);
        CHECK(strlen(got) > 1000 && strlen(got) < sizeof(got) - 1);
        if (!want[0])
            memcpy(want, got, sizeof(got));
        CHECK_STR(got, want);
        bh_store_close(s);
        scratch_fini(&t);
        if (!from)
            break;
    }
}

TEST(a_migration_is_done_as_a_whole_or_not_at_all)
{
    struct scratch t;
    struct bh_err err = {0};
    struct bh_store *s = NULL;
    const struct bh_store_options one = {.mode = BH_STORE_WRITE, .to_version = 1};
    scratch_init(&t);
    CHECK_EQ(bh_store_open(t.path, &one, &s, &err), 0);
    /* it stands in the way of the next one, whatever that makes */
    CHECK_EQ(raw(s, "CREATE TABLE audit_checkpoint(x)"), 0);
    CHECK_EQ(bh_sqlite_migrate(bh_store_handle(s), 1, bh_migrations_n, &err) < 0, 1);
    CHECK(strstr(err.msg, "bringing the store to version 2"));
    CHECK_EQ(number(s, "PRAGMA user_version"), 1);
    CHECK_EQ(number(s, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'audit%'"), 1);
    CHECK(sqlite3_get_autocommit(bh_store_handle(s)));
    CHECK_EQ(raw(s, "DROP TABLE audit_checkpoint"), 0);
    CHECK_EQ(bh_sqlite_migrate(bh_store_handle(s), 1, bh_migrations_n, &err), 0);
    bh_store_close(s);
    scratch_fini(&t);
}

TEST_MAIN
