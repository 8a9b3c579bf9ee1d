/* SPDX-License-Identifier: Apache-2.0 */
/* A lease and a governor that the test plays: what is told, what is done, and what comes of one that is gone. */
#include "warden/link_fixture.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

static struct bh_gate_stats stats;
static struct bh_err err;

/* ---- what is told ---- */

static void makes_and_frees(void)
{
    const int fd = tenant_group();
    tenant_await(1);
    HOLDS(tenant_free(fd, T_CLIENT, T_CHANNEL) == RM_OK);
    tenant_await(2);
    HOLDS(tenant_free(fd, T_CLIENT, T_GROUP) == RM_OK); /* and the other one with it */
    tenant_await(3);
}

static void hears_all(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m) == sizeof(m.join) && m.op == BH_GOVERN_JOIN);
    PLAYS(m.join.version == BH_GOVERN_WIRE_VERSION && m.join.weight == 30 && m.join.cap_permille == 250 &&
          m.join.floor_permille == 50 && m.join.lease == 0 && strcmp(m.join.name, "it") == 0);
    const uint32_t pid = m.join.root_pid;
    answer_join(g->governor, 0, "");
    for (uint32_t i = 0; i < 2; i++) {
        PLAYS(hear_link(g->governor, &m) == sizeof(m.channels) && m.op == BH_GOVERN_HAS);
        PLAYS(m.channels.gpu == 0 && m.channels.pid == pid && m.channels.client == T_CLIENT &&
              m.channels.n == 1 && m.channels.names[0] == T_CHANNEL + i);
    }
    shared->number[0] = 1;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_LOST);
    PLAYS(m.channels.client == T_CLIENT && m.channels.n == 1 && m.channels.names[0] == T_CHANNEL);
    shared->number[0] = 2;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_LOST && m.channels.names[0] == T_CHANNEL + 1);
    shared->number[0] = 3;
    PLAYS(hear_link(g->governor, &m) == 0); /* nothing more, and then the end */
}

TEST(channels_that_come_and_go_are_told)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(makes_and_frees, hears_all, &stats, &err), 0);
    CHECK(stats.lease == LEASE_NUMBER && stats.governors == 1 && stats.tampered == 0);
    CHECK(holds_nothing_soon() && sim_end());
}

static void dies_with_channels(void)
{
    (void)tenant_group();
    tenant_await(1);
}

static void hears_the_end(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_JOIN);
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && hear_op(g->governor, BH_GOVERN_HAS, &m));
    shared->number[0] = 1;
    uint32_t lost = 0;
    while (hear_link(g->governor, &m))
        lost += m.op == BH_GOVERN_LOST ? m.channels.n : 0;
    PLAYS(lost == 2 || lost == 0); /* 0: the lease's end came first, which says it all */
}

TEST(a_process_that_ends_takes_its_channels_along)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(dies_with_channels, hears_the_end, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

static int says = -1; /* the other end of lease_probe */

static void waits_to_be_heard(void)
{
    (void)tenant_group();
    tenant_await(1);
}

static void joins(struct governed *g, const char *text)
{
    union said m;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_JOIN);
    answer_join(g->governor, 0, text);
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && hear_op(g->governor, BH_GOVERN_HAS, &m));
    PLAYS(write(says, "done 5\n", 7) == 7);
}

static void hears_what_it_says(struct governed *g)
{
    union said m;
    joins(g, BH_GOVERN_HEARS_OWN);
    PLAYS(!g->why && hear_op(g->governor, BH_GOVERN_OWN, &m) && m.own.done == 5);
    shared->number[0] = 1;
}

/* One from before an upgrade takes it for nonsense, and hangs up. */
static void is_not_told_what_it_does_not_know(struct governed *g)
{
    union said m;
    joins(g, "");
    PLAYS(!g->why && write(says, "done 5\n", 7) == 7);
    for (int left = 1; left > 0;) { /* it was read, and so it would have been told */
        PLAYS(ioctl(says, SIOCOUTQ, &left) == 0);
        (void)usleep(1000);
    }
    shared->number[0] = 1;
    PLAYS(!hear_op(g->governor, BH_GOVERN_OWN, &m));
}

static bool probed(play_fn *with)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return false;
    lease_probe = ends[0];
    says = ends[1];
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    const int rc = governed_lease(waits_to_be_heard, with, &stats, &err);
    close(lease_probe);
    close(says);
    lease_probe = -1;
    return rc == 0 && holds_nothing_soon() && sim_end();
}

TEST(what_tenants_say_is_told_to_a_governor_that_takes_it)
{
    CHECK(probed(hears_what_it_says));
}

TEST(what_tenants_say_is_not_told_to_an_older_governor)
{
    CHECK(probed(is_not_told_what_it_does_not_know));
}

/* ---- what is ordered ---- */

static void has_the_slice(void)
{
    const int fd = tenant_group();
    const uint64_t own = tenant_slice(fd);
    HOLDS(own != 7000 && own != 900);
    shared->number[1] = 1;
    tenant_until_slice(fd, 7000);
    shared->number[1] = 2;
    tenant_until_slice(fd, 900);
    shared->number[1] = 3;
    tenant_until_slice(fd, own); /* the governor is gone */
}

static bool tenant_is_at(uint64_t step)
{
    for (int i = 0; i < 10000 && shared->number[1] < step && !shared->line; i++) {
        beat();
        (void)usleep(1000);
    }
    return shared->number[1] >= step;
}

static void orders_two(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && tenant_is_at(1));
    order_slice(g->governor, 7000);
    PLAYS(tenant_is_at(2));
    order_slice(g->governor, 900);
    PLAYS(tenant_is_at(3));
    PLAYS(shutdown(g->governor, SHUT_RDWR) == 0);
}

TEST(a_slice_is_set_and_is_the_drivers_own_without_a_governor)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(has_the_slice, orders_two, &stats, &err), 0);
    CHECK(stats.slices_set >= 3 && stats.tampered == 0);
    CHECK(holds_nothing_soon() && sim_end());
}

/* Controls that the filter does not send: as if one had slipped through. */
static void takes_a_longer_one(void)
{
    const int fd = tenant_group();
    uint64_t mine = 50000;
    tenant_await(1);
    tenant_until_slice(fd, 3000);
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SET_TIMESLICE, &mine, sizeof(mine)) == RM_OK);
    tenant_until_slice(fd, 3000);
    tenant_await(2);
}

static void hears_of_it(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m));
    order_slice(g->governor, 3000);
    shared->number[0] = 1;
    PLAYS(hear_op(g->governor, BH_GOVERN_TAMPERED, &m));
    PLAYS(m.tampered.gpu == 0 && m.tampered.found_us == 50000 && m.tampered.set_us == 3000);
    shared->number[0] = 2;
}

TEST(a_slice_that_was_changed_is_told_and_put_back)
{
    lease_view = BH_VIEW_CARD;
    sim_begin();
    CHECK_EQ(governed_lease(takes_a_longer_one, hears_of_it, &stats, &err), 0);
    CHECK(stats.tampered >= 1);
    CHECK(holds_nothing_soon() && sim_end());
}

/* ---- governors that go ---- */

static void waits_for_the_next(void)
{
    (void)tenant_group();
    tenant_await(1);
}

static int64_t elapsed_ms(const struct timespec *a, const struct timespec *b)
{
    return (b->tv_sec - a->tv_sec) * 1000 + (b->tv_nsec - a->tv_nsec) / 1000000;
}

static void comes_back(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && hear_op(g->governor, BH_GOVERN_HAS, &m));
    PLAYS(shutdown(g->governor, SHUT_RDWR) == 0);
    const int next = give_another(g->launcher);
    PLAYS(next >= 0);
    PLAYS(hear_link(next, &m) && m.op == BH_GOVERN_JOIN && m.join.lease == LEASE_NUMBER);
    answer_join(next, 0, "");
    PLAYS(hear_link(next, &m) && m.op == BH_GOVERN_HAS && m.channels.n == 2); /* all, at once */
    shared->number[0] = 1;
    while (hear_link(next, &m)) {
    }
    close(next);
}

/* The governor after one of today is one of version 4, which takes no other: it refuses and hangs up. */
static void is_strictly_4(struct governed *g)
{
    struct bh_lease_ask ask = {0};
    union said m;
    PLAYS(hear_link(g->governor, &m) && m.join.version == BH_GOVERN_WIRE_VERSION);
    answer_join(g->governor, 0, BH_GOVERN_HEARS_OWN);
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && hear_op(g->governor, BH_GOVERN_HAS, &m));
    PLAYS(shutdown(g->governor, SHUT_RDWR) == 0);
    given_version = UINT32_MAX; /* it did not say */
    int next = give_another(g->launcher);
    PLAYS(next >= 0 && hear_link(next, &m) && m.join.version == 5);
    PLAYS(recv(next, &m, sizeof(m), MSG_DONTWAIT) < 0); /* nothing that would cost it the answer */
    answer_join(next, BH_CONFLICT, "the governor speaks version 4, not 5");
    close(next);
    next = give_another(g->launcher);
    PLAYS(given_ask.what ==
          BH_LEASE_ASK_GONE); /* it may have been replaced, but it has refused nothing yet */
    PLAYS(next >= 0 && hear_link(next, &m) && m.join.version == 4 && m.join.lease == LEASE_NUMBER);
    answer_join(next, 0, "");
    PLAYS(hear_link(next, &m) && m.op == BH_GOVERN_HAS && m.channels.n == 2);
    PLAYS(recv(g->launcher, &ask, sizeof(ask), 0) == sizeof(ask) && ask.what == BH_LEASE_ASK_JOINED);
    shared->number[0] = 1;
    while (hear_link(next, &m)) {
    }
    close(next);
}

TEST(a_governor_that_takes_the_version_before_alone)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(waits_for_the_next, is_strictly_4, &stats, &err), 0);
    CHECK_EQ(stats.governors, 3);
    CHECK(holds_nothing_soon() && sim_end());
    given_version = 0;
}

static void hears_the_version_it_takes(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_JOIN && m.join.version == 4);
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m));
    shared->number[0] = 1;
    while (hear_link(g->governor, &m)) {
    }
}

TEST(the_first_join_is_in_the_version_that_the_launcher_found)
{
    lease_view = BH_VIEW_SLICE;
    given_version = 4;
    sim_begin();
    CHECK_EQ(governed_lease(waits_for_the_next, hears_the_version_it_takes, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
    given_version = 0;
}

/* Told with its reason, later and later, and told when it is over. */
static void is_refused_twice(struct governed *g)
{
    struct bh_lease_ask ask = {0};
    struct timespec t[3];
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m));
    PLAYS(shutdown(g->governor, SHUT_RDWR) == 0);
    given_version = BH_GOVERN_WIRE_VERSION;
    for (int i = 0; i < 3; i++) {
        const int next = give_another(g->launcher);
        (void)clock_gettime(CLOCK_MONOTONIC, &t[i]);
        PLAYS(given_ask.what == (i ? BH_LEASE_ASK_REFUSED : BH_LEASE_ASK_GONE));
        PLAYS(given_ask.code == (i ? BH_REFUSED : 0));
        PLAYS(next >= 0 && hear_link(next, &m) && m.op == BH_GOVERN_JOIN);
        answer_join(next, i < 2 ? BH_REFUSED : 0, i < 2 ? "by slices alone" : "");
        if (i == 2)
            PLAYS(hear_op(next, BH_GOVERN_HAS, &m));
    }
    PLAYS(recv(g->launcher, &ask, sizeof(ask), 0) == sizeof(ask) && ask.what == BH_LEASE_ASK_JOINED);
    PLAYS(elapsed_ms(&t[0], &t[1]) >= 900 && elapsed_ms(&t[1], &t[2]) >= 1900);
    shared->number[0] = 1;
}

TEST(who_is_refused_asks_later_and_later_and_says_why)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(waits_for_the_next, is_refused_twice, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
    given_version = 0;
}

TEST(after_a_governor_is_gone_all_is_told_to_the_next)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(waits_for_the_next, comes_back, &stats, &err), 0);
    CHECK_EQ(stats.governors, 2);
    CHECK(holds_nothing_soon() && sim_end());
}

static void is_never_still(void)
{
    const int fd = tenant_group();
    for (int i = 0; i < 100000 && shared->number[0] == 0; i++) {
        HOLDS(tenant_free(fd, T_CLIENT, T_CHANNEL) == RM_OK);
        HOLDS(sim_alloc(fd, T_CLIENT, T_GROUP, T_CHANNEL, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK);
    }
    tenant_await(1);
}

static void does_not_read(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    beating = -1;
    const int next = give_another(g->launcher); /* so the first one was given up */
    PLAYS(next >= 0);
    PLAYS(hear_link(next, &m) && m.op == BH_GOVERN_JOIN);
    answer_join(next, 0, "");
    shared->number[0] = 1;
    while (hear_link(next, &m)) {
    }
    close(next);
}

TEST(a_governor_that_does_not_read_holds_nobody_up)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(is_never_still, does_not_read, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

static void talks_nonsense(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m)); /* it serves */
    PLAYS(send(g->governor, "nonsense", 8, MSG_NOSIGNAL) == 8);
    const int next = give_another(g->launcher);
    PLAYS(next >= 0);
    shared->number[0] = 1;
    while (hear_link(next, &m)) {
    }
    close(next);
}

TEST(one_that_talks_nonsense_is_none)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(waits_for_the_next, talks_nonsense, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

/* ---- who the lease is, and its end ---- */

static void has_a_child(void)
{
    (void)tenant_group();
    const pid_t child = fork();
    if (child == 0) {
        (void)tenant_open(T_CLIENT + 1);
        shared->number[2] = (uint64_t)getpid();
        tenant_await(1);
        _exit(0);
    }
    tenant_await(1);
    HOLDS(waitpid(child, NULL, 0) == child);
    tenant_await(2);
}

static bool is_named(uint64_t pid)
{
    for (uint32_t i = 0; i < heard_pids.n && i < BH_GOVERN_SOME_PIDS; i++)
        if (pid && heard_pids.pids[i] == pid)
            return true;
    return false;
}

static void hears_of_both(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m) && m.op == BH_GOVERN_JOIN);
    const uint32_t root = m.join.root_pid;
    answer_join(g->governor, 0, "");
    for (int i = 0; i < 200 && !(is_named(root) && is_named(shared->number[2])); i++) {
        struct pollfd at = {.fd = g->governor, .events = POLLIN};
        beat();
        if (poll(&at, 1, 50) == 1 && recv(g->governor, &m, sizeof(m), 0) == (ssize_t)sizeof(m.pids) &&
            m.op == BH_GOVERN_PIDS)
            heard_pids = m.pids;
    }
    PLAYS(is_named(root) && is_named(shared->number[2]) && !heard_pids.more);
    shared->number[0] = 2;
    while (hear_link(g->governor, &m)) {
    }
}

TEST(all_processes_of_the_lease_are_told)
{
    lease_view = BH_VIEW_SLICE;
    heard_pids = (struct bh_govern_pids){0};
    sim_begin();
    CHECK_EQ(governed_lease(has_a_child, hears_of_both, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

static void waits_for_its_end(void)
{
    (void)tenant_group();
    tenant_await(1000);
}

static void ends_it(struct governed *g)
{
    struct bh_govern_answer end = {
        .op = BH_GOVERN_END, .code = BH_DENIED, .text = "it runs while it is paused"};
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    PLAYS(hear_op(g->governor, BH_GOVERN_HAS, &m) && hear_op(g->governor, BH_GOVERN_HAS, &m));
    PLAYS(send(g->governor, &end, sizeof(end), MSG_NOSIGNAL) == (ssize_t)sizeof(end));
    while (hear_link(g->governor, &m)) {
    }
}

TEST(a_lease_that_the_governor_cannot_hold_is_ended)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK(governed_lease(waits_for_its_end, ends_it, &stats, &err) != 0);
    CHECK(stats.killed > 0);
    CHECK_STR(stats.why_killed, "it runs while it is paused");
    CHECK(holds_nothing_soon() && sim_end());
}

/* ---- no beginning ---- */

static void runs_into_the_end(void)
{
    (void)tenant_open(T_CLIENT); /* its calls are refused when the listener goes */
}

static void refuses(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, BH_BUSY, "there are too many");
}

static void leaves(struct governed *g)
{
    PLAYS(shutdown(g->governor, SHUT_RDWR) == 0);
}

TEST(a_lease_that_is_refused_does_not_begin)
{
    sim_begin();
    CHECK_EQ(governed_lease(runs_into_the_end, refuses, &stats, &err), BH_BUSY);
    CHECK_STR(err.msg, "the governor: there are too many");
    CHECK_EQ(governed_lease(runs_into_the_end, leaves, &stats, &err), BH_BUSY);
    CHECK(holds_nothing_soon() && sim_end());
}

TEST_MAIN
