/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - the thread that looks at the clock while the warden looks at a tenant. */
#include "warden/watchdog.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 5, GIB_MS = 120, GIBS_MOST = 64 }; /* LOOKS: of the thread, within the limit */

struct bh_watchdog {
    uint32_t limit_ms;
    pid_t warden; /* the thread that looks at tenants */
    pthread_t thread;
    _Atomic uint64_t look; /* its number; 0: the warden is not looking at anybody */
    uint64_t looks;        /* so far; of who enters alone */
    _Atomic uint32_t who;
    atomic_bool bit;
    pthread_mutex_t lock; /* of what is below */
    pthread_cond_t stopped;
    bool stop;
    BH_VEC(int) pidfds;
};

static void bite(struct bh_watchdog *w)
{
    atomic_store(&w->bit, true); /* first: whoever sees the end of one knows why */
    (void)kill((pid_t)atomic_load(&w->who), SIGKILL);
    for (size_t i = 0; i < w->pidfds.n; i++)
        (void)syscall(SYS_pidfd_send_signal, w->pidfds.at[i], SIGKILL, NULL, 0);
}

/* What stands at the begin of a file of /proc; "": not to be had. */
static void head_of(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

/* Does it wait for somebody? One that would run, and is not let because the machine has more to do, is kept by nobody. */
static bool is_kept(const struct bh_watchdog *w)
{
    char path[48], text[128];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)w->warden);
    head_of(path, text, sizeof(text));
    const char *end = strrchr(text, ')'); /* of its name */
    return !end || end[1] != ' ' || end[2] != 'R';
}

uint32_t bh_watchdog_patience(uint32_t limit_ms, uint64_t resident_bytes)
{
    const uint64_t mib = resident_bytes >> 20, most = (uint64_t)GIBS_MOST << 10;
    return limit_ms + (uint32_t)((mib < most ? mib : most) * GIB_MS >> 10);
}

/* Of whom is looked at; this file can be read while the kernel works at its tables. 0: not to be told. */
static uint64_t resident_of(uint32_t pid)
{
    char path[48], text[128];
    uint64_t pages = 0;
    (void)snprintf(path, sizeof(path), "/proc/%u/statm", pid);
    head_of(path, text, sizeof(text));
    const char *second = strchr(text, ' ');
    for (second = second ? second + 1 : ""; *second >= '0' && *second <= '9'; second++)
        pages = pages * 10 + (uint64_t)(*second - '0');
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * By looks of its own and not by the clock alone: where the whole process was stopped for a while, or the machine, nobody
 * kept anybody.
 */
static void *watch(void *arg)
{
    struct bh_watchdog *w = arg;
    uint64_t seen = 0;
    uint32_t looks = 0, enough = LOOKS;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t next = (uint64_t)until.tv_nsec + (uint64_t)w->limit_ms * 1000000 / LOOKS;
        until.tv_sec += (time_t)(next / 1000000000);
        until.tv_nsec = (long)(next % 1000000000);
        while (!w->stop && pthread_cond_timedwait(&w->stopped, &w->lock, &until) == 0)
            continue;
        const uint64_t look = atomic_load_explicit(&w->look, memory_order_acquire);
        const bool same = look && look == seen;
        const bool kept = same && is_kept(w);
        looks = same ? looks + kept : 0;
        seen = look;
        if (kept && looks == 1) /* what it gives back is gone later */
            enough =
                bh_watchdog_patience(w->limit_ms, resident_of(atomic_load(&w->who))) * LOOKS / w->limit_ms;
        if (!w->stop && kept && looks == enough)
            bite(w);
        else if (!w->stop && kept && looks == enough + LOOKS)
            abort();
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

int bh_watchdog_start(uint32_t limit_ms, struct bh_watchdog **ret, struct bh_err *err)
{
    struct bh_watchdog *w = bh_alloc(1, sizeof(*w));
    pthread_condattr_t clock;
    pthread_attr_t small;
    w->limit_ms = limit_ms;
    w->warden = (pid_t)syscall(SYS_gettid);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->stopped, &clock);
    (void)pthread_condattr_destroy(&clock);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, (size_t)64 << 10);
    const int error = pthread_create(&w->thread, &small, watch, w);
    (void)pthread_attr_destroy(&small);
    if (error) {
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
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->stopped);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->stopped);
    (void)pthread_mutex_destroy(&w->lock);
    bh_vec_fini(&w->pidfds);
    free(w);
}

void bh_watchdog_enter(struct bh_watchdog *w, uint32_t who)
{
    if (!w)
        return;
    atomic_store_explicit(&w->who, who, memory_order_relaxed);
    atomic_store_explicit(&w->look, ++w->looks, memory_order_release);
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
