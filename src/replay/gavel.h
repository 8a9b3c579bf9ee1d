/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gavel.h - the traces of Gavel: seven cells between tabs, one file for each virtual cluster.
 *
 * job type, command, name of the steps option, whether it needs a data folder, steps, arrival in seconds, GPUs. There
 * are no durations. In the published traces steps are whole seconds times one rate for each job type, the same for
 * every number of GPUs; the table in gavel.c has those rates, found by fitting whole seconds to the steps.
 */
#ifndef BH_REPLAY_GAVEL_H
#define BH_REPLAY_GAVEL_H

#include "replay/jobs.h"

struct bh_table;
int bh_gavel_read(struct bh_jobs *j, struct bh_table *t, const char *tenant, size_t tenant_n,
                  struct bh_err *err) BH_MUST_USE;
/* The jobs of one tenant in such cells, all of one type; deadlines have no cell. */
void bh_gavel_write(const struct bh_jobs *j, uint32_t tenant, struct bh_buf *out);

#endif
