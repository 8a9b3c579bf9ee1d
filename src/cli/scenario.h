/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenario.h - a small fleet, queues and jobs from a file, played through the scheduler up to a moment.
 *
 * `why` and `what-if` need a state to look at. As long as no daemon has one, this is it: what the scheduler made of the
 * jobs of the file, submitted when it says, on nodes that were empty, until `now`. A job ends when its runtime is over.
 */
#ifndef BH_CLI_SCENARIO_H
#define BH_CLI_SCENARIO_H

#include "cli/cli.h"
#include "cli/scenario_file.h"
#include "core/sched/whatif_search.h"

typedef BH_VEC(const char *) bh_scenario_names;

struct bh_scenario {
    struct bh_scenario_file file;
    /* Names by the scheduler's ids. Queue ids begin behind the root, job ids are places in file.jobs + 1. */
    bh_scenario_names node_names, domain_names, model_names, tenant_names;
    struct bh_trial trial;
    struct bh_reserve_config reserve;
};

/* Reads the file and plays it. BH_EXIT_OK, or the exit status to end with: what is wrong was said. */
int bh_scenario_open(struct bh_cli *cli, const char *path, struct bh_scenario *ret) BH_MUST_USE;
void bh_scenario_fini(struct bh_scenario *s);

uint64_t bh_scenario_job(const struct bh_scenario *s, const char *name); /* its id, or 0 */
const char *bh_scenario_job_name(const struct bh_scenario *s, uint64_t id);
const char *bh_scenario_queue_name(const struct bh_scenario *s, uint32_t queue);

#endif
