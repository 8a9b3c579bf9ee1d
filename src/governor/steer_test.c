/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/steer.h"

#include "base/scratch.h"
#include "base/test.h"
#include "core/govern/govern_log.h"
#include "governor/counters_fixture.h"
#include "governor/driver_fixture.h"

#include <unistd.h>

#define MS UINT64_C(1000000)
enum { TOLD = 512 };

static struct {
    struct fake fake;
    struct bh_state state;
    struct bh_steer *steer;
    uint64_t now, next;
    bool deaf; /* the wardens do not read */
    struct {
        uint64_t lease;
        struct bh_govern_slice m;
    } told[TOLD];
    size_t n_told;
    uint64_t ended[4];
    size_t n_ended;
    struct bh_gauge *gauge;
    struct counters counters;
} w;

static bool tell(void *arg, const struct bh_governed *l, const struct bh_govern_slice *m)
{
    (void)arg;
    if (w.deaf)
        return false;
    fake_pid(&w.fake, (uint32_t)l->id)->slice_us = m->slice_us ? m->slice_us : FAKE_SLICE_US;
    w.told[w.n_told % TOLD].lease = l->id;
    w.told[w.n_told++ % TOLD].m = *m;
    return true;
}

static void note_end(void *arg, const struct bh_governed *l, const char *why)
{
    (void)arg;
    if (strstr(why, "behind the gate"))
        w.ended[w.n_ended++ % BH_COUNT_OF(w.ended)] = l->id;
}

static void begin_with(const char *log_prefix, const struct bh_gauge_source *source)
{
    memset(&w, 0, sizeof(w));
    w.gauge = source ? bh_gauge_new(source) : NULL;
    const struct bh_steer_config config = {.driver = &fake_driver,
                                           .self = &w.fake,
                                           .state = &w.state,
                                           .tell = tell,
                                           .end = note_end,
                                           .log_prefix = log_prefix,
                                           .gauge = w.gauge};
    w.steer = bh_steer_new(&config);
    w.now = w.fake.now_ns = 1000 * MS;
}

static void begin(const char *log_prefix)
{
    begin_with(log_prefix, NULL);
}

static void end(void)
{
    bh_steer_free(w.steer);
    CHECK(bh_gauge_free(w.gauge));
    bh_state_fini(&w.state);
}

static struct bh_govern_channels channels(uint32_t gpu, uint32_t pid, uint32_t n)
{
    struct bh_govern_channels m = {.op = BH_GOVERN_HAS, .gpu = gpu, .pid = pid, .client = pid, .n = n};
    for (uint32_t i = 0; i < n; i++)
        m.names[i] = i;
    return m;
}

/* A lease with one busy process of that number, and n channels on GPU 0. */
static struct bh_governed *tenant(uint32_t pid, uint32_t weight, uint32_t cap_permille, uint32_t n)
{
    struct bh_govern_join j = {.root_pid = pid, .weight = weight, .cap_permille = cap_permille};
    const struct bh_govern_channels m = channels(0, pid, n);
    struct bh_governed *l = NULL;
    if (bh_state_join(&w.state, &j, 0, &l, NULL) < 0)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        (void)fake_make(&w.fake, 0, pid, (struct bh_driver_channel){pid, i});
    fake_pid(&w.fake, pid)->busy = true;
    return bh_steer_has(w.steer, l, &m, NULL) == BH_OK ? l : NULL;
}

/* Time passes, with steps where they are due. */
static const char *pass(uint64_t ns)
{
    const char *why = NULL;
    for (const uint64_t until = w.now + ns; !why && w.now < until;) {
        w.next = bh_steer_step(w.steer, w.now);
        why = bh_steer_check(w.steer);
        const uint64_t to = w.next < until ? w.next : until;
        fake_advance(&w.fake, to - w.now);
        w.now = to;
    }
    return why;
}

static uint64_t got(uint32_t pid)
{
    return fake_pid(&w.fake, pid)->ns[0];
}

TEST(one_tenant_is_left_alone_and_looked_at_seldom)
{
    begin(NULL);
    CHECK_EQ(bh_steer_step(w.steer, w.now), BH_STEER_NEVER);
    struct bh_governed *l = tenant(1, 30, 0, 8);
    CHECK(l && !pass(1000 * MS));
    CHECK(w.fake.calls == 0 && w.n_told == 0);
    CHECK(bh_steer_counts(w.steer).steps <= 22);
    CHECK_EQ(w.fake.watched, 1);
    struct bh_govern_row r;
    bh_steer_row(w.steer, l, &l->seats.at[0], &r);
    CHECK(r.gpu == 0 && r.state == BH_GOVERN_SHOWN_RUNS && r.mode == BH_GOVERN_FREE && r.slice_us == 0);
    CHECK(r.n_pids == 1 && r.pids[0] == 1 && r.busy_ns > 800 * MS && r.seen);
    end();
}

TEST(a_cap_is_a_duty_cycle_of_pauses_and_every_pause_ends)
{
    begin(NULL);
    struct bh_governed *l = tenant(1, 30, 250, 8);
    CHECK(l && !pass(1000 * MS));
    const uint64_t before = got(1);
    CHECK(!pass(4000 * MS));
    const uint64_t permille = (got(1) - before) / (4 * MS);
    CHECK(permille > 200 && permille < 300);
    struct bh_govern_row r;
    bh_steer_row(w.steer, l, &l->seats.at[0], &r);
    CHECK(r.pauses > 20 && r.target_permille == 250 && r.corrections >= r.pauses / 2);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(two_that_fill_their_slices_are_told_slices_once_each_until_they_change)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 70, 0, 4), *b = tenant(2, 30, 0, 4);
    CHECK(a && b && !pass(500 * MS));
    CHECK(w.n_told >= 2 && w.fake.calls == 0);
    CHECK(a->seats.at[0].slice_us > b->seats.at[0].slice_us && b->seats.at[0].slice_us > 0);
    for (size_t i = 1; i < w.n_told && i < TOLD; i++)
        for (size_t k = i; k-- > 0;)
            if (w.told[k].lease == w.told[i].lease) {
                CHECK(memcmp(&w.told[k].m, &w.told[i].m, sizeof(w.told[k].m)) != 0);
                break;
            }
    CHECK(w.next <= w.now + 5 * MS);
    /* when it ends they have the driver's own again */
    CHECK_EQ(bh_steer_release(w.steer), 0);
    CHECK(a->seats.at[0].slice_us == 0 && b->seats.at[0].slice_us == 0);
    CHECK_EQ(w.told[(w.n_told - 1) % TOLD].m.slice_us, 0);
    end();
}

TEST(a_warden_that_does_not_read_is_told_later)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 70, 0, 4), *b = tenant(2, 30, 0, 4);
    w.deaf = true;
    CHECK(a && b && !pass(30 * MS));
    CHECK(a->seats.at[0].slice_us == 0 && w.n_told == 0);
    w.deaf = false;
    CHECK(!pass(20 * MS));
    CHECK(a->seats.at[0].slice_us > 0);
    end();
}

TEST(an_operators_pause_holds_and_its_share_is_the_others)
{
    begin(NULL);
    struct bh_err err;
    struct bh_governed *a = tenant(1, 50, 0, 4), *b = tenant(2, 50, 0, 4);
    CHECK(a && b && !pass(300 * MS));
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, &err), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 4); /* at once, with no step between */
    const uint64_t mine = got(1), its = got(2);
    CHECK(!pass(500 * MS));
    CHECK(got(1) == mine && got(2) - its > 490 * MS);
    struct bh_govern_row r;
    bh_steer_row(w.steer, a, &a->seats.at[0], &r);
    CHECK(r.state == BH_GOVERN_SHOWN_PAUSED && r.target_permille == 0);
    /* channels that come meanwhile are paused, too */
    const struct bh_govern_channels more = channels(0, 1, 6);
    CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 4}) &&
          fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 5}));
    CHECK_EQ(bh_steer_has(w.steer, a, &more, &err), BH_OK);
    CHECK(!pass(10 * MS));
    CHECK_EQ(fake_paused(&w.fake), 6);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, &err), BH_OK);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, &err), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 0);
    CHECK(!pass(300 * MS));
    CHECK(got(1) > mine);
    end();
}

TEST(one_that_is_suspended_runs_and_is_left_alone)
{
    begin(NULL);
    struct bh_err err;
    struct bh_governed *a = tenant(1, 50, 100, 4);
    CHECK(a && !pass(300 * MS));
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, &err), BH_OK);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_SUSPEND, &err), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 0); /* its work must end before its memory can go */
    const uint64_t calls = w.fake.calls;
    const size_t told = w.n_told;
    CHECK(!pass(1000 * MS));
    CHECK(w.fake.calls == calls && w.n_told == told);
    struct bh_govern_row r;
    bh_steer_row(w.steer, a, &a->seats.at[0], &r);
    CHECK_EQ(r.state, BH_GOVERN_SHOWN_SUSPENDED);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, &err), BH_CONFLICT);
    CHECK_EQ(bh_steer_order(w.steer, a, 0, &err), BH_INVALID);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_SUSPENDED + 1, &err), BH_INVALID);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, &err), BH_OK);
    CHECK(!pass(1000 * MS));
    CHECK(w.fake.calls > calls); /* its cap holds again */
    CHECK_EQ(bh_steer_release(w.steer), 0);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(a_resume_of_one_that_waits_for_its_turn_changes_nothing)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 10, 4);
    CHECK(a);
    for (int i = 0; i < 400 && !fake_paused(&w.fake); i++)
        CHECK(!pass(5 * MS));
    CHECK_EQ(fake_paused(&w.fake), 4);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, NULL), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 4);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
}

TEST(a_failed_call_is_made_again_until_it_is_certain)
{
    begin(NULL);
    struct bh_err err;
    struct bh_governed *a = tenant(1, 50, 0, 6);
    CHECK(a && !pass(100 * MS));
    w.fake.failure = FAKE_FAILS_HALF_WAY;
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "tried again"));
    CHECK_EQ(fake_paused(&w.fake), 3);
    CHECK(!pass(100 * MS));
    w.fake.failure = FAKE_WORKS;
    CHECK(!pass(60 * MS));
    CHECK_EQ(fake_paused(&w.fake), 6);
    w.fake.failure = FAKE_FAILS;
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, &err), BH_SYSTEM);
    CHECK_EQ(fake_paused(&w.fake), 6);
    CHECK(bh_steer_counts(w.steer).failed > 2);
    w.fake.failure = FAKE_WORKS;
    CHECK(!pass(60 * MS));
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(who_leaves_while_paused_runs_also_when_the_driver_fails_at_first)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 6);
    CHECK(a && !pass(100 * MS));
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL), BH_OK);
    w.fake.failure = FAKE_FAILS;
    bh_steer_leave(w.steer, a, w.now);
    CHECK(fake_paused(&w.fake) == 6 && bh_steer_counts(w.steer).orphans == 6);
    CHECK(bh_steer_knows(w.steer, 0, (struct bh_driver_channel){1, 3}));
    CHECK(!pass(200 * MS));
    CHECK(w.next <= w.now + 1300 * MS); /* they are not forgotten */
    w.fake.failure = FAKE_WORKS;
    CHECK(!pass(1300 * MS));
    CHECK(fake_paused(&w.fake) == 0 && bh_steer_counts(w.steer).orphans == 0);
    CHECK_EQ(bh_steer_step(w.steer, w.now), BH_STEER_NEVER);
    end();
}

TEST(an_orphan_that_is_named_again_belongs_to_its_lease)
{
    begin(NULL);
    struct bh_govern_join j = {.root_pid = 1, .weight = 50, .lease = 1};
    struct bh_governed *a = tenant(1, 50, 0, 2), *again = NULL;
    const struct bh_govern_channels m = channels(0, 1, 2);
    CHECK(a && bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL) == BH_OK);
    w.fake.failure = FAKE_FAILS;
    bh_steer_leave(w.steer, a, w.now);
    CHECK_EQ(bh_state_join(&w.state, &j, 0, &again, NULL), BH_OK);
    CHECK_EQ(bh_steer_has(w.steer, again, &m, NULL), BH_OK);
    CHECK_EQ(bh_steer_counts(w.steer).orphans, 0);
    CHECK(bh_steer_knows(w.steer, 0, (struct bh_driver_channel){1, 0}));
    w.fake.failure = FAKE_WORKS;
    CHECK(!pass(60 * MS));
    CHECK_EQ(fake_paused(&w.fake), 2); /* the order still stands */
    CHECK_EQ(bh_steer_order(w.steer, again, BH_GOVERN_RESUME, NULL), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(what_can_not_be_resumed_for_long_is_given_up)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 2);
    CHECK(a && bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL) == BH_OK);
    w.fake.failure = FAKE_FAILS;
    bh_steer_leave(w.steer, a, w.now);
    CHECK(!pass(40000 * MS));
    CHECK(bh_steer_counts(w.steer).given_up == 2 && bh_steer_counts(w.steer).orphans == 0);
    end();
}

TEST(a_channel_that_is_said_to_be_lost_runs_first)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 4);
    struct bh_govern_channels lost = channels(0, 1, 2), bad = {.gpu = 99};
    CHECK(a && bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL) == BH_OK);
    CHECK_EQ(bh_steer_lost(w.steer, a, &lost, NULL), BH_OK);
    CHECK(!fake_is_paused(&w.fake, 0, 1, 0) && !fake_is_paused(&w.fake, 0, 1, 1));
    CHECK(fake_is_paused(&w.fake, 0, 1, 2) && a->seats.at[0].channels.n == 2);
    CHECK_EQ(bh_steer_lost(w.steer, a, &bad, NULL), BH_INVALID);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(at_the_end_one_bad_name_does_not_keep_the_others_paused)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 3), *b = tenant(2, 50, 0, 3);
    CHECK(a && bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL) == BH_OK);
    CHECK(b && bh_steer_order(w.steer, b, BH_GOVERN_PAUSE, NULL) == BH_OK);
    w.fake.poisoned = 1;
    CHECK_EQ(bh_steer_release(w.steer), 0); /* one by one it works */
    CHECK_EQ(fake_paused(&w.fake), 0);
    w.fake.poisoned = 0;
    CHECK_EQ(bh_steer_order(w.steer, b, BH_GOVERN_PAUSE, NULL), BH_OK);
    w.fake.failure = FAKE_FAILS;
    CHECK_EQ(bh_steer_release(w.steer), 3); /* said, not hidden */
    end();
}

TEST(turns_beside_a_latency_tenant_pause_before_they_resume)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 2), *b = tenant(2, 50, 0, 2), *l = tenant(3, 50, 0, 2);
    CHECK(a && b && l);
    l->latency = 1;
    CHECK(!pass(1000 * MS));
    CHECK(w.fake.calls > 10);
    /* at no time do both batch tenants run: each resume is that of the one after the other's pause */
    size_t swaps = 0;
    for (uint64_t i = w.fake.calls - 8; i + 1 < w.fake.calls; i++)
        swaps += !w.fake.log[i % FAKE_CALLS].running && w.fake.log[(i + 1) % FAKE_CALLS].running &&
                 w.fake.log[i % FAKE_CALLS].client != w.fake.log[(i + 1) % FAKE_CALLS].client;
    CHECK(swaps >= 3);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(cards_are_steered_each_by_itself)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 200, 2);
    struct bh_govern_channels m = channels(1, 7, 2);
    struct bh_govern_join j = {.root_pid = 7, .weight = 1};
    struct bh_governed *b = NULL;
    CHECK(a && bh_state_join(&w.state, &j, 0, &b, NULL) == BH_OK);
    CHECK(fake_make(&w.fake, 1, 7, (struct bh_driver_channel){7, 0}) &&
          fake_make(&w.fake, 1, 7, (struct bh_driver_channel){7, 1}));
    fake_pid(&w.fake, 7)->busy = true;
    CHECK_EQ(bh_steer_has(w.steer, b, &m, NULL), BH_OK);
    CHECK(!pass(1000 * MS));
    for (uint64_t i = 0; i < w.fake.calls && i < FAKE_CALLS; i++)
        CHECK_EQ(w.fake.log[i].gpu, 0);
    CHECK(fake_pid(&w.fake, 7)->ns[1] > 999 * MS);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
}

TEST(without_a_sensor_shares_are_set_all_the_same)
{
    begin(NULL);
    w.fake.blind = true;
    struct bh_governed *a = tenant(1, 70, 0, 2), *b = tenant(2, 30, 0, 2);
    CHECK(a && b && !pass(500 * MS));
    CHECK(a->seats.at[0].slice_us > b->seats.at[0].slice_us);
    struct bh_govern_row r;
    bh_steer_row(w.steer, a, &a->seats.at[0], &r);
    CHECK(!r.seen && r.error_permille == 0 && r.busy_ns == 0);
    end();
}

TEST(the_log_of_a_card_replays)
{
    static char line[BH_GOVERN_LINE_MAX];
    char folder[BH_SCRATCH_PATH], prefix[BH_SCRATCH_PATH + 8], path[BH_SCRATCH_PATH + 16];
    struct bh_govern_config config;
    struct bh_govern *again = NULL;
    size_t steps = 0;
    CHECK(bh_scratch_make(folder, sizeof(folder), "steer"));
    (void)snprintf(prefix, sizeof(prefix), "%s/log", folder);
    (void)snprintf(path, sizeof(path), "%s.gpu0", prefix);
    begin(prefix);
    w.fake.unused = 123;
    CHECK(tenant(1, 70, 0, 2) && tenant(2, 30, 100, 2) && !pass(1000 * MS));
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
    FILE *f = fopen(path, "re");
    CHECK(f && bh_scratch_remove(folder));
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!again) {
            CHECK(!bh_govern_log_read_config(line, &config, NULL) && !bh_govern_new(&config, &again, NULL));
            continue;
        }
        CHECK(strstr(line, " 2 123 ") && bh_govern_log_replay(again, line, NULL) == BH_OK);
        steps++;
    }
    (void)fclose(f);
    bh_govern_free(again);
    CHECK(steps > 100);
}

/* A hog that comes and goes, beside one whose turns take twice as long meanwhile; levels: what the card shows by its doing. */
static const char *noise_of(struct counters with, struct counters without)
{
    static struct bh_buf said;
    const struct bh_gauge_source source = counters_source(&w.counters);
    bh_buf_fini(&said);
    bh_buf_init(&said, 8192);
    begin_with(NULL, &source);
    w.counters = without;
    struct bh_governed *hog = tenant(1, 50, 0, 2), *victim = tenant(2, 50, 0, 2);
    struct fake_pid *p = fake_pid(&w.fake, 2);
    if (!hog || !victim)
        return "no tenants";
    victim->latency = 1;
    for (int i = 0; i < 12; i++) {
        const bool on = i % 2;
        const uint32_t opened = w.counters.opened, looks = w.counters.looks;
        w.counters = on ? with : without;
        w.counters.opened = opened;
        w.counters.looks = looks;
        fake_pid(&w.fake, 1)->busy = on;
        p->turn_ns = on ? 200000 : 100000;
        p->use_permille = on ? 200 : 100;
        if (pass(1500 * MS))
            return "somebody is paused";
    }
    bh_steer_noise(w.steer, 0, w.now, &said);
    return bh_buf_text(&said);
}

TEST(who_slows_whom_is_told_by_the_resource)
{
    static const struct counters quiet = {.dram = 50, .link_kbps = 1000000};
    static const struct {
        struct counters with;
        const char *words;
    } cases[] = {
        {{.dram = 870, .link_kbps = 1000000}, "lease 1 slowed lease 2: memory bandwidth "},
        {{.dram = 50, .rx = 930000, .link_kbps = 1000000}, "lease 1 slowed lease 2: PCIe "},
        {{.dram = 50, .clocks = 4, .link_kbps = 1000000},
         "lease 1 slowed lease 2: clocks lowered for power or heat "},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        const char *said = noise_of(cases[i].with, quiet);
        CHECK(strstr(said, cases[i].words));
        CHECK(!strstr(said, "slowed lease 1"));
        CHECK(!strstr(said, "missing"));
        /* at most six a second, and the card was opened once */
        CHECK(w.counters.opened == 1 && w.counters.looks > 60 && w.counters.looks <= 18 * 6);
        end();
    }
    /* turns that are longer while nothing is full may have more to do */
    const char *said = noise_of(quiet, quiet);
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(said, "lease 2: whether a turn of it does less work"));
    end();
}

TEST(without_counters_it_says_which_are_missing)
{
    const struct counters none = {.missing = (1u << BH_PRESSURE_N_) - 1};
    const char *said = noise_of(none, none);
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(said, "because missing: NVML GPM SM_UTIL, NVML GPM DRAM_BW_UTIL, NVML GPM PCIE_RX_PER_SEC"));
    end();
    const struct counters closed = {.refuses = true};
    said = noise_of(closed, closed);
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(said, "because missing: NVML GPM SM_UTIL, NVML GPM DRAM_BW_UTIL") &&
          strstr(said, "(no library here)"));
    CHECK(w.counters.opened == 2 && w.counters.looks == 0); /* tried again, but seldom */
    end();
}

TEST(counters_are_asked_for_seldom_where_nobody_competes)
{
    const struct bh_gauge_source source = counters_source(&w.counters);
    struct bh_buf said;
    bh_buf_init(&said, 8192);
    begin_with(NULL, &source);
    CHECK(tenant(1, 50, 0, 2) && tenant(2, 50, 0, 2));
    fake_pid(&w.fake, 2)->busy = false;
    CHECK(!pass(500 * MS)); /* who is new is taken to have work at first */
    CHECK(!pass(BH_TALLY_LINGER_NS));
    uint32_t looks = w.counters.looks;
    CHECK(!pass(20000 * MS));
    CHECK(w.counters.looks > looks + 10 && w.counters.looks <= looks + 21); /* one that works alone */
    fake_pid(&w.fake, 1)->busy = false;
    CHECK(!pass(5000 * MS));
    looks = w.counters.looks;
    CHECK(!pass(20000 * MS));
    CHECK_EQ(w.counters.looks, looks);
    bh_steer_noise(w.steer, 0, w.now, &said);
    CHECK_STR(bh_buf_text(&said), ""); /* and what was said once is old */
    bh_buf_fini(&said);
    end();
}

/* ---- what the card says, against what is written down ---- */

static void pause_behind(uint32_t client, bool paused)
{
    for (size_t i = 0; i < w.fake.n; i++)
        if (w.fake.channels[i].name.client == client)
            w.fake.channels[i].paused = paused;
}

TEST(who_was_paused_by_somebody_else_is_resumed_again)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 3), *b = tenant(2, 50, 0, 3);
    CHECK(a && b && !pass(300 * MS));
    pause_behind(1, true);
    const uint64_t before = got(1);
    CHECK(!pass(3000 * MS));
    CHECK(got(1) - before > 300 * MS);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
    /* and at once where an operator says so */
    begin(NULL);
    a = tenant(1, 50, 0, 3);
    CHECK(a && !pass(300 * MS));
    pause_behind(1, true);
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, NULL), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(who_comes_from_another_governor_may_be_paused)
{
    begin(NULL);
    struct bh_govern_join j = {.root_pid = 1, .weight = 50, .lease = 1};
    struct bh_governed *a = NULL;
    const struct bh_govern_channels m = channels(0, 1, 2);
    for (uint32_t i = 0; i < 2; i++)
        CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, i}));
    pause_behind(1, true);
    CHECK_EQ(bh_state_join(&w.state, &j, 0, &a, NULL), BH_OK);
    CHECK_EQ(bh_steer_has(w.steer, a, &m, NULL), BH_OK);
    CHECK(!pass(10 * MS));
    CHECK_EQ(fake_paused(&w.fake), 0);
    end();
}

TEST(who_is_held_and_was_resumed_is_paused_again)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 3);
    CHECK(a && tenant(2, 50, 0, 3) && !pass(300 * MS));
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL), BH_OK);
    CHECK(!pass(200 * MS));
    pause_behind(1, false);
    CHECK(!pass(200 * MS));
    CHECK_EQ(fake_paused(&w.fake), 3);
    CHECK(bh_steer_counts(w.steer).escaped > 0 && w.n_ended == 0);
    end();
}

TEST(a_channel_that_comes_while_its_lease_is_paused_is_paused_at_once)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 10, 4);
    const struct bh_govern_channels more = channels(0, 1, 5);
    CHECK(a);
    for (int i = 0; i < 400 && !fake_paused(&w.fake); i++)
        CHECK(!pass(5 * MS));
    CHECK_EQ(fake_paused(&w.fake), 4);
    CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 4}));
    CHECK_EQ(bh_steer_has(w.steer, a, &more, NULL), BH_OK);
    CHECK_EQ(fake_paused(&w.fake), 5); /* with no step between */
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
}

TEST(a_channel_that_nobody_names_ends_its_lease)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 100, 2), *b = tenant(2, 50, 0, 2);
    CHECK(a && b && !pass(300 * MS));
    CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 99}));
    for (int i = 0; i < 100 && !w.n_ended; i++)
        CHECK(!pass(100 * MS));
    CHECK(w.n_ended > 0 && w.ended[0] == 1);
    CHECK_EQ(bh_steer_counts(w.steer).ended, w.n_ended);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
    /* the same of one that an operator has paused */
    begin(NULL);
    a = tenant(1, 50, 0, 2);
    CHECK(a && !pass(300 * MS));
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL), BH_OK);
    CHECK(!pass(3000 * MS));
    CHECK_EQ(w.n_ended, 0);
    CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 99}));
    CHECK(!pass(900 * MS));
    CHECK_EQ(w.n_ended, 0);
    CHECK(!pass(600 * MS));
    CHECK_EQ(w.n_ended, 1);
    end();
}

TEST(time_counts_whichever_process_of_the_lease_it_is_booked_on)
{
    begin(NULL);
    const struct bh_govern_join j = {.root_pid = 1, .weight = 50, .cap_permille = 100};
    /* the channel is said to be 2's, who has the file of 1's client */
    const struct bh_govern_channels has = {.op = BH_GOVERN_HAS, .pid = 2, .client = 1, .n = 1, .names = {7}};
    const struct bh_govern_pids pids = {.op = BH_GOVERN_PIDS, .n = 2, .pids = {2, 1}};
    struct bh_governed *a = NULL;
    CHECK_EQ(bh_state_join(&w.state, &j, 0, &a, NULL), BH_OK);
    CHECK(fake_make(&w.fake, 0, 1, (struct bh_driver_channel){1, 7}));
    fake_pid(&w.fake, 1)->busy = true;
    CHECK_EQ(bh_state_pids(a, &pids, NULL), BH_OK);
    CHECK_EQ(bh_steer_has(w.steer, a, &has, NULL), BH_OK);
    CHECK(!pass(1000 * MS));
    const uint64_t before = got(1);
    CHECK(!pass(4000 * MS));
    const uint64_t permille = (got(1) - before) / (4 * MS);
    CHECK(permille > 70 && permille < 150);
    CHECK_EQ(bh_steer_release(w.steer), 0);
    end();
}

TEST(a_call_that_fails_for_long_is_made_less_and_less)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 2);
    CHECK(a && !pass(100 * MS));
    w.fake.failure = FAKE_FAILS;
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_PAUSE, NULL), BH_SYSTEM);
    const uint64_t calls = w.fake.calls;
    CHECK(!pass(10000 * MS));
    CHECK(w.fake.calls - calls > 7 && w.fake.calls - calls < 24);
    /* the other way is another call */
    const uint64_t pauses = w.fake.calls;
    CHECK_EQ(bh_steer_order(w.steer, a, BH_GOVERN_RESUME, NULL), BH_SYSTEM);
    CHECK_EQ(w.fake.calls, pauses + 1);
    w.fake.failure = FAKE_WORKS;
    CHECK(!pass(60 * MS));
    CHECK(w.fake.calls == pauses + 2 && fake_paused(&w.fake) == 0);
    end();
}

TEST(the_check_finds_a_pause_that_nobody_meant)
{
    begin(NULL);
    struct bh_governed *a = tenant(1, 50, 0, 2);
    CHECK(a && !pass(10 * MS));
    a->seats.at[0].channels.at[1].run = BH_CHANNEL_PAUSED;
    CHECK(bh_steer_check(w.steer));
    a->hold = BH_HOLD_PAUSED;
    CHECK(!bh_steer_check(w.steer));
    end();
}

TEST_MAIN
