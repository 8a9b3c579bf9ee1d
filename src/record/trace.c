/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - the recorder: ptrace for following, seccomp for stopping only where it matters.
 *
 * What a descriptor is, is asked of /proc each time it is used: duplicates, inherited and passed descriptors,
 * and numbers that are used again, need no book-keeping then, and cannot be got wrong.
 */
#include "record/trace.h"

#include "base/units.h"
#include "record/decode.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { ARCH = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCH = AUDIT_ARCH_AARCH64 };
#else
#error "the recorder knows x86-64 and arm64 only"
#endif

enum {
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
              PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL,
    PATH_BYTES = 4096,
    ARGS = 6,
    RESTART_MIN = 512, /* the kernel's own codes for a call that it makes again after a signal */
};

/* A thread of the command's that is inside a call worth recording. */
struct thread {
    pid_t tid, tgid;
    bool inside;
    uint64_t nr, args[ARGS];
    struct bh_call call; /* what is known before the call is made: open, close, map */
    uint8_t file, gpu;
    bool named; /* file and gpu are known; an open that succeeds says so itself */
};

struct recorder {
    const char *dev;
    struct bh_recording *out;
    struct bh_objects objects;
    BH_VEC(struct thread) threads;
    BH_VEC(pid_t) processes; /* by order of appearance */
    size_t now;              /* the process that the calls written last belong to, from 1 */
    pid_t command;
    int status;
    bool full;
    unsigned char bytes[BH_IOCTL_BYTES_MAX];
};

/* --- the command's side --- */

#define AT(field)               (uint32_t)offsetof(struct seccomp_data, field)
#define JUMP_IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define LOAD(field)             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(field))

/* An anonymous mapping, by far the commonest, has no file and is let through. */
static const struct sock_filter FILTER[] = {
    LOAD(arch),
    JUMP_IF(ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    LOAD(nr),
#ifdef SYS_open
    JUMP_IF(SYS_open, 8, 0),
#else
    JUMP_IF(SYS_openat, 8, 0),
#endif
    JUMP_IF(SYS_openat2, 7, 0),
    JUMP_IF(SYS_close_range, 6, 0),
    JUMP_IF(SYS_ioctl, 5, 0),
    JUMP_IF(SYS_openat, 4, 0),
    JUMP_IF(SYS_close, 3, 0),
    JUMP_IF(SYS_mmap, 0, 3),
    LOAD(args[4]),
    JUMP_IF(UINT32_MAX, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static int install_filter(void)
{
    struct sock_filter filter[BH_COUNT_OF(FILTER)];
    struct sock_fprog program = {.len = (unsigned short)BH_COUNT_OF(FILTER), .filter = filter};
    memcpy(filter, FILTER, sizeof(filter));
    /* Without the right to install a filter freely, set-user-id programs lose theirs: only then is it
     * given up. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        return 0;
    if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Never returns. Whatever goes wrong before the command runs is written to `failed`, which exec closes. */
static _Noreturn void be_command(char *const argv[], int go, int failed)
{
    char byte;
    if (read(go, &byte, 1) == 1) {
        close(go);
        if (install_filter() == 0)
            execvp(argv[0], argv);
        int error = errno;
        if (write(failed, &error, sizeof(error)) < 0)
            _exit(126);
    }
    _exit(127);
}

/* --- the recorder's side --- */

static struct thread *thread_find(struct recorder *r, pid_t tid)
{
    for (size_t i = r->threads.n; i-- > 0;)
        if (r->threads.at[i].tid == tid)
            return &r->threads.at[i];
    return NULL;
}

static pid_t tgid_of(pid_t tid)
{
    char path[64], line[256];
    uint64_t v = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "Tgid:\t", 6) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (bh_uint_parse(line + 6, INT32_MAX, &v, NULL) < 0)
            v = 0;
        break;
    }
    if (f)
        fclose(f);
    return v ? (pid_t)v : tid;
}

/* A new thread may stop before the call that made it has returned: whoever is seen first makes the entry. */
static struct thread *thread_get(struct recorder *r, pid_t tid)
{
    struct thread *t = thread_find(r, tid);
    if (!t) {
        t = bh_vec_push(&r->threads);
        *t = (struct thread){.tid = tid, .tgid = tgid_of(tid)};
    }
    return t;
}

static void thread_drop(struct recorder *r, pid_t tid)
{
    struct thread *t = thread_find(r, tid);
    if (t)
        *t = r->threads.at[--r->threads.n];
}

/* Its number in the recording is used up; a later process that gets the same pid is another one. */
static void process_drop(struct recorder *r, pid_t tgid)
{
    for (size_t i = 0; i < r->processes.n; i++)
        if (r->processes.at[i] == tgid)
            r->processes.at[i] = 0;
}

static void add(struct recorder *r, pid_t tgid, const struct bh_call *call)
{
    size_t number = 1;
    while (number <= r->processes.n && r->processes.at[number - 1] != tgid)
        number++;
    if (number > r->processes.n)
        *bh_vec_push(&r->processes) = tgid;
    if (r->out->calls.n + 2 > BH_RECORDING_CALLS_MAX) {
        r->full = true;
        return;
    }
    if (number != r->now && (r->now || number != 1)) {
        struct bh_call process = {.kind = BH_CALL_PROCESS, .what = (uint32_t)number};
        bh_recording_add(r->out, &process);
    }
    r->now = number;
    bh_recording_add(r->out, call);
}

static size_t peek(pid_t pid, uint64_t address, void *to, size_t n)
{
    struct iovec here = {to, n}, there = {(void *)(uintptr_t)address, n};
    ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool peek_params(void *ctx, uint64_t address, void *to, size_t n)
{
    const struct thread *t = ctx;
    return peek(t->tid, address, to, n) == n;
}

/* A text of the command's, read piece by piece: the page behind its end need not be there. */
static bool peek_text(pid_t pid, uint64_t address, char *to, size_t size)
{
    for (size_t at = 0; at + 1 < size;) {
        size_t n = 64 - (size_t)((address + at) % 64);
        n = n < size - at ? n : size - at;
        size_t got = peek(pid, address + at, to + at, n);
        if (memchr(to + at, '\0', got))
            return true;
        if (got < n)
            return false;
        at += got;
    }
    to[size - 1] = '\0';
    return true;
}

static bool fd_file(struct recorder *r, const struct thread *t, uint64_t fd, uint8_t *ret_file,
                    uint8_t *ret_gpu)
{
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)t->tid, (int)(uint32_t)fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    return bh_call_file(r->dev, path, ret_file, ret_gpu);
}

/* Each says whether the call is worth stopping at again when it returns. */
static bool enter_ioctl(struct recorder *r, struct thread *t)
{
    char text[BH_RECORDING_TEXT_MAX];
    if ((uint32_t)t->args[1] == BH_RECORD_MARK && (int32_t)t->args[0] == -1) {
        if (peek_text(t->tid, t->args[2], text, sizeof(text))) {
            struct bh_call mark = {.kind = BH_CALL_MARK, .text = text};
            add(r, t->tgid, &mark);
        }
        return false;
    }
    return fd_file(r, t, t->args[0], &t->file, &t->gpu);
}

/* What was opened is asked of the descriptor; the path says it where there is none, and saves asking
 * elsewhere. */
static bool enter_open(struct recorder *r, struct thread *t, uint64_t address)
{
    char path[PATH_BYTES];
    if (!peek_text(t->tid, address, path, sizeof(path)) || !strstr(path, "nvidia"))
        return false;
    t->named = bh_call_file(r->dev, path, &t->file, &t->gpu);
    t->call = (struct bh_call){.kind = BH_CALL_OPEN};
    return true;
}

static bool enter_close(struct recorder *r, struct thread *t)
{
    t->call = (struct bh_call){.kind = BH_CALL_CLOSE};
    t->named = fd_file(r, t, t->args[0], &t->file, &t->gpu);
    return t->named;
}

/* Its descriptors are known only until it is made, and with good arguments it does not fail: recorded at once. */
static bool enter_close_range(struct recorder *r, struct thread *t)
{
    const uint32_t first = (uint32_t)t->args[0], last = (uint32_t)t->args[1];
    char path[64];
    uint64_t fd;
    if (first > last || t->args[2] & ~(uint64_t)CLOSE_RANGE_UNSHARE)
        return false; /* closes nothing: refused, or CLOSE_RANGE_CLOEXEC */
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)t->tid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct bh_call call = {.kind = BH_CALL_CLOSE};
        if (bh_uint_parse(e->d_name, INT32_MAX, &fd, NULL) == BH_OK && fd >= first && fd <= last &&
            fd_file(r, t, fd, &call.file, &call.gpu))
            add(r, t->tgid, &call);
    }
    if (d)
        closedir(d);
    return false;
}

static bool enter_map(struct recorder *r, struct thread *t)
{
    t->call = (struct bh_call){
        .kind = BH_CALL_MAP, .size = t->args[1], .what = (uint32_t)t->args[2], .flags = (uint32_t)t->args[3]};
    t->named = !(t->args[3] & MAP_ANONYMOUS) && fd_file(r, t, t->args[4], &t->file, &t->gpu);
    return t->named;
}

static bool enter(struct recorder *r, struct thread *t)
{
    switch (t->nr) {
    case SYS_ioctl:
        return enter_ioctl(r, t);
    case SYS_openat:
    case SYS_openat2:
        return enter_open(r, t, t->args[1]);
#ifdef SYS_open
    case SYS_open:
        return enter_open(r, t, t->args[0]);
#endif
    case SYS_close:
        return enter_close(r, t);
    case SYS_close_range:
        return enter_close_range(r, t);
    case SYS_mmap:
        return enter_map(r, t);
    default:
        return false;
    }
}

static void decode(struct recorder *r, struct thread *t, int error, struct bh_call *ret)
{
    uint32_t cmd = (uint32_t)t->args[1];
    size_t want = bh_ioctl_bytes(t->file, cmd);
    struct bh_ioctl in = {
        .file = t->file,
        .gpu = t->gpu,
        .cmd = cmd,
        .bytes = r->bytes,
        .n = want ? peek(t->tid, t->args[2], r->bytes, want) : 0,
        .error = error,
        .read = peek_params,
        .ctx = t,
    };
    bh_ioctl_decode(&r->objects, &in, ret);
}

static void leave(struct recorder *r, struct thread *t, int error, uint64_t value)
{
    struct bh_call call = t->call;
    if (error >= RESTART_MIN)
        return;
    if (t->nr == SYS_ioctl) {
        decode(r, t, error, &call);
    } else {
        bool opened = call.kind == BH_CALL_OPEN && !error;
        if (opened ? !fd_file(r, t, value, &t->file, &t->gpu) : !t->named)
            return;
        call.file = t->file;
        call.gpu = t->gpu;
        call.error = error;
    }
    add(r, t->tgid, &call);
}

/* At the seccomp filter's stop. True: go on to the end of this call. */
static bool at_entry(struct recorder *r, struct thread *t)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_SECCOMP)
        return false;
    t->nr = info.seccomp.nr;
    memcpy(t->args, info.seccomp.args, sizeof(t->args));
    t->inside = enter(r, t);
    return t->inside;
}

static void at_exit(struct recorder *r, struct thread *t)
{
    struct __ptrace_syscall_info info;
    if (t->inside && ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_EXIT)
        leave(r, t, info.exit.is_error ? (int)-info.exit.rval : 0, (uint64_t)info.exit.rval);
    t->inside = false;
}

static void resume(enum __ptrace_request how, pid_t tid, int signal)
{
    /* A thread that was killed meanwhile is reported by waitpid. */
    (void)ptrace(how, tid, NULL, (void *)(intptr_t)signal);
}

static void at_event(struct recorder *r, struct thread *t, int event, int signal)
{
    unsigned long message = 0;
    bool to_exit = false;
    switch (event) {
    case PTRACE_EVENT_SECCOMP:
        to_exit = at_entry(r, t);
        break;
    case PTRACE_EVENT_EXEC:
        /* Whichever thread called exec, it goes on under the process's number; the others are gone. */
        t->inside = false;
        if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message) == 0 && (pid_t)message != t->tid)
            thread_drop(r, (pid_t)message);
        break;
    case PTRACE_EVENT_STOP:
        /* A stop of the whole process, by SIGSTOP and the like: let it be stopped, and be woken by
         * SIGCONT. */
        if (signal != SIGTRAP) {
            resume(PTRACE_LISTEN, t->tid, 0);
            return;
        }
        break;
    default:
        break;
    }
    resume(to_exit ? PTRACE_SYSCALL : PTRACE_CONT, t->tid, 0);
}

static void at_stop(struct recorder *r, pid_t tid, int status)
{
    struct thread *t = thread_get(r, tid);
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event) {
        at_event(r, t, event, signal);
    } else if (signal == (SIGTRAP | 0x80)) {
        at_exit(r, t);
        resume(PTRACE_CONT, tid, 0);
    } else {
        /* A signal on its way. Inside a recorded call it is the call that returns first. */
        resume(t->inside ? PTRACE_SYSCALL : PTRACE_CONT, tid, signal);
    }
}

static int follow(struct recorder *r, struct bh_err *err)
{
    for (;;) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0 && errno == ECHILD)
            return r->full ? bh_fail(err, BH_TOO_LARGE, "the command made more than %d different calls",
                                     BH_RECORDING_CALLS_MAX)
                           : BH_OK;
        if (tid < 0)
            return bh_fail(err, BH_SYSTEM, "waiting for the command: %s", strerror(errno));
        if (WIFSTOPPED(status)) {
            at_stop(r, tid, status);
            continue;
        }
        thread_drop(r, tid);
        process_drop(r, tid);
        if (tid == r->command)
            r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* The command, started and held until it is followed. */
static int start(struct recorder *r, char *const argv[], int go[2], int failed[2], struct bh_err *err)
{
    r->command = fork();
    if (r->command < 0)
        return bh_fail(err, BH_SYSTEM, "starting %.120s: %s", argv[0], strerror(errno));
    if (r->command == 0) {
        close(go[1]);
        close(failed[0]);
        be_command(argv, go[0], failed[1]);
    }
    close(go[0]);
    close(failed[1]);
    go[0] = failed[1] = -1;
    if (ptrace(PTRACE_SEIZE, r->command, NULL, (void *)(uintptr_t)OPTIONS) == 0 && write(go[1], "", 1) == 1)
        return BH_OK;
    int error = errno;
    kill(r->command, SIGKILL);
    while (waitpid(r->command, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return bh_fail(err, error == EPERM ? BH_DENIED : BH_SYSTEM, "following %.120s: %s", argv[0],
                   strerror(error));
}

static void close_all(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int record(struct recorder *r, char *const argv[], struct bh_err *err)
{
    int go[2] = {-1, -1}, failed[2] = {-1, -1}, error = 0, rc;
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0)
        rc = bh_fail(err, BH_SYSTEM, "starting %.120s: %s", argv[0], strerror(errno));
    else
        rc = start(r, argv, go, failed, err);
    if (rc == BH_OK) {
        /* A key typed at the terminal is the command's to answer, and what it did until then is kept. */
        struct sigaction ignore = {.sa_handler = SIG_IGN}, old_int, old_quit;
        sigaction(SIGINT, &ignore, &old_int);
        sigaction(SIGQUIT, &ignore, &old_quit);
        rc = follow(r, err);
        sigaction(SIGINT, &old_int, NULL);
        sigaction(SIGQUIT, &old_quit, NULL);
    }
    if (rc == BH_OK && read(failed[0], &error, sizeof(error)) == sizeof(error))
        rc = bh_fail(err,
                     error == ENOENT || error == ENOTDIR ? BH_NOT_FOUND
                     : error == EACCES || error == EPERM ? BH_DENIED
                                                         : BH_SYSTEM,
                     "starting %.120s: %s", argv[0], strerror(error));
    close_all(go);
    close_all(failed);
    return rc;
}

int bh_record_run(const char *dev, char *const argv[], struct bh_recording *ret, int *ret_status,
                  struct bh_err *err)
{
    struct recorder *r = bh_alloc(1, sizeof(*r));
    *ret = (struct bh_recording){.driver = "-", .gpu = "-", .what = "-"};
    r->dev = dev;
    r->out = ret;
    int rc = record(r, argv, err);
    *ret_status = r->status;
    bh_vec_fini(&r->threads);
    bh_vec_fini(&r->processes);
    bh_objects_fini(&r->objects);
    free(r);
    return rc;
}
