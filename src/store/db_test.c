/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

static int open_mode(const struct fix *f, enum bh_store_mode mode, struct bh_store **ret, struct bh_err *err)
{
    const struct bh_store_options o = {.mode = mode, .busy_ms = 100};
    return bh_store_open(f->at.path, &o, ret, err);
}

TEST(a_new_store_is_private_durable_and_of_the_newest_schema)
{
    struct fix f;
    struct stat st;
    fix_init(&f);
    CHECK_EQ(stat(f.at.path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(bh_store_schema_version(f.s), bh_store_schema_newest());
    CHECK_STR(bh_store_path(f.s), f.at.path);
    CHECK_EQ(number(f.s, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    CHECK_EQ(number(f.s, "PRAGMA synchronous"), 2);
    CHECK_EQ(number(f.s, "PRAGMA foreign_keys"), 1);
    CHECK_EQ(number(f.s, "PRAGMA application_id"), 0x426c6b68);
    /* every table is STRICT; sqlite_sequence and its like are not ours */
    CHECK_EQ(number(f.s, "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
                         " AND strict = 0 AND name NOT LIKE 'sqlite_%'"),
             0);
    CHECK_EQ(bh_store_verify(f.s, true, &f.err), 0);
    CHECK_EQ(bh_store_checkpoint(f.s, &f.err), 0);
    fix_fini(&f);
}

/* A second one to write cannot be had: as another program's, past the lock. */
static void write_beside(const struct fix *f, const char *text)
{
    sqlite3 *db = NULL;
    CHECK_EQ(sqlite3_open(f->at.path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(what_is_held_is_one_moment)
{
    struct fix f;
    fix_init(&f);
    bh_store_hold(f.s);
    bh_store_hold(f.s);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 0);
    write_beside(&f, "INSERT INTO notes(key, value) VALUES ('a', x'31')");
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 0);
    bh_store_release(f.s);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 1);
    bh_store_release(f.s);
    /* Who writes writes to what is there now, and may do so at any time. */
    bh_store_hold(f.s);
    write_beside(&f, "INSERT INTO notes(key, value) VALUES ('b', x'31')");
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 2);
    CHECK_EQ(bh_store_note_set_text(f.s, "c", "1", &f.err), 0);
    bh_store_hold(f.s);
    bh_store_release(f.s);
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 3);
    bh_store_hold(f.s); /* and whoever closes it needs no release */
    fix_fini(&f);
}

/* Nobody who reads is waited for, and nothing is lost that a transaction or somebody's moment still needs. */
TEST(the_log_is_begun_anew_when_nobody_reads)
{
    struct fix f;
    sqlite3 *reader = NULL;
    fix_init(&f);
    CHECK_EQ(bh_store_note_set_text(f.s, "a", "1", &f.err), 0);
    CHECK(bh_store_log_bytes(f.s) > 0);
    CHECK_EQ(sqlite3_open(f.at.path, &reader), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM notes", NULL, NULL, NULL), SQLITE_OK);
    CHECK(!bh_store_log_empty(f.s) && bh_store_log_bytes(f.s) > 0);
    CHECK_EQ(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(reader);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK(!bh_store_log_empty(f.s));
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    bh_store_hold(f.s);
    CHECK(!bh_store_log_empty(f.s));
    bh_store_release(f.s);
    CHECK(bh_store_log_empty(f.s));
    CHECK_EQ(bh_store_log_bytes(f.s), 0);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 1);
    CHECK_EQ(number(f.s, "PRAGMA busy_timeout"), 5000);
    fix_fini(&f);
}

TEST(transactions_nest)
{
    struct fix f;
    fix_init(&f);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "a", "1", &f.err), 0);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "b", "1", &f.err), 0);
    bh_store_rollback(f.s);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "c", "1", &f.err), 0);
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    CHECK(bh_store_in_transaction(f.s));
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    CHECK(!bh_store_in_transaction(f.s));
    CHECK_EQ(number(f.s, "SELECT group_concat(key, '') = 'ac' FROM notes"), 1);
    CHECK_EQ(bh_store_commit(f.s, &f.err), BH_CONFLICT);
    bh_store_rollback(f.s); /* none is open: nothing happens */
    /* the outer one takes the inner ones with it */
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "d", "1", &f.err), 0);
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    bh_store_rollback(f.s);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 2);
    /* and so does a store that is closed in the middle */
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "e", "1", &f.err), 0);
    bh_store_close(f.s);
    fix_open(&f);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 2);
    fix_fini(&f);
}

TEST(readers_stand_beside_the_daemon_and_change_nothing)
{
    struct fix f;
    struct bh_store *r = NULL;
    struct bh_store_note note;
    fix_init(&f);
    CHECK_EQ(bh_store_note_set_text(f.s, "a", "1", &f.err), 0);
    CHECK_EQ(open_mode(&f, BH_STORE_READ, &r, &f.err), 0);
    CHECK_EQ(bh_store_note_get(r, &f.arena, "a", &note, &f.err), 0);
    /* while a transaction is open there, they see what was */
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "a", "2", &f.err), 0);
    CHECK_EQ(bh_store_note_get(r, &f.arena, "a", &note, &f.err), 0);
    CHECK_STR(note.value, "1");
    CHECK_EQ(bh_store_commit(f.s, &f.err), 0);
    CHECK_EQ(bh_store_note_get(r, &f.arena, "a", &note, &f.err), 0);
    CHECK_STR(note.value, "2");
    CHECK_EQ(bh_store_note_set_text(r, "a", "3", &f.err), BH_DENIED);
    CHECK_EQ(bh_store_begin(r, &f.err), BH_DENIED);
    CHECK(raw(r, "DELETE FROM notes") != 0);
    CHECK_EQ(fix_broken(r), 0);
    bh_store_close(r);
    bh_store_close(f.s);
    /* and when nobody is there */
    CHECK_EQ(open_mode(&f, BH_STORE_READ, &r, &f.err), 0);
    CHECK_EQ(bh_store_note_get(r, &f.arena, "a", &note, &f.err), 0);
    bh_store_close(r);
    scratch_empty(&f.at);
    CHECK_EQ(open_mode(&f, BH_STORE_READ, &r, &f.err), BH_NOT_FOUND);
    CHECK(access(f.at.path, F_OK) < 0);
    f.s = NULL;
    fix_fini(&f);
}

/* As nobody, in a folder that takes no file of theirs: 0 when it can be read. */
static int read_as_nobody(const struct fix *f)
{
    int status = -1;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct bh_store *r = NULL;
        struct bh_err err = {0};
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(9);
        const int rc = open_mode(f, BH_STORE_READ, &r, &err);
        if (rc < 0)
            fprintf(stderr, "# %s\n", err.msg);
        const bool read = rc == 0 && number(r, "SELECT count(*) FROM cards") == 2;
        bh_store_close(r);
        _exit(read ? 0 : 1);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

TEST(a_copy_in_a_folder_that_cannot_be_written_can_be_read)
{
    struct fix f;
    if (geteuid() != 0) {
        printf("# not root: left out\n");
        CHECK(true);
        return;
    }
    fix_init(&f);
    bh_store_close(f.s);
    f.s = NULL;
    CHECK_EQ(chmod(f.at.folder, 0755), 0);
    CHECK_EQ(chmod(f.at.path, 0644), 0);
    CHECK_EQ(read_as_nobody(&f), 0);
    CHECK_EQ(chmod(f.at.path, 0600), 0);
    CHECK_EQ(read_as_nobody(&f), 1);
    fix_fini(&f);
}

TEST(what_is_written_is_counted_also_where_it_is_undone)
{
    struct scratch t;
    char path[512];
    struct bh_store *s = NULL;
    struct bh_err err;
    const struct bh_store_options options = {.mode = BH_STORE_WRITE};
    scratch_init(&t);
    CHECK_EQ(bh_store_open(scratch_file(&t, "bulkhead.db", path), &options, &s, &err), 0);
    const uint64_t before = bh_store_changes(s);
    CHECK_EQ(bh_store_begin(s, &err), 0);
    CHECK_EQ(bh_store_note_set_text(s, "a", "b", &err), 0);
    bh_store_rollback(s);
    CHECK(bh_store_changes(s) > before);
    const uint64_t after = bh_store_changes(s);
    struct bh_arena arena = {0};
    struct bh_store_note note;
    CHECK_EQ(bh_store_note_get(s, &arena, "a", &note, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_changes(s), after);
    bh_arena_fini(&arena);
    bh_store_close(s);
    scratch_fini(&t);
}

TEST_MAIN
