/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd_parse.h - what amdgpu's small files say. Pure: text in, facts out.
 *
 * Files of another kernel, cut short or hostile are not understood, and then say nothing.
 */
#ifndef BH_GPU_AMD_PARSE_H
#define BH_GPU_AMD_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_AMD_PCI_MAX = 20, BH_AMD_MODES_MAX = 64, BH_AMD_NODES_MAX = 64, BH_AMD_LINKS_MAX = 16 };

/* The value of `key=` in a uevent file, cut to size; false: no such line, or empty. */
bool bh_amd_uevent(const char *text, const char *key, char *buf, size_t size);
/* Is this a PCI address as sysfs spells it, `0000:c1:00.0`? */
bool bh_amd_is_pci(const char *s);
/* unique_id: up to 16 hexadecimal digits, not all 0; in lower case. */
bool bh_amd_unique_id(const char *text, char ret[17]);
/* `SPX, DPX` or `NPS1`: words of capitals and digits; written with one comma and blank between them. */
bool bh_amd_modes(const char *text, char ret[BH_AMD_MODES_MAX]);
/*
 * xgmi_num_links: two hexadecimal digits for each GPU of the hive. How many numbers; 0: none, or not understood. More
 * links between two GPUs than BH_AMD_LINKS_MAX, twice what a card has, cannot be.
 */
size_t bh_amd_counts(const char *text, uint8_t ret[BH_AMD_NODES_MAX]);
/*
 * enforce_isolation: a number for each partition: 0 off, 1 on, 2 on in the older way, 3 on without wiping local memory.
 * The worst of them as enum bh_gpu_isolation: off before unwiped before on; -1: not understood.
 */
int bh_amd_isolation(const char *text);

#endif
