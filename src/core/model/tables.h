/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the facts of data/ as constant tables.
 *
 * tools/gen-data.py writes the file that defines them. Only the modules that answer
 * questions about the facts read them; everyone else asks catalog.h, advisory.h,
 * partition.h and policy.h.
 */
#ifndef BH_CORE_MODEL_TABLES_H
#define BH_CORE_MODEL_TABLES_H

#include "core/model/advisory.h"
#include "core/model/catalog.h"
#include "core/model/partition.h"
#include "core/model/policy.h"

extern const struct bh_gpu_model bh_gpu_models[];
extern const size_t bh_gpu_model_count;

/*
 * Every name of every model, folded: lower case, one space between words, no vendor's word.
 * The models' own names come first, in the order of bh_gpu_models; no two are alike.
 */
struct bh_model_name {
    const char *folded;
    uint8_t model; /* index into bh_gpu_models */
};
extern const struct bh_model_name bh_model_names[];
extern const size_t bh_model_name_count;

/* PCI device ids that are known, ascending. A model may have several, and one of no MIG has none here. */
struct bh_model_device {
    uint16_t device;
    uint8_t model; /* index into bh_gpu_models */
};
extern const struct bh_model_device bh_model_devices[];
extern const size_t bh_model_device_count;

/* An advisory with what its text means, so that a check parses one version and no more. */
struct bh_advisory_row {
    struct bh_advisory advisory;
    struct bh_version fixed;
    uint32_t branch; /* 0: one line of versions */
};
extern const struct bh_advisory_row bh_advisory_rows[]; /* by component, branch, day, bulletin */
extern const size_t bh_advisory_row_count;

/* The rows of one component. */
struct bh_advisory_group {
    const char *component;
    uint16_t first, n;
    bool platform_bound; /* several lines of versions that the number alone does not tell apart */
};
extern const struct bh_advisory_group bh_advisory_groups[];
extern const size_t bh_advisory_group_count;

struct bh_driver_branch {
    uint32_t branch;
    int32_t last_day; /* on which the vendor supports it; 0: no date published */
};
extern const struct bh_driver_branch bh_driver_branches[];
extern const size_t bh_driver_branch_count;

/* One row per architecture: boards of two generations that are cut alike are two rows. */
extern const struct bh_fabric_platform bh_fabric_platforms[];
extern const size_t bh_fabric_platform_count;

extern const struct bh_class bh_builtin_classes[];
extern const size_t bh_builtin_class_count;

#endif
