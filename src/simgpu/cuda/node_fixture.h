/* SPDX-License-Identifier: Apache-2.0 */
/* node_fixture.h - a simulated node in a process of its own, for as long as the test runs. */
#ifndef BH_SIMGPU_CUDA_NODE_FIXTURE_H
#define BH_SIMGPU_CUDA_NODE_FIXTURE_H

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

static void fixture_path(char ret[200], const char *name)
{
    (void)snprintf(ret, 200, "%s/%s", fixture_home, name);
}

static void fixture_end(void)
{
    char path[200];
    if (getpid() != fixture_owner)
        return;
    (void)!bh_sim_stop(&fixture_place, NULL);
    fixture_path(path, "libnvidia-ml.so.1");
    (void)unlink(path);
    fixture_path(path, "libcuda.so.1");
    (void)unlink(path);
    (void)rmdir(fixture_home);
}

/* The libraries only have to be there: the test is linked with what is in one of them. */
static void fixture_begin(const char *scene)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libcuda.so.1"};
    static struct bh_sim_node node;
    const char *tmp = getenv("TMPDIR");
    struct bh_err err = {0};
    char path[200];
    (void)snprintf(fixture_home, sizeof(fixture_home), "%.40s/bh-cuda-XXXXXX", tmp ? tmp : P_tmpdir);
    if (!mkdtemp(fixture_home))
        abort();
    for (size_t i = 0; i < 2; i++) {
        fixture_path(path, names[i]);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
    (void)setenv("BULKHEAD_SIM_HOME", fixture_home, 1);
    (void)setenv("BULKHEAD_SIM_LIB", fixture_home, 1);
    if (bh_sim_node_make(&node, scene, 1, &err) < 0 || bh_sim_start("n", &node, &fixture_place, &err) < 0) {
        printf("# %s\n", err.msg);
        abort();
    }
    (void)setenv("BULKHEAD_SIM", fixture_place.folder, 1);
    fixture_owner = getpid();
    (void)atexit(fixture_end);
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
