/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - a library that is loaded before all others into a daemon under test: its clock jumps, its disk fails.
 *
 * What it does stands in a file that $BULKHEAD_TEST_FAULTS names and the test writes: how far the clock is off, and how many
 * out of a thousand writes and syncs fail. Only the daemon itself is touched, not what it starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_ms;       /* added to the time of day */
    uint32_t fail_permille; /* of writes and syncs below the state */
    uint32_t error;         /* an errno */
    uint64_t random;
    int64_t passed_ms; /* added to the time of day and to the time since boot: as if so much had passed */
};

int fdatasync(int fd);
int fsync(int fd);
ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at);
int clock_gettime(clockid_t clock, struct timespec *ret);

static volatile struct faults *faults(void)
{
    static volatile struct faults *at;
    static pid_t looked;
    const pid_t pid = (pid_t)syscall(SYS_getpid);
    if (looked == pid)
        return at;
    looked = pid;
    at = NULL;
    const char *path = getenv("BULKHEAD_TEST_FAULTS");
    if (!path || strcmp(program_invocation_short_name, "bulkheadd") != 0)
        return NULL;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        (void)syscall(SYS_close, fd);
    at = map == MAP_FAILED ? NULL : map;
    return at;
}

static int fails(void)
{
    volatile struct faults *f = faults();
    if (!f || !f->fail_permille)
        return 0;
    uint64_t x = f->random | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    f->random = x;
    if (x % 1000 >= f->fail_permille)
        return 0;
    errno = (int)f->error;
    return 1;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    const long rc = syscall(SYS_clock_gettime, clock, ret);
    const int day = clock == CLOCK_REALTIME;
    volatile struct faults *f = (day || clock == CLOCK_BOOTTIME) && rc == 0 ? faults() : NULL;
    if (f)
        ret->tv_sec += (f->passed_ms + (day ? f->clock_ms : 0)) / 1000;
    return (int)rc;
}

int fdatasync(int fd)
{
    return fails() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    return fails() ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}
