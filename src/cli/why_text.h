/* SPDX-License-Identifier: Apache-2.0 */
/* why_text.h - verdicts and changes in words and in JSON, for `why` and `what-if`. */
#ifndef BH_CLI_WHY_TEXT_H
#define BH_CLI_WHY_TEXT_H

#include "base/json.h"
#include "cli/scenario.h"
#include "core/sched/explain.h"

/* `8 GPUs`, `0.5 GPUs`, `1 GPU` */
void bh_why_gpus(struct bh_buf *b, uint64_t milli);
/* `2h 5m`, `12s`, `350ms` */
void bh_why_time(struct bh_buf *b, uint64_t ms);
/* A change in words: `add 1 node with 4 H200`, `raise the limit of a from 4 to 6 GPUs`. */
void bh_why_change(struct bh_buf *b, const struct bh_scenario *s, const struct bh_change *c);
/* What stands in its way, with its numbers: one sentence without a full stop. */
void bh_why_sentence(struct bh_buf *b, const struct bh_scenario *s, const struct bh_verdict *v);

void bh_why_text(struct bh_cli *cli, const struct bh_scenario *s, uint64_t job, const struct bh_verdict *v,
                 const struct bh_remedy *r);
void bh_why_json(struct bh_buf *b, const struct bh_scenario *s, uint64_t job, const struct bh_verdict *v,
                 const struct bh_remedy *r);

#endif
