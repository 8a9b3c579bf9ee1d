/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/governor_at.h"

#include "launch/governor.h"
#include "launch/patience.h"
#include "launch/warden.h"
#include "wire/govern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Simulated silicon has a folder of its own, and its governor lives there. */
const char *bh_governor_folder(void)
{
    const char *dir = secure_getenv("BULKHEAD_RUN_DIR"), *sim = secure_getenv("BULKHEAD_SIM");
    return dir && *dir ? dir : sim && *sim ? sim : "/run/bulkhead";
}

int bh_governor_path(const char *name, char *ret, size_t size, struct bh_err *err)
{
    const int n = snprintf(ret, size, "%s/%s", bh_governor_folder(), name);
    if (bh_governor_folder()[0] != '/')
        return bh_fail(err, BH_USAGE, "the run folder '%.200s' (BULKHEAD_RUN_DIR): give it from / on",
                       bh_governor_folder());
    if (n < 0 || (size_t)n >= size)
        return bh_fail(err, BH_INVALID, "the run folder '%.200s' has too long a name for a socket in it",
                       bh_governor_folder());
    return BH_OK;
}

int bh_governor_address(struct sockaddr_un *ret, struct bh_err *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    return bh_governor_path(BH_GOVERN_SOCKET_NAME, ret->sun_path, sizeof(ret->sun_path), err);
}

int bh_governor_no_answer(struct bh_err *err)
{
    return bh_fail(err, BH_BUSY, BH_GOVERN_SILENT);
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
        return bh_governor_no_answer(err);
    return bh_fail(err, BH_SYSTEM, "the governor on '%s': %s", path, strerrordesc_np(error));
}

int bh_governor_connect_until(int64_t until_ms, int *ret_fd, struct bh_err *err)
{
    const int64_t left = bh_warden_left_ms(until_ms);
    const struct timeval patience = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 + 1};
    struct sockaddr_un to;
    int rc = bh_governor_address(&to, err);
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
    return bh_governor_connect_until(bh_warden_now_ms() + BH_GOVERNOR_MS, ret_fd, err);
}

struct bh_governor_socket bh_governor_look(void)
{
    struct sockaddr_un at;
    struct stat st;
    struct timespec now;
    if (bh_governor_address(&at, NULL) < 0 || lstat(at.sun_path, &st) < 0)
        return (struct bh_governor_socket){0};
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return (struct bh_governor_socket){.is_there = true};
    const int64_t ms =
        (now.tv_sec - st.st_ctim.tv_sec) * INT64_C(1000) + (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000;
    return (struct bh_governor_socket){.is_there = true, .is_young = ms >= 0 && ms < BH_PATIENCE_FOLLOWED_MS};
}
