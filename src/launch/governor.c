/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor.c - finds the governor of this machine, or starts it, and asks it.
 *
 * It belongs to nobody's session: it outlives whoever started it, and ends by itself when it has nobody left to govern. One
 * that does not start says why on its standard error, and one that serves closes that.
 */
#include "launch/governor.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "launch/patience.h"
#include "launch/warden.h"
#include "wire/fds.h"
#include "wire/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A driver that nobody used before takes seconds for each card. */
enum { START_MS = 60000, LOCK_MS = START_MS + 5000, NAP_MS = 20, DYING_MS = 1000 };
enum { SPEAKS_MS = 300 }; /* to say which version it takes; who needs longer is asked later */
enum { BACKLOG = 128, FOLDER_MODE = 0755 };
static const char lock_name[] = "governor.lock"; /* the governor's own */

/* ---- where ---- */

/* Simulated silicon has a folder of its own, and its governor lives there. */
const char *bh_governor_folder(void)
{
    const char *dir = secure_getenv("BULKHEAD_RUN_DIR"), *sim = secure_getenv("BULKHEAD_SIM");
    return dir && *dir ? dir : sim && *sim ? sim : "/run/bulkhead";
}

static int path_of(const char *name, char *ret, size_t size, struct bh_err *err)
{
    const int n = snprintf(ret, size, "%s/%s", bh_governor_folder(), name);
    if (n < 0 || (size_t)n >= size)
        return bh_fail(err, BH_INVALID, "the run folder '%.200s' has too long a name for a socket in it",
                       bh_governor_folder());
    return BH_OK;
}

static int address(struct sockaddr_un *ret, struct bh_err *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    return path_of(BH_GOVERN_SOCKET_NAME, ret->sun_path, sizeof(ret->sun_path), err);
}

static int64_t left_of(int64_t until_ms)
{
    const int64_t left = until_ms - bh_warden_now_ms();
    return left > 0 ? left : 0;
}

static int no_answer(struct bh_err *err)
{
    return bh_fail(err, BH_BUSY, "the governor does not answer; it may be stopped, or hang in the driver");
}

/* Whoever made the socket that was connected to: a stranger's governor would hold nothing. */
static bool is_trusted(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static int fail_connect(int error, const char *path, struct bh_err *err)
{
    if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
        return bh_fail(
            err, BH_NOT_FOUND,
            "nothing is governed on this machine: no governor listens on '%s'; bulkhead run --share "
            "starts one",
            path);
    if (error == EACCES || error == EPERM)
        return bh_fail(err, BH_DENIED, "the governor answers root alone ('%s'); try sudo", path);
    if (error == EAGAIN) /* those that it does not take fill its queue */
        return no_answer(err);
    return bh_fail(err, BH_SYSTEM, "the governor on '%s': %s", path, strerrordesc_np(error));
}

static int connect_until(int64_t until_ms, int *ret_fd, struct bh_err *err)
{
    const int64_t left = left_of(until_ms);
    const struct timeval patience = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 + 1};
    struct sockaddr_un to;
    int rc = address(&to, err);
    if (rc < 0)
        return rc;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool connected = fd >= 0 &&
                           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
                           connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0;
    if (!connected)
        rc = fail_connect(errno, to.sun_path, err);
    else if (!is_trusted(fd))
        rc = bh_fail(err, BH_DENIED,
                     "'%s' is neither root's nor this user's: somebody else listens there; "
                     "BULKHEAD_RUN_DIR must name a folder of root's",
                     to.sun_path);
    if (rc == BH_OK)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

int bh_governor_connect(int *ret_fd, struct bh_err *err)
{
    return connect_until(bh_warden_now_ms() + BH_GOVERNOR_MS, ret_fd, err);
}

/* ---- starting ---- */

enum { LISTENER = 3 }; /* the governor's number for it */

static void nap(void)
{
    const struct timespec t = {.tv_nsec = NAP_MS * 1000000L};
    (void)nanosleep(&t, NULL);
}

struct starting {
    const char *program;
    int listener, said; /* said: what it says before it serves */
};

static _Noreturn void be_governor(const struct starting *s)
{
    char name[] = "bulkhead-governor", *argv[] = {name, NULL};
    sigset_t none;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    /* dup2 of a descriptor to itself would leave it to be closed: so the two are put out of the way first. */
    const int said = fcntl(s->said, F_DUPFD_CLOEXEC, LISTENER + 1);
    const int listener = fcntl(s->listener, F_DUPFD_CLOEXEC, LISTENER + 1);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
        dup2(said, STDERR_FILENO) >= 0 && dup2(listener, LISTENER) >= 0)
        execv(s->program, argv);
    (void)dprintf(said, "'%.200s': %s\n", s->program, strerrordesc_np(errno));
    _exit(bh_code_exit(BH_SYSTEM));
}

/* What it says until it closes its standard error: when it serves, or has ended. False: that takes too long. */
static bool hear_start(int said, char *ret, size_t size)
{
    const int64_t until = bh_warden_now_ms() + START_MS;
    size_t n = 0;
    for (;;) {
        struct pollfd at = {.fd = said, .events = POLLIN};
        const int64_t left = until - bh_warden_now_ms();
        char rest[64];
        if (left <= 0)
            return false;
        if (poll(&at, 1, (int)left) <= 0)
            continue;
        const bool room = n + 1 < size;
        const ssize_t got = read(said, room ? ret + n : rest, room ? size - 1 - n : sizeof(rest));
        if (got <= 0)
            break;
        n += room ? (size_t)got : 0;
    }
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static int as_it_meant(int status, const char *why, struct bh_err *err)
{
    for (int code = BH_CODE_BASE_ + 1; code <= BH_SYSTEM; code++)
        if (WIFEXITED(status) && WEXITSTATUS(status) == bh_code_exit((enum bh_code)code))
            return bh_fail(err, (enum bh_code)code, "%s", why);
    return bh_fail(err, BH_SYSTEM, "%s", why);
}

static int await_governor(pid_t pid, int said, struct bh_err *err)
{
    char why[300] = "";
    int status = 0;
    if (!hear_start(said, why, sizeof(why))) {
        (void)kill(pid, SIGTERM); /* not waited for */
        return bh_fail(err, BH_SYSTEM, "the governor does not serve after %d s; it may hang in the driver",
                       START_MS / 1000);
    }
    if (!*why)
        return BH_OK;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return as_it_meant(status, why, err);
}

/* It said nothing, and nobody listens. */
static int fail_silent(pid_t pid, struct bh_err *err)
{
    const int64_t until = bh_warden_now_ms() + DYING_MS;
    struct bh_warden_how how = {"ended"};
    int status;
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && left_of(until))
        nap();
    if (got == pid)
        (void)bh_warden_how(status, &how);
    return bh_fail(err, BH_SYSTEM, "the governor %s as it was started; try again", how.text);
}

/* Under the lock. It listens before there is a governor, so that nobody is turned away meanwhile. */
static int make_listener(struct sockaddr_un *at, int *ret, struct bh_err *err)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const mode_t before = umask(S_IRWXG | S_IRWXO);
    (void)unlink(at->sun_path); /* of one that was killed */
    const bool good =
        fd >= 0 && bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 && listen(fd, BACKLOG) == 0;
    const int error = errno;
    (void)umask(before);
    if (good) {
        *ret = fd;
        return BH_OK;
    }
    if (fd >= 0)
        close(fd);
    return bh_fail(err, error == EACCES ? BH_DENIED : BH_SYSTEM, "'%s': %s", at->sun_path,
                   strerrordesc_np(error));
}

static int start(struct sockaddr_un *at, int *ret_fd, struct bh_err *err)
{
    char program[PATH_MAX];
    struct starting s = {.program = program, .listener = -1};
    int said[2] = {-1, -1};
    int rc = bh_governor_program(program, sizeof(program), err);
    if (rc == BH_OK)
        rc = make_listener(at, &s.listener, err);
    if (rc < 0)
        return rc;
    pid_t pid = -1;
    if (pipe2(said, O_CLOEXEC) == 0) {
        s.said = said[1];
        pid = fork();
    }
    if (pid == 0)
        be_governor(&s);
    rc = pid < 0 ? bh_fail(err, BH_SYSTEM, "starting the governor: %s", strerrordesc_np(errno)) : BH_OK;
    if (said[1] >= 0)
        close(said[1]);
    close(s.listener);
    if (rc == BH_OK)
        rc = await_governor(pid, said[0], err);
    if (said[0] >= 0)
        close(said[0]);
    if (rc == BH_OK) {
        rc = bh_governor_connect(ret_fd, err);
        rc = rc == BH_NOT_FOUND ? fail_silent(pid, err) : rc;
    }
    if (rc < 0 && rc != BH_BUSY) /* a busy one serves, or will */
        (void)unlink(at->sun_path);
    return rc;
}

/* Whoever may write there can put a governor of their own in the place of root's. */
static int check_folder(struct bh_err *err)
{
    struct stat st;
    if (bh_governor_folder()[0] != '/')
        return bh_fail(err, BH_USAGE, "the run folder '%.200s' (BULKHEAD_RUN_DIR): give it from / on",
                       bh_governor_folder());
    if (mkdir(bh_governor_folder(), FOLDER_MODE) < 0 && errno != EEXIST)
        return bh_fail(err, errno == EACCES ? BH_DENIED : BH_SYSTEM, "the run folder '%.200s': %s",
                       bh_governor_folder(), strerrordesc_np(errno));
    if (stat(bh_governor_folder(), &st) < 0)
        return bh_fail(err, BH_SYSTEM, "the run folder '%.200s': %s", bh_governor_folder(),
                       strerrordesc_np(errno));
    const bool of_group = st.st_mode & S_IWGRP && st.st_gid != 0 && st.st_gid != getegid();
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & S_IWOTH || of_group)
        return bh_fail(
            err, BH_DENIED,
            "the run folder '%.200s' is user %u's with mode %o: others may write to it; it must be "
            "root's alone (chown root, chmod go-w)",
            bh_governor_folder(), (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
    return BH_OK;
}

static int take_lock(int *ret, struct bh_err *err)
{
    const int64_t until = bh_warden_now_ms() + LOCK_MS;
    char path[PATH_MAX];
    int rc = check_folder(err);
    if (rc == BH_OK)
        rc = path_of(lock_name, path, sizeof(path), err);
    if (rc < 0)
        return rc;
    const int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int error = lock < 0 ? errno : EWOULDBLOCK;
    while (error == EWOULDBLOCK || error == EINTR) {
        error = flock(lock, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (!error) {
            *ret = lock;
            return BH_OK;
        }
        if (!left_of(until))
            break;
        nap();
    }
    if (lock >= 0)
        close(lock);
    if (error == EWOULDBLOCK)
        return bh_fail(err, BH_BUSY,
                       "somebody holds '%.200s' for %d s: who starts the governor is stopped; wake or end it "
                       "(fuser shows who it is)",
                       path, LOCK_MS / 1000);
    return bh_fail(err, error == EACCES ? BH_DENIED : BH_SYSTEM, "'%.200s': %s", path,
                   strerrordesc_np(error));
}

/* A governor that is about to end does not while somebody holds the lock: whoever connects now is served. */
int bh_governor_reach(int *ret_fd, struct bh_err *err)
{
    struct sockaddr_un at;
    int lock, rc = take_lock(&lock, err);
    if (rc < 0)
        return rc;
    rc = address(&at, err);
    if (rc == BH_OK)
        rc = bh_governor_connect(ret_fd, err);
    if (rc == BH_NOT_FOUND)
        rc = start(&at, ret_fd, err);
    close(lock);
    return rc;
}

static uint32_t speaks(void);

/* A governor that it starts outlives it, and is nobody's child then. */
static _Noreturn void be_seeker(const void *arg, int to_parent)
{
    (void)arg;
    struct bh_lease_given given = {0};
    struct bh_err err = {0};
    int fd = -1;
    /* The parent's files stay the parent's: what is closed there is closed. */
    (void)close_range(STDERR_FILENO + 1, (unsigned)to_parent - 1, 0);
    (void)close_range((unsigned)to_parent + 1, UINT_MAX, 0);
    given.code = bh_governor_reach(&fd, &err);
    given.version = given.code < 0 ? UINT32_MAX : speaks();
    memcpy(given.text, err.msg, sizeof(given.text));
    (void)!bh_fds_send(to_parent, &given, sizeof(given), &fd, given.code < 0 ? 0 : 1, NULL);
    _exit(0);
}

int bh_governor_seek(struct bh_child *ret, struct bh_err *err)
{
    return bh_child_start(be_seeker, NULL, ret, err);
}

int bh_governor_found(struct bh_child *c, int *ret_fd, uint32_t *ret_version, struct bh_err *err)
{
    struct pollfd at = {.fd = c->fd, .events = POLLIN};
    struct bh_lease_given given;
    int fds[BH_FDS_MAX];
    size_t n_fds = 0;
    while (poll(&at, 1, -1) < 0 && errno == EINTR) {
    }
    const ssize_t n = bh_fds_recv_some(c->fd, &given, sizeof(given), fds, &n_fds, err);
    (void)bh_child_reap(c);
    if (n == (ssize_t)sizeof(given) && given.code == 0 && n_fds == 1) {
        *ret_fd = fds[0];
        *ret_version = given.version;
        return BH_OK;
    }
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
    given.text[sizeof(given.text) - 1] = '\0';
    return n == (ssize_t)sizeof(given) && given.code < 0
               ? bh_fail(err, (enum bh_code)given.code, "%s", given.text)
               : bh_fail(err, BH_SYSTEM, "who looked for the governor ended without a word");
}

/* ---- asking ---- */

void bh_governor_all_fini(struct bh_governor_all *a)
{
    bh_vec_fini(&a->rows);
    bh_vec_fini(&a->pids);
    bh_vec_fini(&a->noise);
}

static int bad_answer(struct bh_err *err)
{
    return bh_fail(
        err, BH_CONFLICT,
        "the governor is of another version: one from before an upgrade ends with the last command "
        "it serves; if it does not, install all from one package");
}

/* Or it does not know such messages, and never answers. */
static int fail_ended(struct bh_err *err)
{
    return bh_fail(err, BH_BUSY,
                   "the governor ended before it answered; repeat the command (one that always does is of "
                   "another version)");
}

/* The next message, waited for. */
static ssize_t hear(int fd, int64_t until_ms, void *room, size_t size, struct bh_err *err)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    const int ready = poll(&at, 1, (int)left_of(until_ms));
    const ssize_t n = ready == 1 ? recv(fd, room, size, MSG_TRUNC) : -1;
    if (ready == 0)
        return no_answer(err);
    if (n == 0 || (ready == 1 && n < 0 && errno == ECONNRESET))
        return fail_ended(err);
    if (n < 0)
        return bh_fail(err, BH_SYSTEM, "the governor: %s", strerrordesc_np(errno));
    return (size_t)n > size ? bad_answer(err) : n;
}

union said {
    uint32_t op;
    struct bh_govern_row row;
    struct bh_govern_pids pids;
    struct bh_govern_noise noise;
    struct bh_govern_answer answer;
};

/* What an older one did not send, nobody knows. */
static void fill_in(struct bh_govern_row *row, uint32_t version)
{
    if (version < 4) {
        row->sm_permille = row->dram_permille = row->pcie_permille = UINT32_MAX;
        row->power_permille = row->lowered_permille = UINT32_MAX;
    }
    if (version < 5) {
        row->own_rate_milli = UINT64_MAX;
        row->own_p50_us = row->own_p99_us = UINT32_MAX;
        row->own_garbage = 0;
    }
}

/* One of a list. false: there is no such message. */
static bool take(union said *m, size_t n, struct bh_governor_all *all)
{
    if (m->op == BH_GOVERN_ROW && n == bh_govern_row_bytes(all->version)) {
        fill_in(&m->row, all->version);
        m->row.name[sizeof(m->row.name) - 1] = '\0';
        *bh_vec_push(&all->rows) = m->row;
    } else if (n == sizeof(m->noise) && m->op == BH_GOVERN_NOISE) {
        m->noise.text[sizeof(m->noise.text) - 1] = '\0';
        *bh_vec_push(&all->noise) = m->noise;
    } else if (n == sizeof(m->pids) && m->op == BH_GOVERN_PIDS && m->pids.n <= BH_GOVERN_SOME_PIDS) {
        for (uint32_t i = 0; i < m->pids.n; i++)
            *bh_vec_push(&all->pids) = (struct bh_governor_pid){m->pids.lease, m->pids.pids[i]};
    } else {
        return false;
    }
    return true;
}

/* Sends an order and hears what comes until the answer. *ret_answered: there was one, so a failure is what it says. */
static int talk(int fd, const struct bh_govern_order *order, int64_t until_ms, struct bh_governor_all *all,
                bool *ret_answered, struct bh_err *err)
{
    union said m = {0};
    *ret_answered = false;
    int rc = bh_fds_send(fd, order, sizeof(*order), NULL, 0, NULL) < 0 ? fail_ended(err) : BH_OK;
    while (rc == BH_OK) {
        const ssize_t n = hear(fd, until_ms, &m, sizeof(m), err);
        if (n < 0)
            return (int)n;
        if (n == sizeof(m.answer) && m.op == BH_GOVERN_ANSWER) {
            m.answer.text[sizeof(m.answer.text) - 1] = '\0';
            *ret_answered = true;
            return m.answer.code < 0 ? bh_fail(err, (enum bh_code)m.answer.code, "%s", m.answer.text) : BH_OK;
        }
        if (!all || !take(&m, (size_t)n, all))
            rc = bad_answer(err);
    }
    return rc;
}

static void forget_since(const struct bh_governor_all *before, struct bh_governor_all *all)
{
    if (!all)
        return;
    all->rows.n = before->rows.n;
    all->pids.n = before->pids.n;
    all->noise.n = before->noise.n;
}

/* Of a governor that was killed; one that ends takes it away. */
static bool is_socket_left(void)
{
    struct sockaddr_un at;
    struct stat st;
    return address(&at, NULL) == BH_OK && lstat(at.sun_path, &st) == 0;
}

/* By when its socket was made; where the clock was set meanwhile it is not known, and taken for old. */
static bool is_governor_young(void)
{
    struct sockaddr_un at;
    struct stat st;
    struct timespec now;
    if (address(&at, NULL) < 0 || lstat(at.sun_path, &st) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
        return false;
    const int64_t ms =
        (now.tv_sec - st.st_ctim.tv_sec) * INT64_C(1000) + (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000;
    return ms >= 0 && ms < BH_PATIENCE_FOLLOWED_MS;
}

/* ret_fd NULL: the connection ends with the answer. */
static int ask_one(const struct bh_govern_order *order, int64_t until_ms, struct bh_governor_all *all,
                   int *ret_fd, bool *ret_answered, struct bh_err *err)
{
    int fd, rc = connect_until(until_ms, &fd, err);
    if (rc < 0)
        return rc;
    rc = talk(fd, order, until_ms, all, ret_answered, err);
    if (rc == BH_OK && ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return rc;
}

static int ask_once(const struct bh_govern_order *order, struct bh_patience *p, struct bh_governor_all *all,
                    int *ret_fd, bool *ret_answered, struct bh_err *err)
{
    const struct bh_governor_all before = all ? *all : (struct bh_governor_all){0};
    int rc;
    do {
        forget_since(&before, all);
        *ret_answered = false;
        rc = ask_one(order, p->until_ms, all, ret_fd, ret_answered, err);
        p->young = is_governor_young();
    } while (bh_patience_again(p, rc, *ret_answered, is_socket_left()));
    const bool killed = p->lost && rc == BH_NOT_FOUND && !*ret_answered && is_socket_left();
    return killed ? fail_ended(err) : rc;
}

/* It was not carried out, and an older version may be. (What a governor refuses for another reason it refuses again.) */
static bool next_older(int rc, bool answered, struct bh_govern_order *order)
{
    if (rc != BH_CONFLICT || !answered || order->version <= BH_GOVERN_WIRE_OLDEST)
        return false;
    order->version--;
    return true;
}

/* In the newest version that it takes, which is left in the order. */
static int ask(struct bh_govern_order *order, struct bh_patience *p, struct bh_governor_all *all, int *ret_fd,
               struct bh_err *err)
{
    const struct bh_governor_all before = all ? *all : (struct bh_governor_all){0};
    bool answered;
    int rc;
    order->version = BH_GOVERN_WIRE_VERSION;
    do {
        forget_since(&before, all);
        if (all)
            all->version = order->version;
        rc = ask_once(order, p, all, ret_fd, &answered, err);
    } while (next_older(rc, answered, order));
    return rc;
}

static int list(struct bh_governor_all *add, struct bh_patience *p, struct bh_err *err)
{
    struct bh_govern_order order = {.op = BH_GOVERN_LIST};
    const int rc = ask(&order, p, add, NULL, err);
    add->older = rc == BH_OK && order.version < BH_GOVERN_WIRE_VERSION;
    return rc;
}

int bh_governor_list(struct bh_governor_all *add, int patience_ms, struct bh_err *err)
{
    struct bh_patience p = bh_patience_of(patience_ms);
    return list(add, &p, err);
}

/* A name that is a number is taken for one. */
static int read_lease(const char *text, struct bh_govern_order *ret, struct bh_err *err)
{
    if (bh_uint_parse(text, UINT64_MAX, &ret->lease, NULL) == BH_OK && ret->lease)
        return BH_OK;
    ret->lease = 0;
    if (!*text || strlen(text) >= sizeof(ret->name))
        return bh_fail(err, BH_INVALID, "'%.80s' is neither a lease's number nor a name of one", text);
    memcpy(ret->name, text, strlen(text));
    return BH_OK;
}

static struct bh_govern_order order_of(uint64_t lease, enum bh_govern_what what)
{
    return (struct bh_govern_order){
        .op = BH_GOVERN_ORDER, .version = BH_GOVERN_WIRE_VERSION, .lease = lease, .what = (uint32_t)what};
}

int bh_governor_order(uint64_t lease, enum bh_govern_what what, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, what);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    return ask(&order, &p, NULL, NULL, err);
}

int bh_governor_order_by(const char *lease, enum bh_govern_what what, struct bh_err *err)
{
    struct bh_govern_order order = order_of(0, what);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    const int rc = read_lease(lease, &order, err);
    return rc < 0 ? rc : ask(&order, &p, NULL, NULL, err);
}

/* Which version it takes, by an order that it cannot carry out: nobody has that number. */
static uint32_t speaks(void)
{
    struct bh_govern_order order = order_of(UINT64_MAX, BH_GOVERN_RESUME);
    struct bh_patience p = bh_patience_of(SPEAKS_MS);
    struct bh_err err;
    return ask(&order, &p, NULL, NULL, &err) == BH_NOT_FOUND ? order.version : UINT32_MAX;
}

int bh_governor_keep(int fd, uint32_t version, uint64_t lease, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, BH_GOVERN_SUSPENDED);
    bool answered;
    order.version = version;
    return talk(fd, &order, bh_warden_now_ms() + BH_GOVERNOR_MS, NULL, &answered, err);
}

int bh_governor_hold(uint64_t lease, int *ret_fd, uint32_t *ret_version, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, BH_GOVERN_SUSPEND);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    const int rc = ask(&order, &p, NULL, ret_fd, err);
    if (rc == BH_OK)
        *ret_version = order.version;
    return rc;
}

static int pick(const struct bh_governor_all *all, const struct bh_govern_order *want,
                struct bh_governor_all *add, struct bh_err *err)
{
    uint64_t found = 0;
    for (size_t i = 0; i < all->rows.n; i++) {
        const struct bh_govern_row *r = &all->rows.at[i];
        if (want->lease ? r->lease != want->lease : !bh_str_eq(r->name, want->name))
            continue;
        if (found && found != r->lease)
            return bh_fail(err, BH_CONFLICT, "several leases are called '%s': give the number", want->name);
        found = r->lease;
        *bh_vec_push(&add->rows) = *r;
    }
    for (size_t i = 0; i < all->pids.n; i++)
        if (all->pids.at[i].lease == found)
            *bh_vec_push(&add->pids) = all->pids.at[i];
    return found ? BH_OK : bh_fail(err, BH_NOT_FOUND, "no such lease");
}

int bh_governor_find(const char *lease, struct bh_governor_all *add, struct bh_err *err)
{
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    struct bh_govern_order want = {0};
    int rc = read_lease(lease, &want, err);
    bool answered;
    if (rc < 0)
        return rc;
    do {
        struct bh_governor_all all = {0};
        rc = list(&all, &p, err);
        answered = rc == BH_OK;
        if (rc == BH_OK)
            rc = pick(&all, &want, add, err);
        bh_governor_all_fini(&all);
        p.young = is_governor_young();
    } while (answered && bh_patience_again(&p, rc, answered, false));
    return answered && rc == BH_NOT_FOUND
               ? bh_fail(err, BH_NOT_FOUND, "no lease '%.80s'; bulkhead shares lists them", lease)
               : rc;
}
