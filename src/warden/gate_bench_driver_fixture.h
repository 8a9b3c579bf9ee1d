/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_bench_driver_fixture.h - the driver's part of a lease that is played in one process (gate_bench_fixture.h).
 *
 * The simulated manager, called directly. Its files are sockets whose other ends stay here, so that the last close is
 * seen as the kernel sees it. What the gate asks it for is watched, and it can be told to answer oddly.
 */
#ifndef BH_WARDEN_GATE_BENCH_DRIVER_FIXTURE_H
#define BH_WARDEN_GATE_BENCH_DRIVER_FIXTURE_H

#include "gpu/abi/rm.h"
#include "simgpu/rm/rm_fixture.h"
#include "warden/driver_rm.h"
#include "warden/gate.h"
#include "warden/gate_fault_fixture.h"
#include "wire/fds.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    BENCH_TENANTS = 4,
    BENCH_FILES = 64,
    BENCH_GPUS = 2,
    BENCH_PAGE = 4096,
    BENCH_PAGES = 4, /* data; a hole in every tenant; read-only there; data */
    BENCH_CONTROL_FD = 39,
    BENCH_FIRST_FD = 40, /* the tenants' numbers for files: eight */
    BENCH_FDS = 8,
    BENCH_RANGES = 24,
};

struct bench_file {
    int peer; /* our end; -1: free */
    uint64_t inode;
    uint32_t file; /* the manager's number */
    uint8_t kind;
};
struct bench_tenant {
    pid_t pid; /* 0: there is none */
    int pidfd, control;
};
/* Managed memory: a mapping of a process's, which outlives its descriptor and ends with the process. */
struct bench_range {
    pid_t pid; /* 0: free */
    uint32_t file;
    uint64_t range, bytes;
    bool behind; /* the gate, and the ledger, do not know it yet */
};
enum bench_next { BENCH_NOTHING, BENCH_CALLS, BENCH_OVER };
/* What is done about the next call of the gate to the driver. */
enum bench_odd {
    ODD_NOT,
    ODD_ERRNO,       /* fails without a try */
    ODD_ERRNO_AFTER, /* fails after it was done */
    ODD_STATUS,      /* done, and called refused */
    ODD_MORE,        /* says that it gave more than it was asked for */
    ODD_LESS,        /* says that it gave nothing */
    ODD_WAYS
};

static struct bench {
    struct bh_sim_rm *rm;
    struct bench_file files[BENCH_FILES];
    struct bench_tenant tenants[BENCH_TENANTS];
    struct bench_range ranges[BENCH_RANGES];
    uint8_t *memory; /* BENCH_PAGES, shared with every tenant at the same address */
    int listener, timer;
    enum bench_next (*next)(void); /* one step; BENCH_CALLS: notif is to be served */
    void (*answered)(int32_t error, bool goes_on);
    struct seccomp_notif notif;
    bool calls, over;
    enum { STAYS, GONE_BEFORE, GONE_AFTER } vanishes; /* when who asked is found to be gone */
    uint32_t caller;                                  /* tenant that asks */
    struct bh_ledger *ledger;
    uint64_t unseen[BENCH_GPUS]; /* obtained behind the gate since the driver's last count */
    uint64_t beyond[BENCH_GPUS]; /* how far past the cap that alone may have led */
    uint64_t cap;
    enum bench_odd odd;
    uint64_t ours[3]; /* addresses of our own that went to the driver */
    const char *why;
} bench;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

static inline void bench_fail(const char *why)
{
    if (!bench.why)
        bench.why = why;
}

/* ---- the driver ---- */

/* What was asked for by name; what the driver takes for itself is in no process's count. */
static inline uint64_t bench_taken(uint32_t gpu)
{
    static struct bh_sim_gpu_view view;
    uint64_t sum = 0;
    if (!bh_sim_rm_view_gpu(bench.rm, gpu, &view))
        return 0;
    for (uint32_t i = 0; i < view.n_processes && i < BH_COUNT_OF(view.processes); i++)
        sum += view.processes[i].bytes;
    return sum;
}

static inline uint64_t bench_managed_of(pid_t pid) /* 0: of all */
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BENCH_RANGES; i++)
        if (bench.ranges[i].pid && (!pid || bench.ranges[i].pid == pid))
            sum += bench.ranges[i].bytes;
    return sum;
}

static inline uint64_t bench_managed_behind(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BENCH_RANGES; i++)
        sum += bench.ranges[i].pid && bench.ranges[i].behind ? bench.ranges[i].bytes : 0;
    return sum;
}

static inline void bench_unmap(size_t i)
{
    if (bench.ranges[i].pid)
        (void)bh_sim_rm_unmap(bench.rm, bench.ranges[i].file, bench.ranges[i].range);
    bench.ranges[i].pid = 0;
}

/* As the tenant's own mmap would. */
static inline bool bench_map(pid_t pid, const struct bench_file *f, uint64_t bytes, bool behind)
{
    const struct bh_sim_caller who = {.pid = (uint32_t)pid};
    const struct bh_sim_map map = {.length = bytes, .prot = PROT_READ | PROT_WRITE, .flags = MAP_SHARED};
    size_t i = 0;
    uint64_t range;
    while (i < BENCH_RANGES && bench.ranges[i].pid)
        i++;
    if (i == BENCH_RANGES || f->kind != BH_FILE_UVM ||
        bh_sim_rm_map(bench.rm, f->file, &who, &map, &range) < 0)
        return false;
    bench.ranges[i] = (struct bench_range){pid, f->file, range, bytes, behind};
    return true;
}

/* What was closed for the last time is over for the manager. */
static inline void bench_hang_up(void)
{
    for (size_t i = 0; i < BENCH_FILES; i++) {
        struct pollfd p = {.fd = bench.files[i].peer};
        if (p.fd < 0 || __real_poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP))
            continue;
        bh_sim_rm_close(bench.rm, bench.files[i].file);
        close(p.fd);
        bench.files[i].peer = -1;
    }
}

/* The end that a tenant gets, or -1. */
static inline int bench_open(uint8_t kind, uint32_t gpu, uint32_t pid)
{
    const struct bh_sim_caller who = {.pid = pid};
    int ends[2];
    struct stat st;
    size_t i = 0;
    while (i < BENCH_FILES && bench.files[i].peer >= 0)
        i++;
    if (i == BENCH_FILES || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    int64_t file = bh_sim_rm_open(bench.rm, kind, gpu, &who);
    if (file < 0 || fstat(ends[0], &st) < 0)
        abort();
    bench.files[i] =
        (struct bench_file){.peer = ends[1], .inode = st.st_ino, .file = (uint32_t)file, .kind = kind};
    return ends[0];
}

static inline const struct bench_file *bench_file_of(int fd)
{
    struct stat st;
    bench_hang_up();
    for (size_t i = 0; fstat(fd, &st) == 0 && i < BENCH_FILES; i++)
        if (bench.files[i].peer >= 0 && bench.files[i].inode == st.st_ino)
            return &bench.files[i];
    return NULL;
}

/* Where a call's parameters are and how many bytes they have; a program leaves their size at 0. */
static inline size_t bench_params(uint32_t cmd, const void *arg, uint64_t *ret_at)
{
    static const struct {
        uint32_t class;
        int32_t bytes;
    } classes[] = {
#define CLASS(number, parents, params, kind) {number, params},
#include "simgpu/rm/classes.def"
#undef CLASS
    };
    struct rm_alloc a = {0};
    struct rm_control c;
    *ret_at = 0;
    if (RM_IOC_NUMBER(cmd) == RM_CONTROL && RM_IOC_SIZE(cmd) == sizeof(c)) {
        memcpy(&c, arg, sizeof(c));
        *ret_at = c.params;
        return c.params ? c.params_size : 0;
    }
    const bool is_long = RM_IOC_SIZE(cmd) == sizeof(a),
               is_short = RM_IOC_SIZE(cmd) == sizeof(struct rm_alloc_short);
    if (RM_IOC_NUMBER(cmd) != RM_ALLOC || (!is_long && !is_short))
        return 0;
    memcpy(&a, arg, sizeof(struct rm_alloc_short));
    uint32_t n = is_long ? ((const struct rm_alloc *)arg)->params_size
                         : ((const struct rm_alloc_short *)arg)->params_size;
    for (size_t i = 0; n == 0 && i < BH_COUNT_OF(classes); i++)
        if (classes[i].class == a.class && classes[i].bytes > 0)
            n = (uint32_t)classes[i].bytes;
    *ret_at = a.params;
    return a.params ? n : 0;
}

/* The machine's own memory, or addresses, that claim to be video memory, and memory of a kind that this card has not: the
 * real driver refuses them. */
static inline bool bench_is_absurd(uint32_t cmd, const void *arg)
{
    uint64_t at;
    struct rm_alloc_short a;
    struct rm_memory_params p;
    if (bench_params(cmd, arg, &at) != sizeof(p) || RM_IOC_NUMBER(cmd) != RM_ALLOC)
        return false;
    memcpy(&a, arg, sizeof(a));
    memcpy(&p, (const void *)(uintptr_t)at, sizeof(p));
    return (a.class == RM_CLASS_MEMORY_SYSTEM || a.class == RM_CLASS_VIRTUAL_RANGE ||
            a.class == RM_CLASS_MEMORY_EXTENDED) &&
           !(p.attr & RM_ATTR_LOCATION) && !(p.flags & RM_MEMORY_FLAG_VIRTUAL);
}

/* `Anywhere` is here: the choice that costs the tenant most. */
static inline void bench_choose_here(uint32_t cmd, void *arg)
{
    uint64_t at;
    uint32_t *attr = NULL;
    if (RM_IOC_NUMBER(cmd) == RM_VID_HEAP_CONTROL)
        attr = &((struct rm_vid_heap *)arg)->attr;
    else if (RM_IOC_NUMBER(cmd) == RM_ALLOC && bench_params(cmd, arg, &at) == sizeof(struct rm_memory_params))
        attr = &((struct rm_memory_params *)(uintptr_t)at)->attr;
    if (attr && (*attr & RM_ATTR_LOCATION) == RM_ATTR_LOCATION)
        *attr &= ~(uint32_t)RM_ATTR_LOCATION;
}

static inline int bench_manager(const struct bench_file *f, uint32_t pid, uint32_t cmd, void *arg)
{
    const struct bh_sim_caller who = {.pid = pid};
    uint64_t at;
    const size_t n = bench_params(cmd, arg, &at);
    return bh_sim_rm_ioctl(bench.rm, f->file, &who, cmd, arg, RM_IOC_SIZE(cmd),
                           n ? (void *)(uintptr_t)at : NULL, n);
}

static inline uint64_t bench_reserved(void)
{
    uint64_t sum = 0;
    for (uint32_t g = 0; g < BENCH_GPUS; g++)
        sum += bh_ledger_sum(bench.ledger, g).reserved;
    return sum;
}

/* Memory came past the gate: the next count will say so. */
static inline void bench_behind(const uint64_t before[BENCH_GPUS])
{
    for (uint32_t g = 0; g < BENCH_GPUS; g++) {
        const uint64_t now = bench_taken(g);
        bench.unseen[g] += now > before[g] ? now - before[g] : 0;
        bench.beyond[g] += now > before[g] ? now - before[g] : 0;
    }
}

static inline uint64_t *bench_size_in(uint32_t cmd, void *arg)
{
    uint64_t at;
    if (RM_IOC_NUMBER(cmd) == RM_VID_HEAP_CONTROL)
        return &((struct rm_vid_heap *)arg)->size;
    if (RM_IOC_NUMBER(cmd) == RM_ALLOC && bench_params(cmd, arg, &at) == sizeof(struct rm_memory_params))
        return &((struct rm_memory_params *)(uintptr_t)at)->size;
    return NULL;
}

static inline uint32_t *bench_status_in(uint32_t cmd, void *arg)
{
    switch (RM_IOC_NUMBER(cmd)) {
    case RM_ALLOC:
        return RM_IOC_SIZE(cmd) == sizeof(struct rm_alloc) ? &((struct rm_alloc *)arg)->status
                                                           : &((struct rm_alloc_short *)arg)->status;
    case RM_FREE:
        return &((struct rm_free *)arg)->status;
    case RM_DUP_OBJECT:
        return &((struct rm_dup *)arg)->status;
    case RM_ALLOC_MEMORY:
        return &((struct rm_alloc_memory *)arg)->status;
    case RM_VID_HEAP_CONTROL:
        return &((struct rm_vid_heap *)arg)->status;
    default:
        return NULL;
    }
}

/* A driver that does not keep its rules. Whatever it gave is there all the same. */
static inline int bench_oddly(enum bench_odd odd, int rc, uint32_t cmd, void *arg)
{
    uint64_t *size = bench_size_in(cmd, arg);
    uint32_t *status = bench_status_in(cmd, arg);
    if (odd == ODD_ERRNO_AFTER)
        return -EIO;
    if (odd == ODD_STATUS && rc == 0 && status)
        *status = RM_INSUFFICIENT_RESOURCES;
    if (odd == ODD_MORE && rc == 0 && size)
        *size += 6 * BH_MIB;
    if (odd == ODD_LESS && rc == 0 && size)
        *size = 0;
    return rc;
}

/* What the warden asks for itself. */
static inline int bench_ioctl_own(int fd, uint32_t cmd, void *arg)
{
    const struct bench_file *f = bench_file_of(fd);
    int rc = f ? bench_manager(f, (uint32_t)getpid(), cmd, arg) : -ENOTTY;
    if (rc < 0)
        errno = -rc;
    return rc < 0 ? -1 : 0;
}

/* What it asks for a tenant. */
static inline int bench_ioctl(int fd, uint32_t cmd, void *arg)
{
    const struct bench_file *f = bench_file_of(fd);
    const enum bench_odd odd = bench.odd;
    uint64_t before[BENCH_GPUS], sum = 0;
    if (!f) {
        errno = ENOTTY;
        return -1;
    }
    bench.ours[0] = (uintptr_t)arg;
    (void)bench_params(cmd, arg, &bench.ours[1]);
    bench.ours[2] = RM_IOC_SIZE(cmd) == sizeof(struct rm_alloc) ? ((struct rm_alloc *)arg)->rights : 0;
    bench.odd = ODD_NOT;
    for (uint32_t g = 0; g < BENCH_GPUS; g++)
        before[g] = bench_taken(g);
    const uint64_t reserved = bench.ledger ? bench_reserved() : 0;
    int rc = 0;
    bench_choose_here(cmd, arg);
    if (bench_is_absurd(cmd, arg))
        *bench_status_in(cmd, arg) = RM_INVALID_ARGUMENT;
    else
        rc = odd == ODD_ERRNO ? -EIO : bench_manager(f, (uint32_t)getpid(), cmd, arg);
    for (uint32_t g = 0; g < BENCH_GPUS; g++)
        sum += bench_taken(g) > before[g] ? bench_taken(g) - before[g] : 0;
    if (sum > reserved)
        bench_fail("the driver was asked for more than was reserved");
    if (odd != ODD_NOT) {
        bench_behind(before);
        rc = bench_oddly(odd, rc, cmd, arg);
    }
    if (rc < 0)
        errno = -rc;
    return rc < 0 ? -1 : 0;
}

/* ---- as the gate's driver ---- */

static inline struct bh_driver_file bench_identify(int fd)
{
    const struct bench_file *f = bench_file_of(fd);
    return (struct bh_driver_file){.kind = f ? f->kind : BH_FILE_OTHER};
}

static inline int bench_open_path(const char *path)
{
    return strcmp(path, "/dev/nvidiactl") == 0
               ? bench_open(BH_FILE_CTL, 0, (uint32_t)getpid())
               : bench_open(BH_FILE_GPU, (uint32_t)(path[strlen(path) - 1] - '0'), (uint32_t)getpid());
}

static inline int bench_count(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                              struct bh_err *err)
{
    bench_hang_up();
    int rc = bh_driver_rm_count(self, pids, n_pids, bytes, n_gpus, err);
    bool all = false; /* a count of the lease has the warden in it; others are of one process */
    for (size_t i = 0; i < n_pids; i++)
        all = all || pids[i] == (uint32_t)getpid();
    for (uint32_t g = 0; rc == BH_OK && all && g < BENCH_GPUS; g++) {
        const uint64_t now = bench_taken(g) + bench_managed_of(0);
        bench.unseen[g] = 0;
        bench.beyond[g] = now > bench.cap ? now - bench.cap : 0;
    }
    return rc;
}

static inline int64_t bench_mapped(uint32_t pid, const int *files, size_t n)
{
    (void)files;
    (void)n;
    for (size_t i = 0; i < BENCH_RANGES; i++)
        if (bench.ranges[i].pid == (pid_t)pid)
            bench.ranges[i].behind = false;
    return (int64_t)bench_managed_of((pid_t)pid);
}

static inline int bench_counter(void **ret_self, size_t *ret_gpus, struct bh_err *err)
{
    static const struct bh_driver_files files = {.open = bench_open_path, .ioctl = bench_ioctl_own};
    return bh_driver_rm_open(&files, ret_self, ret_gpus, err);
}

/* The rest is as with simulated silicon in a process of its own: it goes through the files given to it. */
static struct bh_driver bench_driver;
static inline void bench_driver_begin(void)
{
    bench_driver = bh_driver_simulated;
    bench_driver.name = "bench";
    bench_driver.identify = bench_identify;
    bench_driver.ioctl = bench_ioctl;
    bench_driver.count = bench_count;
    bench_driver.mapped = bench_mapped;
    bench_driver.open = bench_counter;
}

#endif
