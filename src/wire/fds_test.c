/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/fds.h"

#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const int kinds[] = {SOCK_SEQPACKET, SOCK_STREAM};

/* How many descriptors this process has: none may be left over by a refusal. */
static int open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Sent without bh_fds_send, which would not send such a thing. */
static bool send_raw(int to, const void *bytes, size_t n, int fd, size_t times)
{
    union {
        char bytes[CMSG_SPACE(64 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)bytes, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (times) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(times * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(times * sizeof(int));
        for (size_t i = 0; i < times; i++)
            memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

TEST(bytes_and_descriptors_arrive_together)
{
    for (size_t k = 0; k < 2; k++) {
        int s[2], p[2], got[2] = {-1, -1};
        char text[6] = "";
        const int before = open_fds();
        CHECK(socketpair(AF_UNIX, kinds[k], 0, s) == 0 && pipe(p) == 0);
        CHECK_EQ(bh_fds_send(s[0], "hello", 6, p, 2, NULL), 0);
        CHECK_EQ(bh_fds_recv(s[1], text, 6, got, 2, NULL), 0);
        CHECK_STR(text, "hello");
        CHECK(got[0] != p[0] && same_file(got[0], p[0]) && same_file(got[1], p[1]));
        CHECK_EQ(fcntl(got[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        CHECK_EQ(bh_fds_send(s[1], "x", 1, NULL, 0, NULL), 0);
        CHECK_EQ(bh_fds_recv(s[0], text, 1, NULL, 0, NULL), 0);
        for (size_t i = 0; i < 2; i++)
            CHECK(close(s[i]) == 0 && close(p[i]) == 0 && close(got[i]) == 0);
        CHECK_EQ(open_fds(), before);
    }
}

TEST(as_many_as_fit_and_no_more)
{
    int s[2], got[BH_FDS_MAX], many[BH_FDS_MAX];
    char byte;
    const int before = open_fds();
    struct bh_err err;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
    for (size_t i = 0; i < BH_FDS_MAX; i++)
        many[i] = s[0];
    CHECK_EQ(bh_fds_send(s[0], "m", 1, many, BH_FDS_MAX, NULL), 0);
    CHECK_EQ(bh_fds_recv(s[1], &byte, 1, got, BH_FDS_MAX, NULL), 0);
    for (size_t i = 0; i < BH_FDS_MAX; i++)
        CHECK(same_file(got[i], s[0]) && close(got[i]) == 0);
    /* Too many, too few, and far more than the buffer for them holds. */
    static const struct {
        size_t sent, wanted;
        const char *why;
    } wrong[] = {{2, 1, "2 descriptors, not 1"},
                 {1, 2, "1 descriptors, not 2"},
                 {0, 1, "0 descriptors, not 1"},
                 {1, 0, "1 descriptors, not 0"},
                 {BH_FDS_MAX + 1, BH_FDS_MAX, "9 descriptors, not 8"},
                 {64, BH_FDS_MAX, "more descriptors than"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        got[0] = 12345;
        CHECK(send_raw(s[0], "m", 1, s[0], wrong[i].sent));
        CHECK_EQ(bh_fds_recv(s[1], &byte, 1, got, wrong[i].wanted, &err), BH_INVALID);
        CHECK(strstr(err.msg, wrong[i].why) != NULL);
        CHECK_EQ(got[0], 12345);
        CHECK_EQ(open_fds(), before + 2);
    }
    CHECK(close(s[0]) == 0 && close(s[1]) == 0);
}

TEST(a_message_of_another_length_is_refused)
{
    int s[2], got;
    char text[4];
    const int before = open_fds();
    struct bh_err err;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
    CHECK(send_raw(s[0], "hello", 5, s[0], 1));
    CHECK_EQ(bh_fds_recv(s[1], text, 4, &got, 1, &err), BH_INVALID);
    CHECK_STR(err.msg, "receiving from a socket: a message of more than 4 bytes");
    CHECK(send_raw(s[0], "abc", 3, s[0], 1));
    CHECK_EQ(bh_fds_recv(s[1], text, 4, &got, 1, &err), BH_INVALID);
    CHECK_STR(err.msg, "receiving from a socket: 3 bytes, not 4");
    CHECK_EQ(open_fds(), before + 2);
    CHECK(close(s[0]) == 0 && close(s[1]) == 0);
}

TEST(a_stream_in_pieces_is_joined)
{
    int s[2];
    char text[8];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!write(s[0], "half", 4);
        usleep(20000);
        (void)!write(s[0], "way", 4);
        _exit(0);
    }
    CHECK(close(s[0]) == 0);
    CHECK_EQ(bh_fds_recv(s[1], text, sizeof(text), NULL, 0, NULL), 0);
    CHECK_STR(text, "halfway");
    CHECK_EQ(bh_fds_recv(s[1], text, sizeof(text), NULL, 0, NULL), BH_NOT_FOUND);
    CHECK(close(s[1]) == 0);
}

TEST(the_other_side_is_gone)
{
    for (size_t k = 0; k < 2; k++) {
        int s[2], got = -1;
        char byte;
        struct bh_err err;
        CHECK(socketpair(AF_UNIX, kinds[k], 0, s) == 0);
        CHECK(close(s[0]) == 0);
        CHECK_EQ(bh_fds_recv(s[1], &byte, 1, &got, 1, &err), BH_NOT_FOUND);
        CHECK_STR(err.msg, "receiving from a socket: the other side has closed it");
        /* and no SIGPIPE ends this test */
        CHECK_EQ(bh_fds_send(s[1], "x", 1, NULL, 0, &err), BH_SYSTEM);
        CHECK_EQ(got, -1);
        CHECK(close(s[1]) == 0);
    }
}

/* It left without reading what it was sent: its own words come nevertheless. */
TEST(last_words_are_heard)
{
    for (size_t k = 0; k < 2; k++) {
        int s[2];
        char text[4];
        CHECK(socketpair(AF_UNIX, kinds[k], 0, s) == 0);
        CHECK_EQ(bh_fds_send(s[1], "ask", 4, NULL, 0, NULL), 0);
        CHECK_EQ(bh_fds_send(s[0], "bye", 4, NULL, 0, NULL), 0);
        CHECK(close(s[0]) == 0);
        CHECK_EQ(bh_fds_recv(s[1], text, 4, NULL, 0, NULL), 0);
        CHECK_STR(text, "bye");
        CHECK_EQ(bh_fds_recv(s[1], text, 4, NULL, 0, NULL), BH_NOT_FOUND);
        CHECK(close(s[1]) == 0);
    }
}

TEST(a_process_without_room_for_descriptors)
{
    int s[2], got[2] = {-1, -1}, two[2];
    char byte;
    struct bh_err err;
    struct rlimit was, none;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
    two[0] = two[1] = s[0];
    CHECK_EQ(bh_fds_send(s[0], "m", 1, two, 2, NULL), 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
    none = was;
    none.rlim_cur = (rlim_t)s[1] + 2; /* room for one */
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int rc = bh_fds_recv(s[1], &byte, 1, got, 2, &err);
    CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CHECK_EQ(rc, BH_INVALID);
    CHECK(strstr(err.msg, "room for") != NULL);
    CHECK(got[0] == -1 && fcntl(s[1] + 1, F_GETFD) < 0);
    CHECK(close(s[0]) == 0 && close(s[1]) == 0);
}

TEST(not_a_socket)
{
    int p[2];
    char byte;
    CHECK(pipe(p) == 0);
    CHECK_EQ(bh_fds_send(p[1], "x", 1, NULL, 0, NULL), BH_SYSTEM);
    CHECK_EQ(bh_fds_recv(p[0], &byte, 1, NULL, 0, NULL), BH_SYSTEM);
    CHECK(close(p[0]) == 0 && close(p[1]) == 0);
}

TEST(what_is_there_is_taken_without_waiting)
{
    int s[2], p[2], fds[BH_FDS_MAX];
    size_t n_fds = 9;
    char text[8] = "";
    struct bh_err err;
    const int before = open_fds();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && pipe(p) == 0);
    CHECK_EQ(bh_fds_recv_some(s[1], text, sizeof(text), fds, &n_fds, &err), BH_BUSY);
    CHECK_EQ(n_fds, 0);
    CHECK_EQ(bh_fds_send(s[0], "hello", 5, p, 2, NULL), 0);
    CHECK_EQ(bh_fds_recv_some(s[1], text, sizeof(text), fds, &n_fds, &err), 5);
    CHECK_STR(text, "hello");
    CHECK(n_fds == 2 && same_file(fds[0], p[0]) && same_file(fds[1], p[1]));
    CHECK(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    close(fds[0]);
    close(fds[1]);
    /* one more than there is room for: refused, and closed */
    CHECK(send_raw(s[0], "x", 1, p[0], BH_FDS_MAX + 1));
    CHECK_EQ(bh_fds_recv_some(s[1], text, sizeof(text), fds, &n_fds, &err), BH_INVALID);
    CHECK_EQ(n_fds, 0);
    CHECK(send_raw(s[0], "x", 1, p[0], 60));
    CHECK_EQ(bh_fds_recv_some(s[1], text, sizeof(text), fds, &n_fds, &err), BH_INVALID);
    close(s[0]);
    CHECK_EQ(bh_fds_recv_some(s[1], text, sizeof(text), fds, &n_fds, &err), 0);
    close(s[1]);
    close(p[0]);
    close(p[1]);
    CHECK_EQ(open_fds(), before);
}

TEST_MAIN
