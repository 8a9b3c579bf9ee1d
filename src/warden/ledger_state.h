/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_state.h - what the ledger keeps, for ledger.c and the check of its invariants only.
 *
 * Everything is a slot in a vector and names others by slot number: half the size of pointers, and a check can walk
 * all of it. Slots are used again, the last one given back first.
 */
#ifndef BH_WARDEN_LEDGER_STATE_H
#define BH_WARDEN_LEDGER_STATE_H

#include "base/idmap.h"
#include "base/mem.h"
#include "gpu/abi/rm.h"
#include "warden/ledger.h"

#define LEDGER_NONE BH_IDMAP_NONE
/* No GPU has more; a tale of more counts as this much, so that a full ledger still adds up in 64 bits. */
#define LEDGER_BLOCK_MAX (UINT64_C(1) << 43)
enum {
    LEDGER_OBJECTS_MAX = 1 << 20,
    LEDGER_CLIENTS_MAX = 1 << 16,     /* also of claims, and of processes */
    LEDGER_ANYWHERE = BH_LEDGER_GPUS, /* the GPU of what has none that is known: counts on each */
};

#define LEDGER_POOL(T)         \
    struct {                   \
        T *at;                 \
        size_t n, cap;         \
        BH_VEC(uint32_t) free; \
    }
#define ledger_take(p) \
    ((p)->free.n ? (p)->free.at[--(p)->free.n] : ((void)bh_vec_push(p), (uint32_t)((p)->n - 1)))
#define ledger_give(p, slot) (*bh_vec_push(&(p)->free) = (slot))
#define ledger_live(p)       ((p)->n - (p)->free.n)

/* Memory, held by one object or more. */
struct ledger_block {
    uint64_t bytes;
    uint32_t refs;    /* 0: a free slot */
    uint32_t ordinal; /* while it is told (ledger_ops.c) */
    uint8_t gpu;
    bool doubt; /* the driver may have freed it unseen: its end says nothing about the driver's count */
};

struct ledger_object {
    uint32_t client, handle;            /* client: its handle */
    uint32_t parent, first, next, prev; /* a root has no parent */
    uint32_t block;
    uint32_t class;   /* 0: not known */
    uint32_t ordinal; /* while it is told (ledger_ops.c) */
    uint8_t gpu;
    bool live, named; /* not named: its name went to another object that the driver made */
};

/* A process has a client, made on a file. Usually a client has one claim; it lives as long as the last. */
enum ledger_list { LEDGER_CLIENT, LEDGER_FILE, LEDGER_PROCESS, LEDGER_LISTS };
struct ledger_claim {
    struct {
        uint32_t owner, next, prev;
    } in[LEDGER_LISTS];
    bool live;
};
struct ledger_owner {
    uint64_t key;   /* client handle, file number or pid */
    uint32_t first; /* claim */
    uint32_t root;  /* of a client: its object */
    uint64_t managed_bytes;
    bool live;
};
struct ledger_owners {
    struct bh_idmap ids;
    LEDGER_POOL(struct ledger_owner) pool;
};

struct ledger_gpu {
    uint64_t held;     /* sum of its blocks */
    uint64_t lost;     /* held, but without a name: the ledger was full */
    uint64_t reserved; /* asked of the driver, not answered yet */
    uint64_t counted;  /* the driver's count, carried on by what was granted and freed since */
    uint64_t peak;
    bool seen;
};

struct bh_ledger {
    uint64_t cap_bytes, managed_bytes, refused, full;
    struct ledger_gpu gpus[BH_LEDGER_GPUS + 1];
    struct bh_idmap names; /* client handle and object handle, to object */
    LEDGER_POOL(struct ledger_object) objects;
    LEDGER_POOL(struct ledger_block) blocks;
    LEDGER_POOL(struct ledger_claim) claims;
    struct ledger_owners owners[LEDGER_LISTS];
    uint64_t runs; /* changes of what bh_ledger_runs finds (ledger_walk.h) */
    struct bh_ledger_log log;
    bool begun; /* something was done after what was told at once */
};

/* Of ledger.c, for ledger_ops.c. */
uint32_t ledger_object_new(struct bh_ledger *l, const struct ledger_object *like);
uint32_t ledger_client_get(struct bh_ledger *l, uint32_t handle);
void ledger_peak_note(struct bh_ledger *l, uint32_t gpu);

static inline void ledger_tell(const struct bh_ledger *l, const struct bh_ledger_op *op)
{
    if (l->log.fn)
        l->log.fn(l->log.arg, op);
}

/* The host classes of all generations end alike. */
static inline bool ledger_is_channel(uint32_t class)
{
    return (class & 0xff) == 0x6f && class <= 0xffff;
}

/* Does it run on the card, or is it what takes turns there? */
static inline bool ledger_is_run(uint32_t class)
{
    return class == RM_CLASS_CHANNEL_GROUP || ledger_is_channel(class);
}

static inline uint64_t ledger_key(uint32_t client, uint32_t handle)
{
    return (uint64_t)client << 32 | handle;
}

static inline uint64_t ledger_sum(uint64_t a, uint64_t b) /* or all ones */
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t ledger_less(uint64_t a, uint64_t b) /* or 0 */
{
    return a > b ? a - b : 0;
}

#endif
