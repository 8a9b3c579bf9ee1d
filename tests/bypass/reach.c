/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - around the filter, and at the warden itself. */
#include "bypass.h"

#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- other doors into the kernel ---- */

static int io_uring(void)
{
    uint8_t params[256] = {0};
    long rc = syscall(SYS_io_uring_setup, 8, params);
    bp_expect("io_uring_setup", rc < 0 ? -errno : 0, -ENOSYS);
    rc = syscall(SYS_io_uring_enter, 0, 1, 0, 0, NULL, 0);
    bp_expect("io_uring_enter", rc < 0 ? -errno : 0, -ENOSYS);
    rc = syscall(SYS_io_uring_register, 0, 0, NULL, 0);
    bp_expect("io_uring_register", rc < 0 ? -errno : 0, -ENOSYS);
    return bp_hold();
}

/* 32-bit code can be run by any process; its pointers are 32 bits. */
static int compat_ioctl(void)
{
#ifdef __x86_64__
    enum { IOCTL_32 = 54 };
    struct rm r;
    rm_must_open(&r);
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED)
        bp_cannot("no low memory");
    struct rm_memory_params *p = (void *)(low + 1024);
    struct rm_alloc *a = (void *)low;
    *p = rm_memory(bp.piece);
    *a = (struct rm_alloc){.client = r.client,
                           .parent = r.device,
                           .object = rm_name(&r),
                           .class = RM_CLASS_MEMORY_LOCAL,
                           .params = (uintptr_t)p};
    long rc;
    __asm__ volatile("int $0x80"
                     : "=a"(rc)
                     : "a"(IOCTL_32), "b"(r.ctl), "c"(RM_IOC(RM_ALLOC, sizeof(*a))), "d"(low)
                     : "memory", "r8", "r9", "r10", "r11");
    bp_expect("ioctl by int 0x80", (int)rc, -ENOSYS);
    rc = syscall(0x40000000 + 514, r.ctl, RM_IOC(RM_ALLOC, sizeof(*a)), low);
    bp_expect("ioctl by x32's number", rc < 0 ? -errno : 0, -ENOSYS);
    rc = syscall(0x40000000 + SYS_ioctl, r.ctl, RM_IOC(RM_ALLOC, sizeof(*a)), low);
    bp_expect("ioctl by its own number and x32's bit", rc < 0 ? -errno : 0, -ENOSYS);
    return bp_hold();
#else
    bp_cannot("another architecture");
#endif
}

/* ---- filters of the tenant's own ---- */

static long install(unsigned flags, uint32_t action)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, action)};
    const struct sock_fprog program = {.len = COUNT(all), .filter = all};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0 ? -errno : 0;
}

/* A tracer's word counts less than a listener's. */
static long trace_ioctls(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int second_listener(void)
{
    bp_expect("a listener of its own", (int)install(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF),
              -EBUSY);
    bp_expect("with TSYNC",
              (int)install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
                               SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
                           SECCOMP_RET_USER_NOTIF),
              -EBUSY);
    struct rm r;
    rm_must_open(&r);
    (void)bp_fill_rm("then as it should be", &r);
    return bp_hold();
}

static void *idles(void *arg)
{
    (void)arg;
    bp_until_told();
    return NULL;
}

/* A filter that allows everything, on all threads: the stricter one of all is what counts. */
static int own_filter(void)
{
    pthread_t t;
    struct rm r;
    if (pthread_create(&t, NULL, idles, NULL) != 0)
        bp_cannot("no thread");
    bp_expect("a filter that allows all", (int)install(0, SECCOMP_RET_ALLOW), 0);
    bp_expect("one on all threads", (int)install(SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_ALLOW), 0);
    rm_must_open(&r);
    bp_expect("one that sends ioctls to a tracer", (int)trace_ioctls(), 0);
    (void)bp_fill_rm("below filters of its own", &r);
    return bp_hold();
}

/* ---- the warden ---- */

static bool read_text(const char *path, char *text, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static pid_t parent_of(pid_t pid)
{
    char path[40], text[2048];
    uint64_t parent = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (!read_text(path, text, sizeof(text)))
        return 0;
    char *at = strstr(text, "\nPPid:");
    at = at ? at + strlen("\nPPid:") : text + strlen(text);
    while (*at == ' ' || *at == '\t')
        at++;
    at[strcspn(at, "\n")] = '\0';
    return bh_uint_parse(at, INT32_MAX, &parent, NULL) < 0 ? 0 : (pid_t)parent;
}

/* It has the same parent as the command: the nearest ancestor with such a child. */
static pid_t find_warden(void)
{
    char path[40], name[64];
    for (pid_t up = parent_of(getpid()); up > 1; up = parent_of(up)) {
        DIR *proc = opendir("/proc");
        for (const struct dirent *e; proc && (e = readdir(proc));) {
            uint64_t pid;
            if (bh_uint_parse(e->d_name, INT32_MAX, &pid, NULL) < 0 || parent_of((pid_t)pid) != up)
                continue;
            (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
            if (read_text(path, name, sizeof(name)) && strncmp(name, "bulkhead-warden", 15) == 0) {
                (void)closedir(proc);
                return (pid_t)pid;
            }
        }
        if (proc)
            (void)closedir(proc);
    }
    bp_cannot("the warden is not to be seen from here");
}

static int strike(pid_t pid, int number)
{
    return kill(pid, number) < 0 ? -errno : 0;
}

static int open_of(pid_t pid, const char *name, int flags)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int warden_signals(void)
{
    static const int numbers[] = {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGINT, SIGABRT};
    struct rm r;
    pid_t warden = find_warden();
    for (size_t i = 0; i < COUNT(numbers); i++)
        bp_expect(sigabbrev_np(numbers[i]), strike(warden, numbers[i]), -EPERM);
    int pidfd = (int)syscall(SYS_pidfd_open, warden, 0);
    if (pidfd >= 0)
        bp_expect("by pidfd", syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 ? -errno : 0,
                  -EPERM);
    rm_must_open(&r);
    (void)bp_fill_rm("and the gate stands", &r);
    return bp_hold();
}

static int warden_files(void)
{
    static const struct {
        const char *name;
        int flags;
    } files[] = {{"mem", O_RDWR},    {"mem", O_RDONLY},     {"fd/0", O_RDWR},
                 {"maps", O_RDONLY}, {"environ", O_RDONLY}, {"root/proc/self/mem", O_RDWR}};
    pid_t warden = find_warden();
    for (size_t i = 0; i < COUNT(files); i++) {
        int rc = open_of(warden, files[i].name, files[i].flags);
        if (rc >= 0)
            bp_bad("/proc/WARDEN/%s could be opened", files[i].name);
        bp_how("/proc/WARDEN/%s: %s", files[i].name, bp_result(rc));
    }
    long rc = syscall(SYS_prlimit64, warden, 7 /* open files */, NULL, NULL);
    bp_how("prlimit: %s", rc < 0 ? strerrorname_np(errno) : "may look");
    struct {
        uint64_t soft, hard;
    } none = {0, 0};
    rc = syscall(SYS_prlimit64, warden, 7, &none, NULL);
    bp_expect("prlimit of its open files to 0", rc < 0 ? -errno : 0, -EPERM);
    return bp_hold();
}

/* Root may stop it: then everything waits, and nothing is granted. */
static int root_stops_warden(void)
{
    struct rm r;
    pid_t warden = find_warden();
    rm_must_open(&r);
    bp_expect("SIGSTOP by root", strike(warden, SIGSTOP), 0);
    (void)signal(SIGALRM, SIG_DFL);
    if (fork() == 0) {
        bp_how("the call waits while the warden is stopped");
        (void)rm_take(&r, bp.piece, NULL);
        bp_how("and was answered after it went on");
        _exit(0);
    }
    (void)usleep(300000);
    bp_expect("SIGCONT by root", strike(warden, SIGCONT), 0);
    (void)usleep(100000);
    return bp_hold();
}

/* Root may kill it: then video memory is refused to the lease. */
static int root_kills_warden(void)
{
    struct rm r;
    pid_t warden = find_warden();
    rm_must_open(&r);
    bp_expect("SIGKILL by root", strike(warden, SIGKILL), 0);
    (void)usleep(300000);
    int rc = rm_take(&r, bp.piece, NULL);
    if (rc == RM_OK)
        bp_how("memory without a warden: granted by the one in its place");
    else
        bp_how("memory without a warden: %s", bp_result(rc));
    uint64_t got = 0;
    while (rc == RM_OK && got < BP_TIMES * bp.cap && (rc = rm_take(&r, bp.piece, NULL)) == RM_OK)
        got += bp.piece;
    bp_got(got);
    return bp_hold();
}

const struct bp_attempt bp_reach[] = {
    {"io-uring", io_uring, BP_RAW, "io_uring"},
    {"compat-ioctl", compat_ioctl, BP_RAW, "ioctl by another architecture's call"},
    {"second-listener", second_listener, BP_RAW, "a seccomp listener of its own"},
    {"own-filter", own_filter, BP_RAW, "filters of its own, also on all threads"},
    {"warden-signals", warden_signals, BP_RAW, "signals to the warden"},
    {"warden-files", warden_files, BP_RAW, "the warden's files in /proc, and its limits"},
    {"root-stops-warden", root_stops_warden, BP_RAW | BP_ROOT, "root stops the warden"},
    {"root-kills-warden", root_kills_warden, BP_RAW | BP_ROOT, "root kills the warden"},
    {0},
};
