/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - starts a command and its warden, and stands between the command and the shell.
 *
 * The order matters: the filter goes on in the child, its listener comes here and goes on to the warden, and only when
 * the warden has said that it is ready may the child become the command.
 *
 * A keeper (struct bh_launch_keep) goes the same way, without the shell: it sends no signals on, and hears its own descriptor at
 * every step.
 *
 * This process keeps the listener and the journal too. A warden that dies without a word is followed by another one, which
 * goes on from the journal; the command's calls wait meanwhile. Wardens that die one after the other are no way to go on:
 * then the listener is closed here, and the kernel refuses what the filter would have asked about.
 *
 * Signals are blocked here from the beginning and read as data. What the terminal sends reaches the command by
 * itself, for both are in one process group; but a hang-up is for the leader of the session alone, and if that is this process
 * it is sent on, as is what somebody sends to this process. (What somebody sends to the whole group reaches the command
 * twice.)
 */
#include "launch/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include "host/filter.h"
#include "launch/governor.h"
#include "launch/probe.h"
#include "launch/share.h"
#include "launch/signals.h"
#include "launch/stop.h"
#include "launch/warden.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the warden is waited for after the command's end: to say why it killed somebody; to end as well; below a keeper, to
 * give its account. */
enum { KILLED_MS = 2000, ENDING_MS = 50, KEPT_MS = 10000 };
/* Of its share: how often it is asked for, and how long the command's signals may wait for that. */
enum { NOTE_MS = 500, NOTED_MS = 100 };
/* Without a warden the clock comes for the probe, and far more often; and little is to change then. */
enum { NOTE_SELDOM_MS = 1000 };
/* Nothing came for so long: what this process was woken for is done. */
enum { AGAIN_MS = 200 };
/* A governor that could not be joined after so long does not answer, and another try would take as long. */
enum { SILENT_MS = 4000 };

struct state {
    const struct bh_launch *l;
    struct bh_launch_result *ret;
    struct bh_child tenant, warden;
    struct bh_share_link link;
    struct bh_probe_place probe;
    int fds[BH_LEASE_FDS]; /* what every warden of this lease is given; -1: nobody will be any more */
    struct bh_lease_start start;
    bool ready;               /* this warden has said so */
    struct bh_warden_how how; /* the one before died */
    int64_t died_ms;
    struct bh_warden_followers followers;
    bool stopped;     /* the command is */
    bool stop_again;  /* and this process was too, until there was something to do */
    pid_t waker;      /* who saw to that */
    int64_t noted_ms; /* when its share was last asked for */
    struct bh_signals signals;
    BH_VEC(struct signalfd_siginfo) early; /* came before there was a command to send them on to */
};

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "%s: %s", what, strerrordesc_np(errno));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- before the command runs ---- */

static bool is_gated(const struct state *s)
{
    return !s->l->keep || s->l->keep->gate;
}

/* What a keeper listens to; passed over where this is none. */
static struct pollfd also(const struct state *s)
{
    return (struct pollfd){.fd = s->l->keep ? s->l->keep->fd : -1, .events = POLLIN};
}

static int hear_also(const struct state *s, const struct pollfd *at, struct bh_err *err)
{
    return at->revents ? s->l->keep->hear(s->l->arg, err) : BH_OK;
}

/* So that a shell with job control sees it. A keeper has none, and whom it keeps must not stop it. */
static void stop(struct state *s, int signal)
{
    const int heard[BH_STOP_FDS] = {s->warden.fd, s->link.seeker.fd};
    s->stop_again = !s->l->keep && bh_stop(signal, s->tenant.pid, heard, &s->waker) == BH_WOKEN_FOR_EVENT;
}

static void send_on(struct state *s, const struct signalfd_siginfo *si)
{
    const bool woke_us = s->waker > 0 && si->ssi_signo == SIGCONT && si->ssi_code == SI_USER &&
                         si->ssi_pid == (uint32_t)s->waker;
    if (!s->l->keep && !woke_us && bh_signals_send_on(si, s->tenant.pid, s->stopped))
        stop(s, SIGTSTP);
}

static _Noreturn void be_tenant(const void *arg, int to_launcher)
{
    const struct state *s = arg;
    struct bh_err err = {0};
    struct bh_lease_answer answer = {0};
    char go;
    int listener = -1;
    /* Whoever kills the launcher means the command. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    const bool controls = s->l->view || s->l->share.weight; /* what it could undo goes by controls */
    if (is_gated(s))
        answer.code = bh_filter_install(controls ? BH_FILTER_CONTROLS : 0, &listener, &err);
    memcpy(answer.text, err.msg, sizeof(answer.text));
    if (bh_fds_send(to_launcher, &answer, sizeof(answer), NULL, 0, NULL) < 0 || answer.code < 0 ||
        bh_fds_send(to_launcher, "", 1, &listener, listener >= 0 ? 1 : 0, NULL) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    close_fd(&listener);
    if (bh_fds_recv(to_launcher, &go, 1, NULL, 0, NULL) < 0)
        _exit(BH_LAUNCH_NOT_RUN);
    /* After the warden has looked whose it is to be: below a keeper it is not the tenant's, who could end it. */
    bh_signals_restore(&s->signals);
    (void)signal(SIGPIPE, s->l->ignore_pipe ? SIG_IGN : SIG_DFL);
    if (s->l->keep)
        answer.code = s->l->keep->become(s->l->arg, &err);
    memcpy(answer.text, err.msg, sizeof(answer.text));
    if (answer.code == 0) {
        bh_probe_announce(&s->probe);
        execvp(s->l->argv[0], s->l->argv);
        answer.code = errno;
    }
    (void)!bh_fds_send(to_launcher, &answer, sizeof(answer), NULL, 0, NULL);
    _exit(BH_LAUNCH_NOT_RUN);
}

/* The filter is on: what every warden of this lease is given. */
static int take_tenant(struct state *s, struct bh_err *err)
{
    char byte;
    s->start = (struct bh_lease_start){.version = BH_LEASE_VERSION,
                                       .root_pid = (uint32_t)s->tenant.pid,
                                       .cap_bytes = s->l->cap_bytes,
                                       .tick_ms = s->l->tick_ms,
                                       .view = s->l->view,
                                       .flags = BH_LEASE_ENDS_WITH_LAUNCHER |
                                                (s->l->rdma ? (uint32_t)BH_LEASE_RDMA : 0) |
                                                (s->probe.fd >= 0 ? (uint32_t)BH_LEASE_HAS_PROBE : 0),
                                       .share = s->l->share};
    int rc = bh_child_answer(&s->tenant, "the command's process", NULL, NULL, err);
    if (rc == BH_OK)
        rc = bh_fds_recv(s->tenant.fd, &byte, 1, &s->fds[BH_LEASE_LISTENER], is_gated(s) ? 1 : 0, err);
    if (rc < 0)
        return rc;
    s->fds[BH_LEASE_ROOT] = (int)syscall(SYS_pidfd_open, s->tenant.pid, 0);
    return s->fds[BH_LEASE_ROOT] < 0 ? fail_errno(err, "pidfd_open") : BH_OK;
}

static void hand_lease_over(const struct state *s)
{
    bh_warden_hand_over(&s->warden, &s->start, s->fds);
    if (s->probe.fd >= 0)
        bh_warden_give_probe(&s->warden, s->probe.fd);
}

static int hand_over(struct state *s, struct bh_err *err)
{
    close_fd(&s->fds[BH_LEASE_JOURNAL]);
    const int rc = bh_warden_journal(&s->fds[BH_LEASE_JOURNAL], err);
    if (rc < 0)
        return rc;
    hand_lease_over(s);
    if (s->l->share.weight)
        bh_share_give(&s->link, &s->warden, NULL);
    return BH_OK;
}

/* A driver can take its time; somebody who does not want to wait may say so. *ret_signal: they did. */
static int await_start(struct state *s, const struct bh_child *whose, int *ret_signal, struct bh_err *err)
{
    for (;;) {
        struct pollfd at[3] = {
            {.fd = whose->fd, .events = POLLIN}, {.fd = s->signals.fd, .events = POLLIN}, also(s)};
        struct signalfd_siginfo si;
        if (poll(at, 3, -1) < 0 && errno != EINTR)
            return fail_errno(err, "poll");
        const int rc = hear_also(s, &at[2], err);
        if (rc < 0)
            return rc;
        /* Signals first: Ctrl-C may have ended the warden too, before it left the terminal. */
        const bool seen = read(s->signals.fd, &si, sizeof(si)) == (ssize_t)sizeof(si);
        const int n = seen ? (int)si.ssi_signo : 0;
        if (!s->l->keep && (n == SIGINT || n == SIGTERM || n == SIGHUP || n == SIGQUIT) &&
            !bh_signals_ignored(n)) {
            *ret_signal = n;
            return bh_fail(err, BH_SYSTEM, "ended by a signal before the command was started");
        }
        if (seen && n != SIGCHLD)
            *bh_vec_push(&s->early) = si;
        if (!seen && at[0].revents)
            return BH_OK;
    }
}

static int await_governor(struct state *s, int *ret_signal, struct bh_err *err)
{
    int rc = s->l->share.weight ? bh_governor_seek(&s->link.seeker, err) : BH_OK;
    if (rc < 0 || !s->l->share.weight)
        return rc;
    rc = await_start(s, &s->link.seeker, ret_signal, err);
    return rc < 0 ? rc : bh_governor_found(&s->link.seeker, &s->link.governor, &s->link.version, err);
}

static int await_warden(struct state *s, int *ret_signal, struct bh_err *err)
{
    int rc = hand_over(s, err);
    if (rc == BH_OK)
        rc = await_start(s, &s->warden, ret_signal, err);
    return rc < 0 ? rc : bh_warden_ready(&s->warden, &s->start, NULL, err);
}

/* A governor that was told to end just then says so at once, and is followed by another: once more, with that one. */
static int await_warden_again(struct state *s, int *ret_signal, struct bh_err *err)
{
    (void)bh_warden_kill(&s->warden);
    int rc = await_governor(s, ret_signal, err);
    if (rc == BH_OK)
        rc = bh_warden_start(s->l->warden, &s->warden, err);
    return rc < 0 ? rc : await_warden(s, ret_signal, err);
}

static bool look_at_tenant(struct state *s);
static void hear_warden(struct state *s);

/* The child may be stopped on its way: Ctrl-Z at the start. Below a keeper it looks up its groups, and what that maps the gate is
 * asked about: a warden that dies meanwhile is followed already. */
static int await_command(struct state *s, struct bh_err *err)
{
    for (;;) {
        struct pollfd at[4] = {{.fd = s->tenant.fd, .events = POLLIN},
                               {.fd = s->signals.fd, .events = POLLIN},
                               {.fd = s->warden.fd, .events = POLLIN},
                               {.fd = s->link.seeker.fd, .events = POLLIN}};
        struct signalfd_siginfo si;
        if (poll(at, 4, -1) < 0 && errno != EINTR)
            return fail_errno(err, "poll");
        if (at[0].revents)
            return BH_OK;
        if (at[3].revents)
            bh_share_hear(&s->link, &s->warden);
        if (at[2].revents)
            hear_warden(s);
        if (read(s->signals.fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
            continue;
        if (si.ssi_signo != SIGCHLD)
            *bh_vec_push(&s->early) = si;
        else if (look_at_tenant(s))
            return BH_OK;
    }
}

/* The child's end of the connection closes by itself when it becomes the command. */
static int let_go(struct state *s, int *ret_exit, struct bh_err *err)
{
    struct bh_lease_answer answer;
    int rc = s->l->keep ? s->l->keep->begin(s->l->arg, err) : BH_OK;
    if (rc == BH_OK)
        rc = bh_fds_send(s->tenant.fd, "", 1, NULL, 0, err);
    if (rc == BH_OK)
        rc = await_command(s, err);
    if (rc < 0)
        return rc;
    rc = bh_fds_recv(s->tenant.fd, &answer, sizeof(answer), NULL, 0, err);
    bh_child_close(&s->tenant);
    if (rc == BH_NOT_FOUND) {
        if (s->l->keep)
            s->l->keep->runs(s->l->arg, s->tenant.pid);
        return BH_OK;
    }
    if (rc < 0)
        return rc;
    answer.text[sizeof(answer.text) - 1] = '\0';
    if (answer.code < 0)
        return bh_fail(err, (enum bh_code)answer.code, "%s", answer.text);
    const bool missing = answer.code == ENOENT || answer.code == ENOTDIR;
    *ret_exit = missing ? BH_LAUNCH_NOT_FOUND : BH_LAUNCH_NOT_RUN;
    return bh_fail(err, missing ? BH_NOT_FOUND : BH_DENIED, "'%.200s': %s", s->l->argv[0],
                   strerrordesc_np(answer.code));
}

/* ---- while it runs ---- */

/* Whoever reads from the command, writes to it or waits for a lock of its must not wait for us. */
static void close_what_is_the_commands(const struct state *s)
{
    const int ours[] = {
        STDERR_FILENO,
        s->signals.fd,
        s->warden.fd,
        s->fds[BH_LEASE_LISTENER],
        s->fds[BH_LEASE_ROOT],
        s->fds[BH_LEASE_JOURNAL],
        s->probe.fd,
        s->link.seeker.fd, /* a warden that died before the command was there may have been followed */
        s->link.governor};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDOUT_FILENO; fd++)
        (void)dup2(null, fd);
    for (unsigned from = STDOUT_FILENO + 1; from <= INT_MAX;) {
        unsigned next = (unsigned)INT_MAX + 1; /* the next one of ours */
        for (size_t i = 0; i < BH_COUNT_OF(ours); i++)
            if (ours[i] >= 0 && (unsigned)ours[i] >= from && (unsigned)ours[i] < next)
                next = (unsigned)ours[i];
        if (next > from)
            (void)close_range(from, next - 1, 0);
        from = next + 1;
    }
}

static void tell(const struct state *s, const char *fmt, ...) BH_PRINTF(2, 3);
static void tell(const struct state *s, const char *fmt, ...)
{
    char line[sizeof(s->ret->end.text) + 200];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    s->l->tell(s->l->arg, line);
}

/* What it means for the command that nobody serves it any more. */
static const char *consequence(const struct state *s)
{
    return s->l->share.weight ? "video memory is refused to the command from now on, and its share or cap of "
                                "GPU time is not held"
                              : "video memory is refused to the command from now on";
}

/* Nobody is waited for any more: with its last listener closed, the kernel refuses. */
static void give_up(struct state *s, const char *why)
{
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        close_fd(&s->fds[i]);
    tell(s, "the warden %s; %s%s", s->how.text, why, consequence(s));
}

static void no_successor(struct state *s, const struct bh_err *err)
{
    char why[sizeof(err->msg) + 60];
    (void)snprintf(why, sizeof(why), "another one could not take over: %s; ", err->msg);
    give_up(s, why);
}

/* It died without a word. */
static void replace_warden(struct state *s, int status)
{
    struct bh_err err;
    char why[80];
    (void)bh_warden_how(status, &s->how);
    s->died_ms = bh_warden_now_ms();
    if (s->tenant.pid == 0 && !s->l->wait_for_end && !s->l->keep) {
        give_up(s, ""); /* this process is about to end too */
        return;
    }
    if (!bh_warden_may_follow(&s->followers, s->died_ms)) {
        (void)snprintf(why, sizeof(why), "%d others had taken over within %d s; ", BH_WARDEN_FOLLOWERS,
                       BH_WARDEN_FOLLOWERS_MS / 1000);
        give_up(s, why);
        return;
    }
    s->start.adopted = 1;
    if (bh_warden_start(s->l->warden, &s->warden, &err) == BH_OK) {
        hand_lease_over(s);
        if (s->l->share.weight)
            bh_share_give_soon(&s->link, &s->warden);
    } else {
        no_successor(s, &err);
    }
}

/* One that took over has said whether it could. */
static void hear_successor(struct state *s)
{
    struct bh_err err;
    bool died;
    s->ready = bh_warden_ready(&s->warden, &s->start, &died, &err) == BH_OK;
    if (s->ready) {
        tell(s, "the warden %s; another one took over in %lld ms", s->how.text,
             (long long)(bh_warden_now_ms() - s->died_ms));
    } else if (died) {
        replace_warden(s, bh_child_reap(&s->warden));
    } else {
        (void)bh_warden_kill(&s->warden);
        no_successor(s, &err);
    }
}

/* Something came from the warden: its end, or nothing, which is its death. It is ending either way. */
static void hear_warden(struct state *s)
{
    struct bh_lease_end *end = &s->ret->end;
    struct bh_lease_ask ask;
    int status;
    if (!s->ready) {
        hear_successor(s);
        return;
    }
    if (bh_warden_asks(&s->warden, &ask)) {
        bh_share_asked(&s->link, &s->warden, &ask);
        return;
    }
    s->ready = false;
    s->ret->ended = bh_warden_end(&s->warden, end, &status);
    if (!s->ret->ended) {
        replace_warden(s, status);
        return;
    }
    /* It is over, one way or the other: nobody will serve this listener. */
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        close_fd(&s->fds[i]);
    if (end->code < 0)
        tell(s, "the gate could not go on: %s; %s", end->text, consequence(s));
    else if (*end->why_killed)
        tell(s, "the command was killed: %s", end->why_killed);
    struct bh_warden_room room;
    if (end->no_room)
        tell(s, "%s", bh_warden_no_room(end, &room));
}

/* A shell with job control started us, and somebody at its terminal waits for us. (Where there is none, nobody would wake us.) */
static bool is_in_foreground(void)
{
    const pid_t parent = getppid();
    if (getsid(parent) != getsid(0) || getpgid(parent) == getpgrp())
        return false;
    const int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const bool is = tty >= 0 && tcgetpgrp(tty) == getpgrp();
    if (tty >= 0)
        close(tty);
    return is;
}

/* True: it has ended. */
static bool look_at_tenant(struct state *s)
{
    int status;
    while (waitpid(s->tenant.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == s->tenant.pid) {
        s->stopped = WIFSTOPPED(status);
        s->stop_again = false;
        if (!s->stopped && !WIFCONTINUED(status)) {
            s->ret->status = status;
            s->tenant.pid = 0;
            return true;
        }
        /* Job control: the shell must see a stop too, and will wake the whole group. A SIGSTOP for the command
         * alone is between it and the sender, who may wake it alone as well; but a shell that waits for us must not wait
         * for one that is stopped. */
        if (s->stopped && (WSTOPSIG(status) != SIGSTOP || is_in_foreground()))
            stop(s, SIGSTOP);
    }
    return false;
}

/* The governor forgets who is gone, so the last that it said is kept. */
static void note_share(struct state *s)
{
    struct bh_governor_all all = {0};
    const struct bh_governor_rows *rows = &all.rows;
    struct bh_err err;
    size_t n = 0;
    const bool told = bh_governor_list(&all, NOTED_MS, &err) == BH_OK;
    for (size_t i = 0; told && i < rows->n; i++)
        if (rows->at[i].root_pid == s->start.root_pid && rows->at[i].gpu != UINT32_MAX &&
            n < BH_LAUNCH_SHARES)
            s->ret->shares[n++] = rows->at[i];
    s->ret->n_shares = n ? n : s->ret->n_shares;
    bh_governor_all_fini(&all);
}

static int patience_ms(const struct state *s)
{
    if (s->stop_again)
        return AGAIN_MS;
    if (s->probe.fd >= 0 && s->warden.fd < 0)
        return BH_PROBE_DRAIN_MS;
    return s->l->note_share ? NOTE_MS : -1;
}

static void on_time(struct state *s)
{
    if (s->stop_again) {
        stop(s, SIGSTOP);
        return;
    }
    if (s->warden.fd < 0)
        bh_probe_drain(&s->probe);
    const int64_t now = bh_warden_now_ms();
    if (!s->l->note_share || (s->warden.fd < 0 && now - s->noted_ms < NOTE_SELDOM_MS))
        return;
    s->noted_ms = now;
    note_share(s);
}

static void follow(struct state *s)
{
    bool over = s->tenant.pid == 0;
    for (size_t i = 0; !over && i < s->early.n; i++)
        send_on(s, &s->early.at[i]);
    while (!over) {
        /* poll passes over descriptors below 0: the warden's, once it is gone. */
        struct pollfd at[4] = {{.fd = s->signals.fd, .events = POLLIN},
                               {.fd = s->warden.fd, .events = POLLIN},
                               {.fd = s->link.seeker.fd, .events = POLLIN},
                               also(s)};
        struct signalfd_siginfo si;
        if (poll(at, 4, patience_ms(s)) == 0)
            on_time(s);
        (void)hear_also(s, &at[3], NULL);
        if (at[2].revents)
            bh_share_hear(&s->link, &s->warden);
        if (at[1].revents)
            hear_warden(s);
        while (!over && read(s->signals.fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
            if (si.ssi_signo == SIGCHLD)
                over = look_at_tenant(s);
            else
                send_on(s, &si);
        }
    }
}

/* The command is gone; others of its lease may not be, and the warden stays for them. Mostly it ends now too. A kill may
 * have been the gate's, which then is about to say why. */
static void last_words(struct state *s)
{
    const bool killed = WIFSIGNALED(s->ret->status) && WTERMSIG(s->ret->status) == SIGKILL;
    const int patience = s->l->keep ? KEPT_MS : s->l->wait_for_end ? -1 : killed ? KILLED_MS : ENDING_MS;
    if (s->l->keep)
        s->l->keep->over(s->l->arg);
    while (s->warden.fd >= 0) {
        struct pollfd at[3] = {
            {.fd = s->warden.fd, .events = POLLIN}, {.fd = s->link.seeker.fd, .events = POLLIN}, also(s)};
        if (poll(at, 3, patience) <= 0)
            return;
        (void)hear_also(s, &at[2], NULL);
        if (at[1].revents)
            bh_share_hear(&s->link, &s->warden);
        if (at[0].revents)
            hear_warden(s);
    }
}

static int launch(struct state *s, int *ret_exit, int *ret_signal, struct bh_err *err)
{
    int rc = bh_signals_take(&s->signals, err);
    int64_t asked_ms = 0;
    if (rc == BH_OK)
        rc = await_governor(s, ret_signal, err);
    /* Without it the command runs all the same, and is not told of one. */
    if (rc == BH_OK && s->l->share.weight)
        (void)!bh_probe_open(&s->probe, bh_governor_folder(), NULL);
    /* The journal is not for others of this user to write to. */
    if (rc == BH_OK && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        rc = fail_errno(err, "prctl");
    /* The warden first: it starts while the filter is put on. */
    if (rc == BH_OK && is_gated(s))
        rc = bh_warden_start(s->l->warden, &s->warden, err);
    if (rc == BH_OK)
        rc = bh_child_start(be_tenant, s, &s->tenant, err);
    if (rc == BH_OK)
        rc = take_tenant(s, err);
    if (rc == BH_OK && is_gated(s)) {
        asked_ms = bh_warden_now_ms();
        rc = await_warden(s, ret_signal, err);
    }
    if (rc == BH_BUSY && s->l->share.weight && asked_ms && bh_warden_now_ms() - asked_ms < SILENT_MS)
        rc = await_warden_again(s, ret_signal, err);
    s->ready = rc == BH_OK;
    if (rc == BH_OK)
        rc = let_go(s, ret_exit, err);
    if (rc == BH_OK && s->l->let_go_of_files)
        close_what_is_the_commands(s);
    if (rc == BH_OK)
        follow(s);
    return rc;
}

/* What is left of a start that failed. A warden that hangs in the driver is not waited for. */
static void clean_up(struct state *s)
{
    if (s->tenant.pid) {
        (void)kill(s->tenant.pid, SIGKILL);
        (void)bh_child_reap(&s->tenant);
    }
    (void)bh_warden_kill(&s->warden);
    bh_share_end(&s->link);
}

int bh_launch(const struct bh_launch *l, struct bh_launch_result *ret, int *ret_exit, struct bh_err *err)
{
    struct state s = {.l = l,
                      .ret = ret,
                      .probe = {.fd = -1},
                      .tenant = {.fd = -1},
                      .warden = {.fd = -1},
                      .link = {.seeker = {.fd = -1}, .governor = -1, .tell = l->tell, .arg = l->arg},
                      .fds = {-1, -1, -1},
                      .signals = {.fd = -1}};
    int signal_seen = 0;
    *ret = (struct bh_launch_result){0};
    *ret_exit = 0;
    int rc = launch(&s, ret_exit, &signal_seen, err);
    if (rc < 0)
        clean_up(&s);
    if (s.signals.fd >= 0)
        bh_signals_restore(&s.signals);
    if (signal_seen)
        (void)raise(signal_seen);
    if (rc == BH_OK)
        last_words(&s);
    bh_share_end(&s.link);
    bh_probe_close(&s.probe);
    close_fd(&s.signals.fd);
    bh_vec_fini(&s.early);
    bh_child_close(&s.tenant);
    bh_child_close(&s.warden);
    for (size_t i = 0; i < BH_LEASE_FDS; i++)
        close_fd(&s.fds[i]);
    return rc;
}

int bh_launch_end_as(int status)
{
    const struct rlimit no_core = {0, 0};
    sigset_t one;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    /* The command has left its core, if it should. */
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
