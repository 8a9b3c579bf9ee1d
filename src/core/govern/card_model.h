/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card_model.h - a card to hold the controller against, in model time; for tests only.
 *
 * One card serves the tenants that have work round robin, each for its slice. Leaving a tenant that still
 * has work costs a preemption, going on after one that has finished costs less, going on with the same one
 * costs nothing. A pause cuts into running work. Pauses and resumes are calls made one after the other and
 * take effect when they return. Sensors are late and inexact as told. card_model_test.c says how near this
 * comes to what was measured.
 *
 * Sensors may also be those of the real card (by_turns): they see who has it, which an idle tenant may as long as nobody
 * else wants it, and every 150 ms or so how busy the card was in all. What is made of that is the controller's own
 * (core/govern/use.h), as in the warden.
 */
#ifndef BH_CORE_GOVERN_CARD_MODEL_H
#define BH_CORE_GOVERN_CARD_MODEL_H

#include "core/govern/govern.h"
#include "core/govern/use.h"

#include <stdbool.h>

enum { CARD_TENANTS = 32, CARD_WAITS = 4096, CARD_CALLS = 256, CARD_LATE_MAX = 16 };

enum card_kind {
    CARD_LONG,       /* four kernels of 8.3 ms, then it synchronizes */
    CARD_SHORT,      /* kernels of 50 us, always more in the queue */
    CARD_SYNC,       /* synchronizes after every 0.2 ms of work */
    CARD_GRAPH,      /* replays a graph of 5 ms, two in flight */
    CARD_PERSISTENT, /* one kernel that never ends */
    CARD_BATCH,      /* two hundred kernels of 50 us, then it synchronizes */
    CARD_GAPS,       /* a millisecond's round of which a quarter is its host's */
    CARD_SPORADIC,   /* 0.215 ms of work every 5 ms */
    CARD_KINDS,
};

/* Work a submission carries, pause before the next, or the period of what comes by the clock. */
struct card_pattern {
    int64_t work_ns, gap_ns, period_ns;
};

struct card_tenant {
    uint64_t id;
    enum card_kind kind;
    struct card_pattern pattern; /* that of its kind, or its own */
    bool present, resting;       /* resting: submits nothing new */
    bool paused, will_pause;
    int64_t slice_ns;
    int64_t work_ns;  /* submitted and not done */
    int64_t ready_ns; /* when it submits next */
    int64_t arrived_ns;
    int64_t done_ns; /* GPU time ever */
    int64_t told_ns; /* of that, said by the sensor */
    int64_t late_ns[CARD_LATE_MAX];
    bool worked; /* since the sensors were read */
    bool known;  /* the sensors were asked for it before */
    int64_t wait_ns[CARD_WAITS];
    uint32_t n_waits;
    int64_t paused_total_ns;
    struct {        /* by_turns */
        bool wants; /* as far as was told it never leaves the card empty */
        int64_t had_ns, told_ns, heard_ns;
        int64_t turn_ns, long_ns;
        uint64_t turns;
    } seen;
};

struct card {
    int64_t now_ns;
    int64_t preempt_ns, yield_ns, pause_ns, resume_ns;
    uint32_t noise_permille, late_steps; /* of the sensors */
    bool by_turns;
    bool new_unknown;          /* of whom the sensors were not asked before they tell nothing */
    int64_t use_every_ns;      /* a sample; 0: 143 to 167 ms */
    uint32_t use_off_permille; /* by up to so much the card is seen less busy than it was */
    uint64_t dice;
    struct card_tenant at[CARD_TENANTS];
    uint32_t n;
    int loaded, running; /* whose state is on the card; who runs, or -1 */
    int64_t slice_start_ns, switch_end_ns;
    int64_t idle_ns, switch_total_ns;
    struct {
        uint32_t tenant;
        bool pause;
        int64_t at_ns;
    } call[CARD_CALLS];
    uint32_t n_calls;
    int64_t caller_free_ns; /* when the one who pauses and resumes is done with what it has to do */
    uint64_t calls_made;
    int64_t moved_ns; /* when another had the card last */
    struct {          /* by_turns */
        struct bh_use book;
        int64_t read_ns, from_ns, next_ns, worked_ns;
        struct bh_use_samples news; /* that nobody has asked for yet */
        uint64_t taken_ns;          /* the last one that somebody has */
        uint32_t asks;
    } use;
};

void card_init(struct card *c);
/* Index of the new tenant. */
uint32_t card_add(struct card *c, uint64_t id, enum card_kind kind);
void card_remove(struct card *c, uint32_t tenant);
void card_rest(struct card *c, uint32_t tenant, bool resting);
/* From now on it submits something else. */
void card_turn_into(struct card *c, uint32_t tenant, enum card_kind kind);
void card_run(struct card *c, int64_t ns);
/* What the sensors say since they were read last. Paused: the flag says unknown. */
void card_sense(struct card *c, uint32_t tenant, struct bh_govern_asked *ret);
void card_apply(struct card *c, const struct bh_govern_out *out);
/* GPU time used alone, in ppm. */
int64_t card_alone_ppm(enum card_kind kind);
/* `permille` 500 is the median; sorts what was collected. */
int64_t card_wait_ns(struct card_tenant *t, uint32_t permille);

#endif
