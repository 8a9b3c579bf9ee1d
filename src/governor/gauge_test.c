/* SPDX-License-Identifier: Apache-2.0 */
/* gauge_test.c - the thread: it begins late, works beside the loop, and one that hangs keeps nobody. */
#include "governor/gauge.h"

#include "base/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { WAIT_MS = 20000 };

static struct {
    atomic_uint opened, looks, closed, in;
    atomic_bool held, refuses;
} card;

static int open_card(void *arg, uint32_t gpu, void **ret, struct bh_err *err)
{
    (void)arg;
    atomic_fetch_add(&card.opened, 1);
    *ret = &card;
    return atomic_load(&card.refuses) ? bh_fail(err, BH_NOT_FOUND, "no library for GPU %u", gpu) : BH_OK;
}

static void look_at_card(void *self, struct bh_noise_look *ret)
{
    (void)self;
    *ret = (struct bh_noise_look){.link_kbps = 1000, .limit_mw = 1000, .sample.dram_permille = 500};
    atomic_fetch_add(&card.in, 1);
    while (atomic_load(&card.held))
        (void)usleep(1000);
    atomic_fetch_add(&card.looks, 1);
}

static void close_card(void *self)
{
    (void)self;
    atomic_fetch_add(&card.closed, 1);
}

static const struct bh_gauge_source source = {.open = open_card, .look = look_at_card, .close = close_card};

static struct bh_tally interval(uint64_t at_ns)
{
    struct bh_tally t = {.at_ns = at_ns, .n = 2};
    for (uint32_t i = 0; i < t.n; i++)
        t.at[i] = (struct bh_tally_line){.lease = i + 1,
                                         .gpu_permille = 500,
                                         .held_permille = 500,
                                         .target_permille = 500,
                                         .active = true,
                                         .there_permille = 1000};
    return t;
}

static bool await(const atomic_uint *count, unsigned n)
{
    for (int i = 0; i < WAIT_MS && atomic_load(count) < n; i++)
        (void)usleep(1000);
    return atomic_load(count) >= n;
}

static void begin(void)
{
    atomic_store(&card.opened, 0);
    atomic_store(&card.looks, 0);
    atomic_store(&card.closed, 0);
    atomic_store(&card.in, 0);
    atomic_store(&card.held, false);
    atomic_store(&card.refuses, false);
}

/* Posts, each once the last one was looked at. */
static bool post_many(struct bh_gauge *g, const atomic_uint *count, unsigned n, uint64_t *now)
{
    bool all = true;
    for (unsigned i = 0; all && i < n; i++) {
        const unsigned before = atomic_load(count);
        const struct bh_tally t = interval(*now += 200 * MS);
        for (int k = 0; k < WAIT_MS && atomic_load(count) == before; k++) {
            bh_gauge_post(g, 3, &t); /* again where the lock was taken just then */
            (void)usleep(1000);
        }
        all = atomic_load(count) > before;
    }
    return all;
}

static bool await_report(struct bh_gauge *g, uint64_t now, const char *words)
{
    bool found = false;
    for (int i = 0; !found && i < WAIT_MS; i++) {
        struct bh_buf out;
        bh_buf_init(&out, 4096);
        bh_gauge_report(g, 3, now, &out);
        found = strstr(bh_buf_text(&out), words) != NULL;
        bh_buf_fini(&out);
        (void)usleep(1000);
    }
    return found;
}

TEST(nothing_is_opened_before_it_is_needed)
{
    begin();
    struct bh_gauge *g = bh_gauge_new(&source);
    struct bh_buf out;
    bh_buf_init(&out, 100);
    bh_gauge_report(g, 3, 1000 * MS, &out);
    CHECK_STR(bh_buf_text(&out), "");
    CHECK(bh_gauge_free(g) && bh_gauge_free(NULL));
    CHECK_EQ(atomic_load(&card.opened), 0);
}

TEST(it_looks_and_judges_beside_the_loop)
{
    uint64_t now = 1000 * MS;
    begin();
    struct bh_gauge *g = bh_gauge_new(&source);
    /* enough that some are not among those that a repeated post made stale */
    for (int i = 0; i < 100 && atomic_load(&card.looks) < 60; i++)
        CHECK(post_many(g, &card.looks, 1, &now));
    CHECK(await_report(g, now, "lease 1: whether a turn of it does less work"));
    uint32_t uses[BH_CULPRIT_RESOURCES];
    bh_gauge_uses(g, 3, now, 1, uses); /* two that never change cannot be told apart */
    CHECK(uses[BH_CULPRIT_DRAM] == BH_CULPRIT_UNKNOWN && uses[BH_CULPRIT_TIME] == BH_CULPRIT_UNKNOWN);
    bh_gauge_uses(g, 2, now, 1, uses); /* nobody was ever there */
    CHECK_EQ(uses[BH_CULPRIT_DRAM], BH_CULPRIT_UNKNOWN);
    struct bh_buf out;
    bh_buf_init(&out, 100);
    bh_gauge_report(g, 3, now + 60000 * MS, &out); /* long ago */
    CHECK_STR(bh_buf_text(&out), "");
    bh_buf_fini(&out);
    CHECK(bh_gauge_free(g));
    CHECK(atomic_load(&card.opened) == 1 && atomic_load(&card.closed) == 1);
}

struct asker {
    struct bh_gauge *gauge;
    uint64_t now;
    atomic_uint done;
    char text[4096];
};

/* All that the loop ever asks. */
static void *ask(void *arg)
{
    struct asker *a = arg;
    uint32_t uses[BH_CULPRIT_RESOURCES];
    const struct bh_tally t = interval(a->now);
    struct bh_buf out;
    bh_buf_init(&out, sizeof(a->text) - 1);
    bh_gauge_uses(a->gauge, 3, a->now, 1, uses);
    bh_gauge_report(a->gauge, 3, a->now, &out);
    bh_gauge_post(a->gauge, 3, &t);
    (void)snprintf(a->text, sizeof(a->text), "%s", bh_buf_text(&out));
    bh_buf_fini(&out);
    atomic_fetch_add(&a->done, 1);
    return NULL;
}

TEST(the_loop_never_waits_for_the_lock)
{
    uint64_t now = 1000 * MS;
    static struct asker a;
    pthread_t loop;
    begin();
    a = (struct asker){.gauge = bh_gauge_new(&source)};
    for (int i = 0; i < 100 && atomic_load(&card.looks) < 60; i++)
        CHECK(post_many(a.gauge, &card.looks, 1, &now));
    CHECK(await_report(a.gauge, now, "lease 1: whether a turn of it does less work"));
    bh_gauge_hold_lock(a.gauge, true);
    a.now = now + 4000 * MS;
    CHECK_EQ(pthread_create(&loop, NULL, ask, &a), 0);
    const bool went_on = await(&a.done, 1);
    bh_gauge_hold_lock(a.gauge, false);
    (void)pthread_join(loop, NULL);
    CHECK(went_on);
    /* what it had last, and how old that is */
    CHECK(strstr(a.text, "lease 1: whether a turn of it does less work") && strstr(a.text, " s ago:\n"));
    CHECK(bh_gauge_free(a.gauge));
}

TEST(a_library_that_hangs_keeps_nobody)
{
    static struct bh_gauge *left; /* the thread's, from then on */
    uint64_t now = 1000 * MS;
    begin();
    atomic_store(&card.held, true);
    left = bh_gauge_new(&source);
    CHECK(post_many(left, &card.in, 1, &now));
    const struct bh_tally t = interval(now += 5000 * MS);
    bh_gauge_post(left, 3, &t); /* does not wait */
    CHECK(await_report(left, now, "the driver's library does not answer"));
    CHECK(!bh_gauge_free(left));
    CHECK_EQ(atomic_load(&card.looks), 0);
    atomic_store(&card.held, false);
    CHECK(await(&card.looks, 1)); /* it ends by itself when it comes back */
}

TEST(a_library_that_is_not_there_is_said)
{
    uint64_t now = 1000 * MS;
    begin();
    atomic_store(&card.refuses, true);
    struct bh_gauge *g = bh_gauge_new(&source);
    for (int i = 0; i < 60; i++) {
        const struct bh_tally t = interval(now += 200 * MS);
        bh_gauge_post(g, 3, &t);
        (void)usleep(2000);
    }
    CHECK(await(&card.opened, 1));
    CHECK(await_report(g, now, "(no library for GPU 3)"));
    CHECK(bh_gauge_free(g));
    CHECK(atomic_load(&card.opened) <= 2 && atomic_load(&card.closed) == 0);
}

TEST_MAIN
