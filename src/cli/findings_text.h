/* SPDX-License-Identifier: Apache-2.0 */
/* findings_text.h - what lint found, for people: as a compiler says it, then what could not be answered. */
#ifndef BH_CLI_FINDINGS_TEXT_H
#define BH_CLI_FINDINGS_TEXT_H

#include "cli/cli.h"
#include "conf/out.h"

void bh_findings_text(struct bh_cli *cli, const struct bh_findings *f);

#endif
