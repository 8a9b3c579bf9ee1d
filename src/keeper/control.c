/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - takes connections and orders without waiting for anybody. */
#include "keeper/control.h"

#include "base/mem.h"
#include "wire/fds.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ATTACHED_FDS = 3 };

static bool watch(const struct bh_control *c, int fd)
{
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &want) == 0;
}

int bh_control_open(struct bh_control *c, struct bh_err *err)
{
    return watch(c, c->listener) ? BH_OK : bh_fail(err, BH_SYSTEM, "epoll: %s", strerrordesc_np(errno));
}

static void drop(struct bh_control *c, size_t i)
{
    const bool attached = c->at[i].attached;
    close(c->at[i].fd);
    c->at[i] = c->at[--c->n];
    if (attached)
        c->left(c->arg);
}

/* Who crowds here crowds out those who came before him, but not the one that the work runs for. */
static void make_room(struct bh_control *c)
{
    size_t oldest = c->n;
    if (c->n < BH_CONTROL_MAX)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (!c->at[i].attached && (oldest == c->n || c->at[i].number < c->at[oldest].number))
            oldest = i;
    if (oldest < c->n)
        drop(c, oldest);
}

static void accept_all(struct bh_control *c)
{
    for (;;) {
        struct ucred who;
        socklen_t n = sizeof(who);
        const int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || !watch(c, fd)) {
            close(fd);
            continue;
        }
        make_room(c);
        *bh_vec_push(c) = (struct bh_control_peer){.fd = fd, .uid = who.uid, .number = ++c->last};
    }
}

static bool is_master(const struct bh_control_peer *p)
{
    return p->uid == 0 || p->uid == geteuid();
}

static int judge(const struct bh_control *c, const struct bh_control_peer *p,
                 const struct bh_keeper_order *order, size_t n_fds, struct bh_err *err)
{
    if (order->version != BH_KEEPER_VERSION)
        return bh_fail(err, BH_INVALID, "this keeper is of another version");
    if (order->op < BH_KEEPER_STATUS || order->op > BH_KEEPER_ATTACH ||
        n_fds != (order->op == BH_KEEPER_ATTACH ? ATTACHED_FDS : 0))
        return bh_fail(err, BH_INVALID, "no such order");
    if (is_master(p) || (p->uid == c->owner && order->op != BH_KEEPER_STOP))
        return BH_OK;
    return bh_fail(err, BH_DENIED, "user %u may not do that to this lease", (unsigned)p->uid);
}

static void answer(struct bh_control_peer *p, const struct bh_keeper_status *status)
{
    /* One who does not read what he asked for misses it. */
    (void)!send(p->fd, status, sizeof(*status), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* False: he is gone, or talks nonsense. */
static bool hear_one(struct bh_control *c, size_t i)
{
    struct bh_keeper_order order = {0};
    struct bh_keeper_status status = {.version = BH_KEEPER_VERSION};
    struct bh_err err = {0};
    int fds[BH_FDS_MAX];
    size_t n_fds = 0;
    const ssize_t n = bh_fds_recv_some(c->at[i].fd, &order, sizeof(order), fds, &n_fds, NULL);
    if (n != (ssize_t)sizeof(order)) {
        for (size_t f = 0; n > 0 && f < n_fds; f++)
            close(fds[f]);
        return n == BH_BUSY;
    }
    const int rc = judge(c, &c->at[i], &order, n_fds, &err);
    if (rc == BH_OK)
        c->order(c->arg, &order, fds, &status);
    for (size_t f = 0; rc < 0 && f < n_fds; f++)
        close(fds[f]);
    if (rc < 0) {
        status.code = rc;
        memcpy(status.text, err.msg, sizeof(status.text));
    }
    if (status.code == 0) {
        c->at[i].watches |= order.op == BH_KEEPER_WATCH || order.op == BH_KEEPER_ATTACH;
        c->at[i].attached |= order.op == BH_KEEPER_ATTACH;
    }
    answer(&c->at[i], &status);
    return true;
}

void bh_control_hear(struct bh_control *c)
{
    accept_all(c);
    for (size_t i = c->n; i-- > 0;) {
        if (!hear_one(c, i)) /* one order each: nobody keeps the others waiting */
            drop(c, i);
    }
}

void bh_control_tell(struct bh_control *c, const struct bh_keeper_status *status)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].watches)
            answer(&c->at[i], status);
}

void bh_control_close(struct bh_control *c)
{
    for (size_t i = 0; i < c->n; i++)
        close(c->at[i].fd);
    bh_vec_fini(c);
    if (c->listener >= 0)
        close(c->listener);
    c->listener = -1;
}
