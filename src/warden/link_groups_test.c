/* SPDX-License-Identifier: Apache-2.0 */
/* Groups on a driver that is a table: what is set when, and what is noticed. */
#include "warden/link_groups.h"

#include "base/test.h"
#include "gpu/abi/rm.h"

#include <errno.h>
#include <unistd.h>

enum { FILE_ID = 5, FD = 77, CLIENT = 0xc1d00001, GROUPS = 4, DRIVERS_OWN = 1234 };

static struct {
    uint64_t slice[GROUPS];
    uint32_t level[GROUPS];
    unsigned sets, level_sets, reads;
    uint64_t meddles_us; /* where not 0: what a tenant sets right after each setting of ours */
    bool unreadable;
    bool gone; /* the driver knows none of them */
} card;

static int card_ioctl(int fd, uint32_t cmd, void *arg)
{
    struct rm_control *a = arg;
    void *params = (void *)(uintptr_t)a->params;
    if (fd != FD || RM_IOC_NUMBER(cmd) != RM_CONTROL || a->client != CLIENT || a->object >= GROUPS)
        abort();
    a->status = card.gone ? RM_OBJECT_NOT_FOUND : RM_OK;
    if (card.gone)
        return 0;
    switch (a->command) {
    case RM_CTRL_GROUP_GET_TIMESLICE:
        if (card.unreadable)
            a->status = RM_INVALID_STATE;
        memcpy(params, &card.slice[a->object], sizeof(uint64_t));
        card.reads++;
        break;
    case RM_CTRL_GROUP_SET_TIMESLICE:
        memcpy(&card.slice[a->object], params, sizeof(uint64_t));
        card.slice[a->object] -= card.slice[a->object] % 10; /* a driver may round */
        if (card.meddles_us)
            card.slice[a->object] = card.meddles_us;
        card.sets++;
        break;
    case RM_CTRL_GROUP_SET_INTERLEAVE:
        memcpy(&card.level[a->object], params, sizeof(uint32_t));
        card.level_sets++;
        break;
    default:
        errno = EINVAL;
        return -1;
    }
    return 0;
}

static const struct bh_driver driver = {.name = "table", .ioctl = card_ioctl};

static struct bench {
    struct bh_gate gate;
    struct bh_gate_stats stats;
    struct bh_groups groups;
    struct bh_ledger_runs runs;
    struct bh_groups_found found[BH_GROUPS_FOUND_MAX];
} *b;

static void begin(void)
{
    b = bh_alloc(1, sizeof(*b));
    memset(&card, 0, sizeof(card));
    for (size_t i = 0; i < GROUPS; i++)
        card.slice[i] = DRIVERS_OWN;
    b->gate.driver = &driver;
    b->gate.stats = &b->stats;
    bh_rights_read(&b->gate.rights);
    *bh_vec_push(&b->gate.remote.files) = (struct bh_remote_file){.id = FILE_ID, .fd = FD, .uid = geteuid()};
}

static void end(void)
{
    bh_groups_fini(&b->groups);
    bh_vec_fini(&b->runs);
    bh_vec_fini(&b->gate.remote.files);
    free(b);
}

static void has(uint32_t n, int64_t now_ms)
{
    b->runs.n = 0;
    for (uint32_t i = 0; i < n; i++)
        *bh_vec_push(&b->runs) = (struct bh_ledger_run){
            .client = CLIENT, .object = i, .class = RM_CLASS_CHANNEL_GROUP, .gpu = i % 2, .file = FILE_ID};
    /* a channel is no group, and one on no GPU that is known has nobody to order it */
    *bh_vec_push(&b->runs) = (struct bh_ledger_run){.object = 9, .class = RM_CLASS_CHANNEL_HOPPER};
    *bh_vec_push(&b->runs) =
        (struct bh_ledger_run){.object = 9, .class = RM_CLASS_CHANNEL_GROUP, .gpu = UINT32_MAX};
    bh_groups_are(&b->groups, &b->runs, &b->gate, now_ms);
}

static void order(uint32_t gpu, uint32_t us, uint32_t level, int64_t now_ms)
{
    bh_groups_order(&b->groups, &b->gate,
                    &(struct bh_govern_slice){.gpu = gpu, .slice_us = us, .level = level}, now_ms);
}

static size_t look(int64_t now_ms)
{
    return bh_groups_look(&b->groups, &b->gate, now_ms, b->found);
}

TEST(an_order_is_for_one_gpu_and_for_those_that_come_later)
{
    begin();
    has(2, 1000);
    CHECK(b->groups.n == 2 && b->groups.young);
    order(0, 5000, 1, 1000);
    CHECK(card.slice[0] == 5000 && card.slice[1] == DRIVERS_OWN);
    CHECK(bh_groups_ordered(&b->groups, 0) == 5000 && bh_groups_ordered(&b->groups, 1) == 0);
    CHECK_EQ(bh_groups_ordered(&b->groups, UINT32_MAX), 0);
    has(3, 1100);
    CHECK(card.slice[2] == 5000 && card.level[2] == 1);
    order(BH_LEDGER_GPUS, 1, 1, 1100); /* nowhere */
    end();
}

TEST(what_is_young_is_set_again_and_later_once_a_second)
{
    begin();
    has(1, 1000);
    order(0, 5000, 1, 1000);
    const unsigned first = card.sets;
    CHECK(look(1020) == 0 && card.sets == first + 1);
    CHECK(look(1040) == 0 && card.sets == first + 2 && b->groups.young);
    CHECK(look(2010) == 0 && card.sets == first + 2 && !b->groups.young); /* 970 ms after the last */
    CHECK(look(2050) == 0 && card.sets == first + 3);
    bh_groups_are_young(&b->groups, CLIENT, 0, 2100);
    CHECK(b->groups.young && look(2120) == 0 && card.sets == first + 4);
    CHECK_EQ(card.level_sets, 1); /* it is kept */
    end();
}

/* Between the setting and the look at how it was rounded: then it would read as the tenant's own. */
TEST(one_race_won_does_not_hide_those_that_follow)
{
    size_t found = 0;
    begin();
    has(1, 1000);
    card.meddles_us = 90000;
    order(0, 5000, 1, 1000);
    card.meddles_us = 0;
    for (int64_t now = 2100; now < 62100; now += 100) {
        card.slice[0] = 90000;
        found += look(now);
    }
    CHECK(found > 500);
    end();
}

/* It cannot be known how it is rounded: taken for the tenant's doing once, and then it is known. */
TEST(what_could_not_be_read_back_is_read_later)
{
    begin();
    has(1, 1000);
    card.unreadable = true;
    order(0, 5007, 1, 1000);
    card.unreadable = false;
    CHECK_EQ(look(2500), 1);
    CHECK(look(2600) == 0 && look(3700) == 0);
    end();
}

TEST(another_slice_is_found_and_put_back)
{
    begin();
    has(3, 1000);
    order(0, 5007, 1, 1000); /* rounded, and that is not the tenant's doing */
    CHECK_EQ(look(1020), 0);
    card.slice[2] = 40000;
    CHECK(look(1040) == 1 && b->found[0].gpu == 0 && b->found[0].slice_us == 40000);
    CHECK(card.slice[2] == 5000 && look(1060) == 0);
    card.slice[1] = 40000; /* nobody ordered anything there: its own */
    CHECK(look(1080) == 1 && b->found[0].gpu == 1 && card.slice[1] == DRIVERS_OWN - DRIVERS_OWN % 10);
    end();
}

static unsigned reads_between(int64_t from_ms, int64_t to_ms)
{
    const unsigned before = card.reads;
    for (int64_t now = from_ms; now < to_ms; now += 100)
        (void)look(now);
    return card.reads - before;
}

/* A warden looks ten times a second, and there may be a hundred of them. */
TEST(old_ones_are_read_once_a_second_and_at_each_look_for_a_while_after_one_was_changed)
{
    begin();
    has(1, 1000);
    order(0, 5000, 1, 1000);
    CHECK_EQ(reads_between(3000, 13000), 20); /* each second: as it is, and as it was set again */
    card.slice[0] = 40000;
    const unsigned before = card.reads;
    size_t found = 0;
    for (int64_t now = 13000; now < 14000; now += 100)
        found += look(now);
    CHECK_EQ(found, 1);
    CHECK(card.slice[0] == 5000 && card.reads - before >= 10);
    CHECK(reads_between(14000, 23000) >= 90);
    CHECK(reads_between(24000, 34000) <= 22);
    end();
}

/* Orders that come all the time set it all the time, and hide nothing. */
TEST(a_change_between_two_orders_is_found)
{
    size_t found = 0;
    begin();
    has(1, 1000);
    order(0, 5000, 1, 1000);
    for (int64_t now = 2100; now < 4100; now += 100) {
        order(0, 5000 + (uint32_t)now, 1, now);
        card.slice[0] = 40000;
        found += look(now + 50);
    }
    CHECK(found >= 10);
    end();
}

/* Looks and settings each have their second. */
TEST(it_is_set_again_within_a_second_whenever_the_order_came)
{
    begin();
    has(1, 1000);
    order(0, 5000, 1, 1000);
    for (int64_t now = 2100; now < 5100; now += 100)
        (void)look(now);
    card.meddles_us = 90000; /* between the setting and the reading back */
    order(0, 6000, 1, 5150);
    card.meddles_us = 0;
    int64_t now = 5200;
    for (; now < 9000 && card.slice[0] == 90000; now += 100)
        (void)look(now);
    CHECK(now <= 5150 + 1200);
    for (unsigned sets = card.sets, since = 0; now < 12000; now += 100) {
        (void)look(now);
        since = card.sets == sets ? since + 1 : 0;
        sets = card.sets;
        CHECK(since <= 10);
    }
    end();
}

static size_t looks_between(int64_t from_ms, int64_t to_ms)
{
    size_t found = 0;
    for (int64_t now = from_ms; now < to_ms; now += 100)
        found += look(now);
    return found;
}

TEST(who_was_given_nothing_is_watched_too)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        begin();
        has(1, 1000);
        if (ordered)
            order(0, 0, 1, 1000);
        CHECK(looks_between(1100, 5100) == 0 && card.sets == 0);
        for (int64_t times = 1; times <= 3; times++) {
            card.slice[0] = 100000;
            CHECK_EQ(looks_between(20000 * times, 20000 * times + 15000), 1);
            CHECK_EQ(card.slice[0], DRIVERS_OWN - DRIVERS_OWN % 10);
        }
        end();
    }
}

/* A governor that is gone leaves slices alone to divide the card. */
TEST(who_was_let_go_is_watched_on)
{
    begin();
    has(1, 1000);
    order(0, 5000, 1, 1000);
    bh_groups_let_go(&b->groups, &b->gate);
    CHECK_EQ(looks_between(1100, 5100), 0);
    for (int64_t times = 1; times <= 3; times++) {
        card.slice[0] = 100000;
        CHECK_EQ(looks_between(20000 * times, 20000 * times + 15000), 1);
        CHECK_EQ(card.slice[0], DRIVERS_OWN - DRIVERS_OWN % 10);
    }
    CHECK(reads_between(90000, 100000) <= 22);
    end();
}

/* What the warden before gave may not be taken for what a tenant has made of it, nor what its tenant made of it be left. */
TEST(what_another_warden_left_is_put_back_and_nobodys_change)
{
    begin();
    b->groups.inherited = true;
    card.slice[0] = 5000;
    has(1, 1000);
    b->groups.inherited = false;
    CHECK_EQ(card.slice[0], BH_GROUPS_DEFAULT_US);
    CHECK_EQ(looks_between(1100, 5100), 0);
    card.slice[0] = 100000;
    CHECK_EQ(looks_between(20000, 35000), 1);
    CHECK_EQ(card.slice[0], BH_GROUPS_DEFAULT_US);
    end();
}

/* Quicker than we look at how it was rounded, each time: then only what was meant can tell. */
TEST(who_wins_every_race_is_found)
{
    static const struct {
        uint32_t meant_us, made_us;
    } rows[] = {{5000, 90000}, {5000, 5700}, {20, 200}};
    for (size_t r = 0; r < BH_COUNT_OF(rows); r++) {
        begin();
        has(1, 1000);
        card.meddles_us = rows[r].made_us;
        order(0, rows[r].meant_us, 1, 1000);
        CHECK(looks_between(1100, 11100) > 50);
        end();
    }
}

TEST(the_drivers_own_comes_back)
{
    begin();
    has(1, 1000);
    order(0, 0, 1, 1000);
    CHECK_EQ(card.sets, 0); /* it has that */
    order(0, 5000, 1, 1000);
    order(0, 0, 1, 1000);
    CHECK_EQ(card.slice[0], DRIVERS_OWN - DRIVERS_OWN % 10);
    order(0, 700, 1, 1000);
    bh_groups_let_go(&b->groups, &b->gate);
    CHECK_EQ(card.slice[0], DRIVERS_OWN - DRIVERS_OWN % 10);
    CHECK_EQ(look(1020), 0);
    CHECK_EQ(card.slice[0], DRIVERS_OWN - DRIVERS_OWN % 10);
    end();
}

TEST(what_another_warden_set_is_not_the_drivers_own)
{
    begin();
    card.slice[0] = 20000;
    b->groups.inherited = true;
    has(1, 1000);
    b->groups.inherited = false;
    order(0, 5000, 1, 1000);
    bh_groups_let_go(&b->groups, &b->gate);
    CHECK_EQ(card.slice[0], BH_GROUPS_DEFAULT_US);
    end();
}

/* Neither read as it came nor set then: nobody knows what it has. */
TEST(one_that_was_not_known_is_set_and_watched)
{
    for (int inherited = 0; inherited < 2; inherited++) {
        begin();
        b->groups.inherited = inherited;
        card.gone = true;
        has(1, 1000);
        b->groups.inherited = false;
        card.gone = false;
        card.slice[0] = 100000;
        CHECK_EQ(looks_between(1100, 5100), 0);
        CHECK_EQ(card.slice[0], BH_GROUPS_DEFAULT_US);
        card.slice[0] = 100000;
        CHECK_EQ(looks_between(20000, 35000), 1);
        CHECK_EQ(card.slice[0], BH_GROUPS_DEFAULT_US);
        end();
    }
}

TEST(what_is_gone_is_no_trouble)
{
    begin();
    has(2, 1000);
    card.gone = true;
    order(0, 5000, 1, 1000);
    CHECK_EQ(look(1020), 0);
    card.gone = false;
    b->gate.remote.files.n = 0; /* its file was closed */
    order(0, 6000, 1, 1000);
    CHECK(look(1040) == 0 && card.sets == 0);
    has(0, 1100);
    CHECK_EQ(b->groups.n, 0);
    end();
}

TEST(one_wish_is_heard)
{
    begin();
    has(1, 1000);
    CHECK(bh_groups_may_ask(&b->groups, CLIENT, 0));
    CHECK(!bh_groups_may_ask(&b->groups, CLIENT, 0));
    CHECK(!bh_groups_may_ask(&b->groups, CLIENT, 3));
    has(1, 1100); /* the same one still */
    CHECK(!bh_groups_may_ask(&b->groups, CLIENT, 0));
    end();
}

TEST_MAIN
