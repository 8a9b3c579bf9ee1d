/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what each mechanism does, for mech.c alone. */
#ifndef BH_NODE_MECH_INSIDE_H
#define BH_NODE_MECH_INSIDE_H

#include "node/mech/mech.h"

/* BH_NOT_FOUND: every instance of the lease is cut. */
int bh_mech_mig_next(struct bh_daemon *d, const bh_store_grants *grants, struct bh_mech_cut *ret,
                     struct bh_err *err) BH_MUST_USE;
void bh_mech_mig_work(const struct bh_mech_cut *c, struct bh_worker_result *ret);
int bh_mech_mig_made(struct bh_daemon *d, const struct bh_mech_cut *c, const char *said,
                     struct bh_err *err) BH_MUST_USE;
/* Its capability nodes are added; *ret_name: what the driver calls it. */
int bh_mech_mig_gift(struct bh_daemon *d, const struct bh_slice_name *name, struct bh_mech_gift *gift,
                     const char **ret_name, struct bh_err *err) BH_MUST_USE;

/* ---- MPS ---- */

/* BH_NOT_FOUND: its server runs, or it needs none. One that is new is written down before this returns. */
int bh_mech_mps_next(struct bh_daemon *d, struct bh_life *run, const bh_store_grants *grants,
                     struct bh_mech_server *ret, struct bh_err *err) BH_MUST_USE;
void bh_mech_mps_work(const struct bh_mech_server *s, struct bh_worker_result *ret);
int bh_mech_mps_made(struct bh_daemon *d, const struct bh_mech_server *s, struct bh_err *err) BH_MUST_USE;
int bh_mech_mps_gift(struct bh_daemon *d, const struct bh_life *run, const bh_store_grants *grants,
                     struct bh_arena *arena, struct bh_mech_gift *gift, struct bh_err *err) BH_MUST_USE;
void bh_mech_mps_restore(struct bh_daemon *d);
void bh_mech_mig_restore(struct bh_daemon *d);

#endif
