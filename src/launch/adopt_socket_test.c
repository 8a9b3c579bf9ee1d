/* SPDX-License-Identifier: Apache-2.0 */
/* adopt_socket_test.c - who gets the place, who may send, and which process is believed to be one. */
#include "launch/adopt_socket.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[BH_SCRATCH_SOCKET_PATH], path[100];

static bool make_folder(void)
{
    if (!bh_scratch_make(folder, sizeof(folder), "adopt"))
        return false;
    (void)snprintf(path, sizeof(path), "%s/s", folder);
    return true;
}

static int connect_to(const char *to)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", to);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

TEST(one_at_a_time)
{
    struct bh_adopt_socket a, b;
    struct stat st;
    struct bh_err err;
    CHECK(make_folder());
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &a, &err), 0);
    CHECK(lstat(path, &st) == 0 && S_ISSOCK(st.st_mode));
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &b, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "somebody listens") != NULL && b.fd == -1);
    bh_adopt_close(&b);
    const int c = connect_to(path); /* the first one is as it was */
    CHECK(c >= 0);
    close(c);
    bh_adopt_close(&a);
    CHECK(lstat(path, &st) < 0 && a.fd == -1);
    CHECK_EQ(rmdir(folder), 0);
}

TEST(what_a_dead_one_left_is_replaced)
{
    struct bh_adopt_socket a, b;
    struct stat st;
    struct bh_err err;
    CHECK(make_folder());
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &a, &err), 0);
    close(a.fd); /* as a killed process would: the file stays */
    CHECK_EQ(lstat(path, &st), 0);
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &b, &err), 0);
    a.fd = dup(b.fd);
    a.ino = b.ino + 1; /* not the file that is there now */
    bh_adopt_close(&a);
    CHECK_EQ(lstat(path, &st), 0);
    bh_adopt_close(&b);
    CHECK(lstat(path, &st) < 0);
    CHECK_EQ(rmdir(folder), 0);
}

TEST(places_that_cannot_be)
{
    struct bh_adopt_socket a;
    struct bh_err err;
    char text[200];
    CHECK(make_folder());
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &a, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "no socket") != NULL);
    CHECK_EQ(access(path, F_OK), 0);
    CHECK_EQ(unlink(path), 0);
    (void)snprintf(text, sizeof(text), "%s/no/s", folder);
    CHECK_EQ(bh_adopt_listen(text, geteuid(), &a, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "the folder of") != NULL);
    CHECK_EQ(bh_adopt_listen("", geteuid(), &a, &err), BH_INVALID);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK_EQ(bh_adopt_listen(text, geteuid(), &a, &err), BH_INVALID);
    CHECK(strstr(err.msg, "1 to 107 bytes") != NULL);
    CHECK_EQ(rmdir(folder), 0);
}

TEST(who_may_send)
{
    enum { SOMEBODY = 12345 };
    struct bh_adopt_socket a;
    struct bh_err err;
    uid_t uid = 99;
    CHECK(make_folder());
    CHECK_EQ(bh_adopt_listen(path, geteuid(), &a, &err), 0);
    const int c = connect_to(path), s = accept(a.fd, NULL, NULL);
    CHECK(c >= 0 && s >= 0);
    CHECK_EQ(bh_adopt_peer(s, SOMEBODY, &uid, &err), 0);
    CHECK_EQ(uid, geteuid());
    close(c);
    close(s);
    bh_adopt_close(&a);
    if (geteuid() == 0) {
        /* the file is the owner's; a third user is refused even if he got as far as here */
        struct stat st;
        CHECK_EQ(bh_adopt_listen(path, SOMEBODY, &a, &err), 0);
        CHECK(lstat(path, &st) == 0 && st.st_uid == SOMEBODY && (st.st_mode & 0777) == 0600);
        CHECK(chmod(folder, 0711) == 0 && chmod(path, 0666) == 0);
        for (uid_t who = SOMEBODY; who <= SOMEBODY + 1; who++) {
            int status = -1;
            const pid_t pid = fork();
            if (pid == 0)
                _exit(setresuid(who, who, who) == 0 && connect_to(path) >= 0 ? 0 : 1);
            CHECK(waitpid(pid, &status, 0) == pid && status == 0);
            const int from = accept(a.fd, NULL, NULL);
            CHECK_EQ(bh_adopt_peer(from, SOMEBODY, &uid, &err), who == SOMEBODY ? 0 : BH_DENIED);
            CHECK_EQ(uid, who);
            close(from);
        }
        bh_adopt_close(&a);
    }
    CHECK_EQ(rmdir(folder), 0);
}

/* A process with a filter (or without), as a user, that waits to be ended. */
static pid_t process(bool filter, uid_t uid)
{
    int p[2];
    char byte;
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = {1, &allow};
        if (uid && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
            _exit(1);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 ||
            (filter && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0))
            _exit(1);
        (void)!write(p[1], "", 1);
        for (;;)
            (void)pause();
    }
    close(p[1]);
    const bool ready = read(p[0], &byte, 1) == 1;
    close(p[0]);
    return ready ? pid : -1;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

TEST(which_process_is_believed)
{
    enum { SOMEBODY = 12345 };
    struct bh_err err;
    int fd = -1;
    const pid_t plain = process(false, 0), filtered = process(true, 0);
    CHECK(plain > 0 && filtered > 0);
    CHECK_EQ(bh_adopt_process(0, 0, &fd, &err), BH_REFUSED);
    CHECK_EQ(bh_adopt_process((uint32_t)plain, 0, &fd, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "carries no system call filter") != NULL && fd == -1);
    CHECK_EQ(bh_adopt_process((uint32_t)filtered, 0, &fd, &err), 0);
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    if (geteuid() == 0) {
        /* somebody else's word is good for his own processes only */
        CHECK_EQ(bh_adopt_process((uint32_t)filtered, SOMEBODY, &fd, &err), BH_REFUSED);
        CHECK(strstr(err.msg, "could have started") != NULL);
        const pid_t his = process(true, SOMEBODY);
        CHECK(his > 0);
        CHECK_EQ(bh_adopt_process((uint32_t)his, SOMEBODY, &fd, &err), 0);
        close(fd);
        CHECK_EQ(bh_adopt_process((uint32_t)his, SOMEBODY + 1, &fd, &err), BH_REFUSED);
        end(his);
    }
    end(plain);
    end(filtered);
    CHECK_EQ(bh_adopt_process((uint32_t)filtered, 0, &fd, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "pid namespace") != NULL);
}

TEST_MAIN
