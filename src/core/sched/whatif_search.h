/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_search.h - the smallest change that would start a job that waits.
 *
 * In this order, whatever the size: waiting, for a time that is known; moving or ending jobs, the fewest GPUs in all;
 * raising one quota, by the least; adding GPUs, the fewest. If none of these alone is enough, the quotas on
 * its path and GPUs together; then jobs that run and jobs that wait before it, with quotas where it takes that
 * (one that was suspended goes on where its memory is, whatever is added elsewhere). Each answer was tried
 * (whatif.h): a change is only named if the job starts with it.
 *
 * On a small fleet all of it is looked through. On a large one there are too many sets of jobs that could end, too many
 * values of a quota, too many ways to place nodes: `least` says whether every cheaper one was tried, or only the
 * likely ones.
 */
#ifndef BH_CORE_SCHED_WHATIF_SEARCH_H
#define BH_CORE_SCHED_WHATIF_SEARCH_H

#include "core/sched/whatif.h"

struct bh_remedy_config {
    uint64_t horizon_ms; /* waiting: how far ahead one looks */
    uint32_t steps_max;  /* ... and through how many changes */
    uint32_t sets_max;   /* of jobs to end */
};
void bh_remedy_config_init(struct bh_remedy_config *c);

struct bh_remedy {
    enum bh_change_kind
        kind; /* of the steps; BH_CHANGE_NONE: none was found. Several kinds: that of the dearest */
    bh_changes steps;
    uint64_t cost; /* milliseconds; thousandths of GPUs that move or end; of the resource; GPUs */
    bool least;    /* no cheaper one was left untried */
};
/* s is what w was made from, and is only looked at. */
void bh_remedy_find(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                    const struct bh_remedy_config *c, struct bh_remedy *ret);
void bh_remedy_fini(struct bh_remedy *r);

/* ---- the rungs, for tests: each finds the best of its kind, or says no ---- */
bool bh_remedy_wait(struct bh_whatif *w, uint64_t job, const struct bh_remedy_config *c,
                    struct bh_remedy *ret);
bool bh_remedy_free(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                    const struct bh_remedy_config *c, struct bh_remedy *ret);
bool bh_remedy_quota(struct bh_whatif *w, const struct bh_sched *s, uint64_t job, struct bh_remedy *ret);
bool bh_remedy_add(struct bh_whatif *w, const struct bh_sched *s, uint64_t job, struct bh_remedy *ret);
/* These changes, and as many others out of the way as it takes; what is not needed of all that is left out. */
bool bh_remedy_clear(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                     const struct bh_change *with, size_t n_with, const struct bh_remedy_config *c,
                     struct bh_remedy *ret);
/* Quotas on the job's way, each as much as is asked for and kept there; returns how many. */
enum { BH_RAISES_MAX = 64 };
size_t bh_remedy_raises(const struct bh_sched *s, uint64_t job, struct bh_change *ret);

#endif
