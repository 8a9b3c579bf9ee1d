/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what is asked for as one: a gang of roles, all of its minimum or nothing.
 *
 * Jobs that ask for the same are of one *shape*. Whether there is room is a question of the shape, not of the
 * job; jobs of one shape in one queue wait in one *line*, and of a line only the first is ever looked at. So a
 * hundred thousand jobs that cannot be placed cost as much as the few dozen shapes they have.
 */
#ifndef BH_CORE_SCHED_JOB_H
#define BH_CORE_SCHED_JOB_H

#include "core/sched/fleet.h"
#include "core/sched/queue_order.h"

enum { BH_ROLES_MAX = 4, BH_MEMBERS_MAX = 65536 };
#define BH_LEVEL_ANY ((uint8_t)BH_LEVELS) /* the whole fleet */

/* What may be done to a job that has to go; bits. What is not said is not done, and kill is what is left. */
enum bh_gang_can {
    BH_CAN_PAUSE = 1,   /* its shares of GPUs: time is freed, memory stays */
    BH_CAN_SUSPEND = 2, /* to host memory of the same node, image_mib of it for each member */
    BH_CAN_REQUEUE = 4, /* it starts again later, from its last checkpoint where it has one */
    BH_CAN_MOVE = 8,    /* it goes on at other places; asked of it for the sake of others too */
};

struct bh_gang_role_spec {
    struct bh_request request;
    uint32_t min, max;   /* members; max is at least min, above it the gang is elastic */
    uint32_t slice;      /* so many members each stay in one domain of slice_level; 0: no slices */
    uint8_t slice_level; /* enum bh_level */
    uint32_t image_mib;  /* host memory of a suspended member */
};

struct bh_gang_spec {
    uint64_t id;    /* the caller's; never used again */
    uint32_t queue; /* a leaf */
    uint32_t user;  /* whose Fair Tree rank counts (BH_SCHED_RANK) */
    uint8_t n_roles;
    uint8_t within; /* enum bh_level: all of it in one such domain; BH_LEVEL_ANY: anywhere */
    uint8_t prefer; /* ... in one of this or the lowest higher level where that can be; <= within */
    uint8_t band;   /* enum bh_priority, as asked */
    uint8_t can;    /* enum bh_gang_can */
    bool firm;      /* never interrupted; what an elastic gang has above its minimum always may be */
    int32_t priority;
    uint64_t submit_ms, deadline_ms, runtime_ms; /* BH_TURN_NO_DEADLINE; 0: not known */
    uint64_t min_run_ms;                         /* not interrupted before */
    struct bh_gang_role_spec roles[BH_ROLES_MAX];
};

struct bh_gang_role {
    uint32_t class_, min, max, slice;
    uint32_t paused, suspended; /* classes of what stays behind; BH_NONE: cannot be */
    uint8_t slice_level;
    struct bh_resources one; /* of one member; GPU models only where the request leaves no choice */
};

struct bh_shape {
    struct bh_gang_role roles[BH_ROLES_MAX];
    uint8_t n_roles, within, prefer, band, can;
    bool firm;
    uint32_t members; /* least */
    uint32_t elastic; /* what it may have above that */
    uint64_t models;  /* that could host any of it */
    bool anywhere;    /* nodes without GPUs too */
    struct bh_resources least;
    uint64_t stuck_at; /* when it was last found to have no room; 0: not so */
    uint32_t pending;  /* jobs, but for parked ones */
    bool used;         /* some job had it: it is in shape_order */
};

enum bh_gang_state {
    BH_GANG_FREE,    /* no job: the slot is empty */
    BH_GANG_PENDING, /* waits for its turn, for room, for quota */
    BH_GANG_BOUND,   /* has its room, and waits until those who had it are gone */
    BH_GANG_RUNS,    /* was told to start */
    BH_GANG_LEAVES,  /* was told to go; comes back when it is gone */
    BH_GANG_ENDS,    /* was told to go; is forgotten when it is gone */
    BH_GANG_STATES
};

/* Of what must go, from the cheapest on. */
enum bh_rung { BH_RUNG_NARROW, BH_RUNG_PAUSE, BH_RUNG_SUSPEND, BH_RUNG_REQUEUE, BH_RUNG_KILL, BH_RUNGS };

/* Why a pending job does not run, as far as its line knows. */
enum bh_stuck {
    BH_STUCK_NOT,   /* not looked at yet, or it waits for its turn behind others of its line */
    BH_STUCK_QUOTA, /* line.why says which */
    BH_STUCK_ROOM,  /* no place for it */
    BH_STUCK_VETO,  /* there is a place, and it is kept for others */
    BH_STUCK_STUCKS
};

struct bh_gang {
    uint64_t id;
    uint64_t submit_ms, deadline_ms, runtime_ms, min_run_ms;
    uint64_t since_ms;      /* BOUND, RUNS: told to start */
    uint64_t charged_ms;    /* since when its queue pays */
    uint64_t checkpoint_ms; /* of its last one; 0: none */
    uint64_t broken_ms;     /* a member lost its place; 0: none did */
    uint32_t shape, queue, user, line;
    uint32_t heap_at;    /* PENDING: in its line */
    uint32_t prev, next; /* RUNS: in its queue. FREE: next is the next free slot */
    uint32_t brief_at;   /* BOUND, RUNS: in the list of briefs; else BH_NONE */
    uint32_t first_hold; /* list through owners, or BH_NONE */
    uint32_t n_holds;
    uint32_t extra;      /* of its holds, members above the minimum */
    uint64_t listed;     /* the cycle in which it was seen among the elastic ones */
    uint32_t first_left; /* what it was told to leave and still has: list, or BH_NONE */
    uint64_t stays_mib,
        stays_mem_mib; /* parked: memory of GPUs and of hosts that its queue goes on paying for */
    int32_t priority;
    uint8_t state;  /* enum bh_gang_state */
    uint8_t band;   /* that it was started with */
    uint8_t urgent; /* its deadline: 0 far or none, 1 critical, 2 past */
    uint8_t
        parked; /* PENDING, LEAVES: enum bh_rung, PAUSE or SUSPEND: its holds are what stayed behind; else 0 */
};

/* Of a job that has places, what a look over all of them needs: they lie side by side. */
struct bh_brief {
    uint64_t id;
    uint64_t safe_ms; /* not interrupted before; 0: never was safe, or is for ever */
    uint32_t job, queue, shape;
    uint32_t milli; /* thousandths of GPUs; an instance counts as a GPU */
};

/* Whose a hold is; as long as the shelf's holds. */
struct bh_owner {
    uint32_t job, next;
    uint8_t role;
    bool extra;
    uint64_t since_ms;
};

/* Jobs of one shape in one queue, first come first in front as queue_order.h says. */
struct bh_line {
    uint32_t queue, shape;
    uint32_t parked; /* the one job that has its own line, since only its own place will do; or BH_NONE */
    uint32_t next;   /* of the queue */
    BH_VEC(uint32_t) heap;
    uint64_t at;                    /* when it was found stuck */
    uint64_t tried_at;              /* the round in which nobody was found to go for it */
    uint8_t stuck;                  /* enum bh_stuck */
    uint8_t band;                   /* enum bh_priority that counts now */
    struct bh_turn turn;            /* of the first; its amount and band are the line's */
    struct bh_queue_reason why;     /* BH_STUCK_QUOTA: which */
    struct bh_queue_reason why_not; /* why nobody goes for it, where that was asked */
};

#endif
