/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_state.h - what the ledger keeps, for ledger.c and the check of its invariants only.
 *
 * Everything is a slot in a vector and names others by slot number: half the size of pointers, and a check can walk
 * all of it. Slots are used again, the last one given back first; what is free is a list through the slots themselves.
 * A lease of many processes has tens of thousands of objects, and a warden is to stay small with them: nothing is kept for
 * an object that can be had otherwise.
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
    /* What fits into members that are less than a word: no value is larger, which the compiler is to know too. */
    LEDGER_CLASS_MASK = (1 << 24) - 1,
    LEDGER_GPU_MASK = (1 << 6) - 1,
    LEDGER_ORDINAL_MASK = (1 << 20) - 1,
    LEDGER_SLOT_BITS = 21, /* of an object plus one */
};
#define LEDGER_BYTES_MASK ((UINT64_C(1) << 44) - 1)

#define LEDGER_POOL(T)                                    \
    struct {                                              \
        T *at;                                            \
        size_t n, cap, n_free;                            \
        uint32_t free_1; /* a free slot plus one, or 0 */ \
        uint32_t taken;  /* by ledger_take, meanwhile */  \
    }
/* link: the member of a free slot that has the next one plus one, or 0. */
#define ledger_take(p, link)                                                      \
    ((p)->free_1 ? ((p)->taken = (p)->free_1 - 1, (p)->n_free--,                  \
                    (p)->free_1 = (uint32_t)(p)->at[(p)->taken].link, (p)->taken) \
                 : ((void)bh_vec_push(p), (uint32_t)((p)->n - 1)))
#define ledger_give(p, slot, link) \
    ((p)->at[slot].link = (p)->free_1, (p)->free_1 = (slot) + 1, (void)(p)->n_free++)
#define ledger_live(p) ((p)->n - (p)->n_free)

/* Memory, held by one object or more. */
struct __attribute__((packed, aligned(4))) ledger_block {
    uint64_t bytes : 44;   /* of a free slot: the next one */
    uint64_t ordinal : 20; /* while it is told (ledger_ops.c) */
    uint32_t refs : 25;    /* 0: a free slot */
    uint32_t gpu : 6;
    bool doubt : 1; /* the driver may have freed it unseen: its end says nothing about the driver's count */
};
_Static_assert(sizeof(struct ledger_block) == 12, "there are as many as objects");
_Static_assert(LEDGER_BLOCK_MAX <= LEDGER_BYTES_MASK && LEDGER_OBJECTS_MAX - 1 <= LEDGER_ORDINAL_MASK,
               "it would not fit");

struct ledger_object {
    uint32_t client, handle; /* client: its handle */
    uint32_t parent, first, next,
        prev; /* a root has no parent; while it is told, prev is lent (ledger_ops.c) */
    uint32_t block;
    uint32_t class : 24; /* 0: not known; see ledger_class */
    uint32_t gpu : 6;
    bool live : 1, named : 1; /* not named: its name went to another object that the driver made */
};
_Static_assert(sizeof(struct ledger_object) == 32, "two of them are a line of the cache");
_Static_assert((int)LEDGER_ANYWHERE <= (int)LEDGER_GPU_MASK, "a GPU would not fit");

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

/* Objects by client and handle. What a name is lies with its object, so a place here is a number and no more: that of the
 * object plus one, below eleven bits of the name's mix, which keep a look-up from going to the wrong objects. */
_Static_assert(LEDGER_OBJECTS_MAX + LEDGER_CLIENTS_MAX < 1 << LEDGER_SLOT_BITS, "an object would not fit");
struct ledger_names {
    uint32_t *slots; /* 0: empty. Open addressing, linear probing, at most half full */
    size_t n, cap;
    uint64_t seed;
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
    struct ledger_names names;
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

/* Of ledger_names.c. */
uint32_t ledger_name_find(const struct bh_ledger *l, uint32_t client, uint32_t handle); /* or LEDGER_NONE */
void ledger_name_add(struct bh_ledger *l, uint32_t slot);    /* of a name that is free */
void ledger_name_remove(struct bh_ledger *l, uint32_t slot); /* while it still has it */

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

/* The driver's have 16 bits. What cannot be one of them is none that is known. */
static inline uint32_t ledger_class(uint32_t class)
{
    return class <= LEDGER_CLASS_MASK ? class : 0;
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
