/* SPDX-License-Identifier: Apache-2.0 */
/*
 * testd.c - the API with a real store behind it and nothing behind that: what the tests of this folder talk to.
 *
 * usage: testd FOLDER [--https] [--later] [--tight]
 *
 * FOLDER/policy.yaml is the policy. Two tenants have a job each that runs and one that waits. Prints `ready PORT` and
 * obeys lines on its standard input (`changed KIND ID TENANT STATE`, `write LEASE TEXT`, `end JOB`; `ponder`: from now on it prints
 * `asked` for a question, and answers when it is told `tell`) until it ends or SIGTERM comes; then it drains. --later: commands are committed at the end of the turn of the loop, as the daemon does it.
 * --tight: limits so small that a test reaches them.
 */
#include "testd.h"

#include "base/str.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
    (void)sig;
    stop = 1;
}

void die(const char *what, const struct bh_err *err)
{
    (void)fprintf(stderr, "testd: %s: %s\n", what, err ? err->msg : strerror(errno));
    exit(1);
}

static int listen_unix(const char *folder)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/api.sock", folder);
    (void)unlink(a.sun_path);
    if (n < 0 || (size_t)n >= sizeof(a.sun_path) || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        chmod(a.sun_path, 0666) < 0 || listen(fd, 256) < 0)
        die("listen", NULL);
    return fd;
}

static int listen_tcp(uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 256) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        die("listen", NULL);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void tight(struct bh_api_limits *l)
{
    l->connections = 12;
    l->connections_per_caller = 6;
    l->streams = 3;
    l->streams_per_caller = 2;
    l->per_second = 20;
    l->burst = 40;
    l->idle_ms = 1000;
    l->answer_ms = 1000;
    l->auth_failures = 4;
    l->lockout_ms = 3000; /* within it a test asks again, on a machine with much to do too */
    l->events = 16;
}

/* ---- lines on standard input ---- */

static enum bh_api_kind kind_of(const char *word)
{
    static const char *const words[BH_API_KINDS] = {"job", "lease", "gpu", "policy", "health"};
    size_t i = 0;
    while (i < BH_API_KINDS - 1 && !bh_str_eq(words[i], word))
        i++;
    return (enum bh_api_kind)i;
}

static void write_log(struct testd *t, const char *lease, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/leases/%s/out", t->folder, lease);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || write(fd, "\n", 1) != 1)
        die(path, NULL);
    (void)close(fd);
}

static void obey(struct testd *t, char *line)
{
    char *word[5] = {NULL}, *save = NULL;
    size_t n = 0;
    for (char *w = strtok_r(line, " \n", &save); w && n < 5; w = strtok_r(NULL, " \n", &save))
        word[n++] = w;
    uint64_t id = 0;
    if (n == 5 && bh_str_eq(word[0], "changed") && bh_uint_parse(word[2], INT64_MAX, &id, NULL) == 0)
        bh_api_changed(t->api, kind_of(word[1]), id, bh_str_eq(word[3], "-") ? NULL : word[3], word[4]);
    else if (n == 3 && bh_str_eq(word[0], "write"))
        write_log(t, word[1], word[2]);
    else if (n == 2 && bh_str_eq(word[0], "end") && bh_uint_parse(word[1], INT64_MAX, &id, NULL) == 0)
        testd_end_job(t, id);
    else if (n == 1 && (bh_str_eq(word[0], "ponder") || bh_str_eq(word[0], "tell")))
        t->ponders = bh_str_eq(word[0], "ponder");
    else
        die("a line that is not known", NULL);
}

/* Lines are short and come one at a time: the test waits for what they do. */
static void read_orders(struct testd *t)
{
    char buf[4096];
    const ssize_t n = read(STDIN_FILENO, buf, sizeof(buf) - 1);
    if (n <= 0) {
        stop = 1;
        return;
    }
    buf[n] = '\0';
    for (char *at = buf, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        if (!end)
            die("half a line", NULL);
        *end = '\0';
        obey(t, at);
    }
}

static void loop(struct testd *t)
{
    struct pollfd p[2] = {{.fd = bh_api_fd(t->api), .events = POLLIN},
                          {.fd = STDIN_FILENO, .events = POLLIN}};
    while (!stop) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            die("poll", NULL);
        testd_clock(t);
        if (p[0].revents)
            bh_api_run(t->api);
        if (p[1].revents)
            read_orders(t);
        testd_commit_later(t);
        p[0].revents = p[1].revents = 0;
    }
    for (int i = 0; i < 5000 && !bh_api_drain(t->api); i++) {
        (void)poll(p, 1, 1);
        bh_api_run(t->api);
        testd_commit_later(t);
    }
}

int main(int argc, char **argv)
{
    static struct testd t;
    struct bh_api_config c = {.unix_fd = -1, .tcp_fd = -1, .view = &t.view, .ops = &t.ops};
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_err err;
    uint16_t port = 0;
    if (argc < 2)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    bh_api_limits_init(&c.limits);
    c.unix_fd = listen_unix(argv[1]);
    for (int i = 2; i < argc; i++) {
        if (bh_str_eq(argv[i], "--later"))
            t.is_later = true;
        else if (bh_str_eq(argv[i], "--tight"))
            tight(&c.limits);
        else if (bh_str_eq(argv[i], "--https")) {
            c.tcp_fd = listen_tcp(&port);
            testd_certificate(&arena, &c.cert_pem, &c.key_pem);
        } else
            return 2;
    }
    testd_open(&t, argv[1]);
    c.store = t.store;
    c.log_dir = bh_arena_printf(&arena, "%s/leases", argv[1]);
    if (bh_api_start(&c, &t.api, &err) < 0)
        die("start", &err);
    (void)printf("ready %u\n", port);
    (void)fflush(stdout);
    loop(&t);
    bh_api_free(t.api);
    testd_close(&t);
    return 0;
}
