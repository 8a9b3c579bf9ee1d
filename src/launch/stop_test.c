/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stop.h"

#include "base/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pid_t command, launcher;
    int to, from; /* of a pipe */
} w;

static pid_t start_command(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)raise(SIGSTOP);
        (void)pause();
        _exit(0);
    }
    return pid;
}

/* One that stops as its command did, and ends with why it went on. */
static pid_t start_launcher(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const int fds[BH_STOP_FDS] = {-1, w.from};
        pid_t waker;
        _exit((int)bh_stop(SIGSTOP, w.command, fds, &waker) + (waker > 0 ? 0 : 100));
    }
    return pid;
}

static bool is_stopped(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

static bool begin(void)
{
    int pair[2];
    if (pipe(pair) < 0)
        return false;
    w.from = pair[0];
    w.to = pair[1];
    w.command = start_command();
    if (w.command < 0 || !is_stopped(w.command))
        return false;
    w.launcher = start_launcher();
    return w.launcher > 0 && is_stopped(w.launcher);
}

/* Why the launcher went on. */
static int end(void)
{
    int status = 0;
    const bool ended = waitpid(w.launcher, &status, 0) == w.launcher && WIFEXITED(status);
    (void)kill(w.command, SIGKILL);
    (void)waitpid(w.command, NULL, 0);
    close(w.from);
    close(w.to);
    return ended ? WEXITSTATUS(status) : -1;
}

TEST(it_goes_on_when_its_command_does)
{
    CHECK(begin());
    (void)kill(w.command, SIGCONT);
    CHECK_EQ(end(), BH_WOKEN_FOR_COMMAND);
}

TEST(it_goes_on_when_its_command_is_gone)
{
    CHECK(begin());
    (void)kill(w.command, SIGKILL);
    CHECK_EQ(end(), BH_WOKEN_FOR_COMMAND);
}

TEST(it_goes_on_when_there_is_something_to_do)
{
    CHECK(begin());
    CHECK(write(w.to, "", 1) == 1);
    CHECK_EQ(end(), BH_WOKEN_FOR_EVENT);
}

TEST(a_shell_wakes_it)
{
    CHECK(begin());
    (void)kill(w.launcher, SIGCONT);
    CHECK_EQ(end(), BH_WOKEN_BY_OTHERS);
}

/* Whoever looks on holds the pipe as well. */
TEST(nobody_is_left_of_it)
{
    char none;
    CHECK(begin());
    (void)kill(w.launcher, SIGKILL);
    (void)kill(w.command, SIGKILL);
    close(w.to);
    w.to = -1;
    CHECK(read(w.from, &none, 1) == 0);
    CHECK_EQ(end(), -1);
}

TEST_MAIN
