/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever fails on the way off the cards and back; the governor and the driver's calls are stand-ins (wrapped by the linker). */
#include "launch/suspend.h"

#include "base/mem.h"
#include "base/test.h"
#include "launch/governor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE = 7, VERSION = 4 };
static struct bh_err err;

/* What each call answers, and what it was asked. Shared with the guard, which is a child, by a pipe alone. */
static struct {
    int find, states, hold, suspend, keep, restore, order;
    uint32_t state, root; /* of the lease, as the governor shows it */
    uint32_t n_pids, pids[3];
    int pid_states[3]; /* of those; every other is BH_CHECKPOINT_NONE, but for below */
    uint32_t below;    /* a process of which the governor knows nothing */
    int below_state;
    size_t many; /* instead of those, so many that run */
    int dies_in_suspend;
    int heard; /* where it says whom it restores; -1: it does not */
} play;
static struct {
    unsigned holds, suspends, keeps, restores, orders;
    uint32_t suspended[3], restored[3];
    size_t n_suspended, n_restored;
    int held;
    bool order_after_restore;
} seen;

static void begin(void)
{
    play = (__typeof__(play)){.state = BH_GOVERN_SHOWN_RUNS,
                              .root = (uint32_t)getpid(),
                              .n_pids = 2,
                              .pids = {101, 102},
                              .pid_states = {CU_PROCESS_RUNNING, CU_PROCESS_RUNNING},
                              .heard = -1};
    seen = (__typeof__(seen)){.held = -1};
    err = (struct bh_err){0};
}

static int as(int code, const char *who, struct bh_err *e)
{
    return code < 0 ? bh_fail(e, (enum bh_code)code, "%s", who) : BH_OK;
}

int __wrap_bh_governor_find(const char *lease, struct bh_governor_all *add, struct bh_err *e);
int __wrap_bh_governor_hold(uint64_t lease, int *ret_fd, uint32_t *ret_version, struct bh_err *e);
int __wrap_bh_governor_keep(int fd, uint32_t version, uint64_t lease, struct bh_err *e);
int __wrap_bh_governor_order(uint64_t lease, enum bh_govern_what what, struct bh_err *e);
int __wrap_bh_checkpoint_states(const uint32_t *pids, size_t n, int *ret_states, struct bh_err *e);
int __wrap_bh_checkpoint_suspend(const uint32_t *pids, size_t n,
                                 const struct bh_checkpoint_progress *progress, struct bh_err *e);
int __wrap_bh_checkpoint_restore(const uint32_t *pids, size_t n,
                                 const struct bh_checkpoint_progress *progress, struct bh_err *e);

/* The first process is in a row as well as in the list. */
int __wrap_bh_governor_find(const char *lease, struct bh_governor_all *add, struct bh_err *e)
{
    (void)lease;
    if (play.find < 0)
        return as(play.find, "find", e);
    *bh_vec_push(&add->rows) = (struct bh_govern_row){
        .lease = LEASE, .state = play.state, .root_pid = play.root, .n_pids = 1, .pids = {play.pids[0]}};
    for (uint32_t i = 0; i < play.n_pids; i++)
        *bh_vec_push(&add->pids) = (struct bh_governor_pid){LEASE, play.pids[i]};
    for (size_t i = 0; i < play.many; i++)
        *bh_vec_push(&add->pids) = (struct bh_governor_pid){LEASE, (uint32_t)(1000000 + i)};
    return BH_OK;
}

int __wrap_bh_governor_hold(uint64_t lease, int *ret_fd, uint32_t *ret_version, struct bh_err *e)
{
    seen.holds += lease == LEASE;
    if (play.hold < 0)
        return as(play.hold, "hold", e);
    *ret_fd = seen.held = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *ret_version = VERSION;
    return BH_OK;
}

int __wrap_bh_governor_keep(int fd, uint32_t version, uint64_t lease, struct bh_err *e)
{
    seen.keeps += fd == seen.held && version == VERSION && lease == LEASE;
    return as(play.keep, "keep", e);
}

int __wrap_bh_governor_order(uint64_t lease, enum bh_govern_what what, struct bh_err *e)
{
    seen.orders += lease == LEASE && what == BH_GOVERN_RESUME;
    seen.order_after_restore = seen.restores > 0;
    return as(play.order, "order", e);
}

int __wrap_bh_checkpoint_states(const uint32_t *pids, size_t n, int *ret_states, struct bh_err *e)
{
    for (size_t i = 0; i < n; i++) {
        ret_states[i] = pids[i] >= 1000000 && play.many       ? CU_PROCESS_RUNNING
                        : play.below && pids[i] == play.below ? play.below_state
                                                              : BH_CHECKPOINT_NONE;
        for (uint32_t k = 0; k < play.n_pids; k++)
            if (pids[i] == play.pids[k])
                ret_states[i] = play.pid_states[k];
    }
    return as(play.states, "states", e);
}

int __wrap_bh_checkpoint_suspend(const uint32_t *pids, size_t n,
                                 const struct bh_checkpoint_progress *progress, struct bh_err *e)
{
    (void)progress;
    if (play.dies_in_suspend)
        _exit(0);
    seen.suspends++;
    seen.n_suspended = n;
    for (size_t i = 0; i < n && i < BH_COUNT_OF(seen.suspended); i++)
        seen.suspended[i] = pids[i];
    return as(play.suspend, "suspend", e);
}

int __wrap_bh_checkpoint_restore(const uint32_t *pids, size_t n,
                                 const struct bh_checkpoint_progress *progress, struct bh_err *e)
{
    (void)progress;
    seen.restores++;
    seen.n_restored = n;
    for (size_t i = 0; i < n && i < BH_COUNT_OF(seen.restored); i++)
        seen.restored[i] = pids[i];
    if (play.heard >= 0)
        (void)!write(play.heard, pids, n * sizeof(pids[0]));
    return as(play.restore, "restore", e);
}

TEST(all_that_use_cuda_leave_together)
{
    begin();
    play.n_pids = 3;
    play.pids[2] = 103;
    play.pid_states[1] = BH_CHECKPOINT_NONE;
    play.pid_states[2] = CU_PROCESS_CHECKPOINTED; /* already there */
    CHECK_EQ(bh_suspend("a", NULL, &err), BH_OK);
    CHECK(seen.holds == 1 && seen.suspends == 1 && seen.keeps == 1 && seen.restores == 0);
    CHECK(seen.n_suspended == 2 && seen.suspended[0] == 101 && seen.suspended[1] == 103);
    CHECK(fcntl(seen.held, F_GETFD) < 0); /* and nothing is left open */
}

TEST(what_fails_before_anybody_is_held)
{
    static const struct {
        int find, states, pid_state;
        size_t many;
        int wanted;
        const char *text;
    } cases[] = {{BH_NOT_FOUND, 0, CU_PROCESS_RUNNING, 0, BH_NOT_FOUND, "find"},
                 {0, BH_REFUSED, CU_PROCESS_RUNNING, 0, BH_REFUSED, "states"},
                 {0, 0, BH_CHECKPOINT_NONE, 0, BH_NOT_FOUND, "nothing on a GPU"},
                 {0, 0, CU_PROCESS_RUNNING, 4095, BH_TOO_LARGE, "4097 processes"}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        begin();
        play.find = cases[i].find;
        play.states = cases[i].states;
        play.pid_states[0] = play.pid_states[1] = cases[i].pid_state;
        play.many = cases[i].many;
        CHECK_EQ(bh_suspend("a", NULL, &err), cases[i].wanted);
        CHECK(strstr(err.msg, cases[i].text));
        CHECK(seen.holds == 0 && seen.suspends == 0 && seen.restores == 0);
    }
}

TEST(what_fails_while_it_is_held)
{
    begin();
    play.hold = BH_BUSY;
    CHECK_EQ(bh_suspend("a", NULL, &err), BH_BUSY);
    CHECK(seen.suspends == 0 && seen.keeps == 0 && seen.restores == 0);

    begin(); /* which puts back what it did itself */
    play.suspend = BH_BUSY;
    CHECK_EQ(bh_suspend("a", NULL, &err), BH_BUSY);
    CHECK(seen.suspends == 1 && seen.keeps == 0 && seen.restores == 0);
    CHECK(fcntl(seen.held, F_GETFD) < 0);
}

TEST(a_suspension_that_is_not_kept_is_put_back)
{
    begin();
    play.keep = BH_BUSY;
    play.pid_states[0] = CU_PROCESS_CHECKPOINTED; /* before, and stays so */
    CHECK_EQ(bh_suspend("a", NULL, &err), BH_BUSY);
    CHECK(seen.restores == 1 && seen.n_restored == 1 && seen.restored[0] == 102);
    CHECK(strstr(err.msg, "all was put back"));

    begin();
    play.keep = BH_BUSY;
    play.restore = BH_SYSTEM;
    CHECK_EQ(bh_suspend("a", NULL, &err), BH_BUSY);
    CHECK(seen.restores == 1 && seen.n_restored == 2);
    CHECK(strstr(err.msg, "could not be brought back; bulkhead resume"));
}

/* Whom the guard brings back where this command is killed with its work half done. */
TEST(a_command_that_is_killed_half_way_is_put_back_by_its_guard)
{
    uint32_t pids[4] = {0};
    int heard[2];
    begin();
    CHECK_EQ(pipe2(heard, O_CLOEXEC), 0);
    play.heard = heard[1];
    play.dies_in_suspend = true;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(bh_suspend("a", NULL, &err) == BH_OK ? 1 : 2);
    close(heard[1]);
    struct pollfd at = {.fd = heard[0], .events = POLLIN};
    CHECK_EQ(poll(&at, 1, 10000), 1);
    CHECK_EQ(read(heard[0], pids, sizeof(pids)), 2 * sizeof(pids[0]));
    CHECK(pids[0] == 101 && pids[1] == 102);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    close(heard[0]);
}

TEST(a_paused_one_is_resumed_before_the_driver_is_asked)
{
    begin();
    play.state = BH_GOVERN_SHOWN_PAUSED;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.orders == 1 && !seen.order_after_restore && seen.restores == 0);
    begin();
    play.state = BH_GOVERN_SHOWN_PAUSED;
    play.order = BH_BUSY;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_BUSY);
    CHECK_EQ(seen.restores, 0);
    begin();
    play.find = BH_CONFLICT;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_CONFLICT);
    CHECK_EQ(seen.orders, 0);
}

TEST(a_suspended_one_is_back_before_it_counts_again)
{
    begin();
    play.state = BH_GOVERN_SHOWN_SUSPENDED;
    play.pid_states[1] = CU_PROCESS_CHECKPOINTED;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.n_restored == 1 && seen.restored[0] == 102);
    CHECK(seen.orders == 1 && seen.order_after_restore);
    begin();
    play.state = BH_GOVERN_SHOWN_SUSPENDED;
    play.pid_states[0] = CU_PROCESS_LOCKED;
    play.restore = BH_SYSTEM;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_SYSTEM);
    CHECK_EQ(seen.orders, 0);
}

/* The governor that followed one that was killed was not told: it shows the lease as running, and might pause it meanwhile. */
TEST(one_whose_suspension_nobody_knows_of_is_held_while_it_comes_back)
{
    begin();
    play.pid_states[1] = CU_PROCESS_CHECKPOINTED;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.holds == 1 && seen.restores == 1 && seen.restored[0] == 102);
    CHECK(seen.orders == 2 && seen.order_after_restore);
    CHECK(fcntl(seen.held, F_GETFD) < 0); /* let go */
    begin();
    play.pid_states[1] = CU_PROCESS_CHECKPOINTED;
    play.hold = BH_NOT_FOUND; /* gone meanwhile: it is brought back all the same */
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.restores == 1 && seen.orders == 1);
    begin();
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.holds == 0 && seen.restores == 0);
}

TEST(who_cannot_be_told_to_run)
{
    static const struct {
        uint32_t state;
        int states, pid_state, wanted;
    } cases[] = {
        {BH_GOVERN_SHOWN_RUNS, BH_SYSTEM, BH_CHECKPOINT_UNTOLD, BH_SYSTEM},
        {BH_GOVERN_SHOWN_RUNS, BH_NOT_FOUND, BH_CHECKPOINT_UNTOLD, BH_OK}, /* no library: nobody can be */
        {BH_GOVERN_SHOWN_RUNS, BH_REFUSED, BH_CHECKPOINT_UNTOLD, BH_OK},
        {BH_GOVERN_SHOWN_SUSPENDED, BH_NOT_FOUND, BH_CHECKPOINT_UNTOLD, BH_NOT_FOUND},
        {BH_GOVERN_SHOWN_RUNS, BH_SYSTEM, BH_CHECKPOINT_NONE, BH_OK}, /* it is another's that is not told */
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        begin();
        play.state = cases[i].state;
        play.states = cases[i].states;
        play.pid_states[0] = cases[i].pid_state;
        CHECK_EQ(bh_unsuspend("a", NULL, &err), cases[i].wanted);
        CHECK_EQ(seen.restores, 0);
    }
}

/* One that the governor does not name, because its warden knew less. */
TEST(those_below_the_first_process_come_back_too)
{
    int end[2];
    char c;
    begin();
    CHECK_EQ(pipe2(end, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        _exit((int)read(end[0], &c, 1));
    }
    close(end[0]);
    play.below = (uint32_t)pid;
    play.below_state = CU_PROCESS_CHECKPOINTED;
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK(seen.n_restored == 1 && seen.restored[0] == (uint32_t)pid);
    seen = (__typeof__(seen)){.held = -1};
    play.root = 0; /* nobody's */
    CHECK_EQ(bh_unsuspend("a", NULL, &err), BH_OK);
    CHECK_EQ(seen.restores, 0);
    close(end[1]);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST_MAIN
