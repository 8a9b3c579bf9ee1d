/* SPDX-License-Identifier: Apache-2.0 */
/* signals_test.c - which signals go to a command, from whom, and with what; the command is a process that says what it hears first. */
#include "launch/signals.h"

#include "base/test.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK 64 /* ends what it hears: it comes after all that were sent before */

struct heard {
    int signal, value;
};

static struct {
    pid_t pid;
    int from;
} command;

static _Noreturn void hear(int to)
{
    siginfo_t si = {0};
    struct heard h;
    sigset_t all;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) /* a test that fails leaves it */
        _exit(1);
    sigfillset(&all);
    h.signal = sigwaitinfo(&all, &si);
    h.value = si.si_code == SI_QUEUE ? si.si_value.sival_int : 0;
    _exit(write(to, &h, sizeof(h)) == (ssize_t)sizeof(h) ? 0 : 1);
}

/* It is forked with all signals blocked, so none is lost. */
static bool start(void)
{
    int pair[2];
    sigset_t all, old;
    sigfillset(&all);
    if (pipe(pair) < 0 || sigprocmask(SIG_SETMASK, &all, &old) < 0)
        return false;
    command.from = pair[0];
    command.pid = fork();
    if (command.pid == 0)
        hear(pair[1]);
    close(pair[1]);
    return sigprocmask(SIG_SETMASK, &old, NULL) == 0 && command.pid > 0;
}

static struct heard finish(void)
{
    struct heard h = {0};
    (void)kill(command.pid, MARK);
    if (read(command.from, &h, sizeof(h)) != (ssize_t)sizeof(h))
        h.signal = -1;
    (void)waitpid(command.pid, NULL, 0);
    close(command.from);
    return h;
}

/* What the command hears first when this was read; -1: it could not be seen. */
static int sent_on(int signal, int code, uint32_t sender)
{
    const struct signalfd_siginfo si = {.ssi_signo = (uint32_t)signal, .ssi_code = code, .ssi_pid = sender};
    if (!start() || bh_signals_send_on(&si, command.pid, false))
        return -1;
    return finish().signal;
}

TEST(what_others_send_is_sent_on)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        CHECK_EQ(sent_on(signals[i], SI_USER, (uint32_t)getppid()), signals[i]);
}

/* The kernel sends them to the whole group. */
TEST(what_the_terminal_sends_has_reached_the_command)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        CHECK_EQ(sent_on(signals[i], SI_KERNEL, 0), MARK);
    CHECK_EQ(sent_on(SIGPWR, SI_KERNEL, 0), SIGPWR);
}

/* But its end is told to the leader of the session alone. */
TEST(a_leader_of_a_session_sends_on_that_its_terminal_is_gone)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(setsid() < 0 || sent_on(SIGHUP, SI_KERNEL, 0) != SIGHUP ||
              sent_on(SIGCONT, SI_KERNEL, 0) != SIGCONT || sent_on(SIGINT, SI_KERNEL, 0) != MARK);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(what_this_process_or_the_command_sent_is_not_sent_on)
{
    CHECK_EQ(sent_on(SIGPIPE, SI_USER, (uint32_t)getpid()), MARK);
    CHECK(start());
    const struct signalfd_siginfo own = {
        .ssi_signo = SIGTERM, .ssi_code = SI_USER, .ssi_pid = (uint32_t)command.pid};
    CHECK(!bh_signals_send_on(&own, command.pid, false));
    CHECK_EQ(finish().signal, MARK);
}

TEST(a_value_goes_with_a_queued_signal)
{
    const struct signalfd_siginfo si = {
        .ssi_signo = SIGUSR1, .ssi_code = SI_QUEUE, .ssi_pid = (uint32_t)getppid(), .ssi_ptr = 4711};
    CHECK(start());
    CHECK(!bh_signals_send_on(&si, command.pid, false));
    const struct heard h = finish();
    CHECK_EQ(h.signal, SIGUSR1);
    CHECK_EQ(h.value, 4711);
}

TEST(ctrl_z_is_for_this_process_where_the_command_is_stopped)
{
    const struct signalfd_siginfo si = {.ssi_signo = SIGTSTP, .ssi_code = SI_KERNEL};
    CHECK(start());
    CHECK(bh_signals_send_on(&si, command.pid, true));
    CHECK_EQ(finish().signal, MARK);
}

TEST(they_are_read_as_data_and_given_back)
{
    struct bh_signals s;
    struct signalfd_siginfo si = {0};
    sigset_t before, after;
    CHECK(sigprocmask(SIG_SETMASK, NULL, &before) == 0);
    CHECK(bh_signals_take(&s, NULL) == BH_OK);
    CHECK(raise(SIGTERM) == 0);
    const ssize_t n = read(s.fd, &si, sizeof(si));
    bh_signals_restore(&s);
    close(s.fd);
    CHECK(n == (ssize_t)sizeof(si));
    CHECK_EQ(si.ssi_signo, SIGTERM);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &after) == 0);
    for (int i = 1; i < 32; i++)
        CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

/* Or nobody could wait for a command. */
TEST(children_can_be_waited_for_where_that_was_ignored)
{
    struct bh_signals s;
    CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR && bh_signals_ignored(SIGCHLD));
    CHECK(bh_signals_take(&s, NULL) == BH_OK);
    const bool while_taken = bh_signals_ignored(SIGCHLD);
    bh_signals_restore(&s);
    close(s.fd);
    CHECK(!while_taken && bh_signals_ignored(SIGCHLD));
    CHECK(signal(SIGCHLD, SIG_DFL) != SIG_ERR && !bh_signals_ignored(SIGCHLD));
}

TEST_MAIN
