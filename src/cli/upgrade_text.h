/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade_text.h - a plan of an upgrade, for people and for programs. */
#ifndef BH_CLI_UPGRADE_TEXT_H
#define BH_CLI_UPGRADE_TEXT_H

#include "cli/cli.h"
#include "core/upgrade/upgrade.h"

void bh_upgrade_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_upgrade_ask *ask,
                     const struct bh_upgrade *u);
void bh_upgrade_json(struct bh_buf *out, const struct bh_upgrade_ask *ask, const struct bh_upgrade *u);

#endif
