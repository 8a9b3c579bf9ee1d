/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the governor asks of the driver, counted, by what each call was measured to take of a processor on an H200 with
 * driver 580.159.04. No clock is read here: the counts are the governor's, the prices are that machine's.
 */
#include "governor/steer.h"

#include "base/test.h"
#include "governor/driver_fixture.h"

#define MS UINT64_C(1000000)

enum {
    SECONDS = 20,
    TIME_US = 4,             /* the card's time, 40 at every tenth look */
    LOOK_US = 200,           /* its records flushed: 20 where there are none, else 120 to 350 */
    GET_US = 17,             /* that they were read */
    SAMPLES_US = 1500,       /* the driver's samples of use, */
    SAMPLES_MS = 500,        /* so seldom while nobody is in doubt and turns are long, */
    SAMPLES_EVEN_MS = 1000,  /* and so where they are short, */
    SAMPLES_ALONE_MS = 5000, /* and by slices alone (core/govern/use_test.c holds all three) */
    PAUSE_US = 600,          /* 750, and a resume 450 */
    OWN_US = 30, /* of a step: the controller (bench/govern_bench.c), and what is around it; an estimate */
};

static struct {
    struct fake fake;
    struct bh_state state;
    struct bh_steer *steer;
    uint64_t now;
} w;

static bool tell(void *arg, const struct bh_governed *l, const struct bh_govern_slice *m)
{
    (void)arg;
    fake_pid(&w.fake, (uint32_t)l->id)->slice_us = m->slice_us ? m->slice_us : FAKE_SLICE_US;
    return true;
}

static void begin(bool slices_only)
{
    memset(&w, 0, sizeof(w));
    const struct bh_steer_config config = {
        .driver = &fake_driver, .self = &w.fake, .state = &w.state, .tell = tell, .slices_only = slices_only};
    w.steer = bh_steer_new(&config);
    w.now = w.fake.now_ns = 1000 * MS;
}

static bool add(uint32_t pid, uint32_t cap_permille)
{
    struct bh_govern_join j = {.root_pid = pid, .weight = 10, .cap_permille = cap_permille};
    const struct bh_govern_channels m = {.op = BH_GOVERN_HAS, .gpu = 0, .pid = pid, .client = pid, .n = 1};
    struct bh_governed *l = NULL;
    fake_pid(&w.fake, pid)->busy = true;
    return bh_state_join(&w.state, &j, 0, &l, NULL) == BH_OK &&
           fake_make(&w.fake, 0, pid, (struct bh_driver_channel){pid, 0}) &&
           bh_steer_has(w.steer, l, &m, NULL) == BH_OK;
}

static void pass(uint64_t ns)
{
    for (const uint64_t until = w.now + ns; w.now < until;) {
        const uint64_t next = bh_steer_step(w.steer, w.now), to = next < until ? next : until;
        fake_advance(&w.fake, to - w.now);
        w.now = to;
    }
}

/* In permille of a core. */
static uint64_t cost(uint64_t looks, uint64_t calls, uint64_t samples_ms)
{
    const uint64_t us = looks * (TIME_US + LOOK_US + GET_US + OWN_US) + calls * PAUSE_US +
                        SECONDS * 1000 / samples_ms * SAMPLES_US;
    printf("# a second: %" PRIu64 " looks, %" PRIu64 " pauses and resumes: %" PRIu64 " permille of a core\n",
           looks / SECONDS, calls / SECONDS, us / (SECONDS * 1000));
    return us / (SECONDS * 1000);
}

static uint64_t run(uint32_t cap_permille, uint64_t samples_ms, bool slices_only)
{
    begin(slices_only);
    for (uint32_t pid = 1; pid <= 8; pid++)
        if (!add(pid, pid == 1 ? cap_permille : 0))
            return UINT64_MAX;
    pass(5000 * MS);
    const uint64_t looks = w.fake.looks, calls = w.fake.calls;
    pass(SECONDS * 1000 * MS);
    return cost(w.fake.looks - looks, w.fake.calls - calls, samples_ms);
}

TEST(eight_in_turns_cost_less_than_a_tenth_of_a_core)
{
    const uint64_t permille = run(100, SAMPLES_MS, false);
    CHECK(w.fake.calls > 100);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    bh_steer_free(w.steer);
    bh_state_fini(&w.state);
    CHECK(permille <= 100);
}

TEST(eight_by_slices_cost_less_than_a_hundredth)
{
    const uint64_t permille = run(0, SAMPLES_EVEN_MS, false);
    CHECK_EQ(w.fake.calls, 0);
    const uint64_t steps = bh_steer_counts(w.steer).steps;
    CHECK(add(9, 0)); /* who comes is seen at once */
    const uint64_t came = w.now;
    pass(100 * MS);
    CHECK(bh_steer_counts(w.steer).steps - steps >= (w.now - came) / (5 * MS) - 1);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    bh_steer_free(w.steer);
    bh_state_fini(&w.state);
    CHECK(permille <= 4); /* on the card comes twice as much that is not counted here */
}

TEST(eight_by_slices_alone_are_looked_at_four_times_a_second)
{
    const uint64_t permille = run(0, SAMPLES_ALONE_MS, true);
    CHECK_EQ(w.fake.calls, 0);
    CHECK(w.fake.seldom);
    CHECK(permille <= 1);
    for (uint32_t pid = 2; pid <= 8; pid++) /* who is left is alone, and what it does is worth a question */
        fake_pid(&w.fake, pid)->busy = false;
    pass(1000 * MS);
    CHECK(!w.fake.seldom);
    fake_pid(&w.fake, 2)->busy = true;
    pass(1000 * MS);
    CHECK(w.fake.seldom);
    bh_steer_set_slices_only(w.steer, false);
    pass(200 * MS);
    CHECK(!w.fake.seldom);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    bh_steer_free(w.steer);
    bh_state_fini(&w.state);
}

/* Also while they never come to rest: one of them changes its mind all the time. */
TEST(eight_by_slices_alone_cost_less_than_a_hundredth_whatever_they_do)
{
    begin(true);
    for (uint32_t pid = 1; pid <= 8; pid++)
        CHECK(add(pid, 0));
    pass(5000 * MS);
    const uint64_t looks = w.fake.looks;
    for (uint32_t i = 0; i < SECONDS; i++) {
        fake_pid(&w.fake, 1)->busy = i % 2;
        pass(1000 * MS);
    }
    const uint64_t permille = cost(w.fake.looks - looks, w.fake.calls, SAMPLES_MS);
    CHECK_EQ(bh_steer_counts(w.steer).pauses,
             0); /* who began to rest is resumed: somebody else may have paused it */
    CHECK_EQ(bh_steer_release(w.steer), 0);
    bh_steer_free(w.steer);
    bh_state_fini(&w.state);
    CHECK(permille <= 5); /* on the card comes as much again that is not counted here */
}

TEST_MAIN
