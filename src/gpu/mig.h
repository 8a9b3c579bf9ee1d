/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.h - cutting a GPU into MIG instances, and putting it together again.
 *
 * The only part of src/gpu that changes a GPU. Whoever opens a card to change it shows a right that its owner
 * gave for this very card, so that nobody's card is cut by mistake; without one everything can be read and
 * nothing changed. Instances are told apart by (profile id, first memory slice): their own ids and UUIDs do
 * not survive being made anew. Not for two threads at once.
 */
#ifndef BH_GPU_MIG_H
#define BH_GPU_MIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_GPU_MIG_PARTS_MAX = 16, BH_GPU_MIG_CIS_MAX = 8, BH_GPU_MIG_PROFILES_MAX = 32 };

/* The owner's word that this card's layout is ours to change. */
struct bh_gpu_mig_right {
    char uuid[96];      /* the GPU it is for */
    const char *holder; /* who gave it, for the record; never NULL */
};

/* A compute instance. */
struct bh_gpu_mig_ci {
    uint32_t id, profile_id, start, size; /* in compute slices of its GPU instance */
};

/* A GPU instance as found. */
struct bh_gpu_mig_part {
    uint32_t gi, profile_id, start, size; /* in memory slices of the GPU */
    char profile[32];                     /* `1g.18gb`; "" when the driver does not say */
    uint32_t whole_ci; /* the compute profile over all of it, that a wanted instance has; UINT32_MAX: none */
    uint32_t n_cis;
    struct bh_gpu_mig_ci cis[BH_GPU_MIG_CIS_MAX];
};

/* In the order of their places. */
struct bh_gpu_mig_layout {
    size_t n;
    struct bh_gpu_mig_part at[BH_GPU_MIG_PARTS_MAX];
};

/* A GPU instance as wanted; it gets one compute instance over all of it. */
struct bh_gpu_mig_want {
    uint32_t profile_id, start;
};

struct bh_gpu_mig_profile {
    uint32_t id, slices, sm;
    uint32_t room; /* how many more of it fit now; 0 while MIG is off */
    uint64_t memory_mib;
    char name[32];
};

/* What a change did. */
struct bh_gpu_mig_result {
    size_t n_kept, n_destroyed, n_created; /* GPU instances; what was put back is not counted */
    bool put_back; /* it failed, and the layout found stands again (with new UUIDs): that was looked at */
    bool is_known; /* `now` could be read; false beside counts: the change was made and nobody can see it */
    struct bh_gpu_mig_layout now;
};

struct bh_gpu_mig;

/* right NULL: to read only. BH_INVALID: the right is for another GPU. */
int bh_gpu_mig_open(struct bh_gpu_mig **ret, const char *uuid, const struct bh_gpu_mig_right *right,
                    struct bh_err *err) BH_MUST_USE;
void bh_gpu_mig_close(struct bh_gpu_mig *m); /* NULL is fine */

/* Is MIG on? BH_REFUSED: the GPU has none. BH_CONFLICT: a change of mode waits for a reset. */
int bh_gpu_mig_is_on(const struct bh_gpu_mig *m, bool *ret, struct bh_err *err) BH_MUST_USE;
int bh_gpu_mig_read(const struct bh_gpu_mig *m, struct bh_gpu_mig_layout *ret,
                    struct bh_err *err) BH_MUST_USE;
/* The profiles of this GPU and how many more of each it has room for. */
int bh_gpu_mig_profiles(const struct bh_gpu_mig *m, struct bh_gpu_mig_profile ret[BH_GPU_MIG_PROFILES_MAX],
                        size_t *ret_n, struct bh_err *err) BH_MUST_USE;
/* `1g.5gb@0, 3g.20gb@4 (no compute instance)`, or `none`. */
void bh_gpu_mig_words(const struct bh_gpu_mig_layout *l, char *buf, size_t size);

/*
 * These need the right: BH_DENIED without. BH_BUSY: somebody uses the GPU or the instance, and who is named where the
 * driver tells. What one made and could not look at is removed again.
 */
/* On, where it is not. BH_CONFLICT: only at a reset, or off at one. Whoever reads a card has it open, if only for a moment, and while
 * somebody has its mode stays: it is asked for again for as long as patience_ms. */
int bh_gpu_mig_turn_on(struct bh_gpu_mig *m, uint32_t patience_ms, struct bh_err *err) BH_MUST_USE;
int bh_gpu_mig_create_gi(struct bh_gpu_mig *m, struct bh_gpu_mig_want want, uint32_t *ret_gi,
                         struct bh_err *err) BH_MUST_USE;
/* One over the whole GPU instance. */
int bh_gpu_mig_create_ci(struct bh_gpu_mig *m, uint32_t gi, uint32_t *ret_ci, struct bh_err *err) BH_MUST_USE;
int bh_gpu_mig_destroy_ci(struct bh_gpu_mig *m, uint32_t gi, uint32_t ci, struct bh_err *err) BH_MUST_USE;
int bh_gpu_mig_destroy_gi(struct bh_gpu_mig *m, uint32_t gi, struct bh_err *err) BH_MUST_USE;

/*
 * The wanted layout, by the smallest change, or nothing: refused while any process is on the GPU; on a failure what was
 * found is put back. *ret (may be NULL) is written in either case.
 */
int bh_gpu_mig_apply(struct bh_gpu_mig *m, const struct bh_gpu_mig_want *want, size_t n,
                     struct bh_gpu_mig_result *ret, struct bh_err *err) BH_MUST_USE;

#endif
