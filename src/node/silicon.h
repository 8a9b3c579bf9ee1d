/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silicon.h - this machine's GPUs as the daemon last saw them, in three forms: the driver's snapshot, the fleet that the core
 * judges, and the rows that the API shows.
 */
#ifndef BH_NODE_SILICON_H
#define BH_NODE_SILICON_H

#include "api/ops.h"
#include "node/worker.h"
#include "store/state_slice.h"
#include "survey/survey.h"

struct bh_silicon {
    struct bh_gpu_snapshot snapshot; /* what the fleet was made from: admission and scheduler borrow both */
    struct bh_survey survey;
    bool here;                  /* both are filled */
    struct bh_gpu_snapshot now; /* the latest look at all of it, for what changes all the time */
    bool has_now;
    enum bh_gpu_depth depth; /* of the look that goes on */
    struct bh_worker worker; /* that looks */
    void *board;             /* on which it writes what it sees; NULL: none has looked yet */
    struct bh_arena arena;
    BH_VEC(struct bh_api_gpu) rows;
    BH_VEC(struct bh_api_switch) switches;
};

/* In a process of its own, so that a driver that hangs costs a sentence. On failure what was known stays. */
int bh_silicon_read(struct bh_silicon *s, const char *node, struct bh_err *err) BH_MUST_USE;
void bh_silicon_fini(struct bh_silicon *s);
/* Another look, at who is on the cards (BH_GPU_USERS), all that changes (STATE), or where links lead as well (FLEET): begun, and
 * taken in when the worker has a result. */
int bh_silicon_look(struct bh_silicon *s, enum bh_gpu_depth depth, struct bh_err *err) BH_MUST_USE;
/* Of one at more than users. *ret_moved: cards came or went, or are cut in another way, so that all must be made anew; on failure what was
 * known stays. */
int bh_silicon_looked(struct bh_silicon *s, bool *ret_moved, struct bh_err *err) BH_MUST_USE;
/* Of the other. ret: the caller's to free. *ret_odd: it is not the cards and the driver of the last deep look, which should be
 * made again. */
int bh_silicon_looked_who(struct bh_silicon *s, struct bh_gpu_snapshot *ret, bool *ret_odd,
                          struct bh_err *err) BH_MUST_USE;

const struct bh_fleet *bh_silicon_fleet(const struct bh_silicon *s);
/* The daemon itself has switched MIG on there: a card that is so now has not changed. */
void bh_silicon_is_cut(struct bh_silicon *s, const char *uuid);
/* NULL: no such GPU now. */
const struct bh_gpu_device *bh_silicon_device(const struct bh_silicon *s, const char *uuid);
/* In the fleet's words; false: it has none of that uuid. */
bool bh_silicon_ref(const struct bh_silicon *s, const char *uuid, struct bh_gpu_ref *ret);
const char *bh_silicon_uuid(const struct bh_silicon *s, struct bh_gpu_ref ref); /* or NULL */

/* Every card into the store, new or known. In the caller's transaction. */
int bh_silicon_record(const struct bh_silicon *s, struct bh_store *store, uint64_t now_ms,
                      struct bh_err *err) BH_MUST_USE;
/* The rows anew: what the driver says, with cordons, health and quarantines from the store. pool_of: or NULL. */
int bh_silicon_rows(struct bh_silicon *s, struct bh_store *store, const struct bh_policy *policy,
                    struct bh_err *err) BH_MUST_USE;

#endif
