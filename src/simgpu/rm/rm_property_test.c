/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of calls by tenants that do anything: every invariant holds after each, and nothing is left at the end. */
#include "base/buf.h"
#include "base/test.h"
#include "simgpu/rm/storm_fixture.h"

enum { BYTES = 20000, SEEDS = 12 };

/* Steps made, or -1. what: what is still held half-way, to see that the storm did something; may be NULL. */
static int storm(uint64_t seed, struct bh_buf *journal, struct bh_sim_held *most)
{
    static uint8_t bytes[BYTES];
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct bh_recording r = {.driver = "", .gpu = "", .what = ""};
    struct storm s;
    const char *why = NULL;
    int steps = 0;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    storm_init(&s, &c);
    if (journal)
        bh_sim_rm_journal(s.rm, &r);
    for (; c.left && !why; steps++) {
        storm_step(&s);
        why = bh_sim_rm_check(s.rm);
        struct bh_sim_held h = bh_sim_rm_held(s.rm);
        if (most && h.objects > most->objects)
            *most = h;
    }
    if (why)
        printf("# seed %" PRIu64 ", step %d: %s\n", seed, steps, why);
    bh_sim_rm_journal(s.rm, NULL);
    bool clean = storm_end(&s);
    if (journal)
        bh_recording_write(journal, &r);
    bh_vec_fini(&r.calls);
    bh_arena_fini(&r.arena);
    return why || !clean ? -1 : steps;
}

TEST(every_invariant_holds_after_every_call)
{
    struct bh_sim_held most = {0};
    int steps = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int n = storm(seed, NULL, &most);
        CHECK(n > 0);
        steps += n;
    }
    CHECK(steps > 5000);
    /* the storm reached what it is about */
    CHECK(most.objects > 20 && most.bytes > 0 && most.groups > 0 && most.channels > 0);
}

TEST(the_same_storm_gives_the_same_journal)
{
    struct bh_buf a, b, other;
    bh_buf_init(&a, 8 << 20);
    bh_buf_init(&b, 8 << 20);
    bh_buf_init(&other, 8 << 20);
    bool ok = storm(77, &a, NULL) > 0 && storm(77, &b, NULL) > 0 && storm(78, &other, NULL) > 0;
    bool same = a.n > 1000 && a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
    bool differs = a.n != other.n || memcmp(a.at, other.at, a.n) != 0;
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    bh_buf_fini(&other);
    CHECK(ok);
    CHECK(same);
    CHECK(differs);
}

TEST_MAIN
