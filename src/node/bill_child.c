/* SPDX-License-Identifier: Apache-2.0 */
/* bill_child.c - the process that adds up one bill and ends: one moment of the books, read and never written. */
#include "node/bill.h"

#include "store/db_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NICE = 10, PIECE = 1 << 16 };

/* Whoever has work to do comes first; and where memory is short, this goes before anybody's work does. */
static void be_modest(void)
{
    const struct rlimit cpu = {BH_BILL_MS / 1000, BH_BILL_MS / 1000}, file = {BH_BILL_DISK, BH_BILL_DISK},
                        none = {0, 0};
    (void)prctl(PR_SET_NAME, "bulkhead-bill", 0, 0, 0);
    (void)!nice(NICE);
    const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (oom >= 0) {
        (void)!write(oom, "1000", 4);
        (void)close(oom);
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* writing fails then, and that is said */
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)setrlimit(RLIMIT_FSIZE, &file);
    (void)setrlimit(RLIMIT_CORE, &none);
    bh_store_memory_most(BH_BILL_MEMORY);
}

static int read_question(struct bh_arena *arena, struct bh_store_bill_ask *ret, struct bh_err *err)
{
    BH_AUTOFREE char *piece = bh_alloc(1, PIECE);
    struct bh_buf all;
    off_t at = 0;
    ssize_t n;
    bh_buf_init(&all, BH_BILL_BYTES_MAX);
    while ((n = pread(BH_WORKER_WITH_FD, piece, PIECE, at)) > 0) {
        bh_buf_add(&all, piece, (size_t)n);
        at += n;
    }
    const int rc = n < 0 ? bh_fail(err, BH_SYSTEM, "the question cannot be read: %s", strerror(errno))
                         : bh_store_bill_ask_get(bh_buf_text(&all), all.n, arena, ret, err);
    bh_buf_fini(&all);
    return rc;
}

static int write_bill(const struct bh_store_bill *bill, struct bh_err *err)
{
    struct bh_buf out;
    int rc = BH_OK;
    size_t at = 0;
    bh_buf_init(&out, BH_BILL_BYTES_MAX);
    bh_store_bill_put(&out, bill);
    if (out.full)
        rc = bh_fail(err, BH_TOO_LARGE, "it has too many lines; ask for less of it");
    else if (ftruncate(BH_WORKER_WITH_FD, 0) < 0)
        rc = bh_fail(err, BH_SYSTEM, "%s", strerror(errno));
    while (rc == BH_OK && at < out.n) {
        const ssize_t n = pwrite(BH_WORKER_WITH_FD, out.at + at, out.n - at, (off_t)at);
        if (n <= 0)
            rc = bh_fail(err, BH_SYSTEM, "it cannot be handed on: %s", strerror(errno));
        else
            at += (size_t)n;
    }
    bh_buf_fini(&out);
    return rc;
}

/* Whoever opened it to write found it sound when he did. */
static int add_up(const char *path, struct bh_arena *arena, const struct bh_store_bill_ask *ask,
                  struct bh_err *err)
{
    const struct bh_store_options o = {.mode = BH_STORE_READ, .no_check = true, .spill = true};
    struct bh_store_tally tally = {0};
    struct bh_store_bill bill;
    struct bh_store *s;
    int rc = bh_store_open(path, &o, &s, err);
    if (rc < 0)
        return rc;
    rc = bh_store_hold(s) ? bh_store_bill_make(s, arena, ask, &tally, &bill, err)
                          : bh_fail(err, BH_BUSY, "no one moment of the books can be had");
    bh_store_close(s);
    if (rc == BH_OK) {
        bill.tally = tally;
        bill.tally.drops = ask->drops;
        rc = write_bill(&bill, err);
        bh_store_bill_fini(&bill);
    } else {
        bh_store_tally_fini(&tally);
    }
    return rc;
}

static uint64_t took_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + 1;
}

int bh_bill_child(const char *store)
{
    struct bh_worker_result result = {0};
    struct bh_arena arena = {0};
    struct bh_store_bill_ask ask = {0};
    struct bh_err err = {0};
    be_modest();
    int rc = read_question(&arena, &ask, &err);
    if (rc == BH_OK)
        rc = add_up(store, &arena, &ask, &err);
    bh_store_bill_ask_fini(&ask);
    bh_arena_fini(&arena);
    result.code = rc;
    result.took_ms = took_ms();
    (void)snprintf(result.text, sizeof(result.text), "%s", rc < 0 ? err.msg : "");
    return bh_worker_say(&result) ? 0 : 1;
}
