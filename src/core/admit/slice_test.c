/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

static struct bh_admit_slice slices[BH_NODE_GPUS];

static size_t place(const struct bh_admit *a, struct bh_sched *s, struct bh_admit_ask ask)
{
    struct bh_admit_grant g;
    struct bh_admit_refusal why;
    size_t n;
    ask.tenant = "research";
    ask.gang = true;
    if (!bh_admit_job(a, &ask, &g, &why) || lab_submit(s, &g) < 0)
        return 0;
    const struct bh_decision *d = bh_sched_decide(s, 2, 0, &n);
    if (n != 1 || d->kind != BH_DECIDE_START)
        return 0;
    return bh_admit_slices(a, &g.job.roles[0].request, &bh_sched_places(s, d)[0].spot, slices);
}

TEST(places_become_slices_of_the_pools_gpus)
{
    struct fixture f;
    struct bh_slice_text t;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    struct bh_sched *s = lab_sched(a);
    CHECK(s);
    CHECK_EQ(place(a, s, (struct bh_admit_ask){.id = 1, .pool = "whole", .gpus = 2}), 2);
    CHECK_EQ(slices[0].gpu.gpu, 0);
    CHECK_EQ(slices[1].gpu.gpu, 1);
    CHECK_EQ(slices[1].milli, 1000);
    CHECK_STR(bh_admit_slice_key(&slices[1], &t), "whole");
    CHECK_EQ(place(a, s, (struct bh_admit_ask){.id = 2, .pool = "cut", .profile = "3g.40gb"}), 1);
    CHECK(slices[0].gpu.gpu == 2 || slices[0].gpu.gpu == 3);
    CHECK_STR(slices[0].profile->name, "3g.40gb");
    CHECK_EQ(slices[0].milli, 3000 / 7);
    CHECK_EQ(slices[0].mib, slices[0].profile->memory_mib);
    CHECK(strstr(bh_admit_slice_key(&slices[0], &t), "mig:3g.40gb@") == t.s);
    CHECK_EQ(place(a, s, (struct bh_admit_ask){.id = 3, .pool = "shares", .memory_bytes = BH_GIB}), 1);
    CHECK(slices[0].gpu.gpu == 4 || slices[0].gpu.gpu == 5);
    CHECK_EQ(slices[0].milli, 250);
    CHECK_EQ(slices[0].mib, 1024);
    CHECK_STR(bh_admit_slice_key(&slices[0], &t), "share");
    bh_sched_free(s);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST(work_without_a_gpu_has_no_slice)
{
    struct fixture f;
    lab(&f);
    struct bh_admit *a = lab_admit(&f, NULL);
    CHECK(a);
    CHECK_EQ(
        bh_admit_slices(a, &(struct bh_request){.form = BH_FORM_CPU}, &(struct bh_spot){.gpus = 0}, slices),
        0);
    bh_admit_free(a);
    fixture_fini(&f);
}

TEST_MAIN
