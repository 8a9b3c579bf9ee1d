/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - starts a command and its warden, and stands between the command and the shell.
 *
 * The order matters: the filter goes on in the child, its listener comes here and goes on to the warden, and only when
 * the warden has said that it is ready may the child become the command. Nobody else keeps the listener: when the
 * warden is gone it is closed, and the kernel refuses what the filter would have asked about.
 *
 * Signals are blocked here from the beginning and read as data. What the terminal sends reaches the command by
 * itself, for both are in one process group; what somebody sends to this process is sent on. (What somebody sends to the
 * whole group reaches the command twice.)
 */
#include "cli/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include "host/filter.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the warden is waited for after the command's end: to say why it killed somebody; to end as well. */
enum { KILLED_MS = 2000, ENDING_MS = 50 };

struct state {
    const struct bh_launch *l;
    struct bh_launch_result *ret;
    int tenant_fd, warden_fd; /* our ends; -1: closed */
    pid_t tenant, warden;     /* 0: none */
    int signals;
    sigset_t old_mask;
    struct sigaction old_child;
    bool told; /* the gate's end was said */
};

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "%s: %s", what, strerrordesc_np(errno));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- signals ---- */

/* Faults of this program's own stay what they are. */
static void all_signals(sigset_t *ret)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(ret);
    for (size_t i = 0; i < BH_COUNT_OF(faults); i++)
        sigdelset(ret, faults[i]);
}

static void restore_signals(const struct state *s)
{
    (void)sigaction(SIGCHLD, &s->old_child, NULL);
    (void)sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

static int take_signals(struct state *s, struct bh_err *err)
{
    struct sigaction child = {.sa_handler =
                                  SIG_DFL}; /* ignored, as it may be here, children cannot be waited for */
    sigset_t all;
    all_signals(&all);
    if (sigprocmask(SIG_BLOCK, &all, &s->old_mask) < 0 || sigaction(SIGCHLD, &child, &s->old_child) < 0)
        return fail_errno(err, "blocking signals");
    s->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals >= 0)
        return BH_OK;
    int rc = fail_errno(err, "signalfd");
    restore_signals(s);
    return rc;
}

/* The terminal's own go to the whole process group, the command included. */
static bool is_terminal_signal(uint32_t signal)
{
    static const int of_terminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < BH_COUNT_OF(of_terminal); i++)
        if ((uint32_t)of_terminal[i] == signal)
            return true;
    return false;
}

static void send_on(const struct state *s, const struct signalfd_siginfo *si)
{
    union sigval value = {.sival_ptr = (void *)(uintptr_t)si->ssi_ptr};
    if (si->ssi_code == SI_KERNEL && is_terminal_signal(si->ssi_signo))
        return;
    if (si->ssi_code == SI_USER && (si->ssi_pid == (uint32_t)getpid() || si->ssi_pid == (uint32_t)s->tenant))
        return; /* a write of ours to nobody (SIGPIPE), or the command to its own group */
    if (si->ssi_code == SI_QUEUE)
        (void)sigqueue(s->tenant, (int)si->ssi_signo, value);
    else
        (void)kill(s->tenant, (int)si->ssi_signo);
}

/* ---- the two children ---- */

static _Noreturn void be_tenant(const struct state *s, int to_launcher)
{
    struct bh_err err = {0};
    struct bh_lease_answer answer = {0};
    char go;
    int listener = -1;
    /* Whoever kills the launcher means the command. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    answer.code = bh_filter_install(&listener, &err);
    memcpy(answer.text, err.msg, sizeof(answer.text));
    if (bh_fds_send(to_launcher, &answer, sizeof(answer), NULL, 0, NULL) < 0 || answer.code < 0 ||
        bh_fds_send(to_launcher, "", 1, &listener, 1, NULL) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    close(listener);
    if (bh_fds_recv(to_launcher, &go, 1, NULL, 0, NULL) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    restore_signals(s);
    (void)signal(SIGPIPE, SIG_DFL);
    execvp(s->l->argv[0], s->l->argv);
    answer.code = errno;
    (void)!bh_fds_send(to_launcher, &answer, sizeof(answer), NULL, 0, NULL);
    _exit(BH_LAUNCH_NOT_RUN);
}

static _Noreturn void be_warden(const struct state *s, int to_launcher)
{
    char name[] = "bulkhead-warden", *argv[] = {name, NULL};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* dup2 of a descriptor to itself would leave it to be closed. */
    if (to_launcher == BH_LEASE_SOCKET ? fcntl(to_launcher, F_SETFD, 0) == 0
                                       : dup2(to_launcher, BH_LEASE_SOCKET) >= 0)
        execv(s->l->warden, argv);
    struct bh_lease_answer answer = {.code = BH_SYSTEM};
    (void)snprintf(answer.text, sizeof(answer.text), "'%.200s': %s", s->l->warden, strerrordesc_np(errno));
    (void)!bh_fds_send(to_launcher, &answer, sizeof(answer), NULL, 0, NULL);
    _exit(BH_LAUNCH_NOT_RUN);
}

static int start_child(const struct state *s, void (*be)(const struct state *s, int to_launcher),
                       pid_t *ret_pid, int *ret_fd, struct bh_err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_errno(err, "socketpair");
    const pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        be(s, pair[1]);
    }
    const int error = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        errno = error;
        return fail_errno(err, "fork");
    }
    *ret_pid = pid;
    *ret_fd = pair[0];
    return BH_OK;
}

/* ---- before the command runs ---- */

/* What a child answered, as this process's own failure. */
static int take_answer(int fd, const char *who, struct bh_err *err)
{
    struct bh_lease_answer answer;
    int rc = bh_fds_recv(fd, &answer, sizeof(answer), NULL, 0, err);
    if (rc == BH_NOT_FOUND)
        return bh_fail(err, BH_SYSTEM, "%s ended before it was ready", who);
    if (rc < 0)
        return bh_wrap(err, rc, "%s", who);
    answer.text[sizeof(answer.text) - 1] = '\0';
    return answer.code < 0 ? bh_fail(err, (enum bh_code)answer.code, "%s", answer.text) : BH_OK;
}

static int hand_over(struct state *s, struct bh_err *err)
{
    struct bh_lease_start start = {.version = BH_LEASE_VERSION,
                                   .root_pid = (uint32_t)s->tenant,
                                   .cap_bytes = s->l->cap_bytes,
                                   .tick_ms = s->l->tick_ms};
    int fds[BH_LEASE_FDS] = {-1, -1};
    char byte;
    int rc = take_answer(s->tenant_fd, "the command's process", err);
    if (rc == BH_OK)
        rc = bh_fds_recv(s->tenant_fd, &byte, 1, &fds[BH_LEASE_LISTENER], 1, err);
    if (rc == BH_OK) {
        fds[BH_LEASE_ROOT] = (int)syscall(SYS_pidfd_open, s->tenant, 0);
        if (fds[BH_LEASE_ROOT] < 0)
            rc = fail_errno(err, "pidfd_open");
    }
    /* A warden that is gone already has said why, if it could: that answer is the better message. */
    if (rc == BH_OK && bh_fds_send(s->warden_fd, &start, sizeof(start), fds, BH_LEASE_FDS, err) < 0)
        rc = take_answer(s->warden_fd, "the warden", err);
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        close_fd(&fds[i]);
    return rc;
}

/* A driver can take its time; somebody who does not want to wait may say so. *ret_signal: they did. */
static int await_warden(struct state *s, int *ret_signal, struct bh_err *err)
{
    for (;;) {
        struct pollfd at[2] = {{.fd = s->warden_fd, .events = POLLIN}, {.fd = s->signals, .events = POLLIN}};
        struct signalfd_siginfo si;
        if (poll(at, 2, -1) < 0 && errno != EINTR)
            return fail_errno(err, "poll");
        /* Signals first: Ctrl-C may have ended the warden too, before it left the terminal. */
        const bool seen = read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si);
        const int n = seen ? (int)si.ssi_signo : 0;
        if (n == SIGINT || n == SIGTERM || n == SIGHUP || n == SIGQUIT) {
            *ret_signal = n;
            return bh_fail(err, BH_SYSTEM, "ended by a signal before the warden was ready");
        }
        if (!seen && at[0].revents)
            return take_answer(s->warden_fd, "the warden", err);
    }
}

/* The child's end of the connection closes by itself when it becomes the command. */
static int let_go(struct state *s, int *ret_exit, struct bh_err *err)
{
    struct bh_lease_answer answer;
    int rc = bh_fds_send(s->tenant_fd, "", 1, NULL, 0, err);
    if (rc < 0)
        return rc;
    rc = bh_fds_recv(s->tenant_fd, &answer, sizeof(answer), NULL, 0, err);
    close_fd(&s->tenant_fd);
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc < 0)
        return rc;
    const bool missing = answer.code == ENOENT || answer.code == ENOTDIR;
    *ret_exit = missing ? BH_LAUNCH_NOT_FOUND : BH_LAUNCH_NOT_RUN;
    return bh_fail(err, missing ? BH_NOT_FOUND : BH_DENIED, "'%.200s': %s", s->l->argv[0],
                   strerrordesc_np(answer.code));
}

/* ---- while it runs ---- */

static void tell(struct state *s, const char *fmt, ...) BH_PRINTF(2, 3);
static void tell(struct state *s, const char *fmt, ...)
{
    char line[sizeof(s->ret->end.text) + 200];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (!s->told)
        s->l->tell(s->l->arg, line);
    s->told = true;
}

static void tell_death(struct state *s, int status)
{
    static const char then[] = "video memory is refused to the command from now on";
    if (WIFSIGNALED(status))
        tell(s, "the warden was killed by signal %d; %s", WTERMSIG(status), then);
    else
        tell(s, "the warden ended with status %d before the command did; %s", WEXITSTATUS(status), then);
}

/* Something came from the warden: its end, or nothing, which is its death. It is ending either way. */
static void hear_warden(struct state *s)
{
    struct bh_lease_end *end = &s->ret->end;
    int status = 0;
    s->ret->ended = bh_fds_recv(s->warden_fd, end, sizeof(*end), NULL, 0, NULL) == BH_OK;
    close_fd(&s->warden_fd);
    (void)waitpid(s->warden, &status, 0);
    s->warden = 0;
    if (!s->ret->ended) {
        tell_death(s, status);
        return;
    }
    end->text[sizeof(end->text) - 1] = '\0';
    end->why_killed[sizeof(end->why_killed) - 1] = '\0';
    if (end->code < 0)
        tell(s, "the gate could not go on: %s; video memory is refused to the command from now on",
             end->text);
    else if (*end->why_killed)
        tell(s, "the command was killed: %s", end->why_killed);
}

/* True: it has ended. */
static bool look_at_tenant(struct state *s)
{
    int status;
    while (waitpid(s->tenant, &status, WNOHANG | WUNTRACED) == s->tenant) {
        if (!WIFSTOPPED(status)) {
            s->ret->status = status;
            s->tenant = 0;
            return true;
        }
        /* Job control: the shell must see a stop too, and will wake the whole group. A SIGSTOP for the command
         * alone is between it and the sender, who may wake it alone as well. */
        if (WSTOPSIG(status) != SIGSTOP)
            (void)raise(SIGSTOP);
    }
    return false;
}

static void follow(struct state *s)
{
    bool over = false;
    while (!over) {
        /* poll passes over descriptors below 0: the warden's, once it is gone. */
        struct pollfd at[2] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->warden_fd, .events = POLLIN}};
        struct signalfd_siginfo si;
        (void)poll(at, 2, -1);
        if (at[1].revents)
            hear_warden(s);
        while (!over && read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
            if (si.ssi_signo == SIGCHLD)
                over = look_at_tenant(s);
            else
                send_on(s, &si);
        }
    }
}

/* The command is gone; others of its lease may not be, and the warden stays for them. Mostly it ends now too. A kill may
 * have been the gate's, which then is about to say why. */
static void last_words(struct state *s)
{
    const bool killed = WIFSIGNALED(s->ret->status) && WTERMSIG(s->ret->status) == SIGKILL;
    struct pollfd at = {.fd = s->warden_fd, .events = POLLIN};
    if (s->warden_fd >= 0 && poll(&at, 1, s->l->wait_for_end ? -1 : killed ? KILLED_MS : ENDING_MS) > 0)
        hear_warden(s);
}

static int launch(struct state *s, int *ret_exit, int *ret_signal, struct bh_err *err)
{
    /* The warden first: it starts while the filter is put on. */
    int rc = take_signals(s, err);
    if (rc == BH_OK)
        rc = start_child(s, be_warden, &s->warden, &s->warden_fd, err);
    if (rc == BH_OK)
        rc = start_child(s, be_tenant, &s->tenant, &s->tenant_fd, err);
    if (rc == BH_OK)
        rc = hand_over(s, err);
    if (rc == BH_OK)
        rc = await_warden(s, ret_signal, err);
    if (rc == BH_OK)
        rc = let_go(s, ret_exit, err);
    if (rc == BH_OK)
        follow(s);
    return rc;
}

/* What is left of a start that failed. A warden that hangs in the driver is not waited for. */
static void clean_up(struct state *s)
{
    if (s->tenant > 0) {
        (void)kill(s->tenant, SIGKILL);
        (void)waitpid(s->tenant, NULL, 0);
    }
    if (s->warden > 0) {
        (void)kill(s->warden, SIGKILL);
        (void)waitpid(s->warden, NULL, WNOHANG);
    }
}

int bh_launch(const struct bh_launch *l, struct bh_launch_result *ret, int *ret_exit, struct bh_err *err)
{
    struct state s = {.l = l, .ret = ret, .tenant_fd = -1, .warden_fd = -1, .signals = -1};
    int signal_seen = 0;
    *ret = (struct bh_launch_result){0};
    *ret_exit = 0;
    int rc = launch(&s, ret_exit, &signal_seen, err);
    if (rc < 0)
        clean_up(&s);
    if (s.signals >= 0)
        restore_signals(&s);
    if (signal_seen)
        (void)raise(signal_seen);
    if (rc == BH_OK)
        last_words(&s);
    close_fd(&s.signals);
    close_fd(&s.tenant_fd);
    close_fd(&s.warden_fd);
    return rc;
}

/* ---- what it takes ---- */

int bh_launch_rights(struct bh_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    static const struct {
        unsigned number;
        const char *name;
    } needed[] = {{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}, {CAP_KILL, "CAP_KILL"}};
    if (syscall(SYS_capget, &head, data) < 0)
        return fail_errno(err, "capget");
    for (size_t i = 0; i < BH_COUNT_OF(needed); i++)
        if (!(data[0].effective & 1u << needed[i].number))
            return bh_fail(err, BH_DENIED,
                           "run needs root: its warden looks into the command's processes and ends them "
                           "(CAP_SYS_PTRACE, CAP_KILL); user %u has no %s here; try sudo",
                           (unsigned)geteuid(), needed[i].name);
    return BH_OK;
}

int bh_launch_warden(char *ret, size_t size, struct bh_err *err)
{
    /* src/cli/bulkhead in a build folder, bin/bulkhead when installed: two steps up. */
    static const char *const places[] = {"warden", "libexec/bulkhead", "libexec", "lib/bulkhead"};
    char base[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", base, sizeof(base) - 1);
    base[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(base, '/');
        if (slash)
            *slash = '\0';
    }
    for (size_t i = 0; i < BH_COUNT_OF(places); i++) {
        const int len = snprintf(ret, size, "%s/%s/bulkhead-warden", base, places[i]);
        if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0)
            return BH_OK;
    }
    return bh_fail(err, BH_NOT_FOUND,
                   "no bulkhead-warden beside this program: looked in warden, libexec/bulkhead, libexec and "
                   "lib/bulkhead below '%.200s'; install both from one package",
                   base);
}

int bh_launch_end_as(int status)
{
    const struct rlimit no_core = {0, 0};
    sigset_t one;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    /* The command has left its core, if it should. */
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
