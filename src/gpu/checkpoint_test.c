/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_test.c - processes that are a few numbers: every step fails once, and every state is met. */
#include "gpu/checkpoint.h"

#include "base/mem.h"
#include "base/units.h"
#include "gpu/nvml_fixture.h"

#include <signal.h>

enum { FIRST = 2000000, MANY = 3, NEVER = -1 };

static struct world {
    int state[MANY];
    bool gone[MANY];
    int dies_at, dies; /* at the n-th step this one ends; the kernel knows of it after some naps */
    uint64_t held[MANY];
    int fail_call, fail_with; /* the n-th step of all, from 0 on */
    int again;                /* and so many after it */
    bool ruins;               /* a step that fails leaves the process failed for good */
    int signal_at;            /* the n-th step is interrupted */
    int look_fails;           /* of the first process */
    int calls, naps;
    char log[400];
} w;

static const uint32_t pids[MANY] = {FIRST, FIRST + 1, FIRST + 2};

static void note(const char *what, int pid)
{
    const size_t n = strlen(w.log);
    (void)snprintf(w.log + n, sizeof(w.log) - n, "%s%d ", what, pid - FIRST);
}

/* A step as the driver takes it: from one state only. */
static int step(const char *what, int pid, int from, int to)
{
    int *state = &w.state[pid - FIRST];
    const int nth = w.calls++;
    note(what, pid);
    if (nth == w.signal_at)
        (void)raise(SIGTERM);
    if (nth == w.dies_at)
        w.gone[w.dies] = true;
    if (w.gone[pid - FIRST])
        return CUDA_ERROR_NOT_INITIALIZED;
    if (nth >= w.fail_call && w.fail_call != NEVER && nth <= w.fail_call + w.again) {
        *state = w.ruins ? CU_PROCESS_FAILED : *state;
        return w.fail_with;
    }
    if (*state != from)
        return CUDA_ERROR_ILLEGAL_STATE;
    *state = to;
    return CUDA_SUCCESS;
}

static int lock(int pid, CUcheckpointLockArgs *args)
{
    return args && args->timeout_ms ? step("L", pid, CU_PROCESS_RUNNING, CU_PROCESS_LOCKED)
                                    : (int)CUDA_ERROR_INVALID_VALUE;
}
static int checkpoint(int pid, void *args)
{
    return args ? (int)CUDA_ERROR_INVALID_VALUE : step("O", pid, CU_PROCESS_LOCKED, CU_PROCESS_CHECKPOINTED);
}
static int restore(int pid, void *args)
{
    return args ? (int)CUDA_ERROR_INVALID_VALUE : step("I", pid, CU_PROCESS_CHECKPOINTED, CU_PROCESS_LOCKED);
}
static int unlock(int pid, void *args)
{
    return args ? (int)CUDA_ERROR_INVALID_VALUE : step("U", pid, CU_PROCESS_LOCKED, CU_PROCESS_RUNNING);
}
static int state(int pid, int *ret)
{
    if (w.look_fails && pid == FIRST)
        return w.look_fails;
    if (pid < FIRST || pid >= FIRST + MANY || w.gone[pid - FIRST])
        return CUDA_ERROR_NOT_INITIALIZED;
    *ret = w.state[pid - FIRST];
    return CUDA_SUCCESS;
}
static int error_name(int result, const char **ret)
{
    *ret = result == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR_X";
    return result == 12345 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static bool alive(uint32_t pid)
{
    return pid < FIRST || !w.gone[pid - FIRST] || (w.dies_at != NEVER && w.naps < 3);
}
static void held(const uint32_t *of, uint64_t *ret, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = w.held[of[i] - FIRST];
}
/* What somebody else began ends after a while. */
static void nap(void)
{
    if (++w.naps < 5)
        return;
    for (int i = 0; i < MANY; i++)
        w.state[i] = w.state[i] == CU_PROCESS_CHECKPOINTING ? CU_PROCESS_CHECKPOINTED
                     : w.state[i] == CU_PROCESS_RESTORING   ? CU_PROCESS_LOCKED
                                                            : w.state[i];
}

static const struct bh_checkpoint_ops ops = {state,      lock,  checkpoint, restore, unlock,
                                             error_name, alive, held,       nap};

static void begin(void)
{
    w = (struct world){.fail_call = NEVER, .signal_at = NEVER, .dies_at = NEVER};
}

static bool all_are(int what)
{
    for (int i = 0; i < MANY; i++)
        if (w.state[i] != what)
            return false;
    return true;
}

TEST(what_each_is)
{
    static const struct {
        int look_fails, first, rc;
    } cases[] = {{0, CU_PROCESS_LOCKED, BH_OK},
                 {CUDA_ERROR_NOT_INITIALIZED, BH_CHECKPOINT_NONE, BH_OK},
                 {CUDA_ERROR_NOT_SUPPORTED, BH_CHECKPOINT_CANNOT, BH_REFUSED},
                 {CUDA_ERROR_OPERATING_SYSTEM, BH_CHECKPOINT_UNTOLD, BH_SYSTEM}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_err err = {0};
        int states[MANY];
        begin();
        w.state[0] = CU_PROCESS_LOCKED;
        w.state[1] = CU_PROCESS_CHECKPOINTED;
        w.gone[2] = true;
        w.look_fails = cases[i].look_fails;
        CHECK_EQ(bh_checkpoint_states_by(&ops, pids, MANY, states, &err), cases[i].rc);
        CHECK_EQ(states[0], cases[i].first);
        CHECK(states[1] == CU_PROCESS_CHECKPOINTED && states[2] == BH_CHECKPOINT_NONE);
    }
    struct bh_err err = {0};
    int states[MANY];
    begin();
    w.state[1] = 77; /* of a driver to come: that is no library without the calls */
    w.look_fails = CUDA_ERROR_NOT_SUPPORTED;
    CHECK_EQ(bh_checkpoint_states_by(&ops, pids, MANY, states, &err), BH_SYSTEM);
    CHECK(states[0] == BH_CHECKPOINT_CANNOT && states[1] == BH_CHECKPOINT_UNTOLD &&
          states[2] == CU_PROCESS_RUNNING);
}

TEST(all_are_locked_before_the_first_leaves)
{
    struct bh_err err = {0};
    begin();
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK(all_are(CU_PROCESS_CHECKPOINTED));
    CHECK_STR(w.log, "L0 L1 L2 O0 O1 O2 ");
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_OK); /* again: nothing to do */
    CHECK_EQ(w.calls, 6);
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK(all_are(CU_PROCESS_RUNNING));
    CHECK_STR(w.log, "L0 L1 L2 O0 O1 O2 I0 I1 I2 U0 U1 U2 ");
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK_EQ(w.calls, 12);
}

TEST(a_failure_at_every_step_is_put_back)
{
    static const char *const logs[2 * MANY] = {
        "L0 ",
        "L0 L1 U0 ",
        "L0 L1 L2 U1 U0 ",
        "L0 L1 L2 O0 U2 U1 U0 ",
        "L0 L1 L2 O0 O1 U2 U1 I0 U0 ",
        "L0 L1 L2 O0 O1 O2 U2 I1 U1 I0 U0 ",
    };
    for (int at = 0; at < 2 * MANY; at++) {
        struct bh_err err = {0};
        begin();
        w.fail_call = at;
        w.fail_with = CUDA_ERROR_NOT_SUPPORTED;
        CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_REFUSED);
        CHECK(all_are(CU_PROCESS_RUNNING));
        CHECK_STR(w.log, logs[at]);
        char named[96];
        (void)snprintf(named, sizeof(named), "process %d: %s: CUDA_ERROR_NOT_SUPPORTED (801)",
                       FIRST + at % MANY, at < MANY ? "lock" : "checkpoint");
        CHECK(strstr(err.msg, named) == err.msg);
        CHECK(strstr(err.msg, at < MANY ? "R570" : "managed memory"));
        CHECK(strstr(err.msg, "; all was put back"));
    }
}

TEST(what_was_suspended_before_stays_so)
{
    struct bh_err err = {0};
    begin();
    w.state[0] = CU_PROCESS_CHECKPOINTED;
    w.state[1] = CU_PROCESS_LOCKED;
    w.fail_call = 2; /* L2 O1 O2 */
    w.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_REFUSED);
    CHECK_STR(w.log, "L2 O1 O2 U2 I1 ");
    CHECK_EQ(w.state[0], CU_PROCESS_CHECKPOINTED);
    CHECK_EQ(w.state[1], CU_PROCESS_LOCKED);
    CHECK_EQ(w.state[2], CU_PROCESS_RUNNING);
    CHECK(strstr(err.msg, "host memory"));
}

TEST(putting_back_that_fails_is_said)
{
    struct bh_err err = {0};
    begin();
    w.fail_call = 3; /* O0, and the first unlock after it */
    w.again = 1;
    w.fail_with = 12345;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "process 2000000: checkpoint: an unknown CUDA error (12345)"));
    CHECK(strstr(err.msg, "putting back failed: process 2000002: unlock"));
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING); /* the others are put back all the same */
    CHECK_EQ(w.state[1], CU_PROCESS_RUNNING);
    CHECK_EQ(w.state[2], CU_PROCESS_LOCKED);
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK(all_are(CU_PROCESS_RUNNING));
}

TEST(a_checkpoint_that_ruins_the_process_is_said)
{
    struct bh_err err = {0};
    begin();
    w.fail_call = 3;
    w.fail_with = CUDA_ERROR_OPERATING_SYSTEM;
    w.ruins = true;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "process 2000000: checkpoint:"));
    CHECK(strstr(err.msg,
                 "putting back failed: process 2000000: look: an earlier checkpoint or restore failed"));
    CHECK_EQ(w.state[1], CU_PROCESS_RUNNING);
    CHECK_EQ(w.state[2], CU_PROCESS_RUNNING);
}

TEST(a_signal_at_every_step_puts_back)
{
    for (int at = 0; at < 2 * MANY; at++) {
        struct bh_err err = {0};
        sigset_t pending;
        begin();
        w.signal_at = at;
        CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_BUSY);
        CHECK(all_are(CU_PROCESS_RUNNING));
        CHECK(strstr(err.msg, "interrupted (Terminated); all was put back"));
        CHECK_EQ(sigpending(&pending), 0);
        CHECK_EQ(sigismember(&pending, SIGTERM), 0);
    }
}

static volatile sig_atomic_t signalled;
static void on_signal(int number)
{
    signalled = number;
}

TEST(a_restore_is_not_interrupted)
{
    struct bh_err err = {0};
    struct sigaction was;
    begin();
    w.signal_at = 0;
    for (int i = 0; i < MANY; i++)
        w.state[i] = CU_PROCESS_CHECKPOINTED;
    CHECK_EQ(sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, &was), 0);
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK(all_are(CU_PROCESS_RUNNING));
    CHECK_EQ(signalled, SIGTERM); /* and comes when all is done */
    CHECK_EQ(sigaction(SIGTERM, &was, NULL), 0);
}

TEST(a_restore_begins_in_any_state)
{
    static const struct {
        int from, naps;
        const char *log;
    } cases[] = {
        {CU_PROCESS_RUNNING, 0, ""},
        {CU_PROCESS_LOCKED, 0, "U0 "},
        {CU_PROCESS_CHECKPOINTED, 0, "I0 U0 "},
        {CU_PROCESS_CHECKPOINTING, 5, "I0 U0 "},
        {CU_PROCESS_RESTORING, 5, "U0 "},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_err err = {0};
        begin();
        w.state[0] = cases[i].from;
        CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, 1, NULL, &err), BH_OK);
        CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
        CHECK_EQ(w.naps, cases[i].naps);
        CHECK_STR(w.log, cases[i].log);
    }
}

TEST(one_that_failed_for_good_is_named_and_the_others_come_back)
{
    struct bh_err err = {0};
    begin();
    w.state[0] = w.state[2] = CU_PROCESS_CHECKPOINTED;
    w.state[1] = CU_PROCESS_FAILED;
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "process 2000001: look: an earlier checkpoint or restore failed"));
    CHECK(strstr(err.msg, "end it"));
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
    CHECK_EQ(w.state[2], CU_PROCESS_RUNNING);
    begin();
    w.state[1] = CU_PROCESS_FAILED;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_REFUSED);
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
    CHECK_STR(w.log, "L0 U0 ");
}

TEST(a_full_card_can_be_tried_again)
{
    struct bh_err err = {0};
    begin();
    w.state[0] = w.state[1] = w.state[2] = CU_PROCESS_CHECKPOINTED;
    w.fail_call = 1;
    w.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_BUSY);
    CHECK(strstr(err.msg, "process 2000001: restore:"));
    CHECK(strstr(err.msg, "no room"));
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
    CHECK_EQ(w.state[1], CU_PROCESS_CHECKPOINTED);
    CHECK_EQ(w.state[2], CU_PROCESS_RUNNING);
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, MANY, NULL, &err), BH_OK);
    CHECK(all_are(CU_PROCESS_RUNNING));
}

TEST(who_is_no_cuda_process_is_named_before_anything_begins)
{
    const uint32_t wrong[] = {FIRST, 4242}, self[] = {(uint32_t)getpid()}, none[] = {0};
    enum cuda_process_state now = CU_PROCESS_FAILED;
    struct bh_err err = {0};
    begin();
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, wrong, 2, NULL, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "process 4242: look:"));
    CHECK(strstr(err.msg, "no CUDA process"));
    CHECK_EQ(w.calls, 0);
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, self, 1, NULL, &err), BH_INVALID);
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, none, 1, NULL, &err), BH_INVALID);
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, 0, NULL, &err), BH_INVALID);
    CHECK_EQ(bh_checkpoint_state_by(&ops, 4242, &now, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_checkpoint_state_by(&ops, FIRST, &now, &err), BH_OK);
    CHECK_EQ(now, CU_PROCESS_RUNNING);
    w.state[0] = 99;
    CHECK_EQ(bh_checkpoint_state_by(&ops, FIRST, &now, &err), BH_REFUSED);
    w.gone[1] = true; /* one that ended while it was suspended has nothing to restore */
    w.state[0] = CU_PROCESS_LOCKED;
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, 2, NULL, &err), BH_OK);
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
}

TEST(one_that_ends_half_way_leaves_nothing_to_restore)
{
    struct bh_err err = {0};
    for (int nth = 0; nth < 2; nth++) {
        begin();
        w.dies_at = nth;
        CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 1, NULL, &err), BH_NOT_FOUND);
        CHECK_STR(err.msg,
                  "process 2000000 ended while it was being suspended: nothing of it is left to restore");
    }
    for (int nth = 0; nth < 2 * MANY; nth++) { /* the others are put back, whenever it is */
        begin();
        w.dies_at = nth;
        w.dies = 1;
        const int rc = bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err);
        if (nth == 2 * MANY - 1) { /* it was out already */
            CHECK_EQ(rc, BH_OK);
            continue;
        }
        CHECK_EQ(rc, BH_NOT_FOUND);
        CHECK_STR(err.msg,
                  "process 2000001 ended while it was being suspended: nothing of it is left to restore; all "
                  "was put back");
        CHECK(w.state[0] == CU_PROCESS_RUNNING && w.state[2] == CU_PROCESS_RUNNING);
    }
    begin(); /* before it began, and as it is brought back */
    w.gone[0] = true;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 1, NULL, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "ended while"));
    begin();
    w.state[0] = w.state[1] = CU_PROCESS_CHECKPOINTED;
    w.dies_at = 1;
    w.dies = 1;
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, 2, NULL, &err), BH_OK);
    CHECK_EQ(w.state[0], CU_PROCESS_RUNNING);
}

TEST(without_room_it_does_not_begin)
{
    char root[BH_SCRATCH_PATH];
    struct bh_err err = {0};
    CHECK(bh_scratch_root(root, sizeof(root), "ckpt"));
    bh_nvml_fixture_put("/proc/meminfo", "MemAvailable: 3145728 kB\n");
    begin();
    w.held[0] = w.held[1] = 2 * BH_GIB;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "not enough host memory: 4 GiB on the card, and 3 GiB are available"));
    CHECK_EQ(w.calls, 0);
    w.state[1] = CU_PROCESS_CHECKPOINTED; /* what is out already needs no more */
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, MANY, NULL, &err), BH_OK);
    begin();
    w.held[0] = w.held[1] = BH_GIB;
    bh_nvml_fixture_put("/proc/2000000/cgroup", "0::/job\n");
    bh_nvml_fixture_put("/proc/2000001/cgroup", "0::/job\n");
    bh_nvml_fixture_put("/sys/fs/cgroup/job/memory.max", "1610612736\n");
    bh_nvml_fixture_put("/sys/fs/cgroup/job/memory.current", "0\n");
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 1, NULL, &err), BH_OK);
    begin();
    w.held[0] = w.held[1] = BH_GIB;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 2, NULL, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "2 GiB on the card, and the cgroup '/job' has room for 1.5 GiB"));
    CHECK_EQ(w.calls, 0);
    CHECK(bh_scratch_remove(root));
    CHECK_EQ(unsetenv("BULKHEAD_SYSROOT"), 0);
}

static void hear(void *self, const struct bh_checkpoint_event *e)
{
    char *out = self;
    const size_t n = strlen(out);
    (void)snprintf(out + n, 300 - n, "%s%s%u%s%s ", e->undo ? "undo-" : "", bh_checkpoint_step_words(e->step),
                   e->pid - FIRST, e->done ? "." : "", e->bytes ? "+" : "");
}

TEST(what_happens_is_told)
{
    char said[300] = "";
    const struct bh_checkpoint_progress progress = {hear, said};
    struct bh_err err = {0};
    begin();
    w.held[0] = 1;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 1, &progress, &err), BH_OK);
    CHECK_STR(said, "lock0 lock0. checkpoint0+ checkpoint0.+ ");
    said[0] = '\0';
    CHECK_EQ(bh_checkpoint_restore_by(&ops, pids, 1, &progress, &err), BH_OK);
    CHECK_STR(said, "restore0 restore0.+ unlock0 unlock0. ");
    said[0] = '\0';
    begin();
    w.fail_call = 1;
    w.fail_with = CUDA_ERROR_NOT_READY;
    CHECK_EQ(bh_checkpoint_suspend_by(&ops, pids, 2, &progress, &err), BH_BUSY);
    CHECK_STR(said, "lock0 lock0. lock1 undo-unlock0 undo-unlock0. ");
    CHECK_STR(bh_checkpoint_state_words(CU_PROCESS_CHECKPOINTED), "suspended");
    CHECK_STR(bh_checkpoint_state_words((enum cuda_process_state)99), "unknown");
}

TEST_MAIN
