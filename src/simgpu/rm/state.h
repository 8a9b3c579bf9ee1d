/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what the simulated resource manager keeps, for its own files only.
 *
 * Who owns what: a file owns clients and ranges; a client owns a tree of objects; an object of memory holds a
 * reference to a block; a block is a piece of one place's memory and goes with its last holder. A place is an engine
 * with its own memory: the whole card, or one GPU instance of it. An account adds up what one process has on one place.
 * Everything is reached by pointer from its owner and by number through a map; nothing is looked for by walking.
 */
#ifndef BH_SIMGPU_RM_STATE_H
#define BH_SIMGPU_RM_STATE_H

#include "base/idmap.h"
#include "base/mem.h"
#include "gpu/abi/rm.h"
#include "record/decode.h"
#include "simgpu/rm/extent.h"
#include "simgpu/rm/rm.h"
#include "simgpu/rm/sched.h"

/* A tenant can fill these; then calls answer 0x1a (insufficient resources), ENFILE or ENOMEM. What freed memory leaves is just lost. */
enum {
    SIM_FILES_MAX = 1 << 16,
    SIM_CLIENTS_MAX = 1 << 16,
    SIM_OBJECTS_MAX = 1 << 20,
    SIM_RANGES_MAX = 1 << 18,
    SIM_DEPTH_MAX = 16,            /* of a tree of objects */
    SIM_QUEUE_MAX = 4096,          /* pieces of work a channel holds */
    SIM_FULL_CHUNKS_MAX = 1 << 14, /* 1 GiB of this machine's memory for contents that are no plain fill */
    SIM_CHUNKS_MAX = 1 << 22,
    SIM_EVENTS = 1024,
    SIM_SAMPLES = 16,
};
#define SIM_NONE     UINT32_MAX
#define SIM_UNIT     (UINT64_C(64) << 10) /* memory is given in these below SIM_LARGE, above it in SIM_LARGE */
#define SIM_LARGE    (UINT64_C(2) << 20)
#define SIM_WORK_MAX (UINT64_C(1) << 60)

/* What the manager takes for itself: page tables, instance blocks, context buffers. It is in use on the card and in no
 * process's count (measured: a context on an H200 counts as the 518 MiB that it asked for by name). */
#define SIM_VASPACE_BYTES (UINT64_C(512) << 10)
#define SIM_GROUP_BYTES   (UINT64_C(1) << 20)
#define SIM_CHANNEL_BYTES (UINT64_C(128) << 10)

enum sim_kind {
    SIM_ROOT,
    SIM_DEVICE,
    SIM_SUBDEVICE,
    SIM_MEMORY, /* may be video memory */
    SIM_VASPACE,
    SIM_GROUP,
    SIM_CHANNEL,
    SIM_PARTITION, /* a client's place is a GPU instance */
    SIM_EXEC,      /* and within it a compute instance */
    SIM_PLAIN,
    SIM_ABSENT, /* known, and refused */
    SIM_KINDS,
};

struct sim_class {
    uint32_t class, parents; /* parents: bits of kinds */
    int32_t params;          /* bytes; -1: any */
    enum sim_kind kind;
};

struct sim_block;
struct sim_chunk {           /* SIM_UNIT bytes of contents */
    uint64_t key;            /* GPU << 48 | physical address / SIM_UNIT */
    struct sim_block *block; /* NULL: residue of memory that was freed and not scrubbed */
    struct sim_chunk *next, *prev;
    uint8_t *bytes; /* NULL: all of it is `fill` */
    uint8_t fill;
    uint32_t slot;
};

struct sim_place {
    bool made;
    uint32_t gpu, gi; /* gi SIM_NONE: the whole card */
    struct bh_sim_gi *instance;
    struct bh_extents memory;
    struct bh_sim_sched *sched;
    uint64_t
        unowned_bytes; /* of no process: managed memory, mapped memory whose objects are gone, the manager's own */
    uint32_t pins; /* blocks, groups, channels, subscriptions, registrations: it cannot go */
    uint32_t n_groups, n_channels;
};

struct sim_block {
    struct sim_place *place;
    uint64_t base, bytes;
    struct sim_object *first, *last; /* whoever refers to it, oldest first: that one is the owner */
    uint32_t n_refs, n_maps;         /* n_maps: ranges of UVM files that hold it */
    struct sim_chunk *chunks;        /* its contents, where they are not `fill` */
    uint8_t fill;
};

struct sim_account { /* of one process on one place */
    uint64_t key;
    uint32_t slot, pid, gpu, gi, ci;
    uint64_t private_bytes, owned_bytes, duped_bytes, gone_busy_ns, gone_turns;
    uint32_t n_objects, n_channels;
    struct sim_object *groups;
    struct sim_account *next, *prev; /* of the GPU */
};

struct sim_object {
    uint32_t slot, handle, depth, gpu; /* gpu SIM_NONE: of none */
    const struct sim_class *class;
    struct sim_client *client;
    struct sim_object *parent, *first, *next, *prev; /* first: child; next, prev: siblings */
    struct sim_account *account;
    struct sim_block *block;
    struct sim_object *ref_next, *ref_prev; /* others with the same block */
    struct sim_place *place;                /* of a group, channel or partition */
    uint64_t group, channel; /* names in the scheduler; a channel without a group has one made for it */
    struct sim_object *group_next, *group_prev; /* of the account: objects that made a group */
    uint64_t last_fence;
    uint32_t level, lost_at; /* lost_at: how often the GPU was lost before a channel was made */
    uint32_t gi, ci;         /* of partitions */
    uint32_t share, share_with;
};

struct sim_client {
    uint32_t slot, handle, pid, uid, next_handle, n_objects;
    struct sim_file *file;
    struct sim_object *root;
    struct sim_client *next, *prev;
    BH_VEC(struct sim_object *) partitions;
};

struct sim_range {
    uint64_t id, base, bytes;
    uint32_t slot;
    bool managed, external;
    struct sim_file *file;
    struct sim_range *next, *prev;
    struct sim_block *block; /* managed: where it is now; external: what is mapped */
};

struct sim_file {
    uint32_t slot, id, kind, gpu, minor, pid, uid;
    uint64_t start; /* of the process that opened it */
    struct sim_client *clients;
    struct sim_range *ranges;
    BH_VEC(struct sim_range *) external; /* those with addresses, by address; no two overlap */
    bool uvm_ready;
    struct sim_place *uvm[BH_SIM_GPUS_MAX]; /* registered GPUs */
};

struct sim_sample {
    uint64_t ns, busy_ns;
};

struct sim_gpu {
    struct bh_sim_mig mig;
    struct sim_place whole, gis[BH_SIM_GIS_MAX];
    struct sim_account *accounts;
    uint32_t n_objects;
    bool lost;
    uint32_t times_lost, hot_c, throttle, links_down;
    uint64_t ecc_uncorrected;
    uint32_t remapped_rows, remap_pending;
    struct sim_sample samples[SIM_SAMPLES];
    uint32_t n_samples; /* ever */
};

struct bh_sim_rm {
    struct bh_sim_node node;
    struct sim_gpu gpus[BH_SIM_GPUS_MAX];
    struct bh_idmap file_ids, client_handles, object_handles, account_keys, range_ids, chunk_keys;
    struct bh_idmap classes, commands;
    BH_VEC(struct sim_file *) files; /* slots may be NULL; so below */
    BH_VEC(struct sim_client *) clients;
    BH_VEC(struct sim_object *) objects;
    BH_VEC(struct sim_account *) accounts;
    BH_VEC(struct sim_range *) ranges;
    BH_VEC(struct sim_chunk *) chunks;
    BH_VEC(uint32_t) free_files, free_clients, free_objects, free_accounts, free_ranges, free_chunks;
    uint64_t now_ns, last_range, last_name;
    uint32_t last_file, n_clients_named, n_full_chunks;
    uint64_t n_residue;
    struct sim_chunk *residue;
    /* faults */
    bool scrub_off;
    uint32_t slow_ms, fail_status, fail_every, library_status;
    uint64_t n_calls, n_allocations;
    char library_call[64], driver[20];
    struct bh_sim_event events[SIM_EVENTS];
    uint64_t n_events; /* ever */
    /* journal */
    struct bh_recording *journal;
    struct bh_objects journal_objects;
    BH_VEC(uint32_t) journal_pids;
    uint32_t journal_pid;
};

/* A table of pointers with slots that are used again. push: the slot of p. */
#define SIM_PUT(rm, table, p)                                                                           \
    ((p)->slot = (rm)->free_##table.n ? (rm)->free_##table.at[--(rm)->free_##table.n]                   \
                                      : ((void)bh_vec_push(&(rm)->table), (uint32_t)(rm)->table.n - 1), \
     (rm)->table.at[(p)->slot] = (p))
#define SIM_DROP(rm, table, p) \
    ((rm)->table.at[(p)->slot] = NULL, *bh_vec_push(&(rm)->free_##table) = (p)->slot, free(p))
#define SIM_LIVE(rm, table) ((rm)->table.n - (rm)->free_##table.n)

/* Doubly linked, newest first. */
#define SIM_LINK(head, p, next, prev) \
    ((p)->next = *(head), (p)->prev = NULL, *(head) ? (void)((*(head))->prev = (p)) : (void)0, *(head) = (p))
#define SIM_UNLINK(head, p, next, prev)                                             \
    ((p)->prev ? (void)((p)->prev->next = (p)->next) : (void)(*(head) = (p)->next), \
     (p)->next ? (void)((p)->next->prev = (p)->prev) : (void)0)

/* One call on its way through the manager. */
struct sim_call {
    struct bh_sim_rm *rm;
    struct sim_file *file;
    const struct bh_sim_caller *who;
    struct sim_client *client;
    struct sim_object *object; /* of a control */
    uint32_t command;
    uint8_t *params;
    size_t n_params;
};

/* rm.c */
struct sim_file *bh_simrm_file(const struct bh_sim_rm *rm, uint32_t file);

/* object.c */
bool bh_simrm_may_use(const struct sim_file *file, const struct sim_client *client);
struct sim_client *bh_simrm_client_any(const struct bh_sim_rm *rm, uint32_t handle); /* whoever's */
/* Only one that this file may use; NULL: none. */
struct sim_client *bh_simrm_client(const struct bh_sim_rm *rm, const struct sim_file *file, uint32_t handle);
struct sim_object *bh_simrm_object(const struct bh_sim_rm *rm, const struct sim_client *client,
                                   uint32_t handle);
uint32_t bh_simrm_client_add(struct sim_call *c, const struct sim_class *class, uint32_t *handle);
void bh_simrm_client_free(struct bh_sim_rm *rm, struct sim_client *client);
/* A new object below parent; *handle 0: one is chosen. Statuses. Nothing of its kind is set up yet. */
uint32_t bh_simrm_object_add(struct bh_sim_rm *rm, struct sim_object *parent, const struct sim_class *class,
                             uint32_t gpu, uint32_t *handle, struct sim_object **ret);
void bh_simrm_object_free(struct bh_sim_rm *rm, struct sim_object *object); /* and the tree below it */

/* alloc.c */
const struct sim_class *bh_simrm_class(const struct bh_sim_rm *rm, uint32_t class);
void bh_simrm_classes_init(struct bh_sim_rm *rm);
/* Undoes what an object's kind set up; its children are gone. */
void bh_simrm_kind_fini(struct bh_sim_rm *rm, struct sim_object *object);
int bh_simrm_alloc(struct sim_call *c, void *arg, size_t n);
int bh_simrm_alloc_object(struct sim_call *c, void *arg, size_t n);
int bh_simrm_alloc_memory(struct sim_call *c, void *arg, size_t n);
int bh_simrm_heap(struct sim_call *c, void *arg, size_t n);
int bh_simrm_dup(struct sim_call *c, void *arg, size_t n);
int bh_simrm_share(struct sim_call *c, void *arg, size_t n);

/* place.c */
void bh_simrm_places_init(struct bh_sim_rm *rm);
void bh_simrm_places_fini(struct bh_sim_rm *rm);
/* Where a client's memory and channels on a GPU are; NULL: MIG is on and the client has no instance. */
struct sim_place *bh_simrm_place(struct bh_sim_rm *rm, const struct sim_client *client, uint32_t gpu);
struct sim_object *bh_simrm_partition(const struct sim_client *client, uint32_t gpu); /* NULL: none */

/* memory.c */
uint64_t bh_simrm_round(uint64_t bytes); /* 0: too large */
struct sim_block *bh_simrm_block_new(struct bh_sim_rm *rm, struct sim_place *place,
                                     uint64_t bytes); /* NULL: no room */
/* Does it count as its owner's? What was not asked for as memory does not. */
static inline bool bh_simrm_block_counts(const struct sim_block *b)
{
    return b->first && b->first->class->kind == SIM_MEMORY;
}
void bh_simrm_block_hold(struct sim_block *b, struct sim_object *object);
void bh_simrm_block_release(struct bh_sim_rm *rm, struct sim_object *object);
void bh_simrm_block_map(struct sim_block *b);
void bh_simrm_block_unmap(struct bh_sim_rm *rm, struct sim_block *b);
struct sim_account *bh_simrm_account(struct bh_sim_rm *rm, const struct sim_client *client, uint32_t gpu);
void bh_simrm_account_drop(struct bh_sim_rm *rm, struct sim_account *a); /* an object of it is gone */

/* content.c */
void bh_simrm_content_free(struct bh_sim_rm *rm, struct sim_block *b);  /* scrubs, or leaves residue */
void bh_simrm_content_adopt(struct bh_sim_rm *rm, struct sim_block *b); /* residue at its addresses */
void bh_simrm_scrub(struct bh_sim_rm *rm);                              /* all residue */

/* control.c */
struct sim_command {
    uint32_t command;
    int32_t params; /* bytes; -1: any */
    enum sim_kind on;
    bool admin;
    uint32_t status;
    uint32_t (*handle)(struct sim_call *c); /* NULL: the status is the answer */
};
const struct sim_command *bh_simrm_command(const struct bh_sim_rm *rm, uint32_t command); /* NULL: unknown */
void bh_simrm_commands_init(struct bh_sim_rm *rm);
int bh_simrm_control(struct sim_call *c, void *arg, size_t n);

/* escape.c: numbers of the control and GPU files. 0 or a negative errno; the status is in arg. Handlers return a
 * status or a negative errno. */
/* view.c: has it memory or channels here? A program that only looks has neither. */
bool bh_simrm_is_shown(const struct sim_account *a);
uint32_t bh_simrm_gpu_id(const struct bh_sim_gpu *gpu); /* the name of a card, from its place on the bus */
int bh_simrm_escape(struct sim_call *c, uint32_t number, void *arg, size_t n);

/* uvm.c */
void bh_simrm_uuid(const struct bh_sim_gpu *gpu, uint8_t ret[16]); /* the bytes of its UUID */
int bh_simrm_uvm(struct sim_call *c, uint32_t number, void *arg, size_t n);
void bh_simrm_uvm_close(struct bh_sim_rm *rm, struct sim_file *file);

/* fault.c */
void bh_simrm_event(struct bh_sim_rm *rm, uint32_t gpu, enum bh_sim_event_kind kind, uint64_t data);
/* The status with which this call must fail because somebody said so; RM_OK: it need not. */
uint32_t bh_simrm_fault(struct bh_sim_rm *rm);
bool bh_simrm_fault_memory(struct bh_sim_rm *rm); /* the node's every n-th allocation of memory */
bool bh_simrm_channel_dead(const struct bh_sim_rm *rm, const struct sim_object *channel);

/* journal.c */
void bh_simrm_journal_file(struct bh_sim_rm *rm, const struct sim_file *f, uint32_t pid,
                           enum bh_call_kind kind, const struct bh_sim_map *map);
void bh_simrm_journal_ioctl(const struct sim_call *c, uint32_t cmd, const void *arg, size_t n, int rc);

#endif
