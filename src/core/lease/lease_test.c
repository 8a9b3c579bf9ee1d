/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lease/lease.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

#define EACH_STATE(s) for (enum bh_lease_state s = 0; s < BH_LEASE_STATES; s++)
#define EACH_CAUSE(c) for (enum bh_lease_cause c = 0; c < BH_LEASE_CAUSES; c++)

TEST(every_state_and_every_cause_has_a_word_of_its_own)
{
    EACH_STATE(s)
    CHECK_EQ(bh_lease_state_find(bh_lease_state_str(s)), s);
    EACH_CAUSE(c)
    CHECK_EQ(bh_lease_cause_find(bh_lease_cause_str(c)), c);
    CHECK_EQ(bh_lease_state_find("gone"), -1);
    CHECK_EQ(bh_lease_cause_find(""), -1);
    CHECK_EQ(bh_lease_cause_find(NULL), -1);
}

/* All ways there are, written out once more: what is not here must be refused. */
static const char *const expected[] = {
    "requested admit admitted",   "requested refuse refused",    "requested cancel refused",
    "admitted grant preparing",   "admitted refuse refused",     "admitted cancel refused",
    "preparing ready active",     "preparing break failed",      "preparing cancel failed",
    "preparing end failed",       "preparing evict failed",      "preparing expire failed",
    "preparing breach failed",    "preparing fault failed",      "preparing lose failed",
    "active cancel draining",     "active end draining",         "active evict draining",
    "active expire draining",     "active breach draining",      "active fault draining",
    "active lose draining",       "active park parking",         "parking cancel draining",
    "parking end draining",       "parking evict draining",      "parking expire draining",
    "parking breach draining",    "parking fault draining",      "parking lose draining",
    "parking parked suspended",   "parking unpark active",       "parking dirty draining",
    "suspended cancel draining",  "suspended end draining",      "suspended evict draining",
    "suspended expire draining",  "suspended breach draining",   "suspended fault draining",
    "suspended lose draining",    "suspended wake preparing",    "draining empty scrubbing",
    "draining stuck quarantined", "failed empty scrubbing",      "failed stuck quarantined",
    "scrubbing clean released",   "scrubbing dirty quarantined", "quarantined retry scrubbing",
};

TEST(just_these_ways_exist)
{
    size_t n = 0;
    EACH_STATE(s)
    {
        EACH_CAUSE(c)
        {
            enum bh_lease_state to = BH_LEASE_STATES, step = BH_LEASE_STATES;
            char text[80] = "";
            struct bh_err err = {0};
            const bool may = bh_lease_next(s, c, &to);
            CHECK_EQ(bh_lease_step(s, c, &step, &err), may ? 0 : BH_CONFLICT);
            CHECK_EQ(step, to);
            if (!may) {
                CHECK_EQ(to, BH_LEASE_STATES); /* untouched */
                CHECK(strstr(err.msg, bh_lease_state_str(s)) && strstr(err.msg, bh_lease_cause_str(c)));
                continue;
            }
            CHECK(bh_lease_may_become(s, to));
            (void)snprintf(text, sizeof(text), "%s %s %s", bh_lease_state_str(s), bh_lease_cause_str(c),
                           bh_lease_state_str(to));
            size_t i = 0;
            while (i < BH_COUNT_OF(expected) && strcmp(expected[i], text) != 0)
                i++;
            if (i == BH_COUNT_OF(expected))
                printf("# %s\n", text);
            CHECK(i < BH_COUNT_OF(expected));
            n++;
        }
    }
    CHECK_EQ(n, BH_COUNT_OF(expected));
}

/* States that can be reached from `from` without passing through `shut`. */
static uint32_t reach(enum bh_lease_state from, enum bh_lease_state shut)
{
    uint32_t seen = 1u << from, before = 0;
    while (seen != before) {
        before = seen;
        EACH_STATE(s)
        {
            EACH_STATE(to)
            {
                if (seen >> s & 1 && s != shut && bh_lease_may_become(s, to))
                    seen |= 1u << to;
            }
        }
    }
    return seen;
}

TEST(every_state_is_reached_and_leads_to_an_end)
{
    CHECK_EQ(reach(BH_LEASE_REQUESTED, BH_LEASE_STATES), (1u << BH_LEASE_STATES) - 1);
    EACH_STATE(s)
    {
        const uint32_t r = reach(s, BH_LEASE_STATES);
        CHECK(r & (1u << BH_LEASE_RELEASED | 1u << BH_LEASE_REFUSED));
        bool out = false;
        EACH_STATE(to)
        out |= bh_lease_may_become(s, to);
        CHECK_EQ(bh_lease_is_terminal(s), !out);
    }
}

TEST(nothing_is_released_but_out_of_scrubbing)
{
    CHECK(!(reach(BH_LEASE_REQUESTED, BH_LEASE_SCRUBBING) >> BH_LEASE_RELEASED & 1));
    EACH_STATE(s)
    CHECK_EQ(bh_lease_may_become(s, BH_LEASE_RELEASED), s == BH_LEASE_SCRUBBING);
    EACH_STATE(s)
    {
        if (s != BH_LEASE_SCRUBBING)
            CHECK(!bh_lease_may_become(BH_LEASE_QUARANTINED, s));
    }
}

TEST(slices_are_held_from_the_grant_to_the_verdict)
{
    /* Taking: by a grant or when it wakes. Giving up: proved clean, or for host memory. */
    EACH_STATE(s)
    {
        EACH_CAUSE(c)
        {
            enum bh_lease_state to;
            if (!bh_lease_next(s, c, &to))
                continue;
            if (!bh_lease_holds_slices(s) && bh_lease_holds_slices(to))
                CHECK(c == BH_LEASE_BY_GRANT || c == BH_LEASE_BY_WAKE || s == BH_LEASE_SUSPENDED);
            if (bh_lease_holds_slices(s) && !bh_lease_holds_slices(to))
                CHECK(c == BH_LEASE_BY_CLEAN || c == BH_LEASE_BY_PARKED);
            if (!bh_lease_is_charged(s) && bh_lease_is_charged(to))
                CHECK(c == BH_LEASE_BY_READY || s == BH_LEASE_SUSPENDED);
            if (bh_lease_is_charged(s) && !bh_lease_is_charged(to))
                CHECK(c == BH_LEASE_BY_EMPTY || c == BH_LEASE_BY_STUCK || c == BH_LEASE_BY_PARKED);
            /* Who is over never comes back: a job goes on under another lease. */
            CHECK(!bh_lease_is_over(s) || bh_lease_is_over(to));
            CHECK(bh_lease_may_run(s) || !bh_lease_may_run(to) || c == BH_LEASE_BY_GRANT);
        }
        CHECK(!bh_lease_is_over(s) || (!bh_lease_may_run(s) && !bh_lease_is_charged(s)));
        CHECK(!bh_lease_hands_on(s) || (bh_lease_is_terminal(s) && !bh_lease_holds_slices(s)));
    }
    CHECK(bh_lease_hands_on(BH_LEASE_RELEASED));
    CHECK(!bh_lease_hands_on(BH_LEASE_QUARANTINED));
}

#define FACTS(...)           \
    &(struct bh_lease_facts) \
    {                        \
        __VA_ARGS__          \
    }

TEST(the_invariant_takes_what_is_right)
{
    CHECK_EQ(bh_lease_invariant(FACTS(.state = BH_LEASE_REQUESTED), NULL), 0);
    CHECK_EQ(
        bh_lease_invariant(
            FACTS(.state = BH_LEASE_ACTIVE, .granted = 2, .owned = 2, .usage_open = 2, .keeper = true), NULL),
        0);
    CHECK_EQ(bh_lease_invariant(FACTS(.state = BH_LEASE_SUSPENDED, .granted = 2, .proved = 2, .keeper = true),
                                NULL),
             0);
    CHECK_EQ(bh_lease_invariant(
                 FACTS(.state = BH_LEASE_SCRUBBING, .granted = 3, .dirty = 1, .quarantined = 1, .proved = 1),
                 NULL),
             0);
    CHECK_EQ(bh_lease_invariant(FACTS(.state = BH_LEASE_RELEASED, .granted = 3, .proved = 3), NULL), 0);
    /* A suspended one that has to end has nothing to drain. */
    CHECK_EQ(bh_lease_invariant(FACTS(.state = BH_LEASE_DRAINING, .granted = 1, .proved = 1), NULL), 0);
}

TEST(the_invariant_finds_what_is_wrong)
{
    static const struct {
        const char *says;
        struct bh_lease_facts f;
    } wrong[] = {
        {"has no slice", {.state = BH_LEASE_ACTIVE}},
        {"1 slices in use", {.state = BH_LEASE_ADMITTED, .granted = 1, .owned = 1}},
        {"nowhere", {.state = BH_LEASE_RELEASED, .granted = 2, .proved = 1}},
        {"nowhere", {.state = BH_LEASE_ACTIVE, .granted = 1, .owned = 2, .usage_open = 2}},
        {"being scrubbed", {.state = BH_LEASE_RELEASED, .granted = 1, .dirty = 1}},
        {"in quarantine", {.state = BH_LEASE_RELEASED, .granted = 1, .quarantined = 1}},
        {"nobody pays", {.state = BH_LEASE_ACTIVE, .granted = 1, .owned = 1}},
        {"still pays", {.state = BH_LEASE_SCRUBBING, .granted = 1, .dirty = 1, .usage_open = 1}},
        {"still pays", {.state = BH_LEASE_DRAINING, .usage_open = 1}},
        {"keeper", {.state = BH_LEASE_SCRUBBING, .granted = 1, .dirty = 1, .keeper = true}},
        {"has no slice", {.state = BH_LEASE_QUARANTINED, .granted = 1, .proved = 1}},
    };
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        struct bh_err err = {0};
        CHECK_EQ(bh_lease_invariant(&wrong[i].f, &err), BH_CONFLICT);
        CHECK(strstr(err.msg, wrong[i].says));
    }
}

TEST_MAIN
