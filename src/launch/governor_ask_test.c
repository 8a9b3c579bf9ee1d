/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/test.h"
#include "launch/governor.h"
#include "launch/governor_fixture.h"
#include "wire/fds.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A governor of a kind: one connection (or so many), one order each, and what it answers. */
static int connections = 1;
static bool at_once; /* it hears all of them, not one after the other */
typedef void plays(int fd, const struct bh_govern_order *order);

static void answer(int fd, int32_t code, const char *text)
{
    struct bh_govern_answer a = {.op = BH_GOVERN_ANSWER, .code = code, .lease = 7};
    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    (void)!bh_fds_send(fd, &a, sizeof(a), NULL, 0, NULL);
}

static pid_t governor(plays *play)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct bh_govern_order order;
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(at.sun_path, path, strlen(path));
    if (bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 1) < 0)
        abort();
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < connections; i++) {
            const int fd = accept(s, NULL, NULL);
            if (at_once && fork() > 0) {
                close(fd);
                continue;
            }
            if (bh_fds_recv(fd, &order, sizeof(order), NULL, 0, NULL) == BH_OK)
                play(fd, &order);
            close(fd);
            if (at_once)
                _exit(0);
        }
        _exit(0);
    }
    close(s);
    return pid;
}

static void begin(void)
{
    connections = 1; /* whatever a test that failed has left */
    at_once = false;
    begin_folder();
}

/* A test that failed may have left it waiting for connections that nobody makes. */
static void over(pid_t pid)
{
    if (pid && kill(pid, SIGKILL) == 0)
        (void)waitpid(pid, NULL, 0);
    (void)unlink(path);
}

static void rows_of_two(int fd, const struct bh_govern_order *order)
{
    static const struct bh_govern_row rows[] = {
        {.op = BH_GOVERN_ROW, .gpu = 0, .lease = 11, .name = "a"},
        {.op = BH_GOVERN_ROW, .gpu = 1, .lease = 11, .name = "a"},
        {.op = BH_GOVERN_ROW, .gpu = 0, .lease = 12, .name = "b"},
        {.op = BH_GOVERN_ROW, .gpu = 0, .lease = 13, .name = "twin"},
        {.op = BH_GOVERN_ROW, .gpu = 0, .lease = 14, .name = "twin"},
    };
    static const struct bh_govern_noise noise = {
        .op = BH_GOVERN_NOISE, .gpu = 1, .text = "lease 11 (a) slowed lease 12 (b)"};
    if (order->op != BH_GOVERN_LIST || order->version != BH_GOVERN_WIRE_VERSION)
        _exit(1);
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++)
        (void)!bh_fds_send(fd, &rows[i], sizeof(rows[i]), NULL, 0, NULL);
    static const struct bh_govern_pids pids[] = {
        {.op = BH_GOVERN_PIDS, .lease = 11, .n = 2, .more = 1, .pids = {101, 102}},
        {.op = BH_GOVERN_PIDS, .lease = 11, .n = 1, .pids = {103}},
        {.op = BH_GOVERN_PIDS, .lease = 12, .n = 1, .pids = {104}},
    };
    for (size_t i = 0; i < BH_COUNT_OF(pids); i++)
        (void)!bh_fds_send(fd, &pids[i], sizeof(pids[i]), NULL, 0, NULL);
    (void)!bh_fds_send(fd, &noise, sizeof(noise), NULL, 0, NULL);
    answer(fd, 0, "");
}

/* A governor of version 3: it refuses a list of another version, and its rows are shorter. */
static void rows_of_before(int fd, const struct bh_govern_order *order)
{
    enum { ROW_3 = 232 };
    static const struct bh_govern_row row = {
        .op = BH_GOVERN_ROW, .gpu = 0, .lease = 11, .name = "a", .n_pids = 1, .pids = {5}};
    if (order->version != 3) {
        answer(fd, BH_CONFLICT, "the governor speaks version 3");
        return;
    }
    if (order->op == BH_GOVERN_LIST)
        (void)!bh_fds_send(fd, &row, ROW_3, NULL, 0, NULL);
    answer(fd, 0, "");
}

/* Whoever was at the door of one that ends finds that there is none. */
static void list_at_the_door_of_one_that(bool takes_its_socket_away, int wanted)
{
    struct bh_governor_all all = {0};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int ready[2];
    begin();
    memcpy(at.sun_path, path, strlen(path));
    CHECK_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        const int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 4) < 0)
            _exit(1);
        (void)!write(ready[1], "x", 1);
        struct pollfd knock = {.fd = s, .events = POLLIN};
        (void)poll(&knock, 1, 10000);
        if (takes_its_socket_away)
            (void)unlink(path);
        _exit(0);
    }
    char c;
    CHECK_EQ(read(ready[0], &c, 1), 1);
    CHECK_EQ(bh_governor_list(&all, BH_GOVERNOR_MS, &err), wanted);
    CHECK_EQ(all.rows.n, 0);
    close(ready[0]);
    close(ready[1]);
    bh_governor_all_fini(&all);
    over(pid);
    end();
}

TEST(one_that_ends_while_somebody_waits_at_its_door)
{
    list_at_the_door_of_one_that(true, BH_NOT_FOUND);
    list_at_the_door_of_one_that(false, BH_BUSY); /* it was killed, and others may miss it */
    CHECK(strstr(err.msg, "repeat the command"));
}

TEST(a_list_is_all_rows_up_to_the_answer)
{
    struct bh_governor_all all = {0};
    begin();
    const pid_t pid = governor(rows_of_two);
    CHECK_EQ(bh_governor_list(&all, BH_GOVERNOR_MS, &err), BH_OK);
    CHECK(all.rows.n == 5 && all.rows.at[2].lease == 12);
    CHECK(all.pids.n == 4 && all.pids.at[2].lease == 11 && all.pids.at[2].pid == 103);
    CHECK(all.noise.n == 1 && all.noise.at[0].gpu == 1);
    CHECK_STR(all.noise.at[0].text, "lease 11 (a) slowed lease 12 (b)");
    bh_governor_all_fini(&all);
    over(pid);
    end();
}

static bool says_nothing_itself(const struct bh_govern_row *r)
{
    return r->own_rate_milli == UINT64_MAX && r->own_p50_us == UINT32_MAX && r->own_p99_us == UINT32_MAX &&
           r->own_garbage == 0;
}

/* A governor of version 4: it takes no other, not even an older one. A suspension is kept on its connection. */
static void strictly_4(int fd, const struct bh_govern_order *order)
{
    enum { ROW_4 = 248 };
    static const struct bh_govern_row row = {
        .op = BH_GOVERN_ROW, .gpu = 0, .lease = 11, .name = "a", .sm_permille = 300, .lowered_permille = 7};
    struct bh_govern_order more;
    if (order->version != 4) {
        answer(fd, BH_CONFLICT, "the governor speaks version 4");
        return;
    }
    if (order->op == BH_GOVERN_LIST)
        (void)!bh_fds_send(fd, &row, ROW_4, NULL, 0, NULL);
    answer(fd, order->lease == UINT64_MAX ? BH_NOT_FOUND : 0, "");
    if (order->what == BH_GOVERN_SUSPEND && bh_fds_recv(fd, &more, sizeof(more), NULL, 0, NULL) == BH_OK)
        answer(fd, more.version == 4 && more.what == BH_GOVERN_SUSPENDED ? 0 : BH_CONFLICT, "");
}

TEST(a_governor_that_takes_the_version_before_alone)
{
    struct bh_governor_all all = {0};
    uint32_t version = 0;
    int fd = -1;
    begin();
    connections = 8;
    const pid_t pid = governor(strictly_4);
    CHECK_EQ(bh_governor_list(&all, BH_GOVERNOR_MS, &err), BH_OK);
    CHECK(all.older && all.version == 4 && all.rows.n == 1 && all.rows.at[0].lease == 11);
    CHECK(all.rows.at[0].sm_permille == 300 && all.rows.at[0].lowered_permille == 7);
    CHECK(says_nothing_itself(&all.rows.at[0]));
    CHECK_EQ(bh_governor_order(11, BH_GOVERN_PAUSE, &err), BH_OK);
    CHECK_EQ(bh_governor_order_by("a", BH_GOVERN_RESUME, &err), BH_OK);
    CHECK_EQ(bh_governor_hold(11, &fd, &version, &err), BH_OK);
    CHECK_EQ(version, 4);
    CHECK_EQ(bh_governor_keep(fd, version, 11, &err), BH_OK);
    close(fd);
    connections = 1;
    bh_governor_all_fini(&all);
    over(pid);
    end();
}

/* Its first join must be one that it takes: a lease that is refused does not begin. */
TEST(wardens_are_told_which_version_a_governor_takes)
{
    struct bh_child seeker;
    uint32_t version = 0;
    int fd = -1;
    begin();
    connections = 3; /* the warden's, on which nothing is said here, comes first */
    at_once = true;
    const pid_t pid = governor(strictly_4);
    CHECK_EQ(bh_governor_seek(&seeker, &err), BH_OK);
    CHECK_EQ(bh_governor_found(&seeker, &fd, &version, &err), BH_OK);
    close(fd);
    CHECK_EQ(version, 4);
    connections = 1;
    at_once = false;
    over(pid);
    end();
}

TEST(a_governor_from_before_an_upgrade_is_listed_and_obeys)
{
    struct bh_governor_all all = {0};
    begin();
    connections = 6; /* 5, 4 and 3 each time */
    const pid_t pid = governor(rows_of_before);
    CHECK_EQ(bh_governor_list(&all, BH_GOVERNOR_MS, &err), BH_OK);
    CHECK_EQ(bh_governor_order(11, BH_GOVERN_PAUSE, &err), BH_OK);
    connections = 1;
    CHECK(all.older && all.rows.n == 1 && all.rows.at[0].lease == 11 && all.rows.at[0].pids[0] == 5);
    CHECK(all.rows.at[0].sm_permille == UINT32_MAX && all.rows.at[0].lowered_permille == UINT32_MAX);
    CHECK(says_nothing_itself(&all.rows.at[0]));
    bh_governor_all_fini(&all);
    over(pid);
    end();
}

TEST(a_lease_is_found_by_number_or_by_name)
{
    static const struct {
        const char *lease;
        int rc;
        size_t n, n_pids;
    } cases[] = {{"11", BH_OK, 2, 3},
                 {"a", BH_OK, 2, 3},
                 {"b", BH_OK, 1, 1},
                 {"twin", BH_CONFLICT, 0, 0},
                 {"nobody", BH_NOT_FOUND, 0, 0},
                 {"99", BH_NOT_FOUND, 0, 0}};
    begin();
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_governor_all all = {0};
        const pid_t pid = governor(rows_of_two);
        CHECK_EQ(bh_governor_find(cases[i].lease, &all, &err), cases[i].rc);
        CHECK(cases[i].rc < 0 || (all.rows.n == cases[i].n && all.pids.n == cases[i].n_pids));
        bh_governor_all_fini(&all);
        over(pid);
    }
    struct bh_governor_all none = {0};
    CHECK_EQ(bh_governor_find("", &none, &err), BH_INVALID);
    end();
}

static void by_number(int fd, const struct bh_govern_order *o)
{
    answer(fd,
           o->op == BH_GOVERN_ORDER && o->lease == 42 && o->what == BH_GOVERN_PAUSE && !*o->name ? 0
                                                                                                 : BH_INVALID,
           "no");
}

static void by_name(int fd, const struct bh_govern_order *o)
{
    answer(fd, o->lease == 0 && strcmp(o->name, "train") == 0 ? 0 : BH_INVALID, "no");
}

static void says_no(int fd, const struct bh_govern_order *o)
{
    (void)o;
    answer(fd, BH_NOT_FOUND, "no such lease");
}

static void says_nonsense(int fd, const struct bh_govern_order *o)
{
    (void)o;
    (void)!bh_fds_send(fd, "what", 4, NULL, 0, NULL);
}

static void leaves(int fd, const struct bh_govern_order *o)
{
    (void)o;
    close(fd);
}

TEST(orders_and_their_answers)
{
    static const struct {
        plays *play;
        const char *lease;
        int rc;
    } cases[] = {{by_number, "42", BH_OK},
                 {by_name, "train", BH_OK},
                 {says_no, "x", BH_NOT_FOUND},
                 {says_nonsense, "x", BH_CONFLICT},
                 {leaves, "x", BH_BUSY}};
    begin();
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        const pid_t pid = governor(cases[i].play);
        CHECK_EQ(bh_governor_order_by(cases[i].lease, BH_GOVERN_PAUSE, &err), cases[i].rc);
        over(pid);
    }
    CHECK(strstr(err.msg, "the governor ended before it answered; repeat the command"));
    end();
}

/* The first ends, the next does not know the lease yet, then it does. */
static void is_followed(int fd, const struct bh_govern_order *o)
{
    static int times;
    static const struct bh_govern_row row = {.op = BH_GOVERN_ROW, .lease = 42, .name = "a"};
    if (++times == 1)
        return;
    if (o->op == BH_GOVERN_LIST) {
        if (times > 2)
            (void)!bh_fds_send(fd, &row, sizeof(row), NULL, 0, NULL);
        answer(fd, 0, "");
    } else {
        answer(fd, times == 2 ? BH_NOT_FOUND : 0, "");
    }
}

TEST(what_may_be_repeated_is_asked_of_who_follows)
{
    struct bh_governor_all all = {0};
    uint32_t version;
    int fd;
    begin();
    connections = 3;
    pid_t pid = governor(is_followed);
    CHECK_EQ(bh_governor_order_by("a", BH_GOVERN_PAUSE, &err), BH_OK);
    over(pid);
    pid = governor(is_followed);
    CHECK_EQ(bh_governor_hold(42, &fd, &version, &err), BH_OK);
    close(fd);
    over(pid);
    pid = governor(is_followed);
    CHECK_EQ(bh_governor_find("a", &all, &err), BH_OK);
    CHECK(all.rows.n == 1 && all.rows.at[0].lease == 42);
    bh_governor_all_fini(&all);
    over(pid);
    end();
}

static void hears_more(int fd, const struct bh_govern_order *o)
{
    struct bh_govern_order more;
    answer(fd, o->lease == 42 && o->what == BH_GOVERN_SUSPEND ? 0 : BH_INVALID, "no");
    const bool kept = bh_fds_recv(fd, &more, sizeof(more), NULL, 0, NULL) == BH_OK && more.lease == 42 &&
                      more.what == BH_GOVERN_SUSPENDED;
    answer(fd, kept ? 0 : BH_INVALID, "no");
    char byte;
    _exit(read(fd, &byte, 1) == 0 && kept ? 0 : 1); /* not closed before */
}

TEST(a_suspension_is_held_and_kept_on_one_connection)
{
    uint32_t version = 0;
    int fd = -1, status = 1;
    begin();
    const pid_t pid = governor(hears_more);
    CHECK_EQ(bh_governor_hold(42, &fd, &version, &err), BH_OK);
    CHECK_EQ(version, BH_GOVERN_WIRE_VERSION);
    CHECK_EQ(bh_governor_keep(fd, version, 42, &err), BH_OK);
    close(fd);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    over(0);
    const pid_t other = governor(says_no);
    fd = -1;
    CHECK_EQ(bh_governor_hold(42, &fd, &version, &err), BH_NOT_FOUND);
    CHECK_EQ(fd, -1);
    over(other);
    end();
}

static void says_nothing(int fd, const struct bh_govern_order *o)
{
    char byte;
    (void)o;
    _exit(read(fd, &byte, 1) == 0 ? 0 : 1);
}

TEST(one_that_does_not_answer_is_not_waited_for)
{
    struct bh_governor_all all = {0};
    begin();
    const pid_t pid = governor(says_nothing);
    CHECK_EQ(bh_governor_list(&all, 50, &err), BH_BUSY);
    over(pid);
    end();
}

TEST_MAIN
