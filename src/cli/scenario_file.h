/* SPDX-License-Identifier: Apache-2.0 */
/* scenario_file.h - the file of a scenario (bulkhead-why(1)) as it is written: names and amounts, nothing looked up. */
#ifndef BH_CLI_SCENARIO_FILE_H
#define BH_CLI_SCENARIO_FILE_H

#include "base/arena.h"
#include "base/mem.h"
#include "conf/diag.h"
#include "core/model/pos.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_scenario_node {
    struct bh_pos pos;
    const char *name, *model, *rack, *link;
    uint32_t gpus, count;
    uint64_t cpu_milli, memory_bytes;
};

struct bh_scenario_queue {
    struct bh_pos pos;
    const char *name, *parent;
    uint64_t guarantee_milli, deserved_milli, limit_milli;
    bool has_deserved, has_limit, serves;
    uint32_t weight;
};

struct bh_scenario_job {
    struct bh_pos pos;
    const char *name, *queue, *model, *within, *tenant;
    uint32_t gpus, members;
    int32_t priority;
    uint64_t share_milli, cpu_milli, memory_bytes;
    uint64_t submitted_ms, runtime_ms, min_runtime_ms;
    bool firm, alone;
};

struct bh_scenario_file {
    struct bh_arena arena;
    struct bh_diags diags;
    uint64_t now_ms;
    BH_VEC(struct bh_scenario_node) nodes;
    BH_VEC(struct bh_scenario_queue) queues;
    BH_VEC(struct bh_scenario_job) jobs;
};

/* All that is wrong in it is in ret->diags. ret is zeroed by the caller, who frees it either way. */
void bh_scenario_file_read(const char *text, size_t n, struct bh_scenario_file *ret);
void bh_scenario_file_fini(struct bh_scenario_file *f);

#endif
