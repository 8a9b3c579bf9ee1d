/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster as tenant, pools and what a job can reach. */
#include "conf/slurm_fixture.h"

TEST(a_whole_cluster)
{
    load((const char *const[]){slurm_conf, gres_conf, cgroup_conf}, 3);
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.tenants.n, 1);
    const struct bh_tenant *t = &policy.tenants.at[0];
    CHECK_STR(t->name, "slurm-users");
    CHECK_STR(t->object, "slurm.conf");
    CHECK_STR(t->domain, "internal");
    CHECK_EQ(t->source, BH_SOURCE_SLURM);
    CHECK(is_at(t->pos, 0, 3, 1));
    CHECK(is_at(t->quota.pos, 0, 12, 1));
    CHECK_EQ(t->quota.model, BH_QUOTA_HARD);
    CHECK_EQ(t->quota.resources.n, 2);
    CHECK_STR(t->quota.resources.at[0].resource, "gres/gpu");
    CHECK_STR(t->quota.resources.at[1].resource, "gres/shard");
    CHECK(is_at(t->quota.resources.at[1].pos, 0, 11, 1));
    CHECK_EQ(policy.pools.n, 2);
    const struct bh_pool *p = pool("gpu:a100");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_WHOLE);
    CHECK_STR(p->resource, "gres/gpu");
    CHECK(p->any_tenant);
    CHECK(is_at(p->pos, 1, 1, 1));
    p = pool("shard");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_TIMESLICE);
    CHECK_STR(p->resource, "gres/shard");
    CHECK_STR(p->exposes.at[0].s, "gres/shard");
    CHECK_EQ(p->replicas, 4);
    CHECK_STR(p->object, "gres.conf");
    CHECK_EQ(p->cap_memory_bytes, 0);
    CHECK(is_at(p->pos, 1, 2, 1));
    CHECK_EQ(policy.workloads.n, 0);
}

TEST(quota_needs_limits_and_counted_gpus)
{
    static const struct {
        const char *text;
        bool quota;
    } cases[] = {
        {"GresTypes=gpu\nAccountingStorageTRES=gres/gpu\n", false},
        {"GresTypes=gpu\nAccountingStorageEnforce=limits\n", false},
        {"GresTypes=gpu\nAccountingStorageEnforce=associations,qos\nAccountingStorageTRES=gres/gpu\n", false},
        {"GresTypes=gpu\nAccountingStorageEnforce=limits\nAccountingStorageTRES=gres/gpu:a100\n", false},
        {"GresTypes=gpu\nAccountingStorageEnforce=safe\nAccountingStorageTRES=cpu,gres/gpu\n", true},
        {"GresTypes=gpu\nAccountingStorageEnforce=all\nAccountingStorageTRES=GRES/GPU\n", true},
        {"GresTypes=gpu\nAccountingStorageEnforce=LIMITS\nAccountingStorageTRES=gres/gpu\n", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        read1(cases[i].text);
        CHECK_EQ(policy.tenants.n, 1);
        CHECK_EQ(policy.tenants.at[0].quota.pos.line != 0, cases[i].quota);
    }
    read1("GresTypes=gpu\nPriorityType=priority/multifactor\nPriorityWeightFairshare=10\n");
    CHECK_EQ(policy.tenants.at[0].quota.model, BH_QUOTA_FAIRSHARE);
    read1("GresTypes=gpu\nPreemptType=preempt/partition_prio\n");
    CHECK_EQ(policy.tenants.at[0].quota.model, BH_QUOTA_PRIORITY);
    read1("GresTypes=gpu\nPreemptType=preempt/none\n");
    CHECK(!policy.tenants.at[0].quota.has_model);
}

TEST(jobs_reach_every_gpu_unless_devices_are_constrained)
{
    load((const char *const[]){slurm_conf, "ConstrainCores=yes\nConstrainDevices=no\n"}, 2);
    CHECK_EQ(policy.workloads.n, 1);
    const struct bh_workload *w = &policy.workloads.at[0];
    CHECK_STR(w->name, "any-job");
    CHECK_STR(w->tenant_name.s, "slurm-users");
    CHECK_STR(w->object, "cgroup.conf");
    CHECK_EQ(w->devices.n, 1);
    CHECK_STR(w->devices.at[0].s, "/dev/nvidia*");
    CHECK(w->gang);
    CHECK(is_at(w->pos, 1, 2, 1));
    load((const char *const[]){slurm_conf, "# none\nConstrainCores=yes\n"}, 2);
    CHECK(is_at(policy.workloads.at[0].pos, 1, 2, 1));
    load((const char *const[]){slurm_conf, "AllowedRAMSpace=90\nCgroupPlugin = autodetect\n"}, 2);
    CHECK(is_at(policy.workloads.at[0].pos, 1, 1, 1));
    /* no cgroup.conf among the files is no answer */
    read1(slurm_conf);
    CHECK_EQ(policy.workloads.n, 0);
    CHECK(
        is_at(diag_with("cgroup.conf was not given: whether jobs can open other jobs' GPUs")->pos, 0, 2, 1));
    load((const char *const[]){"GresTypes = gpu\nNodeName = n1 Gres = gpu:2\n", "ConstrainDevices = yes\n"},
         2);
    CHECK_EQ(policy.workloads.n + diags.at.n, 0);
    CHECK(pool("gpu"));
    load((const char *const[]){"GresTypes=gpu\nTaskPlugin=task/affinity\n", cgroup_conf}, 2);
    CHECK_EQ(policy.workloads.n, 1);
    CHECK(is_at(policy.workloads.at[0].pos, 0, 2, 1));
    CHECK(diag_with("TaskPlugin=task/cgroup"));
    load((const char *const[]){"GresTypes=gpu\n", "ConstrainDevices=YES\n"}, 2);
    CHECK_EQ(policy.workloads.n, 0);
}

TEST(mps_has_a_compute_share_and_no_memory_limit)
{
    load((const char *const[]){"GresTypes=gpu,mps\nNodeName=g1 Gres=gpu:2,mps:200\n",
                               "Name=gpu File=/dev/nvidia[0-1]\nName=mps Count=200 File=/dev/nvidia[0-1]\n"},
         2);
    const struct bh_pool *p = pool("mps");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MPS);
    CHECK_EQ(p->replicas, 100);
    CHECK_EQ(p->cap_compute_ppm, 10000);
    CHECK_EQ(p->cap_memory_bytes, 0);
    CHECK(!p->caps_by_plugin);
    CHECK(is_at(p->caps_pos, 1, 2, 1));
    /* slurm.conf alone */
    read1("GresTypes=gpu,mps\nNodeName=DEFAULT Gres=gpu:tesla:4(S:0-1),mps:no_consume:2K\nNodeName=g[1-9]\n");
    p = pool("mps");
    CHECK(p);
    CHECK_EQ(p->replicas, 512);
    CHECK_STR(p->object, "slurm.conf");
    CHECK(is_at(p->pos, 0, 2, 18));
    CHECK(pool("gpu:tesla"));
}

TEST(what_is_not_understood)
{
    read1(
        "ClusterName=x\nGresTypes=gpu,bandwidth\nNodeName=a Gres=gpu:1,bandwidth:4G\nNodeName=b Gres=bandwidth:1\n"
        "Include /etc/slurm/nodes.conf\nSchedulerParameters=bf_window=100\nSelectType=select/linear\n"
        "ProctrackType=proctrack/pgid\n");
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(diags.at.n, 5);
    CHECK(diag_with("cgroup.conf was not given"));
    CHECK(is_at(diag_with("GRES `bandwidth`")->pos, 0, 3, 12));
    CHECK(is_at(diag_with("Include")->pos, 0, 5, 1));
    CHECK(diag_with("select/linear"));
    CHECK(diag_with("proctrack/pgid"));
    read1("NodeName=a Gres=shard:4\nGresTypes=gpu\n");
    CHECK(is_at(diag_with("`shard` is not among the GresTypes")->pos, 0, 1, 12));
}

TEST_MAIN
