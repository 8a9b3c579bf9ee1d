/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/serve.h"

#include "base/scratch.h"
#include "base/test.h"
#include "governor/counters_fixture.h"
#include "governor/serve_fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool begin(void)
{
    return begin_with((struct bh_serve_config){.listener = -1, .stop = -1});
}

static bool is_closed(int fd)
{
    char c[2048];
    ssize_t n;
    do
        n = recv(fd, c, sizeof(c), MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

static struct bh_govern_answer answer(int fd)
{
    struct bh_govern_answer a = {.code = 1};
    if (recv(fd, &a, sizeof(a), MSG_DONTWAIT) != sizeof(a) || a.op != BH_GOVERN_ANSWER)
        a.code = 1;
    return a;
}

static struct bh_govern_join join_of(uint32_t pid, const char *name)
{
    struct bh_govern_join j = {
        .op = BH_GOVERN_JOIN, .version = BH_GOVERN_WIRE_VERSION, .root_pid = pid, .weight = 10};
    (void)snprintf(j.name, sizeof(j.name), "%s", name);
    return j;
}

static struct bh_govern_channels names_of(uint32_t op, uint32_t gpu, uint32_t pid, uint32_t n)
{
    struct bh_govern_channels m = {.op = op, .gpu = gpu, .pid = pid, .client = pid, .n = n};
    for (uint32_t i = 0; i < n && i < BH_GOVERN_NAMES; i++)
        m.names[i] = i;
    return m;
}

static struct bh_govern_order order_of(uint32_t op, uint32_t what, const char *name)
{
    struct bh_govern_order o = {.op = op, .version = BH_GOVERN_WIRE_VERSION, .what = what};
    (void)snprintf(o.name, sizeof(o.name), "%s", name);
    return o;
}

/* A warden whose tenant is busy with n channels on GPU 0. -1: something went wrong. */
static int warden(uint32_t pid, const char *name, uint32_t n)
{
    const struct bh_govern_join j = join_of(pid, name);
    const struct bh_govern_channels m = names_of(BH_GOVERN_HAS, 0, pid, n);
    const int fd = dial();
    for (uint32_t i = 0; i < n; i++)
        (void)fake_make(&fake, 0, pid, (struct bh_driver_channel){pid, i});
    fake_pid(&fake, pid)->busy = true;
    if (fd < 0 || !say(fd, &j, sizeof(j)) || answer(fd).code != 0)
        return -1;
    return !n || say(fd, &m, sizeof(m)) ? fd : -1;
}

static int order(int fd, uint32_t what, const char *name)
{
    const struct bh_govern_order o = order_of(BH_GOVERN_ORDER, what, name);
    return say(fd, &o, sizeof(o)) ? answer(fd).code : 1;
}

TEST(a_warden_joins_and_its_lease_is_listed)
{
    CHECK(begin());
    const int a = warden((uint32_t)getpid(), "train", 3), b = warden(2, "", 0), o = dial();
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    struct bh_govern_row r = {0};
    CHECK(a >= 0 && b >= 0 && o >= 0 && say(o, &list, sizeof(list)));
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK(r.op == BH_GOVERN_ROW && r.lease == (uint64_t)getpid() && r.gpu == 0 && r.n_pids == 1);
    CHECK_STR(r.name, "train");
    CHECK_EQ(r.uid, geteuid());
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK(r.lease == 2 && r.gpu == UINT32_MAX && r.state == BH_GOVERN_SHOWN_IDLE);
    CHECK_EQ(answer(o).code, 0);
    CHECK(say(o, &list, sizeof(list))); /* an operator may ask again */
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    close(a), close(b), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_list_ends_with_who_slows_whom)
{
    static struct counters counters = {.missing = (1u << BH_PRESSURE_N_) - 1};
    const struct bh_gauge_source source = counters_source(&counters);
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = -1, .gauge = &source}));
    const int a = warden(1, "train", 3), b = warden(2, "serve", 2), o = dial();
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    struct bh_govern_row r;
    struct bh_govern_noise m = {0};
    CHECK(a >= 0 && b >= 0 && o >= 0);
    CHECK_EQ(counters.opened, 0);
    work(4000 * MS);
    CHECK_EQ(counters.opened, 1);
    CHECK(say(o, &list, sizeof(list)));
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK_EQ(recv(o, &m, sizeof(m), 0), sizeof(m));
    CHECK(m.op == BH_GOVERN_NOISE && m.gpu == 0);
    while (!strstr(m.text, "because missing: NVML GPM SM_UTIL") && m.op == BH_GOVERN_NOISE)
        CHECK_EQ(recv(o, &m, sizeof(m), 0), sizeof(m));
    CHECK_EQ(m.op, BH_GOVERN_NOISE);
    CHECK_EQ(answer(o).code, 0);
    close(a), close(b), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
    CHECK_EQ(counters.closed, 1);
}

TEST(what_each_uses_is_in_its_row)
{
    static struct counters counters = {.dram = 900, .mw = 630000, .link_kbps = 1000000};
    const struct bh_gauge_source source = counters_source(&counters);
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = -1, .gauge = &source}));
    const int a = warden(1, "train", 3), o = dial();
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    struct bh_govern_row r;
    CHECK(a >= 0 && o >= 0 && say(o, &list, sizeof(list)));
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK(r.dram_permille == UINT32_MAX && r.power_permille == UINT32_MAX && r.sm_permille == UINT32_MAX);
    CHECK_EQ(answer(o).code, 0);
    work(20000 * MS);
    CHECK(say(o, &list, sizeof(list)));
    CHECK_EQ(recv(o, &r, sizeof(r), 0), sizeof(r));
    CHECK(r.dram_permille > 800 && r.dram_permille <= 1000 && r.power_permille > 800);
    CHECK(r.pcie_permille == 0 && r.lowered_permille == 0);
    CHECK_EQ(answer(o).code, 0);
    close(a), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(who_is_cut_off_or_goes_leaves_nobody_paused)
{
    CHECK(begin());
    const int a = warden(1, "a", 4), b = warden(2, "b", 4), o = dial();
    CHECK(a >= 0 && b >= 0 && o >= 0);
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "a"), 0);
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "b"), 0);
    CHECK_EQ(fake_paused(&fake), 8);
    close(a); /* goes */
    bh_serve_round(s, now);
    CHECK_EQ(fake_paused(&fake), 4);
    CHECK(say(b, "?", 1)); /* talks nonsense */
    CHECK_EQ(fake_paused(&fake), 0);
    CHECK(is_closed(b));
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "a"), BH_NOT_FOUND);
    close(b), close(o);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(only_what_is_right_at_that_place_is_heard)
{
    struct {
        const void *m;
        size_t n;
        bool good[3]; /* from a stranger, a warden, an operator */
    } cases[24];
    const struct bh_govern_join j = join_of(50, "x"), old = {.op = BH_GOVERN_JOIN, .version = 0};
    const struct bh_govern_channels has = names_of(BH_GOVERN_HAS, 0, 9, 1),
                                    many = names_of(BH_GOVERN_HAS, 0, 9, 65),
                                    far = names_of(BH_GOVERN_HAS, 32, 9, 1),
                                    none = names_of(BH_GOVERN_HAS, 0, 9, 0),
                                    lost = names_of(BH_GOVERN_LOST, 0, 9, 1),
                                    lost_far = names_of(BH_GOVERN_LOST, 99, 9, 1);
    const struct bh_govern_tampered t = {.op = BH_GOVERN_TAMPERED},
                                    t_far = {.op = BH_GOVERN_TAMPERED, .gpu = 32};
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, ""),
                                 pause = order_of(BH_GOVERN_ORDER, 1, "?"),
                                 old_list = {.op = BH_GOVERN_LIST, .version = 9};
    struct bh_govern_order endless = list, odd = list;
    const struct bh_govern_slice slice = {.op = BH_GOVERN_SLICE};
    const struct bh_govern_answer ans = {.op = BH_GOVERN_ANSWER};
    const uint32_t zero = 0, huge[300] = {BH_GOVERN_HAS};
    size_t n = 0;
    memset(endless.name, 'x', sizeof(endless.name));
    odd.zero = 1;
#define CASE(message, a, b, c)                                                                         \
    cases[n].m = &(message), cases[n].n = sizeof(message), cases[n].good[0] = a, cases[n].good[1] = b, \
    cases[n++].good[2] = c
    CASE(j, true, false, false);
    CASE(old, false, false, false);
    CASE(has, false, true, false);
    CASE(many, false, false, false);
    CASE(far, false, false, false);
    CASE(none, false, false, false);
    CASE(lost, false, true, false);
    CASE(lost_far, false, false, false);
    CASE(t, false, true, false);
    CASE(t_far, false, true, false); /* what a tenant did is no reason */
    CASE(list, true, false, true);
    CASE(old_list, false, false, false);
    CASE(endless, false, false, false);
    CASE(odd, false, false, false);
    CASE(pause, true, false, true);
    CASE(slice, false, false, false);
    CASE(ans, false, false, false);
    CASE(zero, false, false, false);
    CASE(huge, false, false, false);
    CHECK(begin());
    const int by_stander = warden(1, "stays", 2);
    CHECK(by_stander >= 0);
    for (size_t i = 0; i < n; i++)
        for (size_t who = 0; who < 3; who++) {
            const int fd = who == 1 ? warden(9, "w", 1) : dial();
            CHECK(fd >= 0 && (who < 2 || say(fd, &list, sizeof(list))));
            CHECK(say(fd, cases[i].m, cases[i].n));
            if (is_closed(fd) == cases[i].good[who])
                printf("# case %zu, from %zu\n", i, who);
            CHECK(is_closed(fd) != cases[i].good[who]);
            close(fd);
            bh_serve_round(s, now);
        }
    CHECK(!is_closed(by_stander) && bh_state_find(bh_serve_state(s), 1));
    close(by_stander);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_version_or_a_promise_that_is_refused_is_told_why)
{
    CHECK(begin());
    struct bh_govern_join j = join_of(1, "");
    int fd = dial();
    j.version = 7;
    CHECK(say(fd, &j, sizeof(j)));
    struct bh_govern_answer a = answer(fd);
    CHECK(a.code == BH_CONFLICT && strstr(a.text, "version 5, not 7"));
    close(fd);
    fd = dial();
    j.version = BH_GOVERN_WIRE_OLDEST - 1;
    CHECK(say(fd, &j, sizeof(j)));
    CHECK_EQ(answer(fd).code, BH_CONFLICT);
    close(fd);
    fd = dial();
    j.version = BH_GOVERN_WIRE_VERSION;
    j.weight = 0;
    CHECK(say(fd, &j, sizeof(j)));
    CHECK_EQ(answer(fd).code, BH_INVALID);
    CHECK(is_closed(fd));
    close(fd);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* As a warden and a command of version 3 sent them: joins as the lease that it was, names channels, lists, pauses. */
TEST(one_from_before_an_upgrade_is_served)
{
    enum { ROW_3 = 232, ROW_4 = 248 };
    static const uint32_t join_3[26] = {1, 3, 77, 30, 250, 0, 0, 0, 41, 0, 0x00646c6f}; /* lease 41, "old" */
    static const uint32_t list_3[22] = {7, 3}, list_4[22] = {7, 4};
    static const uint32_t pause_3[22] = {8, 3, 41, 0, 1};
    char row[2048];
    CHECK(begin());
    (void)fake_make(&fake, 0, 77, (struct bh_driver_channel){77, 0});
    const int w = dial(), o = dial();
    CHECK(say(w, join_3, sizeof(join_3)));
    const struct bh_govern_answer a = answer(w);
    CHECK(a.code == 0 && a.lease == 41);
    const struct bh_govern_channels has = names_of(BH_GOVERN_HAS, 0, 77, 1);
    CHECK(say(w, &has, sizeof(has)));
    CHECK(say(o, list_3, sizeof(list_3)));
    CHECK_EQ(recv(o, row, sizeof(row), MSG_DONTWAIT), ROW_3);
    const struct bh_govern_row *seen = (const void *)row;
    CHECK(seen->op == BH_GOVERN_ROW && seen->lease == 41 && seen->weight == 30 && seen->cap_permille == 250);
    CHECK(strcmp(seen->name, "old") == 0 && seen->n_pids == 1 && seen->pids[0] == 77);
    while (recv(o, row, sizeof(row), MSG_DONTWAIT) > 0 && seen->op != BH_GOVERN_ANSWER)
        continue;
    CHECK(say(o, pause_3, sizeof(pause_3)));
    CHECK_EQ(answer(o).code, 0);
    CHECK(say(o, list_4, sizeof(list_4)));
    CHECK_EQ(recv(o, row, sizeof(row), MSG_DONTWAIT), ROW_4);
    CHECK_EQ(bh_state_find(bh_serve_state(s), 41)->hold, BH_HOLD_PAUSED);
    close(w);
    close(o);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_warden_after_another_takes_its_lease_over)
{
    CHECK(begin());
    const int a = warden(1, "a", 4), o = dial();
    struct bh_govern_join j = join_of(1, "a");
    const struct bh_govern_channels has = names_of(BH_GOVERN_HAS, 0, 1, 4);
    j.lease = 1;
    CHECK(a >= 0 && o >= 0);
    int b = dial();
    CHECK(say(b, &j, sizeof(j)));
    CHECK_EQ(answer(b).code, BH_BUSY); /* while the other lives */
    close(b);
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "a"), 0);
    b = dial();
    close(a); /* dies; nobody has looked yet */
    CHECK(say(b, &j, sizeof(j)));
    const struct bh_govern_answer got = answer(b);
    CHECK(got.code == 0 && got.lease == 1);
    CHECK_EQ(fake_paused(&fake), 0);
    CHECK(say(b, &has, sizeof(has)));
    work(20 * MS);
    CHECK_EQ(fake_paused(&fake), 4); /* the order outlives the warden */
    CHECK_EQ(order(o, BH_GOVERN_RESUME, "a"), 0);
    CHECK_EQ(fake_paused(&fake), 0);
    close(b), close(o);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(slices_reach_the_wardens_and_tampering_is_counted)
{
    CHECK(begin());
    const int a = warden(1, "a", 4), b = warden(2, "b", 4);
    const struct bh_govern_tampered t = {.op = BH_GOVERN_TAMPERED, .found_us = 9, .set_us = 5, .times = 1};
    struct bh_govern_slice m = {0};
    CHECK(a >= 0 && b >= 0);
    work(50 * MS);
    CHECK_EQ(recv(a, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
    CHECK(m.op == BH_GOVERN_SLICE && m.gpu == 0 && m.slice_us > 0 && m.level <= 2);
    CHECK(say(a, &t, sizeof(t)) && say(a, &t, sizeof(t)));
    CHECK_EQ(bh_state_find(bh_serve_state(s), 1)->tampered, 2);
    while (recv(b, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m)) {
    }
    CHECK_EQ(bh_serve_free(s), 0);
    CHECK_EQ(recv(b, &m, sizeof(m), MSG_DONTWAIT), sizeof(m)); /* the last word */
    CHECK_EQ(m.slice_us, 0);
    close(a), close(b);
}

TEST(what_a_tenant_can_cause_is_no_reason_to_drop_its_warden)
{
    CHECK(begin());
    const int a = warden(1, "a", 4);
    const struct bh_govern_tampered nowhere = {.op = BH_GOVERN_TAMPERED, .gpu = UINT32_MAX, .times = 3},
                                    many = {.op = BH_GOVERN_TAMPERED, .times = UINT32_MAX};
    const struct bh_govern_channels again = names_of(BH_GOVERN_HAS, 0, 1, 4);
    CHECK(a >= 0 && say(a, &nowhere, sizeof(nowhere)));
    CHECK(!is_closed(a) && bh_state_find(bh_serve_state(s), 1)->tampered == 3);
    CHECK(say(a, &many, sizeof(many)));
    CHECK_EQ(bh_state_find(bh_serve_state(s), 1)->tampered, UINT32_MAX);
    for (uint32_t i = 0; i < 2 * BH_STATE_CHANNELS / 4; i++) /* names that it has count once */
        CHECK(say(a, &again, sizeof(again)));
    CHECK(!is_closed(a));
    close(a);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_warden_hears_a_sign_of_life_and_an_operator_none)
{
    CHECK(begin());
    const int a = warden(1, "a", 1), o = dial();
    char byte;
    size_t n = 0;
    CHECK(a >= 0 && o >= 0);
    work(1010 * MS);
    struct bh_govern_answer heard;
    for (; recv(a, &heard, sizeof(heard), MSG_DONTWAIT) == sizeof(heard); n++)
        CHECK(heard.op == BH_GOVERN_ANSWER && heard.code == 0 && heard.lease == 1);
    CHECK_EQ(n, 1010 / BH_GOVERN_BEAT_MS);
    CHECK(recv(o, &byte, 1, MSG_DONTWAIT) < 0);
    close(a), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_warden_is_told_to_end_a_lease_that_cannot_be_paused)
{
    CHECK(begin());
    const int a = warden(1, "a", 2), o = dial();
    struct bh_govern_answer heard = {0};
    CHECK(a >= 0 && o >= 0);
    work(100 * MS);
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "a"), 0);
    CHECK(fake_make(&fake, 0, 1, (struct bh_driver_channel){1, 99}));
    work(1500 * MS);
    while (heard.op != BH_GOVERN_END && recv(a, &heard, sizeof(heard), MSG_DONTWAIT) > 0) {
    }
    CHECK(heard.op == BH_GOVERN_END && strstr(heard.text, "behind the gate"));
    CHECK_EQ(bh_serve_free(s), 0);
    close(a), close(o);
}

/* How the only lease is shown; 99: not at all. */
static uint32_t shown(void)
{
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    struct bh_govern_row r = {.state = 99};
    const int fd = dial();
    if (!say(fd, &list, sizeof(list)) || recv(fd, &r, sizeof(r), 0) != sizeof(r))
        r.state = 99;
    close(fd);
    bh_serve_round(s, now);
    return r.state;
}

static void hang_up(int fd)
{
    close(fd);
    bh_serve_round(s, now);
}

TEST(a_suspension_is_kept_or_ends_with_who_began_it)
{
    CHECK(begin());
    const int a = warden(1, "train", 3), o = dial(), begins = dial(), keeps = dial(), kept = dial();
    CHECK_EQ(order(o, BH_GOVERN_SUSPENDED, "train"), BH_CONFLICT); /* nobody began */
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "train"), BH_OK);
    CHECK_EQ(order(begins, BH_GOVERN_SUSPEND, "train"), BH_OK);
    CHECK_EQ(shown(), BH_GOVERN_SHOWN_SUSPENDED);
    CHECK_EQ(order(o, BH_GOVERN_SUSPEND, "train"), BH_BUSY);
    CHECK_EQ(order(o, BH_GOVERN_SUSPENDED, "train"), BH_CONFLICT);
    hang_up(begins);
    CHECK_EQ(shown(), BH_GOVERN_SHOWN_PAUSED); /* as before */
    CHECK_EQ(order(keeps, BH_GOVERN_SUSPEND, "train"), BH_OK);
    CHECK_EQ(order(o, BH_GOVERN_RESUME, "train"), BH_OK);
    CHECK_EQ(order(keeps, BH_GOVERN_SUSPENDED, "train"), BH_CONFLICT); /* somebody wanted it back */
    hang_up(keeps);
    CHECK(shown() != BH_GOVERN_SHOWN_PAUSED && shown() != BH_GOVERN_SHOWN_SUSPENDED);
    CHECK_EQ(order(kept, BH_GOVERN_SUSPEND, "train"), BH_OK);
    CHECK_EQ(order(kept, BH_GOVERN_SUSPENDED, "train"), BH_OK);
    hang_up(kept);
    CHECK_EQ(shown(), BH_GOVERN_SHOWN_SUSPENDED);
    close(a), close(o);
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_free(s), 0);
}

/* They were told that it failed. */
TEST(an_order_of_one_who_is_gone_is_not_carried_out)
{
    const struct bh_govern_order pause_it = order_of(BH_GOVERN_ORDER, BH_GOVERN_PAUSE, "train");
    CHECK(begin());
    const int a = warden(1, "train", 3), o = dial();
    CHECK_EQ(send(o, &pause_it, sizeof(pause_it), MSG_NOSIGNAL), sizeof(pause_it));
    hang_up(o);
    CHECK(shown() != BH_GOVERN_SHOWN_PAUSED && shown() != 99);
    hang_up(a);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(a_long_list_goes_out_as_it_is_read)
{
    enum { LEASES = 120, GPUS = 8 };
    int fds[LEASES];
    CHECK(begin());
    for (uint32_t i = 0; i < LEASES; i++) {
        fds[i] = warden(100 + i, "", 0);
        CHECK(fds[i] >= 0);
        for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
            const struct bh_govern_channels m = names_of(BH_GOVERN_HAS, gpu, 100 + i, 1);
            CHECK(send(fds[i], &m, sizeof(m), 0) == sizeof(m));
        }
    }
    bh_serve_round(s, now);
    int pair[2];
    const int small = 4096;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    CHECK_EQ(bh_serve_connect(s, pair[1], NULL), BH_OK);
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    CHECK(say(pair[0], &list, sizeof(list)));
    CHECK(send(pair[0], &list, sizeof(list), 0) == sizeof(list)); /* impatient */
    size_t rows = 0, answers = 0;
    for (int i = 0; i < 100000 && answers < 2; i++) {
        union {
            struct bh_govern_row row;
            struct bh_govern_answer answer;
        } m;
        const ssize_t n = recv(pair[0], &m, sizeof(m), MSG_DONTWAIT);
        rows += n == sizeof(m.row) && m.row.op == BH_GOVERN_ROW;
        answers += n == sizeof(m.answer) && m.answer.op == BH_GOVERN_ANSWER;
        if (n < 0)
            bh_serve_round(s, now);
    }
    CHECK_EQ(rows, 2 * LEASES * GPUS);
    CHECK_EQ(answers, 2);
    CHECK(say(pair[0], &list, sizeof(list))); /* and one that leaves in the middle */
    close(pair[0]);
    bh_serve_round(s, now);
    for (size_t i = 0; i < LEASES; i++)
        close(fds[i]);
    CHECK_EQ(bh_serve_free(s), 0);
}

TEST(there_is_a_bound_on_connections)
{
    int fds[BH_SERVE_CONNECTIONS];
    CHECK(begin());
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        CHECK((fds[i] = dial()) >= 0);
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_EQ(bh_serve_connect(s, pair[1], NULL), BH_BUSY);
    CHECK_EQ(answer(pair[0]).code, BH_BUSY);
    CHECK(is_closed(pair[0]));
    close(pair[0]);
    close(fds[7]);
    bh_serve_round(s, now);
    fds[7] = dial();
    CHECK(fds[7] >= 0);
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        close(fds[i]);
    CHECK_EQ(bh_serve_free(s), 0);
}

static bool may_end(void *arg)
{
    int *asked = arg;
    return ++*asked == 2; /* somebody was at the door the first time */
}

TEST(it_listens_and_ends_when_nobody_has_come_for_a_while)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int asked = 0;
    char folder[BH_SCRATCH_SOCKET_PATH];
    CHECK(bh_scratch_make(folder, sizeof(folder), "serve"));
    CHECK(bh_scratch_path(at.sun_path, sizeof(at.sun_path), folder, "s"));
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (const struct sockaddr *)&at, sizeof(at)), 0);
    CHECK_EQ(listen(listener, 4), 0);
    CHECK(begin_with((struct bh_serve_config){.listener = listener,
                                              .stop = -1,
                                              .clock = bh_serve_clock,
                                              .idle_ns = 20 * MS,
                                              .may_end = may_end,
                                              .arg = &asked}));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    const struct bh_govern_join j = join_of(1, "");
    CHECK(say(fd, &j, sizeof(j)));
    CHECK_EQ(answer(fd).code, 0);
    work(200 * MS);
    CHECK(!bh_serve_is_over(s) && asked == 0);
    close(fd);
    CHECK_EQ(bh_serve_run(s, NULL), BH_OK); /* with the clock of this machine */
    CHECK(bh_serve_is_over(s) && asked == 2);
    CHECK_EQ(bh_serve_free(s), 0);
    close(listener);
    CHECK(bh_scratch_remove(folder));
}

TEST(told_to_stop_it_lets_everybody_run)
{
    int stop[2];
    CHECK_EQ(pipe2(stop, O_CLOEXEC), 0);
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = stop[0], .clock = bh_serve_clock}));
    const int a = warden(1, "a", 4), o = dial();
    CHECK(a >= 0 && o >= 0);
    CHECK_EQ(order(o, BH_GOVERN_PAUSE, "a"), 0);
    CHECK_EQ(fake_paused(&fake), 4);
    CHECK_EQ(write(stop[1], "x", 1), 1);
    CHECK_EQ(bh_serve_run(s, NULL), BH_OK);
    CHECK_EQ(bh_serve_free(s), 0);
    CHECK_EQ(fake_paused(&fake), 0);
    CHECK(is_closed(a)); /* so that its warden knows, too */
    close(a), close(o), close(stop[0]), close(stop[1]);
}

/* A warden does not wait for the answer before it tells the rest. */
TEST(who_is_refused_hears_why_whatever_it_said_meanwhile)
{
    CHECK(begin());
    const struct bh_govern_pids pids = {.op = BH_GOVERN_PIDS, .n = 1, .pids = {7}};
    struct bh_govern_join j = join_of(7, "a");
    const int fd = dial();
    j.weight = 0; /* there is no such promise */
    CHECK(fd >= 0 && send(fd, &j, sizeof(j), 0) == sizeof(j) &&
          send(fd, &pids, sizeof(pids), 0) == sizeof(pids));
    bh_serve_round(s, now);
    CHECK_EQ(answer(fd).code, BH_INVALID);
    CHECK(is_closed(fd) && send(fd, &pids, sizeof(pids), MSG_NOSIGNAL) == sizeof(pids));
    bh_serve_round(s, now);
    CHECK_EQ(bh_serve_state(s)->n, 0); /* and nothing came of it */
    close(fd);
    bh_serve_round(s, now);
    const int again = warden(7, "a", 1);
    CHECK(again >= 0);
    CHECK_EQ(bh_serve_free(s), 0);
    close(again);
}

TEST(by_slices_alone_no_cap_and_no_latency_is_promised)
{
    CHECK(begin_with((struct bh_serve_config){.listener = -1, .stop = -1, .slices_only = true}));
    struct bh_govern_join j = join_of(7, "a");
    int fd = dial();
    j.cap_permille = 250;
    CHECK(fd >= 0 && say(fd, &j, sizeof(j)));
    struct bh_govern_answer a = answer(fd);
    CHECK(a.code == BH_REFUSED && strstr(a.text, "BULKHEAD_GOVERN=slices") && is_closed(fd));
    close(fd);
    fd = dial();
    j.cap_permille = 0;
    j.latency = 1;
    CHECK(fd >= 0 && say(fd, &j, sizeof(j)) && answer(fd).code == BH_REFUSED && is_closed(fd));
    close(fd);
    const int two = warden(8, "b", 2);
    CHECK(two >= 0);
    CHECK_EQ(bh_serve_free(s), 0);
    close(two);
}

/* Two that compete, for a while; the rows of both at the end. lies: the second says that it does nothing and waits for ever. */
static bool compete(bool lies, struct bh_govern_row ret[2])
{
    const struct bh_govern_order list = order_of(BH_GOVERN_LIST, 0, "");
    bool ok = begin();
    const int a = warden(1, "a", 2), b = warden(2, "b", 2), o = dial();
    ok = ok && a >= 0 && b >= 0 && o >= 0;
    for (uint64_t i = 0; ok && i < 600; i++) {
        const struct bh_govern_own m = {.op = BH_GOVERN_OWN,
                                        .has_rate = 1,
                                        .done = i % 2 ? UINT64_MAX : i,
                                        .lines = i,
                                        .garbage = i,
                                        .rate_milli = i,
                                        .p50_us = 4000000000u,
                                        .p99_us = 4100000000u};
        ok = !lies || i % 20 || say(b, &m, sizeof(m));
        bh_serve_round(s, now); /* as a message makes one */
        work(5 * MS);
    }
    ok = ok && say(o, &list, sizeof(list));
    for (int i = 0; ok && i < 2; i++)
        ok = recv(o, &ret[i], sizeof(ret[i]), 0) == sizeof(ret[i]);
    ok = bh_serve_free(s) == 0 && ok;
    close(a);
    close(b);
    close(o);
    return ok;
}

TEST(no_share_follows_what_a_tenant_says)
{
    struct bh_govern_row quiet[2], told[2];
    CHECK(compete(false, quiet) && compete(true, told));
    CHECK(quiet[1].own_rate_milli == UINT64_MAX && quiet[1].own_p99_us == UINT32_MAX);
    CHECK(told[1].own_rate_milli == 580 && told[1].own_p99_us == 4100000000u && told[1].own_garbage == 580);
    CHECK(told[0].own_rate_milli == UINT64_MAX); /* nobody else's */
    told[1].own_rate_milli = UINT64_MAX;
    told[1].own_p50_us = told[1].own_p99_us = UINT32_MAX;
    told[1].own_garbage = 0;
    CHECK(quiet[0].busy_ns > 0 && quiet[1].busy_ns > 0);
    CHECK(memcmp(quiet, told, sizeof(quiet)) == 0); /* all the rest is as it was */
}

TEST_MAIN
