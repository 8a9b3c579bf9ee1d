/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.c - one thread, one piece of work, and a descriptor that says when it is done.
 *
 * The lock is taken on both ways, so that each side sees all that the other wrote.
 */
#include "store/beside.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct bh_beside {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    bh_beside_work work; /* NULL: nothing to do */
    void *arg;
    bool over; /* it is to end */
    int done;  /* an eventfd: readable when the work is done */
    bool busy; /* as the caller's thread has it */
    bh_beside_serve serve;
    void *serve_arg;
};

static void tell_done(const struct bh_beside *b)
{
    const uint64_t one = 1;
    while (write(b->done, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void *work_on(void *arg)
{
    struct bh_beside *b = arg;
    (void)pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->work && !b->over)
            (void)pthread_cond_wait(&b->asked, &b->lock);
        if (!b->work)
            break;
        const bh_beside_work work = b->work;
        void *mine = b->arg;
        (void)pthread_mutex_unlock(&b->lock);
        work(mine);
        (void)pthread_mutex_lock(&b->lock);
        b->work = NULL;
        tell_done(b);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

int bh_beside_start(struct bh_beside **ret, struct bh_err *err)
{
    struct bh_beside *b = bh_alloc(1, sizeof(*b));
    sigset_t all, before;
    b->done = eventfd(0, EFD_CLOEXEC);
    (void)pthread_mutex_init(&b->lock, NULL);
    (void)pthread_cond_init(&b->asked, NULL);
    sigfillset(&all);
    int bad = b->done < 0 ? errno : pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!bad) {
        bad = pthread_create(&b->thread, NULL, work_on, b);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!bad) {
        *ret = b;
        return 0;
    }
    if (b->done >= 0)
        (void)close(b->done);
    (void)pthread_cond_destroy(&b->asked);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
    return bh_fail(err, BH_SYSTEM, "no thread beside this one: %s", strerror(bad));
}

void bh_beside_stop(struct bh_beside *take_b)
{
    struct bh_beside *b = take_b;
    if (!b)
        return;
    (void)pthread_mutex_lock(&b->lock);
    b->over = true;
    (void)pthread_cond_signal(&b->asked);
    (void)pthread_mutex_unlock(&b->lock);
    (void)pthread_join(b->thread, NULL);
    (void)close(b->done);
    (void)pthread_cond_destroy(&b->asked);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

void bh_beside_meanwhile(struct bh_beside *b, bh_beside_serve serve, void *arg)
{
    b->serve = serve;
    b->serve_arg = arg;
}

void bh_beside_run(struct bh_beside *b, bh_beside_work work, void *arg)
{
    uint64_t n;
    if (!b || b->busy) {
        work(arg);
        return;
    }
    b->busy = true;
    (void)pthread_mutex_lock(&b->lock);
    b->work = work;
    b->arg = arg;
    (void)pthread_cond_signal(&b->asked);
    (void)pthread_mutex_unlock(&b->lock);
    if (b->serve)
        b->serve(b->serve_arg, b->done);
    while (read(b->done, &n, sizeof(n)) < 0 && errno == EINTR)
        ;
    (void)pthread_mutex_lock(&b->lock);
    (void)pthread_mutex_unlock(&b->lock);
    b->busy = false;
}
