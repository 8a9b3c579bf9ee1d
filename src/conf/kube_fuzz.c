/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a manifest: no crash, no leak, and every name the model uses is a name it has. */
#include "conf/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_tree tree;
    struct bh_tree_error why;
    struct bh_diags diags = {0};
    struct bh_policy policy;
    bh_unresolved_vec problems = {0};

    if (bh_tree_parse(&tree, (const char *)data, size, &why) < 0)
        return 0;
    bh_policy_init(&policy, BH_SOURCE_KUBERNETES);
    struct bh_kube *k = bh_kube_new(&policy, &diags);
    bh_kube_add(k, &tree, 0);
    bh_kube_name(k, 0, "fuzz/manifest.yaml");
    bh_kube_finish(k);
    bh_kube_free(k);
    bh_tree_fini(&tree);

    bh_policy_link(&policy, NULL, &problems);
    for (size_t i = 0; i < policy.workloads.n; i++) {
        const struct bh_workload *w = &policy.workloads.at[i];
        if (w->tenant == BH_NONE || (w->pool_name.s && w->pool == BH_NONE))
            abort();
    }
    for (size_t i = 0; i < policy.pools.n; i++)
        if (!policy.pools.at[i].name || !policy.pools.at[i].pos.line)
            abort();
    bh_vec_fini(&problems);
    bh_policy_fini(&policy);
    bh_diags_fini(&diags);
    return 0;
}
