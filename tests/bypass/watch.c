/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - the two helpers that stand outside of the lease: one counts, one lends. */
#include "bypass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_US = 1000, SAY_ANYWAY = 20, WATCHED_MAX = 64 };

/* ---- who can still do something ---- */

static size_t head_of(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* It will run no instruction of its own any more: it is on its way out, or a SIGKILL waits for it. */
static bool is_thread_stopped(const char *pid, const char *tid)
{
    enum { FLAGS_FIELD = 7, EXITING = 4 }; /* of /proc/PID/stat, behind the name */
    char path[320], text[4096];
    (void)snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", pid, tid);
    if (head_of(path, text, sizeof(text)) == 0)
        return true;
    const char *at = strrchr(text, ')');
    if (at && at[1] == ' ' && strchr("ZXx", at[2]))
        return true;
    unsigned flags = 0;
    for (int i = 0; at && i < FLAGS_FIELD; i++)
        at = strchr(at + 1, ' ');
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        flags = flags * 10 + (unsigned)(*at - '0');
    if (flags & EXITING)
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
    if (head_of(path, text, sizeof(text)) == 0)
        return true;
    const char *pending = strstr(text, "\nSigPnd:\t"); /* sixteen digits, of which the ninth bit is SIGKILL */
    return pending && strlen(pending) > 9 + 16 && strchr("13579bdf", pending[9 + 13]);
}

static bool is_stopped(const char *pid)
{
    char path[32];
    bool stopped = true;
    (void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e && stopped; e = readdir(d))
        stopped = e->d_name[0] == '.' || is_thread_stopped(pid, e->d_name);
    if (d)
        closedir(d);
    return stopped;
}

/* Now, and what is so now. */
static bool say(const char *what)
{
    char line[64];
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const int n =
        snprintf(line, sizeof(line), "%llu %s\n",
                 (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec, what);
    return write(STDOUT_FILENO, line, (size_t)n) == n;
}

/* Those whose numbers came on stdin, each in a line of eight characters. */
static struct {
    char pid[WATCHED_MAX][8];
    size_t n;
} watched;

static bool look_at_watched(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    bool good = true;
    while (watched.n < WATCHED_MAX && poll(&in, 1, 0) > 0 && in.revents & POLLIN) {
        char *to = watched.pid[watched.n];
        if (read(STDIN_FILENO, to, sizeof(watched.pid[0])) != (ssize_t)sizeof(watched.pid[0]))
            break;
        to[strcspn(to, " \n")] = '\0';
        watched.n++;
    }
    for (size_t i = watched.n; i-- > 0;) {
        char what[24];
        if (!is_stopped(watched.pid[i]))
            continue;
        (void)snprintf(what, sizeof(what), "stopped %s", watched.pid[i]);
        good = say(what) && good;
        memcpy(watched.pid[i], watched.pid[--watched.n], sizeof(watched.pid[0]));
    }
    return good;
}

/* `NANOSECONDS FREE-BYTES` at each change, and now and then without one; `NANOSECONDS stopped PID`. */
int bp_watch(void)
{
    struct rm r;
    uint64_t last = UINT64_MAX, now;
    rm_must_open(&r);
    for (unsigned i = 0;; i++) {
        char what[24];
        if (rm_free_bytes(&r, &now) != RM_OK)
            bp_bad("the driver does not tell what is free");
        (void)snprintf(what, sizeof(what), "%llu", (unsigned long long)now);
        if ((now != last || i % SAY_ANYWAY == 0) && !say(what))
            return 0;
        if (!look_at_watched())
            return 0;
        last = now;
        (void)usleep(EVERY_US);
    }
}

/* A control file with a client and a device made here, and a word of memory, for whoever asks. */
int bp_serve_outside(const char *at)
{
    static volatile uint64_t word = 0x6f757473696465;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct rm r;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    rm_must_open(&r);
    if (strlen(at) >= sizeof(to.sun_path))
        bp_bad("the socket's name is too long");
    memcpy(to.sun_path, at, strlen(at));
    if (s < 0 || bind(s, (const struct sockaddr *)&to, sizeof(to)) < 0 || chmod(at, 0666) < 0 ||
        listen(s, 16) < 0)
        bp_bad("listening: %s", strerror(errno));
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        const struct bp_outside answer = {
            .pid = getpid(), .client = r.client, .device = r.device, .fd = r.ctl, .word = (uintptr_t)&word};
        int c = accept(s, NULL, NULL);
        if (c < 0)
            return 0;
        (void)bp_send_fd(c, r.ctl, &answer, sizeof(answer));
        close(c);
    }
}
