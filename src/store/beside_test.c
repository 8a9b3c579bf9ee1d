/* SPDX-License-Identifier: Apache-2.0 */
/* Work in the thread beside, and a store whose commits are made there: in order, and with readers in between. */
#include "store/beside.h"

#include "store/db_disk_fixture.h"
#include "store/state_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

struct piece {
    pthread_t by;
    int done;
    bool hears; /* SIGTERM is let through there */
    struct bh_beside *b;
};

static void do_piece(void *arg)
{
    struct piece *p = arg;
    sigset_t mask;
    p->by = pthread_self();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    p->hears = !sigismember(&mask, SIGTERM);
    p->done++;
}

struct server {
    struct bh_beside *b;
    struct piece inner;
    int calls;
};

static void serve(void *arg, int until)
{
    struct server *s = arg;
    struct pollfd p = {.fd = until, .events = POLLIN};
    s->calls++;
    bh_beside_run(s->b, do_piece, &s->inner);
    CHECK_EQ(poll(&p, 1, -1), 1);
}

TEST(work_is_done_in_another_thread_and_over_when_the_call_returns)
{
    struct bh_err err;
    struct piece p = {.done = 0};
    struct server s = {.calls = 0};
    bh_beside_run(NULL, do_piece, &p);
    CHECK(pthread_equal(p.by, pthread_self()));
    CHECK_EQ(bh_beside_start(&s.b, &err), 0);
    bh_beside_run(s.b, do_piece, &p);
    CHECK(!pthread_equal(p.by, pthread_self()));
    CHECK(!p.hears);
    bh_beside_meanwhile(s.b, serve, &s);
    for (int i = 0; i < 1000; i++)
        bh_beside_run(s.b, do_piece, &p);
    CHECK_EQ(p.done, 1002);
    CHECK_EQ(s.calls, 1000);
    /* what is asked for meanwhile is done at once, in the caller's thread */
    CHECK_EQ(s.inner.done, 1000);
    CHECK(pthread_equal(s.inner.by, pthread_self()));
    bh_beside_stop(s.b);
    bh_beside_stop(NULL);
}

/* ---- a store ---- */

struct reader {
    struct bh_store *s;
    uint64_t calls, changes;
    int64_t seen; /* notes */
    int begin, commit, write;
    bool unsure, in_transaction;
    struct bh_err err;
};

static void read_meanwhile(void *arg, int until)
{
    struct reader *r = arg;
    struct pollfd p = {.fd = until, .events = POLLIN};
    r->calls++;
    r->seen = number(r->s, "SELECT count(*) FROM notes");
    r->begin = bh_store_begin(r->s, &r->err);
    r->commit = bh_store_commit(r->s, &r->err);
    bh_store_rollback(r->s);
    r->write = bh_store_note_set_text(r->s, "never", "1", &r->err);
    r->changes = bh_store_changes(r->s);
    r->unsure = bh_store_unsure(r->s);
    r->in_transaction = bh_store_in_transaction(r->s);
    CHECK_EQ(poll(&p, 1, -1), 1);
}

static int put(struct bh_store *s, const char *key, struct bh_err *err)
{
    int rc = bh_store_begin(s, err);
    if (rc == 0)
        rc = bh_store_note_set_text(s, key, "1", err);
    if (rc == 0)
        return bh_store_commit(s, err);
    bh_store_rollback(s);
    return rc;
}

TEST(who_reads_during_a_commit_sees_what_was_there_before_and_cannot_write)
{
    struct fix f;
    struct bh_beside *b;
    fix_init(&f);
    struct reader r = {.s = f.s};
    CHECK_EQ(bh_beside_start(&b, &f.err), 0);
    bh_beside_meanwhile(b, read_meanwhile, &r);
    CHECK_EQ(bh_store_commit_beside(f.s, b, &f.err), 0);
    for (int i = 0; i < 50; i++) {
        char key[16];
        const uint64_t changes = bh_store_changes(f.s);
        (void)snprintf(key, sizeof(key), "%d", i);
        CHECK_EQ(put(f.s, key, &f.err), 0);
        CHECK_EQ(r.calls, (uint64_t)i + 1);
        CHECK(r.seen == i || r.seen == i + 1); /* after its sync, and before it is told */
        CHECK_EQ(r.begin, BH_BUSY);
        CHECK_EQ(r.commit, BH_BUSY);
        CHECK_EQ(r.write, BH_DENIED);
        CHECK_EQ(r.changes, changes + 1);
        CHECK(!r.unsure);
        CHECK(r.in_transaction);
        CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), i + 1);
    }
    /* inner ones are nobody's wait */
    CHECK_EQ(bh_store_begin(f.s, &f.err), 0);
    CHECK_EQ(put(f.s, "inner", &f.err), 0);
    CHECK_EQ(r.calls, 50u);
    bh_store_rollback(f.s);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM notes"), 50);
    fix_fini(&f);
    bh_beside_stop(b);
}

/* Each way a commit can fail at its sync: told as a failure, undone, and the next one works. */
TEST(a_sync_that_fails_beside_undoes_the_commit)
{
    static const enum disk_fault faults[] = {DISK_NO_SYNC, DISK_IOERR, DISK_FULL};
    for (size_t i = 0; i < BH_COUNT_OF(faults); i++) {
        struct bh_err err;
        struct disk disk;
        struct bh_beside *b;
        struct bh_store *s = NULL;
        disk_init(&disk, "beside", 7 + i);
        const struct bh_store_options o = {.mode = BH_STORE_WRITE, .vfs = "beside"};
        struct scratch at;
        scratch_init(&at);
        CHECK_EQ(bh_store_open(at.path, &o, &s, &err), 0);
        CHECK_EQ(bh_beside_start(&b, &err), 0); /* nobody reads meanwhile: this disk is one thread's */
        CHECK_EQ(bh_store_commit_beside(s, b, &err), 0);
        CHECK_EQ(put(s, "kept", &err), 0);
        disk_plan(&disk, faults[i], 0, true);
        CHECK_EQ(put(s, "lost", &err), BH_SYSTEM);
        CHECK(disk.hit);
        CHECK(bh_store_unsure(s));
        disk_plan(&disk, DISK_FINE, UINT64_MAX, false);
        CHECK_EQ(number(s, "SELECT group_concat(key) = 'kept' FROM notes"), 1);
        CHECK_EQ(put(s, "next", &err), 0);
        CHECK(!bh_store_unsure(s));
        CHECK_EQ(number(s, "SELECT group_concat(key) = 'kept,next' FROM notes"), 1);
        bh_store_close(s);
        bh_beside_stop(b);
        scratch_fini(&at);
        disk_fini(&disk);
    }
}

TEST_MAIN
