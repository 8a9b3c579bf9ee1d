/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - connections, time, and the loop that carries requests to the resource manager.
 *
 * A caller has one request under way: one that asks again before it took the reply is not one of ours and is hung up
 * on, so a reply always fits its socket and no more than one descriptor a caller is ever under way. A reply that has to
 * wait (for a fence, or because calls were made slow) is kept with its connection, and whoever sends something meanwhile
 * is hung up on: what nobody reads could hold a descriptor for ever, even the connection's own.
 */
#include "simgpu/serve/serve.h"

#include "simgpu/serve/inside.h"
#include "simgpu/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, BACKLOG = 4096, OWN_FDS = 64, FDS_MOST = 1 << 20 };
static const uint64_t ns_per_s = 1000000000, ns_per_ms = 1000000;

static uint64_t now_ns(const struct bh_sim_server *s)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * ns_per_s + (uint64_t)t.tv_nsec - s->start_ns;
}

static int watch(struct bh_sim_server *s, int how, struct bh_sim_watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    return epoll_ctl(s->ep, how, w->fd, &ev);
}

/* Between those who may ask and those of whom only a hang-up is awaited. */
static int move_watch(int from, int to, struct bh_sim_watch *w)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};
    return epoll_ctl(from, EPOLL_CTL_DEL, w->fd, NULL) < 0 ? -1 : epoll_ctl(to, EPOLL_CTL_ADD, w->fd, &ev);
}

/* Time goes on for the manager. Work that is done by then may be what somebody waits for. */
static void advance(struct bh_sim_server *s, uint64_t now)
{
    s->stirred = s->stirred || (s->waits && bh_sim_rm_next(s->rm) <= now);
    bh_sim_rm_advance(s->rm, now);
}

void bh_sim_go_on(struct bh_sim_server *s)
{
    advance(s, now_ns(s));
}

/* ---- replies ---- */

/* false: the caller went away, or does not take what it asked for. */
static bool send_reply(int to, const struct bh_sim_msg *msg, const void *body, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    const size_t n = (size_t)msg->n_arg + msg->n_params + msg->n_body;
    /* An iovec has no const; what is sent is only read. */
    struct iovec iov[2] = {{(void *)(uintptr_t)msg, sizeof(*msg)}, {(void *)(uintptr_t)body, n}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void undefer(struct bh_sim_server *s, struct bh_sim_conn *c)
{
    if (!c->reply)
        return;
    *(c->dprev ? &c->dprev->dnext : &s->deferred) = c->dnext;
    if (c->dnext)
        c->dnext->dprev = c->dprev;
    if (c->reply_fd >= 0) {
        close(c->reply_fd);
        s->n_held--;
    }
    free(c->reply);
    c->reply = NULL;
    c->reply_fd = -1;
    c->dprev = c->dnext = NULL;
    c->waiting = false;
}

static void conn_close(struct bh_sim_server *s, struct bh_sim_conn *c)
{
    undefer(s, c);
    bh_sim_pid_hide(s, c->linked);
    *(c->prev ? &c->prev->next : &s->conns) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    close(c->watch.fd);
    s->n_conns--;
    free(c);
}

static void defer(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r, uint64_t due_ns)
{
    const size_t n = (size_t)r->msg->n_arg + r->msg->n_params + r->msg->n_body;
    c->reply = bh_alloc(1, sizeof(*r->msg) + n);
    memcpy(c->reply, r->msg, sizeof(*r->msg));
    memcpy(c->reply + 1, r->body, n);
    c->reply_fd = r->reply_fd;
    if (c->reply_fd >= 0)
        s->n_held++;
    c->due_ns = due_ns;
    c->dprev = NULL;
    c->dnext = s->deferred;
    if (s->deferred)
        s->deferred->dprev = c;
    s->deferred = c;
    s->waits = s->waits || c->waiting;
    if (!c->waiting && due_ns < s->due_ns)
        s->due_ns = due_ns;
    if (move_watch(s->ep, s->ep_gone, &c->watch) < 0)
        conn_close(s, c);
}

/* Sends what was put off and is due. */
static void send_due(struct bh_sim_server *s, uint64_t now)
{
    s->stirred = s->waits = false;
    s->due_ns = UINT64_MAX;
    for (struct bh_sim_conn *c = s->deferred, *after; c; c = after) {
        after = c->dnext;
        uint64_t done = 0;
        if (c->waiting) {
            int rc = bh_sim_rm_fence(s->rm, c->wait_file, c->wait_client, c->wait_channel, &done);
            c->reply->result = rc;
            c->waiting = rc >= 0 && done < c->wait_fence;
        }
        if (!c->waiting && c->due_ns <= now) {
            bool sent = send_reply(c->watch.fd, c->reply, c->reply + 1, c->reply_fd);
            undefer(s, c);
            if (!sent || move_watch(s->ep_gone, s->ep, &c->watch) < 0)
                conn_close(s, c);
            continue;
        }
        s->waits = s->waits || c->waiting;
        if (!c->waiting && c->due_ns < s->due_ns)
            s->due_ns = c->due_ns;
    }
}

/* Those who are put off are looked at when one may be due, not for each request of anybody; then the timer is armed. */
static void settle(struct bh_sim_server *s)
{
    const uint64_t now = now_ns(s);
    advance(s, now);
    if (s->stirred || s->due_ns <= now)
        send_due(s, now);
    uint64_t next = s->due_ns;
    if (s->waits && bh_sim_rm_next(s->rm) < next)
        next = bh_sim_rm_next(s->rm);
    if (!s->listening && s->listen_again_ns < next)
        next = s->listen_again_ns;
    struct itimerspec at = {0};
    if (next != UINT64_MAX) {
        next = next > UINT64_MAX / 2 ? UINT64_MAX / 2 : next + s->start_ns;
        at.it_value =
            (struct timespec){.tv_sec = (time_t)(next / ns_per_s), .tv_nsec = (long)(next % ns_per_s)};
        if (next == 0)
            at.it_value.tv_nsec = 1;
    }
    (void)timerfd_settime(s->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- requests ---- */

/* What came along with a message: who sent it, as the kernel says, and at most one descriptor. */
union control {
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};
/* Not SPACE: two descriptors would fit there. The kernel drops those there is no room for. */
enum { CONTROL_BYTES = CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(sizeof(int)) };

static int descriptor_of(struct msghdr *m)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

static struct bh_sim_caller caller_of(const struct bh_sim_server *s, const struct ucred *cred)
{
    return (struct bh_sim_caller){
        .pid = (uint32_t)cred->pid, .uid = cred->uid, .admin = cred->uid == 0 || cred->uid == s->owner};
}

/* Whoever sends is the caller, as with a system call; not whoever connected. false: nobody says who it is. */
static bool sender_of(const struct bh_sim_server *s, struct msghdr *m, struct bh_sim_caller *ret)
{
    struct ucred cred;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
            c->cmsg_len == CMSG_LEN(sizeof(cred))) {
            memcpy(&cred, CMSG_DATA(c), sizeof(cred));
            *ret = caller_of(s, &cred);
            return true;
        }
    return false;
}

/* 0, or why the message is not looked at: a negative errno. */
static int check_message(const struct bh_sim_server *s, const struct msghdr *m, size_t n)
{
    const struct bh_sim_msg *msg = &s->in.msg;
    if (m->msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    if (m->msg_flags & MSG_CTRUNC)
        return -EINVAL; /* more descriptors than one */
    if ((uint64_t)msg->n_arg + msg->n_params + msg->n_body != n - sizeof(*msg))
        return -EINVAL;
    return 0;
}

static bool changed_machine(const struct bh_sim_request *r)
{
    struct bh_sim_mig_order order;
    if (r->msg->result < 0 || r->msg->op != BH_SIM_OP_MIG)
        return r->msg->result >= 0 && r->msg->op == BH_SIM_OP_BREAK;
    memcpy(&order, r->body, sizeof(order));
    return order.status == 0 && order.verb != BH_SIM_MIG_GI_ROOM;
}

/* The machine's files say what the manager knows. Who serves without files has none to follow. */
static void follow(const struct bh_sim_server *s)
{
    char folder[4096];
    struct bh_err err;
    int n = snprintf(folder, sizeof(folder), "%s/sysroot", s->folder);
    if (n < 0 || (size_t)n >= sizeof(folder))
        return;
    struct bh_sim_gpu_view *gpus = bh_alloc(s->node->n_gpus + 1, sizeof(*gpus));
    for (uint32_t i = 0; i < s->node->n_gpus; i++)
        (void)bh_sim_rm_view_gpu(s->rm, i, &gpus[i]);
    const struct bh_sim_tree_state now = {.scrubs = bh_sim_rm_scrubs(s->rm), .gpus = gpus};
    int rc = bh_sim_tree_follow(s->node, folder, &now, &err);
    if (rc < 0 && rc != BH_NOT_FOUND && rc != BH_REFUSED)
        fprintf(stderr, "bulkhead: the files of a simulated node are behind: %s\n", err.msg);
    free(gpus);
}

static void answer(struct bh_sim_server *s, struct bh_sim_conn *c, int bad, int fd)
{
    struct bh_sim_request r = {.msg = &s->in.msg, .body = s->in.body, .reply_fd = -1};
    const uint64_t now = now_ns(s);
    uint32_t delay_ms = 0;
    bh_sim_reap(s);
    advance(s, now);
    if (bad < 0) {
        r.msg->n_arg = r.msg->n_params = r.msg->n_body = 0;
        r.msg->result = bad;
    } else {
        r.file = bh_sim_file_find(s, fd);
        bh_sim_request_answer(s, c, &r);
        delay_ms = r.slow ? bh_sim_rm_delay_ms(s->rm) : 0;
        if (changed_machine(&r))
            follow(s); /* before the reply: who was told finds it so */
    }
    if (r.defer || delay_ms) {
        defer(s, c, &r, now + delay_ms * ns_per_ms);
        return;
    }
    bool sent = send_reply(c->watch.fd, r.msg, r.body, r.reply_fd);
    if (r.reply_fd >= 0)
        close(r.reply_fd);
    if (!sent)
        conn_close(s, c);
}

static void on_conn(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    struct bh_sim_conn *c = (struct bh_sim_conn *)w; /* watch is its first member */
    union control control;
    struct iovec iov = {&s->in, sizeof(s->in)};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CONTROL_BYTES};
    int untaken = 0;
    if (events & (EPOLLHUP | EPOLLERR) || c->reply) {
        conn_close(s, c);
        return;
    }
    ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    int fd = n >= 0 ? descriptor_of(&m) : -1; /* a message of no bytes can carry one too */
    if (n < (ssize_t)sizeof(s->in.msg) || !sender_of(s, &m, &c->who) ||
        ioctl(w->fd, SIOCOUTQ, &untaken) < 0 || untaken > 0)
        conn_close(s, c);
    else
        answer(s, c, check_message(s, &m, (size_t)n), fd);
    if (fd >= 0)
        close(fd);
}

/* ---- connections ---- */

static void conn_add(struct bh_sim_server *s, int fd)
{
    struct ucred peer = {0};
    socklen_t n = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0) {
        close(fd);
        return;
    }
    const struct bh_sim_caller who = caller_of(s, &peer); /* until it asks */
    if (!bh_sim_has_room(s, &who, 1)) {
        /* What it asked is read first: a socket closed with something unread forgets what was sent. */
        struct bh_sim_msg no;
        (void)!recv(fd, &no, sizeof(no), MSG_DONTWAIT);
        no = (struct bh_sim_msg){.op = BH_SIM_OP_N_, .result = -EMFILE};
        (void)send_reply(fd, &no, NULL, -1);
        close(fd);
        return;
    }
    struct bh_sim_conn *c = bh_alloc(1, sizeof(*c));
    *c = (struct bh_sim_conn){.watch = {on_conn, fd}, .who = who, .reply_fd = -1, .next = s->conns};
    if (watch(s, EPOLL_CTL_ADD, &c->watch, EPOLLIN) < 0) {
        close(fd);
        free(c);
        return;
    }
    if (s->conns)
        s->conns->prev = c;
    s->conns = c;
    s->n_conns++;
}

static void on_listen(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            conn_add(s, fd);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (errno != EAGAIN) {
            /* The machine has no descriptor left: those who are here are served, the others wait. */
            s->listening = false;
            s->listen_again_ns = now_ns(s) + 100 * ns_per_ms;
            (void)watch(s, EPOLL_CTL_MOD, w, 0);
        }
        return;
    }
}

static void on_timer(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    uint64_t n;
    (void)events;
    (void)!read(w->fd, &n, sizeof(n));
    if (!s->listening && watch(s, EPOLL_CTL_MOD, &s->listener, EPOLLIN) == 0)
        s->listening = true;
}

static void on_gone(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    (void)w;
    (void)events;
    bh_sim_go_on(s);
    bh_sim_reap(s);
}

static void on_signal(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        s->stop = true;
}

/* ---- beginning and end ---- */

static size_t room_for_fds(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return OWN_FDS;
    if (r.rlim_cur < r.rlim_max) {
        struct rlimit more = {.rlim_cur = r.rlim_max, .rlim_max = r.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            r = more;
    }
    if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > FDS_MOST)
        return FDS_MOST;
    return r.rlim_cur > 2 * OWN_FDS ? (size_t)r.rlim_cur - OWN_FDS : OWN_FDS;
}

static int listen_at(struct bh_sim_server *s, struct bh_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/rm.sock", s->folder);
    if (n < 0 || (size_t)n >= sizeof(at.sun_path))
        return bh_fail(
            err, BH_INVALID,
            "'%.200s' is too long for a socket's path (%zu bytes at most); set BULKHEAD_SIM_HOME to "
            "a shorter folder",
            s->folder, sizeof(at.sun_path) - sizeof("/rm.sock"));
    (void)unlink(at.sun_path);
    s->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener.fd < 0)
        return bh_fail(err, BH_SYSTEM, "cannot make a socket: %s", strerror(errno));
    /* Open to all from the start: a path whose mode is changed afterwards may be another one by then. */
    const mode_t before = umask(0);
    int rc = fchmod(s->listener.fd, 0666) < 0
                 ? -1
                 : bind(s->listener.fd, (const struct sockaddr *)&at, sizeof(at));
    int error = errno;
    (void)umask(before);
    errno = error;
    /* Connections have it from here on, so no message is without a sender. */
    if (rc < 0 || setsockopt(s->listener.fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0 ||
        listen(s->listener.fd, BACKLOG) < 0)
        return bh_fail(err, BH_SYSTEM, "%.300s: %s", at.sun_path, strerror(errno));
    return BH_OK;
}

static int start(struct bh_sim_server *s, const sigset_t *signals, struct bh_err *err)
{
    char proc[4096];
    s->ep = epoll_create1(EPOLL_CLOEXEC);
    s->ep_gone = epoll_create1(EPOLL_CLOEXEC);
    s->timer = (struct bh_sim_watch){on_timer, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    s->signals = (struct bh_sim_watch){on_signal, signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK)};
    s->gone = (struct bh_sim_watch){on_gone, s->ep_gone};
    s->listener = (struct bh_sim_watch){on_listen, -1};
    s->listening = true;
    int n = snprintf(proc, sizeof(proc), "%s/sysroot/proc", s->folder);
    s->proc_dir = n > 0 && (size_t)n < sizeof(proc) ? open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = listen_at(s, err);
    if (rc < 0)
        return rc;
    if (s->ep < 0 || s->ep_gone < 0 || s->timer.fd < 0 || s->signals.fd < 0 ||
        watch(s, EPOLL_CTL_ADD, &s->listener, EPOLLIN) < 0 ||
        watch(s, EPOLL_CTL_ADD, &s->timer, EPOLLIN) < 0 ||
        watch(s, EPOLL_CTL_ADD, &s->signals, EPOLLIN) < 0 || watch(s, EPOLL_CTL_ADD, &s->gone, EPOLLIN) < 0)
        return bh_fail(err, BH_SYSTEM, "cannot wait for callers: %s", strerror(errno));
    return BH_OK;
}

static void finish(struct bh_sim_server *s)
{
    const int fds[] = {s->listener.fd, s->timer.fd, s->signals.fd, s->ep_gone, s->ep, s->proc_dir};
    struct sockaddr_un at;
    int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/rm.sock", s->folder);
    if (s->listener.fd >= 0 && n > 0 && (size_t)n < sizeof(at.sun_path))
        (void)unlink(at.sun_path);
    for (struct bh_sim_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        conn_close(s, c);
    }
    bh_sim_files_close_all(s);
    bh_sim_journal_end(s);
    bh_sim_rm_free(s->rm);
    for (size_t i = 0; i < BH_COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    bh_vec_fini(&s->shown);
}

static void loop(struct bh_sim_server *s)
{
    struct epoll_event ev[BATCH];
    while (!s->stop) {
        int n = epoll_wait(s->ep, ev, BATCH, -1);
        /* An event's handler frees nothing but what the event is about, so the rest of the batch stands. */
        for (int i = 0; i < n; i++) {
            struct bh_sim_watch *w = ev[i].data.ptr;
            w->on(s, w, ev[i].events);
        }
        settle(s);
    }
}

int bh_sim_serve(const struct bh_sim_serve *how, struct bh_err *err)
{
    sigset_t signals, before;
    struct bh_sim_server *s = bh_alloc(1, sizeof(*s));
    const size_t room = room_for_fds();
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    s->folder = how->folder;
    s->node = how->node;
    s->owner = geteuid();
    s->max_fds = how->max_fds && how->max_fds < room ? how->max_fds : room;
    s->start_ns = now_ns(s);
    s->due_ns = UINT64_MAX;
    s->rm = bh_sim_rm_new(how->node);
    uint64_t salt;
    if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) == (ssize_t)sizeof(salt))
        bh_sim_rm_salt(s->rm, salt);
    int rc = start(s, &signals, err);
    if (rc == BH_OK) {
        if (how->ready)
            how->ready(how->arg);
        loop(s);
    }
    finish(s);
    free(s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
