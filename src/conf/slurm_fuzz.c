/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as Slurm's files (a form feed parts them): no crash, no leak, and at most one tenant and one job. */
#include "conf/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_diags diags = {0};
    struct bh_policy policy;
    const char *at = (const char *)data, *end = at + size;
    bh_unresolved_vec problems = {0};

    bh_policy_init(&policy, BH_SOURCE_SLURM);
    struct bh_slurm *s = bh_slurm_new(&policy, &diags);
    for (uint32_t file = 0; at < end; file++) {
        const char *stop = memchr(at, '\f', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        bh_slurm_add(s, at, n, file);
        at += n + (stop != NULL);
    }
    bh_slurm_finish(s);
    bh_slurm_free(s);

    bh_policy_link(&policy, NULL, &problems);
    if (policy.tenants.n > 1 || policy.workloads.n > 1 || problems.n)
        abort();
    bh_vec_fini(&problems);
    bh_policy_fini(&policy);
    bh_diags_fini(&diags);
    return 0;
}
