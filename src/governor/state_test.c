/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/state.h"

#include "base/test.h"

static struct bh_govern_join promise(uint32_t pid, const char *name)
{
    struct bh_govern_join j = {
        .op = BH_GOVERN_JOIN, .version = BH_GOVERN_WIRE_VERSION, .root_pid = pid, .weight = 30};
    (void)snprintf(j.name, sizeof(j.name), "%s", name);
    return j;
}

static struct bh_governed *join(struct bh_state *s, uint32_t pid, const char *name)
{
    const struct bh_govern_join j = promise(pid, name);
    struct bh_governed *l = NULL;
    return bh_state_join(s, &j, 0, &l, NULL) == BH_OK ? l : NULL;
}

static struct bh_govern_channels channels(uint32_t gpu, uint32_t pid, uint32_t client, uint32_t first,
                                          uint32_t n)
{
    struct bh_govern_channels m = {.gpu = gpu, .pid = pid, .client = client, .n = n};
    for (uint32_t i = 0; i < n && i < BH_GOVERN_NAMES; i++)
        m.names[i] = first + i;
    return m;
}

TEST(a_lease_is_numbered_by_its_first_process_and_never_twice)
{
    struct bh_state s = {0};
    struct bh_governed *a = join(&s, 100, "a"), *b = join(&s, 100, "b"), *c = join(&s, 101, "c");
    CHECK(a && b && c);
    CHECK_EQ(a->id, 100);
    CHECK(b->id > 1 << 21); /* not a number of a process */
    CHECK_EQ(c->id, 101);
    CHECK(bh_state_find(&s, 100) == a && bh_state_find(&s, b->id) == b && !bh_state_find(&s, 102));
    CHECK(!bh_state_check(&s));
    bh_state_fini(&s);
}

TEST(a_promise_that_no_card_can_keep_is_refused)
{
    static const struct {
        const char *why;
        struct bh_govern_join j;
    } bad[] = {
        {"first process", {.weight = 1}},
        {"first process", {.root_pid = 1, .weight = 1, .zero = 1}},
        {"share of 0", {.root_pid = 1}},
        {"share of 10001", {.root_pid = 1, .weight = 10001}},
        {"cap of 1001", {.root_pid = 1, .weight = 1, .cap_permille = 1001}},
        {"floor of 1001", {.root_pid = 1, .weight = 1, .floor_permille = 1001}},
        {"latency 2", {.root_pid = 1, .weight = 1, .latency = 2}},
        {"no line of text", {.root_pid = 1, .weight = 1, .name = "a\nb"}},
        {"no line of text", {.root_pid = 1, .weight = 1, .name = "\xff"}},
    };
    struct bh_state s = {0};
    struct bh_governed *l = NULL;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        CHECK_EQ(bh_state_join(&s, &bad[i].j, 0, &l, &err), BH_INVALID);
        CHECK(strstr(err.msg, bad[i].why));
    }
    struct bh_govern_join full = promise(1, "");
    memset(full.name, 'x', sizeof(full.name)); /* no end */
    CHECK_EQ(bh_state_join(&s, &full, 0, &l, &err), BH_INVALID);
    CHECK(s.n == 0 && !l);
    full.name[sizeof(full.name) - 1] = '\0';
    full.weight = 10000;
    full.cap_permille = full.floor_permille = 1000;
    full.latency = 1;
    CHECK_EQ(bh_state_join(&s, &full, 0, &l, &err), BH_OK);
    bh_state_fini(&s);
}

TEST(there_is_room_for_so_many_and_those_that_left_make_room)
{
    struct bh_state s = {0};
    struct bh_govern_join j = promise(1000, "");
    struct bh_governed *l;
    struct bh_err err;
    for (uint32_t i = 0; i < BH_STATE_LEASES; i++)
        CHECK(join(&s, 1 + i, ""));
    CHECK_EQ(bh_state_join(&s, &j, 0, &l, &err), BH_BUSY);
    bh_state_leave(bh_state_find(&s, 7), 1);
    CHECK_EQ(bh_state_join(&s, &j, 0, &l, &err), BH_OK);
    CHECK(!bh_state_find(&s, 7));
    CHECK(!bh_state_check(&s));
    bh_state_fini(&s);
}

TEST(one_that_comes_back_finds_its_orders_and_nobody_elses)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 50, "x"), *again = NULL;
    struct bh_govern_join j = promise(50, "x");
    struct bh_err err;
    const struct bh_govern_channels m = channels(0, 50, 1, 1, 3);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_OK);
    j.lease = 50;
    CHECK_EQ(bh_state_join(&s, &j, 1, &again, &err), BH_BUSY); /* somebody speaks for it */
    l->hold = BH_HOLD_PAUSED;
    l->tampered = 3;
    bh_state_leave(l, 1000);
    CHECK_EQ(l->seats.at[0].channels.n, 0);
    CHECK(!bh_state_find(&s, 50));
    j.root_pid = 51; /* the number of another lease */
    CHECK_EQ(bh_state_join(&s, &j, 1, &again, &err), BH_OK);
    CHECK(again != l && again->id != 50 && again->hold == BH_HOLD_NONE);
    bh_state_leave(again, 999);
    j.root_pid = 50;
    j.weight = 60;
    CHECK_EQ(bh_state_join(&s, &j, 1, &again, &err), BH_OK);
    CHECK(again == l && l->hold == BH_HOLD_PAUSED && l->tampered == 3 && l->weight == 60 && l->server == 1);
    bh_state_leave(l, 1000);
    CHECK_EQ(s.n, 2);
    bh_state_forget(&s, 1000);
    CHECK_EQ(s.n, 1);
    bh_state_forget(&s, 1001);
    CHECK_EQ(s.n, 0);
    /* under another governor it keeps its number */
    CHECK_EQ(bh_state_join(&s, &j, 1, &again, &err), BH_OK);
    CHECK(again->id == 50 && again->hold == BH_HOLD_NONE);
    bh_state_fini(&s);
}

TEST(an_order_means_one_lease)
{
    struct bh_state s = {0};
    struct bh_governed *a = join(&s, 1, "train"), *b = join(&s, 2, "serve"), *l = NULL;
    struct bh_err err;
    struct bh_govern_order o = {.name = "serve"};
    CHECK(a && b && join(&s, 3, "train") && join(&s, 4, ""));
    CHECK_EQ(bh_state_meant(&s, &o, &l, &err), BH_OK);
    CHECK(l == b);
    o = (struct bh_govern_order){.name = "train"};
    CHECK_EQ(bh_state_meant(&s, &o, &l, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "1 and 3"));
    o.lease = 1;
    CHECK_EQ(bh_state_meant(&s, &o, &l, &err), BH_OK);
    CHECK(l == a);
    bh_state_leave(a, 1);
    CHECK_EQ(bh_state_meant(&s, &o, &l, &err), BH_NOT_FOUND);
    o = (struct bh_govern_order){.name = ""}; /* one without a name is not meant by none */
    CHECK_EQ(bh_state_meant(&s, &o, &l, &err), BH_NOT_FOUND);
    bh_state_fini(&s);
}

TEST(channels_are_kept_by_client_and_name_and_pids_once)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 1, "");
    struct bh_err err;
    size_t n;
    struct bh_govern_channels m = channels(2, 11, 0xc1, 100, 5), more = channels(2, 10, 0xc0, 100, 5),
                              same = channels(2, 12, 0xc1, 103, 4);
    CHECK(bh_state_has(l, &m, &err) == BH_OK && bh_state_has(l, &more, &err) == BH_OK);
    struct bh_seat *seat = bh_seat_find(l, 2);
    bh_seat_channel(seat, (struct bh_driver_channel){0xc1, 104})->run = BH_CHANNEL_PAUSED;
    CHECK_EQ(bh_state_has(l, &same, &err), BH_OK);
    CHECK_EQ(seat->channels.n, 12);
    CHECK_EQ(bh_seat_channel(seat, (struct bh_driver_channel){0xc1, 104})->run, BH_CHANNEL_PAUSED);
    const uint32_t *pids = bh_seat_pids(seat, &n);
    CHECK(n == 3 && pids[0] == 10 && pids[1] == 11 && pids[2] == 12);
    CHECK(!bh_seat_find(l, 0) && !bh_state_check(&s));
    /* told with another process and another GPU: it is the same channel all the same */
    struct bh_govern_channels lost = channels(0, 99, 0xc1, 100, 2);
    bh_state_lost(l, &lost);
    CHECK_EQ(seat->channels.n, 10);
    lost = channels(2, 11, 0xc1, 0, 0);
    bh_state_lost(l, &lost);
    CHECK_EQ(seat->channels.n, 5);
    pids = bh_seat_pids(seat, &n);
    CHECK(n == 1 && pids[0] == 10);
    bh_state_lost(l, &lost); /* it is gone already */
    CHECK(seat->channels.n == 5 && !bh_state_check(&s));
    bh_state_fini(&s);
}

TEST(impossible_messages_and_too_many_channels_are_refused)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 1, "");
    struct bh_err err;
    struct bh_govern_channels m = channels(BH_STATE_GPUS, 1, 1, 1, 1);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_INVALID);
    CHECK_EQ(bh_state_lost_check(&m, &err), BH_INVALID);
    m = channels(0, 1, 1, 1, BH_GOVERN_NAMES + 1);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_INVALID);
    CHECK_EQ(bh_state_lost_check(&m, &err), BH_INVALID);
    m = channels(0, 1, 1, 1, 0);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_INVALID);
    m = channels(0, 0, 1, 1, 1);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_INVALID);
    for (uint32_t i = 0; i < BH_STATE_CHANNELS / BH_GOVERN_NAMES; i++) {
        m = channels(0, 1, 1, i * BH_GOVERN_NAMES, BH_GOVERN_NAMES);
        CHECK_EQ(bh_state_has(l, &m, &err), BH_OK);
    }
    m = channels(0, 1, 2, 1, 1);
    CHECK_EQ(bh_state_has(l, &m, &err), BH_TOO_LARGE);
    m.gpu = 1; /* each card has its own */
    CHECK_EQ(bh_state_has(l, &m, &err), BH_OK);
    CHECK(!bh_state_check(&s));
    bh_state_fini(&s);
}

TEST(the_check_finds_what_is_wrong)
{
    struct bh_state s = {0};
    struct bh_governed *a = join(&s, 1, ""), *b = join(&s, 2, "");
    struct bh_govern_channels m = channels(0, 1, 1, 1, 2);
    CHECK(a && b && bh_state_has(a, &m, NULL) == BH_OK && !bh_state_check(&s));
    b->id = 1;
    CHECK(bh_state_check(&s));
    b->id = 2;
    a->seats.at[0].channels.at[1] = a->seats.at[0].channels.at[0];
    CHECK(bh_state_check(&s));
    a->seats.at[0].channels.n = 1;
    CHECK(!bh_state_check(&s));
    a->server = BH_STATE_NOBODY;
    CHECK(bh_state_check(&s));
    bh_state_fini(&s);
}

TEST(processes_are_a_list_in_parts_that_takes_the_place_of_the_last)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 50, "x");
    struct bh_govern_pids m = {.n = 2, .more = 1, .pids = {9, 50}};
    const struct bh_govern_channels has = channels(0, 7, 1, 1, 1);
    struct bh_err err;
    size_t n;
    CHECK_EQ(bh_state_has(l, &has, &err), BH_OK);
    struct bh_seat *seat = bh_seat_find(l, 0);
    CHECK_EQ(bh_state_pids(l, &m, &err), BH_OK);
    CHECK(bh_seat_all_pids(l, seat, &n)[0] == 7 && n == 1); /* not complete yet */
    m.more = 0;
    m.pids[0] = 7;
    CHECK_EQ(bh_state_pids(l, &m, &err), BH_OK);
    const uint32_t *all = bh_seat_all_pids(l, seat, &n);
    CHECK(n == 3 && all[0] == 7 && all[1] == 9 && all[2] == 50); /* in order, each once */
    CHECK(bh_seat_pids(seat, &n)[0] == 7 && n == 1);
    m.n = 0;
    CHECK_EQ(bh_state_pids(l, &m, &err), BH_OK);
    (void)bh_seat_all_pids(l, seat, &n);
    CHECK_EQ(n, 1);
    m.n = BH_GOVERN_SOME_PIDS + 1;
    CHECK_EQ(bh_state_pids(l, &m, &err), BH_INVALID);
    m.n = BH_GOVERN_SOME_PIDS;
    m.more = 1;
    for (uint32_t i = 0; i <= BH_STATE_PIDS / BH_GOVERN_SOME_PIDS; i++)
        CHECK_EQ(bh_state_pids(l, &m, &err), BH_OK);
    CHECK_EQ(l->coming.n, BH_STATE_PIDS);
    bh_state_fini(&s);
}

TEST(names_that_are_there_already_need_no_room)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 50, "x");
    struct bh_err err;
    for (uint32_t i = 0; i < BH_STATE_CHANNELS; i += 64) {
        const struct bh_govern_channels m = channels(0, 50, 1, i, 64);
        CHECK_EQ(bh_state_has(l, &m, &err), BH_OK);
    }
    const struct bh_govern_channels again = channels(0, 50, 1, 0, 64), more = channels(0, 50, 2, 0, 1);
    CHECK_EQ(bh_state_has(l, &again, &err), BH_OK);
    CHECK_EQ(bh_state_has(l, &more, &err), BH_TOO_LARGE);
    bh_state_fini(&s);
}

TEST(what_is_said_adds_up_over_wardens_and_gets_old)
{
    struct bh_state s = {0};
    struct bh_governed *l = join(&s, 50, "x");
    struct bh_govern_own m = {.done = 100, .lines = 10, .p50_us = 5, .p99_us = 9};
    const uint64_t second = UINT64_C(1000000000);
    CHECK(!bh_state_says(l, 1));
    bh_state_own(l, &m, 10 * second); /* where it begins */
    CHECK(l->own.done == 0 && l->own.lines == 0);
    m.done = 150;
    m.lines = 15;
    bh_state_own(l, &m, 11 * second);
    CHECK(l->own.done == 50 && l->own.lines == 5);
    CHECK(bh_state_says(l, 12 * second) && !bh_state_says(l, 13 * second));
    bh_state_leave(l, 12 * second);
    CHECK(l->own.last.p99_us == UINT32_MAX);
    m.done = 170; /* of the same one, which has come back, or of another: that is not to be told */
    m.lines = 17;
    bh_state_own(l, &m, 13 * second);
    CHECK(l->own.done == 50 && l->own.lines == 5);
    m.done = 180;
    m.lines = 18;
    bh_state_own(l, &m, 13 * second);
    CHECK(l->own.done == 60 && l->own.lines == 6);
    m.done = m.lines = UINT64_MAX;
    bh_state_own(l, &m, 14 * second);
    m.done = m.lines = 500;
    bh_state_own(l, &m, 15 * second);
    CHECK(l->own.done == UINT64_MAX && l->own.lines == UINT64_MAX);
    bh_state_fini(&s);
}

TEST_MAIN
