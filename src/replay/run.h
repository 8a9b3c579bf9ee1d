/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - the openb experiment: work arrives until more is asked for than there is, nothing leaves, and one counts what
 * found a place.
 *
 * As published with the trace ("Beware of Fragmentation", ATC'23): the pods in an order drawn from the seed, then more
 * of them drawn from the list until they ask for 130 % of the GPUs (a list that asks for more loses some instead); one at
 * a time, what fits nowhere is dropped; ties between nodes go by an order that is drawn too. Typical work, for the
 * fragment measure and for the policies that use it, is the most frequent 95 % of the list. The figures "at 100" are means
 * over the arrivals at which what was asked for, rounded to a whole per cent of the GPUs, is 100.
 */
#ifndef BH_REPLAY_RUN_H
#define BH_REPLAY_RUN_H

#include "core/sched/score.h"
#include "replay/openb.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_ARRIVE_PERCENT = 130, BH_ARRIVALS_MAX = 1 << 24 };

struct bh_run_setup {
    enum bh_score_mode mode;
    uint64_t seed;
    bool scans_all; /* every node for every pod: the same decisions, for comparison */
};

/* At one whole per cent of arrival, in millionths: means over its arrivals; fragments elsewhere than at 100 after its first. */
struct bh_run_point {
    uint32_t arrivals; /* 0: none rounds to it */
    uint32_t allocated_ppm;
    uint32_t fragment_ppm; /* of all GPUs */
    uint32_t ratio_ppm;    /* fragments of what is idle */
};

struct bh_run_result {
    enum bh_score_mode mode;
    uint64_t seed;
    uint32_t placed, failed;
    uint64_t prepare_ns, decide_ns; /* all classes before the first arrival; all decisions */
    uint64_t p50_ns, p99_ns, max_ns;
    uint64_t digest; /* of every pod's place */
    struct bh_run_point at[BH_ARRIVE_PERCENT + 1];
};

int bh_run_openb(const struct bh_openb *o, const struct bh_run_setup *setup, struct bh_run_result *ret,
                 struct bh_err *err) BH_MUST_USE;

/* The order of arrival: indices into o->pods, the caller frees them. Negative: it would be too long. */
int bh_run_arrivals(const struct bh_openb *o, uint64_t seed, uint32_t **ret, size_t *ret_n,
                    struct bh_err *err) BH_MUST_USE;

#endif
