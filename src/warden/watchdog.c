/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - the thread that looks at the clock while the warden looks at a tenant. */
#include "warden/watchdog.h"

#include "base/mem.h"
#include "warden/thread.h"
#include "warden/waits.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOKS = 20,       /* of the thread, within the limit */
    TENANT_LOOKS = 3, /* ... for who keeps the warden by something that only a tenant does */
    PAGE_LIMITS = 5,  /* limits, for one whose page comes from a disk */
    QUIET_LOOKS = 3,  /* at nobody: then it sleeps until somebody is looked at */
    GIB_MS = 120,     /* for each GiB of memory of its own, ... */
    GIBS_MOST = 64,
    MAPPED_GIB_MS = 24,   /* ... and of what it maps of files and shares: no fork copies their tables, ... */
    MAPPED_GIBS_MOST = 16 /* ... and one page can be mapped as often as one likes, for next to nothing */
};
enum { AWAKE, ASLEEP, STOP };

/* Whose page is it? Asked by a thread of its own, as who is asked can make that wait as well. */
struct question {
    _Atomic uint32_t refs;
    _Atomic uint32_t answer; /* enum bh_waits_page; 0: none yet */
    pid_t warden;
    uint32_t who;
};

/* How long one look has taken so far, in looks of the watchdog. */
struct wait {
    uint64_t look;
    uint32_t kept, by_tenant, after_bite;
    uint32_t memory_looks; /* what it may take, by the memory that whom it looks at had at first */
    struct question *page; /* NULL: not asked */
};

struct bh_watchdog {
    uint32_t limit_ms;
    pid_t warden; /* the thread that looks at tenants */
    pthread_t thread;
    _Atomic uint64_t look;  /* its number; 0: the warden is not looking at anybody */
    _Atomic uint64_t looks; /* so far; counted by who enters alone */
    _Atomic uint32_t who;
    _Atomic uint32_t state; /* AWAKE, ASLEEP, STOP: a word that the kernel can wait on */
    atomic_bool bit;
    pthread_mutex_t lock; /* of what is below */
    BH_VEC(int) pidfds;
};

static void bite(struct bh_watchdog *w)
{
    atomic_store(&w->bit, true); /* first: whoever sees the end of one knows why */
    (void)kill((pid_t)atomic_load(&w->who), SIGKILL);
    (void)pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->pidfds.n; i++)
        (void)syscall(SYS_pidfd_send_signal, w->pidfds.at[i], SIGKILL, NULL, 0);
    (void)pthread_mutex_unlock(&w->lock);
}

static uint64_t ms_for(uint64_t bytes, uint64_t gib_ms, uint64_t gibs_most)
{
    const uint64_t mib = bytes >> 20, most = gibs_most << 10;
    return (mib < most ? mib : most) * gib_ms >> 10;
}

uint32_t bh_watchdog_patience(uint32_t limit_ms, const struct bh_watchdog_memory *m)
{
    return limit_ms + (uint32_t)(ms_for(m->own_bytes, GIB_MS, GIBS_MOST) +
                                 ms_for(m->mapped_bytes, MAPPED_GIB_MS, MAPPED_GIBS_MOST));
}

enum { SIZE, RESIDENT, MAPPED, WORDS };

/* `SIZE RESIDENT SHARED ...`, in pages. This file can be read while the kernel works at its tables. Zeros: not to be told. */
static void read_pages(uint32_t pid, uint64_t pages[WORDS])
{
    char path[48], text[128];
    (void)snprintf(path, sizeof(path), "/proc/%u/statm", pid);
    bh_waits_head(path, text, sizeof(text));
    const char *at = text;
    for (int i = 0; i < WORDS; i++, at += *at == ' ')
        for (pages[i] = 0; *at >= '0' && *at <= '9'; at++)
            pages[i] = pages[i] * 10 + (uint64_t)(*at - '0');
}

struct bh_watchdog_memory bh_watchdog_memory_of(uint32_t pid)
{
    uint64_t pages[WORDS];
    read_pages(pid, pages);
    const uint32_t other = pages[SIZE] ? 0 : bh_thread_living(pid); /* its first thread may have ended */
    if (other && other != pid)
        read_pages(other, pages);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t own = pages[RESIDENT] > pages[MAPPED] ? pages[RESIDENT] - pages[MAPPED] : 0;
    return (struct bh_watchdog_memory){.own_bytes = own * page, .mapped_bytes = pages[MAPPED] * page};
}

/* ---- whose page ---- */

static void question_unref(struct question *q)
{
    if (q && atomic_fetch_sub(&q->refs, 1) == 1)
        free(q);
}

static void *ask(void *arg)
{
    struct question *q = arg;
    const enum bh_waits_page page = bh_waits_page(q->warden, q->who);
    /* What cannot be told is no tenant's fault. */
    atomic_store(&q->answer, page == BH_PAGE_UNKNOWN ? BH_PAGE_INNOCENT : page);
    question_unref(q);
    return NULL;
}

static int start_thread(void *(*fn)(void *), void *arg, bool detached, pthread_t *ret)
{
    pthread_attr_t small;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, (size_t)64 << 10);
    if (detached)
        (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    const int error = pthread_create(ret, &small, fn, arg);
    (void)pthread_attr_destroy(&small);
    return error;
}

static struct question *question_new(const struct bh_watchdog *w)
{
    pthread_t thread;
    struct question *q = bh_alloc(1, sizeof(*q));
    atomic_store(&q->refs, 2);
    q->warden = w->warden;
    q->who = atomic_load(&w->who);
    if (start_thread(ask, q, true, &thread) != 0) {
        atomic_store(&q->answer, BH_PAGE_INNOCENT);
        atomic_store(&q->refs, 1);
    }
    return q;
}

/* ---- the clock ---- */

static void wait_over(struct wait *t, uint64_t look)
{
    question_unref(t->page);
    *t = (struct wait){.look = look};
}

/* How many looks this may take. */
static uint32_t enough_for(struct bh_watchdog *w, struct wait *t, enum bh_waits waits)
{
    if (waits != BH_WAITS_PAGE)
        return t->memory_looks;
    if (!t->page)
        t->page = question_new(w);
    switch (atomic_load(&t->page->answer)) {
    case BH_PAGE_SERVED:
        t->by_tenant++;
        return LOOKS;
    case BH_PAGE_INNOCENT:
        return PAGE_LIMITS * LOOKS;
    default: /* who asked is kept too: by somebody who has the lock, for as long as one without memory may */
        return LOOKS;
    }
}

/*
 * One that only waits for a processor, because the machine has more to do, is kept by nobody. By looks of its own and not by
 * the clock alone: where the whole process was stopped for a while, or the machine, nobody kept anybody.
 */
static void look_once(struct bh_watchdog *w, struct wait *t)
{
    const uint64_t look = atomic_load_explicit(&w->look, memory_order_acquire);
    if (!look || look != t->look) {
        wait_over(t, look);
        return;
    }
    const enum bh_waits waits = bh_waits_for(w->warden);
    if (waits == BH_WAITS_NOT)
        return;
    if (t->after_bite) {
        if (t->after_bite++ == LOOKS)
            abort();
        return;
    }
    if (t->kept++ == 0) { /* what it gives back is gone later */
        const struct bh_watchdog_memory m = bh_watchdog_memory_of(atomic_load(&w->who));
        t->memory_looks = bh_watchdog_patience(w->limit_ms, &m) * LOOKS / w->limit_ms;
    }
    t->by_tenant += waits == BH_WAITS_TENANT;
    const uint32_t enough = enough_for(w, t, waits);
    if ((t->by_tenant < TENANT_LOOKS && t->kept < enough) || atomic_load(&w->look) != look)
        return;
    bite(w);
    t->after_bite = 1;
}

/* Waits while the state is this one, for no longer than that. */
static void sleep_while(struct bh_watchdog *w, uint32_t state, const struct timespec *most)
{
    (void)syscall(SYS_futex, &w->state, FUTEX_WAIT_PRIVATE, state, most, NULL, 0);
}

static void wake(struct bh_watchdog *w)
{
    (void)syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Where nobody is looked at there is nothing to watch: most leases do nothing most of the time. */
static void sleep_if_quiet(struct bh_watchdog *w, struct wait *t, uint64_t *looks, uint32_t *quiet)
{
    uint32_t awake = AWAKE;
    const uint64_t now = atomic_load(&w->looks);
    *quiet = t->look || now != *looks ? 0 : *quiet + 1;
    *looks = now;
    if (*quiet < QUIET_LOOKS || !atomic_compare_exchange_strong(&w->state, &awake, ASLEEP))
        return;
    while (atomic_load(&w->look) == 0 && atomic_load(&w->state) == ASLEEP)
        sleep_while(w, ASLEEP, NULL);
    uint32_t asleep = ASLEEP;
    (void)atomic_compare_exchange_strong(&w->state, &asleep, AWAKE);
    *quiet = 0;
}

static void *watch(void *arg)
{
    struct bh_watchdog *w = arg;
    struct wait t = {0};
    uint64_t looks = 0;
    uint32_t quiet = 0;
    const uint64_t ns = (uint64_t)w->limit_ms * 1000000 / LOOKS;
    const struct timespec pace = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (atomic_load(&w->state) != STOP) {
        sleep_while(w, AWAKE, &pace);
        look_once(w, &t);
        sleep_if_quiet(w, &t, &looks, &quiet);
    }
    question_unref(t.page);
    return NULL;
}

int bh_watchdog_start(uint32_t limit_ms, struct bh_watchdog **ret, struct bh_err *err)
{
    struct bh_watchdog *w = bh_alloc(1, sizeof(*w));
    w->limit_ms = limit_ms;
    w->warden = (pid_t)syscall(SYS_gettid);
    (void)pthread_mutex_init(&w->lock, NULL);
    const int error = start_thread(watch, w, false, &w->thread);
    if (error) {
        (void)pthread_mutex_destroy(&w->lock);
        free(w);
        return bh_fail(err, BH_SYSTEM, "the warden's second thread: %s", strerror(error));
    }
    *ret = w;
    return BH_OK;
}

void bh_watchdog_stop(struct bh_watchdog *w)
{
    if (!w)
        return;
    atomic_store(&w->state, STOP);
    wake(w);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_destroy(&w->lock);
    bh_vec_fini(&w->pidfds);
    free(w);
}

/* In this order, and each seen by everybody before the next: either this finds it asleep, or it finds the look. */
void bh_watchdog_enter(struct bh_watchdog *w, uint32_t who)
{
    if (!w)
        return;
    atomic_store_explicit(&w->who, who, memory_order_relaxed);
    const uint64_t look = atomic_load_explicit(&w->looks, memory_order_relaxed) + 1;
    atomic_store_explicit(&w->looks, look, memory_order_relaxed);
    atomic_store(&w->look, look);
    if (atomic_load(&w->state) == ASLEEP) {
        uint32_t asleep = ASLEEP;
        (void)atomic_compare_exchange_strong(&w->state, &asleep, AWAKE);
        wake(w);
    }
}

void bh_watchdog_leave(struct bh_watchdog *w)
{
    if (w)
        atomic_store_explicit(&w->look, 0, memory_order_relaxed);
}

void bh_watchdog_add(struct bh_watchdog *w, int pidfd)
{
    (void)pthread_mutex_lock(&w->lock);
    *bh_vec_push(&w->pidfds) = pidfd;
    (void)pthread_mutex_unlock(&w->lock);
}

void bh_watchdog_remove(struct bh_watchdog *w, int pidfd)
{
    (void)pthread_mutex_lock(&w->lock);
    for (size_t i = w->pidfds.n; i-- > 0;)
        if (w->pidfds.at[i] == pidfd)
            w->pidfds.at[i] = w->pidfds.at[--w->pidfds.n];
    (void)pthread_mutex_unlock(&w->lock);
}

bool bh_watchdog_bit(const struct bh_watchdog *w)
{
    return atomic_load(&w->bit);
}
