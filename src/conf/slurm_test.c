/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Key=Value. */
#include "conf/slurm_fixture.h"

#include "base/buf.h"
#include "base/choice.h"

TEST(lines)
{
    read1("  grestypes = gpu # not,mps\r\n"
          "NodeName=a \\\n"
          "  Gres=\"gpu:2\" \\  \n"
          "  Feature=\"big box\"\n"
          "TaskProlog=/bin/x\\#y\n"
          "Prolog+=/a\n"
          "NodeName=b Gres=gpu:1");
    CHECK_EQ(diags.at.n, 1); /* that cgroup.conf is missing */
    CHECK_EQ(policy.pools.n, 1);
    CHECK(is_at(policy.pools.at[0].pos, 0, 3, 3));
    CHECK(is_at(policy.tenants.at[0].pos, 0, 1, 3));
    read1("GresTypes=gpu\nnonsense\n=5\nA=\"open\nNodeName=a Gres=gpu:1 trailing\n");
    CHECK_EQ(diags.n_errors, 4);
    CHECK(is_at(diags.at.at[0].pos, 0, 2, 1));
    CHECK(is_at(diags.at.at[1].pos, 0, 3, 1));
    CHECK(is_at(diags.at.at[2].pos, 0, 4, 8));
    CHECK(is_at(diags.at.at[3].pos, 0, 5, 23));
    CHECK_EQ(policy.pools.n, 1);
}

TEST(no_gpus_no_tenant)
{
    read1("ClusterName=cpu\nNodeName=a CPUs=4\nPartitionName=p Nodes=a\n");
    CHECK_EQ(policy.tenants.n + policy.pools.n + policy.workloads.n + diags.at.n, 0);
    read1("");
    read1("# only a comment\n\n");
    CHECK_EQ(policy.tenants.n, 0);
    bh_slurm_free(NULL);
}

TEST(any_mix_of_known_words)
{
    static const char *const words[] = {
        "NodeName=",
        "n[1-3]",
        "Gres=",
        "gpu",
        ":",
        "4",
        ",",
        "shard",
        "mps",
        "(S:0)",
        "\n",
        " ",
        "\\\n",
        "#",
        "\"",
        "Name=",
        "File=",
        "/dev/nvidia[0-3]",
        "Count=",
        "Type=",
        "1g.5gb",
        "GresTypes=",
        "AutoDetect=nvml ",
        "ConstrainDevices=",
        "yes",
        "MultipleFiles=",
        "=",
        "[",
        "]",
        "DEFAULT",
        "Include ",
        "AccountingStorageEnforce=",
    };
    uint8_t bytes[80];
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct bh_buf b BH_AUTO(bh_buf_fini);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_buf_init(&b, 4096);
        while (c.left)
            bh_buf_str(&b, words[bh_choose(&c, sizeof(words) / sizeof(words[0]))]);
        read1(bh_buf_text(&b));
        size_t n = diags.at.n, pools = policy.pools.n, jobs = policy.workloads.n;
        CHECK(policy.tenants.n <= 1 && jobs <= 1);
        read1(bh_buf_text(&b));
        CHECK_EQ(diags.at.n, n);
        CHECK_EQ(policy.pools.n, pools);
        CHECK_EQ(policy.workloads.n, jobs);
    }
    forget();
}

TEST_MAIN
