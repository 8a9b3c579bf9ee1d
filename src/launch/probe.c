/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/probe.h"

#include "wire/dgram.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_BYTES = 16,
    FOLDER_MODE = 0711,
    WRITE_ONLY = S_IWUSR | S_IWGRP | S_IWOTH,
    YOUNG_S = 60,     /* somebody may be about to bind it */
    SWEEP_MOST = 256, /* looked at in one go */
    DRAIN_MOST = 256  /* datagrams */
};

static int fail_errno(struct bh_err *err, const char *path)
{
    return bh_fail(err, BH_SYSTEM, "'%.200s': %s", path, strerrordesc_np(errno));
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* False: the name is too long for a socket. */
static bool address(struct sockaddr_un *ret, const char *path)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", path);
    return n > 0 && (size_t)n < sizeof(ret->sun_path);
}

/* One that nobody holds any more is of a launcher that is gone. To connect to one of datagrams is to look whose it is: nothing is
 * sent and nobody is asked, so that it waits for nobody. */
static bool is_left_behind(int folder, const char *path, const char *name)
{
    struct stat st;
    struct sockaddr_un at;
    char full[PATH_MAX];
    struct timespec now;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode) ||
        clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec - st.st_mtim.tv_sec < YOUNG_S)
        return false;
    const int n = snprintf(full, sizeof(full), "%s/%s", path, name);
    const int fd = n > 0 && (size_t)n < sizeof(full) && address(&at, full) ? make_socket() : -1;
    const bool is =
        fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return is;
}

static void sweep(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    for (int i = 0; d && i < SWEEP_MOST && (e = readdir(d)); i++)
        if (e->d_name[0] != '.' && is_left_behind(dirfd(d), path, e->d_name))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
}

/* Root's, and as it was made: a folder that somebody else made could be a way to anywhere. */
static int make_folder(const char *path, struct bh_err *err)
{
    struct stat st;
    if (mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST)
        return fail_errno(err, path);
    if (lstat(path, &st) < 0)
        return fail_errno(err, path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return bh_fail(err, BH_DENIED, "'%.200s' is not a folder of this user", path);
    /* whatever the umask is */
    return chmod(path, FOLDER_MODE) < 0 ? fail_errno(err, path) : BH_OK;
}

static int name_it(struct bh_probe_place *p, const char *folder, struct bh_err *err)
{
    unsigned char random[NAME_BYTES];
    char name[2 * NAME_BYTES + 1];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return bh_fail(err, BH_SYSTEM, "getrandom: %s", strerrordesc_np(errno));
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(&name[2 * i], 3, "%02x", random[i]);
    const int n = snprintf(p->path, sizeof(p->path), "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof(p->path) ? BH_OK
                                                : bh_fail(err, BH_INVALID, "'%.200s' is too long", folder);
}

static int bind_it(struct bh_probe_place *p, const char *folder, struct bh_err *err)
{
    struct sockaddr_un at;
    if (!address(&at, p->path))
        return bh_fail(err, BH_INVALID, "'%.200s' is too long for sockets in it", folder);
    const int fd = make_socket();
    if (fd < 0)
        return bh_fail(err, BH_SYSTEM, "socket: %s", strerrordesc_np(errno));
    bh_dgram_no_fds(fd);
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0) {
        if (chmod(p->path, WRITE_ONLY) == 0) { /* nobody else can put anything there */
            p->fd = fd;
            return BH_OK;
        }
        (void)unlink(p->path);
    }
    const int rc = fail_errno(err, folder);
    close(fd);
    return rc;
}

int bh_probe_open(struct bh_probe_place *p, const char *run_dir, struct bh_err *err)
{
    char folder[PATH_MAX];
    *p = (struct bh_probe_place){.fd = -1};
    const int n = snprintf(folder, sizeof(folder), "%s/probe", run_dir);
    if (n <= 0 || (size_t)n >= sizeof(folder))
        return bh_fail(err, BH_INVALID, "the run folder '%.200s' has too long a name", run_dir);
    int rc = make_folder(folder, err);
    if (rc < 0)
        return rc;
    sweep(folder);
    rc = name_it(p, folder, err);
    return rc < 0 ? rc : bind_it(p, folder, err);
}

/* It keeps everybody else out, whatever the names in it are. */
static int check_closed(const char *folder, struct bh_err *err)
{
    struct stat st;
    if (lstat(folder, &st) < 0)
        return fail_errno(err, folder);
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO))
               ? BH_OK
               : bh_fail(err, BH_DENIED, "'%.200s' is not a folder that this user alone may enter", folder);
}

bool bh_probe_path_fits(const char *path)
{
    struct sockaddr_un at;
    return address(&at, path);
}

int bh_probe_open_at(struct bh_probe_place *p, const char *path, struct bh_err *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *p = (struct bh_probe_place){.fd = -1};
    if (!slash || slash == path || strlen(path) >= sizeof(folder))
        return bh_fail(err, BH_INVALID, "'%.200s' is no path of a socket", path);
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    const int rc = check_closed(folder, err);
    if (rc < 0)
        return rc;
    (void)snprintf(p->path, sizeof(p->path), "%s", path);
    (void)unlink(path);
    return bind_it(p, folder, err);
}

void bh_probe_announce(const struct bh_probe_place *p)
{
    if (p->fd < 0 || setenv(BH_PROBE_VARIABLE, p->path, 1) < 0)
        (void)unsetenv(BH_PROBE_VARIABLE); /* not that of somebody else */
}

void bh_probe_drain(const struct bh_probe_place *p)
{
    char byte;
    for (int i = 0; p->fd >= 0 && i < DRAIN_MOST && bh_dgram_take(p->fd, &byte, 1) >= 0; i++)
        continue;
}

void bh_probe_close(struct bh_probe_place *p)
{
    if (p->fd < 0)
        return;
    (void)unlink(p->path);
    bh_dgram_end(p->fd);
    p->fd = -1;
}
