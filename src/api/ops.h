/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the seam between the API and whoever does the work (the node's daemon, or a test).
 *
 * The API knows HTTP, callers and roles; it never touches hardware and never changes a row itself. What it is asked to do
 * goes through the callbacks below, after it decided that the caller may; what it is asked to show comes from the store and
 * from a view that the other side keeps fresh.
 *
 * Every callback runs in the loop's thread and returns
 *   0                  done and durable: the state change and its audit record are committed;
 *   negative           refused or failed, with a sentence in err; nothing changed;
 *   BH_API_LATER       it will be done in this turn of the loop or soon: bh_api_answer(api, ticket, ...) follows, exactly
 *                      once, never from inside the callback. Nothing lent to the callback lives that long.
 * A sentence in err is shown to the caller as it is: it must name nobody else's tenants, jobs or leases.
 */
#ifndef BH_API_OPS_H
#define BH_API_OPS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/model/policy.h"
#include "metrics/metrics.h"
#include "store/state_bill.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_API_LATER = 1 };
#define BH_API_NO_UID UINT32_MAX

/* ---- who asks ---- */

/* A role, in one tenant or (tenant NULL) in all of them. */
struct bh_api_grant {
    uint8_t role; /* enum bh_role */
    const char *tenant;
};

struct bh_api_caller {
    const char *principal; /* `user:alice`; of a token: its subject */
    const char *user;      /* the part behind the colon: whose job it is */
    const char *from;      /* `unix`, or the address */
    uint32_t uid;          /* BH_API_NO_UID: came with a token, not over the unix socket */
    uint32_t gid;
    uint64_t token; /* 0: none */
    bool unsure; /* the store could not say whose token it is: he has no role, and is asked to come again */
    const struct bh_api_grant *grants; /* in the order of the policy, operator of the machine first */
    size_t n_grants;
};

/* Has the caller one of these roles (bits: enum bh_role) in this tenant? NULL: in all tenants at once. */
bool bh_api_may(const struct bh_api_caller *c, uint32_t roles, const char *tenant);

/* ---- what is asked for ---- */

enum { BH_API_ARGS_MAX = 1024, BH_API_ENV_MAX = 1024 };

struct bh_api_texts {
    const char **at;
    size_t n;
};

struct bh_api_submit {
    const char *tenant;   /* exists in the policy, and the caller may submit for it */
    const char *name;     /* NULL: none */
    const char *pool;     /* NULL: whichever fits */
    const char *profile;  /* of MIG; NULL: any */
    const char *tier;     /* a word of bh_words_tier; NULL: the pool's */
    const char *priority; /* a word of bh_words_priority; NULL: normal */
    const char *image;    /* a container's root file system; NULL: none */
    const char *cwd;      /* absolute; NULL: the root */
    const char
        *key;       /* NULL: none. The same principal and key: the job of the first time, and no second one */
    uint64_t gpus;  /* slices, each of what follows; 0: one */
    uint64_t milli; /* of a card's time for each; 0: all of it */
    uint64_t memory_mib;               /* for each; 0: as much as the slice has */
    uint64_t duration_ms, deadline_ms; /* 0: not known; 0: none */
    int64_t order;                     /* among the tenant's own; higher is first */
    bool can_pause, can_suspend, can_requeue, firm;
    bool dry_run;             /* judge it, do not take it: the id is 0 then */
    struct bh_api_texts argv; /* at least one */
    struct bh_api_texts env;  /* NAME=VALUE */
    uint32_t uid, gid;        /* as whom it runs; BH_API_NO_UID: the subject has no account here */
};

enum bh_api_lease_order {
    BH_API_LEASE_PAUSE,
    BH_API_LEASE_RESUME,
    BH_API_LEASE_SUSPEND,
    BH_API_LEASE_END,
    BH_API_LEASE_ORDERS
};
enum bh_api_gpu_order { BH_API_GPU_CORDON, BH_API_GPU_UNCORDON, BH_API_GPU_DRAIN, BH_API_GPU_ORDERS };

/* A change to try in a what-if. */
enum bh_api_change_kind { BH_API_CHANGE_END_JOB, BH_API_CHANGE_QUOTA, BH_API_CHANGE_GPUS, BH_API_CHANGES };
struct bh_api_change {
    enum bh_api_change_kind kind;
    uint64_t job;
    const char *tenant;
    uint64_t gpus_milli; /* the new quota */
    uint64_t count;      /* GPUs more */
    const char *model;
};
struct bh_api_whatif {
    uint64_t job; /* one that waits; 0: `submit` is tried */
    const struct bh_api_submit *submit;
    const struct bh_api_change *changes;
    size_t n_changes;
};

/* ---- answers that are worked out rather than read; strings live in the arena that is handed in ---- */

struct bh_api_holder {
    uint64_t job, milli;
    uint64_t end_ms; /* 0: not known */
    const char *tenant;
};
struct bh_api_remedy {
    const char
        *kind; /* `wait`, `move`, `free`, `quota`, `add`, `health`, `unknown`: the search was not over */
    const char *sentence; /* shown only to who may see `tenant` */
    const char *tenant;   /* whose work or quota it touches; NULL: nobody's but the job's own */
    uint64_t milli, at_ms;
};
struct bh_api_why {
    const char *tier;     /* `room`, `turn`: a word of bh_wait_names */
    const char *sentence; /* must name nobody but the job's own tenant */
    bool starts;          /* of a what-if: it would start */
    uint64_t need_milli, free_milli, ahead;
    uint64_t until_ms; /* 0: not known */
    BH_VEC(struct bh_api_holder) holders;
    BH_VEC(struct bh_api_remedy) remedies;
};

/* What a policy would change, and for whom. */
struct bh_api_diff_row {
    const char *tenant; /* NULL: no one tenant's */
    const char *what;   /* `quota.gpus` */
    const char *before, *after;
    const char *effect; /* `2 leases end`; NULL: none */
};
struct bh_api_diff {
    uint64_t version; /* the one in force */
    uint64_t errors;  /* findings that keep it from being applied */
    BH_VEC(struct bh_api_diff_row) rows;
    BH_VEC(const char *) findings; /* one sentence each */
};

struct bh_api_token_new {
    const char *
        subject; /* `user:alice`: holds as long as the policy gives alice the role; `service:ci`: as it stands */
    const char *role;
    const char *tenant; /* of the two tenant roles; "" of the others */
    uint8_t sha256[32];
    uint64_t expires_ms; /* 0: never */
};

/* ---- the callbacks ---- */

struct bh_api_ops {
    void *self;
    /* Ids of what was made or touched go to ret_id where there is one. */
    int (*submit)(void *self, const struct bh_api_caller *by, const struct bh_api_submit *what,
                  uint64_t ticket, uint64_t *ret_id, struct bh_err *err);
    int (*cancel)(void *self, const struct bh_api_caller *by, uint64_t job, const char *reason,
                  uint64_t ticket, struct bh_err *err);
    int (*lease)(void *self, const struct bh_api_caller *by, enum bh_api_lease_order order, uint64_t lease,
                 const char *reason, uint64_t ticket, struct bh_err *err);
    int (*gpu)(void *self, const struct bh_api_caller *by, enum bh_api_gpu_order order, const char *uuid,
               const char *reason, uint64_t ticket, struct bh_err *err);
    /* Only looks; fills *ret from the arena, or BH_API_LATER: bh_api_answer_why() follows. It may take long to work
     * out, so BH_BUSY where the caller, or all together, ask for too much at a time. */
    int (*why)(void *self, const struct bh_api_caller *by, uint64_t job, uint64_t ticket,
               struct bh_arena *arena, struct bh_api_why *ret, struct bh_err *err);
    /* One sentence on why a job waits, as it was last worked out, for lists: cheap, and never asked of the scheduler for each. NULL:
     * nothing to say. Names nobody but the job's own tenant; lives until the next callback. */
    const char *(*waits)(void *self, uint64_t job);
    /* The same, but never at once: BH_API_LATER, or a failure. */
    int (*what_if)(void *self, const struct bh_api_caller *by, const struct bh_api_whatif *what,
                   uint64_t ticket, struct bh_err *err);
    /* A bill that reads so many intervals that nobody else is to wait for it: BH_API_LATER, bh_api_answer_bill() follows; or a failure.
     * NULL: all are made at once. */
    int (*bill)(void *self, const struct bh_api_caller *by, const struct bh_store_bill_ask *what,
                uint64_t ticket, struct bh_err *err);
    /* Who asked for that bill is gone: no answer follows. What it took of a processor so far, in ms. */
    uint64_t (*bill_gone)(void *self, uint64_t ticket);
    int (*policy_diff)(void *self, const char *text, size_t n, struct bh_arena *arena,
                       struct bh_api_diff *ret, struct bh_err *err);
    /* version: the one that was in force when the caller looked (BH_CONFLICT where it no longer is); 0: not said. */
    int (*policy_apply)(void *self, const struct bh_api_caller *by, const char *text, size_t n,
                        uint64_t version, const char *reason, uint64_t ticket, uint64_t *ret_version,
                        struct bh_err *err);
    int (*token_add)(void *self, const struct bh_api_caller *by, const struct bh_api_token_new *what,
                     uint64_t ticket, uint64_t *ret_id, struct bh_err *err);
    int (*token_revoke)(void *self, const struct bh_api_caller *by, uint64_t token, uint64_t ticket,
                        struct bh_err *err);
    int (*checkpoint)(void *self, const struct bh_api_caller *by, uint64_t ticket, uint64_t *ret_size,
                      struct bh_err *err);
    /* A new key for the log, vouched for by the one before; *ret_key: its id. */
    int (*rotate)(void *self, const struct bh_api_caller *by, const char *reason, uint64_t ticket,
                  uint32_t *ret_key, struct bh_err *err);
    /* Into a file of this name below the state folder's `backups`. */
    int (*backup)(void *self, const struct bh_api_caller *by, const char *name, uint64_t ticket,
                  struct bh_err *err);
    /* The view's checks as of now: asked for before they are shown, for they cost more than most answers. NULL: they always are. */
    void (*checks)(void *self);
    /* Everything that is measured, whoever asks: what is shown to whom is decided when it is written. Cannot fail. */
    void (*metrics)(void *self, struct bh_metrics *ret);
    /* Somebody showed a token that is none, or was locked out: to be audited. Cannot be refused. */
    void (*auth_failed)(void *self, const char *from, bool locked_out, const char *why);
    /* Somebody who is known asks for something; NULL: nobody wants to know. Cannot be refused. */
    void (*came_in)(void *self, const struct bh_api_caller *by);
};

/* ---- what is going on, kept by the other side ---- */

struct bh_api_gpu {
    uint32_t index;
    const char *uuid, *model, *pci;    /* NULL: unknown */
    const char *pool;                  /* NULL: in none */
    const char *state;                 /* `ok`, `cordoned`, `draining`, `quarantined`, `lost` */
    const char *reason;                /* of a state that is not ok; NULL: none */
    const char *health;                /* what is wrong with it, one sentence; NULL: nothing is known to be */
    const char *layout;                /* `whole`, `mig 3g.71gb+4g.71gb`, `mps`, `shared`; NULL: unknown */
    const char *vbios, *gsp, *inforom; /* versions of its firmware; NULL: unknown */
    const char *fabric; /* those that reach each other over NVLink share one; NULL: no link is up */
    uint64_t numa;      /* node of the host beside it; UINT64_MAX: unknown */
    uint64_t memory_mib;
    uint64_t used_mib, util_percent, temperature_c, power_mw; /* UINT64_MAX: unknown */
};

/* An NVSwitch of the node. */
struct bh_api_switch {
    const char *pci, *firmware; /* firmware NULL: unknown */
};

/* What the governor and the gate measured of an active lease. */
struct bh_api_live {
    uint64_t lease;
    const char *state; /* `running`, `paused`, `suspended` */
    uint64_t compute_ppm, memory_mib, refused;
};

/* One thing that was looked at, for doctor and health. */
struct bh_api_check {
    const char *layer; /* `store`, `gpu`, `cgroup` */
    const char *state; /* `ok`, `warn`, `bad` */
    const char *sentence;
    const char *mend; /* what to do; NULL: nothing */
};

struct bh_api_view {
    const struct bh_policy *policy; /* linked; NULL: none applied yet */
    uint64_t policy_version;
    const struct bh_fleet *fleet; /* NULL: not known */
    const char *node;
    const char *version; /* of the program */
    const char *driver;  /* NULL: unknown */
    bool simulated;
    uint64_t now_ms, started_ms; /* since 1970, by the clock that charges */
    uint64_t wall_ms;            /* the time of day, by which tokens end */
    const struct bh_api_gpu *gpus;
    size_t n_gpus;
    const struct bh_api_switch *switches;
    size_t n_switches;
    const struct bh_api_live *lives; /* ascending by lease */
    size_t n_lives;
    const struct bh_api_check *checks;
    size_t n_checks;
};

#endif
