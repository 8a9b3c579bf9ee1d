/* SPDX-License-Identifier: Apache-2.0 */
/* sched_property_test.c - what holds in every life of every fleet. */
#include "core/sched/sched_life_fixture.h"

enum { LIVES = 500, RESTS = 200, TICKS = 24 };

/* ---- deciding allocates nothing: the linker puts these in the place of base/mem.h ---- */

void *__real_bh_alloc(size_t n, size_t size);
void *__real_bh_grow_(void *p, size_t *cap, size_t want, size_t size);
void *__wrap_bh_alloc(size_t n, size_t size);
void *__wrap_bh_grow_(void *p, size_t *cap, size_t want, size_t size);

static bool deciding;
static uint64_t allocated, decided;

void *__wrap_bh_alloc(size_t n, size_t size)
{
    allocated += deciding;
    return __real_bh_alloc(n, size);
}

void *__wrap_bh_grow_(void *p, size_t *cap, size_t want, size_t size)
{
    allocated += deciding;
    return __real_bh_grow_(p, cap, want, size);
}

static void count_while(bool on)
{
    deciding = on;
    decided += on;
}

/* Also where gangs grow by thousands at once, in as many cycles as that takes, and are given up again. */
TEST(elastic_gangs_grow_in_the_room_that_there_is)
{
    enum { MOST = 20000 };
    struct bh_sched *s = plain_sched();
    add_fleet(s, 2500, 8);
    add_queue(s, 1, 0, 0, 0);
    add_queue(s, 2, 0, 0, MOST);
    struct bh_gang_spec j = job_of(1, 1, 1, 1);
    j.roles[0].max = MOST;
    submit(s, j);
    for (uint64_t now = 1; now <= 5; now++) {
        size_t n;
        if (now == 4)
            submit(s, job_of(2, 2, 500, 8));
        bh_sched_settle(s);
        count_while(true);
        (void)bh_sched_decide(s, now, 0, &n);
        count_while(false);
        const struct bh_gang *g = bh_sched_job(s, 1);
        CHECK_EQ(allocated, 0);
        CHECK_EQ(s->stats.more, now == 1);
        CHECK_EQ(g->n_holds, now == 1 ? 1 + BH_GROW_MAX : now < 4 ? MOST : MOST - 500 * 8);
    }
    bh_sched_free(s);
}

TEST(lives_are_sound_and_the_order_within_a_tick_does_not_matter)
{
    static uint8_t bytes[LIFE_BYTES];
    static struct life l;
    uint64_t starts = 0, evictions = 0, narrowings = 0, moves = 0;
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        life_begin(&l, bytes, sizeof(bytes), 2);
        l.deciding = count_while;
        const bool ok = life_live(&l, TICKS);
        if (!ok)
            printf("# seed %" PRIu64 "\n", seed);
        const struct bh_sched_stats st = bh_sched_stats(l.s[0]);
        starts += st.starts;
        evictions += st.evictions;
        narrowings += st.narrowings;
        moves += st.moves;
        life_end(&l);
        CHECK(ok);
        CHECK_EQ(allocated, 0);
    }
    CHECK(decided > LIVES * TICKS);
    printf("# %" PRIu64 " starts, %" PRIu64 " evictions, %" PRIu64 " narrowings, %" PRIu64 " moves\n", starts,
           evictions, narrowings, moves);
    CHECK(starts > LIVES * 10 && evictions > LIVES && narrowings > 20 &&
          moves > 20); /* something was tested */
}

/* With nothing new, and everybody doing as told, it comes to rest: at one moment, and as time passes. */
TEST(it_comes_to_rest)
{
    static uint8_t bytes[LIFE_BYTES];
    static struct life l;
    uint32_t longest = 0;
    for (uint64_t seed = 1; seed <= RESTS; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed + 100000);
        life_begin(&l, bytes, sizeof(bytes), 1);
        bool ok = life_live(&l, 8);
        const uint32_t jobs = (uint32_t)bh_sched_slots(l.s[0]);
        for (uint32_t passing = 0; ok && passing < 2; passing++) {
            uint32_t cycles = 0, quiet = 0;
            while (ok && quiet < 3 && cycles < 4 * jobs + 40) {
                size_t n;
                life_gone(&l, true);
                const bool news = l.n_events != 0;
                tell_all(&l);
                l.now_ms += passing * 100;
                ok = life_step(&l, 0, &n);
                quiet = n || news ? 0 : quiet + 1;
                cycles++;
            }
            ok = ok && quiet == 3;
            longest = cycles > longest ? cycles : longest;
        }
        if (!ok)
            printf("# seed %" PRIu64 "\n", seed);
        life_end(&l);
        CHECK(ok);
    }
    printf("# longest %u cycles\n", longest);
    CHECK(longest > 4);
}

TEST(a_restart_changes_nothing)
{
    static uint8_t bytes[LIFE_BYTES];
    static struct life l;
    for (uint64_t seed = 1; seed <= RESTS / 2; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed + 200000);
        life_begin(&l, bytes, sizeof(bytes), 2);
        bool ok = life_live(&l, 8);
        struct bh_sched_bytes saved;
        struct bh_sched *again = NULL;
        bh_sched_save(l.s[1], &saved);
        ok = ok && bh_sched_load(saved.at, saved.n, &again, NULL) == 0;
        free(saved.at);
        if (again) {
            bh_sched_free(l.s[1]);
            life_seat(&l, 1, again);
        }
        ok = ok && life_live(&l, 12);
        if (!ok)
            printf("# seed %" PRIu64 "\n", seed);
        life_end(&l);
        CHECK(ok);
    }
}

TEST_MAIN
