/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starter.h - a first policy, from four answers.
 *
 * What is written keeps every rule: a newcomer starts from something true and changes it.
 * The same answers give the same bytes. It promises nothing that the named GPU cannot keep;
 * where the answers ask for more nodes than there are, the text says so at the top.
 */
#ifndef BH_CORE_POLICY_STARTER_H
#define BH_CORE_POLICY_STARTER_H

#include "base/buf.h"
#include "core/model/catalog.h"

#include <stdint.h>

enum bh_starter_who { BH_STARTER_TEAMS, BH_STARTER_PARTNERS, BH_STARTER_CUSTOMERS };
enum bh_starter_work {
    BH_STARTER_TRAINING,
    BH_STARTER_SERVING,
    BH_STARTER_RESEARCH,
    BH_STARTER_BATCH,
    BH_N_STARTER_WORK
};
enum bh_starter_promise { BH_STARTER_NOTHING, BH_STARTER_SHARES, BH_STARTER_HARD_SLO };

struct bh_starter {
    uint8_t who;            /* 1: enum bh_starter_who, the least trusted that shares */
    uint32_t work;          /* 2: bit: enum bh_starter_work; at least one */
    const char *model_name; /* 3: as asked for: `H200`; one the catalogue does not know is taken as it is */
    uint32_t nodes, gpus_per_node; /* both at least 1; at most BH_STARTER_NODES_MAX, BH_STARTER_GPUS_MAX */
    uint8_t promise;               /* 4: enum bh_starter_promise */
    uint32_t regimes;              /* 4: bit: enum bh_regime; 0: none */
};
enum { BH_STARTER_NODES_MAX = 9999, BH_STARTER_GPUS_MAX = 64 };

/* Fails on answers that are none (no work, no nodes), and when the text does not fit into *out. */
int bh_starter_write(const struct bh_starter *answers, struct bh_buf *out, struct bh_err *err) BH_MUST_USE;

#endif
