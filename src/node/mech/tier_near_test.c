/* SPDX-License-Identifier: Apache-2.0 */
/* tier_near_test.c - lists of processors: what is read is what is written, and nothing past this machine is asked for. */
#include "node/mech/tier_near.h"

#include "base/test.h"

static bool says(const char *list, const char *words)
{
    struct bh_arena arena = {0};
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool ok = bh_near_parse(list, &set) && strcmp(bh_near_words(&arena, &set), words) == 0;
    bh_arena_fini(&arena);
    return ok;
}

TEST(lists)
{
    CHECK(says("", ""));
    CHECK(says("3", "3"));
    CHECK(says("0-3,8", "0-3,8"));
    CHECK(says("8,0-3,4", "0-4,8"));
    CHECK(says("1,3,2", "1-3"));
    CHECK(says("5-2", ""));                /* nothing is between them */
    CHECK(says("1000-5000", "1000-1023")); /* as many as a set holds */
    static const char *const wrong[] = {",", "1,", "a", "1-", "-1", "1--2", "1 2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CHECK(!bh_near_parse(wrong[i], &set));
    }
}

TEST(what_is_not_here_is_not_asked_for)
{
    struct bh_arena arena = {0};
    struct bh_near n = {.all_known = true};
    cpu_set_t mine;
    CHECK(bh_near_cpus(&arena, &n) == NULL);
    CHECK(sched_getaffinity(0, sizeof(mine), &mine) == 0);
    n.cpus = mine;
    CHECK_STR(bh_near_cpus(&arena, &n), bh_near_words(&arena, &mine));
    /* one that this machine does not have is left out */
    CPU_SET(CPU_SETSIZE - 1, &n.cpus);
    CHECK_STR(bh_near_cpus(&arena, &n), bh_near_words(&arena, &mine));
    CPU_SET(CPU_SETSIZE - 1, &n.nodes);
    CHECK(bh_near_nodes(&arena, &n) == NULL);
    n.all_known = false;
    CHECK(bh_near_cpus(&arena, &n) == NULL);
    bh_arena_fini(&arena);
}

TEST(a_gpu_that_nobody_can_place)
{
    struct bh_near n = {.all_known = true};
    const struct bh_gpu_device nowhere = {.numa = -1}, odd = {.numa = 0, .pci = "no-such-card"};
    bh_near_add(&n, &nowhere);
    CHECK(!n.all_known);
    n.all_known = true;
    bh_near_add(&n, &odd);
    CHECK(!n.all_known);
    CHECK_EQ(CPU_COUNT(&n.cpus), 0);
}

TEST_MAIN
