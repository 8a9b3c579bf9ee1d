/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/gavel.h"

#include "base/test.h"
#include "replay/table.h"

static int read(struct bh_jobs *j, const char *text, struct bh_err *err)
{
    struct bh_table t;
    *j = (struct bh_jobs){0};
    bh_table_open(&t, "g.trace", text, strlen(text), '\t');
    return bh_gavel_read(j, &t, "vc", 2, err);
}

TEST(steps_become_seconds)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_err err;
    /* whole seconds when the trace was made: 1201 and 1202 of them, and 20 minutes */
    CHECK_EQ(read(&j,
                  "LM (batch size 5)\tcd x && y\t--steps\t1\t200714\t0.000000\t1\n"
                  "LM (batch size 5)\tcd x && y\t--steps\t1\t200881\t6.000000\t8\n"
                  "Recommendation (batch size 1024)\tc\t-n\t1\t578\t219316.500000\t32\n"
                  "A3C\tc\t-n\t1\t1\t7\t0\n",
                  &err),
             BH_OK);
    CHECK_EQ(j.at.n, 3);
    CHECK_EQ(j.n_without_gpu, 1);
    CHECK_EQ(j.at.at[0].duration_s, 1201);
    CHECK_EQ(j.at.at[1].duration_s, 1202);
    CHECK_EQ(j.at.at[1].gpus, 8);
    CHECK_EQ(j.at.at[1].submit_s, 6);
    CHECK_EQ(j.at.at[2].duration_s, 1200);
    CHECK_EQ(j.at.at[2].submit_s, 219316);
    CHECK(j.at.at[2].deadline_s == BH_JOB_NO_DEADLINE);
    CHECK_STR(j.tenants.at[0], "vc");
}

TEST(written_and_read_again)
{
    struct bh_jobs a BH_AUTO(bh_jobs_fini), b BH_AUTO(bh_jobs_fini);
    struct bh_buf text BH_AUTO(bh_buf_fini);
    struct bh_err err;
    a = b = (struct bh_jobs){0};
    bh_buf_init(&text, 1 << 16);
    (void)bh_jobs_tenant(&a, "vc", 2);
    for (uint32_t i = 0; i < 50; i++)
        *bh_vec_push(&a.at) = (struct bh_job){.gpus = 1 + i,
                                              .submit_s = i * 11,
                                              .duration_s = 1 + i * i * 977,
                                              .deadline_s = BH_JOB_NO_DEADLINE};
    bh_gavel_write(&a, 0, &text);
    CHECK_EQ(read(&b, bh_buf_text(&text), &err), BH_OK);
    CHECK_EQ(b.at.n, 50);
    for (size_t i = 0; i < a.at.n; i++)
        CHECK(memcmp(&a.at.at[i], &b.at.at[i], sizeof(a.at.at[i])) == 0);
}

TEST(mistakes)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"A3C\tc\t-n\t1\t5\t7\n", "g.trace:1:15: needs 7 cells between tabs, has 6"},
        {"A3C\tc\t-n\t1\t5\tsoon\t1\n",
         "g.trace:1:14: arrival needs seconds such as 251674.000000, below 17179869184, is 'soon'"},
        {"\nLM (batch size 6)\tc\t-n\t1\t5\t7\t1\n",
         "g.trace:2:1: job type needs one whose rate is known (LM (batch size 5)), is 'LM (batch size 6)'"},
        {"A3C\tc\t-n\t1\t0\t7\t1\n", "g.trace:1:12: steps needs a whole number from 1 to 5000000000, is '0'"},
        {"A3C\tc\t-n\t1\t5\t7\tmany\n", "g.trace:1:16: GPUs needs a whole number from 0 to 65536, is 'many'"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_jobs j BH_AUTO(bh_jobs_fini);
        struct bh_err err;
        CHECK_EQ(read(&j, cases[i].text, &err), BH_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
}

TEST_MAIN
