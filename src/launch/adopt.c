/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.c - takes listeners from container runtimes and gives each to a warden.
 *
 * One thread and one poll: nobody who connects can keep the others waiting, whatever he sends or does not send. A runtime
 * does not wait for an answer; the container's first call for GPU memory waits in the kernel until the warden is there.
 * A duplicate of what a warden was given is kept, so that one that was killed is followed by another.
 */
#include "launch/adopt.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/limits.h"
#include "host/profile.h"
#include "launch/adopt_socket.h"
#include "launch/share.h"
#include "launch/warden.h"
#include "wire/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SENDERS_OF_USER = 16,
    PATIENCE_MS = 5000,
    NO_ROOM_MS = 100,
    REAP_MS = 100,
    SENT_MAX = 256, /* messages, of which none may ever be a whole one */
    NAME_MAX_BYTES = 64,
    LINE_MAX_BYTES = 900
};

static const char closed_text[] = "its calls for GPU memory are refused (ENOSYS)";

/* Somebody who has connected and has not said everything yet. */
struct sender {
    int fd;
    uid_t uid;
    int64_t until_ms;
    struct bh_oci_message message;
};

/* One process tree with a listener of its own. */
struct lease {
    uint64_t number;                                     /* a later one's is higher */
    char id[BH_OCI_TEXT_MAX];                            /* as the runtime has it */
    char name[NAME_MAX_BYTES + BH_PROFILE_NAME_MAX + 8]; /* as it is shown */
    uid_t sender;
    bool joined; /* a process that joined a container */
    bool ready;
    int fds[BH_LEASE_FDS]; /* our duplicates */
    struct bh_lease_start start;
    struct bh_child warden;
    struct bh_warden_followers followers;
};

struct state {
    const struct bh_adopt *a;
    struct bh_adopt_socket socket;
    int signals;
    BH_VEC(struct sender) senders;
    BH_VEC(struct lease) leases;
    BH_VEC(struct pollfd) polls;
    BH_VEC(pid_t) dying; /* wardens that were killed, to be waited for */
    uint64_t last_number;
    struct bh_share_link link; /* of a keeper's container */
    bool over;
    int once_rc; /* with `once`: what came of the one */
    struct bh_err once_err;
};

static void tell(const struct state *s, const char *fmt, ...) BH_PRINTF(2, 3);
static void tell(const struct state *s, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    s->a->tell(s->a->arg, line);
}

/* ---- leases ---- */

/* What a runtime calls a container is for machines; what a terminal could take for a command is not shown. */
static void set_name(struct lease *l, const struct bh_oci_state *state, const char *mark)
{
    char id[NAME_MAX_BYTES];
    size_t n = 0;
    for (; n < sizeof(id) - 1 && state->id[n]; n++)
        id[n] = state->id[n] > ' ' && state->id[n] < 0x7f ? state->id[n] : '?';
    id[n] = '\0';
    (void)snprintf(l->name, sizeof(l->name), "%s%s%s%s", n ? id : "?", *mark ? " (" : "", mark,
                   *mark ? ")" : "");
}

static void drop_lease(struct state *s, size_t i)
{
    struct lease *l = &s->leases.at[i];
    const pid_t left = bh_warden_kill(&l->warden);
    if (left)
        *bh_vec_push(&s->dying) = left;
    for (size_t f = 0; f < BH_LEASE_FDS; f++)
        if (l->fds[f] >= 0)
            close(l->fds[f]);
    s->leases.at[i] = s->leases.at[--s->leases.n];
}

static void lease_over(struct state *s, size_t i, int rc, const struct bh_err *err)
{
    const bool is_the_one = s->a->once && !s->leases.at[i].joined;
    drop_lease(s, i);
    if (!is_the_one)
        return;
    s->over = true;
    s->once_rc = rc;
    if (rc < 0)
        s->once_err = *err;
}

static bool has_ended(const struct lease *l)
{
    struct pollfd at = {.fd = l->fds[BH_LEASE_ROOT], .events = POLLIN}; /* below 0: passed over */
    return poll(&at, 1, 0) == 1;
}

static void refuse(struct state *s, size_t i, int rc, const struct bh_err *err)
{
    const struct lease *l = &s->leases.at[i];
    if (has_ended(l)) {
        tell(s, "%s pid %u: ended before it was held: %s", l->name, l->start.root_pid, err->msg);
        rc = BH_OK;
    } else {
        tell(s, "%s pid %u: not held: %s; %s", l->name, l->start.root_pid, err->msg, closed_text);
    }
    lease_over(s, i, rc, err);
}

/* A name is used again when a container starts anew, and something of the one before may be left: the living one is meant, and
 * of several the latest. */
static const struct lease *container_of(const struct state *s, const char *id, uid_t sender)
{
    const struct lease *found = NULL;
    for (size_t i = 0; i < s->leases.n; i++) {
        const struct lease *l = &s->leases.at[i];
        if (!l->joined && l->sender == sender && bh_str_eq(l->id, id) && !has_ended(l) &&
            (!found || l->number > found->number))
            found = l;
    }
    return found;
}

/* Whose processes a lease is about; fills its root. */
static int find_root(const struct state *s, struct lease *l, const struct bh_oci_state *state,
                     struct bh_err *err)
{
    /* Of one that joins, the container's own first process: runtimes differ in what they say of it. Its number may be another's
     * by now; the descriptor is not. */
    const struct lease *container = l->joined ? container_of(s, state->id, l->sender) : NULL;
    if (container) {
        l->start.root_pid = container->start.root_pid;
        l->fds[BH_LEASE_ROOT] = fcntl(container->fds[BH_LEASE_ROOT], F_DUPFD_CLOEXEC, 0);
        return l->fds[BH_LEASE_ROOT] >= 0 ? BH_OK
                                          : bh_fail(err, BH_SYSTEM, "dup: %s", strerrordesc_np(errno));
    }
    const uint32_t pid = l->joined ? state->init_pid : state->pid;
    if (pid == 0 && l->joined)
        return bh_fail(
            err, BH_REFUSED,
            "a process joins a container that is not held from here, and the runtime does not say which "
            "process is the container's first");
    l->start.root_pid = pid;
    return bh_adopt_process(pid, l->sender, &l->fds[BH_LEASE_ROOT], err);
}

static int start_warden(struct state *s, struct lease *l, struct bh_err *err)
{
    l->ready = false;
    const int rc = bh_warden_start(s->a->warden, &l->warden, err);
    if (rc < 0)
        return rc;
    bh_warden_hand_over(&l->warden, &l->start, l->fds);
    if (l->start.flags & BH_LEASE_HAS_PROBE)
        bh_warden_give_probe(&l->warden, s->a->keep->probe);
    if (l->start.share.weight && l->start.adopted)
        bh_share_give_soon(&s->link, &l->warden);
    else if (l->start.share.weight)
        bh_share_give(&s->link, &l->warden, NULL);
    return BH_OK;
}

static int begin(struct state *s, struct lease *l, const struct bh_oci_state *state, struct bh_err *err)
{
    struct bh_profile_mark mark = {0};
    set_name(l, state, "");
    int rc = bh_profile_read_mark(state->metadata, &mark, err);
    set_name(l, state, mark.name);
    l->start.root_pid = state->pid; /* what can be said if this fails */
    const bool controls = s->a->view || l->start.share.weight;
    if (rc == BH_OK && controls && !(mark.flags & BH_FILTER_CONTROLS))
        rc = bh_fail(
            err, BH_REFUSED,
            "its seccomp profile does not send what --view needs: make it with the same --view, or give --view "
            "card");
    if (rc == BH_OK)
        rc = find_root(s, l, state, err);
    if (rc == BH_OK)
        rc = bh_warden_journal(&l->fds[BH_LEASE_JOURNAL], err);
    return rc == BH_OK ? start_warden(s, l, err) : rc;
}

/* A whole message: a container, or a process that joins one. The listener is this lease's now. */
static void new_lease(struct state *s, const struct bh_oci_state *state, int listener, uid_t sender)
{
    struct bh_err err = {0};
    const bool joined = !bh_str_eq(state->status, "creating");
    struct lease l = {.number = ++s->last_number,
                      .sender = sender,
                      .joined = joined,
                      .fds = {[BH_LEASE_LISTENER] = listener, [BH_LEASE_ROOT] = -1, [BH_LEASE_JOURNAL] = -1},
                      .start = {.version = BH_LEASE_VERSION,
                                .cap_bytes = joined ? 0 : s->a->cap_bytes,
                                .tick_ms = s->a->tick_ms,
                                .view = s->a->view,
                                .flags = s->a->rdma ? BH_LEASE_RDMA : 0},
                      .warden = {.fd = -1}};
    memcpy(l.id, state->id, sizeof(l.id));
    if (s->a->keep && !joined) {
        l.start.share = s->a->keep->share;
        l.start.flags |= s->a->keep->probe >= 0 ? (uint32_t)BH_LEASE_HAS_PROBE : 0;
        s->a->keep->came(s->a->arg);
    }
    const int rc = begin(s, &l, state, &err);
    *bh_vec_push(&s->leases) = l;
    if (rc < 0)
        refuse(s, s->leases.n - 1, rc, &err);
    /* The one is taken: whoever comes next must not believe that he is held. */
    if (s->a->once && !joined)
        bh_adopt_close(&s->socket);
}

static void say_ready(const struct state *s, const struct lease *l)
{
    struct bh_unit_text cap;
    if (l->start.adopted)
        tell(s, "%s pid %u: held again, by another warden", l->name, l->start.root_pid);
    else if (l->joined)
        tell(s, "%s pid %u: a process joined the container; it gets no GPU memory", l->name,
             l->start.root_pid);
    else
        tell(s, "%s pid %u: held at %s of each GPU", l->name, l->start.root_pid,
             bh_size_format(l->start.cap_bytes, &cap));
}

static void say_end(const struct state *s, const struct lease *l, const struct bh_lease_end *end)
{
    struct bh_unit_text peak, cap;
    if (end->code < 0)
        tell(s, "%s pid %u: the gate could not go on: %s; %s", l->name, l->start.root_pid, end->text,
             closed_text);
    else if (*end->why_killed)
        tell(s, "%s pid %u: killed: %s", l->name, l->start.root_pid, end->why_killed);
    if (!l->joined)
        tell(s, "%s pid %u: ended, peak %s of %s, %llu refused for memory, %llu denied, %llu killed", l->name,
             l->start.root_pid, bh_size_format(end->peak_bytes, &peak),
             bh_size_format(l->start.cap_bytes, &cap), (unsigned long long)end->refused_memory,
             (unsigned long long)end->denied, (unsigned long long)end->killed);
    struct bh_warden_room room;
    if (end->no_room)
        tell(s, "%s pid %u: %s", l->name, l->start.root_pid, bh_warden_no_room(end, &room));
}

/* It died without a word. Its lease is as the journal has it, and the next one goes on from there. */
static void replace(struct state *s, size_t i, int status)
{
    struct lease *l = &s->leases.at[i];
    struct bh_err err = {0};
    struct bh_warden_how how;
    tell(s, "%s pid %u: its warden %s", l->name, l->start.root_pid, bh_warden_how(status, &how));
    l->start.adopted = 1;
    const int rc = bh_warden_may_follow(&l->followers, bh_warden_now_ms())
                       ? start_warden(s, l, &err)
                       : bh_fail(&err, BH_SYSTEM, "its wardens die one after the other");
    if (rc < 0)
        refuse(s, i, rc, &err);
}

/* Something came from a warden: that it is ready, that its lease is over, or nothing more. */
static void hear(struct state *s, size_t i)
{
    struct lease *l = &s->leases.at[i];
    struct bh_lease_end end;
    struct bh_lease_ask ask;
    struct bh_err err = {0};
    int status;
    if (!l->ready) {
        bool died;
        const int rc = bh_warden_ready(&l->warden, &l->start, &died, &err);
        l->ready = rc == BH_OK;
        if (l->ready && s->a->keep && !l->joined && !l->start.adopted)
            s->a->keep->held(s->a->arg, (pid_t)l->start.root_pid);
        if (l->ready)
            say_ready(s, l);
        else if (died && l->start.adopted) /* one that takes over may be killed as well */
            replace(s, i, bh_child_reap(&l->warden));
        else
            refuse(s, i, rc, &err);
        return;
    }
    if (bh_warden_asks(&l->warden, &ask)) {
        bh_share_asked(&s->link, &l->warden, &ask);
        return;
    }
    if (!bh_warden_end(&l->warden, &end, &status)) {
        replace(s, i, status);
        return;
    }
    say_end(s, l, &end);
    if (s->a->keep && !l->joined)
        s->a->keep->ended(s->a->arg, &end);
    const int rc = end.code < 0 ? bh_fail(&err, (enum bh_code)end.code, "%s", end.text) : BH_OK;
    lease_over(s, i, rc, &err);
}

/* ---- senders ---- */

static void drop_sender(struct state *s, size_t i)
{
    bh_oci_fini(&s->senders.at[i].message);
    close(s->senders.at[i].fd);
    s->senders.at[i] = s->senders.at[--s->senders.n];
}

/* Whoever may send can only crowd out himself: the longest waiting of his own goes for the next one. */
static void make_room(struct state *s, uid_t uid)
{
    size_t n = 0, oldest = 0;
    for (size_t i = 0; i < s->senders.n; i++) {
        if (s->senders.at[i].uid != uid)
            continue;
        if (n++ == 0 || s->senders.at[i].until_ms < s->senders.at[oldest].until_ms)
            oldest = i;
    }
    if (n < SENDERS_OF_USER)
        return;
    tell(s, "a message was refused: user %u has %d more on the way", (unsigned)uid, SENDERS_OF_USER);
    drop_sender(s, oldest);
}

static void accept_one(struct state *s)
{
    struct bh_err err;
    uid_t uid = 0;
    const int fd = accept4(s->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        /* Who came is gone again; or there is no room for one more, and then he waits where he is. */
        if (errno == EMFILE || errno == ENFILE)
            (void)poll(NULL, 0, NO_ROOM_MS);
        return;
    }
    if (bh_adopt_peer(fd, s->a->owner, &uid, &err) < 0) {
        tell(s, "a message was refused: %s", err.msg);
        close(fd);
        return;
    }
    make_room(s, uid);
    struct sender *new = bh_vec_push(&s->senders);
    *new = (struct sender){.fd = fd, .uid = uid, .until_ms = bh_warden_now_ms() + PATIENCE_MS};
    bh_oci_init(&new->message);
}

static void listen_to(struct state *s, size_t i)
{
    struct sender *from = &s->senders.at[i];
    struct bh_oci_state state;
    struct bh_err err = {0};
    int listener = -1;
    const uid_t uid = from->uid;
    const int rc = bh_oci_receive(&from->message, from->fd, &state, &listener, &err);
    if (rc == BH_BUSY)
        return;
    drop_sender(s, i);
    if (rc == BH_OK)
        new_lease(s, &state, listener, uid);
    else if (rc != BH_NOT_FOUND) /* somebody who only looks whether anybody is here */
        tell(s, "a message was refused: %s", err.msg);
}

static void hurry(struct state *s)
{
    const int64_t now = bh_warden_now_ms();
    for (size_t i = s->senders.n; i-- > 0;)
        if (now >= s->senders.at[i].until_ms) {
            tell(s, "a message was refused: it was not whole after %d seconds", PATIENCE_MS / 1000);
            drop_sender(s, i);
        }
}

/* ---- the loop ---- */

/* A governor for the one container that has a share, if it is still there. */
static void hear_seeker(struct state *s)
{
    const struct bh_child nobody = {.fd = -1};
    const struct bh_child *warden = &nobody;
    for (size_t i = 0; i < s->leases.n; i++)
        if (s->leases.at[i].start.share.weight)
            warden = &s->leases.at[i].warden;
    bh_share_hear(&s->link, warden);
}

static void reap(struct state *s)
{
    for (size_t i = s->dying.n; i-- > 0;)
        if (waitpid(s->dying.at[i], NULL, WNOHANG) != 0)
            s->dying.at[i] = s->dying.at[--s->dying.n];
}

static int wait_ms(const struct state *s)
{
    int64_t least = -1;
    for (size_t i = 0; i < s->senders.n; i++)
        if (least < 0 || s->senders.at[i].until_ms < least)
            least = s->senders.at[i].until_ms;
    const int64_t now = bh_warden_now_ms(), left = least < 0 ? -1 : least < now ? 0 : least - now + 1;
    return s->dying.n && (left < 0 || left > REAP_MS) ? REAP_MS : (int)left;
}

static bool is_there(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    return poll(&at, 1, 0) == 1;
}

/* All that was sent before now, and that nobody has heard yet. */
static void hear_sent(struct state *s)
{
    bool any = true;
    for (int round = 0; round < SENT_MAX && any && !s->over; round++) {
        any = is_there(s->socket.fd);
        if (any)
            accept_one(s);
        for (size_t i = s->senders.n; !s->over && i-- > 0;)
            if (is_there(s->senders.at[i].fd)) {
                listen_to(s, i);
                any = true;
            }
    }
}

static void watch(struct state *s, int fd)
{
    *bh_vec_push(&s->polls) = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* One round. Looked at from the last on: one that goes is replaced by the last, which was looked at already. */
static int turn(struct state *s, struct bh_err *err)
{
    enum { SOCKET = 1, ALSO, SEEKER, REST };
    s->polls.n = 0;
    watch(s, s->signals);
    watch(s, s->socket.fd);
    watch(s, s->a->keep ? s->a->keep->fd : -1);
    watch(s, s->link.seeker.fd);
    for (size_t i = 0; i < s->senders.n; i++)
        watch(s, s->senders.at[i].fd);
    for (size_t i = 0; i < s->leases.n; i++)
        watch(s, s->leases.at[i].warden.fd);
    const size_t n_senders = s->senders.n, n_leases = s->leases.n;
    if (poll(s->polls.at, s->polls.n, wait_ms(s)) < 0)
        return errno == EINTR ? BH_OK : bh_fail(err, BH_SYSTEM, "poll: %s", strerrordesc_np(errno));
    /* Taken, so that it does not end this process when signals are let through again. */
    struct signalfd_siginfo si;
    while (read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
        s->over = !s->a->keep;
    const int rc = s->polls.at[ALSO].revents ? s->a->keep->hear(s->a->arg, err) : BH_OK;
    if (rc == BH_NOT_FOUND) {
        hear_sent(s);
        return s->over ? BH_OK : s->a->keep->hear(s->a->arg, err);
    }
    if (rc < 0)
        return rc;
    if (s->polls.at[SEEKER].revents)
        hear_seeker(s);
    for (size_t i = n_leases; !s->over && i-- > 0;)
        if (s->polls.at[REST + n_senders + i].revents)
            hear(s, i);
    for (size_t i = n_senders; !s->over && i-- > 0;)
        if (s->polls.at[REST + i].revents)
            listen_to(s, i);
    if (!s->over && s->polls.at[SOCKET].revents)
        accept_one(s);
    hurry(s);
    reap(s);
    return BH_OK;
}

static int take_signals(struct state *s, sigset_t *ret_before, struct bh_err *err)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ends, ret_before) < 0)
        return bh_fail(err, BH_SYSTEM, "blocking signals: %s", strerrordesc_np(errno));
    s->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals >= 0)
        return BH_OK;
    const int rc = bh_fail(err, BH_SYSTEM, "signalfd: %s", strerrordesc_np(errno));
    (void)sigprocmask(SIG_SETMASK, ret_before, NULL);
    return rc;
}

/* Wardens that serve go on by themselves; one that was not ready yet will be, or closes its listener. */
static void leave(struct state *s)
{
    size_t held = 0;
    for (size_t i = 0; i < s->leases.n; i++)
        held += !s->leases.at[i].joined;
    if (held)
        tell(s, "leaving: %zu container%s stay%s held, each by its warden", held, held == 1 ? "" : "s",
             held == 1 ? "s" : "");
    while (s->leases.n) {
        struct lease *l = &s->leases.at[s->leases.n - 1];
        l->warden.pid = 0; /* not ours to end */
        bh_child_close(&l->warden);
        drop_lease(s, s->leases.n - 1);
    }
    while (s->senders.n)
        drop_sender(s, s->senders.n - 1);
    bh_vec_fini(&s->leases);
    bh_vec_fini(&s->senders);
    bh_vec_fini(&s->polls);
    bh_vec_fini(&s->dying);
    bh_adopt_close(&s->socket);
}

int bh_adopt_serve(const struct bh_adopt *a, struct bh_err *err)
{
    struct state s = {.a = a,
                      .socket = {.fd = -1},
                      .signals = -1,
                      .link = {.seeker = {.fd = -1},
                               .governor = a->keep ? a->keep->governor : -1,
                               .version = a->keep ? a->keep->version : 0,
                               .tell = a->tell,
                               .arg = a->arg}};
    sigset_t before;
    bh_limits_raise(); /* some files for each container */
    int rc = take_signals(&s, &before, err);
    if (rc < 0) {
        bh_share_end(&s.link);
        return rc;
    }
    rc = bh_adopt_listen(a->socket, a->owner, &s.socket, err);
    if (rc == BH_OK)
        tell(&s, "waiting for containers on %s", a->socket);
    if (rc == BH_OK && a->keep)
        rc = a->keep->listening(a->arg, err);
    while (rc == BH_OK && !s.over)
        rc = turn(&s, err);
    if (rc == BH_OK && s.once_rc < 0) {
        rc = s.once_rc;
        *err = s.once_err;
    }
    leave(&s);
    bh_share_end(&s.link);
    close(s.signals);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}
