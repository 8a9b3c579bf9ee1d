/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fds.c - bytes and descriptors over a unix socket.
 *
 * A descriptor that came with a message nobody wanted would stay open for ever, so whatever is refused is closed
 * before the refusal is said.
 */
#include "wire/fds.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One more than may be asked for: a message that carries too many shows itself by filling it. */
enum { ROOM = BH_FDS_MAX + 1 };
struct got {
    int fds[ROOM];
    size_t n;
};
union control {
    char bytes[CMSG_SPACE(ROOM * sizeof(int))];
    struct cmsghdr align;
};

int bh_fds_send(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds, struct bh_err *err)
{
    union control control = {0};
    struct iovec iov = {(void *)(uintptr_t)bytes, n}; /* sendmsg leaves it as it is */
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;
    assert(n > 0 && n_fds <= BH_FDS_MAX);
    if (n_fds) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    do
        sent = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return bh_fail(err, BH_SYSTEM, "sending over a socket: %s", strerrordesc_np(errno));
    if ((size_t)sent != n)
        return bh_fail(err, BH_SYSTEM, "sending over a socket: %zd of %zu bytes went out", sent, n);
    return BH_OK;
}

static void take_fds(struct msghdr *m, struct got *got)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        assert(got->n + n <= ROOM); /* no more fit into the control buffer */
        memcpy(got->fds + got->n, CMSG_DATA(c), n * sizeof(int));
        got->n += n;
    }
}

static const char no_room[] = "receiving from a socket: more descriptors than this process has room for";

/* One recvmsg, and the descriptors out of it. */
static ssize_t receive(int socket, void *bytes, size_t n, int how, struct got *got, int *ret_flags)
{
    union control control = {0};
    struct iovec iov = {bytes, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen =
                           CMSG_LEN(ROOM * sizeof(int))}; /* not SPACE: one more would fit there */
    ssize_t came;
    /* A reset is said once, by a side that closed without having read everything; what it sent before is behind that. */
    do
        came = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | how);
    while (came < 0 && (errno == EINTR || errno == ECONNRESET));
    got->n = 0;
    if (came >= 0)
        take_fds(&m, got);
    *ret_flags = m.msg_flags;
    return came;
}

static void drop(const struct got *got)
{
    for (size_t i = 0; i < got->n; i++)
        close(got->fds[i]);
}

static int judge(ssize_t came, size_t n, int flags, const struct got *got, size_t n_fds, struct bh_err *err)
{
    if (came < 0)
        return bh_fail(err, BH_SYSTEM, "receiving from a socket: %s", strerrordesc_np(errno));
    if (came == 0)
        return bh_fail(err, BH_NOT_FOUND, "receiving from a socket: the other side has closed it");
    if (flags & MSG_TRUNC)
        return bh_fail(err, BH_INVALID, "receiving from a socket: a message of more than %zu bytes", n);
    if ((size_t)came != n)
        return bh_fail(err, BH_INVALID, "receiving from a socket: %zd bytes, not %zu", came, n);
    if (flags & MSG_CTRUNC)
        return bh_fail(err, BH_INVALID, "%s", no_room);
    if (got->n != n_fds)
        return bh_fail(err, BH_INVALID, "receiving from a socket: %zu descriptors, not %zu", got->n, n_fds);
    return BH_OK;
}

int bh_fds_recv(int socket, void *bytes, size_t n, int *ret_fds, size_t n_fds, struct bh_err *err)
{
    struct got got;
    int flags;
    assert(n > 0 && n_fds <= BH_FDS_MAX);
    /* A stream may hand a message over in pieces; WAITALL joins them, and leaves other sockets as they are. */
    const ssize_t came = receive(socket, bytes, n, MSG_WAITALL, &got, &flags);
    int rc = judge(came, n, flags, &got, n_fds, err);
    if (rc < 0) {
        drop(&got);
        return rc;
    }
    if (n_fds)
        memcpy(ret_fds, got.fds, n_fds * sizeof(int));
    return BH_OK;
}

ssize_t bh_fds_recv_some(int socket, void *bytes, size_t max, int ret_fds[BH_FDS_MAX], size_t *ret_n_fds,
                         struct bh_err *err)
{
    struct got got;
    int flags;
    assert(max > 0);
    const ssize_t came = receive(socket, bytes, max, MSG_DONTWAIT, &got, &flags);
    *ret_n_fds = 0;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return bh_fail(err, BH_BUSY, "receiving from a socket: nothing is there yet");
    if (came < 0)
        return bh_fail(err, BH_SYSTEM, "receiving from a socket: %s", strerrordesc_np(errno));
    if (flags & MSG_CTRUNC || got.n > BH_FDS_MAX) {
        drop(&got);
        return bh_fail(err, BH_INVALID, "%s", no_room);
    }
    memcpy(ret_fds, got.fds, got.n * sizeof(int));
    *ret_n_fds = got.n;
    return came;
}
