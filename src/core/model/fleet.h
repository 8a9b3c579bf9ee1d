/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - the hardware at hand, as a file or a live node describes it.
 *
 * Three-valued where a file may be silent: a fact that was not given is
 * "unknown", and a rule that needs it says so instead of passing.
 */
#ifndef BH_CORE_MODEL_FLEET_H
#define BH_CORE_MODEL_FLEET_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/model/catalog.h"
#include "core/model/pos.h"

enum bh_fact { BH_FACT_UNKNOWN, BH_FACT_NO, BH_FACT_YES };

struct bh_found_instance {
    const char *profile;                /* as written */
    const struct bh_mig_profile *known; /* NULL: this model has no such profile */
    int8_t start;                       /* -1: not given */
    struct bh_pos pos;
};

struct bh_gpu {
    struct bh_pos pos;
    const char *uuid; /* NULL: not given */
    const char *model_name;
    const struct bh_gpu_model *model; /* NULL: not in the catalogue */
    const char *fabric;               /* NULL: not given */
    uint32_t index;                   /* on its node */
    uint32_t memory_mib;              /* as its driver says; 0: not asked, the catalogue's word stands */
    int32_t numa;                     /* -1: not given */
    uint8_t mig_enabled;              /* enum bh_fact */
    BH_VEC(struct bh_found_instance) instances;
};

struct bh_keyed {
    const char *key, *value;
    struct bh_pos pos;
};

struct bh_fleet_node {
    struct bh_pos pos;
    const char *name, *kernel, *site;                        /* kernel: never NULL */
    const char *driver, *toolkit, *operator_, *vgpu_manager; /* NULL or "": not there */
    uint8_t iommu, acs, secure_boot, ecc;                    /* enum bh_fact */
    BH_VEC(struct bh_keyed) params, labels;
    BH_VEC(struct bh_gpu) gpus;
};

struct bh_fleet {
    struct bh_arena arena; /* owns every string */
    BH_VEC(struct bh_fleet_node) nodes;
    struct bh_map by_name; /* node name -> index into nodes */
};

void bh_fleet_fini(struct bh_fleet *f);
const struct bh_fleet_node *bh_fleet_find(const struct bh_fleet *f, const char *name); /* or NULL */
const struct bh_gpu *bh_fleet_node_gpu(const struct bh_fleet_node *n, uint32_t index); /* or NULL */
const char *bh_keyed_find(const struct bh_keyed *at, size_t n, const char *key);       /* or NULL */

#endif
