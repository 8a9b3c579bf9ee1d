/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - connections, messages by the table, and when to do what. */
#include "governor/serve.h"

#include "governor/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    MESSAGES = 32, /* of one connection, before the others' turn */
    NOISE_MAX = 64 << 10,
    /* What an event is of; below: a connection. */
    AT_LISTENER = BH_SERVE_CONNECTIONS,
    AT_TIMER,
    AT_STOP,
    AT_REFUSED, /* and those after it */
};
#define SECOND_NS UINT64_C(1000000000)
#define BEAT_NS   (BH_GOVERN_BEAT_MS * UINT64_C(1000000))
/* A warden that was killed is followed by another: what was ordered for its lease waits so long. */
#define LINGER_NS (5 * SECOND_NS)

enum who { NEW, WARDEN, OPERATOR, KINDS };

struct connection {
    int fd;      /* -1: none */
    uint8_t who; /* enum who */
    uint32_t version;
    uint64_t lease; /* a warden's */
    bool deaf;      /* it was refused, and has not hung up yet: nothing that it says counts */
    bool listing;   /* a list that did not go out at once; nothing is read meanwhile */
    BH_VEC(struct bh_govern_row) rows;
    BH_VEC(struct bh_govern_pids) pids;
    BH_VEC(struct bh_govern_noise) noise;
    size_t rows_sent, pids_sent, noise_sent;
    uint64_t suspends; /* an operator's: the lease that it is about to suspend, and what was ordered before */
    uint8_t before;
};

struct bh_serve {
    struct bh_serve_config config;
    struct bh_state state;
    struct bh_steer *steer;
    struct bh_gauge *gauge; /* NULL: none */
    int epoll, timer;
    bool over;
    uint64_t now_ns, next_ns, idle_since_ns;
    uint64_t timer_ns; /* what the timer is set to; 0: not known */
    uint64_t beat_ns;  /* when wardens last had a sign of life */
    uint64_t found_ns; /* when it was last looked whether this one is found */
    size_t wardens;
    size_t connected;
    struct bh_refused refused;
    struct connection at[BH_SERVE_CONNECTIONS];
};

/* ---- to peers ---- */

/* 0, or an errno: EAGAIN where it does not read. */
static int send_now(const struct connection *c, const void *m, size_t n)
{
    ssize_t sent;
    do
        sent = send(c->fd, m, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0; /* a message goes out whole */
}

static int say(const struct connection *c, enum bh_govern_op op, int code, uint64_t lease, const char *text)
{
    struct bh_govern_answer a = {.op = (uint32_t)op, .code = code, .lease = lease};
    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    return send_now(c, &a, sizeof(a));
}

static int answer(const struct connection *c, int code, uint64_t lease, const char *text)
{
    return say(c, BH_GOVERN_ANSWER, code, lease, text);
}

static void end(void *arg, const struct bh_governed *l, const char *why)
{
    const struct bh_serve *s = arg;
    if (l->server != BH_STATE_NOBODY)
        (void)say(&s->at[l->server], BH_GOVERN_END, BH_DENIED, l->id, why);
}

/* One that does not read it has more to read than it needs. */
static void beat(struct bh_serve *s)
{
    if (!s->wardens || s->now_ns - s->beat_ns < BEAT_NS)
        return;
    s->beat_ns = s->now_ns;
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        if (s->at[i].fd >= 0 && s->at[i].who == WARDEN)
            (void)answer(&s->at[i], BH_OK, s->at[i].lease, "");
}

static bool tell(void *arg, const struct bh_governed *l, const struct bh_govern_slice *m)
{
    const struct bh_serve *s = arg;
    return l->server != BH_STATE_NOBODY && send_now(&s->at[l->server], m, sizeof(*m)) == 0;
}

static void listen_for(struct bh_serve *s, struct connection *c, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = (uint32_t)(c - s->at)};
    (void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

/* Rows while they go, lines of noise, then the answer. false: it is gone. */
static bool send_rows(struct bh_serve *s, struct connection *c)
{
    int rc = 0;
    for (; rc == 0 && c->rows_sent < c->rows.n; c->rows_sent += rc == 0)
        rc = send_now(c, &c->rows.at[c->rows_sent], bh_govern_row_bytes(c->version));
    for (; rc == 0 && c->pids_sent < c->pids.n; c->pids_sent += rc == 0)
        rc = send_now(c, &c->pids.at[c->pids_sent], sizeof(c->pids.at[0]));
    for (; rc == 0 && c->noise_sent < c->noise.n; c->noise_sent += rc == 0)
        rc = send_now(c, &c->noise.at[c->noise_sent], sizeof(c->noise.at[0]));
    if (rc == 0)
        rc = answer(c, BH_OK, 0, "");
    if (rc && rc != EAGAIN)
        return false;
    const bool done = rc == 0;
    if (done) {
        bh_vec_fini(&c->rows);
        bh_vec_fini(&c->pids);
        bh_vec_fini(&c->noise);
        c->rows_sent = c->pids_sent = c->noise_sent = 0;
    }
    if (c->listing == done)
        listen_for(s, c, done ? EPOLLIN : EPOLLOUT);
    c->listing = !done;
    return true;
}

/* ---- connections ---- */

static void hang_up(struct bh_serve *s, struct connection *c)
{
    struct bh_governed *l = c->who == WARDEN ? bh_state_find(&s->state, c->lease) : NULL;
    /* Also of one whose warden is gone just then: the next one would find it held. */
    struct bh_governed *half = c->suspends ? bh_state_known(&s->state, c->suspends) : NULL;
    if (half)
        bh_steer_put_back(s->steer, half, c->before);
    close(c->fd); /* which takes it out of the epoll set: nobody has a duplicate */
    bh_vec_fini(&c->rows);
    bh_vec_fini(&c->pids);
    bh_vec_fini(&c->noise);
    s->wardens -= c->who == WARDEN;
    *c = (struct connection){.fd = -1};
    if (l)
        bh_steer_leave(s->steer, l, s->now_ns);
    if (--s->connected == 0)
        s->idle_since_ns = s->now_ns;
}

/* Launchers are root's, and hand their connection to a warden; an operator is root, too. */
static bool is_trusted(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static struct connection *free_place(struct bh_serve *s)
{
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        if (s->at[i].fd < 0)
            return &s->at[i];
    return NULL;
}

int bh_serve_connect(struct bh_serve *s, int fd, struct bh_err *err)
{
    struct connection *c = free_place(s);
    const char *why = NULL;
    if (!is_trusted(fd))
        why = "the governor serves root alone";
    else if (!c)
        why = "the governor has no room for another connection";
    const struct connection stranger = {.fd = fd};
    if (why) {
        (void)answer(&stranger, c ? BH_DENIED : BH_BUSY, 0, why);
        bh_refused_add(&s->refused, fd);
        return bh_fail(err, c ? BH_DENIED : BH_BUSY, "%s", why);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)(c - s->at)};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        close(fd);
        return bh_fail(err, BH_SYSTEM, "epoll_ctl: %s", strerrordesc_np(errno));
    }
    *c = (struct connection){.fd = fd, .who = NEW};
    s->connected++;
    return BH_OK;
}

static void take_connections(struct bh_serve *s)
{
    int fd;
    do {
        while ((fd = accept4(s->config.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
            (void)!bh_serve_connect(s, fd, NULL); /* it was told why */
    } while ((errno == EMFILE || errno == ENFILE) && bh_refused_send_away(&s->refused, s->config.listener));
}

/* ---- messages ---- */

/* Each returns false where the connection is to end. */
union message {
    uint32_t op;
    struct bh_govern_join join;
    struct bh_govern_channels channels;
    struct bh_govern_tampered tampered;
    struct bh_govern_pids pids;
    struct bh_govern_order order;
    struct bh_govern_own own;
    char bytes[1024]; /* more than any: one that is too long shows itself */
};

static bool is_our_version(struct connection *c, uint32_t version)
{
    char text[200];
    c->version = version;
    if (version >= BH_GOVERN_WIRE_OLDEST && version <= BH_GOVERN_WIRE_VERSION)
        return true;
    (void)snprintf(text, sizeof(text),
                   "the governor speaks version %d, not %u; one from before an upgrade ends with the last "
                   "command it serves; else install all from one package",
                   BH_GOVERN_WIRE_VERSION, version);
    (void)answer(c, BH_CONFLICT, 0, text);
    return false;
}

/* The one that spoke for this lease may be gone, and its end not yet looked at. */
static void bury(struct bh_serve *s, uint64_t id)
{
    const struct bh_governed *l = id ? bh_state_find(&s->state, id) : NULL;
    struct connection *c = l ? &s->at[l->server] : NULL;
    struct pollfd at = {.fd = c ? c->fd : -1, .events = POLLRDHUP};
    if (c && poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR))
        hang_up(s, c);
}

static uint32_t owner_of(uint32_t pid)
{
    char path[32];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/proc/%u", pid);
    return stat(path, &st) == 0 ? st.st_uid : UINT32_MAX;
}

/* It has said more already, and a connection that is closed over words that nobody read takes the answer with it. So it is let hang
 * up itself. */
static bool refuse(struct connection *c, int code, const char *why)
{
    c->deaf = true;
    return answer(c, code, 0, why) == 0 && shutdown(c->fd, SHUT_WR) == 0;
}

static bool on_join(struct bh_serve *s, struct connection *c, const union message *m)
{
    struct bh_err err;
    struct bh_governed *l;
    if (!is_our_version(c, m->join.version))
        return false;
    /* One that comes back was promised it by another governor, and runs. */
    if (s->config.slices_only && !m->join.lease && (m->join.cap_permille || m->join.latency))
        return refuse(
            c, BH_REFUSED,
            "this governor shares by slices alone (BULKHEAD_GOVERN=slices), and holds no cap and no "
            "latency: those take pauses");
    bury(s, m->join.lease);
    const int rc = bh_state_join(&s->state, &m->join, (int)(c - s->at), &l, &err);
    if (rc < 0)
        return refuse(c, rc, err.msg);
    l->uid = owner_of(l->root_pid);
    c->who = WARDEN;
    if (!s->wardens++)
        s->beat_ns = s->now_ns; /* the answer is a sign of life */
    c->lease = l->id;
    return answer(c, BH_OK, l->id, BH_GOVERN_HEARS_OWN) == 0;
}

static bool on_has(struct bh_serve *s, struct connection *c, const union message *m)
{
    return bh_steer_has(s->steer, bh_state_find(&s->state, c->lease), &m->channels, NULL) == BH_OK;
}

static bool on_lost(struct bh_serve *s, struct connection *c, const union message *m)
{
    return bh_steer_lost(s->steer, bh_state_find(&s->state, c->lease), &m->channels, NULL) == BH_OK;
}

static bool on_tampered(struct bh_serve *s, struct connection *c, const union message *m)
{
    struct bh_governed *l = bh_state_find(&s->state, c->lease);
    const uint32_t room = UINT32_MAX - l->tampered;
    l->tampered += m->tampered.times < room ? m->tampered.times : room;
    return true; /* whatever a tenant did: it would be free without its warden */
}

static bool on_pids(struct bh_serve *s, struct connection *c, const union message *m)
{
    return bh_state_pids(bh_state_find(&s->state, c->lease), &m->pids, NULL) == BH_OK;
}

static bool on_own(struct bh_serve *s, struct connection *c, const union message *m)
{
    bh_state_own(bh_state_find(&s->state, c->lease), &m->own, s->now_ns);
    return true; /* whatever they say */
}

static bool is_order(struct connection *c, const struct bh_govern_order *o)
{
    return is_our_version(c, o->version) && !o->zero && memchr(o->name, '\0', sizeof(o->name));
}

static void add_rows(struct bh_serve *s, struct connection *c, struct bh_governed *l)
{
    const uint32_t uid = owner_of(l->root_pid); /* it may have become another user since it joined */
    l->uid = uid == UINT32_MAX ? l->uid : uid;
    for (size_t i = 0; i < l->seats.n; i++)
        bh_steer_row(s->steer, l, &l->seats.at[i], bh_vec_push(&c->rows));
    if (!l->seats.n)
        bh_steer_row(s->steer, l, NULL, bh_vec_push(&c->rows));
    for (size_t i = 0, n; i < l->pids.n; i += n) {
        struct bh_govern_pids *m = bh_vec_push(&c->pids);
        n = l->pids.n - i < BH_GOVERN_SOME_PIDS ? l->pids.n - i : BH_GOVERN_SOME_PIDS;
        *m = (struct bh_govern_pids){
            .op = BH_GOVERN_PIDS, .n = (uint32_t)n, .lease = l->id, .more = i + n < l->pids.n};
        memcpy(m->pids, &l->pids.at[i], n * sizeof(m->pids[0]));
    }
}

static bool takes_pauses(const struct bh_governed *l)
{
    return l->cap_permille || l->latency;
}

/* An operator's wish that waits, and for whom. */
static void add_unlike_wish(struct connection *c, const struct bh_governed *l)
{
    for (size_t i = 0; takes_pauses(l) && i < l->seats.n; i++) {
        struct bh_govern_noise *m = bh_vec_push(&c->noise);
        *m = (struct bh_govern_noise){.op = BH_GOVERN_NOISE, .gpu = l->seats.at[i].gpu};
        (void)snprintf(
            m->text, sizeof(m->text),
            "not by slices alone yet (BULKHEAD_GOVERN=slices): lease %llu (%s) was promised a cap or "
            "latency before this governor, and keeps it",
            (unsigned long long)l->id, l->name);
    }
}

/* One message for each line; one that is too long is cut, and is a line still. */
static void add_noise(struct bh_serve *s, struct connection *c, uint32_t gpu)
{
    struct bh_buf text;
    bh_buf_init(&text, NOISE_MAX);
    bh_steer_noise(s->steer, gpu, s->now_ns, &text);
    for (const char *at = bh_buf_text(&text), *end; (end = strchr(at, '\n')); at = end + 1) {
        struct bh_govern_noise *m = bh_vec_push(&c->noise);
        *m = (struct bh_govern_noise){.op = BH_GOVERN_NOISE, .gpu = gpu};
        (void)snprintf(m->text, sizeof(m->text), "%.*s", (int)(end - at), at);
    }
    bh_buf_fini(&text);
}

static bool on_list(struct bh_serve *s, struct connection *c, const union message *m)
{
    if (!is_order(c, &m->order))
        return false;
    c->who = OPERATOR;
    for (size_t i = 0; i < s->state.n; i++)
        if (s->state.at[i]->server != BH_STATE_NOBODY)
            add_rows(s, c, s->state.at[i]);
    for (size_t i = 0; s->config.slices_only && i < s->state.n; i++)
        if (s->state.at[i]->server != BH_STATE_NOBODY)
            add_unlike_wish(c, s->state.at[i]);
    for (uint32_t gpu = 0; gpu < BH_STATE_GPUS; gpu++)
        add_noise(s, c, gpu);
    return send_rows(s, c);
}

/* What was told that it failed must not be done later. */
static bool is_gone(const struct connection *c)
{
    struct pollfd at = {.fd = c->fd, .events = POLLRDHUP};
    return poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Somebody else is about to suspend it, and has not said yet how that went. */
static bool is_half_suspended(const struct bh_serve *s, const struct connection *c, uint64_t lease)
{
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        if (s->at[i].fd >= 0 && &s->at[i] != c && s->at[i].suspends == lease)
            return true;
    return false;
}

/* A suspension that nobody finishes ends with the connection; one that is done lasts. */
static int carry_out(struct bh_serve *s, struct connection *c, struct bh_governed *l, uint32_t what,
                     struct bh_err *err)
{
    const uint8_t before = l->hold;
    if (what == BH_GOVERN_SUSPEND && is_half_suspended(s, c, l->id))
        return bh_fail(err, BH_BUSY, "somebody else suspends lease %llu at the moment",
                       (unsigned long long)l->id);
    if (what == BH_GOVERN_SUSPEND && c->suspends && c->suspends != l->id)
        return bh_fail(err, BH_BUSY, "lease %llu is being suspended on this connection: one at a time",
                       (unsigned long long)c->suspends);
    if (what == BH_GOVERN_SUSPENDED && c->suspends != l->id)
        return bh_fail(err, BH_CONFLICT, "nobody suspends lease %llu on this connection",
                       (unsigned long long)l->id);
    const int rc = bh_steer_order(s->steer, l, what, err);
    if (what == BH_GOVERN_SUSPEND && !c->suspends && l->hold == BH_HOLD_SUSPENDED) {
        c->suspends = l->id;
        c->before = before;
    } else if (what == BH_GOVERN_SUSPENDED && rc == BH_OK) {
        c->suspends = 0;
    }
    return rc;
}

static bool on_order(struct bh_serve *s, struct connection *c, const union message *m)
{
    struct bh_err err = {0};
    struct bh_governed *l = NULL;
    if (!is_order(c, &m->order) || is_gone(c))
        return false;
    c->who = OPERATOR;
    int rc = bh_state_meant(&s->state, &m->order, &l, &err);
    if (rc == BH_OK)
        rc = carry_out(s, c, l, m->order.what, &err);
    return answer(c, rc, l ? l->id : 0, err.msg) == 0;
}

static const struct {
    size_t size;
    bool (*from[KINDS])(struct bh_serve *s, struct connection *c, const union message *m);
} messages[] = {
    [BH_GOVERN_JOIN] = {sizeof(struct bh_govern_join), {[NEW] = on_join}},
    [BH_GOVERN_HAS] = {sizeof(struct bh_govern_channels), {[WARDEN] = on_has}},
    [BH_GOVERN_LOST] = {sizeof(struct bh_govern_channels), {[WARDEN] = on_lost}},
    [BH_GOVERN_TAMPERED] = {sizeof(struct bh_govern_tampered), {[WARDEN] = on_tampered}},
    [BH_GOVERN_PIDS] = {sizeof(struct bh_govern_pids), {[WARDEN] = on_pids}},
    [BH_GOVERN_OWN] = {sizeof(struct bh_govern_own), {[WARDEN] = on_own}},
    [BH_GOVERN_LIST] = {sizeof(struct bh_govern_order), {[NEW] = on_list, [OPERATOR] = on_list}},
    [BH_GOVERN_ORDER] = {sizeof(struct bh_govern_order), {[NEW] = on_order, [OPERATOR] = on_order}},
};

/* One message. false: the connection ends; *ret_more: there may be another. */
static bool hear(struct bh_serve *s, struct connection *c, bool *ret_more)
{
    union message m = {0};
    const ssize_t n = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);
    *ret_more =
        n > 0 && m.op != BH_GOVERN_OWN; /* those come one at a time: a look for more would be for nothing */
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (c->deaf)
        return n > 0;
    if (m.op >= BH_COUNT_OF(messages) || !messages[m.op].from[c->who] || (size_t)n != messages[m.op].size)
        return false;
    return messages[m.op].from[c->who](s, c, &m);
}

static void attend(struct bh_serve *s, struct connection *c)
{
    bool good = true, more = true;
    if (c->listing)
        good = send_rows(s, c);
    for (int i = 0; good && more && !c->listing && i < MESSAGES; i++)
        good = hear(s, c, &more);
    if (!good)
        hang_up(s, c);
}

/* ---- the loop ---- */

uint64_t bh_serve_clock(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* When something is to be done without anybody having said something. */
static uint64_t next_time(const struct bh_serve *s)
{
    uint64_t next = s->next_ns;
    if (!s->connected && s->config.idle_ns && s->idle_since_ns + s->config.idle_ns < next)
        next = s->idle_since_ns + s->config.idle_ns;
    if (s->wardens && s->beat_ns + BEAT_NS < next)
        next = s->beat_ns + BEAT_NS;
    if (s->config.is_found && s->found_ns + SECOND_NS < next)
        next = s->found_ns + SECOND_NS;
    return next;
}

/* Wardens that tell what their tenants say wake this loop many times between two looks; then nothing has changed. One that is over is set
 * anew, or it would wake the loop for ever. */
static void set_timer(struct bh_serve *s)
{
    const uint64_t at = next_time(s);
    struct itimerspec t = {0};
    if (at == s->timer_ns && at > s->now_ns)
        return;
    if (at != BH_STEER_NEVER) {
        t.it_value.tv_sec = (time_t)(at / SECOND_NS);
        t.it_value.tv_nsec = (long)(at % SECOND_NS) + (at == 0); /* zero would stop it */
    }
    /* an earlier expiry is over, too */
    s->timer_ns = timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0 ? at : 0;
}

static void take_event(struct bh_serve *s, const struct epoll_event *e)
{
    const uint32_t at = e->data.u32;
    if (at == AT_LISTENER)
        take_connections(s);
    else if (at == AT_STOP)
        s->over = true;
    else if (at >= AT_REFUSED)
        bh_refused_hear(&s->refused, at - AT_REFUSED);
    else if (at < BH_SERVE_CONNECTIONS && s->at[at].fd >= 0)
        attend(s, &s->at[at]);
}

static void look_if_idle(struct bh_serve *s)
{
    if (s->connected || !s->config.idle_ns || s->now_ns < s->idle_since_ns + s->config.idle_ns)
        return;
    if (!s->config.may_end || s->config.may_end(s->config.arg))
        s->over = true;
    else
        s->idle_since_ns = s->now_ns;
}

/* Whoever has lost this one does not come back: nobody could end what it holds. */
static void look_if_found(struct bh_serve *s)
{
    if (!s->config.is_found || s->now_ns < s->found_ns + SECOND_NS)
        return;
    s->found_ns = s->now_ns;
    s->over = s->over || !s->config.is_found(s->config.arg);
}

static bool has_promised_pauses(const struct bh_state *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (takes_pauses(s->at[i]))
            return true;
    return false;
}

/* now_ns NULL: ask the clock, after the wait. */
static int turn(struct bh_serve *s, int wait_ms, const uint64_t *now_ns, struct bh_err *err)
{
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(s->epoll, events, EVENTS, wait_ms);
    if (n < 0 && errno != EINTR)
        return bh_fail(err, BH_SYSTEM, "the governor: epoll_wait: %s", strerrordesc_np(errno));
    s->now_ns = now_ns ? *now_ns : s->config.clock();
    for (int i = 0; i < n; i++)
        take_event(s, &events[i]);
    if (s->config.slices_only)
        bh_steer_set_slices_only(s->steer, !has_promised_pauses(&s->state));
    s->next_ns = bh_steer_step(s->steer, s->now_ns);
    beat(s);
    bh_state_forget(&s->state, s->now_ns > LINGER_NS ? s->now_ns - LINGER_NS : 0);
    look_if_found(s);
    if (!s->over)
        look_if_idle(s);
    return n < 0 ? 0 : n;
}

void bh_serve_round(struct bh_serve *s, uint64_t now_ns)
{
    int rc;
    do
        rc = turn(s, 0, &now_ns, NULL);
    while (rc > 0 && !s->over);
}

int bh_serve_run(struct bh_serve *s, struct bh_err *err)
{
    int rc = 0;
    while (rc >= 0 && !s->over) {
        set_timer(s);
        rc = turn(s, -1, NULL, err);
    }
    return rc < 0 ? rc : BH_OK;
}

static int watch(const struct bh_serve *s, int fd, uint32_t what, struct bh_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = what};
    if (fd >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        return bh_fail(err, BH_SYSTEM, "the governor: epoll_ctl: %s", strerrordesc_np(errno));
    return BH_OK;
}

int bh_serve_new(const struct bh_serve_config *config, struct bh_serve **ret, struct bh_err *err)
{
    struct bh_serve *s = bh_alloc(1, sizeof(*s));
    s->gauge = config->gauge ? bh_gauge_new(config->gauge) : NULL;
    const struct bh_steer_config steer = {.driver = config->driver,
                                          .self = config->self,
                                          .state = &s->state,
                                          .tell = tell,
                                          .end = end,
                                          .arg = s,
                                          .clock = config->clock,
                                          .log_prefix = config->log_prefix,
                                          .slices_only = config->slices_only,
                                          .gauge = s->gauge};
    s->config = *config;
    s->steer = bh_steer_new(&steer);
    s->next_ns = BH_STEER_NEVER;
    s->now_ns = s->idle_since_ns = s->found_ns = config->clock ? config->clock() : 0;
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++)
        s->at[i].fd = -1;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    bh_refused_init(&s->refused, s->epoll, AT_REFUSED);
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int rc = BH_OK;
    if (s->epoll < 0 || s->timer < 0)
        rc = bh_fail(err, BH_SYSTEM, "the governor: epoll or a timer: %s", strerrordesc_np(errno));
    if (rc == BH_OK)
        rc = watch(s, s->timer, AT_TIMER, err);
    if (rc == BH_OK)
        rc = watch(s, config->listener, AT_LISTENER, err);
    if (rc == BH_OK)
        rc = watch(s, config->stop, AT_STOP, err);
    if (rc < 0) {
        (void)bh_serve_free(s);
        return rc;
    }
    *ret = s;
    return BH_OK;
}

size_t bh_serve_free(struct bh_serve *s)
{
    /* First of all: whatever comes after may take its time. */
    const size_t left = bh_steer_release(s->steer);
    for (size_t i = 0; i < BH_SERVE_CONNECTIONS; i++) {
        if (s->at[i].fd >= 0)
            close(s->at[i].fd);
        bh_vec_fini(&s->at[i].rows);
        bh_vec_fini(&s->at[i].pids);
        bh_vec_fini(&s->at[i].noise);
    }
    bh_refused_fini(&s->refused);
    (void)bh_gauge_free(s->gauge); /* after the peers know: it may have to be waited for */
    bh_steer_free(s->steer);
    bh_state_fini(&s->state);
    if (s->epoll >= 0)
        close(s->epoll);
    if (s->timer >= 0)
        close(s->timer);
    free(s);
    return left;
}

bool bh_serve_is_over(const struct bh_serve *s)
{
    return s->over;
}

const struct bh_state *bh_serve_state(const struct bh_serve *s)
{
    return &s->state;
}

struct bh_steer *bh_serve_steer(struct bh_serve *s)
{
    return s->steer;
}
