/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform.h - facts about this machine that decide whether tenants can be kept apart on it.
 *
 * Read from /proc, /sys and the package list, below BULKHEAD_SYSROOT where that is set. Nothing is run and nothing is
 * changed. What could not be had is unknown and says why.
 */
#ifndef BH_HOST_PLATFORM_H
#define BH_HOST_PLATFORM_H

#include "base/arena.h"
#include "base/mem.h"
#include "host/parse.h"

struct bh_platform_fact {
    uint8_t known;   /* enum bh_known */
    const char *why; /* why it is unknown, or what made it `no`; NULL otherwise */
};

struct bh_platform_text {
    const char *text; /* NULL: unknown */
    const char *why;  /* why it is unknown */
};

struct bh_platform_param {
    const char *key, *value;
};

struct bh_platform {
    struct bh_arena arena;
    const char *root; /* the folder that stands for the machine; NULL: the machine itself */
    struct bh_platform_text hostname, kernel, driver, toolkit, lockdown, cgroup;
    struct bh_platform_fact iommu, acs, secure_boot;
    const char *params_why; /* why there are no params; NULL: they were read */
    BH_VEC(struct bh_platform_param) params;
};

/*
 * gpus: PCI addresses as sysfs spells them (`0000:18:00.0`), NULL for a GPU whose address is not known; IOMMU and ACS
 * are judged on their way to the processor, and are unknown where there is one that could not be looked at.
 */
void bh_platform_read(struct bh_platform *ret, const char *const *gpus, size_t n_gpus);
void bh_platform_fini(struct bh_platform *p);

#endif
