/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_test.c - the message as runc 1.1.5 and crun 1.8.1 send it, and as nobody should.
 *
 * Over a real socket with real descriptors; after each refusal nothing may be left open.
 */
#include "wire/oci.h"

#include "base/mem.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char runc_init[] =
    "{\"ociVersion\":\"1.0.2-dev\",\"fds\":[\"seccompFd\"],\"pid\":3125,\"metadata\":\"bulkhead 1\",\"state\":"
    "{\"ociVersion\":\"1.0.2-dev\",\"id\":\"t1\",\"status\":\"creating\",\"pid\":3125,\"bundle\":\"/b\"}}";
static const char runc_exec[] =
    "{\"ociVersion\":\"1.0.2-dev\",\"fds\":[\"seccompFd\"],\"pid\":3144,\"metadata\":\"bulkhead 1\",\"state\":"
    "{\"ociVersion\":\"1.0.2-dev\",\"id\":\"t1\",\"status\":\"running\",\"pid\":3125,\"bundle\":\"/b\"}}";
static const char crun_exec[] =
    "{\n    \"ociVersion\": \"0.2.0\",\n    \"fds\": [\n        \"seccompFd\"\n    ],\n    \"pid\": 0,\n"
    "    \"metadata\": \"bulkhead 1\",\n    \"state\": {\n        \"ociVersion\": \"0.2.0\",\n        \"id\": \"t1\",\n"
    "        \"status\": \"running\",\n        \"pid\": 0,\n        \"bundle\": \".\"\n    }\n}\n";

static int open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(what_runtimes_send)
{
    struct bh_oci_state s;
    CHECK_EQ(bh_oci_parse(runc_init, strlen(runc_init), &s, NULL), 0);
    CHECK_EQ(s.pid, 3125);
    CHECK_EQ(s.init_pid, 3125);
    CHECK_STR(s.id, "t1");
    CHECK_STR(s.status, "creating");
    CHECK_STR(s.metadata, "bulkhead 1");
    CHECK_EQ(bh_oci_parse(runc_exec, strlen(runc_exec), &s, NULL), 0);
    CHECK_EQ(s.pid, 3144);
    CHECK_EQ(s.init_pid, 3125);
    CHECK_STR(s.status, "running");
    CHECK_EQ(bh_oci_parse(crun_exec, strlen(crun_exec), &s, NULL), 0);
    CHECK_EQ(s.pid, 0);
    CHECK_EQ(s.init_pid, 0);
    /* and what later versions may add */
    static const char more[] =
        "{\"new\":{\"a\":[1,{}]},\"state\":{\"annotations\":{\"id\":\"x\",\"pid\":\"y\"},\"id\":\"i\","
        "\"status\":\"creating\"},\"pid\":1,\"fds\":[\"seccompFd\"]}";
    CHECK_EQ(bh_oci_parse(more, strlen(more), &s, NULL), 0);
    CHECK_STR(s.id, "i");
    CHECK_STR(s.metadata, "");
}

TEST(every_cut_is_too_short)
{
    struct bh_oci_state s;
    for (size_t n = 0; n < strlen(runc_init); n++)
        CHECK_EQ(bh_oci_parse(runc_init, n, &s, NULL), BH_BUSY);
}

#define STATE "\"state\":{\"id\":\"a\",\"status\":\"creating\"}"

TEST(what_is_refused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "an object was expected"},
        {"{}", "it has no fds"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1}", "it has no state"},
        {"{\"fds\":[\"seccompFd\"]," STATE "}", "it has no pid"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1,\"state\":{}}", "its state has no id"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1,\"state\":{\"id\":\"a\"}}", "its state has no status"},
        {"{\"fds\":[],\"pid\":1," STATE "}", "names 0 descriptors"},
        {"{\"fds\":[\"other\"],\"pid\":1," STATE "}", "names 1 descriptors"},
        {"{\"fds\":[\"seccompFd\",\"seccompFd\"],\"pid\":1," STATE "}", "names 2 descriptors"},
        {"{\"fds\":\"seccompFd\",\"pid\":1," STATE "}", "a list was expected"},
        {"{\"fds\":[1],\"pid\":1," STATE "}", "a string was expected"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":-1," STATE "}", "a number was expected"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":\"1\"," STATE "}", "a number was expected"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":4294967297," STATE "}", "a pid is too large"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1,\"pid\":2," STATE "}", "twice"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1," STATE "," STATE "}", "twice"},
        {"{\"fds\":[\"seccompFd\"],\"pid\":1," STATE "} {}", "behind its end"},
    };
    struct bh_oci_state s;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        CHECK_EQ(bh_oci_parse(cases[i].text, strlen(cases[i].text), &s, &err), BH_INVALID);
        if (!strstr(err.msg, cases[i].says))
            printf("# %s: %s\n", cases[i].text, err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
    }
    char text[BH_OCI_TEXT_MAX * 2];
    (void)snprintf(text, sizeof(text), "{\"metadata\":\"%0*d\"", BH_OCI_TEXT_MAX, 0);
    CHECK_EQ(bh_oci_parse(text, strlen(text), &s, &err), BH_INVALID);
}

/* ---- over a socket ---- */

/* A real listener: a filter that lets everything through, on a child that is gone again. */
static int make_listener(void)
{
    int pair[2], fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = {1, &allow};
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const int got =
            (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        _exit(got >= 0 && bh_fds_send(pair[1], "", 1, &got, 1, NULL) == 0 ? 0 : 1);
    }
    char byte;
    (void)waitpid(pid, NULL, 0);
    close(pair[1]);
    if (bh_fds_recv(pair[0], &byte, 1, &fd, 1, NULL) < 0)
        fd = -1;
    close(pair[0]);
    return fd;
}

struct sent {
    const char *text;
    size_t n;   /* 0: up to its NUL */
    size_t cut; /* the first of two pieces; 0: in one */
    int fds[3];
    size_t n_fds;
    bool again; /* the descriptors once more with the second piece */
    bool close; /* and then the connection ends */
};

/* Sends it, takes it, and says what came of it; the listener, if there was one, is closed again. */
static int exchange(const struct sent *s, struct bh_oci_state *ret, struct bh_err *err)
{
    struct bh_oci_message m;
    int pair[2], listener = -1, rc = BH_BUSY;
    const size_t n = s->n ? s->n : strlen(s->text), first = s->cut ? s->cut : n;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return BH_SYSTEM;
    bh_oci_init(&m);
    if (first && bh_fds_send(pair[0], s->text, first, s->fds, s->n_fds, err) < 0)
        return BH_SYSTEM;
    if (s->cut) {
        rc = bh_oci_receive(&m, pair[1], ret, &listener, err);
        if (rc == BH_BUSY &&
            bh_fds_send(pair[0], s->text + first, n - first, s->fds, s->again ? s->n_fds : 0, err) < 0)
            return BH_SYSTEM;
    }
    if (s->close)
        (void)shutdown(pair[0], SHUT_WR);
    if (rc == BH_BUSY)
        rc = bh_oci_receive(&m, pair[1], ret, &listener, err);
    bh_oci_fini(&m);
    if (listener >= 0)
        close(listener);
    close(pair[0]);
    close(pair[1]);
    return rc;
}

TEST(a_message_comes_whole_or_in_pieces)
{
    const int before = open_fds(), listener = make_listener();
    struct bh_oci_state state;
    struct bh_err err = {0};
    CHECK(listener >= 0);
    for (size_t cut = 0; cut < sizeof(runc_init) - 1; cut += 7) {
        const struct sent s = {.text = runc_init, .cut = cut, .fds = {listener}, .n_fds = 1};
        CHECK_EQ(exchange(&s, &state, &err), 0);
        CHECK_EQ(state.pid, 3125);
    }
    const struct sent crun = {.text = crun_exec, .fds = {listener}, .n_fds = 1, .close = true};
    CHECK_EQ(exchange(&crun, &state, &err), 0);
    close(listener);
    CHECK_EQ(open_fds(), before);
}

TEST(whatever_else_comes_is_refused_and_closed)
{
    const int before = open_fds(), l = make_listener();
    int other[2];
    CHECK(l >= 0 && pipe2(other, O_CLOEXEC) == 0);
    const struct {
        struct sent sent;
        int code;
        const char *says;
    } cases[] = {
        {{.text = "", .close = true}, BH_NOT_FOUND, "without a word"},
        {{.text = ""}, BH_BUSY, ""},
        {{.text = runc_init, .n = 40, .fds = {l}, .n_fds = 1}, BH_BUSY, ""},
        {{.text = runc_init, .n = 40, .fds = {l}, .n_fds = 1, .close = true}, BH_INVALID, "in the middle"},
        {{.text = runc_init}, BH_INVALID, "with 0 descriptors"},
        {{.text = runc_init, .fds = {l, l}, .n_fds = 2}, BH_INVALID, "with 2 descriptors"},
        {{.text = runc_init, .cut = 9, .fds = {l}, .n_fds = 1, .again = true},
         BH_INVALID,
         "with 2 descriptors"},
        {{.text = runc_init, .fds = {other[0]}, .n_fds = 1}, BH_INVALID, "no seccomp listener"},
        {{.text = "{\"a\"}", .fds = {l}, .n_fds = 1}, BH_INVALID, "a colon was expected"},
        {{.text = "GET / HTTP/1.0\r\n\r\n", .fds = {l}, .n_fds = 1, .close = true},
         BH_INVALID,
         "an object was expected"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_oci_state state;
        struct bh_err err = {0};
        CHECK_EQ(exchange(&cases[i].sent, &state, &err), cases[i].code);
        if (!strstr(err.msg, cases[i].says))
            printf("# %zu: %s\n", i, err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
    }
    close(other[0]);
    close(other[1]);
    close(l);
    CHECK_EQ(open_fds(), before);
}

TEST(more_than_there_is_room_for)
{
    const int before = open_fds();
    struct bh_oci_message m;
    struct bh_oci_state state;
    struct bh_err err = {0};
    int pair[2], listener, rc = BH_BUSY, many[BH_FDS_MAX];
    char blanks[4096];
    memset(blanks, ' ', sizeof(blanks));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    bh_oci_init(&m);
    size_t sent = 0;
    for (; rc == BH_BUSY && sent <= BH_OCI_MESSAGE_MAX; sent += sizeof(blanks)) {
        CHECK_EQ(bh_fds_send(pair[0], blanks, sizeof(blanks), NULL, 0, NULL), 0);
        rc = bh_oci_receive(&m, pair[1], &state, &listener, &err);
    }
    CHECK_EQ(rc, BH_TOO_LARGE);
    CHECK(sent > BH_OCI_MESSAGE_MAX);
    bh_oci_fini(&m);
    bh_oci_init(&m);
    for (size_t i = 0; i < BH_COUNT_OF(many); i++)
        many[i] = pair[0];
    CHECK_EQ(bh_fds_send(pair[0], "{", 1, many, BH_FDS_MAX, NULL), 0);
    CHECK_EQ(bh_oci_receive(&m, pair[1], &state, &listener, &err), BH_BUSY);
    CHECK_EQ(bh_fds_send(pair[0], "}", 1, many, 1, NULL), 0);
    CHECK_EQ(bh_oci_receive(&m, pair[1], &state, &listener, &err), BH_INVALID);
    CHECK(strstr(err.msg, "more descriptors") != NULL);
    bh_oci_fini(&m);
    close(pair[0]);
    close(pair[1]);
    CHECK_EQ(open_fds(), before);
}

TEST_MAIN
