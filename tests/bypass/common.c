/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - what every attempt says, and how it asks for more and more. */
#include "bypass.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct bp bp;

/* One write a line: processes of one attempt share stdout. */
__attribute__((format(printf, 2, 0))) static void say(const char *key, const char *fmt, va_list args)
{
    char line[512];
    int n = snprintf(line, sizeof(line) - 1, "%s ", key);
    n += vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, args);
    if ((size_t)n > sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n] = '\n';
    (void)!write(STDOUT_FILENO, line, (size_t)n + 1);
}

void bp_how(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("how", fmt, args);
    va_end(args);
}

void bp_bad(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("bad", fmt, args);
    va_end(args);
    _exit(BP_BAD);
}

void bp_cannot(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("cannot", fmt, args);
    va_end(args);
    _exit(BP_CANNOT);
}

const char *bp_result(int rc)
{
    static _Thread_local char text[32];
    if (rc < 0)
        (void)snprintf(text, sizeof(text), "%s", strerrorname_np(-rc) ? strerrorname_np(-rc) : "errno ?");
    else if (rc == RM_NO_MEMORY)
        (void)snprintf(text, sizeof(text), "no memory (0x51)");
    else if (rc == RM_OK)
        (void)snprintf(text, sizeof(text), "granted");
    else
        (void)snprintf(text, sizeof(text), "status 0x%x", (unsigned)rc);
    return text;
}

void bp_expect(const char *what, int rc, int want)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof(wanted), "%s", bp_result(want));
    if (rc != want)
        bp_bad("%s: %s, and not %s", what, bp_result(rc), wanted);
    bp_how("%s: %s", what, bp_result(rc));
}

void bp_who(void)
{
    char line[48];
    int n = snprintf(line, sizeof(line), "pid %d\n", (int)getpid());
    (void)!write(STDOUT_FILENO, line, (size_t)n);
}

void bp_got(uint64_t bytes)
{
    char line[48];
    int n = snprintf(line, sizeof(line), "got %llu\n", (unsigned long long)bytes);
    (void)!write(STDOUT_FILENO, line, (size_t)n);
}

void bp_until_told(void)
{
    char byte;
    ssize_t n;
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
}

int bp_hold(void)
{
    (void)!write(STDOUT_FILENO, "holding\n", 8);
    bp_until_told();
    return BP_MADE;
}

uint64_t bp_fill(const char *how, bp_take_fn *take, void *arg)
{
    uint64_t got = 0;
    int rc = 0;
    while (got < BP_TIMES * bp.cap) {
        rc = take(arg, bp.piece);
        if (rc != 0)
            break;
        got += bp.piece;
    }
    if (got == 0)
        bp_cannot("%s: not even the first piece was granted: %s", how, bp_result(rc));
    bp_how("%s: %llu MiB, then %s", how, (unsigned long long)(got / MIB), bp_result(rc));
    bp_got(got);
    return got;
}

int bp_take_rm(void *rm, uint64_t bytes)
{
    return rm_take(rm, bytes, NULL);
}

uint64_t bp_fill_rm(const char *how, struct rm *r)
{
    return bp_fill(how, bp_take_rm, r);
}

uint64_t bp_fill_up(struct rm *r)
{
    uint64_t got = 0;
    for (uint64_t bytes = bp.piece; bytes >= 2 * MIB; bytes = bytes / 2 / (2 * MIB) * (2 * MIB))
        while (got <= bp.cap && rm_take(r, bytes, NULL) == RM_OK)
            got += bytes;
    if (got == 0 || got > bp.cap)
        bp_cannot("filling the cap first: %llu MiB were granted", (unsigned long long)(got / MIB));
    return got;
}

/* ---- descriptors between processes ---- */

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int bp_send_fd(int to, int fd, const void *bytes, size_t n)
{
    union control control = {0};
    struct iovec piece = {(void *)(uintptr_t)bytes, n};
    struct msghdr m = {.msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

int bp_receive_fd(int from, int *ret_fd, void *bytes, size_t n)
{
    union control control = {0};
    struct iovec piece = {bytes, n};
    struct msghdr m = {.msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    *ret_fd = -1;
    ssize_t got = recvmsg(from, &m, 0);
    struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    return (int)got;
}

void bp_ask_outside(struct bp_outside *ret, int *ret_fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (!bp.outside || strlen(bp.outside) >= sizeof(to.sun_path))
        bp_cannot("there is no helper outside");
    memcpy(to.sun_path, bp.outside, strlen(bp.outside));
    if (s < 0 || connect(s, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
        bp_receive_fd(s, ret_fd, ret, sizeof(*ret)) != (int)sizeof(*ret))
        bp_cannot("the helper outside does not answer: %s", strerror(errno));
    close(s);
}
