/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/chronus.h"

#include "base/test.h"
#include "replay/table.h"

#define HEAD \
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n"

static int read(struct bh_jobs *j, const char *text, struct bh_err *err)
{
    struct bh_table t;
    *j = (struct bh_jobs){0};
    bh_table_open(&t, "c.csv", text, strlen(text), ',');
    return bh_chronus_read(j, &t, err);
}

TEST(minutes_become_seconds_and_deadlines_absolute)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    struct bh_err err;
    CHECK_EQ(read(&j,
                  HEAD "0,vc_a,4,100,5049,vgg16,10,14,25,10,0,strict\n"
                       "1,vc_b,1,7,296,x,3,8,7,10,1,best\n"
                       "2,vc_a,0,7,296,x,3,8,9,10,0,strict\n",
                  &err),
             BH_OK);
    CHECK_EQ(j.at.n, 2);
    CHECK_EQ(j.n_without_gpu, 1);
    CHECK_EQ(j.tenants.n, 2);
    CHECK_STR(j.tenants.at[j.at.at[0].tenant], "vc_a");
    CHECK_EQ(j.at.at[0].gpus, 4);
    CHECK_EQ(j.at.at[0].submit_s, 6000);
    CHECK_EQ(j.at.at[0].duration_s, 600);
    CHECK_EQ(j.at.at[0].deadline_s, 7500);
    CHECK(j.at.at[1].deadline_s == BH_JOB_NO_DEADLINE);
}

TEST(written_and_read_again)
{
    struct bh_jobs a BH_AUTO(bh_jobs_fini), b BH_AUTO(bh_jobs_fini);
    struct bh_buf text BH_AUTO(bh_buf_fini);
    struct bh_err err;
    b = (struct bh_jobs){0};
    bh_buf_init(&text, 1 << 16);
    CHECK_EQ(read(&a, HEAD "0,vc_a,4,100,1,m,10,14,25,10,0,s\n1,vc_b,1,7,2,m,3,8,7,10,1,b\n", &err), BH_OK);
    bh_chronus_write(&a, &text);
    CHECK_EQ(read(&b, bh_buf_text(&text), &err), BH_OK);
    CHECK_EQ(b.at.n, a.at.n);
    for (size_t i = 0; i < a.at.n; i++)
        CHECK(memcmp(&a.at.at[i], &b.at.at[i], sizeof(a.at.at[i])) == 0);
}

TEST(mistakes)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "c.csv:1:1: needs a row of names (user, num_gpu, ...), is empty"},
        {"user,num_gpu\n", "c.csv:1:1: needs a row of names with a column 'submit_time', begins with 'user'"},
        {HEAD "0,v,1,5,1,m,0,1,9,1,0,s\n",
         "c.csv:2:13: duration needs a whole number from 1 to 286331153, is '0'"},
        {HEAD "0,v,65537,5,1,m,4,1,9,1,0,s\n",
         "c.csv:2:5: num_gpu needs a whole number from 0 to 65536, is '65537'"},
        {HEAD "0,v,1,5,1,m,4,1,9,1,2,s\n",
         "c.csv:2:21: best_effort needs a whole number from 0 to 1, is '2'"},
        {HEAD "0,,1,5,1,m,4,1,9,1,0,s\n", "c.csv:2:3: user needs 1 to 256 printable characters, is ''"},
        {HEAD "0,v,1,5,1,m,4\n", "c.csv:2:14: needs a cell for expect_time_list, the row ends here"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_jobs j BH_AUTO(bh_jobs_fini);
        struct bh_err err;
        CHECK_EQ(read(&j, cases[i].text, &err), BH_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
}

TEST_MAIN
