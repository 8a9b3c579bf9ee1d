/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.h - from a policy and a fleet to the scheduler's words, and from what somebody asks for to a job of it, or to a
 * refusal that says what was needed, what was there and what to do.
 *
 * One mapping for everybody who schedules: the daemon, replay, Kubernetes, Slurm. It decides nothing that the rules
 * decide: an ask is put into the policy as a workload and judged by bh_lint() like one that was written there, so
 * what lint refuses is not admitted.
 *
 * The scheduler knows pools, drivers and fabrics of nodes; a policy cuts pools out of the GPUs of one machine. So a
 * machine becomes one scheduler's node for each set of its GPUs that are alike (model, pools, fabric); these hang in one
 * NVLink domain, as all machines of one fabric do, and who may not share a kernel with others is kept apart by that
 * domain. A cpu and memory request is held against each such part's share of the machine's.
 */
#ifndef BH_CORE_ADMIT_ADMIT_H
#define BH_CORE_ADMIT_ADMIT_H

#include "core/lease/slice.h"
#include "core/model/policy.h"
#include "core/policy/rule.h"
#include "core/sched/sched.h"

struct bh_admit;

/* What a fleet file does not say about a machine; by the fleet's index. */
struct bh_admit_host {
    uint32_t cpu_milli; /* 0: processors are not counted there */
    uint64_t mem_mib;   /* 0: host memory is not counted there */
    uint32_t gpu_mib;   /* of each GPU as its driver says; 0: the catalogue's word */
};

struct bh_admit_config {
    int32_t today;                     /* days since 1970: waivers end */
    uint32_t tiers, mechanisms;        /* bits of those that can be set up here; 0: all */
    uint64_t min_run_ms;               /* nobody is interrupted before */
    const struct bh_admit_host *hosts; /* one for each node of the fleet, or NULL */
};

/*
 * The policy must be linked with this fleet; both are borrowed and stay unchanged. before: what was in force until now,
 * or NULL: tenants it knew below the same parent keep their queues.
 */
int bh_admit_new(const struct bh_policy *policy, const struct bh_fleet *fleet,
                 const struct bh_admit_config *config, const struct bh_admit *before, struct bh_admit **ret,
                 struct bh_err *err) BH_MUST_USE;
void bh_admit_free(struct bh_admit *a);

/* ---- the fleet and the queues ---- */

typedef int bh_admit_emit(void *context, const struct bh_sched_event *e, struct bh_err *err);
/*
 * The scheduler's events: models, domains, nodes, queues, in an order that can be applied as it comes. before NULL: all
 * of them, for a scheduler that knows nothing. Else the queues that are new or changed, those of tenants that are gone
 * among them: these may have nothing. BH_CONFLICT: parts or pools changed, which no event says; make a new scheduler.
 */
int bh_admit_fleet(const struct bh_admit *a, const struct bh_admit *before, uint64_t at_ms,
                   bh_admit_emit *emit, void *context, struct bh_err *err) BH_MUST_USE;

/* The leaf in which a tenant's own work stands. */
uint32_t bh_admit_queue(const struct bh_admit *a, uint32_t tenant);
/* Whose a queue is; BH_NONE: nobody's any more, or the root. */
uint32_t bh_admit_queue_tenant(const struct bh_admit *a, uint32_t queue);
/* A GPU of the fleet as the scheduler names it, for its health; false: no pool has it. */
bool bh_admit_locate(const struct bh_admit *a, struct bh_gpu_ref gpu, uint32_t *ret_node, uint32_t *ret_gpu);
/* And back; gpu: from 0 to the node's number of GPUs. */
struct bh_gpu_ref bh_admit_gpu(const struct bh_admit *a, uint32_t node, uint32_t gpu);

/* ---- what somebody asks for ---- */

struct bh_admit_ask {
    uint64_t id;        /* of the job, for the scheduler */
    const char *name;   /* in messages; NULL: the job has none */
    const char *tenant; /* by name */
    const char *pool;   /* NULL: the first of the tenant's that takes it */
    uint32_t user;      /* of the Fair Tree */
    uint32_t
        gpus; /* in all; of a MIG pool: instances. 0: one of what it gives. Without a pool, share or profile: whole ones */
    uint32_t share_milli;                 /* of each; 0: what the pool gives */
    uint64_t memory_bytes;                /* of each GPU; 0: what the pool gives */
    const char *profile;                  /* MIG; NULL: the smallest that holds the memory */
    uint32_t gpus_max;                    /* elastic: may grow to so many; 0: not */
    uint32_t cpu_milli;                   /* in all */
    uint64_t host_mib;                    /* in all */
    uint32_t image_mib;                   /* of host memory it takes when it is suspended */
    bool has_tier, has_priority, own_mps; /* own_mps: a server of its own on what it gets */
    uint8_t tier;                         /* enum bh_tier, at least */
    uint8_t priority;       /* enum bh_priority; else normal, or less where that is its ceiling */
    uint8_t pace;           /* enum bh_pace */
    uint8_t can;            /* enum bh_gang_can; none: it is not to be interrupted, and borrows nothing */
    uint8_t checkpointable; /* enum bh_fact */
    uint64_t submit_ms, duration_ms; /* duration 0: not known */
    uint64_t deadline_ms;            /* 0: none */
    bool runs;                       /* it is set up already: what could be set up now is not asked */
    bool gang, needs_nvlink, allow_span;
    bool privileged, host_pid, host_ipc, host_network;
    const char *image;                          /* NULL: none */
    const char *const *mounts, *const *devices; /* NULL-terminated, or NULL */
    const struct bh_keyed *env;
    size_t n_env;
};

/* What the tenant sees of the card; as enum bh_lease_view has it on the wire. */
enum bh_admit_view { BH_ADMIT_CARD, BH_ADMIT_SLICE, BH_ADMIT_PRIVATE };

/* One layer of what divides the silicon for it, from the silicon up. */
struct bh_admit_layer {
    uint8_t mechanism;                    /* enum bh_mechanism, never fractional */
    const struct bh_mig_profile *profile; /* MIG */
    uint32_t milli;                       /* of the GPU, or of the layer below: time or threads; 0: all */
    uint64_t memory_bytes;                /* that this layer holds it to; 0: it does not */
};
enum { BH_ADMIT_LAYERS = 3, BH_ADMIT_SHARED_MAX = 24 };

struct bh_admit_grant {
    struct bh_gang_spec job; /* for BH_SCHED_SUBMIT */
    uint32_t tenant, pool;   /* of the policy */
    uint8_t mechanism;       /* effective, of the pool */
    uint8_t tier, view;      /* enum bh_admit_view */
    uint8_t n_layers;
    struct bh_admit_layer layers[BH_ADMIT_LAYERS];
    uint64_t cap_bytes; /* for each GPU, at the gate; 0: no gate for memory */
    /* For the governor (enum bh_govern_class); weight 0: nothing is shared, nothing is governed. */
    uint32_t weight, cap_permille, floor_permille, latency;
    const char *shared[BH_ADMIT_SHARED_MAX]; /* what stays shared; never empty, NULL-terminated */
    const char *bounded_by;                  /* which layer bounds the noisy neighbour */
};

enum bh_admit_code {
    BH_ADMIT_OK,
    BH_ADMIT_NO_TENANT, /* the policy has no such tenant */
    BH_ADMIT_NO_POOL,   /* ... no such pool, or the tenant is in none */
    BH_ADMIT_NOT_YOURS, /* the pool is not the tenant's */
    BH_ADMIT_NOT_HERE,  /* the tier or mechanism cannot be set up on this machine */
    BH_ADMIT_RULE,      /* a rule refuses it */
    BH_ADMIT_TIER,      /* weaker than the pool's */
    BH_ADMIT_PRIORITY,  /* above the tenant's ceiling */
    BH_ADMIT_FORM,      /* the pool does not divide GPUs like that */
    BH_ADMIT_PROFILE,   /* no such MIG profile, or none of that size, or none was said */
    BH_ADMIT_SHARE,     /* more of a GPU than one workload gets there, or no share was said */
    BH_ADMIT_MEMORY,    /* more GPU memory than one workload gets there, or than a GPU has */
    BH_ADMIT_QUOTA,     /* more than the tenant may ever have */
    BH_ADMIT_SIZE,      /* more GPUs than the pool has */
    BH_ADMIT_SPAN,      /* more than one fabric domain has, and it may not span */
    BH_ADMIT_SITE,      /* no GPU of the pool is where the tenant must run */
    BH_ADMIT_DRIVER,    /* ... has a driver that both accept */
    BH_ADMIT_CODES
};
const char *bh_admit_code_str(enum bh_admit_code c); /* `no_tenant`, for programs */

struct bh_admit_refusal {
    enum bh_admit_code code;
    const struct bh_rule *rule; /* where one stands behind it, else NULL */
    char what[240];             /* one sentence for the person who asked */
    char needed[120], there[120];
    char next[240]; /* what to do */
};

/*
 * True: ret is the job. False: why says why not. Just one of the two is written. Texts of ret are the catalogue's and the
 * policy's. Whether it starts now is the scheduler's to say.
 */
bool bh_admit_job(const struct bh_admit *a, const struct bh_admit_ask *ask, struct bh_admit_grant *ret,
                  struct bh_admit_refusal *why);

/* ---- what it was given ---- */

struct bh_admit_slice {
    struct bh_gpu_ref gpu;                /* of the fleet */
    uint8_t kind;                         /* enum bh_slice_kind */
    const struct bh_mig_profile *profile; /* MIG */
    uint8_t mig_start; /* its first memory slice; with the profile, the key of the instance */
    uint32_t milli;    /* of the GPU; of an instance, by its compute slices */
    uint32_t mib;      /* of its memory; 0: not known */
};
/* Of one place of the job. Returns how many, at most BH_NODE_GPUS; 0: the job has no GPU. */
size_t bh_admit_slices(const struct bh_admit *a, const struct bh_request *request, const struct bh_spot *spot,
                       struct bh_admit_slice ret[BH_NODE_GPUS]);
/* `whole`, `mig:1g.18gb@4`, `share`: what a slice of a GPU is called. Unique there but for shares. */
struct bh_slice_text {
    char s[48];
};
const char *bh_admit_slice_key(const struct bh_admit_slice *s, struct bh_slice_text *ret);

/* ---- putting to sleep ---- */

struct bh_admit_idle {
    uint64_t now_ms, active_ms; /* since when it has used nothing */
    uint64_t woken_ms;          /* since when it runs; 0: from the start */
    uint64_t agreed_ms;         /* that its tenant agreed to be idle before it sleeps; 0: it did not */
    uint8_t can;                /* enum bh_gang_can */
    bool wanted;                /* others wait for what it has */
    uint64_t image_mib, host_free_mib;
};
enum bh_sleep { BH_SLEEP_NOT, BH_SLEEP_LATER, BH_SLEEP_NOW };
/* LATER: not before *ret_at_ms, if nothing changes. Never sleeps before a share of the agreed time after it woke. */
enum bh_sleep bh_admit_sleep(const struct bh_admit_idle *i, uint64_t *ret_at_ms);

/* What the processes of a lease have used between two looks at them. */
struct bh_admit_use {
    uint64_t span_ms, cpu_ns;
    bool moved; /* its memory was, in that time */
};
enum bh_awake { BH_AWAKE_UNTOLD, BH_AWAKE_NOT, BH_AWAKE_WORKS };
/* UNTOLD: too short a time to tell; look again later, from the first of the two on. */
enum bh_awake bh_admit_awake(const struct bh_admit_use *u);

/* ---- what another policy would change ---- */

enum bh_admit_change_kind {
    BH_CHANGED_TENANT_ADDED,
    BH_CHANGED_TENANT_REMOVED,
    BH_CHANGED_POOL_ADDED,
    BH_CHANGED_POOL_REMOVED,
    BH_CHANGED_POOL_JOINED, /* the tenant is now in the pool */
    BH_CHANGED_POOL_LEFT,
    BH_CHANGED_QUOTA_RAISED, /* field says which, from and to how much */
    BH_CHANGED_QUOTA_LOWERED,
    BH_CHANGED_TERMS,   /* another word: field, from_text, to_text */
    BH_CHANGED_GPUS,    /* of a pool: from, to */
    BH_CHANGED_WORK,    /* job: what runs or waits would be refused now; why */
    BH_CHANGED_MACHINE, /* scheduler must be made anew: parts or pools changed */
    BH_CHANGEDS
};
const char *bh_admit_change_str(enum bh_admit_change_kind k);

struct bh_admit_change {
    uint8_t kind;       /* enum bh_admit_change_kind */
    bool worse;         /* for the tenant, as far as can be said */
    const char *tenant; /* NULL: of no one alone */
    const char *pool;   /* NULL: none */
    const char *field;  /* `gpus`, `tier`; NULL: none */
    uint64_t from,
        to; /* thousandths, bytes, parts per million as the field has it; BH_AMOUNT_ANY: no bound */
    const char *from_text, *to_text;
    uint64_t job;
    struct bh_admit_refusal why;
};
typedef BH_VEC(struct bh_admit_change) bh_admit_changes;
/*
 * In the order of the new policy's tenants, those removed after them; pools, then work in the order given. live: what
 * runs or waits, as it was asked. Texts belong to the two policies and to live. Free with bh_vec_fini().
 */
void bh_admit_diff(const struct bh_admit *from, const struct bh_admit *to, const struct bh_admit_ask *live,
                   size_t n_live, bh_admit_changes *ret);

#endif
