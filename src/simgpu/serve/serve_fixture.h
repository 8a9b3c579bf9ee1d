/* SPDX-License-Identifier: Apache-2.0 */
/* serve_fixture.h - a server in a child process and a folder of its own, for tests. */
#ifndef BH_SIMGPU_SERVE_SERVE_FIXTURE_H
#define BH_SIMGPU_SERVE_SERVE_FIXTURE_H

#include "base/scratch.h"
#include "base/test.h"
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"
#include "simgpu/rm/rm.h"
#include "simgpu/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char sim_folder[64];
static pid_t sim_pid;

static inline void sim_told(void *arg)
{
    (void)!write(*(int *)arg, "x", 1);
}

/* The folder is made when it is not there; what is in it stays. */
static inline void sim_begin_again(size_t max_fds)
{
    static struct bh_sim_node node;
    int ends[2];
    char byte;
    if (bh_sim_node_make(&node, bh_sim_scenes[0].name, 1, NULL) < 0 || pipe(ends) < 0)
        abort();
    (void)fflush(stdout);
    sim_pid = fork();
    if (sim_pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed leaves nothing running */
        close(ends[0]);
        struct bh_sim_serve how = {
            .node = &node, .folder = sim_folder, .max_fds = max_fds, .ready = sim_told, .arg = &ends[1]};
        struct bh_err err;
        int rc = bh_sim_serve(&how, &err);
        if (rc < 0)
            fprintf(stderr, "# %s\n", err.msg);
        exit(rc < 0); /* not _exit: a leak is to be seen */
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        abort();
    close(ends[0]);
    (void)setenv("BULKHEAD_SIM", sim_folder, 1);
}

static inline void sim_begin_with(size_t max_fds)
{
    char proc[100];
    if (!bh_scratch_make(sim_folder, sizeof(sim_folder), "sim") || chmod(sim_folder, 0755) < 0)
        abort();
    (void)snprintf(proc, sizeof(proc), "%s/sysroot", sim_folder);
    (void)mkdir(proc, 0755);
    (void)snprintf(proc, sizeof(proc), "%s/sysroot/proc", sim_folder);
    (void)mkdir(proc, 0755);
    sim_begin_again(max_fds);
}

static inline void sim_begin(void)
{
    sim_begin_with(0);
}

/* -1: ended by a signal, or not at all. */
static inline int sim_wait_end(void)
{
    int status;
    return waitpid(sim_pid, &status, 0) == sim_pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ends the server; the folder must have become empty but for what the test put there. */
static inline bool sim_end(void)
{
    char path[100];
    (void)kill(sim_pid, SIGTERM);
    bool good = sim_wait_end() == 0;
    (void)snprintf(path, sizeof(path), "%s/sysroot/proc", sim_folder);
    good = rmdir(path) == 0 && good;
    (void)snprintf(path, sizeof(path), "%s/sysroot", sim_folder);
    good = rmdir(path) == 0 && good;
    (void)snprintf(path, sizeof(path), "%s/journal.rec", sim_folder);
    (void)unlink(path);
    return rmdir(sim_folder) == 0 && good;
}

static inline struct bh_sim_held sim_held(void)
{
    struct bh_sim_msg m = {.op = BH_SIM_OP_HELD};
    struct bh_sim_held held;
    memset(&held, 0xff, sizeof(held));
    (void)bh_sim_call(&m, &held, sizeof(held), -1, NULL);
    return held;
}

static inline bool sim_holds_nothing(void)
{
    static const struct bh_sim_held none;
    const struct bh_sim_held held = sim_held();
    return memcmp(&held, &none, sizeof(held)) == 0;
}

static inline uint32_t sim_alloc(int fd, uint32_t client, uint32_t parent, uint32_t object, uint32_t class,
                                 void *params, uint32_t n)
{
    struct rm_alloc a = {.client = client,
                         .parent = parent,
                         .object = object,
                         .class = class,
                         .params = (uintptr_t)params,
                         .params_size = n};
    return bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 ? a.status : UINT32_MAX;
}

enum { SIM_CLIENT = 0xc0001, SIM_DEV = 2, SIM_TSG = 3, SIM_CHAN = 4, SIM_MEM = 5, SIM_MEM_BYTES = 2 << 20 };

/* A client with a channel that runs, and some memory, on the first GPU. */
static inline bool sim_set_up(int fd, uint32_t client)
{
    uint32_t device[14] = {0}, group[5] = {0};
    struct rm_memory_params memory = {.size = SIM_MEM_BYTES};
    uint8_t schedule[3] = {1};
    struct rm_control c = {.client = client,
                           .object = SIM_TSG,
                           .command = RM_CTRL_GROUP_SCHEDULE,
                           .params = (uintptr_t)schedule,
                           .params_size = sizeof(schedule)};
    return sim_alloc(fd, client, client, client, RM_CLASS_CLIENT, NULL, 0) == RM_OK &&
           sim_alloc(fd, client, client, SIM_DEV, RM_CLASS_DEVICE, device, sizeof(device)) == RM_OK &&
           sim_alloc(fd, client, SIM_DEV, SIM_TSG, RM_CLASS_CHANNEL_GROUP, group, sizeof(group)) == RM_OK &&
           sim_alloc(fd, client, SIM_TSG, SIM_CHAN, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK &&
           sim_alloc(fd, client, SIM_DEV, SIM_MEM, RM_CLASS_MEMORY_LOCAL, &memory, sizeof(memory)) == RM_OK &&
           bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c) == 0 && c.status == RM_OK;
}

/* A connection with nothing between it and the server. */
static inline int sim_raw(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%.63s/rm.sock", sim_folder);
    return connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

static inline int exit_of(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline pid_t fork_quiet(void)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* One request, and what came back; -ENOTCONN: nothing. */
static inline struct bh_sim_msg raw_ask(int fd, const void *bytes, size_t n)
{
    struct bh_sim_msg m = {.result = 1};
    if (send(fd, bytes, n, MSG_NOSIGNAL) < 0 || recv(fd, &m, sizeof(m), 0) <= 0)
        m.result = -ENOTCONN;
    return m;
}

/* What only the owner may ask; 0 or errno. */
static inline int order(enum bh_sim_op op, uint64_t a, const char *words)
{
    char body[1024] = "";
    struct bh_sim_msg m = {.op = op, .a = a, .n_body = (uint32_t)strlen(words)};
    (void)snprintf(body, sizeof(body), "%s", words);
    return bh_sim_call(&m, body, sizeof(body), -1, NULL) == 0 ? 0 : errno;
}

static const uint64_t for_ever = UINT64_C(3600) * 1000000000;

#endif
