/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

struct heard {
    uint32_t n[BH_SCHED_EVENTS];
    uint64_t queues; /* bits */
    uint32_t stop_at;
};

static int hear(void *context, const struct bh_sched_event *e, struct bh_err *err)
{
    struct heard *h = context;
    h->n[e->kind]++;
    if (e->kind == BH_SCHED_QUEUE)
        h->queues |= UINT64_C(1) << e->id;
    return h->stop_at && !--h->stop_at ? bh_fail(err, BH_BUSY, "stop") : 0;
}

TEST(the_scheduler_takes_all_of_it)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    struct bh_sched *s = lab_sched(a);
    CHECK(s);
    CHECK_EQ(bh_sched_shelf(s)->nodes.n, 4);
    CHECK_EQ(bh_sched_queues(s)->at.n, 3);
    CHECK_EQ(bh_sched_queues(s)->total.at[BH_RES_GPU], 8000);
    bh_sched_free(s);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(a_change_of_quota_is_one_event)
{
    struct fixture f, g;
    lab(&f);
    lab(&g);
    g.policy.tenants.at[1].quota.gpus_milli = 1000;
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&g, a);
    struct heard h = {.stop_at = 0};
    CHECK(a && b);
    CHECK_EQ(bh_admit_fleet(b, a, 5, hear, &h, NULL), 0);
    CHECK_EQ(h.n[BH_SCHED_NODE] + h.n[BH_SCHED_MODEL] + h.n[BH_SCHED_DOMAIN], 0);
    CHECK_EQ(h.queues, UINT64_C(1) << bh_admit_queue(b, 1));
    struct bh_sched *s = lab_sched(a);
    CHECK(s);
    CHECK_EQ(bh_admit_fleet(b, a, 5, to_sched, s, NULL), 0);
    bh_sched_settle(s);
    CHECK_EQ(bh_queue_get(bh_sched_queues(s), bh_admit_queue(b, 1))->config.guarantee.at[BH_RES_GPU], 1000);
    bh_sched_free(s);
    bh_admit_free(b);
    bh_admit_free(a);
    fixture_fini(&f);
    fixture_fini(&g);
}

TEST(another_division_of_the_gpus_is_no_event)
{
    struct fixture f, g;
    lab(&f);
    lab(&g);
    g.policy.pools.at[0].match.gpus.n = 1;
    struct bh_admit *a = lab_admit(&f, NULL), *b = lab_admit(&g, a);
    struct heard h = {.stop_at = 0};
    struct bh_err err = {0};
    CHECK(a && b);
    CHECK_EQ(bh_admit_fleet(b, a, 5, hear, &h, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "made anew"));
    CHECK_EQ(h.queues, 0);
    bh_admit_free(b);
    bh_admit_free(a);
    fixture_fini(&f);
    fixture_fini(&g);
}

TEST(who_listens_may_stop_it)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    for (uint32_t i = 1; i <= 8; i++) {
        struct heard h = {.stop_at = i};
        uint32_t all = 0;
        CHECK_EQ(bh_admit_fleet(a, NULL, 0, hear, &h, NULL), BH_BUSY);
        for (int k = 0; k < BH_SCHED_EVENTS; k++)
            all += h.n[k];
        CHECK_EQ(all, i);
    }
    bh_admit_free(a);
    bh_admit_free(NULL);
    fixture_fini(&f);
}

TEST(machines_whose_processors_are_known_share_them_among_their_parts)
{
    struct fixture f;
    lab(&f);
    const struct bh_admit_host host = {.cpu_milli = 64000, .mem_mib = 1024000, .gpu_mib = 81000};
    const struct bh_admit_config config = {.today = TODAY, .hosts = &host};
    struct bh_admit *a = NULL;
    (void)fixture_link(&f);
    CHECK_EQ(bh_admit_new(&f.policy, &f.fleet, &config, NULL, &a, NULL), 0);
    CHECK(a->counts_hosts);
    CHECK_EQ(a->parts.at[3].cpu_milli, 16000);
    CHECK_EQ(a->parts.at[3].mem_mib, 256000);
    CHECK_EQ(a->parts.at[3].gpu_mib, 81000);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST_MAIN
