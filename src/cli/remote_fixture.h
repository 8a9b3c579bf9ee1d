/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_fixture.h - a daemon that says what the test wants, at the place where the command looks for one. Each answer is
 * given to one request; what was asked is kept in a file.
 */
#ifndef BH_CLI_REMOTE_FIXTURE_H
#define BH_CLI_REMOTE_FIXTURE_H

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"
#include "cli/remote.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

static char fixture_dir[BH_SCRATCH_SOCKET_PATH];
static pid_t fixture_pid;

static inline _Noreturn void fixture_serve(const char *const *answers, int listener, int asked)
{
    static char buf[65536];
    for (; *answers; answers++) {
        const int c = accept(listener, NULL, NULL);
        const ssize_t n = read(c, buf, sizeof(buf));
        const char *line = n > 0 ? memchr(buf, '\r', (size_t)n) : NULL;
        if (line && (write(asked, buf, (size_t)(line - buf)) < 0 || write(asked, "\n", 1) < 0))
            _exit(1);
        if (write(c, *answers, strlen(*answers)) < 0)
            _exit(1);
        (void)close(c);
    }
    _exit(0);
}

static inline bool fixture_start(const char *const *answers)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[160];
    if (!bh_scratch_make(fixture_dir, sizeof(fixture_dir), "cli") ||
        setenv("BULKHEAD_RUN_DIR", fixture_dir, 1) < 0)
        return false;
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/api.sock", fixture_dir);
    (void)snprintf(path, sizeof(path), "%s/asked", fixture_dir);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int asked = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (asked < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 8) < 0)
        return false;
    if ((fixture_pid = fork()) == 0)
        fixture_serve(answers, listener, asked);
    (void)close(listener);
    (void)close(asked);
    return fixture_pid > 0;
}

/* Ends it and gives what was asked, a line each. */
static inline const char *fixture_stop(void)
{
    static char text[8192];
    (void)kill(fixture_pid, SIGKILL);
    (void)waitpid(fixture_pid, NULL, 0);
    char *asked = bh_scratch_get(fixture_dir, "asked");
    (void)snprintf(text, sizeof(text), "%s", asked ? asked : "");
    free(asked);
    (void)bh_scratch_remove(fixture_dir);
    return text;
}

#endif
