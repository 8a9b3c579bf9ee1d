/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - GPU models and their MIG geometry, as facts.
 *
 * The tables are generated from data/gpu_catalog.json at build time. They are a
 * planning default: on a live node what the driver reports replaces them.
 *
 * A profile's placement is a half-open range of *memory slices*, [start, start+size).
 * Instances may exist together only where their ranges do not overlap; at most one
 * carries `+me`, and beside `+me.all` only `-me` ones may stand.
 */
#ifndef BH_CORE_MODEL_CATALOG_H
#define BH_CORE_MODEL_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_MIG_SLICES_MAX = 16, BH_MIG_STARTS_MAX = 8, BH_MIG_INSTANCES_MAX = 16 };

enum bh_mig_media { BH_MEDIA_PLAIN, BH_MEDIA_ME, BH_MEDIA_ME_ALL, BH_MEDIA_NO_ME };

struct bh_mig_profile {
    const char *name;      /* `1g.18gb+me` */
    uint32_t memory_mib;   /* usable; 0 = not published: read it from the driver */
    uint16_t sm;           /* 0 = not published */
    uint8_t gi_profile_id; /* meaningful only together with the model */
    uint8_t compute_slices, memory_slices, max_instances;
    uint8_t placement_size, n_starts, starts[BH_MIG_STARTS_MAX];
    uint8_t media; /* enum bh_mig_media */
    bool gfx;
};

struct bh_gpu_model {
    const char *name;    /* `H200-141GB` */
    const char *arch;    /* `Hopper` */
    uint32_t memory_mib; /* nominal; 0 = not published */
    uint16_t total_sm, mig_sm;
    uint8_t compute_slices, memory_slices; /* both 0: no MIG */
    uint8_t n_profiles;
    const struct bh_mig_profile *profiles;
};

size_t bh_catalog_count(void);
const struct bh_gpu_model *bh_catalog_at(size_t i);
/*
 * `H200-141GB` or a product name (`NVIDIA H100 80GB HBM3`) exactly, else the first model whose name starts
 * with it and has a word or number end there (`H100` is any H100, `H20` is no H200). Letter case is ignored,
 * spaces, dashes and underscores are alike, a leading "NVIDIA " or "Tesla " and a node label's `-SHARED` or
 * `-MIG-1g.10gb` are passed over. NULL: unknown.
 */
const struct bh_gpu_model *bh_catalog_find(const char *name);
/* Does `name` mean this model: a name of its own or the start of one? `L40` is a model, so it means no L40S. */
bool bh_catalog_matches(const char *name, const struct bh_gpu_model *model);
bool bh_model_has_mig(const struct bh_gpu_model *m);
/* The model with this PCI device id (`0x2335`, of the vendor 0x10de); NULL: unknown. */
const struct bh_gpu_model *bh_catalog_by_device(uint16_t device);
/* Are PCI device ids of this model known at all? */
bool bh_model_has_devices(const struct bh_gpu_model *m);

/*
 * By name; NULL: none. Driver spellings are accepted (`3g.39gb` for `3g.40gb`: same compute slices, the number at
 * most 3 and a twentieth off), so are resource spellings (`1g.18gb.me`) and compute instances (`1c.3g.40gb`).
 */
const struct bh_mig_profile *bh_mig_find(const struct bh_gpu_model *m, const char *name);

/* What a memory request takes. */
struct bh_mig_fit {
    const struct bh_mig_profile *profile; /* smallest that holds it; NULL: none does */
    uint32_t waste_mib;                   /* of the profile, unused by the request */
};
/* allowed: names that may be cut (n_allowed 0: any profile). Profiles of unknown size are passed over. */
struct bh_mig_fit bh_mig_smallest(const struct bh_gpu_model *m, uint64_t need_mib, const char *const *allowed,
                                  size_t n_allowed);

/* One instance as asked for or as found. */
struct bh_mig_instance {
    const struct bh_mig_profile *profile;
    int8_t start; /* -1: anywhere */
};

/* Why a set of instances cannot stand together: the first pair (or the one) that fails. */
struct bh_mig_conflict {
    size_t a, b;        /* indices into the input; equal when one alone is impossible */
    uint16_t slices;    /* bit i: memory slice i is wanted twice */
    const char *reason; /* `overlap`, `start`, `media`, `full` */
};
/*
 * Can these stand together? On success ret_starts[i] (when not NULL) is where each goes.
 * Search is exact (backtracking over at most 16 slices), so "does not fit" is a proof.
 */
bool bh_mig_layout_fits(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                        uint8_t *ret_starts, struct bh_mig_conflict *ret_conflict);
/*
 * The largest layout that does fit, drawn from the wanted instances in order: keep[i] says which stay.
 * Used to name a layout that works beside one that does not.
 */
size_t bh_mig_layout_trim(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                          bool *keep);

#endif
