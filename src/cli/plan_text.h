/* SPDX-License-Identifier: Apache-2.0 */
/* plan_text.h - a plan for people: a block for each tenant, the impossible ones loud. */
#ifndef BH_CLI_PLAN_TEXT_H
#define BH_CLI_PLAN_TEXT_H

#include "cli/cli.h"
#include "conf/out.h"

void bh_plan_text(struct bh_cli *cli, const struct bh_plan_out *p);

#endif
