/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_simulated.c - simulated silicon in the driver's place (BULKHEAD_SIM).
 *
 * Its files are sockets, so the node is asked what one is; everything else is as with the real driver.
 */
#include "warden/driver.h"

#include "simgpu/drv.h"
#include "warden/driver_rm.h"
#include "warden/peek.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool may_be(const struct bh_peek *seen)
{
    return S_ISSOCK(seen->mode);
}

static bool ask(int fd, struct bh_sim_msg *msg)
{
    struct bh_peek seen;
    *msg = (struct bh_sim_msg){.op = BH_SIM_OP_WHAT};
    bh_peek_own(fd, &seen);
    return may_be(&seen) && bh_sim_call(msg, NULL, 0, fd, NULL) == 0;
}

static struct bh_driver_file identify(int fd)
{
    struct bh_sim_msg msg;
    if (!ask(fd, &msg))
        return (struct bh_driver_file){.kind = BH_FILE_OTHER};
    return (struct bh_driver_file){.kind = (uint8_t)msg.a, .gpu = (uint32_t)msg.b};
}

static int64_t mapped(uint32_t pid, const int *files, size_t n)
{
    struct bh_sim_msg msg, all = {.op = BH_SIM_OP_MAPPED, .a = pid};
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (ask(files[i], &msg))
            sum += msg.c;
    /* Of a file that was inherited the node knows another process, and of one that was not seen nobody gave it. */
    if (bh_sim_call(&all, NULL, 0, -1, NULL) == 0 && all.a > sum)
        sum = all.a;
    return (int64_t)sum;
}

static int open_counter(void **ret_self, size_t *ret_gpus, struct bh_err *err)
{
    static const struct bh_driver_files files = {.open = bh_sim_open, .ioctl = bh_sim_ioctl_direct};
    return bh_driver_rm_open(&files, ret_self, ret_gpus, err);
}

static bool ask_busy(uint32_t gpu, struct bh_sim_msg *msg, struct bh_sim_busy *ret, size_t bytes)
{
    *msg = (struct bh_sim_msg){.op = BH_SIM_OP_BUSY, .a = gpu};
    return bh_sim_call(msg, ret, bytes, -1, NULL) == 0;
}

static int watch_busy(void *self, uint32_t gpu, struct bh_err *err)
{
    struct bh_sim_busy at[BH_SIM_BUSY_MAX];
    struct bh_sim_msg msg;
    if (!bh_driver_rm_counts(self, gpu))
        return bh_fail(err, BH_NOT_FOUND, "there is no GPU %u", gpu);
    if (!ask_busy(gpu, &msg, at, sizeof(at)))
        return bh_fail(err, BH_REFUSED, "the simulated node does not say who has GPU %u: %s", gpu,
                       strerror(errno));
    return BH_OK;
}

/* The node knows exactly, so nobody need begin to watch; and time is of work, never of merely having the card. */
static size_t busy(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max, uint64_t *ret_now_ns)
{
    struct bh_sim_busy at[BH_SIM_BUSY_MAX];
    struct bh_sim_msg msg;
    (void)self;
    if (!ask_busy(gpu, &msg, at, sizeof(at)))
        return 0;
    const size_t n = msg.n_body / sizeof(at[0]);
    for (size_t i = 0; i < n && i < max; i++)
        ret[i] = (struct bh_driver_busy){
            .pid = at[i].pid, .on = at[i].on, .ns = at[i].ns, .turns = at[i].turns, .use_permille = 1000};
    *ret_now_ns = msg.a;
    return n;
}

static int check(char version[32], struct bh_err *err)
{
    struct bh_sim_node_view node;
    if (bh_sim_hello(&node) < 0)
        return bh_fail(err, BH_NOT_FOUND, "the simulated node that BULKHEAD_SIM names does not answer: %s",
                       strerror(errno));
    _Static_assert(sizeof(node.driver) < 32, "a version does not fit");
    memcpy(version, node.driver, sizeof(node.driver));
    version[sizeof(node.driver)] = '\0';
    return bh_driver_rm_known(version, err);
}

const struct bh_driver bh_driver_simulated = {
    .name = "simulated",
    .may_be = may_be,
    .identify = identify,
    .ioctl = bh_sim_ioctl_direct,
    .count = bh_driver_rm_count,
    .counts = bh_driver_rm_counts,
    .hold = bh_driver_rm_hold,
    .let_go = bh_driver_rm_let_go,
    .held = bh_driver_rm_held,
    .client = bh_driver_rm_client,
    .set_running = bh_driver_rm_set_running,
    .watch_busy = watch_busy,
    .busy = busy,
    .mapped = mapped,
    .open = open_counter,
    .close = bh_driver_rm_close,
    .check = check,
};
