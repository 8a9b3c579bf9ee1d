/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_test.c - this program as its own warden: under the name bulkhead-warden it plays one, and what it plays is the
 * cap it was given.
 */
#include "launch/warden.h"

#include "base/mem.h"
#include "base/test.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum play { SERVE = 1, REFUSE, DIE_AT_ONCE, DIE_LATER, SAY_NONSENSE };

__attribute__((constructor)) static void play_warden(void)
{
    struct bh_lease_start start;
    struct bh_lease_answer answer = {.uid = 4321};
    struct bh_lease_end end = {.peak_bytes = 7};
    int fds[BH_LEASE_FDS];
    sigset_t mask;
    if (strcmp(program_invocation_short_name, "bulkhead-warden") != 0)
        return;
    if (bh_fds_recv(BH_LEASE_SOCKET, &start, sizeof(start), fds, BH_LEASE_FDS, NULL) < 0)
        _exit(9);
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    if (start.cap_bytes == DIE_AT_ONCE || sigismember(&mask, SIGTERM))
        _exit(4);
    if (start.cap_bytes == SAY_NONSENSE)
        _exit(bh_fds_send(BH_LEASE_SOCKET, "?", 1, NULL, 0, NULL));
    if (start.cap_bytes == REFUSE) {
        answer.code = BH_REFUSED;
        memset(answer.text, 'x', sizeof(answer.text)); /* no NUL anywhere */
    }
    (void)!bh_fds_send(BH_LEASE_SOCKET, &answer, sizeof(answer), NULL, 0, NULL);
    if (start.cap_bytes == DIE_LATER)
        (void)raise(SIGKILL);
    end.seen = start.root_pid;
    memset(end.text, 'y', sizeof(end.text));
    memset(end.why_killed, 'z', sizeof(end.why_killed));
    (void)!bh_fds_send(BH_LEASE_SOCKET, &end, sizeof(end), NULL, 0, NULL);
    _exit(0);
}

static int open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int start(const char *program, enum play play, struct bh_child *ret, struct bh_err *err)
{
    const struct bh_lease_start order = {.version = BH_LEASE_VERSION, .root_pid = 42, .cap_bytes = play};
    int fds[BH_LEASE_FDS];
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int rc = bh_warden_start(program, ret, err);
    if (rc == BH_OK)
        bh_warden_hand_over(ret, &order, fds);
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        close(fds[i]);
    return rc;
}

TEST(a_warden_that_serves)
{
    const int before = open_fds();
    struct bh_child w;
    struct bh_lease_end end;
    struct bh_err err;
    sigset_t all;
    int status = -1;
    /* what is blocked here is not blocked there */
    sigfillset(&all);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &all, NULL), 0);
    CHECK_EQ(start("/proc/self/exe", SERVE, &w, &err), 0);
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &all, NULL), 0);
    struct bh_lease_start next = {0};
    CHECK_EQ(bh_warden_ready(&w, &next, NULL, &err), 0);
    CHECK_EQ(next.uid, 4321); /* who follows is the same */
    CHECK(w.pid > 0 && w.fd >= 0);
    CHECK(bh_warden_end(&w, &end, &status));
    CHECK_EQ(end.peak_bytes, 7);
    CHECK_EQ(end.seen, 42);
    CHECK_EQ(strlen(end.text), sizeof(end.text) - 1);
    CHECK_EQ(strlen(end.why_killed), sizeof(end.why_killed) - 1);
    CHECK(status == 0 && w.pid == 0 && w.fd == -1);
    CHECK_EQ(open_fds(), before);
}

TEST(wardens_that_do_not)
{
    static const struct {
        const char *program;
        enum play play;
        int code;
        const char *says;
    } cases[] = {
        {"/proc/self/exe", REFUSE, BH_REFUSED, "xxxxx"},
        {"/proc/self/exe", DIE_AT_ONCE, BH_SYSTEM, "ended before it was ready"},
        {"/proc/self/exe", SAY_NONSENSE, BH_INVALID, "the warden"},
        {"/no/such/program", SERVE, BH_SYSTEM, "'/no/such/program': No such file"},
    };
    const int before = open_fds();
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_child w;
        struct bh_err err = {0};
        bool died;
        CHECK_EQ(start(cases[i].program, cases[i].play, &w, &err), 0);
        CHECK_EQ(bh_warden_ready(&w, NULL, &died, &err), cases[i].code);
        CHECK_EQ(died, cases[i].play == DIE_AT_ONCE);
        if (!strstr(err.msg, cases[i].says))
            printf("# %s\n", err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
        const pid_t left = bh_warden_kill(&w);
        CHECK(left == 0 || waitpid(left, NULL, 0) == left);
        CHECK(w.pid == 0 && w.fd == -1);
    }
    CHECK_EQ(open_fds(), before);
}

TEST(a_warden_that_dies)
{
    struct bh_child w;
    struct bh_lease_end end;
    struct bh_warden_how how;
    struct bh_err err;
    int status = 0;
    CHECK_EQ(start("/proc/self/exe", DIE_LATER, &w, &err), 0);
    CHECK_EQ(bh_warden_ready(&w, NULL, NULL, &err), 0);
    CHECK(!bh_warden_end(&w, &end, &status));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_STR(bh_warden_how(status, &how), "was killed by signal 9");
    CHECK_STR(bh_warden_how(W_EXITCODE(3, 0), &how), "ended with status 3");
    CHECK(w.pid == 0 && w.fd == -1);
    CHECK_EQ(bh_warden_kill(&w), 0); /* nobody: nothing happens */
}

TEST(a_warden_without_room)
{
    struct bh_warden_room room;
    CHECK_STR(
        bh_warden_no_room(&(struct bh_lease_end){.no_room = 3}, &room),
        "3 calls failed because the warden could open no more files: raise the hard limit (ulimit -Hn)");
}

TEST(not_too_many_follow_one_another)
{
    struct bh_warden_followers f = {{0}};
    for (int64_t i = 0; i < BH_WARDEN_FOLLOWERS; i++)
        CHECK(bh_warden_may_follow(&f, 1000 + i));
    CHECK(!bh_warden_may_follow(&f, 2000));
    CHECK(!bh_warden_may_follow(&f, 1000 + BH_WARDEN_FOLLOWERS_MS - 1));
    CHECK(bh_warden_may_follow(&f, 1000 + BH_WARDEN_FOLLOWERS_MS));
    CHECK(!bh_warden_may_follow(&f, 1000 + BH_WARDEN_FOLLOWERS_MS)); /* the next oldest is of 1001 */
}

TEST(rights_that_are_missing)
{
    int status;
    struct bh_err err;
    const pid_t pid = fork();
    if (pid == 0) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
        _exit(syscall(SYS_capset, &head, none) == 0 && bh_warden_rights("adopt", &err) == BH_DENIED &&
                      strstr(err.msg, "adopt needs root") && strstr(err.msg, "no CAP_SYS_PTRACE here")
                  ? 0
                  : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(a_journal_is_empty_and_is_not_inherited)
{
    struct bh_err err;
    int fd = -1;
    CHECK_EQ(bh_warden_journal(&fd, &err), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(close(fd) == 0);
}

TEST_MAIN
