/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes, read as a policy and as a fleet, linked with each other, end without a crash, a leak or a lie. */
#include "conf/read.h"

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
    bh_fleet_read(&fleet, &tree, 0, &diags);
    bh_tree_fini(&tree);
    check_places(&diags);
    bh_policy_link(&policy, NULL, &problems);
    bh_policy_link(&policy, &fleet, &problems);
    bh_vec_fini(&problems);
    bh_policy_fini(&policy);
    bh_fleet_fini(&fleet);
    bh_diags_fini(&diags);
    return 0;
}
