/* SPDX-License-Identifier: Apache-2.0 */
/*
 * races.c - arguments that change while the call is made.
 *
 * A second thread turns one word (or one descriptor) between what is harmless and what is not, as fast as it can. The gate
 * looks at one moment, the driver at another; a call that the gate carries out itself has only the first.
 */
#include "bypass.h"

#include "warden/served_page_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4000 };

static void *flipping(void *arg)
{
    struct bp_flip *f = arg;
    for (unsigned i = 0; !atomic_load_explicit(&f->stop, memory_order_relaxed); i++) {
        const uint64_t v = f->values[i & 1];
        if (f->fd >= 0)
            (void)dup2(f->files[i & 1], f->fd);
        else if (f->word32)
            *f->word32 = (uint32_t)v;
        else
            *f->word64 = v;
        if (i % 17 == 0) /* odd: it is left at either value alike */
            (void)sched_yield();
    }
    return NULL;
}

void bp_flip_begin(struct bp_flip *f)
{
    if (pthread_create(&f->thread, NULL, flipping, f) != 0)
        bp_cannot("no thread");
}

void bp_flip_end(struct bp_flip *f)
{
    atomic_store(&f->stop, true);
    (void)pthread_join(f->thread, NULL);
}

/* A turning word must not be kept in a register, and is not what a sanitizer looks for. */
static int ask(struct rm *r, struct rm_alloc *a)
{
    a->object = rm_name(r);
    a->status = UINT32_MAX;
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_ALLOC, sizeof(*a)), a);
    return rc < 0 ? rc : (int)a->status;
}

/* Asks until so many were granted; what came of them the driver knows. */
static unsigned ask_many(struct rm *r, struct rm_alloc *a, unsigned most)
{
    unsigned granted = 0;
    for (int i = 0; i < TRIES && granted < most; i++)
        granted += ask(r, a) == RM_OK;
    return granted;
}

static int flip_size(void)
{
    struct rm r;
    rm_must_open(&r);
    const uint64_t full = bp_fill_up(&r);
    struct rm_memory_params p = rm_memory(2 * MIB);
    struct rm_alloc a = {
        .client = r.client, .parent = r.device, .class = RM_CLASS_MEMORY_LOCAL, .params = (uintptr_t)&p};
    struct bp_flip f = {.fd = -1, .word64 = &p.size, .values = {64 * 1024, bp.piece}};
    bp_flip_begin(&f);
    const unsigned granted = ask_many(&r, &a, BP_TIMES * BP_PIECES);
    bp_flip_end(&f);
    bp_how("%llu MiB, then a size that changes, %d times: %u granted", (unsigned long long)(full / MIB),
           TRIES, granted);
    bp_got(full);
    return bp_hold();
}

/* Where the size is found changes: small here, large there. */
static int flip_pointer(void)
{
    struct rm r;
    rm_must_open(&r);
    const uint64_t full = bp_fill_up(&r);
    struct rm_memory_params small = rm_memory(64 * 1024), large = rm_memory(bp.piece);
    struct rm_alloc a = {.client = r.client, .parent = r.device, .class = RM_CLASS_MEMORY_LOCAL};
    struct bp_flip f = {.fd = -1, .word64 = &a.params, .values = {(uintptr_t)&small, (uintptr_t)&large}};
    a.params = f.values[0];
    bp_flip_begin(&f);
    unsigned granted = 0;
    for (int i = 0; i < TRIES && granted < BP_TIMES * BP_PIECES; i++) {
        small.size = 64 * 1024;
        large.size = bp.piece;
        granted += ask(&r, &a) == RM_OK;
    }
    bp_flip_end(&f);
    bp_how("%llu MiB, then a pointer that changes, %d times: %u granted", (unsigned long long)(full / MIB),
           TRIES, granted);
    bp_got(full);
    return bp_hold();
}

/* Who asked for a little less than a piece and was given one has met the class of memory behind the gate's back. */
static const uint64_t little = 4096;

static const char *story(unsigned won, unsigned answered)
{
    static char text[64];
    (void)snprintf(text, sizeof(text), "%u granted, of them %u as memory", answered, won);
    return text;
}

/* A class that runs in the tenant becomes one of memory, so often; *ret_memory: the last of them. */
static unsigned win(struct rm *r, uint64_t bytes, unsigned most, uint32_t *ret_memory, unsigned *ret_granted)
{
    struct rm_memory_params p = rm_memory(0);
    struct rm_alloc a = {.client = r->client,
                         .parent = r->device,
                         .class = RM_CLASS_MEMORY_VIRTUAL,
                         .params = (uintptr_t)&p,
                         .params_size =
                             bp.sim ? sizeof(p) : 0}; /* the real one knows it by the class alone */
    struct bp_flip f = {
        .fd = -1, .word32 = &a.class, .values = {RM_CLASS_MEMORY_VIRTUAL, RM_CLASS_MEMORY_LOCAL}};
    unsigned won = 0;
    *ret_granted = 0;
    bp_flip_begin(&f);
    for (int i = 0; i < TRIES && won < most; i++) {
        p = rm_memory(bytes - little);
        if (ask(r, &a) != RM_OK)
            continue;
        ++*ret_granted;
        if (p.size == bytes) {
            won++;
            *ret_memory = a.object;
        }
    }
    bp_flip_end(&f);
    return won;
}

static void race_class(struct rm *r, unsigned most)
{
    unsigned granted;
    uint32_t memory;
    const unsigned won = win(r, bp.piece, most, &memory, &granted);
    bp_how("a class that changes from addresses to memory: %s", story(won, granted));
}

static int flip_class(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    race_class(&r, BP_TIMES * BP_PIECES);
    return bp_hold();
}

/* Nothing was asked for a while: the gate looks less often then. */
static int flip_class_idle(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    (void)usleep(1500000);
    race_class(&r, BP_TIMES * BP_PIECES);
    return bp_hold();
}

enum { BY_CLOSE = 1, AFTER_A_WHILE = 2 };

/*
 * A won race below the cap is none of the gate's business yet. What was won is mapped through UVM, and its name goes before
 * anybody counts: with the file, or by itself.
 */
static int hide(const char *what, uint64_t bytes, unsigned times, unsigned how)
{
    struct rm first;
    struct uvm u;
    unsigned hidden = 0, granted;
    uint32_t memory;
    rm_must_open(&first);
    int rc = uvm_open(&u, &first);
    if (rc != RM_OK)
        bp_cannot("no UVM file: %s", bp_result(rc));
    for (unsigned i = 0; i < times && rc == RM_OK; i++) {
        struct rm r;
        if ((rc = rm_open(&r)) != RM_OK)
            break;
        if (win(&r, bytes, 1, &memory, &granted) == 1) {
            if (how & AFTER_A_WHILE) /* it has been counted, and was less than the cap */
                (void)usleep(100000);
            rc = uvm_map_memory(&u, &r, memory, bytes);
            if (rc == RM_OK && !(how & BY_CLOSE))
                rc = rm_free(&r, r.client, memory);
            hidden += rc == RM_OK;
        }
        rm_close(&r);
        if (rm_open(&r) == RM_OK) /* other files under the same numbers */
            rm_close(&r);
    }
    bp_how("%s: %u times %llu MiB, then %s", what, hidden, (unsigned long long)(bytes / MIB), bp_result(rc));
    bp_got(hidden * bytes);
    return bp_hold();
}

static int race_map_close(void)
{
    return hide("won by a race, mapped, its file closed", bp.piece, BP_TIMES * BP_PIECES, BY_CLOSE);
}

static int race_map_free(void)
{
    return hide("won by a race, mapped, its name freed", bp.piece, BP_TIMES * BP_PIECES, 0);
}

static int race_map_once(void)
{
    return hide("won once by a race, mapped, its file closed", BP_TIMES * bp.cap, 1, BY_CLOSE);
}

static int race_wait_close(void)
{
    return hide("won by a race, counted, mapped, its file closed", bp.piece, BP_TIMES * BP_PIECES,
                BY_CLOSE | AFTER_A_WHILE);
}

static int race_wait_free(void)
{
    return hide("won by a race, counted, mapped, its name freed", bp.piece, BP_TIMES * BP_PIECES,
                AFTER_A_WHILE);
}

static int flip_memory_class(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    struct rm_alloc_memory a = {.client = r.client,
                                .parent = r.device,
                                .class = RM_CLASS_MEMORY_VIRTUAL,
                                .limit = bp.piece - 1,
                                .fd = -1};
    struct bp_flip f = {
        .fd = -1, .word32 = &a.class, .values = {RM_CLASS_MEMORY_VIRTUAL, RM_CLASS_MEMORY_LOCAL}};
    unsigned granted = 0, won = 0;
    bp_flip_begin(&f);
    for (int i = 0; i < TRIES && won < BP_TIMES * BP_PIECES; i++) {
        a.object = rm_name(&r);
        a.limit = bp.piece - little - 1;
        if (dev_ioctl(r.ctl, RM_IOC(RM_ALLOC_MEMORY, sizeof(a)), &a) == 0 && a.status == RM_OK) {
            granted++;
            won += a.limit == bp.piece - 1;
        }
    }
    bp_flip_end(&f);
    bp_how("RM_ALLOC_MEMORY, a class that changes: %s", story(won, granted));
    return bp_hold();
}

/* A heap function that only asks becomes one that takes. */
static int flip_function(void)
{
    enum { INFO = 5 };
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    const struct rm_memory_params p = rm_memory(bp.piece);
    struct rm_vid_heap h = {.client = r.client, .parent = r.device, .function = INFO};
    struct bp_flip f = {.fd = -1, .word32 = &h.function, .values = {INFO, RM_HEAP_ALLOC_SIZE}};
    unsigned granted = 0, won = 0;
    bp_flip_begin(&f);
    for (int i = 0; i < TRIES && won < BP_TIMES * BP_PIECES; i++) {
        h.owner = r.client;
        h.memory = rm_name(&r);
        h.flags = p.flags;
        h.attr = p.attr;
        h.attr2 = p.attr2;
        h.size = bp.piece - little;
        if (dev_ioctl(r.ctl, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) == 0 && h.status == RM_OK) {
            granted++;
            won += h.size == bp.piece;
        }
    }
    bp_flip_end(&f);
    bp_how("a heap function that changes from info to memory: %s", story(won, granted));
    return bp_hold();
}

/* ---- the descriptor changes ---- */

static void race_fd(struct rm *r, uint32_t cmd, const char *what)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), turning = fcntl(nothing, F_DUPFD_CLOEXEC, 100);
    struct rm other = *r;
    struct bp_flip f = {.fd = turning, .files = {nothing, r->ctl}};
    unsigned granted = 0;
    other.ctl = turning;
    bp_flip_begin(&f);
    for (int i = 0; i < TRIES && granted < BP_TIMES * BP_PIECES; i++) {
        struct rm_memory_params p = rm_memory(bp.piece);
        struct rm_alloc a = {.client = r->client,
                             .parent = r->device,
                             .object = rm_name(r),
                             .class = RM_CLASS_MEMORY_LOCAL,
                             .status = UINT32_MAX,
                             .params = (uintptr_t)&p};
        granted += dev_ioctl(other.ctl, cmd, &a) == 0 && a.status == RM_OK;
    }
    bp_flip_end(&f);
    bp_how("%s, %d times: %u granted", what, TRIES, granted);
}

static int flip_fd(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    race_fd(&r, RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)), "a descriptor that changes to the driver's");
    return bp_hold();
}

/* On another file a command of another form is somebody else's business. */
static int flip_fd_form(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    race_fd(&r, RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)) ^ 0x1100, "the same with another type byte");
    return bp_hold();
}

/* The descriptor changes once, a while after the call began; each time after another while. */
struct shot {
    int fd, to;
    atomic_uint go, wait_ns;
};

static void *shooting(void *arg)
{
    struct shot *s = arg;
    for (unsigned seen = 0;;) {
        struct timespec from, now;
        while (atomic_load(&s->go) == seen)
            (void)sched_yield();
        seen = atomic_load(&s->go);
        if (seen == UINT_MAX)
            return NULL;
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        do
            (void)clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec <
               (long)atomic_load(&s->wait_ns));
        (void)dup2(s->to, s->fd);
    }
}

/* Until it is won. */
static int shoot(struct rm *r, int nothing, struct rm_alloc *a, uint32_t cmd)
{
    pthread_t thread;
    struct shot s = {.fd = fcntl(nothing, F_DUPFD_CLOEXEC, 100), .to = r->ctl};
    int rc = -ENOTTY;
    if (pthread_create(&thread, NULL, shooting, &s) != 0)
        bp_cannot("no thread");
    for (int tries = 0; tries < TRIES && rc != RM_OK; tries++) {
        (void)dup2(nothing, s.fd);
        atomic_store(&s.wait_ns, (unsigned)tries % 200 * 500);
        atomic_fetch_add(&s.go, 1);
        rc = dev_ioctl(s.fd, cmd, a);
        rc = rc < 0 ? rc : (int)a->status;
    }
    atomic_store(&s.go, UINT_MAX);
    (void)pthread_join(thread, NULL);
    return rc;
}

/* One win, after a quiet while: the gate, which sees somebody else's file, has no reason to look more often. Simulated
 * silicon lets it be won at the first try. */
static int flip_fd_once(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    (void)usleep(1500000);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const uint32_t cmd = RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)) ^ 0x1100;
    struct rm_memory_params p = rm_memory(bp.piece);
    struct rm_alloc a = {.client = r.client,
                         .parent = r.device,
                         .object = rm_name(&r),
                         .class = RM_CLASS_MEMORY_LOCAL,
                         .status = UINT32_MAX,
                         .params = (uintptr_t)&p};
    int rc = bp.sim ? dev_ioctl_turned(nothing, r.ctl, cmd, &a) : shoot(&r, nothing, &a, cmd);
    bp_how("a descriptor that changes once, after a quiet while: %s",
           bp_result(rc == 0 ? (int)a.status : rc));
    return bp_hold();
}

/* Managed memory: what is mapped is another file than what was looked at. */
static int flip_map_fd(void)
{
    struct rm r;
    struct uvm u;
    rm_must_open(&r);
    int rc = uvm_open(&u, &r);
    if (rc != RM_OK)
        bp_cannot("no UVM file: %s", bp_result(rc));
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), turning = fcntl(nothing, F_DUPFD_CLOEXEC, 100);
    struct bp_flip f = {.fd = turning, .files = {nothing, u.fd}};
    uint64_t mapped = 0, touched = 0;
    bp_flip_begin(&f);
    for (int i = 0; i < TRIES && mapped < BP_TIMES * bp.cap; i++) {
        uint64_t range;
        void *at = dev_map(turning, bp.piece, MAP_SHARED, &range);
        if (!at)
            continue;
        mapped += bp.piece;
        rc = dev_touch(u.fd, u.uuid, at, bp.piece, range);
        touched += rc == 0 ? bp.piece : 0;
    }
    bp_flip_end(&f);
    bp_how("a descriptor that changes to the UVM file during mmap: %llu MiB mapped, %llu MiB on the GPU (%s)",
           (unsigned long long)(mapped / MIB), (unsigned long long)(touched / MIB), bp_result(rc));
    bp_got(touched);
    return bp_hold();
}

/* The same, and always won: the gate never sees the UVM file. */
static int flip_map_won(void)
{
    struct rm r;
    struct uvm u;
    uint64_t got = 0, range;
    rm_must_open(&r);
    int rc = uvm_open(&u, &r);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (rc != RM_OK || nothing < 0)
        bp_cannot("no UVM file: %s", bp_result(rc));
    if (!bp.sim)
        bp_cannot("on a real card the race is run, as flip-map-fd");
    while (got < BP_TIMES * bp.cap) {
        void *at = dev_map_turned(nothing, u.fd, bp.piece, &range);
        rc = at ? dev_touch(u.fd, u.uuid, at, bp.piece, range) : -errno;
        if (rc != 0)
            break;
        got += bp.piece;
    }
    bp_how("mmap of a descriptor that always changes in time: %llu MiB on the GPU, then %s",
           (unsigned long long)(got / MIB), bp_result(rc));
    bp_got(got);
    return bp_hold();
}

/* ---- room for the race's gain ---- */

/* The gate allows the driver's count a little more for each process. So there are many, which do nothing. */
static int slack_farm(void)
{
    enum { FARM = 256 };
    struct rm r;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), done[2];
    char byte;
    if (pipe(done) < 0)
        bp_cannot("no pipe");
    for (int i = 0; i < FARM; i++)
        if (fork() == 0) {
            struct rm_free f = {0};
            (void)ioctl(nothing, RM_IOC(RM_FREE, sizeof(f)), &f); /* known to the gate from here on */
            (void)!write(done[1], "x", 1);
            bp_until_told();
            _exit(0);
        }
    for (int i = 0; i < FARM; i++)
        (void)!read(done[0], &byte, 1);
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    race_class(&r, BP_PIECES / 2);
    bp_how("beside %d processes that hold nothing", FARM);
    return bp_hold();
}

/* ---- the gate is kept waiting ---- */

/* Whoever reads it waits for us. */
static struct {
    const struct rm *rm;
    void *page;
} kept;

static void *asks_with_it(void *arg)
{
    (void)arg;
    (void)ioctl(kept.rm->ctl, RM_IOC(RM_FREE, sizeof(struct rm_free)), kept.page);
    return NULL;
}

/* First the gain, and at once the gate is made to read a page that never comes: it counts no more. */
static int stall_by(void *page, const char *what)
{
    struct rm r;
    pthread_t thread;
    if (!page)
        bp_cannot("%s: %s", what, strerror(errno));
    rm_must_open(&r);
    bp_got(bp_fill_up(&r));
    kept.rm = &r;
    kept.page = page;
    race_class(&r, BP_PIECES);
    if (pthread_create(&thread, NULL, asks_with_it, NULL) != 0)
        bp_cannot("no thread");
    bp_how("and the gate is made to read a page that never comes, %s", what);
    return bp_hold();
}

/* The call is refused to tenants; the device is root's. */
static int stall(void)
{
    if (served_by_fault(false, -1) || errno != EPERM)
        bp_bad("userfaultfd was granted");
    bp_how("userfaultfd: %s", bp_result(-errno));
    return stall_by(served_by_fault(true, -1), "by /dev/userfaultfd");
}

/* Mounted where every machine has a folder, seen by this process alone: who is ended leaves nothing behind. */
static int stall_file(void)
{
    return stall_by(served_by_file("/mnt", true), "from a file system of its own");
}

const struct bp_attempt bp_races[] = {
    {"flip-size", flip_size, BP_RAW, "the size changes during the call"},
    {"flip-pointer", flip_pointer, BP_RAW, "the pointer to the parameters changes during the call"},
    {"flip-class", flip_class, BP_RAW, "the class changes during a call that runs in the tenant"},
    {"flip-class-idle", flip_class_idle, BP_RAW, "the same after a quiet while"},
    {"race-map-close", race_map_close, BP_RAW,
     "won below the cap, mapped through UVM, its file closed at once"},
    {"race-map-once", race_map_once, BP_RAW, "the same, three caps in one win"},
    {"race-map-free", race_map_free, BP_RAW, "won below the cap, mapped through UVM, its name freed at once"},
    {"race-wait-close", race_wait_close, BP_RAW,
     "won below the cap and counted, then mapped, its file closed"},
    {"race-wait-free", race_wait_free, BP_RAW, "won below the cap and counted, then mapped, its name freed"},
    {"flip-memory-class", flip_memory_class, BP_RAW, "the class of RM_ALLOC_MEMORY changes during the call"},
    {"flip-function", flip_function, BP_RAW, "the function of RM_VID_HEAP_CONTROL changes during the call"},
    {"flip-fd", flip_fd, BP_RAW | BP_REAL,
     "a refused call looks to simulated silicon like one that nobody stood before"},
    {"flip-fd-form", flip_fd_form, BP_RAW, "the descriptor changes during a call in another form"},
    {"flip-fd-once", flip_fd_once, BP_RAW, "the same once, after a quiet while"},
    {"flip-map-fd", flip_map_fd, BP_RAW, "the descriptor changes to the UVM file during mmap"},
    {"flip-map-won", flip_map_won, BP_RAW, "the same, won every time"},
    {"slack-farm", slack_farm, BP_RAW, "a won race beside many idle processes"},
    {"stall", stall, BP_RAW | BP_ROOT, "a won race, then the gate is kept waiting for a page"},
    {"stall-file", stall_file, BP_RAW | BP_ROOT, "the same, for a page of a file that a process serves"},
    {0},
};
