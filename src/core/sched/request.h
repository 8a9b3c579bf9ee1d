/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what one piece of work needs on one node, and the classes that equal needs form.
 *
 * Everything that decides where work may run is in here: amounts, models, features, pools, and with whom it
 * will not share. So two requests of one class are interchangeable to placement, and everything hot is
 * indexed by the class. Who asks, for how long and how urgently is not here: that is for queues and jobs. How
 * close the parts of a gang must stand is not either: bh_pick_within() takes the fabric domain.
 */
#ifndef BH_CORE_SCHED_REQUEST_H
#define BH_CORE_SCHED_REQUEST_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BH_NODE_GPUS = 16,   /* GPUs of one node, at most */
    BH_MODELS_MAX = 64,  /* models are bits of a mask */
    BH_GPU_MILLI = 1000, /* one GPU */
    BH_CLASSES_MAX = 65536
};
#define BH_NONE UINT32_MAX /* no node, no domain, no class, no hold */

enum bh_form {
    BH_FORM_CPU,   /* no GPU at all */
    BH_FORM_WHOLE, /* n_gpus whole GPUs of one node */
    BH_FORM_SHARE, /* gpu_milli and gpu_mib on each of n_gpus different GPUs */
    BH_FORM_MIG,   /* one instance of a profile */
    BH_FORMS
};

/*
 * The largest thing it will not use together with another trust domain. Whoever is there already has a say
 * too: the stricter of the two counts. Zero is the safe one: no shared kernel.
 */
enum bh_apart {
    BH_APART_NODE,
    BH_APART_LINK,    /* nor a node of the same NVLink domain */
    BH_APART_GPU,     /* its own kernel (a virtual machine): only the GPU is not shared */
    BH_APART_NOTHING, /* the mechanism holds between tenants */
    BH_APARTS
};

struct bh_request {
    uint8_t form;         /* enum bh_form */
    uint8_t n_gpus;       /* 0 with BH_FORM_CPU; 1 with BH_FORM_MIG */
    uint8_t mig_profile;  /* index into the catalogue's profiles of the one model in `models` */
    uint8_t apart;        /* enum bh_apart */
    uint8_t mechanism;    /* shares of one GPU are all of one (MPS, time slices ...): any number */
    uint8_t kinds, avoid; /* never on a GPU with somebody whose kinds it avoids, or who avoids its kinds */
    uint16_t gpu_milli;   /* of each GPU; 1000 with BH_FORM_WHOLE, below with BH_FORM_SHARE, else 0 */
    uint32_t gpu_mib;     /* of each GPU's memory, with BH_FORM_SHARE; 0: not counted */
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint64_t models;   /* any of these, bit = model id; 0: any model */
    uint64_t features; /* a node must have all of them (driver pins, sites, kernels) */
    uint64_t pools;    /* a node must be in one of them; 0: any */
    uint32_t trust;    /* trust domain */
};

/* How many bits are set; the compiler's own becomes a call into its library. */
static inline uint32_t bh_bits(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
}

/* May it run on this model? CPU-only work ignores models. */
static inline bool bh_request_takes(const struct bh_request *r, uint32_t model)
{
    return r->form == BH_FORM_CPU || !r->models || (r->models >> model & 1);
}
/* What it costs in thousandths of a GPU: share times devices. A MIG instance is charged by its caller. */
static inline uint32_t bh_request_milli(const struct bh_request *r)
{
    return (uint32_t)r->gpu_milli * r->n_gpus;
}

/* The classes seen so far. A class id is dense and stays; classes are never taken back. */
struct bh_requests {
    BH_VEC(struct bh_request) at;
    uint32_t *slots; /* open addressing, class id + 1; 0: empty */
    size_t n_slots;
};
void bh_requests_fini(struct bh_requests *t); /* a zeroed struct is an empty table */
/* The class of this request, new or known. Refuses what is contradictory in itself. May allocate. */
int bh_request_intern(struct bh_requests *t, const struct bh_request *r, uint32_t *ret_class,
                      struct bh_err *err) BH_MUST_USE;

#endif
