/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_load.c - the driver library whose calls suspend, and what NVML says of who holds what.
 *
 * The library is opened for one order and stays loaded. It is initialised first: a restore needs that, or persistence mode,
 * and an answer of not initialised is then about the other process.
 */
#include "base/mem.h"
#include "base/str.h"
#include "gpu/checkpoint.h"
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libcuda.so.1"

/* `ShdPnd: 0000000000000100`, of 64 signals the first last, four in a digit: is the ninth among those that it has not taken yet? */
static bool waits_kill(const char *line)
{
    static const char head[] = "ShdPnd:\t";
    enum { DIGITS = 16, DIGIT = DIGITS - 1 - (SIGKILL - 1) / 4 };
    return bh_str_starts(line, head) && strlen(line) >= sizeof(head) - 1 + DIGITS &&
           memchr("13579bdf", line[sizeof(head) - 1 + DIGIT], 8) != NULL;
}

/* Killed, and not gone yet; or dead, and its parent has not looked. One whose first thread alone has ended says that, too, and has
 * others. */
static bool is_ending(uint32_t pid)
{
    char path[40], line[128];
    bool dead = false, alone = false, killed = false;
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        dead |= bh_str_starts(line, "State:\tZ");
        alone |= bh_str_eq(line, "Threads:\t1\n");
        killed |= waits_kill(line);
    }
    if (f)
        fclose(f);
    return killed || (dead && alone);
}

static bool is_alive(uint32_t pid)
{
    return (kill((pid_t)pid, 0) == 0 || errno != ESRCH) && !is_ending(pid);
}

static void take_nap(void)
{
    const struct timespec t = {.tv_nsec = 50000000};
    (void)nanosleep(&t, NULL);
}

static void read_held(const uint32_t *pids, uint64_t *ret_bytes, size_t n)
{
    struct bh_gpu_snapshot s;
    memset(ret_bytes, 0, n * sizeof(*ret_bytes));
    if (bh_gpu_read(&bh_gpu_nvml, &s, NULL) < 0)
        return;
    for (size_t d = 0; d < s.devices.n; d++)
        for (size_t p = 0; p < s.devices.at[d].processes.n; p++)
            for (size_t i = 0; i < n; i++)
                if (s.devices.at[d].processes.at[p].pid == pids[i])
                    ret_bytes[i] += s.devices.at[d].processes.at[p].memory_bytes.v;
    bh_gpu_snapshot_fini(&s);
}

static int find_calls(void *library, const char *path, struct bh_checkpoint_ops *ret, struct bh_err *err)
{
    const struct {
        const char *name;
        void *to;
    } calls[] = {
        {"cuCheckpointProcessGetState", &ret->state},        {"cuCheckpointProcessLock", &ret->lock},
        {"cuCheckpointProcessCheckpoint", &ret->checkpoint}, {"cuCheckpointProcessRestore", &ret->restore},
        {"cuCheckpointProcessUnlock", &ret->unlock},         {"cuGetErrorName", &ret->error_name},
    };
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        void *at = dlsym(library, calls[i].name);
        if (!at)
            return bh_fail(err, BH_REFUSED,
                           "%.200s cannot suspend: it has no %s; this needs driver R570 (CUDA 12.8) or later",
                           path, calls[i].name);
        memcpy(calls[i].to, &at, sizeof(at));
    }
    return BH_OK;
}

static int start(void *library, const char *path, struct bh_err *err)
{
    __typeof__(cuInit) *init = NULL;
    void *at = dlsym(library, "cuInit");
    memcpy(&init, &at, sizeof(at));
    int result = init ? init(0) : (int)CUDA_ERROR_NOT_FOUND;
    /* On a card that is full to the last byte it may not start, and the calls may be made all the same. */
    return result && result != CUDA_ERROR_OUT_OF_MEMORY
               ? bh_fail(err, BH_SYSTEM, "%.200s does not start: CUDA error %d", path, result)
               : BH_OK;
}

/* Somebody who meant a simulated node must not suspend what runs on a real one, nor the other way round. */
static int check_kind(void *library, const char *path, struct bh_err *err)
{
    const bool simulated = dlsym(library, "bulkhead_simulated") != NULL;
    if (simulated == bh_gpu_expects_simulated())
        return BH_OK;
    return bh_fail(err, BH_CONFLICT, "%.200s is %s driver library, and this is %s node", path,
                   simulated ? "a simulated" : "a real", simulated ? "no simulated" : "a simulated");
}

static int load(struct bh_checkpoint_ops *ret, struct bh_err *err)
{
    const char *named = secure_getenv("BULKHEAD_CUDA"), *path = named && *named ? named : LIBRARY;
    *ret = (struct bh_checkpoint_ops){.alive = is_alive, .held = read_held, .nap = take_nap};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return bh_fail(
            err, BH_NOT_FOUND,
            "no CUDA driver library on this machine: looked for %.200s; install the NVIDIA driver, or "
            "name the library in BULKHEAD_CUDA",
            path);
    int rc = find_calls(library, path, ret, err);
    rc = rc < 0 ? rc : check_kind(library, path, err);
    return rc < 0 ? rc : start(library, path, err);
}

/* Threads that the library makes must leave the signals to whoever waits for them. */
static int load_quietly(struct bh_checkpoint_ops *ret, struct bh_err *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = load(ret, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int said(int rc, struct bh_err *err)
{
    return rc < 0 && bh_gpu_expects_simulated() ? bh_gpu_fail_simulated(rc, err) : rc;
}

int bh_checkpoint_suspend(const uint32_t *pids, size_t n, const struct bh_checkpoint_progress *progress,
                          struct bh_err *err)
{
    struct bh_checkpoint_ops ops;
    int rc = load_quietly(&ops, err);
    return said(rc < 0 ? rc : bh_checkpoint_suspend_by(&ops, pids, n, progress, err), err);
}

int bh_checkpoint_restore(const uint32_t *pids, size_t n, const struct bh_checkpoint_progress *progress,
                          struct bh_err *err)
{
    struct bh_checkpoint_ops ops;
    int rc = load_quietly(&ops, err);
    return said(rc < 0 ? rc : bh_checkpoint_restore_by(&ops, pids, n, progress, err), err);
}

int bh_checkpoint_state(uint32_t pid, enum cuda_process_state *ret, struct bh_err *err)
{
    struct bh_checkpoint_ops ops;
    int rc = load_quietly(&ops, err);
    return said(rc < 0 ? rc : bh_checkpoint_state_by(&ops, pid, ret, err), err);
}

int bh_checkpoint_states(const uint32_t *pids, size_t n, int *ret_states, struct bh_err *err)
{
    struct bh_checkpoint_ops ops;
    for (size_t i = 0; i < n; i++)
        ret_states[i] = BH_CHECKPOINT_UNTOLD;
    int rc = load_quietly(&ops, err);
    return said(rc < 0 ? rc : bh_checkpoint_states_by(&ops, pids, n, ret_states, err), err);
}
