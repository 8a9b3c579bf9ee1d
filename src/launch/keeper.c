/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c - starts keepers that outlive this process, and finds them again.
 *
 * A living keeper is known by its record lock (fcntl): the kernel says who has it, and forgets it with the process. It is not passed
 * on to children, as a lock of flock would be.
 */
#include "launch/keeper.h"

#include "base/mem.h"
#include "host/limits.h"
#include "launch/durable.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOLDER_MODE = 0700, ANSWER_MS = 5000, END_MAX = 1 << 16, BACKLOG = 64, NOT_RUN = 126 };

static int fail_errno(struct bh_err *err, const char *what, const char *path)
{
    const enum bh_code code = errno == ENOENT                     ? BH_NOT_FOUND
                              : errno == EACCES || errno == EPERM ? BH_DENIED
                                                                  : BH_SYSTEM;
    return bh_fail(err, code, "%s '%.200s': %s", what, path, strerrordesc_np(errno));
}

static int open_folder(const char *path, struct bh_err *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : fail_errno(err, "the folder", path);
}

static int path_of(const struct bh_keeper_place *at, const char *kind, char *ret, size_t size,
                   struct bh_err *err)
{
    const int n = snprintf(ret, size, "%s/%llu.%s", at->run_dir, (unsigned long long)at->lease, kind);
    return n > 0 && (size_t)n < size
               ? BH_OK
               : bh_fail(err, BH_INVALID, "the run folder '%.200s' has too long a name", at->run_dir);
}

/* ---- starting ---- */

/* One that nobody can read is what the end of a machine left: no keeper has begun with it. */
static bool has_spec(int folder, const struct bh_buf *want, bool *ret_same)
{
    BH_AUTOFREE char *text = NULL;
    struct bh_arena arena = {0};
    struct bh_keeper_spec spec;
    size_t n = 0;
    if (bh_durable_read(folder, BH_KEEPER_SPEC_NAME, BH_KEEPER_SPEC_MAX, &text, &n, NULL) < 0)
        return false;
    *ret_same = n == want->n && memcmp(text, want->at, n) == 0;
    const bool whole = *ret_same || bh_keeper_spec_read(text, n, &arena, &spec, NULL) == BH_OK;
    bh_arena_fini(&arena);
    return whole;
}

int bh_keeper_prepare(const struct bh_keeper_place *at, const struct bh_keeper_spec *spec, struct bh_err *err)
{
    struct bh_buf text;
    bool same = false;
    bh_buf_init(&text, BH_KEEPER_SPEC_MAX);
    int rc = bh_keeper_spec_write(spec, &text, err), folder = -1;
    if (rc == BH_OK && mkdir(at->folder, FOLDER_MODE) < 0 && errno != EEXIST)
        rc = fail_errno(err, "making", at->folder);
    if (rc == BH_OK)
        rc = folder = open_folder(at->folder, err);
    if (rc >= 0 && has_spec(folder, &text, &same))
        rc = same ? BH_OK
                  : bh_fail(err, BH_CONFLICT, "'%.200s' has another keeper's spec already", at->folder);
    else if (rc >= 0)
        rc = bh_durable_place(folder, BH_KEEPER_SPEC_NAME, text.at, text.n, err);
    if (folder >= 0)
        close(folder);
    bh_buf_fini(&text);
    return rc;
}

static int sync_at(int folder, const char *name, const char *path, struct bh_err *err)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, name, path);
    const int rc = fsync(fd) == 0 ? BH_OK : fail_errno(err, "syncing", path);
    close(fd);
    return rc;
}

int bh_keeper_settle(const struct bh_keeper_place *at, int folder, struct bh_err *err)
{
    static const char *const names[] = {BH_KEEPER_SPEC_NAME, ".."};
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT_OF(names); i++)
        rc = sync_at(folder, names[i], at->folder, err);
    return rc;
}

static void tell_failure(int to, const char *program)
{
    struct bh_keeper_status status = {.version = BH_KEEPER_VERSION, .code = BH_SYSTEM};
    (void)snprintf(status.text, sizeof(status.text), "'%.200s': %s", program, strerrordesc_np(errno));
    (void)!bh_fds_send(to, &status, sizeof(status), NULL, 0, NULL);
}

/* Nothing of the starter's: no session, no folder, no files, no signals; and no parent, to which the keeper sees itself. */
static _Noreturn void be_keeper(const char *program, const char *spec, int report)
{
    char name[] = "bulkhead-keeper", option[] = "--report", path[PATH_MAX];
    char *argv[] = {name, option, path, NULL};
    sigset_t none;
    (void)snprintf(path, sizeof(path), "%s", spec);
    (void)setsid(); /* before it hears what is meant for the starter's session */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bh_limits_lower_files();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Out of the way first: dup2 of a descriptor to itself would leave it to be closed. */
    const int said = fcntl(report, F_DUPFD_CLOEXEC, BH_KEEPER_REPORT + 1);
    bool ok = said >= 0 && null >= 0 && chdir("/") == 0;
    for (int fd = STDIN_FILENO; ok && fd <= STDERR_FILENO; fd++)
        ok = dup2(null, fd) >= 0;
    ok = ok && dup2(said, BH_KEEPER_REPORT) >= 0;
    if (ok) {
        for (int fd = BH_KEEPER_REPORT + 1; fd < said; fd++)
            close(fd);
        closefrom(said + 1);
        execv(program, argv);
    }
    tell_failure(said >= 0 ? said : report, program);
    _exit(NOT_RUN);
}

struct start {
    int report;
    char program[PATH_MAX], spec[PATH_MAX];
};

/*
 * Of a daemon with a thousand leases the tables of its memory are not copied for this: the child borrows it until there is another program.
 * That stops whoever called vfork, so it is a thread of its own, and everybody who asks the daemon something is answered meanwhile.
 */
static void *start_one(void *arg)
{
    struct start *s = arg;
    /* NOLINTNEXTLINE(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork): this thread alone stands still */
    const pid_t pid = vfork();
    if (pid == 0)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it calls the kernel and writes to its own frames and errno */
        be_keeper(s->program, s->spec, s->report);
    if (pid < 0)
        tell_failure(s->report, s->program);
    close(s->report);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(s);
    return NULL;
}

/* It hears no signals: those are for the threads that know what to do about them. */
static int begin_thread(struct start *s)
{
    sigset_t all, before;
    pthread_attr_t detached;
    pthread_t thread;
    int error = pthread_attr_init(&detached);
    if (error)
        return error;
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &detached, start_one, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&detached);
    return error;
}

int bh_keeper_start(const char *program, const struct bh_keeper_place *at, int *ret_fd, struct bh_err *err)
{
    int pair[2];
    *ret_fd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return bh_fail(err, BH_SYSTEM, "socketpair: %s", strerrordesc_np(errno));
    struct start *s = bh_alloc(1, sizeof(*s));
    s->report = pair[1];
    (void)snprintf(s->program, sizeof(s->program), "%s", program);
    (void)snprintf(s->spec, sizeof(s->spec), "%s/" BH_KEEPER_SPEC_NAME, at->folder);
    const int error = begin_thread(s);
    if (error) {
        close(pair[0]);
        close(pair[1]);
        free(s);
        return bh_fail(err, BH_SYSTEM, "a thread: %s", strerrordesc_np(error));
    }
    *ret_fd = pair[0];
    return BH_OK;
}

static int as_status(const struct bh_keeper_status *s, struct bh_err *err)
{
    return s->code < 0 ? bh_fail(err, (enum bh_code)s->code, "%.*s", (int)sizeof(s->text) - 1, s->text)
                       : BH_OK;
}

int bh_keeper_started(int fd, struct bh_err *err)
{
    struct bh_keeper_status status;
    const int rc = bh_fds_recv(fd, &status, sizeof(status), NULL, 0, err);
    close(fd);
    if (rc == BH_NOT_FOUND)
        return bh_fail(err, BH_SYSTEM, "the keeper ended before it kept the lease");
    return rc < 0 ? rc : as_status(&status, err);
}

/* ---- finding ---- */

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* Who has the lock; 0: nobody. */
static int holder(const struct bh_keeper_place *at, pid_t *ret, struct bh_err *err)
{
    char path[PATH_MAX];
    struct flock lock = whole_file();
    *ret = 0;
    int rc = path_of(at, "lock", path, sizeof(path), err);
    if (rc < 0)
        return rc;
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? BH_OK : fail_errno(err, "the lock", path);
    if (fcntl(fd, F_GETLK, &lock) < 0)
        rc = fail_errno(err, "the lock", path);
    else if (lock.l_type != F_UNLCK)
        *ret = lock.l_pid;
    close(fd);
    return rc;
}

/* Its number could be another's before it is opened: who still has the lock after that is the one. */
static int find_living(const struct bh_keeper_place *at, struct bh_keeper_look *ret, struct bh_err *err)
{
    pid_t before = 0, after = 0;
    do {
        int rc = holder(at, &before, err);
        if (rc < 0 || before == 0)
            return rc;
        const int fd = (int)syscall(SYS_pidfd_open, before, 0);
        if (fd < 0 && errno != ESRCH)
            return bh_fail(err, BH_SYSTEM, "the keeper, process %d: %s", (int)before, strerrordesc_np(errno));
        rc = holder(at, &after, err);
        if (rc == BH_OK && fd >= 0 && before == after) {
            ret->found = BH_KEEPER_LIVES;
            ret->pid = before;
            ret->pidfd = fd;
            return BH_OK;
        }
        if (fd >= 0)
            close(fd);
        if (rc < 0)
            return rc;
    } while (after);
    return BH_OK;
}

static int read_end(int folder, struct bh_keeper_end *ret, struct bh_err *err)
{
    BH_AUTOFREE char *text = NULL;
    size_t n = 0;
    const int rc = bh_durable_read(folder, BH_KEEPER_END_NAME, END_MAX, &text, &n, err);
    return rc < 0 ? rc : bh_keeper_end_read(text, n, ret, err);
}

int bh_keeper_look(const struct bh_keeper_place *at, struct bh_keeper_look *ret, struct bh_err *err)
{
    struct bh_err why;
    *ret = (struct bh_keeper_look){.found = BH_KEEPER_NEVER, .pidfd = -1};
    int rc = find_living(at, ret, err);
    if (rc < 0 || ret->found == BH_KEEPER_LIVES)
        return rc;
    const int folder = open(at->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return errno == ENOENT ? BH_OK : fail_errno(err, "the folder", at->folder);
    rc = read_end(folder, &ret->end, &why);
    if (rc == BH_OK && ret->end.lease != at->lease)
        rc = bh_fail(&why, BH_INVALID, "it is of lease %llu", (unsigned long long)ret->end.lease);
    if (rc == BH_OK)
        ret->found = BH_KEEPER_ENDED;
    else if (rc == BH_NOT_FOUND && faccessat(folder, BH_KEEPER_BEGUN_NAME, F_OK, 0) == 0)
        ret->found = BH_KEEPER_LOST;
    else if (rc == BH_NOT_FOUND && errno != ENOENT)
        rc = bh_fail(&why, BH_SYSTEM, "whether it was begun: %s", strerrordesc_np(errno));
    close(folder);
    if (rc == BH_OK || rc == BH_NOT_FOUND)
        return BH_OK;
    return bh_fail(err, rc == BH_SYSTEM ? BH_SYSTEM : BH_INVALID, "'%.150s/" BH_KEEPER_END_NAME "': %.250s",
                   at->folder, why.msg);
}

int bh_keeper_fence(const struct bh_keeper_place *at, struct bh_err *err)
{
    const int folder = open(at->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) /* without a folder there is no spec, and no keeper without one */
        return errno == ENOENT ? BH_OK : fail_errno(err, "the folder", at->folder);
    const int fd = openat(folder, BH_KEEPER_BEGUN_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = BH_OK;
    if (fd < 0 || fsync(fd) < 0 || fsync(folder) < 0)
        rc = fail_errno(err, "'" BH_KEEPER_BEGUN_NAME "' in", at->folder);
    if (fd >= 0)
        close(fd);
    close(folder);
    return rc;
}

/* ---- orders ---- */

static int connect_to(const struct bh_keeper_place *at, int *ret_fd, struct bh_err *err)
{
    const struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int rc = path_of(at, "sock", to.sun_path, sizeof(to.sun_path), err);
    if (rc < 0)
        return rc;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return bh_fail(err, BH_SYSTEM, "socket: %s", strerrordesc_np(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            rc = bh_fail(err, BH_NOT_FOUND, "nobody keeps lease L%llu", (unsigned long long)at->lease);
        else if (errno == EAGAIN)
            rc = bh_fail(err, BH_BUSY, "the keeper of L%llu does not answer", (unsigned long long)at->lease);
        else
            rc = fail_errno(err, "the keeper's socket", to.sun_path);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return BH_OK;
}

int bh_keeper_next(int fd, struct bh_keeper_status *ret, struct bh_err *err)
{
    int fds[BH_FDS_MAX];
    size_t n_fds = 0;
    const ssize_t n = bh_fds_recv_some(fd, ret, sizeof(*ret), fds, &n_fds, err);
    for (size_t i = 0; n >= 0 && i < n_fds; i++)
        close(fds[i]);
    if (n == 0)
        return bh_fail(err, BH_NOT_FOUND, "the keeper is gone");
    if (n < 0)
        return (int)n;
    if (n != (ssize_t)sizeof(*ret) || ret->version != BH_KEEPER_VERSION)
        return bh_fail(err, BH_INVALID, "the keeper is of another version");
    ret->text[sizeof(ret->text) - 1] = '\0';
    return BH_OK;
}

static int ask(const struct bh_keeper_place *at, const struct bh_keeper_order *order, const int *fds,
               size_t n, int *ret_fd, struct bh_keeper_status *ret, struct bh_err *err)
{
    int fd = -1, rc = connect_to(at, &fd, err);
    if (rc == BH_OK)
        rc = bh_fds_send(fd, order, sizeof(*order), fds, n, err);
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (rc == BH_OK && poll(&answer, 1, ANSWER_MS) != 1)
        rc = bh_fail(err, BH_BUSY, "the keeper of L%llu does not answer", (unsigned long long)at->lease);
    if (rc == BH_OK)
        rc = bh_keeper_next(fd, ret, err);
    if (rc == BH_OK)
        rc = as_status(ret, err);
    if (rc == BH_OK && ret_fd)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

int bh_keeper_order(const struct bh_keeper_place *at, const struct bh_keeper_order *order,
                    struct bh_keeper_status *ret, struct bh_err *err)
{
    return ask(at, order, NULL, 0, NULL, ret, err);
}

int bh_keeper_watch(const struct bh_keeper_place *at, const int *stdio, int *ret_fd,
                    struct bh_keeper_status *ret, struct bh_err *err)
{
    const struct bh_keeper_order order = {.version = BH_KEEPER_VERSION,
                                          .op = stdio ? BH_KEEPER_ATTACH : BH_KEEPER_WATCH};
    return ask(at, &order, stdio, stdio ? 3 : 0, ret_fd, ret, err);
}

/* ---- the keeper's own side ---- */

int bh_keeper_lock(const struct bh_keeper_place *at, int *ret_fd, struct bh_err *err)
{
    char path[PATH_MAX];
    struct flock lock = whole_file();
    int rc = path_of(at, "lock", path, sizeof(path), err);
    if (rc < 0)
        return rc;
    const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(err, "the lock", path);
    if (fcntl(fd, F_SETLK, &lock) == 0) {
        *ret_fd = fd;
        return BH_OK;
    }
    rc = errno == EAGAIN || errno == EACCES
             ? bh_fail(err, BH_CONFLICT, "lease L%llu has a keeper already", (unsigned long long)at->lease)
             : fail_errno(err, "the lock", path);
    close(fd);
    return rc;
}

int bh_keeper_listen(const struct bh_keeper_place *at, bool for_all, int *ret_fd, struct bh_err *err)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    const int rc = path_of(at, "sock", here.sun_path, sizeof(here.sun_path), err);
    if (rc < 0)
        return rc;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return bh_fail(err, BH_SYSTEM, "socket: %s", strerrordesc_np(errno));
    (void)unlink(here.sun_path);
    const mode_t before = umask(for_all ? 0111 : 0177);
    const bool bound = bind(fd, (const struct sockaddr *)&here, sizeof(here)) == 0;
    (void)umask(before);
    if (bound && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return BH_OK;
    }
    const int failed = fail_errno(err, "listening on", here.sun_path);
    close(fd);
    return failed;
}

void bh_keeper_vanish(const struct bh_keeper_place *at)
{
    char path[PATH_MAX];
    if (path_of(at, "sock", path, sizeof(path), NULL) == BH_OK)
        (void)unlink(path);
    if (path_of(at, "lock", path, sizeof(path), NULL) == BH_OK)
        (void)unlink(path);
}
