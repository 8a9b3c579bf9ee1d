/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_test.c - a command below a stand-in for the warden; both are this program again.
 *
 * BH_TEST_WARDEN says how the stand-in behaves. The real one, and the terminal, are in tests/gate/run.py.
 */
#include "launch/launch.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"
#include "launch/probe.h"
#include "launch/warden.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the stand-in for the warden ---- */

enum { FIRST_UID = 4321 }; /* whose it says it is; who follows it must hear that */

static void answer(int code, const char *text)
{
    struct bh_lease_answer a = {.code = code, .uid = FIRST_UID};
    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    (void)!bh_fds_send(BH_LEASE_SOCKET, &a, sizeof(a), NULL, 0, NULL);
}

/* Answers 42 to every call until the last process is gone, or, `once`, until the first call has come. */
static uint64_t serve(int listener, bool once)
{
    struct pollfd at = {.fd = listener, .events = POLLIN};
    uint64_t seen = 0;
    while (poll(&at, 1, -1) > 0 && at.revents & POLLIN) {
        struct seccomp_notif ask = {0};
        if (once)
            return 1;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) < 0)
            continue;
        struct seccomp_notif_resp reply = {.id = ask.id, .val = 42};
        seen += ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0;
    }
    return seen;
}

static void end(struct bh_lease_end e)
{
    (void)!bh_fds_send(BH_LEASE_SOCKET, &e, sizeof(e), NULL, 0, NULL);
}

static _Noreturn void be_warden(const char *how)
{
    struct bh_lease_start start;
    int fds[BH_LEASE_FDS];
    close(STDOUT_FILENO); /* as the real one: it is the command's */
    if (bh_str_eq(how, "dies") ||
        bh_fds_recv(BH_LEASE_SOCKET, &start, sizeof(start), fds, BH_LEASE_FDS, NULL) < 0)
        _exit(1);
    if (bh_str_eq(how, "refuses")) {
        answer(BH_REFUSED, "no such branch");
        _exit(1);
    }
    if (start.version != BH_LEASE_VERSION || start.cap_bytes != 12345 || start.tick_ms != 7 ||
        !(start.flags & BH_LEASE_ENDS_WITH_LAUNCHER) || start.uid != (start.adopted ? FIRST_UID : 0))
        answer(BH_INVALID, "not what was sent");
    else
        answer(0, "");
    if (bh_str_eq(how, "serves"))
        end((struct bh_lease_end){.seen = serve(fds[BH_LEASE_LISTENER], false), .peak_bytes = 99});
    if (bh_str_eq(how, "is killed") && serve(fds[BH_LEASE_LISTENER], true))
        (void)raise(SIGKILL);
    if (bh_str_eq(how, "gives up") && serve(fds[BH_LEASE_LISTENER], true))
        end((struct bh_lease_end){.code = BH_SYSTEM, .text = "the card is lost"});
    if (bh_str_eq(how, "kills") && serve(fds[BH_LEASE_LISTENER], true)) {
        (void)syscall(SYS_pidfd_send_signal, fds[BH_LEASE_ROOT], SIGKILL, NULL, 0);
        end((struct bh_lease_end){.killed = 1, .why_killed = "it took too much"});
    }
    _exit(0);
}

/* ---- the command ---- */

static int count_fds(void)
{
    int n = 0;
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* As in a shell: nohup hands on that it is ignored. */
__attribute__((constructor)) static void hear_all(void)
{
    (void)signal(SIGHUP, SIG_DFL);
}

static int signals_as_before(void)
{
    struct sigaction child, pipe_, hup;
    sigset_t mask;
    return sigaction(SIGCHLD, NULL, &child) == 0 && child.sa_handler == SIG_IGN &&
           sigaction(SIGPIPE, NULL, &pipe_) == 0 && pipe_.sa_handler == SIG_DFL &&
           sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_DFL &&
           sigprocmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGTERM) &&
           sigismember(&mask, SIGUSR2);
}

/* More than its socket has room for; each waits for room. */
static bool says_much(void)
{
    const struct timeval patience = {.tv_sec = 10};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv(BH_PROBE_VARIABLE);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char text[16] = {0};
    FILE *f = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
    uint64_t room = 0;
    bool good = path && strlen(path) < sizeof(to.sun_path) && fd >= 0 && f && fgets(text, sizeof(text), f);
    text[strcspn(text, "\n")] = '\0';
    good = good && bh_uint_parse(text, 1 << 20, &room, NULL) == BH_OK &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
    if (good)
        memcpy(to.sun_path, path, strlen(path));
    for (uint64_t i = 0; good && i < 3 * (room + 1); i++)
        good = sendto(fd, "done 1", 6, 0, (const struct sockaddr *)&to, sizeof(to)) == 6;
    return good;
}

/* Until the launcher has asked so often what became of its share. */
static bool was_asked_for(const char *times)
{
    const char *folder = getenv("BULKHEAD_RUN_DIR");
    char name[32], path[128];
    (void)snprintf(name, sizeof(name), "%d", (int)getpid());
    (void)snprintf(path, sizeof(path), "%s/%s", folder, times);
    bool good = bh_scratch_put(folder, "root", name);
    for (int i = 0; good && i < 10000 && access(path, F_OK) < 0; i++)
        (void)usleep(1000);
    return good && access(path, F_OK) == 0;
}

static _Noreturn void be_command(const char *what)
{
    if (bh_str_eq(what, "noted"))
        _exit(was_asked_for("4") ? 6 : 1);
    if (bh_str_eq(what, "alone"))
        _exit(ioctl(0, 0x462bUL, NULL) < 0 && says_much() && was_asked_for("2") ? 6 : 1);
    if (bh_str_eq(what, "gated"))
        _exit(ioctl(0, 0x462bUL, NULL) == 42 ? 6 : errno == ENOSYS ? 38 : 1);
    if (bh_str_eq(what, "fds"))
        _exit(count_fds());
    if (bh_str_eq(what, "signals"))
        _exit(signals_as_before() ? 5 : 1);
    if (bh_str_eq(what, "group"))
        _exit(getpgrp() == getpgid(getppid()) && getsid(0) == getsid(getppid()) ? 5 : 1);
    if (bh_str_eq(what, "sleeps")) {
        (void)!write(STDOUT_FILENO, "r", 1);
        for (;;)
            pause();
    }
    if (bh_str_eq(what, "closes")) {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        for (;;)
            pause();
    }
    if (bh_str_eq(what, "pipe ignored")) {
        struct sigaction now;
        _exit(sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN ? 5 : 1);
    }
    if (bh_str_eq(what, "dies"))
        (void)raise(SIGTERM);
    _exit(77);
}

/* glibc gives constructors main's arguments; the sanitizers are ready before. */
__attribute__((constructor)) static void become(int argc, char **argv)
{
    const char *how = getenv("BH_TEST_WARDEN");
    if (how && bh_str_eq(argv[0], "bulkhead-warden"))
        be_warden(how);
    if (argc == 3 && bh_str_eq(argv[1], "--command"))
        be_command(argv[2]);
}

/* ---- the tests ---- */

static char exe[] = "/proc/self/exe", as_command[] = "--command", what[32], said[800];
static int n_said;

static void hear(void *arg, const char *line)
{
    (void)arg;
    n_said++;
    (void)snprintf(said, sizeof(said), "%s", line);
}

static int launch(const char *how, const char *command, bool wait_for_end, struct bh_launch_result *ret,
                  int *ret_exit, struct bh_err *err)
{
    char *argv[] = {exe, as_command, what, NULL};
    struct bh_launch l = {.warden = exe,
                          .argv = argv,
                          .cap_bytes = 12345,
                          .tick_ms = 7,
                          .wait_for_end = wait_for_end,
                          .ignore_pipe = bh_str_eq(command, "pipe ignored"),
                          .let_go_of_files = bh_str_eq(command, "closes"),
                          .tell = hear};
    (void)snprintf(what, sizeof(what), "%s", command);
    n_said = 0;
    said[0] = '\0';
    (void)fflush(stdout);
    (void)setenv("BH_TEST_WARDEN", how, 1);
    return bh_launch(&l, ret, ret_exit, err);
}

static struct bh_launch_result result;
static struct bh_err err;
static int code;

TEST(the_end_is_the_commands)
{
    const int before = count_fds();
    CHECK_EQ(launch("serves", "gated", true, &result, &code, &err), BH_OK);
    CHECK(WIFEXITED(result.status));
    CHECK_EQ(WEXITSTATUS(result.status), 6);
    CHECK(result.ended && result.end.seen == 1 && result.end.peak_bytes == 99);
    CHECK_EQ(launch("serves", "dies", false, &result, &code, &err), BH_OK);
    CHECK(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGTERM);
    CHECK_EQ(n_said, 0);
    CHECK_EQ(count_fds(), before);
}

TEST(nothing_of_ours_is_left_in_the_command)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    sigset_t mask, old;
    const int extra = count_fds(); /* what the test itself was given */
    CHECK_EQ(launch("serves", "fds", false, &result, &code, &err), BH_OK);
    CHECK_EQ(WEXITSTATUS(result.status), extra);
    CHECK_EQ(launch("serves", "group", false, &result, &code, &err), BH_OK);
    CHECK_EQ(WEXITSTATUS(result.status), 5);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    CHECK(sigaction(SIGCHLD, &ignore, &was) == 0 && sigprocmask(SIG_BLOCK, &mask, &old) == 0);
    int rc = launch("serves", "signals", false, &result, &code, &err);
    CHECK(signals_as_before());
    CHECK(sigaction(SIGCHLD, &was, NULL) == 0 && sigprocmask(SIG_SETMASK, &old, NULL) == 0);
    CHECK_EQ(rc, BH_OK);
    CHECK_EQ(WEXITSTATUS(result.status), 5);
    CHECK_EQ(launch("serves", "pipe ignored", false, &result, &code, &err), BH_OK);
    CHECK_EQ(WEXITSTATUS(result.status), 5);
}

/* A pipe that the command has closed is closed, and so is any other file: here the write end of another one. */
TEST(what_the_command_closes_is_closed)
{
    int out[2], other[2], status;
    char byte;
    CHECK(pipe(out) == 0 && pipe(other) == 0);
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        close(other[0]);
        (void)fcntl(other[1], F_SETFD, FD_CLOEXEC); /* the command has none of it */
        if (launch("serves", "closes", false, &result, &code, &err) < 0)
            _exit(1);
        _exit(bh_launch_end_as(result.status));
    }
    CHECK(close(out[1]) == 0 && close(other[1]) == 0);
    CHECK(read(out[0], &byte, 1) == 0 && read(other[0], &byte, 1) == 0);
    CHECK(kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(close(out[0]) == 0 && close(other[0]) == 0);
}

/* ---- a keeper ---- */

static int begins(void *arg, struct bh_err *ret)
{
    (void)arg;
    (void)ret;
    return BH_OK;
}

/* Looking up a user's groups may map a shared file, which the gate is asked about. */
static int becomes(void *arg, struct bh_err *ret)
{
    (void)arg;
    return ioctl(0, 0x462bUL, NULL) < 0 && errno == ENOSYS ? BH_OK : bh_fail(ret, BH_SYSTEM, "answered");
}

static void runs(void *arg, pid_t pid)
{
    (void)arg;
    (void)pid;
}

static void is_over(void *arg)
{
    (void)arg;
}

TEST(a_warden_that_dies_before_the_command_is_there)
{
    enum { PATIENCE_MS = 60000 };
    static const struct bh_launch_keep keep = {
        .gate = true, .fd = -1, .begin = begins, .become = becomes, .runs = runs, .over = is_over};
    char *argv[] = {exe, as_command, what, NULL};
    const struct bh_launch l = {
        .warden = exe, .argv = argv, .cap_bytes = 12345, .tick_ms = 7, .tell = hear, .keep = &keep};
    int status = -1;
    (void)snprintf(what, sizeof(what), "none");
    (void)setenv("BH_TEST_WARDEN", "is killed", 1);
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(bh_launch(&l, &result, &code, &err) == BH_OK && strstr(said, "others had taken over")
                  ? WEXITSTATUS(result.status)
                  : 1);
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd at = {.fd = pidfd, .events = POLLIN};
    const int ended = poll(&at, 1, PATIENCE_MS);
    (void)kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid && pidfd >= 0 && close(pidfd) == 0);
    CHECK_EQ(ended, 1);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 77);
}

TEST(commands_that_cannot_be_run)
{
    static char missing[] = "no-such-command-anywhere", folder[] = "/";
    const struct {
        char *name;
        int rc, code;
        const char *why;
    } bad[] = {{missing, BH_NOT_FOUND, 127, "'no-such-command-anywhere': No such file or directory"},
               {folder, BH_DENIED, 126, "'/': Permission denied"}};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        char *argv[] = {bad[i].name, NULL};
        struct bh_launch l = {.warden = exe, .argv = argv, .cap_bytes = 12345, .tick_ms = 7, .tell = hear};
        (void)setenv("BH_TEST_WARDEN", "serves", 1);
        CHECK_EQ(bh_launch(&l, &result, &code, &err), bad[i].rc);
        CHECK_EQ(code, bad[i].code);
        CHECK_STR(err.msg, bad[i].why);
    }
}

TEST(a_warden_that_does_not_start)
{
    char *argv[] = {exe, as_command, what, NULL};
    struct bh_launch l = {.warden = "/nowhere/bulkhead-warden", .argv = argv, .tell = hear};
    CHECK_EQ(launch("refuses", "gated", false, &result, &code, &err), BH_REFUSED);
    CHECK_STR(err.msg, "no such branch");
    CHECK_EQ(code, 0);
    CHECK_EQ(launch("dies", "gated", false, &result, &code, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "the warden ended before it was ready");
    CHECK_EQ(bh_launch(&l, &result, &code, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "'/nowhere/bulkhead-warden': No such file or directory");
    /* Nobody is left: neither the command's process nor a zombie of it. */
    while (waitpid(-1, NULL, 0) > 0)
        ;
    CHECK_EQ(errno, ECHILD);
}

TEST(a_warden_that_goes)
{
    static const struct {
        const char *how, *line;
        int status; /* of the command: 38 was refused ENOSYS, -9 was killed */
        int lines;
    } cases[] = {
        /* and so are those that take over, each of whom says so first */
        {"is killed", "the warden was killed by signal 9; 3 others had taken over within 10 s; ", 38,
         1 + BH_WARDEN_FOLLOWERS},
        {"gives up", "the gate could not go on: the card is lost; ", 38, 1},
        {"kills", "the command was killed: it took too much", -9, 1},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        CHECK_EQ(launch(cases[i].how, "gated", false, &result, &code, &err), BH_OK);
        const int got = WIFEXITED(result.status) ? WEXITSTATUS(result.status) : -WTERMSIG(result.status);
        CHECK_EQ(got, cases[i].status);
        CHECK_EQ(n_said, cases[i].lines);
        CHECK(bh_str_starts(said, cases[i].line));
    }
}

TEST(who_kills_the_launcher_means_the_command)
{
    int p[2], status;
    char byte;
    CHECK(pipe(p) == 0);
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(p[1], STDOUT_FILENO);
        close(p[0]);
        close(p[1]);
        (void)!launch("serves", "sleeps", false, &result, &code, &err);
        _exit(0);
    }
    CHECK(close(p[1]) == 0);
    CHECK(read(p[0], &byte, 1) == 1 && byte == 'r');
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    CHECK(read(p[0], &byte, 1) == 0); /* the last one that had it open is gone */
    CHECK(close(p[0]) == 0);
}

TEST(signals_go_through)
{
    static const int sent[] = {SIGTERM, SIGHUP, SIGUSR1, SIGINT, SIGALRM};
    for (size_t i = 0; i < BH_COUNT_OF(sent); i++) {
        int p[2], status;
        char byte;
        CHECK(pipe(p) == 0);
        (void)fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            (void)dup2(p[1], STDOUT_FILENO);
            if (launch("serves", "sleeps", false, &result, &code, &err) < 0)
                _exit(1);
            _exit(bh_launch_end_as(result.status));
        }
        CHECK(close(p[1]) == 0);
        CHECK(read(p[0], &byte, 1) == 1);
        CHECK(kill(pid, sent[i]) == 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), sent[i]);
        CHECK(close(p[0]) == 0);
    }
}

/* ---- a share ---- */

/* A stand-in for the governor: who asks for a list hears of the command, and it is written down when that was. */
static struct {
    _Atomic uint32_t lists;
    volatile int64_t at_ms[16];
} *asked;
static char run_dir[BH_SCRATCH_SOCKET_PATH];

static void list(int fd)
{
    char name[16], *root = bh_scratch_get(run_dir, "root");
    uint64_t pid = 0;
    (void)!(root && bh_uint_parse(root, UINT32_MAX, &pid, NULL));
    free(root);
    const struct bh_govern_row rows[] = {
        {.op = BH_GOVERN_ROW, .gpu = 0, .lease = 5, .root_pid = (uint32_t)pid + 1},
        {.op = BH_GOVERN_ROW, .gpu = UINT32_MAX, .lease = 6, .root_pid = (uint32_t)pid}, /* on no card yet */
        {.op = BH_GOVERN_ROW, .gpu = 3, .lease = 6, .root_pid = (uint32_t)pid}};
    for (size_t i = 0; pid && i < BH_COUNT_OF(rows); i++)
        (void)!bh_fds_send(fd, &rows[i], sizeof(rows[i]), NULL, 0, NULL);
    const uint32_t n = pid ? asked->lists++ : 0;
    if (!pid || n >= BH_COUNT_OF(asked->at_ms))
        return;
    asked->at_ms[n] = bh_warden_now_ms();
    (void)snprintf(name, sizeof(name), "%u", n + 1);
    (void)bh_scratch_put(run_dir, name, "");
}

static _Noreturn void be_governor(int listener)
{
    for (;;) {
        struct bh_govern_order order;
        const int fd = accept(listener, NULL, NULL);
        if (fork() > 0) {
            close(fd);
            continue;
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (bh_fds_recv(fd, &order, sizeof(order), NULL, 0, NULL) == BH_OK) {
            struct bh_govern_answer a = {.op = BH_GOVERN_ANSWER};
            a.code = order.op == BH_GOVERN_LIST ? 0 : BH_NOT_FOUND;
            if (order.op == BH_GOVERN_LIST)
                list(fd);
            (void)!bh_fds_send(fd, &a, sizeof(a), NULL, 0, NULL);
        }
        _exit(0);
    }
}

/* Runs a command with a share; false: that could not be tried. */
static bool launch_shared(const char *how, const char *command)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char *argv[] = {exe, as_command, what, NULL};
    const struct bh_launch l = {.warden = exe,
                                .argv = argv,
                                .cap_bytes = 12345,
                                .tick_ms = 7,
                                .share = {.weight = 1},
                                .note_share = true,
                                .tell = hear};
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (asked == MAP_FAILED || s < 0 || !bh_scratch_make(run_dir, sizeof(run_dir), "launch"))
        return false;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", run_dir, BH_GOVERN_SOCKET_NAME);
    if (bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 8) < 0)
        return false;
    (void)fflush(stdout);
    const pid_t governor = fork();
    if (governor == 0)
        be_governor(s);
    close(s);
    (void)setenv("BULKHEAD_RUN_DIR", run_dir, 1);
    (void)setenv("BH_TEST_WARDEN", how, 1);
    (void)snprintf(what, sizeof(what), "%s", command);
    const int rc = bh_launch(&l, &result, &code, &err);
    (void)unsetenv("BULKHEAD_RUN_DIR");
    (void)kill(governor, SIGKILL);
    const bool over = waitpid(governor, NULL, 0) == governor && bh_scratch_remove(run_dir);
    if (rc < 0)
        printf("# %s\n", err.msg);
    return rc == BH_OK && over;
}

TEST(what_the_governor_says_of_the_command_is_kept)
{
    CHECK(launch_shared("serves", "noted"));
    CHECK_EQ(WEXITSTATUS(result.status), 6);
    int64_t least_ms = INT64_MAX; /* of a few: a machine may have more to do */
    for (int i = 1; i < 4; i++) {
        const int64_t ms = asked->at_ms[i] - asked->at_ms[i - 1];
        least_ms = ms < least_ms ? ms : least_ms;
    }
    CHECK(least_ms < 900);
    CHECK_EQ(result.n_shares, 1);
    CHECK(result.shares[0].lease == 6 && result.shares[0].gpu == 3);
    CHECK_EQ(munmap(asked, sizeof(*asked)), 0);
}

/* Who speaks of its work does not wait for a warden that is gone; and the governor is asked no more often for that. */
TEST(a_command_without_a_warden_may_go_on_speaking)
{
    CHECK(launch_shared("gives up", "alone"));
    CHECK_EQ(WEXITSTATUS(result.status), 6);
    CHECK(asked->lists >= 2 && asked->at_ms[1] - asked->at_ms[0] >= 700);
    CHECK_EQ(munmap(asked, sizeof(*asked)), 0);
}

TEST(ending_as_the_command_did)
{
    int status;
    CHECK_EQ(bh_launch_end_as(W_EXITCODE(3, 0)), 3);
    const pid_t pid = fork();
    if (pid == 0) {
        sigset_t all;
        (void)signal(SIGQUIT, SIG_IGN);
        (void)!(sigfillset(&all) || sigprocmask(SIG_BLOCK, &all, NULL));
        _exit(bh_launch_end_as(W_EXITCODE(0, SIGQUIT)));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGQUIT);
    CHECK(!WCOREDUMP(status));
}

TEST_MAIN
