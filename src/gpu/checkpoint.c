/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - the way of processes off the card and back.
 *
 * A table says for each state which step comes next on the way to a goal. After every step the driver is asked again: what
 * it says counts, not what was expected. All processes are locked before the first one's memory leaves, so that those of one
 * tenant stop together.
 */
#include "gpu/checkpoint.h"

#include "base/mem.h"
#include "base/units.h"
#include "gpu/host_room.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum goal { GOAL_LOCKED, GOAL_OUT, GOAL_IN, GOAL_RUNNING, GOALS };
enum { STATES = CU_PROCESS_RESTORING + 1, ROUNDS = 8, NAPS = 12000, ENDING_NAPS = 10 };
/* Beside the steps: what else may follow from a state. */
enum { ARRIVED = BH_CHECKPOINT_STEPS, STUCK, WAIT };

static const uint8_t next_step[GOALS][STATES] = {
    [GOAL_LOCKED] = {[CU_PROCESS_RUNNING] = BH_CHECKPOINT_LOCK,
                     [CU_PROCESS_LOCKED] = ARRIVED,
                     [CU_PROCESS_CHECKPOINTED] = ARRIVED,
                     [CU_PROCESS_FAILED] = STUCK,
                     [CU_PROCESS_CHECKPOINTING] = WAIT,
                     [CU_PROCESS_RESTORING] = WAIT},
    [GOAL_OUT] = {[CU_PROCESS_RUNNING] = BH_CHECKPOINT_LOCK,
                  [CU_PROCESS_LOCKED] = BH_CHECKPOINT_OUT,
                  [CU_PROCESS_CHECKPOINTED] = ARRIVED,
                  [CU_PROCESS_FAILED] = STUCK,
                  [CU_PROCESS_CHECKPOINTING] = WAIT,
                  [CU_PROCESS_RESTORING] = WAIT},
    [GOAL_IN] = {[CU_PROCESS_RUNNING] = ARRIVED,
                 [CU_PROCESS_LOCKED] = ARRIVED,
                 [CU_PROCESS_CHECKPOINTED] = BH_CHECKPOINT_IN,
                 [CU_PROCESS_FAILED] = STUCK,
                 [CU_PROCESS_CHECKPOINTING] = WAIT,
                 [CU_PROCESS_RESTORING] = WAIT},
    [GOAL_RUNNING] = {[CU_PROCESS_RUNNING] = ARRIVED,
                      [CU_PROCESS_LOCKED] = BH_CHECKPOINT_UNLOCK,
                      [CU_PROCESS_CHECKPOINTED] = BH_CHECKPOINT_IN,
                      [CU_PROCESS_FAILED] = STUCK,
                      [CU_PROCESS_CHECKPOINTING] = WAIT,
                      [CU_PROCESS_RESTORING] = WAIT},
};

static const struct {
    const char *words;
    bool moves;
} steps[BH_CHECKPOINT_STEPS] = {
    [BH_CHECKPOINT_LOCK] = {"lock", false},
    [BH_CHECKPOINT_OUT] = {"checkpoint", true},
    [BH_CHECKPOINT_IN] = {"restore", true},
    [BH_CHECKPOINT_UNLOCK] = {"unlock", false},
};
static const char *const state_words[STATES] = {"running", "locked",          "suspended",
                                                "failed",  "being suspended", "being restored"};

const char *bh_checkpoint_step_words(enum bh_checkpoint_step step)
{
    return step < BH_CHECKPOINT_STEPS ? steps[step].words : "look";
}

const char *bh_checkpoint_state_words(enum cuda_process_state state)
{
    return (unsigned)state < STATES ? state_words[state] : "unknown";
}

/* What an answer means and what to do; the first row that fits. step BH_CHECKPOINT_STEPS: at any. */
static const struct {
    int result;
    enum bh_checkpoint_step step;
    enum bh_code code;
    const char *words;
} advice[] = {
    {CUDA_ERROR_NOT_INITIALIZED, BH_CHECKPOINT_STEPS, BH_NOT_FOUND,
     "it is no CUDA process; name the process that uses the GPU itself, not one that started it"},
    {CUDA_ERROR_NOT_SUPPORTED, BH_CHECKPOINT_OUT, BH_REFUSED,
     "this driver cannot suspend it: managed memory, memory shared with another process and MPS clients are "
     "beyond it, or the card is; pause the tenant instead"},
    {CUDA_ERROR_NOT_SUPPORTED, BH_CHECKPOINT_STEPS, BH_REFUSED,
     "this driver cannot; suspending needs R570 or later"},
    {CUDA_ERROR_NOT_READY, BH_CHECKPOINT_LOCK, BH_BUSY,
     "its submitted work did not end in time; resume its channels if they are paused, or try again later"},
    {CUDA_ERROR_OUT_OF_MEMORY, BH_CHECKPOINT_IN, BH_BUSY,
     "the card has no room for it now; free memory there and restore again"},
    {CUDA_ERROR_OUT_OF_MEMORY, BH_CHECKPOINT_STEPS, BH_REFUSED,
     "host memory ran out; free some, or raise the limit of its cgroup"},
    {CUDA_ERROR_ILLEGAL_STATE, BH_CHECKPOINT_STEPS, BH_CONFLICT,
     "somebody else suspends or restores it at the same time; look again"},
    {CUDA_ERROR_NOT_PERMITTED, BH_CHECKPOINT_STEPS, BH_DENIED, "not permitted; run as root"},
    {CUDA_ERROR_OPERATING_SYSTEM, BH_CHECKPOINT_STEPS, BH_SYSTEM,
     "the kernel refused, or the process ended meanwhile; run as root, in its namespaces"},
};

struct run {
    const struct bh_checkpoint_ops *ops;
    const struct bh_checkpoint_progress *progress;
    bool undo;
};

/* step BH_CHECKPOINT_STEPS: it was only looked at. */
static int fail_step(const struct run *r, uint32_t pid, enum bh_checkpoint_step step, int result,
                     struct bh_err *err)
{
    const char *name = NULL, *words = "CUDA says no more";
    enum bh_code code = BH_SYSTEM;
    if (!r->ops->error_name || r->ops->error_name(result, &name) != CUDA_SUCCESS || !name)
        name = "an unknown CUDA error";
    for (size_t i = 0; i < BH_COUNT_OF(advice); i++)
        if (advice[i].result == result && (advice[i].step == step || advice[i].step == BH_CHECKPOINT_STEPS)) {
            code = advice[i].code;
            words = advice[i].words;
            break;
        }
    return bh_fail(err, code, "process %" PRIu32 ": %s: %.60s (%d): %s", pid, bh_checkpoint_step_words(step),
                   name, result, words);
}

static int look(const struct run *r, uint32_t pid, int *ret, struct bh_err *err)
{
    int result = r->ops->state((int)pid, ret);
    if (result)
        return fail_step(r, pid, BH_CHECKPOINT_STEPS, result, err);
    if (*ret < 0 || *ret >= STATES)
        return bh_fail(err, BH_REFUSED,
                       "process %" PRIu32 ": look: this driver names a state %d that is not known", pid,
                       *ret);
    return BH_OK;
}

/* One that ends is no CUDA process a while before it is gone. */
static bool has_ended(const struct run *r, uint32_t pid, int rc)
{
    bool ended = false;
    if (rc != BH_NOT_FOUND && rc != BH_SYSTEM) /* what is said of one that is not there */
        return false;
    for (int i = 0; i < ENDING_NAPS && !ended; i++) {
        ended = !r->ops->alive(pid);
        if (!ended)
            r->ops->nap();
    }
    return ended;
}

static int fail_ended(uint32_t pid, struct bh_err *err)
{
    return bh_fail(err, BH_NOT_FOUND,
                   "process %" PRIu32 " ended while it was being suspended: nothing of it is left to restore",
                   pid);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void tell(const struct run *r, const struct bh_checkpoint_event *e)
{
    if (r->progress && r->progress->tell)
        r->progress->tell(r->progress->self, e);
}

static int issue(const struct bh_checkpoint_ops *ops, uint32_t pid, enum bh_checkpoint_step step)
{
    CUcheckpointLockArgs lock = {.timeout_ms = BH_CHECKPOINT_LOCK_MS};
    switch (step) {
    case BH_CHECKPOINT_LOCK:
        return ops->lock((int)pid, &lock);
    case BH_CHECKPOINT_OUT:
        return ops->checkpoint((int)pid, NULL);
    case BH_CHECKPOINT_IN:
        return ops->restore((int)pid, NULL);
    case BH_CHECKPOINT_UNLOCK:
        return ops->unlock((int)pid, NULL);
    case BH_CHECKPOINT_STEPS:
        break;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* What it moved is what it held before, or holds after; asked only where somebody listens. */
static int take_step(const struct run *r, uint32_t pid, enum bh_checkpoint_step step, struct bh_err *err)
{
    struct bh_checkpoint_event e = {.pid = pid, .step = step, .undo = r->undo};
    const bool counts = r->progress && r->progress->tell && r->ops->held && steps[step].moves;
    if (counts && step == BH_CHECKPOINT_OUT)
        r->ops->held(&pid, &e.bytes, 1);
    tell(r, &e);
    const uint64_t begun = now_ns();
    const int result = issue(r->ops, pid, step);
    e.ns = now_ns() - begun;
    if (result)
        return fail_step(r, pid, step, result, err);
    if (counts && step == BH_CHECKPOINT_IN)
        r->ops->held(&pid, &e.bytes, 1);
    e.done = true;
    tell(r, &e);
    return BH_OK;
}

static int drive(const struct run *r, uint32_t pid, enum goal goal, struct bh_err *err)
{
    uint32_t naps = 0;
    for (int round = 0; round < ROUNDS;) {
        int state = CU_PROCESS_RUNNING, rc = look(r, pid, &state, err);
        if (rc < 0)
            return rc;
        switch (next_step[goal][state]) {
        case ARRIVED:
            return BH_OK;
        case STUCK:
            return bh_fail(
                err, BH_REFUSED,
                "process %" PRIu32
                ": look: an earlier checkpoint or restore failed, and CUDA cannot bring it back; end "
                "it and start it again",
                pid);
        case WAIT:
            if (++naps > NAPS)
                return bh_fail(err, BH_BUSY,
                               "process %" PRIu32 ": look: it is %s by somebody else and does not get on",
                               pid, bh_checkpoint_state_words((enum cuda_process_state)state));
            r->ops->nap();
            break;
        default:
            rc = take_step(r, pid, (enum bh_checkpoint_step)next_step[goal][state], err);
            if (rc < 0)
                return rc;
            round++;
        }
    }
    return bh_fail(err, BH_CONFLICT,
                   "process %" PRIu32 ": its state changes all the time; somebody else is at it", pid);
}

/* --- before it begins --- */

static int check_pids(const uint32_t *pids, size_t n, struct bh_err *err)
{
    if (n == 0)
        return bh_fail(err, BH_INVALID, "no process is named");
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == 0 || pids[i] > INT32_MAX)
            return bh_fail(err, BH_INVALID, "%" PRIu32 " is no process", pids[i]);
        if (pids[i] == (uint32_t)getpid())
            return bh_fail(err, BH_INVALID, "process %" PRIu32 " cannot suspend itself", pids[i]);
    }
    return BH_OK;
}

static int fail_room(uint64_t need, uint64_t room, const char *group, struct bh_err *err)
{
    struct bh_unit_text a, b;
    (void)bh_size_format(need, &a);
    (void)bh_size_format(room, &b);
    if (group)
        return bh_fail(
            err, BH_REFUSED,
            "not enough host memory: %s on the card, and the cgroup '%.200s' has room for %s; raise its "
            "memory.max",
            a.s, group, b.s);
    return bh_fail(
        err, BH_REFUSED,
        "not enough host memory: %s on the card, and %s are available on this machine; free some first", a.s,
        b.s);
}

/* What is to leave the card must have a place. Where either side cannot be told, the driver will say. */
static int check_room(const struct bh_checkpoint_ops *ops, const uint32_t *pids, const int *states, size_t n,
                      struct bh_err *err)
{
    BH_AUTOFREE uint64_t *held = bh_alloc(n, sizeof(*held));
    BH_AUTOFREE struct bh_host_group *groups = bh_alloc(n, sizeof(*groups));
    uint64_t total = 0, machine = UINT64_MAX;
    if (ops->held)
        ops->held(pids, held, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t together = 0;
        if (states[i] == CU_PROCESS_CHECKPOINTED)
            held[i] = 0;
        total += held[i];
        bh_host_group_read(pids[i], &groups[i]);
        for (size_t k = 0; k <= i; k++)
            if (strcmp(groups[k].path, groups[i].path) == 0)
                together += held[k];
        if (together > groups[i].room)
            return fail_room(together, groups[i].room, groups[i].path, err);
    }
    if (bh_host_available(&machine) && total > machine)
        return fail_room(total, machine, NULL, err);
    return BH_OK;
}

/* --- suspending --- */

static sigset_t signals_blocked(sigset_t *ret_before)
{
    sigset_t these;
    (void)sigemptyset(&these);
    (void)sigaddset(&these, SIGINT);
    (void)sigaddset(&these, SIGTERM);
    (void)sigaddset(&these, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &these, ret_before);
    return these;
}

/* BH_BUSY: somebody wants it to end. The signal is taken; one more ends the caller when all is put back. */
static int check_signals(const sigset_t *these, struct bh_err *err)
{
    const struct timespec none = {0};
    const int got = sigtimedwait(these, NULL, &none);
    return got > 0 ? bh_fail(err, BH_BUSY, "interrupted (%s)", strsignal(got)) : BH_OK;
}

/* In reverse, each to where it was found. Whoever is gone needs nothing. */
static int put_back(const struct run *r, const uint32_t *pids, const int *states, size_t n,
                    struct bh_err *err)
{
    const struct run undo = {r->ops, r->progress, true};
    int first = BH_OK;
    for (size_t i = n; i-- > 0;) {
        struct bh_err why = {0};
        if (states[i] == CU_PROCESS_CHECKPOINTED || !r->ops->alive(pids[i]))
            continue;
        const enum goal goal = states[i] == CU_PROCESS_LOCKED ? GOAL_IN : GOAL_RUNNING;
        int rc = drive(&undo, pids[i], goal, &why);
        if (rc < 0 && first == BH_OK && !has_ended(r, pids[i], rc))
            first = bh_fail(err, why.code, "%s", why.msg);
    }
    return first;
}

static int suspend_all(const struct run *r, const uint32_t *pids, const int *states, size_t n,
                       const sigset_t *signals, struct bh_err *err)
{
    static const enum goal order[] = {GOAL_LOCKED, GOAL_OUT};
    struct bh_err why = {0}, worse = {0};
    bool ended = false;
    int rc = BH_OK;
    for (size_t g = 0; g < BH_COUNT_OF(order); g++)
        for (size_t i = 0; i < n && rc >= 0; i++) {
            rc = check_signals(signals, &why);
            if (rc < 0)
                break;
            rc = drive(r, pids[i], order[g], &why);
            ended = rc < 0 && has_ended(r, pids[i], rc);
            rc = ended ? fail_ended(pids[i], &why) : rc;
        }
    if (rc >= 0)
        rc = check_signals(signals, &why);
    if (rc >= 0)
        return BH_OK;
    if (put_back(r, pids, states, n, &worse) < 0)
        return bh_fail(err, (enum bh_code)rc, "%.220s; and putting back failed: %.200s; restore again",
                       why.msg, worse.msg);
    return bh_fail(err, (enum bh_code)rc, "%s%s", why.msg, ended && n == 1 ? "" : "; all was put back");
}

int bh_checkpoint_suspend_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                             const struct bh_checkpoint_progress *progress, struct bh_err *err)
{
    const struct run r = {ops, progress, false};
    sigset_t before;
    int rc = check_pids(pids, n, err);
    if (rc < 0)
        return rc;
    BH_AUTOFREE int *states = bh_alloc(n, sizeof(*states));
    const sigset_t signals = signals_blocked(&before);
    for (size_t i = 0; i < n && rc == BH_OK; i++) {
        rc = look(&r, pids[i], &states[i], err);
        if (rc < 0 && !ops->alive(pids[i])) /* another is not waited for: it may not use CUDA */
            rc = fail_ended(pids[i], err);
    }
    rc = rc < 0 ? rc : check_room(ops, pids, states, n, err);
    rc = rc < 0 ? rc : suspend_all(&r, pids, states, n, &signals, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int bh_checkpoint_restore_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                             const struct bh_checkpoint_progress *progress, struct bh_err *err)
{
    static const enum goal order[] = {GOAL_IN, GOAL_RUNNING};
    const struct run r = {ops, progress, false};
    struct bh_err first = {0};
    sigset_t before;
    int rc = check_pids(pids, n, err);
    if (rc < 0)
        return rc;
    BH_AUTOFREE bool *failed = bh_alloc(n, sizeof(*failed));
    (void)signals_blocked(&before);
    for (size_t g = 0; g < BH_COUNT_OF(order); g++)
        for (size_t i = 0; i < n; i++) {
            struct bh_err why = {0};
            if (failed[i] || !ops->alive(pids[i]))
                continue;
            const int failure = drive(&r, pids[i], order[g], &why);
            failed[i] = failure < 0 && !has_ended(&r, pids[i], failure);
            if (failed[i] && rc == BH_OK) {
                rc = why.code;
                first = why;
            }
        }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc < 0 ? bh_fail(err, (enum bh_code)rc, "%s", first.msg) : BH_OK;
}

int bh_checkpoint_state_by(const struct bh_checkpoint_ops *ops, uint32_t pid, enum cuda_process_state *ret,
                           struct bh_err *err)
{
    const struct run r = {.ops = ops};
    int state = CU_PROCESS_RUNNING, rc = look(&r, pid, &state, err);
    if (rc == BH_OK)
        *ret = (enum cuda_process_state)state;
    return rc;
}

int bh_checkpoint_states_by(const struct bh_checkpoint_ops *ops, const uint32_t *pids, size_t n,
                            int *ret_states, struct bh_err *err)
{
    const struct run r = {.ops = ops};
    struct bh_err untold = {0}, cannot = {0};
    for (size_t i = 0; i < n; i++) {
        int state = CU_PROCESS_RUNNING;
        const int result = ops->state((int)pids[i], &state);
        const bool unknown = !result && (state < 0 || state >= STATES);
        ret_states[i] = state;
        if (!result && !unknown)
            continue;
        /* Not initialised is what is said of a process without CUDA. */
        const bool none = result == CUDA_ERROR_NOT_INITIALIZED || !ops->alive(pids[i]);
        const bool refused = result == CUDA_ERROR_NOT_SUPPORTED;
        ret_states[i] = none ? BH_CHECKPOINT_NONE : refused ? BH_CHECKPOINT_CANNOT : BH_CHECKPOINT_UNTOLD;
        struct bh_err *first = refused ? &cannot : &untold;
        if (none || first->code)
            continue;
        if (unknown)
            (void)bh_fail(first, BH_SYSTEM, "process %" PRIu32 ": look: a state %d that is not known",
                          pids[i], state);
        else
            (void)fail_step(&r, pids[i], BH_CHECKPOINT_STEPS, result, first);
    }
    const struct bh_err *why = untold.code ? &untold : &cannot;
    return why->code ? bh_fail(err, why->code, "%s", why->msg) : BH_OK;
}
