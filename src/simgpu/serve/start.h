/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - a simulated node as a process: brought up, ended, and never left behind half. */
#ifndef BH_SIMGPU_SERVE_START_H
#define BH_SIMGPU_SERVE_START_H

#include "base/err.h"
#include "simgpu/home.h"
#include "simgpu/node.h"
#include "simgpu/wire.h"

/*
 * A daemon that serves the node under this name; returns when it answers. What it says goes to `log` in its folder.
 * On failure nothing is left of it.
 */
int bh_sim_start(const char *name, const struct bh_sim_node *node, struct bh_sim_place *ret,
                 struct bh_err *err) BH_MUST_USE;
/* The same in this process, until it is stopped; ready is called when it answers. */
int bh_sim_start_here(const char *name, const struct bh_sim_node *node,
                      void (*ready)(const struct bh_sim_place *place, void *arg), void *arg,
                      struct bh_err *err) BH_MUST_USE;
/*
 * End it and wait until it is gone; one that died is swept away, one that does not answer is ended by a signal, where
 * the caller may send it one.
 */
int bh_sim_stop(const struct bh_sim_place *place, struct bh_err *err) BH_MUST_USE;
/* A request of the node's owner: n bytes of body, and room for body_max of a reply, whose sentence becomes err. */
int bh_sim_order(const struct bh_sim_place *place, enum bh_sim_op op, uint64_t a, char *body, size_t n,
                 size_t body_max, struct bh_err *err) BH_MUST_USE;

#endif
