/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_driver.h - how the gate reaches the driver and the tenant's memory in the middle of a call. Of the gate alone.
 */
#ifndef BH_WARDEN_GATE_DRIVER_H
#define BH_WARDEN_GATE_DRIVER_H

#include "warden/gate_inside.h"

/* All of them: 0, or a negative errno. */
int bh_gate_fetch(const struct bh_gate_call *c, uint64_t at, void *to, size_t n);
int bh_gate_store(const struct bh_gate_call *c, uint64_t at, const void *from, size_t n);
int bh_gate_store_all(const struct bh_gate_call *c, const struct bh_remote_piece *pieces, size_t n);
/* One of the driver's calls on the tenant's file, with the tenant's rights. */
int bh_gate_issue(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, size_t size, void *arg);
/* Issues it if who asked for it still waits: else what was read may have been somebody else's memory. */
int bh_gate_carry_out(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, size_t size,
                      void *arg);

#endif
