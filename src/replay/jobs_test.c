/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/jobs.h"

#include "base/test.h"

#define CHRONUS "user,num_gpu,submit_time,duration,expect_time_list,best_effort\n"
#define GAVEL   "A3C\tc\t-n\t1\t9880\t%d.000000\t1\n"

TEST(formats_are_told_apart)
{
    CHECK_EQ(bh_jobs_detect(CHRONUS, strlen(CHRONUS)), BH_JOBS_CHRONUS);
    CHECK_EQ(bh_jobs_detect(GAVEL, strlen(GAVEL)), BH_JOBS_GAVEL);
    CHECK_EQ(bh_jobs_detect("", 0), BH_JOBS_CHRONUS);
    CHECK_EQ(bh_jobs_detect("a,b\nc\td\n", 8), BH_JOBS_CHRONUS);
    CHECK_STR(bh_jobs_format_names[BH_JOBS_GAVEL], "gavel");
}

TEST(files_add_up_and_a_files_name_is_its_tenant)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_err err;
    char text[64];
    j = (struct bh_jobs){0};
    (void)snprintf(text, sizeof(text), GAVEL, 50);
    CHECK_EQ(bh_jobs_read(&j, BH_JOBS_GAVEL, "some.folder/0e4a51.trace", text, strlen(text), &err), BH_OK);
    (void)snprintf(text, sizeof(text), GAVEL, 20);
    CHECK_EQ(bh_jobs_read(&j, BH_JOBS_GAVEL, "plain", text, strlen(text), &err), BH_OK);
    CHECK_EQ(j.at.n, 2);
    CHECK_STR(j.tenants.at[0], "0e4a51");
    CHECK_STR(j.tenants.at[1], "plain");
    bh_jobs_order(&j);
    CHECK_EQ(j.at.at[0].submit_s, 20);
    CHECK_EQ(j.at.at[0].tenant, 1);
}

TEST(order_keeps_what_came_first_first)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    j = (struct bh_jobs){0};
    for (uint32_t i = 0; i < 1000; i++)
        *bh_vec_push(&j.at) = (struct bh_job){.gpus = i + 1, .submit_s = i * 7919 % 13};
    bh_jobs_order(&j);
    for (size_t i = 1; i < j.at.n; i++) {
        const struct bh_job *a = &j.at.at[i - 1], *b = &j.at.at[i];
        CHECK(a->submit_s < b->submit_s || (a->submit_s == b->submit_s && a->gpus < b->gpus));
    }
}

TEST(tenants_are_bounded)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_buf text BH_AUTO(bh_buf_fini);
    struct bh_err err;
    j = (struct bh_jobs){0};
    bh_buf_init(&text, 1 << 16);
    bh_buf_str(&text, CHRONUS);
    for (int i = 0; i <= BH_JOB_TENANTS; i++)
        bh_buf_printf(&text, "u%d,1,1,1,1,0\n", i);
    CHECK_EQ(bh_jobs_read(&j, BH_JOBS_CHRONUS, "c", bh_buf_text(&text), text.n, &err), BH_INVALID);
    CHECK_STR(err.msg, "c:258:1: needs at most 256 users, 'u256' is one more");
    CHECK_EQ(bh_jobs_read(&j, BH_JOBS_GAVEL, "g.trace", "", 0, &err), BH_INVALID);
    CHECK_STR(err.msg, "g.trace:1:1: needs at most 256 files, one for each tenant");
}

TEST_MAIN
