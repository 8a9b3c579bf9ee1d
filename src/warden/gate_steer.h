/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_steer.h - what of a tenant's could get at who runs on the card, and for how long. Of the gate alone.
 *
 * The driver lets anybody pause and resume any channel by its name, and a tenant set its own slice. So a channel of somebody
 * else is nobody's to touch here, and in a lease whose share is held, neither are its own.
 */
#ifndef BH_WARDEN_GATE_STEER_H
#define BH_WARDEN_GATE_STEER_H

#include "gpu/abi/rm.h"
#include "warden/gate_inside.h"

struct bh_gate_steered;

/* NULL: this control is not about that. A group that is scheduled is noted in passing. */
const struct bh_gate_steered *bh_gate_steered(struct bh_gate *g, const struct rm_control *call);
/* Answers it; call is the copy that is decided on, of what is at `at` in the tenant. */
int bh_gate_steer(struct bh_gate *g, struct bh_gate_call *c, uint64_t at, struct rm_control *call,
                  const struct bh_gate_steered *what);
/* RM_ALLOC of a channel, in a lease whose share is held: made here, so that its name is known. call: the copy of either form. */
int bh_gate_channel(struct bh_gate *g, struct bh_gate_call *c, uint64_t at, void *call, size_t size);

#endif
