/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_fixture.h - for the tests of the Slurm reader: texts in, the model and what was said out. */
#ifndef BH_CONF_SLURM_FIXTURE_H
#define BH_CONF_SLURM_FIXTURE_H

#include "base/test.h"
#include "conf/read.h"

static struct bh_policy policy;
static struct bh_diags diags;

static inline void forget(void)
{
    bh_policy_fini(&policy);
    bh_diags_fini(&diags);
    policy = (struct bh_policy){0};
}

static inline void load(const char *const *texts, size_t n)
{
    forget();
    bh_policy_init(&policy, BH_SOURCE_SLURM);
    struct bh_slurm *s = bh_slurm_new(&policy, &diags);
    for (size_t i = 0; i < n; i++)
        bh_slurm_add(s, texts[i], strlen(texts[i]), (uint32_t)i);
    bh_slurm_finish(s);
    bh_slurm_free(s);
}

static inline void read1(const char *text)
{
    load(&text, 1);
}

static inline const struct bh_diag *diag_with(const char *words)
{
    for (size_t i = 0; i < diags.at.n; i++)
        if (strstr(diags.at.at[i].message, words))
            return &diags.at.at[i];
    return NULL;
}

static inline bool is_at(struct bh_pos pos, uint32_t file, uint32_t line, uint32_t column)
{
    if (pos.file == file && pos.line == line && pos.column == column)
        return true;
    printf("# at %u:%u:%u, not at %u:%u:%u\n", pos.file, pos.line, pos.column, file, line, column);
    return false;
}

static inline const struct bh_pool *pool(const char *name)
{
    for (size_t i = 0; i < policy.pools.n; i++)
        if (strcmp(policy.pools.at[i].name, name) == 0)
            return &policy.pools.at[i];
    return NULL;
}

static const char slurm_conf[] = "# the cluster\n"                                                 /* 1 */
                                 "ClusterName=lab\n"                                               /* 2 */
                                 "GresTypes=gpu,shard,mps\n"                                       /* 3 */
                                 "SelectType=select/cons_tres\n"                                   /* 4 */
                                 "TaskPlugin=task/affinity,task/cgroup\n"                          /* 5 */
                                 "ProctrackType=proctrack/cgroup\n"                                /* 6 */
                                 "PreemptType=preempt/qos\n"                                       /* 7 */
                                 "PreemptMode=REQUEUE\n"                                           /* 8 */
                                 "PriorityType=priority/multifactor\n"                             /* 9 */
                                 "PriorityWeightFairshare=1000\n"                                  /* 10 */
                                 "AccountingStorageTRES=gres/gpu,gres/shard\n"                     /* 11 */
                                 "accountingstorageenforce = associations,limits,qos\n"            /* 12 */
                                 "NodeName=n[1-2] CPUs=8 Gres=gpu:a100:4,shard:16 State=UNKNOWN\n" /* 13 */
                                 "PartitionName=all Nodes=ALL Default=YES\n";                      /* 14 */
static const char gres_conf[] = "NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"
                                "NodeName=n[1-2] Name=shard Count=16\n";
static const char cgroup_conf[] = "CgroupAutomount=yes\nConstrainDevices=yes\n";

#endif
