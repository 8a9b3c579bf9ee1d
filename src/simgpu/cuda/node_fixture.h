/* SPDX-License-Identifier: Apache-2.0 */
/* node_fixture.h - a simulated node in a process of its own, for as long as the test runs. */
#ifndef BH_SIMGPU_CUDA_NODE_FIXTURE_H
#define BH_SIMGPU_CUDA_NODE_FIXTURE_H

#include "base/scratch.h"
#include "base/test.h"
#include "simgpu/drv.h"
#include "simgpu/rm/rm.h"
#include "simgpu/serve/start.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char fixture_home[64];
static struct bh_sim_place fixture_place;
static pid_t fixture_owner;

static void fixture_end(void)
{
    if (getpid() == fixture_owner)
        (void)!bh_sim_stop(&fixture_place, NULL);
}

/* The libraries only have to be there: the test is linked with what is in one of them. */
static void fixture_begin(const char *scene)
{
    static struct bh_sim_node node;
    struct bh_err err = {0};
    if (!bh_scratch_make(fixture_home, sizeof(fixture_home), "cuda") ||
        !bh_scratch_put(fixture_home, "libnvidia-ml.so.1", "") ||
        !bh_scratch_put(fixture_home, "libcuda.so.1", ""))
        abort();
    (void)setenv("BULKHEAD_SIM_HOME", fixture_home, 1);
    (void)setenv("BULKHEAD_SIM_LIB", fixture_home, 1);
    if (bh_sim_node_make(&node, scene, 1, &err) < 0 || bh_sim_start("n", &node, &fixture_place, &err) < 0) {
        printf("# %s\n", err.msg);
        abort();
    }
    (void)setenv("BULKHEAD_SIM", fixture_place.folder, 1);
    fixture_owner = getpid();
    (void)atexit(fixture_end); /* before its folder goes */
}

static inline struct bh_sim_held fixture_held(void)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_HELD};
    struct bh_sim_held held = {.files = UINT64_MAX};
    (void)!bh_sim_call(&msg, &held, sizeof(held), -1, NULL);
    return held;
}

static inline int fixture_break(const char *words)
{
    char body[256];
    return bh_sim_order(&fixture_place, BH_SIM_OP_BREAK, 0, memcpy(body, words, strlen(words) + 1),
                        strlen(words), sizeof(body), NULL);
}

#endif
