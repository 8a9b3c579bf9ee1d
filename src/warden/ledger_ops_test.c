/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger made again from what was told of another one is that ledger, at every step. */
#include "base/test.h"
#include "warden/ledger_fixture.h"
#include "warden/ledger_ops_fixture.h"

enum { BYTES = 6000, SEEDS = 20, ANEW = 50 };

static bool all_applied;
static size_t n_ops;

static void apply(void *arg, const struct bh_ledger_op *op)
{
    struct bh_ledger **replica = arg;
    n_ops++;
    all_applied = bh_ledger_apply(*replica, op) && all_applied;
}

static struct bh_ledger *again(struct bh_ledger *l)
{
    struct bh_ledger *replica = bh_ledger_new(l->cap_bytes);
    bh_ledger_snapshot(l, (struct bh_ledger_log){apply, &replica});
    return replica;
}

/* The replica hears everything; now and then it is thrown away and made anew from the whole. */
static const char *follow(uint64_t seed)
{
    static uint8_t bytes[BYTES];
    static struct storm s;
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct bh_ledger *replica = bh_ledger_new(STORM_CAP);
    const char *why = NULL;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    storm_init(&s, &c, seed);
    bh_ledger_observe(s.l, (struct bh_ledger_log){apply, &replica});
    for (uint32_t step = 0; c.left && !s.why && !why; step++) {
        storm_step(&s);
        why = ops_differ(s.l, replica);
        why = why ? why : bh_ledger_check(replica);
        if (step % ANEW == 0) {
            bh_ledger_free(replica);
            replica = again(s.l);
        }
    }
    why = why ? why : s.why;
    bh_ledger_observe(s.l, (struct bh_ledger_log){0});
    const char *end = storm_end(&s);
    bh_ledger_free(replica);
    return why ? why : end;
}

TEST(a_replica_is_the_same_at_every_step)
{
    all_applied = true;
    n_ops = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const char *why = follow(seed);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
        CHECK(all_applied);
    }
    printf("# %zu operations\n", n_ops);
    CHECK(n_ops > 10000);
}

TEST(a_second_object_of_a_name_and_shared_memory_come_back)
{
    struct bh_ledger *l = bh_ledger_new(1000);
    const struct bh_ledger_object device = {.client = 1, .parent = 1, .object = 2, .gpu = 3},
                                  first = {.client = 1,
                                           .parent = 2,
                                           .object = 5,
                                           .gpu = UINT32_MAX,
                                           .bytes = 100},
                                  second = {.client = 1, .parent = 1, .object = 5, .gpu = 4, .bytes = 50},
                                  shared = {.client = 7, .parent = 7, .object = 8, .gpu = UINT32_MAX};
    CHECK(bh_ledger_client(l, 10, 20, 1) && bh_ledger_client(l, 11, 21, 7) &&
          !bh_ledger_client(l, 12, 22, 7));
    bh_ledger_object(l, &device);
    bh_ledger_object(l, &first);
    bh_ledger_object(l, &second); /* takes the name */
    bh_ledger_dup(l, &shared, 1, 5);
    CHECK(bh_ledger_map(l, 10, 30));
    bh_ledger_counted(l, 3, 170);
    all_applied = true;
    struct bh_ledger *copy = again(l);
    CHECK(all_applied);
    CHECK(!ops_differ(l, copy));
    CHECK(!bh_ledger_check(copy));
    CHECK_EQ(bh_ledger_managed(copy, 10), 30);
    CHECK_EQ(bh_ledger_sum(copy, 3).overhead, 70);
    CHECK_EQ(bh_ledger_sum(copy, 3).peak, bh_ledger_sum(l, 3).peak);
    struct bh_ledger *both[] = {l, copy};
    for (size_t i = 0; i < 2; i++) {
        bh_ledger_drop(both[i], 1, 5);
        CHECK_EQ(bh_ledger_sum(both[i], 4).held, 50); /* the second name keeps it */
        bh_ledger_file_closed(both[i], 21);
        CHECK_EQ(bh_ledger_sum(both[i], 4).held, 50); /* and another file that client */
        bh_ledger_file_closed(both[i], 22);
        CHECK_EQ(bh_ledger_sum(both[i], 4).held, 0);
        bh_ledger_process_gone(both[i], 10);
        CHECK_EQ(bh_ledger_sum(both[i], 3).held, 0);
        CHECK_EQ(bh_ledger_sum(both[i], 3).objects, 0);
    }
    CHECK(!ops_differ(l, copy));
    bh_ledger_free(l);
    bh_ledger_free(copy);
}

TEST(what_no_ledger_would_tell_is_refused)
{
    static const struct bh_ledger_op wrong[] = {
        {.kind = BH_LEDGER_OP_NONE},
        {.kind = BH_LEDGER_OP_N_},
        {.kind = UINT32_MAX},
        {.kind = BH_LEDGER_OP_MAP, .pid = 1, .bytes = 1001},
        {.kind = BH_LEDGER_OP_HAS_GPU, .gpu = BH_LEDGER_GPUS},
        {.kind = BH_LEDGER_OP_HAS_LOST, .gpu = BH_LEDGER_GPUS + 1},
        {.kind = BH_LEDGER_OP_HAS_BLOCK, .gpu = BH_LEDGER_GPUS + 1},
        {.kind = BH_LEDGER_OP_HAS_BLOCK, .bytes = UINT64_MAX},
        {.kind = BH_LEDGER_OP_HAS_OBJECT, .client = 1, .source = UINT32_MAX},
    };
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        struct bh_ledger *l = bh_ledger_new(1000);
        CHECK(!bh_ledger_apply(l, &wrong[i]));
        CHECK(!bh_ledger_check(l));
        bh_ledger_free(l);
    }
    /* what a ledger had become comes first, or not at all */
    struct bh_ledger *l = bh_ledger_new(1000);
    CHECK(bh_ledger_apply(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_CLIENT, .client = 1}));
    CHECK(!bh_ledger_apply(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_CLIENT, .client = 1}));
    CHECK(!bh_ledger_apply(
        l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_OBJECT, .client = 2, .source = UINT32_MAX}));
    CHECK(!bh_ledger_apply(
        l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_OBJECT, .client = 1, .source = 0}));
    CHECK(bh_ledger_apply(
        l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_CLIENT, .client = 1, .pid = 1, .file = 1}));
    CHECK(!bh_ledger_apply(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_CLIENT, .client = 3}));
    CHECK(!bh_ledger_check(l));
    /* memory that nobody has is found by the check of the whole */
    bh_ledger_free(l);
    l = bh_ledger_new(1000);
    CHECK(bh_ledger_apply(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_BLOCK, .bytes = 5}));
    CHECK(bh_ledger_check(l));
    bh_ledger_free(l);
}

TEST_MAIN
