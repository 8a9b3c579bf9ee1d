/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that come back to a governor: to one that was started otherwise than the one before, or to the same one. */
#include "governor/serve.h"

#include "base/test.h"
#include "governor/serve_fixture.h"
#include "governor/steer.h"

#include <stdio.h>
#include <unistd.h>

static bool begin(bool slices_only)
{
    return begin_with((struct bh_serve_config){.listener = -1, .stop = -1, .slices_only = slices_only});
}

/* A busy lease; number: the one it had before. What it was answered; *ret_fd: its connection. */
static int joins(uint32_t pid, uint64_t number, uint32_t cap_permille, uint32_t latency, int *ret_fd)
{
    struct bh_govern_join j = {.op = BH_GOVERN_JOIN,
                               .version = BH_GOVERN_WIRE_VERSION,
                               .root_pid = pid,
                               .weight = 10,
                               .cap_permille = cap_permille,
                               .latency = latency,
                               .lease = number,
                               .name = "it"};
    const struct bh_govern_channels m = {
        .op = BH_GOVERN_HAS, .pid = pid, .client = pid, .n = 1, .names = {1}};
    struct bh_govern_answer a = {0};
    (void)fake_make(&fake, 0, pid, (struct bh_driver_channel){pid, 1});
    fake_pid(&fake, pid)->busy = true;
    *ret_fd = dial();
    if (*ret_fd < 0 || !say(*ret_fd, &j, sizeof(j)) || recv(*ret_fd, &a, sizeof(a), 0) != sizeof(a))
        return 1;
    return a.code < 0 ? a.code : say(*ret_fd, &m, sizeof(m)) ? 0 : 1;
}

static uint64_t pauses(void)
{
    return bh_steer_counts(bh_serve_steer(s)).pauses;
}

/* The operator is told why it is not as was wished. */
static bool is_listed_as_unlike_the_wish(void)
{
    const struct bh_govern_order list = {.op = BH_GOVERN_LIST, .version = BH_GOVERN_WIRE_VERSION};
    union {
        uint32_t op;
        struct bh_govern_row row;
        struct bh_govern_pids pids;
        struct bh_govern_noise noise;
        struct bh_govern_answer answer;
    } m = {0};
    bool told = false;
    const int o = dial();
    (void)say(o, &list, sizeof(list));
    while (recv(o, &m, sizeof(m), 0) > 0)
        told |= m.op == BH_GOVERN_NOISE && strstr(m.noise.text, "BULKHEAD_GOVERN=slices") != NULL;
    close(o);
    bh_serve_round(s, now);
    return told;
}

TEST(a_promise_of_pauses_outlives_the_governor_that_made_it)
{
    int capped, plain, fresh;
    CHECK(begin(true));
    CHECK_EQ(joins(7, 0, 100, 0, &fresh), BH_REFUSED); /* nobody is promised it here, ... */
    close(fresh);
    CHECK_EQ(joins(8, 0, 0, 0, &plain), 0);
    work(2000 * MS);
    CHECK(pauses() == 0 && !is_listed_as_unlike_the_wish());
    CHECK_EQ(joins(7, 7, 100, 0, &capped), 0); /* ... and who was keeps it */
    work(1000 * MS);
    const uint64_t before = bh_serve_state(s)->at[1]->seats.at[0].busy_ns;
    work(4000 * MS);
    const uint64_t had = bh_serve_state(s)->at[1]->seats.at[0].busy_ns - before;
    CHECK(pauses() > 0 && had > 200 * MS && had < 600 * MS); /* of 4 s */
    CHECK(is_listed_as_unlike_the_wish());
    CHECK_EQ(joins(9, 0, 0, 1, &fresh), BH_REFUSED); /* new ones are refused all the same */
    close(fresh);
    close(capped); /* with the last of them it is as was wished */
    work(6000 * MS);
    CHECK_EQ(fake_paused(&fake), 0);
    const uint64_t then = pauses();
    work(2000 * MS);
    CHECK(pauses() == then && !is_listed_as_unlike_the_wish());
    CHECK_EQ(bh_serve_free(s), 0);
    CHECK_EQ(fake_paused(&fake), 0);
    close(plain);
}

TEST(a_latency_lease_comes_back_as_well)
{
    int fd;
    CHECK(begin(true));
    CHECK_EQ(joins(7, 7, 0, 1, &fd), 0);
    CHECK_EQ(bh_serve_state(s)->at[0]->latency, 1);
    CHECK_EQ(bh_serve_free(s), 0);
    close(fd);
}

/* It was thought silent: its warden hung up, and found it again. */
TEST(what_was_done_is_not_counted_again)
{
    struct bh_govern_own m = {.op = BH_GOVERN_OWN,
                              .has_rate = 1,
                              .done = 1000,
                              .lines = 10,
                              .p50_us = UINT32_MAX,
                              .p99_us = UINT32_MAX};
    int fd;
    CHECK(begin(false));
    CHECK_EQ(joins(7, 0, 0, 0, &fd), 0);
    CHECK(say(fd, &m, sizeof(m)));
    m.done += 500, m.lines += 5;
    CHECK(say(fd, &m, sizeof(m)));
    CHECK_EQ(bh_serve_state(s)->at[0]->own.done, 500);
    close(fd);
    bh_serve_round(s, now);
    work(1000 * MS);
    CHECK_EQ(joins(7, 7, 0, 0, &fd), 0);
    m.done += 10, m.lines += 1;
    CHECK(say(fd, &m, sizeof(m)));
    m.done += 10, m.lines += 1;
    CHECK(say(fd, &m, sizeof(m)));
    CHECK(bh_serve_state(s)->at[0]->own.done == 510 && bh_serve_state(s)->at[0]->own.lines == 6);
    CHECK_EQ(bh_serve_free(s), 0);
    close(fd);
}

TEST_MAIN
