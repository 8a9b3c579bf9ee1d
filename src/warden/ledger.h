/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - who holds how much video memory in one lease, and whether more may be granted.
 *
 * Pure. A grant is reserved before the driver is asked and settled with what the driver gave, so that no number of
 * processes racing can pass the cap. What is held is a tree as in the driver: freeing an object frees what is below it,
 * a client ends with the file it was made on, a process with all its files. Memory that two objects name counts once,
 * until the last of them goes. Managed memory counts at its full size while it is mapped.
 *
 * What the driver counts beyond the tree is kept as `overhead`. (What it takes for itself, for page tables and channels, is in
 * no process's count and in no sum here.)
 */
#ifndef BH_WARDEN_LEDGER_H
#define BH_WARDEN_LEDGER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_LEDGER_GPUS = 32 };

struct bh_ledger;

struct bh_ledger *bh_ledger_new(uint64_t cap_bytes); /* for each GPU of the lease */
void bh_ledger_free(struct bh_ledger *l);
/* Tenants pick handles: with a seed they cannot know, they cannot pick ones that make look-ups slow. It changes no
 * answer, and is taken while there is no client only. */
void bh_ledger_seed(struct bh_ledger *l, uint64_t seed);

/* Takes `bytes` of the cap of this GPU; false: that would pass it, and nothing was taken. Also false for a GPU that is
 * not known, and where the ledger is full (2^20 objects or 2^16 clients). */
bool bh_ledger_reserve(struct bh_ledger *l, uint32_t gpu, uint64_t bytes);
void bh_ledger_give_back(struct bh_ledger *l, uint32_t gpu, uint64_t bytes); /* the driver refused */

/* file: the warden's own number for an open file; a client belongs to one. false: a handle that is taken, or no room.
 * The same file and another pid: that process has the file too (it was forked, or passed). A taken handle is not told
 * apart from then on: one client, which ends with the last file and process that claimed it. */
bool bh_ledger_client(struct bh_ledger *l, uint32_t pid, uint64_t file, uint32_t client);
struct bh_ledger_object {
    uint32_t client, parent, object, class;
    uint32_t gpu;      /* UINT32_MAX: its parent's. With `reserved`: the GPU that was reserved on */
    uint64_t bytes;    /* what the driver gave; 0: no memory */
    uint64_t reserved; /* what was reserved for it, given back by this call; 0: nothing was */
};
/* An object that the driver has made. Unknown parents are kept as roots of their client (never refused: the driver
 * has made it, so it must be counted). */
void bh_ledger_object(struct bh_ledger *l, const struct bh_ledger_object *o);
/* A second name for memory, in this lease or from outside of it (source_client unknown: counts 0). `bytes` counts only
 * where the source is not known but its client is. */
void bh_ledger_dup(struct bh_ledger *l, const struct bh_ledger_object *o, uint32_t source_client,
                   uint32_t source);
void bh_ledger_drop(struct bh_ledger *l, uint32_t client,
                    uint32_t object); /* RM_FREE: the subtree; a client: all */
/* What these end is no longer held, but stays in `used` (as overhead) until the next count: the driver may not have
 * freed it yet. So before a refusal is passed on: count, and ask again. */
void bh_ledger_file_closed(struct bh_ledger *l, uint64_t file);
void bh_ledger_process_gone(struct bh_ledger *l, uint32_t pid);

/* Managed memory of a process: which GPU will use it is not known when it is mapped, so it counts on every GPU of the
 * lease that was seen. false: it would pass a cap. */
bool bh_ledger_map(struct bh_ledger *l, uint32_t pid, uint64_t bytes);
void bh_ledger_unmap(struct bh_ledger *l, uint32_t pid, uint64_t bytes);

/* What the driver counts for all processes of the lease on this GPU (managed memory is not in it). Asked for after the
 * last grant that was settled; a grant in flight may be in it or not, and counts twice until the next count if it is. */
void bh_ledger_counted(struct bh_ledger *l, uint32_t gpu, uint64_t driver_bytes);

struct bh_ledger_sum {
    uint64_t cap, held, reserved, managed, overhead,
        used;                  /* used: all of them, what the cap is held against */
    uint64_t peak, refused;    /* refused: how many times */
    uint64_t full;             /* how many of these because the ledger had no room */
    uint64_t objects, clients; /* refused, full, objects and clients are of the whole lease */
};
/* A GPU that is not known: what is held without knowing where; it is in `held` of each GPU too. */
struct bh_ledger_sum bh_ledger_sum(const struct bh_ledger *l, uint32_t gpu);
uint32_t bh_ledger_gpu_of(const struct bh_ledger *l, uint32_t client,
                          uint32_t object); /* UINT32_MAX: unknown */
bool bh_ledger_has(const struct bh_ledger *l, uint32_t client, uint32_t object);
uint64_t bh_ledger_managed(const struct bh_ledger *l, uint32_t pid); /* what it has mapped */
const char *bh_ledger_check(const struct bh_ledger *l);              /* every invariant; NULL: all hold */

/*
 * What changes a ledger, as data: whoever hears all of it can make the same ledger again. Two things are not told, for
 * they end with the process that asked the driver: reservations, and how often something was refused.
 */
enum bh_ledger_op_kind {
    BH_LEDGER_OP_NONE,
#define LEDGER_OP(name, fn, first) BH_LEDGER_OP_##name,
#include "warden/ledger_ops.def"
#undef LEDGER_OP
    BH_LEDGER_OP_N_
};
struct bh_ledger_op {
    uint32_t kind, pid;
    uint32_t client, parent, object, class, gpu, flags;
    uint64_t bytes, file;
    uint32_t source_client, source;
};
struct bh_ledger_log {
    void (*fn)(void *arg, const struct bh_ledger_op *op); /* NULL: nobody hears it */
    void *arg;
};
void bh_ledger_observe(struct bh_ledger *l, struct bh_ledger_log log);
/* Does it. False: no ledger would have told that. */
bool bh_ledger_apply(struct bh_ledger *l, const struct bh_ledger_op *op) BH_MUST_USE;
/* Tells all that makes this ledger out of a new one. */
void bh_ledger_snapshot(struct bh_ledger *l, struct bh_ledger_log to);

#endif
