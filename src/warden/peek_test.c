/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/peek.h"

#include "base/own_fds_fixture.h"
#include "base/test.h"
#include "warden/served_page_fixture.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What it is told to have open is under `fd`; as another user, or one that its like may not look at. */
struct child {
    pid_t pid, server;
    int fd;
};

enum as { AS_WE_ARE, AS_ANOTHER, AS_ANOTHER_HIDDEN };

static struct child start(int (*make)(void), enum as as)
{
    struct child c = {.fd = -1};
    int told[2];
    if (pipe(told) < 0)
        abort();
    c.pid = fork();
    if (c.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = make();
        if (as != AS_WE_ARE && syscall(SYS_setresuid, 65534, 65534, 65534) < 0)
            fd = -1;
        (void)prctl(PR_SET_DUMPABLE, as != AS_ANOTHER_HIDDEN);
        (void)!write(told[1], &fd, sizeof(fd));
        (void)!write(told[1], &served_by, sizeof(served_by));
        for (;;)
            (void)pause();
    }
    if (read(told[0], &c.fd, sizeof(c.fd)) != (ssize_t)sizeof(c.fd) ||
        read(told[0], &c.server, sizeof(c.server)) != (ssize_t)sizeof(c.server))
        abort();
    close(told[0]);
    close(told[1]);
    return c;
}

static void stop(struct child c)
{
    CHECK(kill(c.pid, SIGKILL) == 0 && waitpid(c.pid, NULL, 0) == c.pid);
}

static int make_null(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

TEST(what_is_open_is_seen)
{
    struct bh_peek seen;
    struct child null = start(make_null, AS_WE_ARE), sock = start(make_socket, AS_WE_ARE);
    CHECK_EQ(bh_peek((uint32_t)null.pid, null.fd, &seen), 0);
    CHECK(S_ISCHR(seen.mode) && seen.dev_major == 1 && seen.dev_minor == 3);
    CHECK_EQ(bh_peek((uint32_t)sock.pid, sock.fd, &seen), 0);
    CHECK(S_ISSOCK(seen.mode));
    CHECK_EQ(bh_peek((uint32_t)sock.pid, 4000, &seen), -EBADF);
    CHECK_EQ(bh_peek((uint32_t)sock.pid, -1, &seen), -EBADF);
    CHECK_EQ(seen.mode, 0);
    stop(null);
    stop(sock);
    bh_peek_own(-1, &seen);
    CHECK_EQ(seen.mode, 0);
}

/* The warden has few of root's rights: its folder in /proc is then for a process's own user. */
TEST(another_users_are_seen_as_that_user)
{
    const struct __user_cap_data_struct few = {
        .effective = CAP_TO_MASK(CAP_SYS_PTRACE) | CAP_TO_MASK(CAP_SETUID),
        .permitted = CAP_TO_MASK(CAP_SYS_PTRACE) | CAP_TO_MASK(CAP_SETUID)};
    if (geteuid() != 0)
        return;
    for (int hidden = 0; hidden < 2; hidden++)
        for (uid_t we = 0; we < 2; we++) {
            struct child c = start(make_null, hidden ? AS_ANOTHER_HIDDEN : AS_ANOTHER);
            int status;
            pid_t warden = fork();
            if (warden == 0) {
                struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
                const struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {few};
                struct bh_peek seen;
                if (c.fd < 0 || prctl(PR_SET_KEEPCAPS, 1) < 0 || syscall(SYS_setresuid, we, we, we) < 0 ||
                    syscall(SYS_capset, &head, caps) < 0)
                    _exit(1);
                const bool good = bh_peek((uint32_t)c.pid, c.fd, &seen) == 0 && S_ISCHR(seen.mode);
                _exit(!good ? 2 : (uid_t)syscall(SYS_setfsuid, -1) != we ? 3 : 0);
            }
            CHECK(waitpid(warden, &status, 0) == warden);
            CHECK_EQ(status, 0);
            stop(c);
        }
}

static char folder[] = "/tmp/bulkhead-peek-XXXXXX";

static int make_served(void)
{
    served_keeps_closing = true;
    return served_file(folder, false);
}

/* Looked at, it waits for nobody; closed, it is waited for by others, and then by who closes it: the watchdog sees that. */
TEST(a_file_that_a_process_serves_keeps_nobody)
{
    enum { MORE = 40 };
    struct bh_peek seen;
    struct bh_watchdog *w;
    CHECK(mkdtemp(folder) != NULL);
    struct child c = start(make_served, AS_WE_ARE);
    if (c.fd < 0) {
        printf("# no such file here\n");
        stop(c);
        CHECK_EQ(rmdir(folder), 0);
        return;
    }
    CHECK_EQ(bh_peek((uint32_t)c.pid, c.fd, &seen), 0);
    CHECK(S_ISREG(seen.mode));
    const int pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0),
              server = (int)syscall(SYS_pidfd_open, c.server, 0);
    const size_t before = own_fds();
    CHECK_EQ(bh_watchdog_start(100, &w, NULL), BH_OK);
    bh_watchdog_add(w, server);
    int closed = 0;
    for (; closed < MORE && !bh_watchdog_bit(w); closed++) {
        const int own = (int)syscall(SYS_pidfd_getfd, pidfd, c.fd, 0);
        CHECK(own >= 0);
        bh_peek_close(own, w, (uint32_t)c.pid);
    }
    printf("# bitten after %d\n", closed);
    CHECK(closed > 1 && bh_watchdog_bit(w));
    bh_watchdog_stop(w);
    CHECK_EQ(waitpid(c.pid, NULL, 0), c.pid);
    for (int i = 0; i < 5000 && own_fds() > before; i++)
        (void)usleep(1000);
    CHECK_EQ(own_fds(), before);
    close(pidfd);
    close(server);
    CHECK_EQ(rmdir(folder), 0);
}

TEST_MAIN
