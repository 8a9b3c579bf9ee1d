/* SPDX-License-Identifier: Apache-2.0 */
/* describe_text.h - all about one job, lease or GPU; its history comes last. */
#ifndef BH_CLI_DESCRIBE_TEXT_H
#define BH_CLI_DESCRIBE_TEXT_H

#include "cli/answer.h"
#include "cli/table.h"

/* why NULL: it does not wait. attempts: of its leases, oldest first; at most as many as the job has. */
void bh_describe_job(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_job_detail *d,
                     const struct bh_a_why *why, const struct bh_a_lease_detail *attempts, size_t n_attempts,
                     uint64_t now_ms);
void bh_describe_lease(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_lease_detail *d,
                       uint64_t now_ms);
/* leases: those that have slices of it. records NULL: the audit log is not for this caller. */
void bh_describe_gpu(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_gpu *g,
                     const struct bh_a_lease_detail *leases, size_t n_leases,
                     const struct bh_a_records *records, uint64_t now_ms);

#endif
