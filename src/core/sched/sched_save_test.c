/* SPDX-License-Identifier: Apache-2.0 */
/* sched_save_test.c - saved and loaded it is the same; what is damaged is refused. */
#include "core/sched/sched_life_fixture.h"

static struct bh_sched_bytes some_state(struct life *l, uint64_t seed)
{
    static uint8_t bytes[LIFE_BYTES];
    struct bh_sched_bytes b = {0};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    life_begin(l, bytes, sizeof(bytes), 1);
    if (!life_live(l, 10))
        abort();
    bh_sched_save(l->s[0], &b);
    return b;
}

TEST(what_was_loaded_is_the_same)
{
    static struct life l;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct bh_sched_bytes a = some_state(&l, seed), b;
        struct bh_sched *again = NULL;
        CHECK_EQ(bh_sched_load(a.at, a.n, &again, NULL), 0);
        CHECK(sched_is_sound(again));
        CHECK_EQ(bh_sched_digest(again), bh_sched_digest(l.s[0]));
        bh_sched_save(again, &b);
        CHECK_EQ(a.n, b.n);
        for (size_t i = 0; i < l.s[0]->gangs.n; i++) {
            const struct bh_gang *x = &l.s[0]->gangs.at[i], *y = &again->gangs.at[i];
            CHECK_EQ(x->id, y->id);
            CHECK_EQ(x->state, y->state);
            CHECK_EQ(x->first_hold, y->first_hold);
        }
        /* It goes on as it would have gone on; more of that in sched_property_test.c. */
        size_t n, m;
        bh_sched_set_veto(l.s[0], NULL, NULL); /* the other has none */
        bh_sched_decide(again, l.now_ms + 100, 0, &n);
        bh_sched_decide(l.s[0], l.now_ms + 100, 0, &m);
        CHECK_EQ(n, m);
        CHECK_EQ(bh_sched_digest(again), bh_sched_digest(l.s[0]));
        free(a.at);
        free(b.at);
        bh_sched_free(again);
        life_end(&l);
    }
}

TEST(what_is_damaged_is_refused)
{
    static struct life l;
    struct bh_sched_bytes b = some_state(&l, 3);
    struct bh_sched *again = NULL;
    struct bh_err err;
    CHECK(bh_sched_load(b.at, 10, &again, &err) < 0);
    CHECK(bh_sched_load(b.at, b.n - 8, &again, &err) < 0);
    for (size_t i = 0; i < b.n; i += b.n / 97 + 1) {
        b.at[i] ^= 0x40;
        CHECK(bh_sched_load(b.at, b.n, &again, &err) < 0);
        b.at[i] ^= 0x40;
    }
    CHECK_EQ(bh_sched_load(b.at, b.n, &again, &err), 0);
    bh_sched_free(again);
    free(b.at);
    life_end(&l);
}

TEST_MAIN
