/* SPDX-License-Identifier: Apache-2.0 */
/* explain_room_test.c - what is free for a job and what is not, case by case, and against taking it piece by piece. */
#include "base/test.h"
#include "core/sched/explain.h"
#include "core/sched/sched_inside.h"
#include "core/sched/whatif_fixture.h"

enum { TOWNS = 3000, POOL_A = 1, POOL_B = 2 };

static uint32_t pool_node(struct town *t, uint32_t gpus, uint32_t cpu_milli, uint64_t pools)
{
    const struct bh_node_spec spec = {.domain = BH_NONE,
                                      .rank = t->n_nodes,
                                      .n_gpus = gpus,
                                      .n_numa = 1,
                                      .gpu_mib = 10000,
                                      .cpu_milli = cpu_milli,
                                      .mem_mib = 65536,
                                      .pools = pools};
    town_tell(t, (struct bh_sched_event){.kind = BH_SCHED_NODE, .id = t->n_nodes, .node = &spec});
    return t->n_nodes++;
}

static void open_two(struct town *t)
{
    town_open(t, 1);
    (void)pool_node(t, 4, 64000, POOL_A);
    (void)pool_node(t, 4, 64000, POOL_B);
    (void)town_queue(t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
    (void)town_queue(t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
}

static struct bh_verdict why(struct town *t, struct bh_gang_spec spec)
{
    struct bh_verdict v;
    const uint64_t job = town_submit(t, spec);
    town_run(t);
    if (!bh_explain(t->s, NULL, job, t->now_ms, &v))
        v.tier = BH_WAITS;
    return v;
}

static struct bh_gang_spec firm(uint32_t queue, uint8_t gpus, uint32_t cpu_milli, uint64_t pools)
{
    struct bh_gang_spec spec = town_job(queue, 1, gpus);
    spec.firm = true;
    spec.roles[0].request.cpu_milli = cpu_milli;
    spec.roles[0].request.pools = pools;
    return spec;
}

/* GPUs of another pool are not free for it, however many there are. */
TEST(another_pool)
{
    struct town t;
    open_two(&t);
    (void)town_submit(&t, firm(1, 4, 1000, POOL_A));
    const struct bh_verdict v = why(&t, firm(1, 1, 1000, POOL_A));
    CHECK_EQ(v.tier, BH_WAIT_ROOM);
    CHECK_EQ(v.free, 0);
    CHECK_EQ(v.withheld, 0);
    CHECK_EQ(v.need, 1000);
    CHECK_EQ(v.n_holders, 1);
    town_close(&t);
}

TEST(beside_another_tenant)
{
    struct town t;
    open_two(&t);
    struct bh_gang_spec red = firm(1, 1, 1000, 0), blue = firm(2, 3, 1000, 0);
    red.roles[0].request.trust = 1;
    blue.roles[0].request.trust = 2;
    blue.roles[0].request.apart = BH_APART_NODE;
    red.roles[0].request.pools = POOL_A;
    const uint64_t holder = town_submit(&t, red);
    red.roles[0].request.pools = POOL_B;
    (void)town_submit(&t, red);
    town_run(&t);
    const struct bh_verdict v = why(&t, blue);
    CHECK_EQ(v.tier, BH_WAIT_WITHHELD);
    CHECK_EQ(v.hinder, BH_HINDER_TRUST);
    CHECK_EQ(v.free, 0);
    CHECK_EQ(v.withheld, 6000);
    CHECK_EQ(v.hinder_node, 0);
    CHECK_EQ(v.n_holders, 1);
    CHECK_EQ(v.holders[0].job, holder);
    town_close(&t);
}

TEST(no_processors_and_no_memory)
{
    struct town t;
    town_open(&t, 1);
    (void)pool_node(&t, 4, 64000, 0);
    (void)town_queue(&t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
    const uint64_t holder = town_submit(&t, firm(1, 1, 60000, 0));
    town_run(&t);
    struct bh_verdict v = why(&t, firm(1, 1, 5000, 0));
    CHECK_EQ(v.tier, BH_WAIT_WITHHELD);
    CHECK_EQ(v.hinder, BH_HINDER_CPU);
    CHECK_EQ(v.hinder_need, 5000);
    CHECK_EQ(v.hinder_free, 4000);
    CHECK_EQ(v.withheld, 3000);
    CHECK_EQ(v.n_holders, 1);
    CHECK_EQ(v.holders[0].job, holder);
    CHECK_EQ(v.holders[0].part, 60000);
    struct bh_gang_spec large = firm(1, 1, 0, 0);
    large.roles[0].request.mem_mib = 65000;
    v = why(&t, large);
    CHECK_EQ(v.tier, BH_WAIT_WITHHELD);
    CHECK_EQ(v.hinder, BH_HINDER_MEMORY);
    CHECK_EQ(v.hinder_need, 65000);
    CHECK_EQ(v.hinder_free, 64512);
    /* Without GPUs it is the same question. */
    struct bh_gang_spec plain = firm(1, 0, 5000, 0);
    plain.roles[0].request.form = BH_FORM_CPU;
    plain.roles[0].request.gpu_milli = 0;
    v = why(&t, plain);
    CHECK_EQ(v.tier, BH_WAIT_WITHHELD);
    CHECK_EQ(v.hinder, BH_HINDER_CPU);
    CHECK_EQ(v.need, 0);
    town_close(&t);
}

/* 0.6 of a GPU, and each has 0.5: no number says that there is enough in one place. */
TEST(shares)
{
    struct town t;
    town_open(&t, 1);
    (void)pool_node(&t, 2, 64000, 0);
    (void)town_queue(&t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
    struct bh_gang_spec half = firm(1, 1, 0, 0);
    half.roles[0].request.form = BH_FORM_SHARE;
    half.roles[0].request.gpu_milli = 500;
    half.roles[0].min = half.roles[0].max = 2;
    half.roles[0].request.avoid = 1;
    half.roles[0].request.kinds = 1; /* not on one GPU */
    (void)town_submit(&t, half);
    town_run(&t);
    struct bh_gang_spec more = firm(1, 1, 0, 0);
    more.roles[0].request.form = BH_FORM_SHARE;
    more.roles[0].request.gpu_milli = 600;
    struct bh_verdict v = why(&t, more);
    CHECK_EQ(v.tier, BH_WAIT_SHAPE);
    CHECK_EQ(v.free, 1000);
    CHECK_EQ(v.group, 500);
    CHECK_EQ(v.level, BH_LEVEL_GPU);
    more.roles[0].request.gpu_milli = 500;
    more.roles[0].request.kinds = 1;
    v = why(&t, more);
    CHECK_EQ(v.tier, BH_WAIT_WITHHELD);
    CHECK_EQ(v.hinder, BH_HINDER_KINDS);
    CHECK_EQ(v.withheld, 1000);
    more.roles[0].request.kinds = 0;
    more.roles[0].request.gpu_mib = 20000;
    v = why(&t, more);
    CHECK_EQ(v.tier, BH_WAIT_EXCEEDS);
    town_close(&t);
}

/* Six in one NVLink domain, in threes: two and four are six, and one three. */
TEST(whole_members_count)
{
    struct town t;
    town_open(&t, 1);
    const uint32_t link = town_domain(&t, BH_LEVEL_LINK, BH_NONE);
    (void)town_node(&t, link, 4, 0);
    (void)town_node(&t, link, 4, 0);
    (void)town_queue(&t, BH_QUEUE_ROOT, 8, BH_AMOUNT_ANY);
    (void)town_submit(&t, firm(1, 2, 0, 0));
    town_run(&t);
    struct bh_gang_spec six = town_job(1, 2, 3);
    six.within = BH_LEVEL_LINK;
    const struct bh_verdict v = why(&t, six);
    CHECK_EQ(v.tier, BH_WAIT_SHAPE);
    CHECK_EQ(v.free, 6000);
    CHECK_EQ(v.group, 3000);
    CHECK_EQ(v.level, BH_LEVEL_LINK);
    town_close(&t);
}

/* How many of a class can be taken one after the other, on one node. */
static uint32_t takes(struct bh_sched *s, uint32_t class_, uint32_t node)
{
    const struct bh_mark mark = bh_shelf_mark(&s->shelf);
    const struct bh_request *r = &s->requests.at.at[class_];
    uint32_t n = 0, hold;
    for (;; n++) {
        if (!bh_shelf_usable(&s->shelf, r, node))
            break;
        const struct bh_spot spot = bh_score_spot(s->score, r, node);
        if (bh_shelf_take(&s->shelf, class_, &spot, &hold, NULL) < 0)
            break;
    }
    bh_shelf_rollback(&s->shelf, mark);
    return n;
}

/* Requests of one GPU, whole or a half: what is said to be free is what can be taken. */
TEST(free_is_what_can_be_taken)
{
    uint32_t hindered = 0;
    for (uint64_t seed = 0; seed < TOWNS; seed++) {
        static uint8_t bytes[TOWN_BYTES];
        struct town t;
        bh_choice_fill(bytes, sizeof(bytes), 700000 + seed);
        town_random(&t, bytes, sizeof(bytes), 5, 10);
        struct bh_gang_spec one = town_draw_job(&t, t.n_queues - 1);
        one.roles[0].request.n_gpus = 1;
        one.roles[0].request.mem_mib = 0;
        one.within = one.prefer = BH_LEVEL_ANY;
        one.roles[0].min = one.roles[0].max = 64;
        if (one.roles[0].request.form == BH_FORM_SHARE)
            one.roles[0].request.gpu_milli = 500;
        const uint64_t job = town_submit(&t, one);
        bh_sched_settle(t.s);
        struct bh_verdict v = {0};
        const struct bh_shape *shape = bh_sched_shape(t.s, bh_sched_job(t.s, job));
        const uint64_t each = shape->roles[0].one.at[BH_RES_GPU];
        uint64_t taken = 0, idle = 0;
        bh_explain_room(t.s, bh_sched_job(t.s, job), &v);
        for (uint32_t i = 0; i < t.s->shelf.nodes.n; i++) {
            taken += each * takes(t.s, shape->roles[0].class_, i);
            for (uint32_t k = 0; k < t.s->shelf.nodes.at[i].n_gpus; k++)
                idle += t.s->shelf.nodes.at[i].open[k];
        }
        if (each == BH_GPU_MILLI)
            CHECK_EQ(v.free, taken);
        else /* 300 and 300 leave 400, of which no half can be made */
            CHECK(v.free >= taken);
        CHECK(v.free + v.withheld <= idle);
        CHECK(v.group <= v.free);
        CHECK_EQ(v.hinder == BH_HINDER_NOT, v.hinder_node == BH_NONE);
        hindered += v.hinder != BH_HINDER_NOT;
        town_close(&t);
    }
    CHECK(hindered > TOWNS / 20);
}

TEST_MAIN
