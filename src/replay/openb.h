/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openb.h - nodes and pods as Alibaba's GPU trace of 2023 writes them ("openb").
 *
 * nodes: sn,cpu_milli,memory_mib,gpu,model. pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli and, where the list has it,
 * gpu_spec (models separated by `|`; empty: any). The other columns are times and phases that the experiment does not
 * use. Nodes are read first: a model that no node has makes a pod that never fits, which is no error of the file.
 */
#ifndef BH_REPLAY_OPENB_H
#define BH_REPLAY_OPENB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

enum { BH_OPENB_MODELS = 64, BH_OPENB_NODE_GPUS = 16, BH_OPENB_NODES = 1 << 18, BH_OPENB_PODS = 1 << 21 };

struct bh_openb_node {
    const char *name;
    uint32_t cpu_milli;
    uint32_t n_gpus;
    uint32_t model; /* index into models; 0 without GPUs */
    uint64_t mem_mib;
};

struct bh_openb_pod {
    const char *name;
    uint32_t cpu_milli;
    uint16_t gpu_milli; /* of each GPU */
    uint8_t n_gpus;
    uint64_t mem_mib;
    uint64_t models; /* bit = index into models; 0: any */
};

struct bh_openb {
    struct bh_arena arena;
    const char *models[BH_OPENB_MODELS];
    uint32_t n_models;
    BH_VEC(struct bh_openb_node) nodes;
    BH_VEC(struct bh_openb_pod) pods;
};

void bh_openb_fini(struct bh_openb *o); /* a zeroed struct is empty */
/* file: how complaints name it. One error ends the reading, and what was read is not to be used. */
int bh_openb_read_nodes(struct bh_openb *o, const char *file, const char *text, size_t n,
                        struct bh_err *err) BH_MUST_USE;
int bh_openb_read_pods(struct bh_openb *o, const char *file, const char *text, size_t n,
                       struct bh_err *err) BH_MUST_USE;
void bh_openb_write_nodes(const struct bh_openb *o, struct bh_buf *out);
void bh_openb_write_pods(const struct bh_openb *o, struct bh_buf *out);

/* The index of a model by name, added where it is new; negative: there are BH_OPENB_MODELS already. */
int bh_openb_model(struct bh_openb *o, const char *name, size_t n);
uint64_t bh_openb_gpus(const struct bh_openb *o);         /* of all nodes */
uint64_t bh_openb_demand_milli(const struct bh_openb *o); /* of all pods */

#endif
