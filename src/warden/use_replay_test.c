/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_replay_test.c - what a real card's sensors said, read again (data/recordings).
 *
 * Five and eight have equal shares, and the last works a quarter of its turns.
 * Five are of a build that did not tell it from the others, eight of one that did after 8 s.
 */
#include "base/test.h"
#include "base/units.h"
#include "warden/use_book_fixture.h"

#include <stdio.h>

#define MS UINT64_C(1000000)
enum { MOST = 8, LINE = 256 };

static struct bh_use_book use;
static struct bh_busy_book turns;
static struct rm_use_samples ring;
static uint64_t doubted_ns[MOST + 1]; /* since when each is in doubt; 0: never */

/* As the warden reads the card (driver_busy.c). */
static void read_card(uint64_t now_ns)
{
    bh_busy_book_look(&turns, now_ns);
    if (bh_use_book_watch(&use, &turns, now_ns))
        bh_use_book_take(&use, &ring, &turns, now_ns);
    for (uint32_t pid = 1; pid <= MOST; pid++)
        if (!doubted_ns[pid] && bh_use_book_doubt(&use, pid))
            doubted_ns[pid] = now_ns - BEGAN_NS;
}

/* A line is three words: when, what, and of whom, or how much. */
struct event {
    char *what;
    uint64_t at_ns, number;
};

static bool read_event(char *line, struct event *ret)
{
    char *state = NULL, *at = strtok_r(line, " \n", &state);
    ret->what = strtok_r(NULL, " \n", &state);
    const char *number = strtok_r(NULL, " \n", &state);
    return at && ret->what && number && bh_uint_parse(at, UINT64_MAX, &ret->at_ns, NULL) == BH_OK &&
           bh_uint_parse(number, UINT32_MAX, &ret->number, NULL) == BH_OK;
}

static bool take(struct book_tape *tape, const struct event *e)
{
    const uint32_t number = (uint32_t)e->number;
    if (!strcmp(e->what, "used"))
        samples_add(&ring, tape->now_ns, UINT32_MAX, number);
    else if (!strcmp(e->what, "begins"))
        tape_add(tape, &turns, RM_TURN_BEGINS, number);
    else if (!strcmp(e->what, "ends"))
        tape_add(tape, &turns, RM_TURN_ENDS, number);
    else
        return false;
    return true;
}

/* The governor looks every 5 ms while turns are taken by pauses, and every 40 where slices are right (core/govern/pace.h). */
static void replay(const char *path, uint64_t every_ns)
{
    FILE *f = fopen(path, "re");
    struct book_tape tape = {.now_ns = BEGAN_NS};
    uint64_t step_ns = BEGAN_NS;
    uint32_t read = 0;
    char line[LINE];
    CHECK(f != NULL);
    bh_use_book_init(&use);
    bh_busy_book_init(&turns);
    samples_clear(&ring);
    memset(doubted_ns, 0, sizeof(doubted_ns));
    while (fgets(line, sizeof(line), f)) {
        struct event e;
        if (line[0] == '#')
            continue;
        CHECK(read_event(line, &e));
        tape.now_ns = BEGAN_NS + e.at_ns;
        for (; step_ns < tape.now_ns; step_ns += every_ns)
            read_card(step_ns);
        CHECK(take(&tape, &e));
        bh_use_book_note(&use, &turns);
        read++;
    }
    (void)fclose(f);
    CHECK(read > 1300);
}

TEST(who_rested_in_a_crowd_on_a_card_is_told)
{
    static const uint64_t every_ms[] = {5, 40, 45, 60, 100, 250};
    static const struct {
        const char *path;
        uint32_t n;
    } crowds[] = {{BH_RECORDINGS "/five.turns", 5}, {BH_RECORDINGS "/eight.turns", 8}};
    for (size_t i = 0; i < BH_COUNT_OF(every_ms) * BH_COUNT_OF(crowds); i++) {
        const uint64_t ms = every_ms[i / 2];
        const uint32_t n = crowds[i % 2].n;
        replay(crowds[i % 2].path, ms * MS);
        printf("# of %u, a look every %" PRIu64 " ms: told after %" PRIu64 " ms\n", n, ms,
               doubted_ns[n] / MS);
        CHECK(doubted_ns[n] > 0 && doubted_ns[n] < 5000 * MS);
        for (uint32_t pid = 1; pid < n; pid++)
            CHECK_EQ(doubted_ns[pid], UINT64_C(0));
    }
}

TEST_MAIN
