/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt_socket.c - listening where container runtimes send to.
 *
 * Whoever can connect decides which process is held by which cap, so that is root's or one named user's. The
 * folder is locked while the socket is made: of two that start at the same moment on what a third left, one must not remove
 * what the other has just made.
 */
#include "launch/adopt_socket.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, FOR_OWNER_ONLY = 0177 };

static int fail_path(struct bh_err *err, const char *path)
{
    return bh_fail(err, errno == EACCES ? BH_DENIED : BH_SYSTEM, "'%.200s': %s", path,
                   strerrordesc_np(errno));
}

/* ---- making it ---- */

/* Nobody listens there any more: it goes. */
static int remove_stale(const struct sockaddr_un *at, struct bh_err *err)
{
    struct stat st;
    if (lstat(at->sun_path, &st) < 0)
        return errno == ENOENT ? BH_OK : fail_path(err, at->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return bh_fail(err, BH_CONFLICT, "'%.107s' is there and is no socket; give another path",
                       at->sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int rc = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)at, sizeof(*at));
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (rc == 0 || error == EAGAIN || error == EPROTOTYPE)
        return bh_fail(err, BH_CONFLICT,
                       "somebody listens on '%.107s' already; end that one, or give another path",
                       at->sun_path);
    if (error != ECONNREFUSED) {
        errno = error;
        return fail_path(err, at->sun_path);
    }
    return unlink(at->sun_path) < 0 ? fail_path(err, at->sun_path) : BH_OK;
}

static int make(const struct sockaddr_un *at, uid_t owner, struct bh_adopt_socket *ret, struct bh_err *err)
{
    struct stat st;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return bh_fail(err, BH_SYSTEM, "socket: %s", strerrordesc_np(errno));
    const mode_t before = umask(FOR_OWNER_ONLY); /* never open to others, not for a moment */
    const int rc = bind(fd, (const struct sockaddr *)at, sizeof(*at));
    const int error = errno;
    (void)umask(before);
    errno = error;
    if (rc < 0 || (owner != geteuid() && lchown(at->sun_path, owner, (gid_t)-1) < 0) ||
        lstat(at->sun_path, &st) < 0 || listen(fd, BACKLOG) < 0) {
        const int code = fail_path(err, at->sun_path);
        close(fd);
        return code;
    }
    *ret = (struct bh_adopt_socket){.fd = fd, .path = ret->path, .dev = st.st_dev, .ino = st.st_ino};
    return BH_OK;
}

static int lock_folder(const char *path, struct bh_err *err)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 2];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    (void)snprintf(folder, sizeof(folder), "%.*s.", (int)n, path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX) == 0)
        return fd;
    const int code =
        errno == ENOENT
            ? bh_fail(err, BH_NOT_FOUND,
                      "the folder of '%.107s' is not there: make it, or give another --socket", path)
            : bh_fail(err, errno == EACCES ? BH_DENIED : BH_SYSTEM, "the folder of '%.107s': %s", path,
                      strerrordesc_np(errno));
    if (fd >= 0)
        close(fd);
    return code;
}

int bh_adopt_listen(const char *path, uid_t owner, struct bh_adopt_socket *ret, struct bh_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t n = strlen(path);
    *ret = (struct bh_adopt_socket){.fd = -1, .path = path};
    if (n == 0 || n >= sizeof(at.sun_path))
        return bh_fail(err, BH_INVALID, "a socket's path has 1 to %zu bytes, '%.40s%s' has %zu",
                       sizeof(at.sun_path) - 1, path, n > 40 ? "..." : "", n);
    memcpy(at.sun_path, path, n + 1);
    const int lock = lock_folder(path, err);
    if (lock < 0)
        return lock;
    int rc = remove_stale(&at, err);
    if (rc == BH_OK)
        rc = make(&at, owner, ret, err);
    close(lock);
    return rc;
}

void bh_adopt_close(struct bh_adopt_socket *s)
{
    struct stat st;
    if (s->fd < 0)
        return;
    if (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        (void)unlink(s->path);
    close(s->fd);
    s->fd = -1;
}

/* ---- whom to believe ---- */

int bh_adopt_peer(int fd, uid_t owner, uid_t *ret, struct bh_err *err)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return bh_fail(err, BH_SYSTEM, "who is at the other end: %s", strerrordesc_np(errno));
    *ret = who.uid;
    return who.uid == 0 || who.uid == geteuid() || who.uid == owner
               ? BH_OK
               : bh_fail(err, BH_DENIED, "user %u is not one to send a listener here", (unsigned)who.uid);
}

static bool has_filter(uint32_t pid)
{
    char path[64];
    char *line = NULL;
    size_t room = 0;
    bool has = false;
    (void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
    FILE *f = fopen(path, "re");
    while (f && !has && getline(&line, &room, f) > 0)
        has = bh_str_starts(line, "Seccomp:\t2");
    free(line);
    if (f)
        fclose(f);
    return has;
}

/* The process runs as the user, or in a user namespace that the user made. */
static bool is_of(uint32_t pid, uid_t user)
{
    char path[64];
    struct stat its, ours;
    uid_t maker = 0;
    (void)snprintf(path, sizeof(path), "/proc/%u", pid);
    if (stat(path, &its) == 0 && its.st_uid == user)
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%u/ns/user", pid);
    const int ns = open(path, O_RDONLY | O_CLOEXEC);
    const bool is = ns >= 0 && fstat(ns, &its) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
                    its.st_ino != ours.st_ino && ioctl(ns, NS_GET_OWNER_UID, &maker) == 0 && maker == user;
    if (ns >= 0)
        close(ns);
    return is;
}

int bh_adopt_process(uint32_t pid, uid_t sender, int *ret_pidfd, struct bh_err *err)
{
    const char *wrong = NULL;
    const int pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pidfd < 0)
        return bh_fail(
            err, BH_REFUSED,
            "process %u, which the runtime says it is of, is not there: it has ended, or bulkhead is not in "
            "the runtime's pid namespace",
            pid);
    if (!has_filter(pid))
        wrong =
            "carries no system call filter: it has ended, or bulkhead is not in the runtime's pid namespace";
    else if (sender != 0 && !is_of(pid, sender))
        wrong = "is not one that the sender could have started";
    /* What was read above was read of a number; it is the same process if that one is still there. */
    else if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
        wrong = "has ended";
    if (wrong) {
        close(pidfd);
        return bh_fail(err, BH_REFUSED, "process %u, which the runtime says it is of, %s", pid, wrong);
    }
    *ret_pidfd = pidfd;
    return BH_OK;
}
