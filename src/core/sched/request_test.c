/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/request.h"

#include "base/test.h"

static const struct bh_request good[] = {
    {.form = BH_FORM_CPU, .cpu_milli = 4000},
    {.form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000, .cpu_milli = 4000},
    {.form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000, .cpu_milli = 4000, .models = 2},
    {.form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000, .cpu_milli = 4000, .trust = 2},
    {.form = BH_FORM_WHOLE, .n_gpus = 8, .gpu_milli = 1000, .cpu_milli = 4000, .apart = BH_APART_LINK},
    {.form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 500, .gpu_mib = 1024},
    {.form = BH_FORM_SHARE, .n_gpus = 2, .gpu_milli = 500, .gpu_mib = 1024},
    {.form = BH_FORM_SHARE, .n_gpus = 2, .gpu_milli = 500, .gpu_mib = 1024, .mechanism = 1},
    {.form = BH_FORM_MIG, .n_gpus = 1, .models = 4, .mig_profile = 3},
};

TEST(equal_requests_are_one_class)
{
    struct bh_requests t = {0};
    uint32_t first[BH_COUNT_OF(good)], again;
    for (size_t i = 0; i < BH_COUNT_OF(good); i++) {
        CHECK_EQ(bh_request_intern(&t, &good[i], &first[i], NULL), 0);
        CHECK_EQ(first[i], i);
    }
    for (size_t i = 0; i < BH_COUNT_OF(good); i++) {
        struct bh_request copy;
        memset(&copy, 0xff, sizeof(copy)); /* what lies between the fields does not count */
        copy = good[i];
        CHECK_EQ(bh_request_intern(&t, &copy, &again, NULL), 0);
        CHECK_EQ(again, first[i]);
    }
    CHECK_EQ(t.at.n, BH_COUNT_OF(good));
    bh_requests_fini(&t);
    CHECK_EQ(t.at.n, 0);
}

TEST(what_says_nothing_makes_no_class)
{
    struct bh_requests t = {0};
    const struct bh_request plain = {.form = BH_FORM_CPU, .cpu_milli = 1};
    const struct bh_request fancy = {
        .form = BH_FORM_CPU, .cpu_milli = 1, .models = 6, .mechanism = 2, .kinds = 1};
    uint32_t a, b;
    CHECK_EQ(bh_request_intern(&t, &plain, &a, NULL), 0);
    CHECK_EQ(bh_request_intern(&t, &fancy, &b, NULL), 0);
    CHECK_EQ(a, b);
    bh_requests_fini(&t);
}

TEST(many_classes)
{
    struct bh_requests t = {0};
    struct bh_request r = {.form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 1};
    uint32_t id;
    struct bh_err err;
    for (uint32_t i = 0; i < BH_CLASSES_MAX; i++) {
        r.cpu_milli = i;
        CHECK_EQ(bh_request_intern(&t, &r, &id, NULL), 0);
        CHECK_EQ(id, i);
    }
    r.cpu_milli = BH_CLASSES_MAX;
    CHECK_EQ(bh_request_intern(&t, &r, &id, &err), BH_TOO_LARGE);
    r.cpu_milli = 77;
    CHECK_EQ(bh_request_intern(&t, &r, &id, &err), 0);
    CHECK_EQ(id, 77);
    bh_requests_fini(&t);
}

TEST(contradictions_are_refused)
{
    static const struct bh_request bad[] = {
        {.form = BH_FORMS},
        {.form = BH_FORM_CPU, .n_gpus = 1},
        {.form = BH_FORM_CPU, .gpu_milli = 5},
        {.form = BH_FORM_CPU, .apart = BH_APARTS},
        {.form = BH_FORM_CPU, .trust = UINT32_MAX},
        {.form = BH_FORM_WHOLE, .n_gpus = 0, .gpu_milli = 1000},
        {.form = BH_FORM_WHOLE, .n_gpus = 17, .gpu_milli = 1000},
        {.form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = 999},
        {.form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = 1000, .gpu_mib = 1},
        {.form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = 1000, .mig_profile = 1},
        {.form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 1000},
        {.form = BH_FORM_SHARE, .n_gpus = 1, .gpu_milli = 0},
        {.form = BH_FORM_MIG, .n_gpus = 1},
        {.form = BH_FORM_MIG, .n_gpus = 1, .models = 3},
        {.form = BH_FORM_MIG, .n_gpus = 2, .models = 1},
    };
    struct bh_requests t = {0};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        struct bh_err err = {0};
        uint32_t id = 99;
        CHECK_EQ(bh_request_intern(&t, &bad[i], &id, &err), BH_INVALID);
        CHECK_EQ(id, 99);
        CHECK(err.msg[0]);
    }
    CHECK_EQ(t.at.n, 0);
    bh_requests_fini(&t);
}

TEST(bits_are_counted)
{
    CHECK_EQ(bh_bits(0), 0);
    CHECK_EQ(bh_bits(UINT32_MAX), 32);
    CHECK_EQ(bh_bits(0x80010001u), 3);
}

TEST(shares_are_charged_for_each_device)
{
    CHECK_EQ(bh_request_milli(&good[0]), 0);
    CHECK_EQ(bh_request_milli(&good[1]), 8000);
    CHECK_EQ(bh_request_milli(&good[6]), 1000);
    CHECK(bh_request_takes(&good[1], 5) && bh_request_takes(&good[2], 1) && !bh_request_takes(&good[2], 0));
}

TEST_MAIN
