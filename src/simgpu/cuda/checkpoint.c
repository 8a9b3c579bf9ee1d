/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - suspending another process.
 *
 * As with the vendor's library a thread of the process itself does it, so that whoever stands at its system calls sees its
 * memory go and come. It listens on a socket that is named after the process; one connection is one order and its
 * answer. The caller must be root or of the same user. A process in another network namespace cannot be reached.
 */
#include "simgpu/cuda/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3, STACK = 256 * 1024, BACKLOG = 16 };
enum verb { STATE, LOCK, OUT, IN, UNLOCK, THREAD };

struct order {
    uint32_t verb, timeout_ms;
};
struct answer {
    int32_t result, value;
};

static struct {
    int fd;
    uint64_t cookie; /* of the socket: a program may close what it did not open, and open something else */
} keeper;

/* The same name from both sides; no file, so that it goes with the process. */
static socklen_t name_of(pid_t pid, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "bulkhead-sim-cuda-%d", (int)pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* --- the process itself --- */

static struct answer obey(const struct order *o)
{
    switch ((enum verb)o->verb) {
    case STATE:
        return (struct answer){CUDA_SUCCESS, bh_cu_freeze_state()};
    case LOCK:
        return (struct answer){bh_cu_freeze_lock(o->timeout_ms), 0};
    case OUT:
        return (struct answer){bh_cu_freeze_out(), 0};
    case IN:
        return (struct answer){bh_cu_freeze_in(), 0};
    case UNLOCK:
        return (struct answer){bh_cu_freeze_unlock(), 0};
    case THREAD:
        return (struct answer){CUDA_SUCCESS, (int32_t)syscall(SYS_gettid)};
    }
    return (struct answer){CUDA_ERROR_INVALID_VALUE, 0};
}

static void serve(int fd)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    struct order o;
    struct answer a = {CUDA_ERROR_NOT_PERMITTED, 0};
    if (recv(fd, &o, sizeof(o), 0) != (ssize_t)sizeof(o))
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && (who.uid == 0 || who.uid == geteuid()))
        a = obey(&o);
    (void)!send(fd, &a, sizeof(a), MSG_NOSIGNAL);
}

static void *keep(void *unused)
{
    (void)unused;
    while (bh_sim_socket_cookie(keeper.fd) == keeper.cookie) {
        int fd = accept4(keeper.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            break;
        if (fd < 0)
            continue;
        serve(fd);
        close(fd);
    }
    return NULL;
}

/* The thread runs in this library: whoever unloads it must not take the ground away. (Not by a link flag: a program that is given this
 * library as an auditor could then not start at all.) */
static void stay_loaded(void)
{
    static const char here;
    Dl_info info;
    if (dladdr(&here, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* A process that cannot have it cannot be suspended, and is none the worse. */
void bh_cu_keeper_start(void)
{
    struct sockaddr_un at;
    const socklen_t n = name_of(getpid(), &at);
    pthread_attr_t how;
    pthread_t thread;
    sigset_t all, before;
    int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    keeper.fd = low >= 0 && low < FIRST_FD ? fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD) : low;
    if (keeper.fd != low)
        close(low);
    if (keeper.fd < 0)
        return;
    keeper.cookie = bh_sim_socket_cookie(keeper.fd);
    bool made = bind(keeper.fd, (const struct sockaddr *)&at, n) == 0 && listen(keeper.fd, BACKLOG) == 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    if (made && pthread_attr_init(&how) == 0) {
        (void)pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        (void)pthread_attr_setstacksize(&how, STACK);
        stay_loaded();
        made = pthread_create(&thread, &how, keep, NULL) == 0;
        (void)pthread_attr_destroy(&how);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!made)
        close(keeper.fd);
}

/* --- whoever suspends it --- */

/* The listener's process must be the one that was meant: a name is anybody's, and a child may hold its parent's socket. */
static int reach(int pid)
{
    struct sockaddr_un at;
    const socklen_t n = name_of(pid, &at);
    struct ucred who;
    socklen_t n_who = sizeof(who);
    int fd = pid > 0 && kill(pid, 0) < 0 && errno == ESRCH
                 ? -1
                 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&at, n) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n_who) == 0 && who.pid == pid)
        return fd;
    close(fd);
    return -1;
}

static int ask(int pid, enum verb verb, uint32_t timeout_ms, int *ret)
{
    const struct order o = {.verb = verb, .timeout_ms = timeout_ms};
    struct answer a = {CUDA_ERROR_OPERATING_SYSTEM, 0};
    ssize_t n = -1;
    int fd = reach(pid);
    if (fd < 0)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (send(fd, &o, sizeof(o), MSG_NOSIGNAL) == (ssize_t)sizeof(o))
        do
            n = recv(fd, &a, sizeof(a), 0);
        while (n < 0 && errno == EINTR);
    close(fd);
    if (n != (ssize_t)sizeof(a))
        return CUDA_ERROR_OPERATING_SYSTEM; /* it ended meanwhile */
    if (ret && a.result == CUDA_SUCCESS)
        *ret = a.value;
    return a.result;
}

int cuCheckpointProcessGetState(int pid, int *ret)
{
    return ret ? ask(pid, STATE, 0, ret) : CUDA_ERROR_INVALID_VALUE;
}

int cuCheckpointProcessGetRestoreThreadId(int pid, int *ret)
{
    return ret ? ask(pid, THREAD, 0, ret) : CUDA_ERROR_INVALID_VALUE;
}

int cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    return ask(pid, LOCK, args ? args->timeout_ms : 0, NULL);
}

int cuCheckpointProcessCheckpoint(int pid, void *args)
{
    (void)args; /* all of it reserved */
    return ask(pid, OUT, 0, NULL);
}

/* Onto another card: not here. */
int cuCheckpointProcessRestore(int pid, void *args)
{
    return args ? CUDA_ERROR_NOT_SUPPORTED : ask(pid, IN, 0, NULL);
}

int cuCheckpointProcessUnlock(int pid, void *args)
{
    (void)args;
    return ask(pid, UNLOCK, 0, NULL);
}
