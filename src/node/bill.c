/* SPDX-License-Identifier: Apache-2.0 */
/* bill.c - one child for a bill, in the daemon: the row of them, the question, the answer and the end. */
#include "node/bill.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { US_OF_MS = 1000 };

struct bh_bill {
    struct bh_daemon *of;
    char caller[128];
    bool past;           /* of bh_store_bill_ask */
    struct bh_buf asked; /* the question */
    int file;            /* the question, then the bill; -1: it waits for its turn */
    uint64_t since_ms;   /* its child began; by the clock that does not jump */
    struct bh_worker worker;
    sd_event_source *source, *timer;
    BH_VEC(uint64_t) tickets; /* the first one pays */
};

static uint64_t clock_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_under_way(const struct bh_bill *b)
{
    return b->file >= 0;
}

/* Before its descriptor is closed (worker.h). */
static void hear_no_more(struct bh_bill *b)
{
    b->source = sd_event_source_disable_unref(b->source);
    b->timer = sd_event_source_disable_unref(b->timer);
}

static void forget(struct bh_bill *b)
{
    struct bh_daemon *d = b->of;
    size_t at = 0;
    while (at < d->bills.n && d->bills.at[at] != b)
        at++;
    if (at < d->bills.n) {
        d->bills.n--;
        for (; at < d->bills.n; at++) /* the others keep their order */
            d->bills.at[at] = d->bills.at[at + 1];
    }
    hear_no_more(b);
    bh_worker_kill(&b->worker);
    if (b->file >= 0)
        (void)close(b->file);
    bh_buf_fini(&b->asked);
    bh_vec_fini(&b->tickets);
    free(b);
}

/* ---- what came back ---- */

static int read_bill(const struct bh_bill *b, struct bh_arena *arena, struct bh_store_bill *ret,
                     struct bh_err *err)
{
    struct stat st;
    if (fstat(b->file, &st) < 0 || st.st_size <= 0 || st.st_size > BH_BILL_BYTES_MAX)
        return bh_fail(err, BH_SYSTEM, "nothing came of it");
    const size_t n = (size_t)st.st_size;
    void *at = mmap(NULL, n, PROT_READ, MAP_PRIVATE, b->file, 0);
    if (at == MAP_FAILED)
        return bh_fail(err, BH_SYSTEM, "mmap: %s", strerror(errno));
    const int rc = bh_store_bill_get(at, n, arena, ret, err);
    (void)munmap(at, n);
    return rc;
}

static void start_next(struct bh_daemon *d);

static void tell(struct bh_bill *take_b, int rc, uint64_t took_ms, struct bh_err *err)
{
    struct bh_bill *b = take_b;
    struct bh_daemon *d = b->of;
    struct bh_arena arena = {0};
    struct bh_store_bill bill = {0};
    if (rc == BH_OK)
        rc = read_bill(b, &arena, &bill, err);
    if (rc < 0)
        (void)bh_wrap(err, rc, "the bill could not be added up");
    for (size_t i = 0; i < b->tickets.n; i++)
        bh_api_answer_bill(d->api, b->tickets.at[i], rc, &bill, i ? 0 : took_ms, err);
    bh_store_bill_fini(&bill);
    bh_arena_fini(&arena);
    forget(b);
    start_next(d);
}

static int on_made(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_bill *b = arg;
    struct bh_worker_result result;
    struct bh_err err = {0};
    (void)source;
    (void)fd;
    (void)events;
    hear_no_more(b);
    bh_worker_finish(&b->worker, &result);
    const bool ok = result.code == BH_OK;
    /* Of one that died nobody knows what it took. */
    tell(b, ok ? BH_OK : bh_fail(&err, (enum bh_code)result.code, "%s", result.text),
         result.took_ms ? result.took_ms : clock_ms() - b->since_ms, &err);
    return 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
    struct bh_bill *b = arg;
    struct bh_err err = {0};
    (void)source;
    (void)usec;
    hear_no_more(b);
    bh_worker_kill(&b->worker);
    tell(b, bh_fail(&err, BH_BUSY, "it was not done in %d s; ask for a shorter time", BH_BILL_MS / 1000),
         clock_ms() - b->since_ms, &err);
    return 0;
}

/* ---- its turn ---- */

/* In the child. */
static void become(const void *arg, struct bh_worker_result *ret)
{
    /* This very program, whatever is installed by now: its code is the daemon's, and so is its schema. */
    (void)execl("/proc/self/exe", "bulkheadd", BH_BILL_WORD, (const char *)arg, (char *)NULL);
    ret->code = BH_SYSTEM;
    (void)snprintf(ret->text, sizeof(ret->text), "/proc/self/exe: %s", strerror(errno));
}

static int start(struct bh_bill *b, struct bh_err *err)
{
    struct bh_daemon *d = b->of;
    const char *store = bh_store_path(d->store);
    b->file = memfd_create("bulkhead-bill", MFD_CLOEXEC);
    if (b->file < 0)
        return bh_fail(err, BH_SYSTEM, "memfd_create: %s", strerror(errno));
    if (pwrite(b->file, b->asked.at, b->asked.n, 0) != (ssize_t)b->asked.n)
        return bh_fail(err, BH_SYSTEM, "memfd: %s", strerror(errno));
    b->since_ms = clock_ms();
    int rc = bh_worker_start_with(become, store, b->file, &b->worker, err);
    if (rc < 0)
        return rc;
    bh_worker_name(&b->worker, "a bill is added up");
    if (sd_event_add_io(d->loop, &b->source, b->worker.fd, EPOLLIN, on_made, b) < 0 ||
        sd_event_add_time_relative(d->loop, &b->timer, CLOCK_MONOTONIC, (uint64_t)BH_BILL_MS * US_OF_MS, 0,
                                   on_late, b) < 0)
        rc = bh_fail(err, BH_SYSTEM, "the loop takes no more");
    return rc;
}

static size_t n_under_way(const struct bh_daemon *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->bills.n; i++)
        n += is_under_way(d->bills.at[i]);
    return n;
}

/* The first whose caller has none under way; NULL: none, or enough are. */
static struct bh_bill *whose_turn(const struct bh_daemon *d)
{
    const size_t under_way = n_under_way(d);
    for (size_t i = 0; under_way < BH_BILL_AT_ONCE && i < d->bills.n; i++) {
        bool has_one = false;
        for (size_t k = 0; k < d->bills.n; k++)
            has_one |=
                is_under_way(d->bills.at[k]) && bh_str_eq(d->bills.at[k]->caller, d->bills.at[i]->caller);
        if (!has_one)
            return d->bills.at[i];
    }
    return NULL;
}

/* None begins: the log is to be begun anew first (bh_bill_tick). */
static bool waits_for_log(const struct bh_daemon *d)
{
    return bh_store_log_bytes(d->store) > BH_BILL_LOG;
}

static void start_one(struct bh_daemon *d, struct bh_bill *b)
{
    struct bh_err err = {0};
    const int rc = b ? start(b, &err) : BH_OK;
    if (rc < 0)
        tell(b, rc, 0, &err); /* and on */
    else if (b)
        start_next(d);
}

static void start_next(struct bh_daemon *d)
{
    start_one(d, waits_for_log(d) ? NULL : whose_turn(d));
}

/* Where the log cannot be begun anew it is not for a bill, and waiting for ever would not help. */
void bh_bill_tick(struct bh_daemon *d)
{
    if (!d->bills.n || n_under_way(d) || bh_store_in_transaction(d->store))
        return;
    if (waits_for_log(d))
        (void)bh_store_log_empty(d->store);
    start_one(d, whose_turn(d));
}

/* ---- asking ---- */

/* Who is there already: the same bill is joined. Whoever asks for all up to now is told of the moment that is being added up. */
static int look_around(struct bh_daemon *d, const char *caller, const struct bh_bill *mine,
                       struct bh_bill **ret_same, struct bh_err *err)
{
    size_t of_one = 0;
    *ret_same = NULL;
    for (size_t i = 0; i < d->bills.n; i++) {
        struct bh_bill *b = d->bills.at[i];
        of_one += bh_str_eq(b->caller, caller);
        if (b->tickets.n < BH_BILL_JOINED &&
            ((b->past && mine->past) ||
             (b->asked.n == mine->asked.n && memcmp(b->asked.at, mine->asked.at, mine->asked.n) == 0)))
            *ret_same = b;
    }
    if (*ret_same)
        return BH_OK;
    if (of_one >= BH_BILL_OF_ONE)
        return bh_fail(err, BH_BUSY, "%zu bills of yours are still being added up", of_one);
    if (d->bills.n >= BH_BILL_MOST)
        return bh_fail(err, BH_BUSY, "bills of others are still being added up");
    return BH_OK;
}

int bh_ops_bill(void *self, const struct bh_api_caller *by, const struct bh_store_bill_ask *what,
                uint64_t ticket, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_bill *b = bh_alloc(1, sizeof(*b)), *same = NULL;
    *b = (struct bh_bill){.of = d, .past = what->past, .file = -1, .worker = {.fd = -1}};
    bh_buf_init(&b->asked, BH_BILL_BYTES_MAX);
    bh_store_bill_ask_put(&b->asked, what);
    (void)snprintf(b->caller, sizeof(b->caller), "%s", by->principal);
    int rc = b->asked.full ? bh_fail(err, BH_TOO_LARGE, "so many tenants are not added up at once")
                           : look_around(d, b->caller, b, &same, err);
    if (rc == BH_OK && !same) {
        *bh_vec_push(&d->bills) = b;
        if (whose_turn(d) == b && !waits_for_log(d))
            rc = start(b, err);
    }
    if (rc == BH_OK)
        *bh_vec_push(&(same ? same : b)->tickets) = ticket;
    if (rc < 0 || same)
        forget(b);
    return rc < 0 ? rc : BH_API_LATER;
}

uint64_t bh_ops_bill_gone(void *self, uint64_t ticket)
{
    struct bh_daemon *d = self;
    for (size_t i = 0; i < d->bills.n; i++) {
        struct bh_bill *b = d->bills.at[i];
        for (size_t k = 0; k < b->tickets.n; k++) {
            if (b->tickets.at[k] != ticket)
                continue;
            const uint64_t took_ms = is_under_way(b) ? clock_ms() - b->since_ms : 0;
            b->tickets.at[k] = b->tickets.at[--b->tickets.n];
            if (b->tickets.n)
                return 0; /* others wait for it, and one of them pays */
            forget(b);
            start_next(d);
            return took_ms;
        }
    }
    return 0;
}

void bh_bill_fini(struct bh_daemon *d)
{
    while (d->bills.n)
        forget(d->bills.at[d->bills.n - 1]);
    bh_vec_fini(&d->bills);
}
