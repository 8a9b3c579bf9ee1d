/* SPDX-License-Identifier: Apache-2.0 */
/* peek.c - a tenant's open file by its link in /proc, which leads to it without asking its file system. */
#include "warden/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLOSING_MOST = 16 };

/* What the kernel remembers is enough: what kind of file it is does not change. */
void bh_peek_own(int fd, struct bh_peek *ret)
{
    struct statx st;
    *ret = (struct bh_peek){0};
    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
        (st.stx_mask & STATX_TYPE))
        *ret = (struct bh_peek){st.stx_mode, st.stx_rdev_major, st.stx_rdev_minor};
}

/* Its folder is for its user alone, which may be another one than ours, and is root where the process may not be looked at by
 * its like. For the one look this thread is that user: bare, as the C library would change every thread. */
static int open_as_owner(uint32_t tid, const char *path)
{
    char folder[32];
    struct stat st;
    (void)snprintf(folder, sizeof(folder), "/proc/%u/fd", tid);
    if (stat(folder, &st) < 0)
        return -1;
    const uid_t own = geteuid();
    (void)syscall(SYS_setfsuid, st.st_uid);
    const int at = open(path, O_PATH | O_CLOEXEC);
    const int error = errno;
    (void)syscall(SYS_setfsuid, own);
    errno = error;
    return at;
}

/* The place alone is opened (O_PATH), not the file: its file system hears neither of that nor of its end. */
int bh_peek(uint32_t tid, int fd, struct bh_peek *ret)
{
    char path[48];
    *ret = (struct bh_peek){0};
    if (fd < 0)
        return -EBADF;
    (void)snprintf(path, sizeof(path), "/proc/%u/fd/%d", tid, fd);
    int at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0 && errno == EACCES)
        at = open_as_owner(tid, path);
    if (at < 0)
        return errno == ENOENT ? -EBADF : -errno;
    bh_peek_own(at, ret);
    close(at);
    return 0;
}

/* ---- closing ---- */

static _Atomic uint32_t closing;

static void *close_it(void *arg)
{
    close((int)(intptr_t)arg);
    atomic_fetch_sub(&closing, 1);
    return NULL;
}

static bool starts_to_close(int fd)
{
    pthread_attr_t small;
    pthread_t thread;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, (size_t)64 << 10);
    (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed */
    const bool good = pthread_create(&thread, &small, close_it, (void *)(intptr_t)fd) == 0;
    (void)pthread_attr_destroy(&small);
    return good;
}

void bh_peek_close(int fd, struct bh_watchdog *w, uint32_t who)
{
    if (atomic_fetch_add(&closing, 1) < CLOSING_MOST && starts_to_close(fd))
        return;
    atomic_fetch_sub(&closing, 1);
    bh_watchdog_enter(w, who);
    close(fd);
    bh_watchdog_leave(w);
}
