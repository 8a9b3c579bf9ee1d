/* SPDX-License-Identifier: Apache-2.0 */
/* control_test.c - who may order what, and that nobody who connects is in another's way. The other side is this process, too. */
#include "keeper/control.h"

#include "base/mem.h"
#include "base/test.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGER = 54321, OWNER = 54322 };

static int orders, lefts, last_op;

static void take(void *arg, const struct bh_keeper_order *order, const int *fds, struct bh_keeper_status *ret)
{
    (void)arg;
    orders++;
    last_op = (int)order->op;
    for (int i = 0; order->op == BH_KEEPER_ATTACH && i < 3; i++)
        close(fds[i]);
    ret->state = BH_KEEPER_RUNS;
}

static void left(void *arg)
{
    (void)arg;
    lefts++;
}

/* Listens on a name that no file has. */
static struct bh_control begin(struct sockaddr_un *at)
{
    struct bh_control c = {.epoll = epoll_create1(EPOLL_CLOEXEC),
                           .listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                           .owner = OWNER,
                           .order = take,
                           .left = left};
    struct bh_err err;
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "bulkhead-control-test-%d", (int)getpid());
    if (bind(c.listener, (const struct sockaddr *)at, sizeof(*at)) < 0 || listen(c.listener, 128) < 0 ||
        bh_control_open(&c, &err) < 0)
        abort();
    orders = lefts = last_op = 0;
    return c;
}

static void finish(struct bh_control *c)
{
    bh_control_close(c);
    close(c->epoll);
}

static int connected(const struct sockaddr_un *at)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ? fd : -1;
}

static void say(int fd, enum bh_keeper_op op, size_t n_fds)
{
    const struct bh_keeper_order order = {.version = BH_KEEPER_VERSION, .op = op};
    const int fds[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    (void)!bh_fds_send(fd, &order, sizeof(order), fds, n_fds, NULL);
}

static int code_of(int fd)
{
    struct bh_keeper_status s;
    return bh_fds_recv(fd, &s, sizeof(s), NULL, 0, NULL) < 0 ? 1 : s.code;
}

TEST(an_order_and_its_answer)
{
    struct sockaddr_un at;
    struct bh_control c = begin(&at);
    const int fd = connected(&at);
    bh_control_hear(&c);
    CHECK_EQ(c.n, 1);
    say(fd, BH_KEEPER_STOP, 0);
    bh_control_hear(&c);
    CHECK_EQ(last_op, BH_KEEPER_STOP);
    CHECK_EQ(code_of(fd), 0);
    close(fd);
    bh_control_hear(&c);
    CHECK_EQ(c.n, 0);
    CHECK_EQ(lefts, 0);
    finish(&c);
}

TEST(nonsense_is_refused_or_dropped)
{
    struct sockaddr_un at;
    struct bh_control c = begin(&at);
    const int fd = connected(&at);
    const struct bh_keeper_order old = {.version = 99, .op = BH_KEEPER_STOP};
    CHECK(send(fd, &old, sizeof(old), 0) > 0);
    bh_control_hear(&c);
    CHECK_EQ(code_of(fd), BH_INVALID);
    say(fd, (enum bh_keeper_op)77, 0);
    bh_control_hear(&c);
    CHECK_EQ(code_of(fd), BH_INVALID);
    say(fd, BH_KEEPER_STATUS, 3); /* descriptors that nobody asked for */
    bh_control_hear(&c);
    CHECK_EQ(code_of(fd), BH_INVALID);
    say(fd, BH_KEEPER_ATTACH, 2);
    bh_control_hear(&c);
    CHECK_EQ(code_of(fd), BH_INVALID);
    CHECK_EQ(orders, 0);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    bh_control_hear(&c);
    CHECK_EQ(c.n, 0);
    close(fd);
    finish(&c);
}

TEST(who_watches_hears_and_who_was_attached_is_missed)
{
    struct sockaddr_un at;
    struct bh_control c = begin(&at);
    const struct bh_keeper_status news = {.version = BH_KEEPER_VERSION, .code = -5};
    const int watcher = connected(&at), client = connected(&at), other = connected(&at);
    say(watcher, BH_KEEPER_WATCH, 0);
    say(client, BH_KEEPER_ATTACH, 3);
    say(other, BH_KEEPER_STATUS, 0);
    bh_control_hear(&c);
    CHECK_EQ(code_of(watcher), 0);
    CHECK_EQ(code_of(client), 0);
    CHECK_EQ(code_of(other), 0);
    bh_control_tell(&c, &news);
    CHECK_EQ(code_of(watcher), -5);
    CHECK_EQ(code_of(client), -5);
    char byte;
    CHECK_EQ(recv(other, &byte, 1, MSG_DONTWAIT), -1);
    close(watcher);
    bh_control_hear(&c);
    CHECK_EQ(lefts, 0);
    close(client);
    bh_control_hear(&c);
    CHECK_EQ(lefts, 1);
    close(other);
    finish(&c);
}

TEST(a_crowd_pushes_out_its_own)
{
    struct sockaddr_un at;
    struct bh_control c = begin(&at);
    int fds[2 * BH_CONTROL_MAX];
    const int client = connected(&at);
    say(client, BH_KEEPER_ATTACH, 3);
    bh_control_hear(&c);
    for (size_t i = 0; i < BH_COUNT_OF(fds); i++) {
        fds[i] = connected(&at);
        bh_control_hear(&c);
    }
    CHECK_EQ(c.n, BH_CONTROL_MAX);
    CHECK_EQ(lefts, 0);
    for (size_t i = 0; i < BH_COUNT_OF(fds); i++)
        close(fds[i]);
    bh_control_hear(&c);
    CHECK_EQ(c.n, 1);
    close(client);
    finish(&c);
}

/* What a user gets for an order; 1: nothing. */
static int as_user(struct bh_control *c, const struct sockaddr_un *at, uid_t uid, enum bh_keeper_op op)
{
    int status = 0;
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        if (setresuid(uid, uid, uid) < 0)
            _exit(99);
        const int fd = connected(at);
        say(fd, op, 0);
        _exit(fd < 0 ? 98 : code_of(fd) == BH_DENIED ? 13 : 0);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct epoll_event e;
        (void)epoll_wait(c->epoll, &e, 1, 10);
        bh_control_hear(c);
    }
    return WEXITSTATUS(status);
}

TEST(who_may_what)
{
    struct sockaddr_un at;
    if (geteuid() != 0) {
        printf("# skipped: needs root, to be others\n");
        return;
    }
    struct bh_control c = begin(&at);
    static const enum bh_keeper_op all[] = {BH_KEEPER_STATUS, BH_KEEPER_WATCH, BH_KEEPER_SIGNAL,
                                            BH_KEEPER_STOP};
    for (size_t i = 0; i < BH_COUNT_OF(all); i++) {
        CHECK_EQ(as_user(&c, &at, 0, all[i]), 0);
        CHECK_EQ(as_user(&c, &at, OWNER, all[i]), all[i] == BH_KEEPER_STOP ? 13 : 0);
        CHECK_EQ(as_user(&c, &at, STRANGER, all[i]), 13);
    }
    finish(&c);
}

TEST_MAIN
