/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vacant.h - is nobody on a card, or on an instance of it, and how much of it is to be had then?
 *
 * Memory that somebody holds cannot be looked at by whoever scrubs, so a card with a process on it is not proved clean, however
 * little it holds. The driver is asked before and after; where it does not say who is there, whoever has the card's node open is.
 */
#ifndef BH_NODE_MECH_VACANT_H
#define BH_NODE_MECH_VACANT_H

#include "gpu/gpu.h"

struct bh_vacant {
    bool vacant;           /* it is known that nobody is there */
    uint64_t usable_bytes; /* all but what the driver keeps for itself */
    uint64_t free_bytes;
    char words[240]; /* who is there, or why that is not known; "" where nobody is */
};

/* What the driver said of a card; part: the instance of it, or NULL: all of the card. */
void bh_vacant_judge(const struct bh_gpu_device *gpu, const struct bh_gpu_instance *part,
                     struct bh_vacant *ret);
/* Asks the driver in this process: for a worker. uuid: of the card (`GPU-...`), or of an instance (`MIG-...`). Patient for so long
 * where somebody is there: what was ended a moment ago may still be on its way out. */
void bh_vacant_look(const char *uuid, unsigned patience_ms, struct bh_vacant *ret);

/*
 * Of a card that was vacant, so much was written and looked at. False: more is missing than who looked and the driver need for
 * themselves; the words say how much.
 */
bool bh_vacant_covered(const struct bh_vacant *before, uint64_t looked_bytes, char *words, size_t size);

/* Processes with a descriptor of this device, other than the caller and the driver's own: their numbers, in words ("4711 (python)").
 * How many. proc: `/proc`, or what stands for it. */
size_t bh_vacant_holders(const char *proc, uint64_t device, char *words, size_t size);

#endif
