/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - what the scheduler can hand out: nodes, their GPUs, the fabric they hang in, who holds what.
 *
 * In code it is a *shelf*, since core/model/fleet.h has the description of the hardware under the other name. A
 * *hold* is one request placed on one node. All amounts are integers, ids are dense, nothing is ever moved in
 * memory order by chance: the same calls give the same shelf.
 *
 * Three things every index above needs:
 *   change log   each change of a node appends the node's id; who remembers a position can catch up cheaply.
 *   undo log     bh_shelf_mark() ... bh_shelf_rollback() takes back all holds, releases and health
 *                changes since: a gang is tried in place, never on a copy. Marks nest.
 *   domains      a tree (region > block > rack > NVLink domain) with counters of what is wholly free
 *                below, kept on the path at each change.
 *
 * What is releasing is not free: bh_shelf_release() says that a hold will end, bh_shelf_free() that it has.
 * What is not healthy is not free either, and what runs there stays until somebody ends it.
 */
#ifndef BH_CORE_SCHED_FLEET_H
#define BH_CORE_SCHED_FLEET_H

#include "base/err.h"
#include "base/mem.h"
#include "core/model/catalog.h"
#include "core/sched/request.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_level { BH_LEVEL_LINK, BH_LEVEL_RACK, BH_LEVEL_BLOCK, BH_LEVEL_REGION, BH_LEVELS };
enum bh_health {
    BH_HEALTH_OK,
    BH_HEALTH_CORDON,      /* nothing new; what runs may go on */
    BH_HEALTH_DRAIN,       /* nothing new; what runs is to be moved away */
    BH_HEALTH_FAILED,      /* nothing works */
    BH_HEALTH_QUARANTINED, /* not proved clean: nothing new until a person says so */
    BH_HEALTHS
};
/* How a GPU is used now; it follows from its holds, and an idle GPU is of no kind. */
enum bh_gpu_use { BH_USE_IDLE, BH_USE_WHOLE, BH_USE_SHARES, BH_USE_MIG };
enum bh_hold_state { BH_HOLD_FREE, BH_HOLD_TAKEN, BH_HOLD_RELEASING };

#define BH_TRUST_MIXED UINT32_MAX /* not a trust domain: several that do not mind */

/* Who is on a GPU, a node or an NVLink domain, as far as sharing goes. */
struct bh_crowd {
    uint32_t holds;
    uint32_t strict; /* of them, how many refuse another trust domain here */
    uint32_t trust;  /* of all of them, or BH_TRUST_MIXED; says nothing while holds is 0 */
};

struct bh_shelf_gpu {
    struct bh_crowd crowd;
    uint32_t mib_all, mib_free; /* for shares */
    uint16_t milli_free;        /* for shares; 0 when held whole or cut */
    uint8_t use;                /* enum bh_gpu_use */
    uint8_t health;             /* enum bh_health */
    uint8_t mechanism;          /* of its shares */
    uint8_t kinds, avoid;       /* of all its holds together */
    uint8_t numa;
    uint16_t gone; /* of its holds, how many are releasing */
    /* MIG: bit i is memory slice i. An instance that was cut and is held by nobody may be cut anew. */
    uint16_t mig_held;
    uint8_t mig_compute;               /* compute slices held */
    uint8_t mig_stale;                 /* used in another way since: mig_at says nothing, nothing is cut */
    uint8_t mig_at[BH_MIG_SLICES_MAX]; /* profile index + 1 of the instance that starts here; 0: none */
};

struct bh_shelf_node {
    /* What a score looks at for every change, in one line of cache: */
    uint64_t changed; /* position of its last entry in the change log */
    struct bh_crowd crowd;
    uint32_t link; /* its NVLink domain, or BH_NONE */
    uint32_t cpu_free;
    uint8_t n_gpus;
    uint8_t model;               /* BH_MODELS_MAX without GPUs */
    uint8_t n_whole;             /* GPUs that can be given whole now */
    uint8_t health;              /* enum bh_health */
    uint16_t open[BH_NODE_GPUS]; /* thousandths that can be given now, per GPU; 0 where sick, cut or absent */
    /* The rest. */
    uint64_t mem_free;
    uint64_t features, pools;
    uint32_t domain;     /* the lowest domain it hangs in, or BH_NONE */
    uint32_t first_gpu;  /* its GPUs are gpus[first_gpu .. +n_gpus) */
    uint32_t holds_max;  /* 0: no bound */
    uint32_t first_hold; /* list of its holds, or BH_NONE */
    uint32_t rank;       /* ties go to the smallest; unique */
    uint32_t next;       /* next node of the same domain, or BH_NONE */
    uint32_t n_gone;     /* GPUs that will be whole when what is releasing is gone */
    uint32_t milli_gone; /* GPU thousandths held by releasing holds */
    uint32_t cpu_all;
    uint64_t mem_all;
    uint16_t sizes[BH_NODE_GPUS + 1]; /* holds by GPU count; [0]: shares and instances. CPU-only: nowhere */
};

/* Counters are over all nodes below. Only healthy ones are counted, releasing is not free. */
struct bh_shelf_domain {
    uint32_t parent, first_child, next;  /* BH_NONE ends a list */
    uint32_t first_node;                 /* that hang here directly */
    uint8_t level;                       /* enum bh_level */
    uint64_t models;                     /* of the nodes below */
    uint32_t n_nodes, n_gpus;            /* healthy or not */
    uint32_t n_whole;                    /* GPUs that can be given whole now */
    uint32_t n_gone;                     /* GPUs that will be whole when what is releasing is gone */
    uint32_t by_whole[BH_NODE_GPUS + 1]; /* nodes that have just so many */
    struct bh_crowd crowd; /* of GPU holds below; above BH_LEVEL_LINK only their number is kept */
};

/* One request on one node. */
struct bh_hold {
    uint32_t node, class_;
    uint32_t prev, next; /* in the node's list */
    uint16_t gpus;       /* bit i: GPU i of the node */
    uint8_t state;       /* enum bh_hold_state */
    uint8_t mig_start;   /* BH_FORM_MIG: its first memory slice */
    uint8_t mig_recut;   /* BH_FORM_MIG: idle instances were cut anew for it */
};

struct bh_shelf_model {
    const struct bh_gpu_model *known; /* NULL: not in the catalogue, never cut */
    uint64_t milli_all;               /* of all its GPUs on the shelf, healthy or not */
    uint64_t milli_used;              /* of them, held; an instance counts its compute slices */
};

/* How to take one change back. */
struct bh_shelf_undo {
    uint8_t op;
    uint8_t health;   /* as it was */
    uint16_t stale;   /* the GPUs of the hold whose mig_stale was set */
    uint32_t id, gpu; /* hold, or node and GPU */
    struct bh_hold hold;
    uint8_t mig_at[BH_MIG_SLICES_MAX];
};

struct bh_shelf {
    const struct bh_requests *requests; /* borrowed: holds speak of its classes */
    struct bh_shelf_model models[BH_MODELS_MAX];
    uint32_t n_models;
    BH_VEC(struct bh_shelf_node) nodes;
    BH_VEC(struct bh_shelf_gpu) gpus;
    BH_VEC(struct bh_shelf_domain) domains;
    BH_VEC(struct bh_hold) holds;
    uint32_t free_hold;  /* list of free hold ids, or BH_NONE */
    uint32_t n_taken;    /* holds taken or releasing */
    uint64_t milli_used; /* thousandths of GPUs held, all forms; an instance counts its compute slices */
    uint64_t milli_all;
    uint64_t epoch;    /* changes when nodes or domains are added: indexes start anew */
    uint32_t *log;     /* ring of node ids */
    uint32_t log_cap;  /* a power of two */
    uint64_t log_head; /* position of the next entry */
    BH_VEC(struct bh_shelf_undo) undo;
    uint32_t marks;      /* open ones; nothing is remembered while 0 */
    uint32_t first_root; /* list of domains without a parent, or BH_NONE */
};

/* ---- building ---- */

void bh_shelf_init(struct bh_shelf *s, const struct bh_requests *requests);
void bh_shelf_fini(struct bh_shelf *s);
int bh_shelf_add_model(struct bh_shelf *s, const struct bh_gpu_model *known, uint32_t *ret_model,
                       struct bh_err *err) BH_MUST_USE;
/* parent: of a higher level, or BH_NONE. */
int bh_shelf_add_domain(struct bh_shelf *s, enum bh_level level, uint32_t parent, uint32_t *ret_domain,
                        struct bh_err *err) BH_MUST_USE;
struct bh_node_spec {
    uint32_t model;  /* ignored without GPUs */
    uint32_t domain; /* or BH_NONE */
    uint32_t rank;   /* unique: what ties go by */
    uint32_t n_gpus;
    uint32_t gpu_mib; /* of each; 0: memory of shares is not counted */
    uint32_t n_numa;  /* its GPUs are spread over so many in order; 0 and 1: one */
    uint32_t cpu_milli;
    uint64_t mem_mib, features, pools;
    uint32_t holds_max; /* 0: no bound */
};
/* Not while a mark is open. */
int bh_shelf_add_node(struct bh_shelf *s, const struct bh_node_spec *spec, uint32_t *ret_node,
                      struct bh_err *err) BH_MUST_USE;
/* Room for so many holds and undo entries in all, so that none is allocated while deciding. */
void bh_shelf_reserve(struct bh_shelf *s, size_t holds, size_t undo);

/* ---- taking and giving back ---- */

/* A place for one hold: from bh_pick_*(), or a record of what runs where. */
struct bh_spot {
    uint32_t node;
    uint16_t gpus;       /* bit i: GPU i of the node */
    uint8_t mig_start;   /* BH_FORM_MIG */
    int32_t score_milli; /* why it won; not read by the shelf */
};
/* Is there room for it just there, and may it be there: amounts, models, features, pools, health, trust. */
bool bh_shelf_fits(const struct bh_shelf *s, const struct bh_request *r, const struct bh_spot *spot);
/* Which GPUs of the node it may use, each by itself: 0 when it may not be on the node at all.
 * BH_FORM_CPU: all bits when the node takes it. */
uint32_t bh_shelf_usable(const struct bh_shelf *s, const struct bh_request *r, uint32_t node);
/* Refused (BH_CONFLICT) and nothing changed when it does not fit. */
int bh_shelf_take(struct bh_shelf *s, uint32_t class_, const struct bh_spot *spot, uint32_t *ret_hold,
                  struct bh_err *err) BH_MUST_USE;
void bh_shelf_release(struct bh_shelf *s, uint32_t hold); /* it will end; a second time: nothing */
void bh_shelf_free(struct bh_shelf *s, uint32_t hold);    /* it has ended, released before or not */
/* gpu: of the node, or BH_NONE for the node itself. */
void bh_shelf_set_health(struct bh_shelf *s, uint32_t node, uint32_t gpu, enum bh_health health);

/* ---- trying ---- */

struct bh_mark {
    size_t undo;    /* entries before it */
    uint32_t depth; /* marks open before it */
};
struct bh_mark bh_shelf_mark(struct bh_shelf *s);
/* Both close the mark and those opened after it. */
void bh_shelf_rollback(struct bh_shelf *s, struct bh_mark mark);
void bh_shelf_commit(struct bh_shelf *s, struct bh_mark mark); /* an outer mark still takes it back */

/* ---- asking ---- */

/* Nodes of `per_node` whole GPUs that fit below the domain by its counters alone, at most. */
uint32_t bh_shelf_domain_pieces(const struct bh_shelf *s, uint32_t domain, uint32_t per_node);
/*
 * The smallest domain that has room for n pieces of per_node whole GPUs: of the lowest level that has one
 * (from `lowest` to `highest`), the one with the fewest whole GPUs left over, then the smallest id. BH_NONE:
 * no domain has. Counters alone: models, trust, processors and memory are for bh_pick_within() to see.
 */
uint32_t bh_shelf_smallest_domain(const struct bh_shelf *s, enum bh_level lowest, enum bh_level highest,
                                  uint64_t models, uint32_t per_node, uint32_t n);
/* A walk of `top` and all domains below it, parents first: begin with top, ends with BH_NONE. !down: leave out
 * what is below `at`. */
uint32_t bh_shelf_domain_next(const struct bh_shelf *s, uint32_t top, uint32_t at, bool down);
/* The domain of this level above the node, or BH_NONE. */
uint32_t bh_shelf_domain_of(const struct bh_shelf *s, uint32_t node, enum bh_level level);
/* Every counter recomputed from the holds and compared; for tests and after loading. */
bool bh_shelf_sound(const struct bh_shelf *s);

#endif
