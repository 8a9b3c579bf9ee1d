/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.c - a small lease of our own, with numbers that are known beforehand.
 *
 * Three processes: the tenant carries the real filter and takes memory by raw calls; the gate serves it; this one asks
 * the driver what it counts for the tenant after each step. They end with this one, and none of them is waited for longer
 * than PATIENCE_MS: a driver that hangs here would hang for the tenants too.
 */
#include "warden/selftest.h"

#include "base/mem.h"
#include "base/units.h"
#include "gpu/abi/rm.h"
#include "host/filter.h"
#include "simgpu/drv.h"
#include "warden/driver_rm.h"
#include "warden/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, FIRST_MEMORY = 0x0b100001, GPUS_MAX = 32 };
#define PIECE (64 * BH_MIB)
#define CAP   (96 * BH_MIB)
#define SLACK (8 * BH_MIB) /* what the driver may take for a client by itself */
/* Of the allocations that CUDA makes on this branch (data/recordings, paths). */
#define ATTR  UINT32_C(0x11800000)
#define ATTR2 UINT32_C(0x00100005)
#define FLAGS UINT32_C(0x0001c101)

enum step { READY, TOOK, ASKED_MORE, GAVE_BACK, STEPS };

/* What the three share. */
struct page {
    int listener;      /* the tenant's number for it */
    uint32_t gpu;      /* on which memory could be had */
    uint32_t more;     /* status of what is past the cap */
    uint64_t given;    /* bytes of the first piece */
    bool full;         /* so said every GPU that is not cut into instances */
    char trouble[256]; /* of the tenant: "" none */
    int gate_rc;
    char gate_trouble[256];
    struct bh_gate_stats stats;
};

struct run {
    const struct bh_driver *driver;
    struct page *page;
    int from_tenant[2], to_tenant[2];
    pid_t tenant, gate;
    int pidfd, listener;
    void *counter;
    size_t n_gpus;
    uint64_t counted[STEPS];
};

/* ---- the tenant ---- */

static int open_device(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}

static int issue(int fd, uint32_t cmd, void *arg)
{
    return ioctl(fd, cmd, arg);
}

/* As a program does it: the system call that the filter sees, also where silicon is simulated. */
static struct bh_driver_files files_of(const struct bh_driver *driver)
{
    return strcmp(driver->name, bh_driver_simulated.name) == 0
               ? (struct bh_driver_files){.open = bh_sim_open, .ioctl = bh_sim_ioctl}
               : (struct bh_driver_files){.open = open_device, .ioctl = issue};
}

static _Noreturn void give_up(struct page *page, const char *what, const char *why)
{
    (void)snprintf(page->trouble, sizeof(page->trouble), "%s: %s", what, why);
    _exit(1);
}

/* This step is done; the next one is waited for. */
static void next_step(const struct run *r, enum step step)
{
    const char byte = (char)step;
    char go;
    if (write(r->from_tenant[1], &byte, 1) != 1 || read(r->to_tenant[0], &go, 1) != 1)
        _exit(1);
}

static uint32_t take(const struct bh_driver_files *files, const struct bh_driver_rm_names *at,
                     uint32_t object, uint64_t *ret_given)
{
    struct rm_memory_params p = {.owner = at->client,
                                 .flags = FLAGS,
                                 .attr = ATTR,
                                 .attr2 = ATTR2,
                                 .size = PIECE,
                                 .alignment = 2 * BH_MIB};
    struct rm_alloc a = {.client = at->client,
                         .parent = at->device,
                         .object = object,
                         .class = RM_CLASS_MEMORY_LOCAL,
                         .params = (uintptr_t)&p};
    if (files->ioctl(at->ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0)
        return UINT32_MAX;
    *ret_given = p.size;
    return a.status;
}

/* On the first GPU that gives some: one that is cut into instances does not. */
static void take_first(struct run *r, const struct bh_driver_files *files, const void *self, size_t n_gpus,
                       struct bh_driver_rm_names *ret)
{
    uint32_t status = RM_CARD_NOT_PRESENT;
    bool full = false, odd = false;
    char said[32];
    for (uint32_t gpu = 0; gpu < n_gpus; gpu++) {
        if (!bh_driver_rm_names(self, gpu, ret))
            continue;
        r->page->gpu = gpu;
        status = take(files, ret, FIRST_MEMORY, &r->page->given);
        if (status == RM_OK)
            return;
        full |= status == RM_NO_MEMORY;
        odd |= status != RM_NO_MEMORY && status != RM_INVALID_STATE;
    }
    r->page->full = full && !odd;
    if (status == RM_INVALID_STATE && !full && !odd)
        give_up(r->page, "every GPU is cut into MIG instances", "the gate was not tried in one");
    (void)snprintf(said, sizeof(said), "status 0x%x", status);
    give_up(r->page, "64 MiB of video memory below a cap of 96 MiB were refused", said);
}

static _Noreturn void be_tenant(struct run *r)
{
    const struct bh_driver_files files = files_of(r->driver);
    struct bh_driver_rm_names at = {0};
    struct bh_err err = {0};
    void *self;
    size_t n_gpus;
    uint64_t none;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (bh_filter_install(0, &r->page->listener, &err) < 0)
        give_up(r->page, "the system call filter", err.msg);
    next_step(r, READY);
    close(r->page->listener);
    if (bh_driver_rm_open(&files, &self, &n_gpus, &err) < 0)
        give_up(r->page, "through the gate", err.msg);
    take_first(r, &files, self, n_gpus, &at);
    next_step(r, TOOK);
    r->page->more = take(&files, &at, FIRST_MEMORY + 1, &none);
    next_step(r, ASKED_MORE);
    struct rm_free f = {.client = at.client, .object = FIRST_MEMORY};
    if (files.ioctl(at.ctl, RM_IOC(RM_FREE, sizeof(f)), &f) < 0 || f.status != RM_OK)
        give_up(r->page, "giving memory back", "the driver refused it");
    next_step(r, GAVE_BACK);
    bh_driver_rm_close(self);
    _exit(0);
}

/* ---- the gate ---- */

static _Noreturn void be_gate(struct run *r)
{
    const struct bh_gate_config config = {.listener = r->listener,
                                          .root = r->pidfd,
                                          .root_pid = (uint32_t)r->tenant,
                                          .cap_bytes = CAP,
                                          .journal = -1,
                                          .driver = r->driver};
    struct bh_err err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(r->to_tenant[1]); /* else the tenant would never know that this process's parent is gone */
    close(r->from_tenant[0]);
    r->page->gate_rc = bh_gate_serve(&config, &r->page->stats, &err);
    (void)snprintf(r->page->gate_trouble, sizeof(r->page->gate_trouble), "%.255s", err.msg);
    _exit(0);
}

/* ---- this process ---- */

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "the self-test: %s: %s", what, strerrordesc_np(errno));
}

static int start_tenant(struct run *r, struct bh_err *err)
{
    if (pipe2(r->from_tenant, O_CLOEXEC) < 0 || pipe2(r->to_tenant, O_CLOEXEC) < 0)
        return fail_errno(err, "pipe");
    r->tenant = fork();
    if (r->tenant == 0) {
        close(r->from_tenant[0]);
        close(r->to_tenant[1]);
        be_tenant(r);
    }
    if (r->tenant < 0)
        return fail_errno(err, "fork");
    close(r->from_tenant[1]);
    close(r->to_tenant[0]);
    r->from_tenant[1] = r->to_tenant[0] = -1;
    r->pidfd = (int)syscall(SYS_pidfd_open, r->tenant, 0);
    return r->pidfd < 0 ? fail_errno(err, "pidfd_open") : BH_OK;
}

static int start_gate(struct run *r, struct bh_err *err)
{
    r->listener = (int)syscall(SYS_pidfd_getfd, r->pidfd, r->page->listener, 0);
    if (r->listener < 0)
        return fail_errno(err, "taking the listener");
    r->gate = fork();
    if (r->gate == 0)
        be_gate(r);
    if (r->gate < 0)
        return fail_errno(err, "fork");
    close(r->listener); /* when the gate is gone the tenant must hear it */
    r->listener = -1;
    return BH_OK;
}

/* Waits for the end of a child; false: it does not come. */
static bool await_end(pid_t *pid)
{
    struct pollfd at = {.fd = (int)syscall(SYS_pidfd_open, *pid, 0), .events = POLLIN};
    const bool ended = at.fd >= 0 && poll(&at, 1, PATIENCE_MS) == 1 && waitpid(*pid, NULL, 0) == *pid;
    if (at.fd >= 0)
        close(at.fd);
    if (ended)
        *pid = 0;
    return ended;
}

/* The tenant is gone before its time. What it met may be no more than a gate that gave up: then the gate knows why. */
static int why_it_failed(struct run *r, struct bh_err *err)
{
    struct page *p = r->page;
    const bool gate_ended = r->gate > 0 && await_end(&r->tenant) && await_end(&r->gate);
    p->trouble[sizeof(p->trouble) - 1] = p->gate_trouble[sizeof(p->gate_trouble) - 1] = '\0';
    if (gate_ended && p->gate_rc < 0)
        return bh_fail(err, BH_REFUSED, "%s", p->gate_trouble);
    /* The neighbours have all of it: that says nothing of the gate, unless it was the gate that refused. */
    if (gate_ended && p->full && p->stats.refused_memory == 0)
        return bh_fail(err, BH_BUSY,
                       "every GPU is full, so that the gate cannot be tried: it takes 64 MiB once, before "
                       "the first command after a boot; try again when somebody has ended");
    return bh_fail(err, BH_REFUSED, "%s",
                   p->trouble[0] ? p->trouble : "the process that makes it was killed");
}

static int await_step(struct run *r, enum step step, struct bh_err *err)
{
    struct pollfd at = {.fd = r->from_tenant[0], .events = POLLIN};
    char byte = -1;
    const int n = poll(&at, 1, PATIENCE_MS);
    if (n > 0 && read(r->from_tenant[0], &byte, 1) == 1 && byte == (char)step)
        return BH_OK;
    return n == 0 ? bh_fail(err, BH_REFUSED, "the driver did not answer for 30 seconds")
                  : why_it_failed(r, err);
}

static int count(struct run *r, enum step step, struct bh_err *err)
{
    const uint32_t pid = (uint32_t)r->tenant;
    uint64_t bytes[GPUS_MAX] = {0};
    int rc = r->driver->count(r->counter, &pid, 1, bytes, r->n_gpus < GPUS_MAX ? r->n_gpus : GPUS_MAX, err);
    r->counted[step] = bytes[r->page->gpu < GPUS_MAX ? r->page->gpu : 0];
    return rc;
}

static int walk(struct run *r, struct bh_err *err)
{
    int rc = r->driver->open(&r->counter, &r->n_gpus, err);
    if (rc == BH_OK)
        rc = start_tenant(r, err);
    for (int step = READY; rc == BH_OK && step < STEPS; step++) {
        rc = await_step(r, (enum step)step, err);
        if (rc == BH_OK && step == READY)
            rc = start_gate(r, err);
        if (rc == BH_OK && step != READY)
            rc = count(r, (enum step)step, err);
        if (rc == BH_OK && write(r->to_tenant[1], "", 1) != 1)
            rc = fail_errno(err, "the tenant");
    }
    return rc;
}

/* The tenant first: its filter goes when it has been waited for, and with the filter the gate ends. */
static int await_gate(struct run *r, struct bh_err *err)
{
    if (!await_end(&r->tenant) || !await_end(&r->gate))
        return bh_fail(err, BH_REFUSED, "%s does not end",
                       r->tenant ? "the process that made it" : "the gate");
    r->page->gate_trouble[sizeof(r->page->gate_trouble) - 1] = '\0';
    return r->page->gate_rc < 0 ? bh_fail(err, BH_REFUSED, "%s", r->page->gate_trouble) : BH_OK;
}

static bool near(uint64_t bytes, uint64_t want)
{
    return bytes >= want && bytes - want <= SLACK;
}

static int differs(struct bh_err *err, const char *what, uint64_t want, uint64_t seen)
{
    struct bh_unit_text a, b;
    return bh_fail(err, BH_REFUSED, "%s should be %s and is %s", what, bh_size_format(want, &a),
                   bh_size_format(seen, &b));
}

static int judge(const struct run *r, struct bh_err *err)
{
    const struct page *p = r->page;
    if (p->given != PIECE)
        return differs(err, "what the driver gave", PIECE, p->given);
    if (!near(r->counted[TOOK], PIECE))
        return differs(err, "the driver's count of a process with 64 MiB", PIECE, r->counted[TOOK]);
    if (p->more != RM_NO_MEMORY)
        return bh_fail(err, BH_REFUSED,
                       "what is past the cap should be answered with status 0x%x and was with 0x%x",
                       RM_NO_MEMORY, p->more);
    if (!near(r->counted[ASKED_MORE], PIECE))
        return differs(err, "the driver's count after a refusal", PIECE, r->counted[ASKED_MORE]);
    if (r->counted[GAVE_BACK] > SLACK)
        return differs(err, "the driver's count after all was given back", 0, r->counted[GAVE_BACK]);
    if (!near(p->stats.peak_bytes, PIECE))
        return differs(err, "the most that the gate's ledger held", PIECE, p->stats.peak_bytes);
    return BH_OK;
}

static void end_process(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static void clean_up(struct run *r)
{
    const int fds[] = {r->from_tenant[0], r->from_tenant[1], r->to_tenant[0],
                       r->to_tenant[1],   r->pidfd,          r->listener};
    end_process(r->tenant);
    end_process(r->gate);
    if (r->counter)
        r->driver->close(r->counter);
    for (size_t i = 0; i < BH_COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    (void)munmap(r->page, sizeof(*r->page));
}

int bh_selftest_now(const struct bh_driver *driver, const char *version, struct bh_err *err)
{
    struct run r = {
        .driver = driver, .from_tenant = {-1, -1}, .to_tenant = {-1, -1}, .pidfd = -1, .listener = -1};
    struct bh_err why = {0};
    r.page = mmap(NULL, sizeof(*r.page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r.page == MAP_FAILED)
        return fail_errno(err, "mmap");
    int rc = walk(&r, &why);
    if (rc == BH_OK)
        rc = await_gate(&r, &why);
    if (rc == BH_OK)
        rc = judge(&r, &why);
    clean_up(&r);
    if (rc == BH_REFUSED)
        return bh_fail(err, BH_REFUSED,
                       "no memory cap can be promised here, with %s driver %.31s: %.220s; whole GPUs and MIG "
                       "instances work without it",
                       driver->name, version, why.msg);
    return rc < 0 ? bh_fail(err, (enum bh_code)rc, "%s", why.msg) : BH_OK;
}

int bh_selftest(const struct bh_driver *driver, const char *version, struct bh_err *err)
{
    if (bh_selftest_remembered(driver, version))
        return BH_OK;
    const int rc = bh_selftest_now(driver, version, err);
    if (rc == BH_OK)
        bh_selftest_remember(driver, version);
    return rc;
}
