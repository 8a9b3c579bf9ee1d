/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: two files that must agree. */
#include "conf/slurm_fixture.h"

TEST(counts_must_agree)
{
    load((const char *const[]){"GresTypes=gpu\n"
                               "NodeName=n[1-3] Gres=gpu:8\n"
                               "NodeName=m1 Gres=gpu:h100:2\n"
                               "NodeName=x1 Gres=gpu:1\n",
                               "NodeName=n[1-2] Name=gpu File=/dev/nvidia[0-7]\n"
                               "NodeName=n3 Name=gpu File=/dev/nvidia[0-1,4-5]\n"
                               "NodeName=m1 Name=gpu Type=h100 File=/dev/nvidia0,/dev/nvidia1\n"
                               "NodeName=m1 Name=gpu Type=t4 File=/dev/nvidia2\n"},
         2);
    const struct bh_diag *d = diag_with("`n3`");
    CHECK(d && !d->is_error);
    CHECK_STR(d->message,
              "node `n3` has 8 of gpu here (line 2) but 4 by gres.conf (line 2); it will be INVAL");
    CHECK(is_at(d->pos, 0, 2, 17));
    d = diag_with("`x1`");
    CHECK(d);
    CHECK_STR(d->message, "no line of gres.conf gives node `x1` the device files of its gpu");
    CHECK_EQ(diags.at.n, 3); /* and that cgroup.conf is missing */
    /* a line without NodeName holds everywhere */
    load(
        (const char *const[]){"GresTypes=gpu\nNodeName=a,b Gres=gpu:2\n", "Name=gpu File=/dev/nvidia[0-1]\n"},
        2);
    CHECK_EQ(diags.at.n, 1);
    /* what the node finds itself is not compared */
    load((const char *const[]){"GresTypes=gpu\nNodeName=a Gres=gpu:2\n", "AutoDetect=nvml\nName=gpu\n"}, 2);
    CHECK_EQ(diags.at.n, 1);
    load(
        (const char *const[]){"GresTypes=gpu\nNodeName=a Gres=gpu:2\n", "AutoDetect=off\nName=gpu Count=2\n"},
        2);
    CHECK(diag_with("a GPU without File"));
    load((const char *const[]){"GresTypes=gpu\nNodeName=a Gres=gpu:2\n", "NodeName=a AutoDetect=nvml\n"}, 2);
    CHECK_EQ(diags.at.n, 1);
}

TEST(mig_slices)
{
    load(
        (const char *const[]){
            "GresTypes=gpu\nNodeName=g1 Gres=gpu:a100_3g.20gb:1,gpu:1g.5gb:1\n",
            "Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\n"
            "Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31\n"
            "Name=gpu Type=odd MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap40\n"},
        2);
    CHECK_EQ(policy.pools.n, 3);
    const struct bh_pool *p = pool("gpu:a100_3g.20gb");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MIG);
    CHECK_EQ(p->profiles.n, 1);
    CHECK_STR(p->profiles.at[0].s, "3g.20gb");
    CHECK_STR(p->match.model.s, "a100");
    p = pool("gpu:1g.5gb");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MIG);
    CHECK(!p->match.model.s);
    CHECK_EQ(pool("gpu:odd")->mechanism, BH_MECH_MIG);
    CHECK_EQ(diags.at.n, 1);
}

TEST(hostile_numbers)
{
    read1(
        "Name=gpu File=/dev/nvidia[0-99999999]\nName=gpu File=/dev/nvidia[3-1]\nName=gpu File=/dev/nvidia[\n"
        "Name=gpu File=/dev/n[0-1023]x[0-1023]y[0-1023]\nName=gpu Count=99999999999999999999\nName=gpu Count=-1\n"
        "Name=gpu Count=4096G\nName=gpu Count=\nName=gpu File=\n");
    CHECK_EQ(diags.n_errors, 9);
    read1("GresTypes=gpu\nNodeName=n[1-99999999] Gres=gpu:4,,:,gpu:,gpu::::,(,),gpu:x:99999999999999999999\n"
          "Name=gpu File=/dev/nvidia0\nName=gpu NodeName=[ File=/dev/nvidia0\n");
    CHECK_EQ(diags.n_errors, 0);
    CHECK(diag_with("`n[1-99999999]` are not followed"));
}

TEST_MAIN
