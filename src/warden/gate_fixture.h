/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_fixture.h - a lease in a test: simulated silicon, a tenant with the real filter, and the gate in this process.
 *
 * Tenant and gate share a page for what the tenant found. A tenant says where it failed and ends.
 */
#ifndef BH_WARDEN_GATE_FIXTURE_H
#define BH_WARDEN_GATE_FIXTURE_H

#include "base/mem.h"
#include "base/units.h"
#include "host/filter.h"
#include "simgpu/serve/serve_fixture.h"
#include "warden/gate.h"
#include "wire/lease.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

typedef void tenant_fn(void);

static struct {
    volatile int line;           /* where a tenant failed; 0: nowhere */
    volatile uint64_t number[8]; /* for a test's own use */
    volatile pid_t warden;
} *shared;

static const uint64_t *lease_numbers;        /* eight, for the next tenant to find; NULL: zeros */
static const struct bh_driver *lease_driver; /* of the next lease; NULL: the simulated one as it is */
static enum bh_lease_view lease_view;        /* what the next lease shows; at first the card */
static bool lease_rdma;                      /* other devices may be told of its memory */

static uint32_t tenant_status; /* what the driver said last to a tenant that took or freed memory */

/* In a tenant: end when it does not hold. */
#define HOLDS(e)                                                                                    \
    do {                                                                                            \
        if (!(e)) {                                                                                 \
            shared->line = __LINE__;                                                                \
            fprintf(stderr, "# tenant: %s (status %#x: %s)\n", #e, tenant_status, strerror(errno)); \
            _exit(1);                                                                               \
        }                                                                                           \
    } while (0)

/* The filter is put on, the listener handed over, and then the tenant's part begins. */
static inline void tenant_main(tenant_fn *fn, int to_gate, int from_gate)
{
    struct bh_err err;
    int mine[2] = {(int)getpid(), -1};
    char byte;
    if (bh_filter_install(lease_view == BH_VIEW_CARD ? 0 : BH_FILTER_CONTROLS, &mine[1], &err) < 0) {
        fprintf(stderr, "# %s\n", err.msg);
        _exit(2);
    }
    HOLDS(write(to_gate, mine, sizeof(mine)) == (ssize_t)sizeof(mine));
    HOLDS(read(from_gate, &byte, 1) == 1);
    close(mine[1]);
    close(to_gate);
    close(from_gate);
    fn();
    _exit(0);
}

/* Somebody other than the gate waits for the tenant, so that it is gone as soon as it ended. */
static inline pid_t launch(tenant_fn *fn, int to_gate[2], int from_gate[2])
{
    (void)fflush(stdout);
    pid_t launcher = fork();
    if (launcher != 0)
        return launcher;
    int status = 1;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(to_gate[0]);
    close(from_gate[1]);
    pid_t tenant = fork();
    if (tenant == 0)
        tenant_main(fn, to_gate[1], from_gate[0]);
    close(to_gate[1]);
    (void)waitpid(tenant, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* What a gate needs of a tenant that was started. */
struct leased {
    pid_t launcher, tenant;
    int root, listener;
};

/* Starts a tenant and lets it go once its listener is here; false: it did not come to that. */
static inline bool lease_begin(tenant_fn *fn, struct leased *ret)
{
    int to_gate[2], from_gate[2], its[2];
    if (!shared)
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 0, sizeof(*shared));
    shared->warden = getpid();
    for (size_t i = 0; lease_numbers && i < BH_COUNT_OF(shared->number); i++)
        shared->number[i] = lease_numbers[i];
    if (pipe(to_gate) < 0 || pipe(from_gate) < 0)
        return false;
    ret->launcher = launch(fn, to_gate, from_gate);
    close(to_gate[1]);
    close(from_gate[0]);
    if (read(to_gate[0], its, sizeof(its)) != (ssize_t)sizeof(its))
        return false;
    ret->tenant = its[0];
    ret->root = (int)syscall(SYS_pidfd_open, its[0], 0);
    ret->listener = (int)syscall(SYS_pidfd_getfd, ret->root, its[1], 0);
    const bool good = ret->root >= 0 && ret->listener >= 0 && write(from_gate[1], "x", 1) == 1;
    close(to_gate[0]);
    close(from_gate[1]);
    return good;
}

/* Runs a lease to its end. The tenant's exit status, 128 and the signal, or -1: the gate failed. */
static inline int lease(uint64_t cap, tenant_fn *fn, struct bh_gate_stats *ret)
{
    struct leased l;
    int status;
    struct bh_err err = {0};
    if (!lease_begin(fn, &l))
        return -1;
    const struct bh_gate_config config = {.listener = l.listener,
                                          .root = l.root,
                                          .root_pid = (uint32_t)l.tenant,
                                          .cap_bytes = cap,
                                          .tick_ms = 5,
                                          .view = lease_view,
                                          .rdma = lease_rdma,
                                          .journal = -1,
                                          .driver = lease_driver ? lease_driver : &bh_driver_simulated};
    int rc = bh_gate_serve(&config, ret, &err);
    if (rc < 0)
        printf("# gate: %s\n", err.msg);
    close(l.listener);
    close(l.root);
    if (waitpid(l.launcher, &status, 0) != l.launcher || rc < 0)
        return -1;
    if (shared->line)
        printf("# tenant failed in line %d\n", shared->line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The last one of a lease may still be closing its files when the gate has ended. */
static inline bool holds_nothing_soon(void)
{
    for (int i = 0; i < 2000 && !sim_holds_nothing(); i++)
        (void)usleep(1000);
    return sim_holds_nothing();
}

/* ---- what a tenant does ---- */

enum { T_CLIENT = 0xc1d00001, T_DEV = 0x5c000001, T_MEM = 0x5c000100 };

static inline void until_killed(void)
{
    for (;;)
        (void)pause();
}

/* A client and a device on the first GPU. */
static inline int tenant_open(uint32_t client)
{
    struct rm_device_params device = {0};
    int fd = bh_sim_open("/dev/nvidiactl");
    HOLDS(fd >= 0);
    HOLDS(sim_alloc(fd, client, client, client, RM_CLASS_CLIENT, NULL, 0) == RM_OK);
    HOLDS(sim_alloc(fd, client, client, T_DEV, RM_CLASS_DEVICE, &device, 0) == RM_OK);
    return fd;
}

static inline uint32_t tenant_take(int fd, uint32_t client, uint32_t object, uint64_t bytes)
{
    struct rm_memory_params p = {.size = bytes};
    tenant_status = sim_alloc(fd, client, T_DEV, object, RM_CLASS_MEMORY_LOCAL, &p, 0);
    return tenant_status;
}

static inline uint32_t tenant_free(int fd, uint32_t client, uint32_t object)
{
    struct rm_free f = {.client = client, .object = object};
    tenant_status = bh_sim_ioctl(fd, RM_IOC(RM_FREE, sizeof(f)), &f) == 0 ? f.status : UINT32_MAX;
    return tenant_status;
}

/* ---- managed memory ---- */

static inline int uvm_open(void)
{
    uint64_t init[2] = {0};
    int fd = bh_sim_open("/dev/nvidia-uvm");
    HOLDS(fd >= 0);
    HOLDS(bh_sim_ioctl(fd, UVM_INITIALIZE, init) == 0);
    return fd;
}

/* What a thread does that is between the answer and the mapping: the gate's part, and later the node's. */
static inline void ask_to_map(int uvm, uint64_t bytes)
{
    HOLDS(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, uvm, 0) == MAP_FAILED && errno == ENODEV);
}

static inline void map_now(int uvm, uint64_t bytes)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MAP, .a = bytes, .b = 3, .c = MAP_SHARED};
    HOLDS(bh_sim_call(&msg, NULL, 0, uvm, NULL) == 0);
}

#endif
