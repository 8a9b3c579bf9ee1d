/* SPDX-License-Identifier: Apache-2.0 */
/* job_test.c - shapes, amounts, and the order in a line. */
#include "core/sched/sched_fixture.h"

TEST(jobs_that_ask_for_the_same_have_one_shape)
{
    struct bh_sched *s = plain_sched();
    struct bh_gang_spec a = job_of(1, 1, 2, 4), b = job_of(2, 7, 2, 4);
    uint32_t x, y;
    b.priority = 5;
    b.deadline_ms = 9;
    CHECK_EQ(bh_shape_intern(s, &a, &x, NULL), 0);
    CHECK_EQ(bh_shape_intern(s, &b, &y, NULL), 0);
    CHECK_EQ(x, y);
    b.firm = true;
    CHECK_EQ(bh_shape_intern(s, &b, &y, NULL), 0);
    CHECK(x != y);
    b = a;
    b.roles[0].max = 3;
    CHECK_EQ(bh_shape_intern(s, &b, &y, NULL), 0);
    CHECK(x != y);
    CHECK_EQ(s->shapes.at[y].members, 2);
    CHECK_EQ(s->shapes.at[y].elastic, 1);
    CHECK_EQ(s->shapes.at[y].least.at[BH_RES_GPU], 8 * GPU);
    bh_sched_free(s);
}

TEST(contradictions_are_refused)
{
    struct bh_sched *s = plain_sched();
    struct bh_gang_spec good = job_of(1, 1, 2, 4), j = good;
    uint32_t x;
#define REFUSED(change) \
    j = good;           \
    change;             \
    CHECK(bh_shape_intern(s, &j, &x, NULL) < 0)
    REFUSED(j.n_roles = 0);
    REFUSED(j.n_roles = BH_ROLES_MAX + 1);
    REFUSED(j.roles[0].min = 3);
    REFUSED(j.roles[0].min = 0);
    REFUSED(j.roles[0].max = BH_MEMBERS_MAX + 1);
    REFUSED(j.within = BH_LEVEL_RACK);
    REFUSED(j.within = BH_LEVEL_ANY + 1);
    REFUSED(j.band = BH_N_priority);
    REFUSED(j.can = 16);
    REFUSED(j.roles[0].slice = 3);
    REFUSED(j.roles[0].request.n_gpus = 17);
    j.roles[0] = good.roles[0];
    j.within = j.prefer = BH_LEVEL_LINK;
    j.roles[0].slice = 2;
    j.roles[0].slice_level = BH_LEVEL_RACK;
    CHECK(bh_shape_intern(s, &j, &x, NULL) < 0);
    CHECK_EQ(bh_shape_intern(s, &good, &x, NULL), 0);
    bh_sched_free(s);
}

TEST(models_are_counted_where_they_are_known)
{
    struct bh_sched_config c = plain_config();
    c.model_class[0] = 2;
    c.model_class[1] = 2;
    c.model_class[2] = 3;
    struct bh_sched *s = bh_sched_new(&c);
    for (uint32_t i = 0; i < 3; i++)
        add_model(s, i, NULL);
    struct bh_node_spec spec = node_of(0, 8, BH_NONE);
    spec.model = 2;
    say(s, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = 0, .node = &spec});
    bh_sched_settle(s);
    struct bh_gang_spec j = job_of(1, 1, 1, 4);
    uint32_t any, two, all;
    CHECK_EQ(bh_shape_intern(s, &j, &any, NULL), 0);
    j.roles[0].request.models = 3;
    CHECK_EQ(bh_shape_intern(s, &j, &two, NULL), 0);
    j.roles[0].request.models = 7;
    CHECK_EQ(bh_shape_intern(s, &j, &all, NULL), 0);
    CHECK_EQ(s->shapes.at[any].least.at[BH_RES_MODEL0 + 2], 0);
    CHECK_EQ(s->shapes.at[two].least.at[BH_RES_MODEL0 + 2], 4 * GPU);
    CHECK_EQ(s->shapes.at[all].least.at[BH_RES_MODEL0 + 2], 0);
    const struct bh_resources there = bh_class_amount(s, s->shapes.at[all].roles[0].class_, 0);
    CHECK_EQ(there.at[BH_RES_MODEL0 + 3], 4 * GPU);
    CHECK_EQ(s->queues.total.at[BH_RES_MODEL0 + 3], 8 * GPU);
    bh_sched_free(s);
}

static bool less(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *keys = context;
    return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
}

TEST(numbers_are_sorted)
{
    static const uint32_t keys[] = {5, 1, 4, 1, 9, 2, 6, 0}, right[] = {7, 1, 3, 5, 2, 0, 6, 4};
    for (uint32_t n = 0; n <= 8; n++) {
        uint32_t at[8];
        for (uint32_t i = 0; i < n; i++)
            at[i] = i;
        bh_heap_sort(at, n, less, keys);
        for (uint32_t i = 1; i < n; i++)
            CHECK(less(keys, at[i - 1], at[i]));
        CHECK(n < 8 || !memcmp(at, right, sizeof(at)));
    }
}

/* The first of a line is who bh_turn_compare() puts first; also when ranks change and deadlines come close. */
static bool line_is_right(const struct bh_sched *s)
{
    const struct bh_line *l = &s->lines.at[0];
    enum bh_turn_key key;
    const struct bh_turn first = bh_line_turn(s, l);
    for (size_t i = 1; i < l->heap.n; i++) {
        const struct bh_gang *g = &s->gangs.at[l->heap.at[i]];
        const struct bh_turn other = {.queue = l->queue,
                                      .amount = first.amount,
                                      .band = first.band,
                                      .deadline_ms = g->deadline_ms,
                                      .runtime_ms = g->runtime_ms,
                                      .priority = g->priority,
                                      .user_rank = s->ranks.at[g->user],
                                      .submit_ms = g->submit_ms,
                                      .id = g->id};
        if (bh_turn_compare(&s->queues, &first, &other, s->now_ms, &key) >= 0)
            return false;
    }
    return true;
}

TEST(the_first_of_a_line_is_the_first_in_order)
{
    static uint8_t bytes[2048];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_sched_config config = plain_config();
        config.queues.slack_ms = 50;
        struct bh_sched *s = bh_sched_new(&config);
        add_queue(s, 1, 0, 0, 8);
        for (uint64_t i = 1; i <= 40; i++) {
            struct bh_gang_spec j = job_of(i, 1, 1, 1);
            j.user = bh_choose(&c, 4);
            j.priority = (int32_t)bh_choose(&c, 3);
            j.submit_ms = bh_choose(&c, 5);
            j.runtime_ms = bh_choose(&c, 20);
            j.deadline_ms = bh_choose(&c, 2) ? 100 + bh_choose(&c, 400) : BH_TURN_NO_DEADLINE;
            submit(s, j);
        }
        bool ok = true;
        for (uint64_t now = 0; ok && now < 600; now += 7) {
            if (!bh_choose(&c, 4))
                say(s, (struct bh_sched_event){
                           .kind = BH_SCHED_RANK, .id = bh_choose(&c, 4), .rank = bh_choose(&c, 3)});
            if (!bh_choose(&c, 6))
                tell(s, BH_SCHED_CANCEL, 1 + bh_choose(&c, 40), now);
            tell(s, BH_SCHED_TICK, 0, now);
            bh_lines_alarm(s);
            ok = !s->lines.at[0].heap.n || line_is_right(s);
        }
        bh_sched_free(s);
        CHECK(ok);
    }
}

/* Sums that no account could hold are refused where they come in. */
TEST(what_is_asked_for_can_be_counted)
{
    struct bh_sched *s = plain_sched();
    struct bh_err err;
    add_fleet(s, 1, 8);
    add_queue(s, 1, 0, 0, 8);
    struct bh_gang_spec j = job_of(1, 1, 4096, 1);
    const struct bh_sched_event e = {.kind = BH_SCHED_SUBMIT, .id = 1, .job = &j};
    j.roles[0].request.mem_mib = UINT64_C(16777215) << 20;
    CHECK_EQ(bh_sched_apply(s, &e, &err), BH_INVALID);
    j.roles[0].request.mem_mib = UINT64_MAX;
    CHECK_EQ(bh_sched_apply(s, &e, &err), BH_INVALID);
    j.roles[0].request.mem_mib = 1024;
    CHECK_EQ(bh_sched_apply(s, &e, &err), BH_OK);
    cycle(s, 1);
    CHECK_EQ(state_of(s, 1), BH_GANG_PENDING);
    bh_sched_free(s);
}

TEST_MAIN
