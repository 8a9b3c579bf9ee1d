/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounded.c - reading GPUs without being at the mercy of a driver.
 *
 * A call into a driver may wait for ever in the kernel, where no signal reaches it, and then a thread of ours
 * would keep the whole process from ending. So a child asks, and the parent only ever waits as long as it
 * said. Parent and child share a board: the child writes on it what it is about to ask, and at the end what it
 * saw. The board lies at the same address in both, so the snapshot's pointers hold on either side.
 */
#include "base/str.h"
#include "base/units.h"
#include "gpu/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SECONDS = 10,
    SECONDS_MAX = 3600,
    WHOLE = 6,        /* times what one call may take, for all those of one GPU */
    TICK_MS = 50,     /* how often the board is looked at */
    PARTING_MS = 500, /* how long an ended child is waited for */
    FIRST_FD = 3      /* below it are the standard ones, which the child gives up */
};
#define BOARD_BYTES ((size_t)64 << 20)

struct board {
    _Atomic(const char *) asked;
    atomic_uint gpu;
    atomic_uint n_gpus; /* how many were asked about so far */
    atomic_ulong steps;
    atomic_bool simulated;
    atomic_bool done; /* what follows is written */
    int rc;
    struct bh_err err;
    struct bh_gpu_snapshot seen;
};

/* Set in the child only. */
static struct board *board;

void bh_gpu_asking(const char *what)
{
    if (!board)
        return;
    atomic_store(&board->asked, what);
    atomic_fetch_add(&board->steps, 1);
}

void bh_gpu_asking_of(uint32_t gpu)
{
    if (!board)
        return;
    atomic_store(&board->gpu, gpu);
    if (gpu != BH_NO_ID && gpu >= atomic_load(&board->n_gpus))
        atomic_store(&board->n_gpus, gpu + 1);
}

void bh_gpu_asking_simulated(bool is_simulated)
{
    if (board)
        atomic_store(&board->simulated, is_simulated);
}

static int seconds_allowed(uint64_t *ret, struct bh_err *err)
{
    const char *text = secure_getenv("BULKHEAD_GPU_TIMEOUT");
    *ret = SECONDS;
    if (!text || !*text)
        return BH_OK;
    if (bh_uint_parse(text, SECONDS_MAX, ret, NULL) < 0 || *ret == 0)
        return bh_fail(err, BH_USAGE, "BULKHEAD_GPU_TIMEOUT takes seconds from 1 to %d, not '%.40s'",
                       SECONDS_MAX, text);
    return BH_OK;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Ends the child. It may hang for ever, so it must not keep a pipe of ours open. */
static _Noreturn void ask(struct board *b, const struct bh_gpu_backend *backend, int bell)
{
    struct bh_gpu_snapshot s;
    struct bh_gpu_room room = {(char *)b + (sizeof(*b) + 15) / 16 * 16,
                               BOARD_BYTES - (sizeof(*b) + 15) / 16 * 16};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nowhere >= 0 && fd < 3; fd++)
        (void)dup2(nowhere, fd);
    board = b;
    b->rc = bh_gpu_read_here(backend, &s, &b->err);
    if (b->rc == BH_OK && !bh_gpu_snapshot_copy(&b->seen, &s, &room))
        b->rc = bh_fail(&b->err, BH_TOO_LARGE, "the driver says more than %zu MiB about its GPUs",
                        BOARD_BYTES >> 20);
    atomic_store(&b->done, true);
    (void)!write(bell, "", 1);
    _exit(0);
}

/* What was asked last: ` nvmlDeviceGetTemperature of GPU 3`. */
static void last_asked(struct board *b, char *buf, size_t size)
{
    const char *asked = atomic_load(&b->asked);
    uint32_t gpu = atomic_load(&b->gpu);
    if (!asked)
        (void)snprintf(buf, size, "nothing yet");
    else if (gpu == BH_NO_ID)
        (void)snprintf(buf, size, "%s", asked);
    else
        (void)snprintf(buf, size, "%s of GPU %" PRIu32, asked, gpu);
}

enum waited { RANG, STANDS, CRAWLS };

/* The child rang the bell or ended, stands still, or takes far too long; *ret_ms says for how long. */
static enum waited wait_for(struct board *b, int bell, uint64_t patience_ms, uint64_t *ret_ms)
{
    uint64_t start = now_ms(), moved = start, now = start, gpus = 1;
    unsigned long steps = 0;
    while (now - moved < patience_ms && now - start < gpus * WHOLE * patience_ms) {
        struct pollfd p = {.fd = bell, .events = POLLIN};
        if (poll(&p, 1, TICK_MS) > 0)
            return RANG;
        now = now_ms();
        unsigned n = atomic_load(&b->n_gpus);
        gpus = n ? n : 1;
        unsigned long at = atomic_load(&b->steps);
        if (at != steps)
            moved = now;
        steps = at;
    }
    bool moves = now - moved < patience_ms;
    *ret_ms = moves ? now - start : now - moved;
    return moves ? CRAWLS : STANDS;
}

/* -1: it has not ended; it goes when the driver lets it. */
static int part(pid_t pid)
{
    int status;
    for (int i = 0; i < PARTING_MS; i++) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        (void)poll(NULL, 0, 1);
    }
    return -1;
}

static int fail_broken(struct board *b, int status, struct bh_err *err)
{
    char asked[160];
    last_asked(b, asked, sizeof(asked));
    if (status >= 0 && WIFSIGNALED(status))
        return bh_fail(err, BH_SYSTEM, "the driver's library crashed (signal %d); it was asked for %s",
                       WTERMSIG(status), asked);
    return bh_fail(err, BH_SYSTEM, "the driver's library ended the process; it was asked for %s", asked);
}

static int fail_late(struct board *b, enum waited waited, uint64_t ms, struct bh_err *err)
{
    char asked[160];
    last_asked(b, asked, sizeof(asked));
    if (waited == STANDS)
        return bh_fail(err, BH_BUSY,
                       "the driver has not answered for %" PRIu64
                       " s; it was asked for %s (BULKHEAD_GPU_TIMEOUT sets how long to wait)",
                       ms / 1000, asked);
    return bh_fail(err, BH_BUSY,
                   "the driver answers slowly: %lu calls in %" PRIu64
                   " s, the last %s; it was given up (BULKHEAD_GPU_TIMEOUT sets how long to wait)",
                   atomic_load(&b->steps), ms / 1000, asked);
}

static int oversee(struct board *b, pid_t pid, int bell, uint64_t seconds, struct bh_gpu_snapshot *ret,
                   struct bh_err *err)
{
    uint64_t ms = 0;
    enum waited waited = wait_for(b, bell, seconds * 1000, &ms);
    if (waited != RANG)
        (void)kill(pid, SIGKILL);
    int status = part(pid), rc;
    ret->simulated = atomic_load(&b->simulated);
    if (waited != RANG)
        rc = fail_late(b, waited, ms, err);
    else if (!atomic_load(&b->done))
        rc = fail_broken(b, status, err);
    else if (b->rc < 0) {
        ret->simulated = bh_str_starts(b->err.msg, BH_GPU_SIMULATED);
        return bh_fail(err, b->err.code, "%s", b->err.msg);
    } else {
        (void)bh_gpu_snapshot_copy(ret, &b->seen, NULL);
        return BH_OK;
    }
    return ret->simulated ? bh_gpu_fail_simulated(rc, err) : rc;
}

/* A pipe whose ends are not where the standard descriptors belong: those may be closed in this process. */
static int make_bell(int ret[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        ret[i] = low[i] < FIRST_FD ? fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FD) : low[i];
    for (int i = 0; i < 2; i++)
        if (ret[i] != low[i])
            (void)close(low[i]);
    if (ret[0] >= 0 && ret[1] >= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (ret[i] >= 0)
            (void)close(ret[i]);
    return -1;
}

int bh_gpu_read(const struct bh_gpu_backend *backend, struct bh_gpu_snapshot *ret, struct bh_err *err)
{
    uint64_t seconds;
    int bell[2], rc = seconds_allowed(&seconds, err);
    *ret = (struct bh_gpu_snapshot){0};
    if (rc < 0)
        return rc;
    struct board *b =
        mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b == MAP_FAILED)
        return bh_fail(err, BH_SYSTEM, "no memory to share with the process that reads the GPUs: %s",
                       strerror(errno));
    atomic_store(&b->gpu, BH_NO_ID);
    /* what is met before a library is loaded counts as well */
    atomic_store(&b->simulated, bh_gpu_expects_simulated());
    if (make_bell(bell) < 0) {
        rc = bh_fail(err, BH_SYSTEM, "no pipe to the process that reads the GPUs: %s", strerror(errno));
    } else {
        pid_t pid = fork();
        if (pid == 0)
            ask(b, backend, bell[1]);
        (void)close(bell[1]);
        rc = pid < 0 ? bh_fail(err, BH_SYSTEM, "no process to read the GPUs: %s", strerror(errno))
                     : oversee(b, pid, bell[0], seconds, ret, err);
        (void)close(bell[0]);
    }
    (void)munmap(b, BOARD_BYTES);
    return rc;
}
