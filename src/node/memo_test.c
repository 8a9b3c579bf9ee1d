/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever was asked before, the answer is core/admit's own. */
#include "node/memo.h"

#include "base/str.h"
#include "core/admit/admit_fixture.h"

enum { ROUNDS = 4000 };

static struct bh_admit_ask an_ask(struct bh_choice *c)
{
    static const char *const tenants[] = {"research", "ops", "nobody"}, *const pools[] = {NULL,  "whole",
                                                                                          "cut", "shares",
                                                                                          "mps", "none"},
                             *const names[] = {NULL, "a", "", "1:a"};
    return (struct bh_admit_ask){.id = 1 + bh_choose(c, 100000),
                                 .name = names[bh_choose(c, BH_COUNT_OF(names))],
                                 .tenant = tenants[bh_choose(c, BH_COUNT_OF(tenants))],
                                 .pool = pools[bh_choose(c, BH_COUNT_OF(pools))],
                                 .user = bh_choose(c, 5),
                                 .gpus = bh_choose(c, 3),
                                 .share_milli = bh_choose(c, 4) * 100,
                                 .memory_bytes = bh_choose(c, 3) * BH_GIB,
                                 .profile = bh_choose(c, 4) ? NULL : "1g.10gb",
                                 .has_tier = bh_choose(c, 2),
                                 .tier = (uint8_t)bh_choose(c, 2),
                                 .has_priority = bh_choose(c, 2),
                                 .priority = (uint8_t)bh_choose(c, BH_N_priority),
                                 .can = bh_choose(c, 2) ? BH_CAN_REQUEUE : 0,
                                 .submit_ms = bh_choose(c, 1000),
                                 .duration_ms = bh_choose(c, 3) * 1000,
                                 .deadline_ms = bh_choose(c, 2) ? 0 : 5000,
                                 .runs = bh_choose(c, 2)};
}

static bool same(const struct bh_admit_grant *a, const struct bh_admit_grant *b)
{
    const struct bh_gang_spec *x = &a->job, *y = &b->job;
    return x->id == y->id && x->queue == y->queue && x->user == y->user && x->band == y->band &&
           x->can == y->can && x->firm == y->firm && x->submit_ms == y->submit_ms &&
           x->deadline_ms == y->deadline_ms && x->runtime_ms == y->runtime_ms &&
           x->roles[0].min == y->roles[0].min &&
           x->roles[0].request.gpu_milli == y->roles[0].request.gpu_milli &&
           x->roles[0].request.form == y->roles[0].request.form &&
           x->roles[0].request.pools == y->roles[0].request.pools && a->tenant == b->tenant &&
           a->pool == b->pool && a->mechanism == b->mechanism && a->tier == b->tier && a->view == b->view &&
           a->cap_bytes == b->cap_bytes && a->weight == b->weight && a->cap_permille == b->cap_permille &&
           a->floor_permille == b->floor_permille && a->latency == b->latency;
}

TEST(an_answer_that_was_kept_is_the_answer)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    struct bh_memo m = {.of = a};
    static uint8_t bytes[ROUNDS * 32];
    struct bh_choice c = {bytes, sizeof(bytes)};
    uint32_t allowed = 0, wrong = 0;
    bh_choice_fill(bytes, sizeof(bytes), 7);
    for (int i = 0; i < ROUNDS; i++) {
        const struct bh_admit_ask ask = an_ask(&c);
        struct bh_admit_grant kept, fresh;
        struct bh_admit_refusal why, why_fresh;
        const bool yes = bh_memo_judge(&m, &ask, &kept, &why),
                   truth = bh_admit_job(a, &ask, &fresh, &why_fresh);
        wrong += yes != truth || (yes && !same(&kept, &fresh)) ||
                 (!yes && (why.code != why_fresh.code || !bh_str_eq(why.what, why_fresh.what)));
        allowed += yes;
    }
    CHECK_EQ(wrong, 0);
    CHECK(allowed > ROUNDS / 10);
    CHECK(m.judged < ROUNDS); /* some were kept */
    CHECK(m.grants.n <= BH_MEMO_MOST);
    bh_memo_fini(&m);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(the_same_is_judged_once)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    struct bh_memo m = {.of = a};
    struct bh_admit_grant g;
    struct bh_admit_refusal why;
    for (uint64_t i = 1; i <= 100; i++) {
        const struct bh_admit_ask ask = {
            .id = i, .tenant = "research", .pool = "shares", .share_milli = 100, .submit_ms = i};
        CHECK(bh_memo_judge(&m, &ask, &g, &why));
        CHECK(g.job.id == i && g.job.submit_ms == i);
    }
    CHECK_EQ(m.judged, 1);
    /* Lists are not part of what is compared, so they are judged. */
    const char *const mounts[] = {"/data", NULL};
    const struct bh_admit_ask more = {
        .id = 1, .tenant = "research", .pool = "shares", .share_milli = 100, .mounts = mounts};
    (void)bh_memo_judge(&m, &more, &g, &why);
    CHECK_EQ(m.judged, 2);
    bh_memo_fini(&m);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST_MAIN
