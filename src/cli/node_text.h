/* SPDX-License-Identifier: Apache-2.0 */
/* node_text.h - the node for people: the one screen that says what is going on, tenants, and quotas. */
#ifndef BH_CLI_NODE_TEXT_H
#define BH_CLI_NODE_TEXT_H

#include "cli/answer.h"
#include "cli/table.h"

/* What was asked for the screen; NULL: it is not for this caller to see. */
struct bh_status_parts {
    const struct bh_a_status *status;
    const struct bh_a_gpus *gpus;
    const struct bh_a_leases *leases;
    const struct bh_a_doctor *doctor;
    const struct bh_a_jobs *waits; /* the first few */
};
void bh_status_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_status_parts *p);

void bh_tenants_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tenants *t);
void bh_tenant_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tenant *t);
/* only: of this tenant; NULL: of all. False: there is none of that name. */
bool bh_quotas_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_quotas *q, const char *only);

/* `red ada J1 0.5 GPU, ...`: who has the slices of a card. */
const char *bh_say_owners(struct bh_arena *a, const struct bh_a_gpu *g, const struct bh_a_leases *leases);

#endif
