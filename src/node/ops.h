/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - what the API asks the daemon to do (api/ops.h). */
#ifndef BH_NODE_OPS_H
#define BH_NODE_OPS_H

#include "node/daemon.h"

void bh_ops_init(struct bh_daemon *d);
/* The end of a turn of the loop: what was taken is committed, told to the scheduler and answered. */
int bh_ops_commit(struct bh_daemon *d, struct bh_err *err);
/*
 * A record of what happened whatever becomes of the record (owed.h), durable at the end of the turn or at once; NULL: what is owed
 * already is tried again. On failure it is kept, and tried again by every command and every tick.
 */
int bh_ops_owe(struct bh_daemon *d, const struct bh_audit_event *e, bool at_once, struct bh_err *err);
/* The answers that are worked out rather than read (why.c). */
int bh_ops_why(void *self, const struct bh_api_caller *by, uint64_t job, uint64_t ticket,
               struct bh_arena *arena, struct bh_api_why *ret, struct bh_err *err);
const char *bh_ops_waits(void *self, uint64_t job);
int bh_ops_what_if(void *self, const struct bh_api_caller *by, const struct bh_api_whatif *what,
                   uint64_t ticket, struct bh_err *err);

#endif
