/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_abuse_test.c - callers that misbehave, die at a bad moment, or ask for what is not theirs: the node and the
 * others must not notice.
 */
#include "simgpu/serve/serve_fixture.h"

#include <time.h>

TEST(what_is_no_request_harms_only_its_sender)
{
    static struct {
        struct bh_sim_msg msg;
        unsigned char body[BH_SIM_BODY_MAX + 100];
    } big;
    const struct bh_sim_msg unknown = {.op = BH_SIM_OP_N_}, wild = {.op = 12345678},
                            liar = {.op = BH_SIM_OP_VIEW, .n_body = 17},
                            huge = {.op = BH_SIM_OP_IOCTL, .n_arg = UINT32_MAX, .n_params = UINT32_MAX},
                            flat = {.op = BH_SIM_OP_MIG}, wide = {.op = BH_SIM_OP_OPEN, .a = UINT64_MAX};
    sim_begin();
    int fd = sim_raw();
    CHECK_EQ(raw_ask(fd, &unknown, sizeof(unknown)).result, -ENOSYS);
    CHECK_EQ(raw_ask(fd, &wild, sizeof(wild)).result, -ENOSYS);
    CHECK_EQ(raw_ask(fd, &liar, sizeof(liar)).result, -EINVAL);
    CHECK_EQ(raw_ask(fd, &huge, sizeof(huge)).result, -EINVAL);
    CHECK_EQ(raw_ask(fd, &flat, sizeof(flat)).result, -EINVAL);
    CHECK_EQ(raw_ask(fd, &wide, sizeof(wide)).result, -ENXIO);
    big.msg.op = BH_SIM_OP_WRITE;
    big.msg.n_body = sizeof(big.body);
    CHECK_EQ(raw_ask(fd, &big, sizeof(big)).result, -EMSGSIZE);
    CHECK_EQ(raw_ask(fd, &unknown, sizeof(unknown)).result, -ENOSYS); /* still there */
    /* Half a message: that is not our language. */
    CHECK_EQ(raw_ask(fd, &unknown, sizeof(unknown) / 2).result, -ENOTCONN);
    close(fd);
    fd = sim_raw();
    CHECK_EQ(raw_ask(fd, "", 0).result, -ENOTCONN);
    close(fd);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

TEST(more_descriptors_than_one_are_refused_and_closed)
{
    enum { MANY = 200 };
    union {
        char bytes[CMSG_SPACE(MANY * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct bh_sim_msg m = {.op = BH_SIM_OP_FENCE};
    struct iovec iov = {&m, sizeof(m)};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    int ends[2], fds[MANY];
    char byte;
    sim_begin();
    CHECK_EQ(pipe(ends), 0);
    for (int i = 0; i < MANY; i++)
        fds[i] = ends[1];
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    int fd = sim_raw();
    CHECK(sendmsg(fd, &h, 0) == (ssize_t)sizeof(m));
    CHECK(recv(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m));
    CHECK_EQ(m.result, -EINVAL);
    /* The pipe ends when nobody has its writing end any more. */
    close(ends[1]);
    CHECK_EQ(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    close(fd);
    CHECK(sim_end());
}

/* n bytes with a descriptor. */
static bool send_with(int to, const void *bytes, size_t n, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)bytes, n};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(to, &h, MSG_NOSIGNAL) >= 0;
}

TEST(a_descriptor_with_no_message_is_closed)
{
    int ends[2];
    char byte;
    sim_begin();
    CHECK_EQ(pipe(ends), 0);
    for (int i = 0; i < 3; i++) {
        int fd = sim_raw();
        CHECK(send_with(fd, "", 0, ends[1]));
        CHECK_EQ(recv(fd, &byte, 1, 0), 0); /* hung up on */
        close(fd);
    }
    close(ends[1]);
    CHECK(sim_holds_nothing()); /* and answered since: all three are seen to */
    CHECK_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(read(ends[0], &byte, 1), 0); /* nobody has the other end */
    close(ends[0]);
    CHECK(sim_end());
}

/* A descriptor that lies in a queue of the server's would be open for as long as the server is. */
TEST(what_is_sent_to_itself_is_kept_by_nobody)
{
    sim_begin();
    for (int how = 0; how < 2; how++) {
        pid_t pid = fork_quiet();
        if (pid == 0) {
            uint64_t fence;
            int fd = bh_sim_open("/dev/nvidiactl"), raw = sim_raw();
            if (!sim_set_up(fd, SIM_CLIENT) ||
                bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, for_ever, &fence) < 0)
                _exit(1);
            const struct bh_sim_msg wait = {.op = BH_SIM_OP_WAIT, .a = SIM_CLIENT, .b = SIM_CHAN, .c = fence};
            if (how == 0) /* the file through itself */
                (void)send_with(fd, "x", 1, fd);
            else if (send_with(raw, &wait, sizeof(wait), fd)) { /* a connection that waits, and the file */
                struct timespec step = {.tv_nsec = 30000000};
                (void)nanosleep(&step, NULL);
                (void)send_with(raw, "x", 1, raw);
                (void)send_with(raw, "x", 1, fd);
            }
            (void)raise(SIGKILL);
        }
        CHECK_EQ(exit_of(pid), -1);
        struct timespec step = {.tv_nsec = 10000000};
        for (int i = 0; i < 200 && !sim_holds_nothing(); i++)
            (void)nanosleep(&step, NULL); /* the kernel comes to circles of sockets in its own time */
        CHECK(sim_holds_nothing());
    }
    CHECK(sim_end());
}

TEST(whoever_asks_again_while_it_waits_is_hung_up_on)
{
    const struct bh_sim_msg held = {.op = BH_SIM_OP_HELD};
    struct bh_sim_msg wait = {.op = BH_SIM_OP_WAIT, .a = SIM_CLIENT, .b = SIM_CHAN}, m;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl"), raw = sim_raw();
    CHECK(sim_set_up(fd, SIM_CLIENT));
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, for_ever, &wait.c), 0);
    CHECK(send_with(raw, &wait, sizeof(wait), fd));
    CHECK_EQ(sim_held().files, 1); /* the wait was seen before this was answered, or is next */
    (void)send(raw, &held, sizeof(held), MSG_NOSIGNAL);
    CHECK(recv(raw, &m, sizeof(m), 0) <= 0);
    close(raw);
    close(fd);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

TEST(whoever_does_not_listen_is_hung_up_on)
{
    const struct bh_sim_msg open = {.op = BH_SIM_OP_OPEN, .a = BH_FILE_CTL};
    struct bh_sim_msg m;
    sim_begin();
    int fd = sim_raw(), sent = 0, got = 0;
    while (send(fd, &open, sizeof(open), MSG_NOSIGNAL) > 0)
        sent++; /* and nothing is ever taken: that ends when the server has had enough */
    CHECK(sent >= 1);
    struct bh_sim_node_view view;
    CHECK_EQ(bh_sim_hello(&view), 0);
    while (recv(fd, &m, sizeof(m), 0) > 0)
        got++;
    CHECK(got <= 1);
    close(fd);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

/* Everything a tenant does, over and over, until it is killed. */
static _Noreturn void tenant(unsigned n)
{
    for (uint32_t i = 0;; i++) {
        struct bh_sim_gpu_view view;
        int fd = bh_sim_open(i % 2 ? "/dev/nvidiactl" : "/dev/nvidia0");
        uint32_t client = 0xc0000000 + n * 4096 + i % 4096;
        uint64_t fence = 0;
        if (fd < 0 || !sim_set_up(fd, client))
            _exit(7);
        if (bh_sim_doorbell(fd, client, SIM_CHAN, 100000, &fence) == 0)
            (void)bh_sim_wait(fd, client, SIM_CHAN, fence);
        (void)bh_sim_view(0, &view);
        close(fd);
    }
}

TEST(tenants_killed_at_any_moment_leave_nothing)
{
    enum { TENANTS = 12 };
    pid_t pids[TENANTS];
    sim_begin();
    for (unsigned i = 0; i < TENANTS; i++) {
        pids[i] = fork_quiet();
        if (pids[i] == 0)
            tenant(i);
        struct timespec step = {.tv_nsec = 1000000 * (1 + i * 5 % 7)};
        (void)nanosleep(&step, NULL);
    }
    for (unsigned i = 0; i < TENANTS; i++) {
        CHECK_EQ(kill(pids[i], SIGKILL), 0);
        CHECK_EQ(exit_of(pids[i]), -1); /* not 7: each worked until then */
    }
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

TEST(the_last_places_are_the_owners)
{
    enum { ROOM = 24 };
    int go[2], back[2];
    char byte = 0;
    sim_begin_with(ROOM);
    if (geteuid() != 0) { /* nobody else to be */
        CHECK(sim_end());
        return;
    }
    CHECK(pipe(go) == 0 && pipe(back) == 0);
    pid_t pid = fork_quiet();
    if (pid == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        while (bh_sim_open("/dev/nvidiactl") >= 0)
            ;
        const bool full = errno == EMFILE;
        for (int i = 0; i < ROOM; i++) /* and every connection there is */
            (void)sim_raw();
        (void)!write(back[1], full ? "y" : "n", 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    CHECK(read(back[0], &byte, 1) == 1 && byte == 'y');
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(fd >= 3);
    CHECK(sim_held().files > 5);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "gpu 0 hot 95"), 0);
    close(fd);
    CHECK_EQ(write(go[1], "x", 1), 1);
    CHECK_EQ(exit_of(pid), 0);
    CHECK(sim_holds_nothing());
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(back[i]);
    }
    CHECK(sim_end());
}

/* The caller is whoever sends, as with a system call; who connected does not matter. */
TEST(privilege_is_the_senders)
{
    struct {
        struct bh_sim_msg msg;
        char words[12];
    } hot = {{.op = BH_SIM_OP_BREAK, .n_body = 12}, "gpu 0 hot 95"};
    const size_t bytes = sizeof(hot.msg) + sizeof(hot.words);
    sim_begin();
    int ours = sim_raw();
    CHECK_EQ(raw_ask(ours, &hot, bytes).result, 0);
    pid_t pid = fork_quiet();
    if (pid == 0) {
        if (geteuid() != 0) /* nobody else to be */
            _exit(0);
        int fd = sim_raw();
        bool was = raw_ask(fd, &hot, bytes).result == 0;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        /* over a connection made before, and one that was handed over */
        _exit(was && raw_ask(fd, &hot, bytes).result == -EPERM && raw_ask(ours, &hot, bytes).result == -EPERM
                  ? 0
                  : 1);
    }
    CHECK_EQ(exit_of(pid), 0);
    CHECK_EQ(raw_ask(ours, &hot, bytes).result, 0);
    close(ours);
    CHECK(sim_end());
}

TEST(files_of_one_process_are_tied_and_others_are_not)
{
    struct rm_free f = {.client = SIM_CLIENT, .parent = SIM_DEV, .object = SIM_MEM};
    sim_begin();
    int a = bh_sim_open("/dev/nvidiactl"), b = bh_sim_open("/dev/nvidia0");
    CHECK(sim_set_up(a, SIM_CLIENT));
    pid_t pid = fork_quiet();
    if (pid == 0) {
        int own = bh_sim_open("/dev/nvidiactl");
        struct rm_free mine = f;
        /* a file of its own is no key to the parent's client; the parent's file is */
        bool strange =
            bh_sim_ioctl(own, RM_IOC(RM_FREE, sizeof(mine)), &mine) == 0 && mine.status == RM_INVALID_CLIENT;
        mine = f;
        mine.object = SIM_CHAN;
        mine.parent = SIM_TSG;
        _exit(strange && bh_sim_ioctl_direct(a, RM_IOC(RM_FREE, sizeof(mine)), &mine) == 0 &&
                      mine.status == RM_OK
                  ? 0
                  : 1);
    }
    CHECK_EQ(exit_of(pid), 0);
    CHECK(bh_sim_ioctl(b, RM_IOC(RM_FREE, sizeof(f)), &f) == 0);
    CHECK_EQ(f.status, RM_OK);
    close(a);
    close(b);
    CHECK(sim_end());
}

TEST(only_the_owner_breaks_and_stops)
{
    sim_begin();
    pid_t pid = fork_quiet();
    if (pid == 0) {
        struct bh_sim_mig_order mig = {.verb = BH_SIM_MIG_MODE, .profile_id = 1, .start = -1};
        /* Without root there is nobody else to be, and the server takes us for the owner. */
        if (geteuid() != 0)
            _exit(0);
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        int fd = bh_sim_open("/dev/nvidiactl");
        _exit(fd >= 3 && order(BH_SIM_OP_BREAK, 0, "gpu 0 lost") == EPERM &&
                      order(BH_SIM_OP_JOURNAL, 1, "") == EPERM && order(BH_SIM_OP_STOP, 0, "") == EPERM &&
                      bh_sim_mig(&mig) == 0 && mig.status != 0
                  ? 0
                  : 1);
    }
    CHECK_EQ(exit_of(pid), 0);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "gpu 0 lost"), 0);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

TEST_MAIN
