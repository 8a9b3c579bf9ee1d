/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-governor: the shares of the cards of one machine, as a process.
 *
 * Started by whoever needs it first, in one of two ways: with a listening socket as file 3, or with the path of one to make
 * (by default governor.sock in the run folder). It ends by itself some time after its last connection.
 *
 * Whoever makes the socket, and the governor that takes it away, holds governor.lock beside it meanwhile (flock). So two
 * launchers start one governor, and a launcher that holds the lock and gets a connection knows that it will be served.
 * Without the lock a connection may be closed at once by a governor that is just going; then it is made again.
 *
 * One whose socket is not there any more, or is another's, ends as well: it lets go of everybody, and they look for another.
 *
 * Exit status 0: it has served, or somebody else already does. What went wrong before it served is said on stderr.
 */
#include "base/mem.h"
#include "base/str.h"
#include "governor/serve.h"
#include "host/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { GIVEN = 3, BACKLOG = 128, PRIORITY = -15, OWNER_ONLY = 0177, IDLE_S = 2, FOLDER_MODE = 0755 };
static const char lock_name[] = "governor.lock";

struct door {
    int listener, lock; /* -1: none yet */
    struct sockaddr_un at;
    struct stat made; /* the socket there; st_ino 0: none yet */
};

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "the governor: %s: %s", what, strerrordesc_np(errno));
}

/* ---- the door ---- */

static int open_lock(struct door *d, struct bh_err *err)
{
    char path[sizeof(d->at.sun_path) + sizeof(lock_name)];
    const char *slash = strrchr(d->at.sun_path, '/');
    const int folder = slash ? (int)(slash - d->at.sun_path) + 1 : 0;
    (void)snprintf(path, sizeof(path), "%.*s%s", folder, d->at.sun_path, lock_name);
    d->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    return d->lock < 0 ? bh_fail(err, BH_SYSTEM, "the governor: '%s': %s", path, strerrordesc_np(errno))
                       : BH_OK;
}

static bool is_listening(int fd, struct sockaddr_un *ret)
{
    int listens = 0, type = 0;
    socklen_t n = sizeof(listens), m = sizeof(type), size = sizeof(*ret);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 && type == SOCK_SEQPACKET &&
           getsockname(fd, (struct sockaddr *)ret, &size) == 0 && ret->sun_family == AF_UNIX &&
           ret->sun_path[0] == '/' && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool is_served(const struct sockaddr_un *at)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool served =
        fd >= 0 && (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return served;
}

/* Under the lock. BH_BUSY: somebody serves there. */
static int make_socket(struct door *d, struct bh_err *err)
{
    if (is_served(&d->at))
        return bh_fail(err, BH_BUSY, "a governor serves '%s' already", d->at.sun_path);
    (void)unlink(d->at.sun_path); /* of one that was killed */
    d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->listener < 0)
        return fail_errno(err, "a socket");
    const mode_t before = umask(OWNER_ONLY);
    const int rc = bind(d->listener, (const struct sockaddr *)&d->at, sizeof(d->at));
    (void)umask(before);
    if (rc < 0 || listen(d->listener, BACKLOG) < 0)
        return bh_fail(err, BH_SYSTEM, "the governor: '%s': %s", d->at.sun_path, strerrordesc_np(errno));
    return BH_OK;
}

static int name_socket(struct door *d, const char *path, struct bh_err *err)
{
    const char *folder = secure_getenv("BULKHEAD_RUN_DIR"), *sim = secure_getenv("BULKHEAD_SIM");
    int n;
    d->at.sun_family = AF_UNIX;
    if (!folder || !*folder)
        folder = sim && *sim ? sim : "/run/bulkhead"; /* as the launchers (launch/governor_at.c) */
    if (path) {
        n = snprintf(d->at.sun_path, sizeof(d->at.sun_path), "%s", path);
    } else {
        (void)mkdir(folder, FOLDER_MODE); /* where it cannot be, the lock says so */
        n = snprintf(d->at.sun_path, sizeof(d->at.sun_path), "%s/%s", folder, BH_GOVERN_SOCKET_NAME);
    }
    if (n <= 0 || (size_t)n >= sizeof(d->at.sun_path) || d->at.sun_path[0] != '/')
        return bh_fail(err, BH_USAGE, "the governor: a socket's path begins with / and has at most %zu bytes",
                       sizeof(d->at.sun_path) - 1);
    return BH_OK;
}

static int open_door(struct door *d, const char *path, struct bh_err *err)
{
    if (is_listening(GIVEN, &d->at)) {
        d->listener = GIVEN;
        return open_lock(d, err);
    }
    int rc = name_socket(d, path, err);
    if (rc == BH_OK)
        rc = open_lock(d, err);
    if (rc < 0)
        return rc;
    if (flock(d->lock, LOCK_EX) < 0)
        return fail_errno(err, "flock");
    rc = make_socket(d, err);
    (void)flock(d->lock, LOCK_UN);
    return rc;
}

static int know_socket(struct door *d, struct bh_err *err)
{
    return stat(d->at.sun_path, &d->made) == 0
               ? BH_OK
               : bh_fail(err, BH_SYSTEM, "the governor: '%s': %s", d->at.sun_path, strerrordesc_np(errno));
}

/* Somebody may have taken the socket away, or put another in its place. Its number is not given again while this one listens. */
static bool is_found(void *arg)
{
    const struct door *d = arg;
    struct stat now;
    if (stat(d->at.sun_path, &now) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    return now.st_ino == d->made.st_ino && now.st_dev == d->made.st_dev;
}

/* Another's stays where it is. */
static void take_away(struct door *d)
{
    if (is_found(d))
        (void)unlink(d->at.sun_path);
}

/* Whoever holds the lock is about to connect. Whoever connected without it is still to be heard. */
static bool close_door(void *arg)
{
    struct door *d = arg;
    struct pollfd at = {.fd = d->listener, .events = POLLIN};
    if (flock(d->lock, LOCK_EX | LOCK_NB) < 0)
        return false;
    if (poll(&at, 1, 0) > 0) {
        (void)flock(d->lock, LOCK_UN);
        return false;
    }
    take_away(d); /* the lock goes with the process */
    return true;
}

/* When told to end. Who holds the lock may be waiting for us, and is not waited for: it finds a socket where nobody
 * listens, and makes another. */
static void shut_door(struct door *d)
{
    if (flock(d->lock, LOCK_EX | LOCK_NB) == 0)
        take_away(d);
    close(d->listener);
    close(d->lock);
}

/* ---- the process ---- */

/* A file of ours must not be taken for one of these. */
static void fill_standard_files(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
}

/* Nothing of the launcher's: its files, its terminal, its folder, its limits. stderr stays until there is nothing to say. */
static int leave_launcher(const struct door *d, struct bh_err *err)
{
    const int high = d->listener > d->lock ? d->listener : d->lock;
    const int low = d->listener > d->lock ? d->lock : d->listener;
    if ((low > GIVEN && close_range(GIVEN, (unsigned)low - 1, 0) < 0) ||
        (high > low + 1 && close_range((unsigned)low + 1, (unsigned)high - 1, 0) < 0) ||
        close_range((unsigned)high + 1, UINT_MAX, 0) < 0 || chdir("/") < 0)
        return fail_errno(err, "closing what is the launcher's");
    (void)setsid(); /* fails only for one that leads a group: then there is none to leave */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    bh_limits_raise();
    /* Somebody is paused until this process has its turn. Where that is not allowed it works, only less evenly. */
    (void)setpriority(PRIO_PROCESS, 0, PRIORITY);
    return BH_OK;
}

static int open_signals(int *ret, struct bh_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return fail_errno(err, "sigprocmask");
    *ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret < 0 ? fail_errno(err, "signalfd") : BH_OK;
}

static int fall_silent(struct bh_err *err)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return fail_errno(err, "/dev/null");
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null, fd) < 0)
            return fail_errno(err, "dup2");
    close(null);
    return BH_OK;
}

/* How shares are held, where an operator has a wish. */
static int read_wish(bool *ret_slices_only, struct bh_err *err)
{
    const char *wish = secure_getenv("BULKHEAD_GOVERN");
    *ret_slices_only = wish && bh_str_eq(wish, "slices");
    return !wish || !*wish || *ret_slices_only
               ? BH_OK
               : bh_fail(err, BH_USAGE, "the governor: BULKHEAD_GOVERN is 'slices' or not set, not '%.40s'",
                         wish);
}

static int read_log(const char **ret_prefix, struct bh_err *err)
{
    const char *prefix = secure_getenv("BULKHEAD_GOVERN_LOG");
    *ret_prefix = prefix && *prefix ? prefix : NULL;
    if (*ret_prefix && *prefix != '/')
        return bh_fail(err, BH_USAGE, "the governor: BULKHEAD_GOVERN_LOG '%.200s': give it from / on",
                       prefix);
    if (*ret_prefix && strlen(prefix) >= BH_STEER_LOG_PREFIX)
        return bh_fail(err, BH_USAGE, "the governor: BULKHEAD_GOVERN_LOG '%.80s...': %d bytes at most",
                       prefix, BH_STEER_LOG_PREFIX - 1);
    return BH_OK;
}

static int serve(struct door *d, const struct bh_driver *driver, void *self, struct bh_err *err)
{
    struct bh_serve_config config = {.listener = d->listener,
                                     .driver = driver,
                                     .self = self,
                                     .clock = bh_serve_clock,
                                     .gauge = &bh_gauge_driver,
                                     .idle_ns = IDLE_S * UINT64_C(1000000000),
                                     .may_end = close_door,
                                     .is_found = is_found,
                                     .arg = d};
    struct bh_serve *s = NULL;
    int rc = read_wish(&config.slices_only, err);
    if (rc == BH_OK)
        rc = read_log(&config.log_prefix, err);
    if (rc == BH_OK)
        rc = open_signals(&config.stop, err);
    if (rc == BH_OK)
        rc = bh_serve_new(&config, &s, err);
    if (rc == BH_OK)
        rc = fall_silent(err);
    if (rc == BH_OK)
        rc = bh_serve_run(s, err);
    if (s && bh_serve_free(s) > 0 && rc == BH_OK)
        rc = bh_fail(err, BH_SYSTEM, "the governor: channels that the driver did not resume");
    return rc;
}

int main(int argc, char **argv)
{
    const struct bh_driver *driver = bh_driver_here();
    struct door d = {.listener = -1, .lock = -1};
    struct bh_err err = {0};
    char version[32];
    void *self = NULL;
    size_t gpus;
    if (argc > 2 || (argc == 2 && bh_str_starts(argv[1], "-"))) {
        (void)fputs("usage: bulkhead-governor [SOCKET]\nStarted by bulkhead run --share, not by hand.\n",
                    stderr);
        return bh_code_exit(BH_USAGE);
    }
    fill_standard_files();
    int rc = open_door(&d, argc == 2 ? argv[1] : NULL, &err);
    if (rc == BH_BUSY)
        return 0;
    if (rc == BH_OK)
        rc = know_socket(&d, &err);
    if (rc == BH_OK)
        rc = leave_launcher(&d, &err);
    if (rc == BH_OK)
        rc = driver->check(version, &err);
    if (rc == BH_OK)
        rc = driver->open(&self, &gpus, &err);
    if (rc == BH_OK)
        rc = serve(&d, driver, self, &err);
    if (self)
        driver->close(self);
    if (d.listener >= 0)
        shut_door(&d);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
