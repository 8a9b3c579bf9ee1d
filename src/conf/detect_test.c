/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/detect.h"

#include "base/test.h"

static int kind(const char *text)
{
    struct bh_tree t;
    struct bh_tree_error why;
    if (bh_tree_parse(&t, text, strlen(text), &why) < 0)
        return -1;
    int k = (int)bh_detect_tree(&t);
    bh_tree_fini(&t);
    return k;
}

TEST(yaml_by_its_keys)
{
    CHECK_EQ(kind("bulkhead: 1\ntenants: []\n"), BH_FILE_POLICY);
    CHECK_EQ(kind("bulkhead: 1\n"), BH_FILE_POLICY);
    CHECK_EQ(kind("tenants: []\n"), BH_FILE_POLICY);
    CHECK_EQ(kind("pools: []\n"), BH_FILE_POLICY);
    CHECK_EQ(kind("bulkhead: 1\nnodes: []\n"), BH_FILE_FLEET);
    CHECK_EQ(kind("bulkhead: 1\nnodes: []\npools: []\n"), BH_FILE_POLICY);
    CHECK_EQ(kind("apiVersion: v1\nkind: Pod\ntenants: []\n"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("# first\n---\nfoo: 1\n---\napiVersion: v1\nkind: Pod\n"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("version: v1\nsharing: {}\n"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("version: v1\nflags: {}\n"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("version: v1\nmig-configs: {}\n"), BH_FILE_KUBERNETES);
    CHECK_EQ(kind("version: v2\nsharing: {}\n"), BH_FILE_UNKNOWN);
    CHECK_EQ(kind("apiVersion: v1\n"), BH_FILE_UNKNOWN);
    CHECK_EQ(kind("version: v1\n"), BH_FILE_UNKNOWN);
    CHECK_EQ(kind("- bulkhead: 1\n"), BH_FILE_UNKNOWN);
    CHECK_EQ(kind("words\n"), BH_FILE_UNKNOWN);
    CHECK_EQ(kind(""), BH_FILE_UNKNOWN);
}

static bool slurm(const char *text)
{
    return bh_detect_slurm(text, strlen(text));
}

TEST(slurm_by_its_lines)
{
    CHECK(slurm("# cluster\nClusterName=lab\nGresTypes=gpu\n"));
    CHECK(slurm("NODENAME=gpu[01-04] Gres=gpu:8"));
    CHECK(slurm("Name=gpu Type=h100 File=/dev/nvidia[0-7]\r\n"));
    CHECK(slurm("ConstrainDevices=yes\n"));
    CHECK(slurm("ConstrainDevices = yes\n"));
    CHECK(slurm("# x\nGresTypes\t= gpu\n"));
    CHECK(slurm("Name = mps,x Count=4\n"));
    CHECK(slurm("name=GPU"));
    CHECK(!slurm("name=gpus\n"));
    CHECK(!slurm("[section]\nname = value\nx=1\n"));
    CHECK(!slurm("clustername\n"));
    CHECK(!slurm("  ClusterName=inside a block\n"));
    CHECK(!slurm("Colour=red\n"));
    CHECK(!slurm("=\n"));
    CHECK(!slurm(""));
    CHECK(!slurm("nodenames=x"));
    CHECK(!slurm("node=x"));
}

TEST_MAIN
