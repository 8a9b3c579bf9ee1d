/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor.c - starts the governor of this machine where there is none.
 *
 * It belongs to nobody's session: it outlives whoever started it, and ends by itself when it has nobody left to govern. One
 * that does not start says why on its standard error, and one that serves closes that.
 */
#include "launch/governor.h"

#include "launch/governor_at.h"
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A driver that nobody used before takes seconds for each card. */
enum { START_MS = 60000, LOCK_MS = START_MS + 5000, NAP_MS = 20, DYING_MS = 1000 };
enum { BACKLOG = 128, FOLDER_MODE = 0755 };
static const char lock_name[] = "governor.lock"; /* the governor's own */

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
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && bh_warden_left_ms(until))
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
    int rc = bh_governor_path(lock_name, path, sizeof(path), err);
    if (rc == BH_OK)
        rc = check_folder(err);
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
        if (!bh_warden_left_ms(until))
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
    rc = bh_governor_address(&at, err);
    if (rc == BH_OK)
        rc = bh_governor_connect(ret_fd, err);
    if (rc == BH_NOT_FOUND)
        rc = start(&at, ret_fd, err);
    close(lock);
    return rc;
}

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
    given.version = given.code < 0 ? UINT32_MAX : bh_governor_speaks();
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
