/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, read as a policy and as a fleet, linked with each other, end without a crash, a leak or a lie. A policy
 * without mistakes is judged and planned for, alone and on a small fleet.
 */
#include "conf/read.h"
#include "core/policy/plan.h"
#include "core/policy/report.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct bh_diags *d)
{
    size_t errors = 0;
    for (size_t i = 0; i < d->at.n; i++) {
        if (!d->at.at[i].pos.line || !d->at.at[i].pos.column || !d->at.at[i].message[0])
            abort();
        errors += d->at.at[i].is_error;
    }
    if (errors != d->n_errors)
        abort();
}

static void judge(struct bh_policy *p, const struct bh_fleet *fleet)
{
    bh_unresolved_vec problems = {0};
    struct bh_report report = {0};
    struct bh_plan plan = {0};
    bh_policy_link(p, fleet, &problems);
    bh_lint(p, fleet, 20700, &report);
    for (size_t i = 0; i < report.findings.n; i++)
        if (!report.findings.at[i].message[0] || !report.findings.at[i].subject[0])
            abort();
    bh_plan_make(p, fleet, &plan);
    if (plan.tenants.n != p->tenants.n)
        abort();
    bh_plan_fini(&plan);
    bh_report_fini(&report);
    bh_vec_fini(&problems);
}

static void judge_on_small_fleet(struct bh_policy *p)
{
    static const char text[] =
        "bulkhead: 1\nnodes:\n"
        "  - {name: gpu-01, driver: 570.86.10, toolkit: 1.17.7, iommu: false, ecc: false,\n"
        "     labels: {fabric-domain: B}, params: {RmProfilingAdminOnly: 0},\n"
        "     gpus: [{index: 0, model: H200, fabric: A, mig: {instances: [3g.71gb@0]}},\n"
        "            {index: 1, model: L40S, fabric: A}]}\n";
    struct bh_tree tree;
    struct bh_tree_error why;
    struct bh_diags diags = {0};
    struct bh_fleet fleet = {0};
    if (bh_tree_parse(&tree, text, sizeof(text) - 1, &why) < 0)
        abort();
    bh_fleet_read(&fleet, &tree, 1, &diags);
    bh_tree_fini(&tree);
    judge(p, &fleet);
    bh_fleet_fini(&fleet);
    bh_diags_fini(&diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_tree tree;
    struct bh_tree_error why;
    struct bh_diags diags = {0};
    struct bh_policy policy;
    struct bh_fleet fleet = {0};
    bh_unresolved_vec problems = {0};

    if (bh_tree_parse(&tree, (const char *)data, size, &why) < 0) {
        if (!why.line || !why.column || !why.message[0])
            abort();
        return 0;
    }
    bh_policy_init(&policy, BH_SOURCE_POLICY);
    bh_policy_read(&policy, &tree, 0, &diags);
    bool sound = diags.n_errors == 0;
    bh_fleet_read(&fleet, &tree, 0, &diags);
    bh_tree_fini(&tree);
    check_places(&diags);
    bh_policy_link(&policy, NULL, &problems);
    bh_policy_link(&policy, &fleet, &problems);
    bh_vec_fini(&problems);
    if (sound) {
        judge(&policy, NULL);
        judge_on_small_fleet(&policy);
    }
    bh_policy_fini(&policy);
    bh_fleet_fini(&fleet);
    bh_diags_fini(&diags);
    return 0;
}
