/* SPDX-License-Identifier: Apache-2.0 */
/* probe_test.c - the socket of a lease: who may what, what is left of one that was killed, and that nobody ever waits. */
#include "launch/probe.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct bh_probe_place at, other;
static struct bh_err err;
static char folder[BH_SCRATCH_SOCKET_PATH], path[2 * BH_SCRATCH_PATH];

static int to(const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const size_t n = strlen(name);
    if (n >= sizeof(ret->sun_path))
        return -1;
    memcpy(ret->sun_path, name, n);
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* One whose launcher was killed. */
static bool leave(const char *name)
{
    struct sockaddr_un there;
    const int fd = to(name, &there);
    const bool ok = bind(fd, (const struct sockaddr *)&there, sizeof(there)) == 0;
    close(fd);
    return ok;
}

TEST(it_is_for_whoever_knows_its_name)
{
    struct stat st;
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    CHECK(bh_probe_open(&at, folder, &err) == BH_OK && bh_probe_open(&other, folder, &err) == BH_OK);
    CHECK(strcmp(at.path, other.path) != 0 && strlen(at.path) == strlen(folder) + strlen("/probe/") + 32);
    CHECK(lstat(at.path, &st) == 0 && S_ISSOCK(st.st_mode));
    CHECK_EQ(st.st_mode & 07777, 0222);
    (void)snprintf(path, sizeof(path), "%s/probe", folder);
    CHECK(lstat(path, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0711); /* nobody lists it */
    bh_probe_close(&at);
    CHECK(lstat(at.path, &st) < 0 && errno == ENOENT && lstat(other.path, &st) == 0);
    bh_probe_close(&other);
    bh_probe_close(&other); /* once is enough */
    CHECK(bh_scratch_remove(folder));
}

TEST(sending_never_waits_or_kills)
{
    char line[] = "done 5\n", got[64];
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    CHECK_EQ(bh_probe_open(&at, folder, &err), BH_OK);
    struct sockaddr_un there;
    const int fd = to(at.path, &there); /* nobody reads yet, and it waits for nobody */
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&there, sizeof(there)) == 0);
    CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    CHECK(read(at.fd, got, sizeof(got)) == (ssize_t)strlen(line) && memcmp(got, line, strlen(line)) == 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    while (write(fd, line, strlen(line)) > 0)
        continue;
    CHECK_EQ(errno, EAGAIN);
    bh_probe_drain(&at);
    CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    bh_probe_close(&at);
    CHECK(write(fd, line, strlen(line)) < 0 && errno == ECONNREFUSED); /* and no signal */
    close(fd);
    bh_probe_drain(&at); /* there is none */
    CHECK(bh_scratch_remove(folder));
}

TEST(what_killed_launchers_left_is_taken_away)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct stat st;
    char left[sizeof(path) + 16], young[sizeof(path) + 16], text[sizeof(path) + 16], pipe[sizeof(path) + 16];
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    CHECK_EQ(bh_probe_open(&at, folder, &err), BH_OK);
    (void)snprintf(path, sizeof(path), "%s/probe", folder);
    (void)snprintf(left, sizeof(left), "%s/left", path);
    (void)snprintf(young, sizeof(young), "%s/young", path);
    (void)snprintf(text, sizeof(text), "%s/text", path);
    (void)snprintf(pipe, sizeof(pipe), "%s/pipe", path);
    const int fd = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && leave(left) && leave(young));
    close(fd);
    CHECK(utimensat(AT_FDCWD, left, old, 0) == 0 && utimensat(AT_FDCWD, at.path, old, 0) == 0);
    CHECK(utimensat(AT_FDCWD, text, old, 0) == 0);
    CHECK(mkfifo(pipe, 0222) == 0 && utimensat(AT_FDCWD, pipe, old, 0) == 0);
    struct sockaddr_un there;
    const int full = to(at.path, &there); /* whose queue is full: nobody waits for room in it */
    while (sendto(full, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&there, sizeof(there)) == 1)
        continue;
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(bh_probe_open(&other, folder, &err), BH_OK);
    CHECK(lstat(left, &st) < 0 && errno == ENOENT);
    CHECK(lstat(at.path, &st) == 0); /* old, and in use */
    CHECK(lstat(young, &st) == 0 && lstat(text, &st) == 0 && lstat(pipe, &st) == 0);
    CHECK(close(full) == 0);
    bh_probe_close(&at);
    bh_probe_close(&other);
    CHECK(bh_scratch_remove(folder));
}

TEST(a_place_that_is_not_ours_is_none)
{
    char elsewhere[BH_SCRATCH_SOCKET_PATH], deep[sizeof(folder) + 120];
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    CHECK(bh_scratch_make(elsewhere, sizeof(elsewhere), "probe"));
    (void)snprintf(path, sizeof(path), "%s/probe", folder);
    CHECK(symlink(elsewhere, path) == 0);
    CHECK_EQ(bh_probe_open(&at, folder, &err), BH_DENIED);
    CHECK(at.fd == -1 && strstr(err.msg, "is not a folder of this user"));
    (void)snprintf(path, sizeof(path), "%s/not/there", folder);
    CHECK_EQ(bh_probe_open(&at, path, &err), BH_SYSTEM);
    (void)snprintf(deep, sizeof(deep), "%s/%0100d", folder, 0);
    CHECK(mkdir(deep, 0700) == 0);
    CHECK_EQ(bh_probe_open(&at, deep, &err), BH_INVALID);
    CHECK(at.fd == -1 && strstr(err.msg, "is too long for sockets in it"));
    CHECK(bh_scratch_remove(folder) && bh_scratch_remove(elsewhere));
}

TEST(a_containers_has_a_name_that_is_known_in_a_folder_that_nobody_enters)
{
    struct stat st;
    char deep[sizeof(folder) + 120];
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    (void)snprintf(path, sizeof(path), "%s/L17", folder);
    CHECK_EQ(chmod(folder, 0711), 0);
    CHECK_EQ(bh_probe_open_at(&at, path, &err), BH_DENIED);
    CHECK(at.fd == -1 && strstr(err.msg, "is not a folder that this user alone may enter"));
    CHECK_EQ(chmod(folder, 0700), 0);
    CHECK(leave(path)); /* of a keeper that was killed a moment ago */
    CHECK_EQ(bh_probe_open_at(&at, path, &err), BH_OK);
    CHECK_STR(at.path, path);
    CHECK(lstat(path, &st) == 0 && S_ISSOCK(st.st_mode));
    CHECK_EQ(st.st_mode & 07777, 0222); /* inside, whose it is is nobody that there is */
    struct sockaddr_un there;
    const int fd = to(path, &there);
    CHECK(sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&there, sizeof(there)) == 1);
    close(fd);
    bh_probe_close(&at);
    CHECK(lstat(path, &st) < 0 && errno == ENOENT);
    (void)snprintf(deep, sizeof(deep), "%s/%0100d", folder, 0);
    CHECK(bh_probe_path_fits(path) && !bh_probe_path_fits(deep));
    CHECK_EQ(bh_probe_open_at(&at, deep, &err), BH_INVALID);
    CHECK_EQ(bh_probe_open_at(&at, "L17", &err), BH_INVALID);
    CHECK(bh_scratch_remove(folder));
    CHECK_EQ(bh_probe_open_at(&at, path, &err), BH_SYSTEM);
}

TEST(the_variable_is_this_leases_or_none)
{
    CHECK(bh_scratch_make(folder, sizeof(folder), "probe"));
    CHECK_EQ(setenv(BH_PROBE_VARIABLE, "of somebody else", 1), 0);
    CHECK_EQ(bh_probe_open(&at, folder, &err), BH_OK);
    bh_probe_announce(&at);
    CHECK_STR(getenv(BH_PROBE_VARIABLE), at.path);
    bh_probe_close(&at);
    bh_probe_announce(&at);
    CHECK(!getenv(BH_PROBE_VARIABLE));
    CHECK(bh_scratch_remove(folder));
}

TEST_MAIN
