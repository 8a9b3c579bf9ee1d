/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what the files of the CUDA stand-in share.
 *
 * The library stands where the vendor's does: programs load it as libcuda.so.1, and it asks a simulated node's resource
 * manager for everything through simgpu/drv.h, with the calls the vendor's library makes. What it adds is only what
 * the silicon would: a kernel is a duration, memory has contents, a doorbell is a message.
 *
 * Kernels. Any image is accepted; if it is PTX text, its `.entry` names are the ones that exist. `spin` takes one 64-bit
 * parameter, nanoseconds. `fault` touches an address that nobody mapped. Any other name may end in how long it runs:
 * `foo_250us`, `foo_8ms`, `foo_2s`; without that it runs for 10 us.
 *
 * Locks. cu.lock guards what the process has (devices, addresses, live handles), a context's lock its objects and
 * its calls to the driver. The order is context, then process. Nothing waits for work under a lock.
 *
 * Suspending. Every call of the interface begins with BH_CU_CALL, so that another process can stop this one between
 * calls, take its memory off the card and bring it back (freeze.c).
 */
#ifndef BH_SIMGPU_CUDA_INTERNAL_H
#define BH_SIMGPU_CUDA_INTERNAL_H

#include "base/mem.h"
#include "base/units.h"
#include "gpu/abi/cuda.h"
#include "gpu/abi/rm.h"
#include "simgpu/cuda/play.h"
#include "simgpu/drv.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BH_CU_PAGE                 (UINT64_C(2) << 20) /* memory comes in pieces of this */
#define BH_CU_SMALL                (UINT64_C(1) << 20) /* up to here, several share a piece */
#define BH_CU_UNIT                 UINT64_C(512)       /* a pointer is aligned to this */
#define BH_CU_ALIAS(alias_, name_) extern __typeof__(name_) alias_ __attribute__((alias(#name_)))
#define BH_CU_ROUND(n, to)         (((n) + (to) - 1) / (to) * (to))

enum { BH_CU_CHANNELS_MAX = 64, BH_CU_KERNEL_NS = 10000, BH_CU_DRIVER_VERSION = 13000 };

struct bh_cu_device {
    uint32_t gpu, gi, ci; /* gi UINT32_MAX: the whole GPU */
    char name[96], pci[16];
    uint8_t uuid[16];
    uint32_t sm, sm_mhz, memory_mhz, ecc, switch_group, links;
    bool ampere;
    pthread_mutex_t lock; /* of the three below */
    bool started;
    struct bh_play play; /* the process's own objects on this GPU */
    CUcontext primary;
    uint32_t primary_refs, primary_flags;
    uint32_t contexts, alive;                    /* ever; now */
    bool spaced;                                 /* the UVM file knows its address space */
    bool pooled;                                 /* the first pool's memory was set up */
    CUmemoryPool default_pool, graph_pool, pool; /* pool: the one in use; NULL: the default */
    BH_VEC(CUmemoryPool) pools;
};

struct bh_cu_channel {
    uint32_t handle;
    uint64_t last, done; /* fences: the last given out, the last known to be done */
    uint64_t fault;      /* the context ends when this one is done; 0: none */
};

/* The ways to obtain memory whose calls the recording shows. */
enum bh_cu_shape {
    BH_CU_SHAPE_PLAIN,
    BH_CU_SHAPE_VMM,
    BH_CU_SHAPE_POOL,
    BH_CU_SHAPE_ARRAY,
    BH_CU_SHAPE_GRAPH,
    BH_CU_SHAPE_HOST,
    BH_CU_SHAPE_N_,
};

/* One piece of memory of the resource manager. */
struct bh_cu_mem {
    struct bh_cu_mem *next, **self; /* in the list of all of them, under cu.lock */
    enum bh_cu_shape shape;         /* BH_CU_SHAPE_N_: somebody else's, by another name */
    bool lent;                      /* others were let in */
    struct bh_cu_kept *kept;        /* its contents, while it is not on the card */
    struct bh_cu_device *device;
    int fd, uvm;
    uint32_t client, parent, handle, refs; /* refs under cu.lock */
    uint64_t bytes;
    uint32_t third_party;     /* the object that makes it known to others; 0: it is not */
    uint32_t retained;        /* handles beyond the first; under cu.lock */
    CUmemAllocationProp prop; /* type 0: not made as a handle */
};

struct bh_cu_slab { /* a piece that several small allocations share, in units of BH_CU_UNIT */
    struct bh_cu_mem *mem;
    uint64_t base;
    uint32_t used;
    uint64_t bits[BH_CU_PAGE / BH_CU_UNIT / 64];
};

struct CUctx_st {
    pthread_mutex_t lock;
    struct bh_cu_device *device;
    struct bh_play play;
    int fd, uvm; /* of the files that belong to play */
    uint32_t client, parent, subdevice;
    struct bh_cu_channel channels[BH_CU_CHANNELS_MAX];
    uint32_t n_channels, next_channel;
    unsigned flags;
    uint64_t id;
    size_t limits[CU_LIMIT_N_];
    bool primary, first; /* first: of the process on this device */
    int error;           /* an enum cuda_result that stays */
    CUstream null_stream;
    BH_VEC(CUstream) streams;
    BH_VEC(struct bh_cu_slab *) slabs;
    uint64_t event_seq; /* of the node's events when it was made */
};

struct CUstream_st {
    CUcontext ctx;
    struct bh_cu_channel *channel;
    uint64_t id, last; /* last: its last fence on the channel */
    uint64_t until_ns; /* when its work would be done if it were alone */
    unsigned flags;
    int priority;
    CUgraph capture;
    BH_VEC(struct {
        struct bh_cu_channel *channel;
        uint64_t fence;
    })
    after; /* before its next work starts */
};

struct CUevent_st {
    CUcontext ctx;
    struct bh_cu_channel *channel; /* NULL: never recorded */
    uint64_t fence, at_ns;
    unsigned flags;
};

/* What a pointer is. */
enum bh_cu_what {
    BH_CU_PLAIN,
    BH_CU_TEXTURE,
    BH_CU_SLAB,
    BH_CU_RESERVED,
    BH_CU_POOL,
    BH_CU_GRAPH,
    BH_CU_MANAGED,
    BH_CU_PINNED,
    BH_CU_IPC
};
struct bh_cu_alloc {
    uint64_t base, size;
    enum bh_cu_what what;
    CUcontext ctx; /* NULL: of no context (a reserved range) */
    struct bh_cu_slab *slab;
    CUmemoryPool pool;
    uint64_t range, touched; /* of managed memory: the UVM file's number; bit g: counted on GPU g */
    bool registered;         /* pinned memory that the caller owns */
    struct bh_cu_mem *mem;   /* of pinned memory: its pages */
    unsigned flags;
};
/* What is behind an address. */
struct bh_cu_back {
    uint64_t base, size, offset;
    struct bh_cu_mem *mem;
};

enum bh_cu_kind {
    BH_CU_CONTEXT = 1,
    BH_CU_STREAM,
    BH_CU_EVENT,
    BH_CU_MODULE,
    BH_CU_FUNCTION,
    BH_CU_ARRAY,
    BH_CU_MEMPOOL,
    BH_CU_GRAPH_HANDLE,
    BH_CU_EXEC,
    BH_CU_NODE,
    BH_CU_MEM,
};

struct bh_cu {
    pthread_mutex_t lock;
    bool ready, forked;
    uint32_t n_devices, cuda_version;
    struct bh_cu_device *devices;
    uint64_t next_id;
    struct bh_cu_mem *mems;
};
extern struct bh_cu cu;

/* Stretches of the recording. The start has no mark between what the process needs and its first context. */
enum bh_cu_stretch {
    BH_CU_STRETCH_PROCESS,
    BH_CU_STRETCH_FIRST,
    BH_CU_STRETCH_FIRST_END,
    BH_CU_STRETCH_NEXT,
    BH_CU_STRETCH_NEXT_END,
};

/* --- init.c --- */
int bh_cu_enter(void); /* 0, or why nothing can be asked */
int bh_cu_device(CUdevice device, struct bh_cu_device **ret);
int bh_cu_device_start(struct bh_cu_device *device); /* the process's own objects on it, once */
const struct bh_recording *bh_cu_recording(void);
int bh_cu_stretch(enum bh_cu_stretch stretch, size_t *ret_first, size_t *ret_n); /* calls of the recording */
uint64_t bh_cu_now(void);

/* --- handles.c: which pointers are live objects, so that a stale one is an error and not a crash --- */
void bh_cu_handle_add(enum bh_cu_kind kind, const void *at);
bool bh_cu_handle_remove(enum bh_cu_kind kind, const void *at);
bool bh_cu_handle_ok(enum bh_cu_kind kind, const void *at);
void *bh_cu_handle_next(enum bh_cu_kind kind, size_t *place); /* from place 0 on; NULL: no more */

/* --- context.c --- */
int bh_cu_current(CUcontext *ret); /* the thread's context; the error that ended it */
int bh_cu_context(CUcontext given, CUcontext *ret);
int bh_cu_primary(struct bh_cu_device *device, CUcontext *ret); /* the device's own, made if there is none */
void bh_cu_lock(CUcontext ctx);
void bh_cu_unlock(CUcontext ctx);

/* --- driver.c: calls to the resource manager; 0 or an enum cuda_result --- */
int bh_cu_mem_new(CUcontext ctx, enum bh_cu_shape shape, uint64_t bytes, struct bh_cu_mem **ret);
int bh_cu_mem_dup(CUcontext ctx, uint32_t source_client, uint32_t source_object, uint64_t bytes,
                  struct bh_cu_mem **ret);
void bh_cu_mem_put(struct bh_cu_mem *mem); /* one user less; the last frees it */
void bh_cu_mem_get(struct bh_cu_mem *mem); /* one more */
int bh_cu_map(uint64_t at, uint64_t size, struct bh_cu_mem *mem, uint64_t offset); /* takes a use of mem */
bool bh_cu_unmap(uint64_t at, uint64_t size); /* everything mapped in there; false: nothing was */
int bh_cu_map_into(uint64_t at, uint64_t size, const struct bh_cu_mem *mem,
                   uint64_t offset); /* a range that is there */
void bh_cu_unmap_from(uint64_t at, uint64_t size, const struct bh_cu_mem *mem);
int bh_cu_mem_host(CUcontext ctx, uint64_t at, uint64_t bytes, struct bh_cu_mem **ret);
int bh_cu_uvm(int uvm, uint32_t number, uint64_t at, uint64_t size);
int bh_cu_control(CUcontext ctx, uint32_t object, uint32_t command, void *params, uint32_t size);

int bh_cu_mem_take_back(struct bh_cu_mem *mem);                /* off the card; what refers to it stays */
int bh_cu_mem_obtain_again(struct bh_cu_mem *mem);             /* and on it, under another name */
void bh_cu_mem_known(const struct bh_cu_mem *mem, bool known); /* to third parties, where it is to be */

/* --- freeze.c: the process between two calls --- */
bool bh_cu_call_begin(void); /* waits while the process is locked; true: it counts */
void bh_cu_call_end(const bool *counts);
#define BH_CU_CALL() __attribute__((cleanup(bh_cu_call_end), unused)) const bool call_ = bh_cu_call_begin()
int bh_cu_freeze_state(void); /* an enum cuda_process_state */
int bh_cu_freeze_lock(uint32_t timeout_ms);
int bh_cu_freeze_unlock(void);
int bh_cu_freeze_out(void);
int bh_cu_freeze_in(void);
void bh_cu_keeper_start(void); /* checkpoint.c: answers whoever suspends this process */

/* --- address.c: the process's addresses --- */
uint64_t bh_cu_va_take(uint64_t size, uint64_t align); /* 0: none left */
void bh_cu_va_give(uint64_t base, uint64_t size);
void bh_cu_alloc_add(const struct bh_cu_alloc *alloc);
bool bh_cu_alloc_find(uint64_t at, struct bh_cu_alloc *ret); /* the one that holds the address */
bool bh_cu_alloc_take(uint64_t base, struct bh_cu_alloc *ret);
bool bh_cu_alloc_any(enum bh_cu_what what);          /* is there one of this kind? */
bool bh_cu_alloc_touch(uint64_t base, uint32_t gpu); /* marks it; true: it was not */
void bh_cu_back_add(uint64_t base, uint64_t size, struct bh_cu_mem *mem, uint64_t offset);
bool bh_cu_back_find(uint64_t at, struct bh_cu_back *ret);
bool bh_cu_back_of(const struct bh_cu_mem *mem, size_t n,
                   struct bh_cu_back *ret); /* the n-th with it behind */
bool bh_cu_back_overlaps(uint64_t base, uint64_t size);
bool bh_cu_back_take(uint64_t base, uint64_t size,
                     struct bh_cu_back *ret); /* the first inside; false: none */
bool bh_cu_alloc_take_of(CUcontext ctx,
                         struct bh_cu_alloc *ret); /* any one of a context; false: it has none */

/* --- memory.c, pool.c, managed.c --- */
int bh_cu_release(const struct bh_cu_alloc *alloc); /* what stood behind a pointer that is no longer one */
void bh_cu_release_all(CUcontext ctx);
int bh_cu_pool_free(CUmemoryPool pool, uint64_t at);
bool bh_cu_pools_empty(const struct bh_cu_device *device); /* no pool has addresses */
void bh_cu_pools_settle(CUcontext ctx); /* at a synchronization: gives back what pools need not keep */
int bh_cu_graph_back(CUcontext ctx, uint64_t at,
                     uint64_t bytes); /* memory at an address promised to a graph */
uint64_t bh_cu_graph_address(uint64_t bytes);
int bh_cu_managed_touch(CUcontext ctx, const struct bh_cu_alloc *alloc);
int bh_cu_managed_free(const struct bh_cu_alloc *alloc);
int bh_cu_pinned_free(const struct bh_cu_alloc *alloc);

/* --- stream.c --- */
int bh_cu_stream(CUcontext ctx, CUstream given, CUstream *ret); /* 0, 1 and 2 are the context's own */
CUstream bh_cu_stream_new(CUcontext ctx, unsigned flags, int priority);
int bh_cu_submit(CUstream stream, uint64_t work_ns, bool fault);
int bh_cu_wait(CUcontext ctx, struct bh_cu_channel *channel, uint64_t fence);
int bh_cu_done(CUcontext ctx, struct bh_cu_channel *channel, uint64_t fence); /* NOT_READY: not yet */
int bh_cu_drain(CUcontext ctx);

/* --- error.c --- */
int bh_cu_from_status(uint32_t rm_status);
int bh_cu_from_errno(int error);
int bh_cu_fault(CUcontext ctx, int error); /* a call about work failed: what the context ends with */

/* --- module.c, launch.c, graph.c --- */
struct bh_cu_work {
    uint64_t ns;
    bool fault;
};
int bh_cu_work_of(CUfunction function, void **params, void **extra, struct bh_cu_work *ret);
uint64_t bh_cu_kernel_ns(const char *name);
void bh_cu_capture_kernel(CUgraph graph, struct bh_cu_work work);
void bh_cu_graph_drop(CUgraph graph);
void *bh_cu_proc_find(const char *name, int version, int *ret_found);
void bh_cu_uuid(const char *text, uint8_t ret[16]); /* `GPU-...` and `MIG-...` as bytes */

#endif
