/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm_tenant.c - tenants that speak to the driver without a library, made to be killed at any point.
 *
 * They obtain memory in every way that the gate carries out, give it back in every way there is, and find their bytes
 * unchanged. Nothing they ask for goes past a quarter of the cap, so a refusal is a failure. What one says it holds is
 * what it was told it has; whether the driver agrees is for the storm to see.
 */
#include "storm.h"

#include "base/mem.h"
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 12, MAPS = 2, DEVICE = 0x5c000001, FIRST = 0x5d000001, MARKS = 8 };

struct block {
    uint32_t handle; /* 0: none */
    uint64_t bytes;
    uint64_t mark[MARKS];
};

static struct {
    struct storm_page *page;
    struct storm_worker *me;
    uint64_t random;
    int ctl, uvm;
    uint32_t client, names;
    struct block blocks[BLOCKS];
    struct {
        void *at;
        uint64_t bytes, range;
    } maps[MAPS];
} w;

/* ---- failing ---- */

static _Noreturn void fail(int line, uint32_t with)
{
    atomic_store(&w.me->failed_with, with);
    atomic_store(&w.me->failed_line, (uint32_t)line);
    _exit(STORM_FAILED);
}
#define WANT(e, with)                         \
    do {                                      \
        if (!(e))                             \
            fail(__LINE__, (uint32_t)(with)); \
    } while (0)

/* Nobody answers any more: the end of this tenant, and no failure. */
static void leave_if_gone(int error)
{
    if (error != ENOSYS)
        return;
    atomic_store(&w.page->gate_gone, 1);
    _exit(STORM_NO_GATE);
}

static void call(int line, uint32_t number, void *arg, size_t size)
{
    if (bh_sim_ioctl(w.ctl, RM_IOC(number, size), arg) == 0)
        return;
    leave_if_gone(errno);
    fail(line, (uint32_t)errno);
}
#define CALL(number, arg) call(__LINE__, number, arg, sizeof(*(arg)))

/* ---- objects ---- */

static uint32_t make(int line, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    struct rm_alloc a = {
        .client = w.client, .parent = parent, .object = *object, .class = class, .params = (uintptr_t)params};
    call(line, RM_ALLOC, &a, sizeof(a));
    *object = a.object;
    return a.status;
}

static uint32_t unmake(uint32_t object)
{
    struct rm_free f = {.client = w.client, .object = object};
    CALL(RM_FREE, &f);
    return f.status;
}

static void open_client(void)
{
    struct rm_device_params params = {0};
    uint32_t device = DEVICE, status;
    w.client = 0;
    status = make(__LINE__, 0, &w.client, RM_CLASS_CLIENT, NULL);
    WANT(status == RM_OK, status);
    status = make(__LINE__, w.client, &device, RM_CLASS_DEVICE, &params);
    WANT(status == RM_OK, status);
}

static void open_files(void)
{
    uint64_t start[2] = {0};
    w.ctl = bh_sim_open("/dev/nvidiactl");
    w.uvm = bh_sim_open("/dev/nvidia-uvm");
    WANT(w.ctl >= 0 && w.uvm >= 0, errno);
    WANT(bh_sim_ioctl(w.uvm, UVM_INITIALIZE, start) == 0, errno);
    open_client();
}

static void forget_blocks(void)
{
    memset(w.blocks, 0, sizeof(w.blocks));
    atomic_store(&w.me->held, 0);
}

static struct block *pick(bool used)
{
    const size_t from = storm_random(&w.random) % BLOCKS;
    for (size_t i = 0; i < BLOCKS; i++) {
        struct block *b = &w.blocks[(from + i) % BLOCKS];
        if (!!b->handle == used)
            return b;
    }
    return NULL;
}

static uint64_t some_bytes(void)
{
    const uint64_t bytes = STORM_UNIT * (1 + storm_random(&w.random) % 12);
    const uint64_t most = w.page->cap_bytes / 4;
    return atomic_load(&w.me->held) + atomic_load(&w.me->mapped) + bytes <= most ? bytes : 0;
}

/* A mark at the end of it: whoever wrote there, it was not us. */
static void got(struct block *b, uint32_t handle, uint64_t bytes)
{
    b->handle = handle;
    b->bytes = bytes;
    atomic_fetch_add(&w.me->held, bytes);
    for (size_t i = 0; i < MARKS; i++)
        b->mark[i] = storm_random(&w.random);
    WANT(bh_sim_write(w.ctl, w.client, handle, bytes - sizeof(b->mark), b->mark, sizeof(b->mark)) >= 0,
         errno);
}

static void check(const struct block *b)
{
    uint64_t mark[MARKS] = {0};
    WANT(bh_sim_read(w.ctl, w.client, b->handle, b->bytes - sizeof(mark), mark, sizeof(mark)) >= 0, errno);
    WANT(memcmp(mark, b->mark, sizeof(mark)) == 0, 0);
}

/* ---- what a worker does ---- */

static void do_take(void)
{
    struct block *b = pick(false);
    struct rm_memory_params p = {.size = some_bytes()};
    uint32_t handle = FIRST + w.names++;
    if (!b || !p.size)
        return;
    const uint32_t status = make(__LINE__, DEVICE, &handle, RM_CLASS_MEMORY_LOCAL, &p);
    WANT(status == RM_OK, status);
    got(b, handle, p.size);
}

static void do_heap(void)
{
    struct block *b = pick(false);
    struct rm_vid_heap h = {.client = w.client,
                            .parent = DEVICE,
                            .function = RM_HEAP_ALLOC_SIZE,
                            .memory = FIRST + w.names++,
                            .size = some_bytes()};
    if (!b || !h.size)
        return;
    CALL(RM_VID_HEAP_CONTROL, &h);
    WANT(h.status == RM_OK, h.status);
    got(b, h.memory, h.size);
}

static void do_give(void)
{
    struct block *b = pick(true);
    if (!b)
        return;
    check(b);
    const uint32_t status = unmake(b->handle);
    WANT(status == RM_OK, status);
    atomic_fetch_sub(&w.me->held, b->bytes);
    b->handle = 0;
}

/* A second name, and the first one goes: the memory stays. */
static void do_rename(void)
{
    struct block *b = pick(true);
    if (!b)
        return;
    struct rm_dup d = {.client = w.client,
                       .parent = DEVICE,
                       .object = FIRST + w.names++,
                       .source_client = w.client,
                       .source_object = b->handle};
    CALL(RM_DUP_OBJECT, &d);
    WANT(d.status == RM_OK, d.status);
    const uint32_t status = unmake(b->handle);
    WANT(status == RM_OK, status);
    b->handle = d.object;
    check(b);
}

/* The driver says OK to that; what is left of the cap must not grow by it. */
static void do_free_nothing(void)
{
    (void)unmake(FIRST + w.names++);
}

static void do_map(void)
{
    const size_t i = storm_random(&w.random) % MAPS;
    if (w.maps[i].at) {
        WANT(bh_sim_munmap(w.uvm, w.maps[i].at, w.maps[i].bytes, w.maps[i].range) == 0, errno);
        atomic_fetch_sub(&w.me->mapped, w.maps[i].bytes);
        w.maps[i].at = NULL;
        return;
    }
    const uint64_t bytes = some_bytes();
    if (!bytes)
        return;
    void *at = bh_sim_mmap(w.uvm, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, &w.maps[i].range);
    if (at == MAP_FAILED)
        leave_if_gone(errno);
    WANT(at != MAP_FAILED, errno);
    w.maps[i].at = at;
    w.maps[i].bytes = bytes;
    atomic_fetch_add(&w.me->mapped, bytes);
}

static void do_free_client(void)
{
    const uint32_t status = unmake(w.client);
    WANT(status == RM_OK, status);
    forget_blocks();
    open_client();
}

static void drop_files(void)
{
    for (size_t i = 0; i < MAPS; i++)
        if (w.maps[i].at)
            WANT(bh_sim_munmap(w.uvm, w.maps[i].at, w.maps[i].bytes, w.maps[i].range) == 0, errno);
    memset(w.maps, 0, sizeof(w.maps));
    close(w.ctl);
    close(w.uvm);
    atomic_store(&w.me->mapped, 0);
    forget_blocks();
}

static void do_reopen(void)
{
    drop_files();
    open_files();
}

static void step(void)
{
    static const struct {
        uint8_t weight;
        void (*fn)(void);
    } steps[] = {{36, do_take}, {10, do_heap},        {26, do_give},  {8, do_rename},
                 {5, do_map},   {5, do_free_nothing}, {4, do_reopen}, {3, do_free_client}};
    uint64_t at = 0, sum = 0;
    for (size_t i = 0; i < BH_COUNT_OF(steps); i++)
        sum += steps[i].weight;
    at = storm_random(&w.random) % sum;
    for (size_t i = 0; i < BH_COUNT_OF(steps); at -= steps[i++].weight)
        if (at < steps[i].weight) {
            steps[i].fn();
            break;
        }
    atomic_fetch_add(&w.me->steps, 1);
}

/* All that is left of the cap, and then one unit more. */
static void probe(void)
{
    struct rm_memory_params p = {.size = atomic_load(&w.page->probe.bytes)}, one = {.size = STORM_UNIT};
    uint32_t all = FIRST + w.names++, more = FIRST + w.names++, one_more = RM_OK;
    const uint32_t fits = p.size ? make(__LINE__, DEVICE, &all, RM_CLASS_MEMORY_LOCAL, &p) : RM_OK;
    if (fits == RM_OK) {
        one_more = make(__LINE__, DEVICE, &more, RM_CLASS_MEMORY_LOCAL, &one);
        if (one_more == RM_OK)
            (void)unmake(more);
        if (p.size)
            WANT(unmake(all) == RM_OK, 0);
    }
    atomic_store(&w.page->probe.fits, fits);
    atomic_store(&w.page->probe.one_more, one_more);
    atomic_store(&w.page->probe.to, 0);
}

static void look_for_storm(void)
{
    if (kill((pid_t)w.page->storm, 0) < 0 && errno == ESRCH)
        _exit(0);
}

static void stand_still(void)
{
    for (uint32_t n; (n = atomic_load(&w.page->pause)) != 0;) {
        if (atomic_load(&w.page->probe.to) == (uint32_t)getpid())
            probe();
        atomic_store(&w.me->ack, n);
        (void)usleep(100);
        look_for_storm();
    }
}

static _Noreturn void work(size_t slot)
{
    w.me = &w.page->workers[slot];
    w.random = w.page->seed ^ (uint64_t)getpid() << 20 ^ slot;
    atomic_store(&w.me->pid, (uint32_t)getpid());
    open_files();
    while (!atomic_load(&w.page->quit)) {
        stand_still();
        step();
        if (storm_random(&w.random) % 4 == 0)
            (void)usleep((useconds_t)(storm_random(&w.random) % 1500));
        if (atomic_load(&w.me->steps) % 64 == 0)
            look_for_storm();
    }
    drop_files();
    _exit(0);
}

/* ---- the first process ---- */

static void spawn(size_t slot)
{
    struct storm_worker *s = &w.page->workers[slot];
    atomic_store(&s->held, 0);
    atomic_store(&s->mapped, 0);
    atomic_store(&s->ack, 0);
    const pid_t pid = fork();
    if (pid == 0)
        work(slot);
    if (pid > 0)
        atomic_store(&s->pid, (uint32_t)pid);
}

/* Workers that are killed are replaced; those that end by themselves mean the end. */
static int replace(pid_t pid, int status)
{
    for (size_t i = 0; i < STORM_WORKERS; i++) {
        struct storm_worker *s = &w.page->workers[i];
        if (atomic_load(&s->pid) != (uint32_t)pid)
            continue;
        atomic_store(&s->pid, 0);
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
        if (!atomic_load(&w.page->quit))
            spawn(i);
    }
    return 0;
}

int storm_nest(void)
{
    int status, rc = 0;
    w.page = mmap(NULL, sizeof(*w.page), PROT_READ | PROT_WRITE, MAP_SHARED, STORM_PAGE_FD, 0);
    if (w.page == MAP_FAILED) /* the first call that the gate is asked about */
        return errno == ENOSYS ? STORM_NO_GATE : STORM_FAILED;
    (void)setpgid(0, 0);
    atomic_store(&w.page->nest, (uint32_t)getpid());
    for (size_t i = 0; i < STORM_WORKERS; i++)
        spawn(i);
    for (pid_t pid; rc == 0 && (pid = wait(&status)) > 0;)
        rc = replace(pid, status);
    return rc;
}
