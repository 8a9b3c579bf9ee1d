/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_BYTES = 16,
    FOLDER_MODE = 0711,
    WRITE_ONLY = S_IWUSR | S_IWGRP | S_IWOTH,
    YOUNG_S = 60,     /* somebody may be about to open it */
    SWEEP_MOST = 256, /* looked at in one go */
    DRAIN_BYTES = 64 << 10
};

static int fail_errno(struct bh_err *err, const char *path)
{
    return bh_fail(err, BH_SYSTEM, "'%.200s': %s", path, strerrordesc_np(errno));
}

/* One that nobody holds open is of a launcher that is gone. */
static bool is_left_behind(int folder, const char *name)
{
    struct stat st;
    struct timespec now;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISFIFO(st.st_mode) ||
        clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec - st.st_mtim.tv_sec < YOUNG_S)
        return false;
    const int fd = openat(folder, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == ENXIO;
}

static void sweep(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    for (int i = 0; d && i < SWEEP_MOST && (e = readdir(d)); i++)
        if (e->d_name[0] != '.' && is_left_behind(dirfd(d), e->d_name))
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
    if (rc < 0)
        return rc;
    if (mkfifo(p->path, S_IRUSR | S_IWUSR) < 0)
        return fail_errno(err, folder);
    p->fd = open(p->path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0 || fchmod(p->fd, WRITE_ONLY) < 0) {
        rc = fail_errno(err, folder);
        (void)unlink(p->path);
        if (p->fd >= 0)
            close(p->fd);
        p->fd = -1;
    }
    return rc;
}

void bh_probe_announce(const struct bh_probe_place *p)
{
    if (p->fd < 0 || setenv(BH_PROBE_VARIABLE, p->path, 1) < 0)
        (void)unsetenv(BH_PROBE_VARIABLE); /* not that of somebody else */
}

void bh_probe_drain(const struct bh_probe_place *p)
{
    static char bytes[DRAIN_BYTES];
    if (p->fd >= 0)
        (void)!read(p->fd, bytes, sizeof(bytes));
}

void bh_probe_close(struct bh_probe_place *p)
{
    if (p->fd < 0)
        return;
    (void)unlink(p->path);
    close(p->fd);
    p->fd = -1;
}
