/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net_run.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, CANNOT_EXEC = 127, CANNOT_ENTER = 126, LINE = 300, ABOVE = 10 };

/* Files rather than pipes: nobody waits for anybody to read. */
static int file_with(const char *name, const char *text)
{
    const int fd = memfd_create(name, MFD_CLOEXEC);
    size_t n = text ? strlen(text) : 0;
    while (fd >= 0 && n > 0) {
        const ssize_t did = write(fd, text, n);
        if (did < 0 && errno != EINTR) {
            close(fd);
            return -1;
        }
        text += did > 0 ? did : 0;
        n -= did > 0 ? (size_t)did : 0;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* In the child: only calls that are safe after a fork. */
static _Noreturn void become(const struct bh_run *r, int in, int out, int said)
{
    static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C";
    char *env[BH_RUN_ENV_MAX + 3] = {path, locale};
    static const char *const folders[] = {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (r->enter && setns(r->netns, CLONE_NEWNET) < 0)
        _exit(CANNOT_ENTER);
    /* First out of the way of the numbers that they get. */
    const int from[] = {in, out, said, r->netns};
    int high[BH_COUNT_OF(from)];
    for (size_t i = 0; i < BH_COUNT_OF(from); i++)
        high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, ABOVE);
    for (int i = 0; i < (int)BH_COUNT_OF(from); i++)
        if (high[i] >= 0 && dup2(high[i], i) < 0)
            _exit(CANNOT_ENTER);
    for (size_t i = 0; r->env && r->env[i] && i < BH_RUN_ENV_MAX; i++)
        env[i + 2] = (char *)(uintptr_t)r->env[i];
    if (r->gid && (setgroups(0, NULL) < 0 || setresgid(r->gid, r->gid, r->gid) < 0))
        _exit(CANNOT_ENTER);
    if (r->uid && setresuid(r->uid, r->uid, r->uid) < 0)
        _exit(CANNOT_ENTER);
    if (r->argv[0][0] == '/')
        (void)execve(r->argv[0], (char *const *)(uintptr_t)r->argv, env);
    for (size_t i = 0; r->argv[0][0] != '/' && i < BH_COUNT_OF(folders); i++) {
        char at[128];
        if (snprintf(at, sizeof(at), "%s%s", folders[i], r->argv[0]) < (int)sizeof(at))
            (void)execve(at, (char *const *)(uintptr_t)r->argv, env);
    }
    _exit(CANNOT_EXEC);
}

static void read_into(int fd, struct bh_buf *out)
{
    char chunk[4096];
    (void)lseek(fd, 0, SEEK_SET);
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return;
        if (n > 0)
            bh_buf_add(out, chunk, (size_t)n);
    }
}

/* Until it has ended, or the patience has. */
static int wait_for(pid_t pid, bool *ret_late)
{
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec now, until;
    int status = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    *ret_late = false;
    for (int left = PATIENCE_MS; fd >= 0;) {
        const int n = poll(&p, 1, left);
        if (n > 0)
            break;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        left = (int)((until.tv_sec - now.tv_sec) * 1000 + (until.tv_nsec - now.tv_nsec) / 1000000);
        if (n == 0 || left <= 0) {
            *ret_late = true;
            (void)kill(pid, SIGKILL);
            break;
        }
    }
    if (fd >= 0)
        close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int judge(const struct bh_run *r, int status, bool late, int said, struct bh_err *err)
{
    struct bh_buf words;
    char command[LINE];
    size_t n = 0;
    for (size_t i = 0; r->argv[i] && n < sizeof(command) - 1; i++) {
        const int did = snprintf(command + n, sizeof(command) - n, "%s%s", i ? " " : "", r->argv[i]);
        n += did > 0 ? (size_t)did : 0;
    }
    if (late)
        return bh_fail(err, BH_BUSY, "`%.200s` did not end within %d s", command, PATIENCE_MS / 1000);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return BH_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_EXEC)
        return bh_fail(err, BH_NOT_FOUND, "%.200s is not installed, and is needed here", r->argv[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER)
        return bh_fail(err, BH_SYSTEM, "the container's network, or its user, cannot be entered");
    bh_buf_init(&words, 1 << 16);
    read_into(said, &words);
    const char *text = bh_buf_text(&words);
    const int rc = bh_fail(err, BH_SYSTEM, "`%.200s` failed: %.*s", command, (int)strcspn(text, "\n"), text);
    bh_buf_fini(&words);
    return rc;
}

int bh_run_tool(const struct bh_run *r, struct bh_err *err)
{
    const int in = file_with("input", r->input), out = file_with("output", NULL),
              said = file_with("words", NULL);
    int rc;
    const pid_t pid = in < 0 || out < 0 || said < 0 ? -1 : fork();
    if (pid == 0)
        become(r, in, out, said);
    if (pid < 0)
        rc = bh_fail(err, BH_SYSTEM, "%s cannot be started: %s", r->argv[0], strerror(errno));
    else {
        bool late;
        const int status = wait_for(pid, &late);
        rc = judge(r, status, late, said, err);
        if (r->out)
            read_into(out, r->out);
    }
    const int all[] = {in, out, said};
    for (size_t i = 0; i < BH_COUNT_OF(all); i++)
        if (all[i] >= 0)
            close(all[i]);
    return rc;
}
