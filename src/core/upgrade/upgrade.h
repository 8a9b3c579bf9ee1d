/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade.h - a change of driver, firmware or kernel, planned: whom it touches, in which order they leave, what must hold
 * before each next step, what it mends, and what stands in its way.
 *
 * Nobody is surprised: who may begin again is drained, whose end is known is waited for, and whoever is neither stands in the
 * way until somebody has asked them. A suspension does not outlive a driver, so that a lease may be suspended helps nobody here.
 * Pure: the caller brings the leases and the cards as it was shown them.
 */
#ifndef BH_CORE_UPGRADE_UPGRADE_H
#define BH_CORE_UPGRADE_UPGRADE_H

#include "base/arena.h"
#include "base/mem.h"
#include "core/model/advisory.h"
#include "core/model/policy.h"

enum bh_upgrade_kind { BH_UPGRADE_DRIVER, BH_UPGRADE_FIRMWARE, BH_UPGRADE_KERNEL };

struct bh_upgrade_gpu {
    uint32_t index;
    const char *state;  /* `ok`, `cordoned`, ... */
    const char *reason; /* NULL: none */
};

struct bh_upgrade_lease {
    const char *id, *job, *tenant, *user;
    uint64_t gpus;   /* bit i: it has something of GPU i */
    uint64_t end_ms; /* 0: not known */
    bool can_requeue, can_suspend, firm;
    bool idle; /* it has used nothing lately */
};

struct bh_upgrade_ask {
    enum bh_upgrade_kind kind;
    const char *what;      /* of firmware: `vbios`; NULL: the driver or the kernel */
    const char *from, *to; /* NULL: not known; to NULL: not said */
    int32_t day;           /* today: bulletins that are out */
    uint64_t now_ms;
    uint64_t gpus;                  /* bits: those that it touches */
    const struct bh_policy *policy; /* NULL: none, or not to be seen */
    const struct bh_upgrade_gpu *cards;
    size_t n_cards;
    const struct bh_upgrade_lease *leases; /* all that hold something */
    size_t n_leases;
};

/* How somebody leaves, in the order in which they do. */
enum bh_upgrade_way {
    BH_LEAVES_IDLE,    /* may begin again, and does nothing now */
    BH_LEAVES_REQUEUE, /* may begin again */
    BH_LEAVES_ENDS,    /* is waited for: its end is known */
    BH_LEAVES_ASK,     /* has to be asked: stands in the way */
    BH_LEAVES_LAST,    /* may begin again, beside one of the two above: a drain would end that one, too */
    BH_LEAVES
};
const char *bh_upgrade_way_str(enum bh_upgrade_way w); /* `requeue` */

enum bh_upgrade_step_kind {
    BH_STEP_CORDON, /* gpu */
    BH_STEP_LEAVE,  /* lease, way */
    BH_STEP_GATE,   /* must hold, or all stops here */
    BH_STEP_CHANGE,
    BH_STEP_RETURN, /* gpu */
    BH_STEPS
};
const char *bh_upgrade_step_str(enum bh_upgrade_step_kind k);

struct bh_upgrade_step {
    uint8_t kind, way;                    /* enum bh_upgrade_step_kind; LEAVE: enum bh_upgrade_way */
    const struct bh_upgrade_lease *lease; /* LEAVE; else NULL */
    const char *sentence;
    const char *command; /* that does it, or shows it; NULL: it is another's to do */
};

struct bh_upgrade_tenant {
    const char *name;
    size_t n_leases, n_asked; /* how many leave, and how many of them stand in the way */
};

struct bh_upgrade_fix {
    const struct bh_advisory *advisory;
    int32_t days; /* since the fix is out */
};

struct bh_upgrade {
    struct bh_arena arena;
    BH_VEC(struct bh_upgrade_step) steps;
    BH_VEC(struct bh_upgrade_tenant) tenants;
    BH_VEC(struct bh_upgrade_fix) fixes; /* open now, not open then */
    BH_VEC(const char *) blockers;       /* a sentence each; none: it can be done */
    BH_VEC(const char *) notes;
    size_t n_open_after;    /* advisories that are still open then */
    uint64_t not_before_ms; /* the last end that is waited for; 0: at once */
};

void bh_upgrade_plan(const struct bh_upgrade_ask *ask, struct bh_upgrade *ret);
void bh_upgrade_fini(struct bh_upgrade *u);

#endif
