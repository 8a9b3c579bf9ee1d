/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - what a simulated machine is made of, before anything happens on it.
 *
 * Made from a scene's name and a seed: the same two give the same machine, to the last digit of a serial number.
 */
#ifndef BH_SIMGPU_NODE_H
#define BH_SIMGPU_NODE_H

#include "base/err.h"
#include "core/model/catalog.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_SIM_GPUS_MAX = 64, BH_SIM_LINKS_MAX = 18 };

struct bh_sim_gpu {
    const struct bh_gpu_model *model;
    char name[64]; /* as the driver's library says it: `NVIDIA H100 80GB HBM3` */
    char uuid[48]; /* `GPU-...` */
    char serial[24];
    char pci[16]; /* `0000:18:00.0` */
    char vbios[20];
    uint32_t device_id, minor, module_id; /* device_id: PCI device << 16 | 0x10de */
    int32_t numa;
    uint64_t total_bytes, reserved_bytes;
    uint32_t sm, links;    /* links: NVLinks up, each to a switch */
    uint32_t switch_group; /* GPUs behind the same NVSwitches share one; links 0: none */
    uint8_t cluster[16];   /* zero: no fabric across nodes */
    uint32_t clique;
    bool dead; /* from the start */
    bool mig;  /* MIG mode on from the start */
};

struct bh_sim_node {
    char scene[32];
    uint64_t seed;
    char hostname[48], driver[20], kernel[32], toolkit[20];
    char product_label[64]; /* what the node's labels say its GPUs are: drifted when it is not their name */
    uint32_t n_gpus;
    bool iommu, acs, secure_boot;
    uint32_t slow_ms;    /* every call waits this long */
    uint32_t fail_every; /* every n-th allocation fails; 0: none */
    struct bh_sim_gpu gpus[BH_SIM_GPUS_MAX];
};

struct bh_sim_scene {
    const char *name, *summary;
};
/* All scenes, in the order in which `sim start --help` lists them; ends with name NULL. */
extern const struct bh_sim_scene bh_sim_scenes[];
/* Any catalogue model as well: `A30-24GBx4` is four of them. BH_NOT_FOUND names the nearest scene. */
int bh_sim_node_make(struct bh_sim_node *ret, const char *scene, uint64_t seed,
                     struct bh_err *err) BH_MUST_USE;

#endif
