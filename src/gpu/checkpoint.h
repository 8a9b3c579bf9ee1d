/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - suspends other processes to host memory and brings them back, unmodified, through CUDA's own calls.
 *
 * A process is locked (its CUDA calls wait, its submitted work ends), then its memory leaves the card; restored, it goes on
 * where it was. A suspension that fails, or is interrupted, puts back what it did. Restoring begins in whatever state
 * a process is found, also after whoever suspended it was killed, and may be repeated. Needs driver R570 and root.
 *
 * Channels of the processes must be running: paused work never ends, so that a lock would wait in vain.
 */
#ifndef BH_GPU_CHECKPOINT_H
#define BH_GPU_CHECKPOINT_H

#include "base/err.h"
#include "gpu/abi/cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Work that a process has submitted must end in this time. */
enum { BH_CHECKPOINT_LOCK_MS = 30000 };

enum bh_checkpoint_step {
    BH_CHECKPOINT_LOCK,
    BH_CHECKPOINT_OUT, /* its memory leaves the card */
    BH_CHECKPOINT_IN,
    BH_CHECKPOINT_UNLOCK,
    BH_CHECKPOINT_STEPS
};
const char *bh_checkpoint_step_words(enum bh_checkpoint_step step);   /* `lock` */
const char *bh_checkpoint_state_words(enum cuda_process_state state); /* `running` */

/* Said before a step and after it. */
struct bh_checkpoint_event {
    uint32_t pid;
    enum bh_checkpoint_step step;
    bool done, undo; /* undo: something went wrong, and this puts back */
    uint64_t ns;     /* how long it took, when it is done */
    uint64_t bytes;  /* moved by it; 0: not known, or none. Bytes a second are bytes over ns */
};
struct bh_checkpoint_progress {
    void (*tell)(void *self, const struct bh_checkpoint_event *event);
    void *self;
};

/*
 * All of them are suspended, or none that was not before. SIGINT, SIGTERM and SIGHUP do not end the caller meanwhile: after
 * the step that is under way all is put back, the signal is taken and the answer is BH_BUSY. progress may be NULL.
 */
int bh_checkpoint_suspend(const uint32_t *pids, size_t n, const struct bh_checkpoint_progress *progress,
                          struct bh_err *err) BH_MUST_USE;
/* All of them run again, but those that fail; the first failure is told. Signals wait until it is done. */
int bh_checkpoint_restore(const uint32_t *pids, size_t n, const struct bh_checkpoint_progress *progress,
                          struct bh_err *err) BH_MUST_USE;
int bh_checkpoint_state(uint32_t pid, enum cuda_process_state *ret, struct bh_err *err) BH_MUST_USE;
/* Of several: an enum cuda_process_state each, or one of these. Fails where one of the last two is among them, all are filled
 * in then too; BH_NOT_FOUND and BH_REFUSED: nobody can be suspended here, for want of a library or of a driver that can. */
enum {
    BH_CHECKPOINT_NONE = -1,   /* no CUDA process, or gone */
    BH_CHECKPOINT_CANNOT = -2, /* the driver does not suspend it */
    BH_CHECKPOINT_UNTOLD = -3, /* it cannot be told */
};
int bh_checkpoint_states(const uint32_t *pids, size_t n, int *ret_states, struct bh_err *err) BH_MUST_USE;

/* --- the parts, for tests --- */

struct bh_checkpoint_ops {
    __typeof__(cuCheckpointProcessGetState) *state;
    __typeof__(cuCheckpointProcessLock) *lock;
    __typeof__(cuCheckpointProcessCheckpoint) *checkpoint;
    __typeof__(cuCheckpointProcessRestore) *restore;
    __typeof__(cuCheckpointProcessUnlock) *unlock;
    __typeof__(cuGetErrorName) *error_name;
    bool (*alive)(uint32_t pid);
    /* What each holds on the cards, 0 where it cannot be told. */
    void (*held)(const uint32_t *pids, uint64_t *ret_bytes, size_t n);
    void (*nap)(void); /* while another's step is under way */
};
int bh_checkpoint_suspend_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                             const struct bh_checkpoint_progress *progress, struct bh_err *err) BH_MUST_USE;
int bh_checkpoint_restore_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                             const struct bh_checkpoint_progress *progress, struct bh_err *err) BH_MUST_USE;
int bh_checkpoint_state_by(const struct bh_checkpoint_ops *ops, uint32_t pid, enum cuda_process_state *ret,
                           struct bh_err *err) BH_MUST_USE;
int bh_checkpoint_states_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                            int *ret_states, struct bh_err *err) BH_MUST_USE;

#endif
