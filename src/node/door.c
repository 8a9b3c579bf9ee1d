/* SPDX-License-Identifier: Apache-2.0 */
/* door.c - sockets that listen. */
#include "node/door.h"

#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

union at {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_of(const struct bh_door_at *at, union at *ret)
{
    *ret = (union at){.v6 = {.sin6_family = at->is_v6 ? AF_INET6 : AF_INET}};
    if (at->is_v6) {
        ret->v6.sin6_port = htons(at->port);
        return inet_pton(AF_INET6, at->address, &ret->v6.sin6_addr) == 1 ? sizeof(ret->v6) : 0;
    }
    ret->v4.sin_port = htons(at->port);
    return inet_pton(AF_INET, at->address, &ret->v4.sin_addr) == 1 ? sizeof(ret->v4) : 0;
}

int bh_door_parse(const char *text, struct bh_door_at *ret, struct bh_err *err)
{
    const char *colon = strrchr(text, ':');
    const bool is_v6 = text[0] == '[';
    const size_t n = colon ? (size_t)(colon - text) : 0;
    uint64_t port;
    union at where;
    *ret = (struct bh_door_at){.is_v6 = is_v6};
    if (n < 3 || n >= sizeof(ret->address) || (is_v6 && colon[-1] != ']') ||
        bh_uint_parse(colon + 1, UINT16_MAX, &port, NULL) < 0)
        return bh_fail(err, BH_USAGE, "'%.80s' is no place to listen: 127.0.0.1:8443, [::1]:8443", text);
    (void)snprintf(ret->address, sizeof(ret->address), "%.*s", (int)(is_v6 ? n - 2 : n), text + is_v6);
    ret->port = (uint16_t)port;
    if (address_of(ret, &where) == 0)
        return bh_fail(err, BH_USAGE, "'%.63s' is no IPv4 or [IPv6] address; names are not looked up",
                       ret->address);
    ret->is_any = is_v6 ? memcmp(&where.v6.sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0
                        : where.v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return BH_OK;
}

int bh_door_unix(const char *path, int *ret_fd, struct bh_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    if (n < 0 || (size_t)n >= sizeof(at.sun_path))
        return bh_fail(err, BH_TOO_LARGE, "%s is too long for a socket", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(at.sun_path); /* the store's lock says that no other daemon listens there */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || chmod(at.sun_path, 0666) < 0 ||
        listen(fd, BACKLOG) < 0) {
        (void)bh_fail(err, BH_SYSTEM, "%s: %s", at.sun_path, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return BH_SYSTEM;
    }
    *ret_fd = fd;
    return BH_OK;
}

int bh_door_tcp(struct bh_door_at *at, int *ret_fd, struct bh_err *err)
{
    static const int on = 1;
    union at where;
    socklen_t n = address_of(at, &where);
    const int fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* A daemon that starts again is not kept out by connections of the one before. */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (at->is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, &where.any, n) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &where.any, &n) < 0) {
        const enum bh_code code = errno == EADDRINUSE ? BH_CONFLICT : BH_SYSTEM;
        (void)bh_fail(err, code, "HTTPS on %s, port %u: %s", at->address, at->port, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return code;
    }
    at->port = ntohs(at->is_v6 ? where.v6.sin6_port : where.v4.sin_port);
    *ret_fd = fd;
    return BH_OK;
}
