/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - a call that was let through, and takes effect long after.
 *
 * Its arguments lie in a page that this process fills in itself. The gate is given it at once, and sees nothing that concerns it.
 * Then the page goes, and the driver, which comes to read it, waits for seconds: nobody has called by then, and it says something
 * else. The thread shares a processor with others that want all of it, so that it does not read before the page is gone.
 */
#include "bypass.h"

#include "warden/served_page_fixture.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { HOGS = 4, TRIES = 200, HELD_US = 2500000, COME_MS = 20000 };

static struct {
    struct rm rm;
    struct rm_memory_params params;
    void *page;
    size_t cpu;
    int rc;
    atomic_int tid;
    atomic_bool asked, stop;
} late;

static void go_to(size_t cpu, int policy)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0 ||
        sched_setscheduler(0, policy, &(struct sched_param){0}) < 0)
        bp_cannot("a processor of its own: %s", bp_result(-errno));
}

static void *hogging(void *arg)
{
    go_to(late.cpu, SCHED_OTHER);
    while (!atomic_load_explicit(&late.stop, memory_order_relaxed))
        ;
    return arg;
}

static void *asking(void *arg)
{
    go_to(late.cpu, SCHED_IDLE);
    atomic_store(&late.tid, gettid());
    late.rc = dev_ioctl(late.rm.ctl, RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)), late.page);
    atomic_store(&late.asked, true);
    return arg;
}

/* Two processors: one to be kept busy, one to serve from. */
static size_t leave_one(void)
{
    cpu_set_t set;
    size_t first = 0;
    if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 2)
        bp_cannot("one processor");
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_CLR(first, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
    return first;
}

static pthread_t begin(void *(*fn)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, NULL) != 0)
        bp_cannot("no thread");
    return thread;
}

/* Does somebody wait for the page? Not where the call is over. */
static bool is_wanted(void)
{
    struct uffd_msg m;
    struct pollfd p = {.fd = served_faults, .events = POLLIN};
    for (int ms = 0; ms < COME_MS && !atomic_load(&late.asked); ms++)
        if (poll(&p, 1, 1) > 0)
            return read(served_faults, &m, sizeof(m)) == (ssize_t)sizeof(m) &&
                   m.event == UFFD_EVENT_PAGEFAULT;
    return false;
}

/* While the gate looks, it sleeps; with the answer it wants a processor. */
static bool has_answer(void)
{
    char path[64], text[256] = "";
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&late.tid));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool read_it = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0;
    if (fd >= 0)
        close(fd);
    const char *name_ends = read_it ? strrchr(text, ')') : NULL;
    return !name_ends || name_ends[2] == 'R';
}

static void serve(uint32_t class, uint32_t object)
{
    static _Alignas(SERVED_PAGE) char source[SERVED_PAGE];
    const struct rm_alloc a = {.client = late.rm.client,
                               .parent = late.rm.device,
                               .object = object,
                               .class = class,
                               .status = UINT32_MAX,
                               .params = (uintptr_t)&late.params,
                               .params_size = bp.sim ? sizeof(late.params) : 0};
    struct uffdio_copy copy = {.dst = (uintptr_t)late.page, .src = (uintptr_t)source, .len = SERVED_PAGE};
    memcpy(source, &a, sizeof(a));
    (void)ioctl(served_faults, UFFDIO_COPY, &copy);
}

/* Three caps at once. False: the driver read before the page was gone. */
static bool ask_once(void)
{
    const uint32_t object = rm_name(&late.rm);
    pthread_t hogs[HOGS];
    bool won = false;
    late.params = rm_memory(BP_TIMES * bp.cap);
    atomic_store(&late.asked, false);
    atomic_store(&late.stop, false);
    (void)madvise(late.page, SERVED_PAGE, MADV_DONTNEED);
    for (size_t i = 0; i < HOGS; i++)
        hogs[i] = begin(hogging);
    const pthread_t asks = begin(asking);
    if (is_wanted()) {
        serve(RM_CLASS_MEMORY_VIRTUAL, object);
        while (!has_answer() && !atomic_load(&late.asked))
            ;
        (void)madvise(late.page, SERVED_PAGE, MADV_DONTNEED);
        won = is_wanted();
    }
    atomic_store(&late.stop, true);
    if (won)
        (void)usleep(HELD_US);
    serve(RM_CLASS_MEMORY_LOCAL, object); /* whoever waits for it must not for ever */
    (void)pthread_join(asks, NULL);
    for (size_t i = 0; i < HOGS; i++)
        (void)pthread_join(hogs[i], NULL);
    return won && late.rc == 0 && ((const struct rm_alloc *)late.page)->status == RM_OK;
}

static int let_through_long_ago(void)
{
    bool won = false;
    late.page = served_by_fault(true, -1);
    if (!late.page)
        bp_cannot("/dev/userfaultfd: %s", bp_result(-errno));
    rm_must_open(&late.rm);
    bp_got(bp_fill_up(&late.rm));
    late.cpu = leave_one();
    for (int i = 0; i < TRIES && !won; i++)
        won = ask_once();
    if (!won)
        bp_cannot("the driver always read the page before it was gone");
    bp_how("a call that was let through and takes effect after a quiet while: granted");
    return bp_hold();
}

const struct bp_attempt bp_late[] = {
    {"late", let_through_long_ago, BP_RAW | BP_ROOT,
     "a call let through, whose arguments come after a quiet while"},
    {0},
};
