/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - memory is credited when it is gone, not when its name is.
 *
 * The driver keeps memory as long as anybody refers to it, and not everybody who can is seen: a mapping through the UVM
 * file, a dma-buf, an exported descriptor. A tenant that maps its memory and then frees the handle keeps the memory, and no
 * process's count shows it (measured). So before a name is freed the warden takes a second name for the memory. Once
 * the tenant's is gone, the driver says whether the warden is the only one left who has it: then it goes, and is
 * credited. Else it stays charged, and is looked at again until everybody else has let go.
 *
 * The second names stand in the ledger as objects of two clients that no tenant can have, so that the charge needs no
 * rule of its own: memory that two objects name is held until the last of them goes.
 */
#ifndef BH_WARDEN_PROOF_H
#define BH_WARDEN_PROOF_H

#include "warden/driver.h"
#include "warden/ledger_walk.h"

/* The ledger's names for the two clients; the driver gives out no handles like these. */
#define BH_PROOF_FRESH UINT32_C(0xfff00001) /* not looked at yet */
#define BH_PROOF_KEPT  UINT32_C(0xfff00002) /* somebody else had it when it was looked at */

struct bh_proof_pin {
    uint32_t name, gpu;
    bool held; /* else the driver has no such name: it can never be proved, and stays charged */
    uint64_t bytes;
};
struct bh_proof_pins {
    struct bh_proof_pin *at;
    size_t n, cap;
};

struct bh_proof {
    const struct bh_driver *driver;
    void *self; /* the driver's */
    struct bh_ledger *ledger;
    uint32_t last_name;
    size_t next_look;               /* in kept */
    struct bh_ledger_pieces pieces; /* room for the walk */
    struct bh_proof_pins fresh, kept;
    size_t mark;                 /* of fresh: where the names for what is about to go begin */
    bool cannot[BH_LEDGER_GPUS]; /* names cannot be had on this GPU: nothing is proved there */
};

void bh_proof_init(struct bh_proof *p, const struct bh_driver *driver, void *self, struct bh_ledger *ledger);
void bh_proof_fini(struct bh_proof *p);
/* The ledger is another warden's. What it was still looking at is taken for gone; what it found kept stays charged. */
void bh_proof_adopt(struct bh_proof *p);

/* An object, with what is below it, or a file, is about to go. fd: the warden's duplicate of the tenant's file. True: it
 * is one piece of memory, and nothing else. */
bool bh_proof_before(struct bh_proof *p, int fd, uint32_t client, uint32_t object);
void bh_proof_before_close(struct bh_proof *p, int fd, uint64_t file);
/* Is there any memory by this file? */
bool bh_proof_holds(struct bh_proof *p, uint64_t file);
/* It did not go after all: the names taken for it are given up. */
void bh_proof_cancel(struct bh_proof *p);
/* Looks at what has gone since the last time; true: there was something. Cheap where there is nothing. */
bool bh_proof_settle(struct bh_proof *p);
/* Until then the memory is held for nothing: not for long, and not too much of it. */
bool bh_proof_is_due(const struct bh_proof *p);
/* Has anybody let go of what was kept? A few are asked about each time: how many there are is a tenant's choice. */
void bh_proof_look_again(struct bh_proof *p);
/* The same of all on one GPU, before something is refused there. */
void bh_proof_look_at_all(struct bh_proof *p, uint32_t gpu);
/* Is this object of a client's video memory? */
bool bh_proof_is_memory(struct bh_proof *p, int fd, const struct bh_ledger_piece *piece);
/* Is it one of the two, which no tenant may use? */
bool bh_proof_is_own(uint32_t client);

#endif
