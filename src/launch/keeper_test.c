/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_test.c - keepers are started, found and given up for lost; the keeper is a stand-in, this program again.
 *
 * The real one is in tests/keeper.
 */
#include "launch/keeper.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "base/test.h"
#include "launch/durable.h"
#include "launch/warden.h"
#include "wire/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char base[PATH_MAX - 64], folder[PATH_MAX], run_dir[PATH_MAX], self[PATH_MAX];
static const char *const argv_[] = {"true", NULL};

/* ---- the stand-in ---- */

static int open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Takes the lock, says how it was started, and answers one order with what it was asked. */
static _Noreturn void be_keeper(const char *spec)
{
    char at_folder[PATH_MAX], at_run[PATH_MAX];
    struct bh_keeper_status status = {.version = BH_KEEPER_VERSION};
    struct bh_err err = {0};
    int lock = -1, listener = -1;
    (void)snprintf(at_folder, sizeof(at_folder), "%.*s", (int)(strrchr(spec, '/') - spec), spec);
    (void)snprintf(at_run, sizeof(at_run), "%s", getenv("BH_TEST_RUN"));
    const struct bh_keeper_place at = {at_folder, at_run, 7};
    /* Before the lock: 0, 1, 2 and the report; a session of its own. */
    const int fds = open_fds();
    status.code = bh_keeper_lock(&at, &lock, &err);
    if (status.code == 0)
        status.code = bh_keeper_listen(&at, false, &listener, &err);
    memcpy(status.text, err.msg, sizeof(status.text));
    if (status.code == 0)
        (void)snprintf(status.text, sizeof(status.text), "%d %d", fds, getsid(0) == getpid());
    (void)!bh_fds_send(BH_KEEPER_REPORT, &status, sizeof(status), NULL, 0, NULL);
    struct pollfd come = {.fd = listener, .events = POLLIN};
    if (status.code < 0 || poll(&come, 1, 60000) != 1)
        _exit(1);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct bh_keeper_order order;
    if (bh_fds_recv(fd, &order, sizeof(order), NULL, 0, NULL) == BH_OK) {
        status.signal = order.signal;
        (void)!bh_fds_send(fd, &status, sizeof(status), NULL, 0, NULL);
    }
    for (;;)
        pause();
}

__attribute__((constructor)) static void is_keeper(int argc, char **argv)
{
    if (argc == 3 && bh_str_eq(argv[1], "--report"))
        be_keeper(argv[2]);
}

/* ---- a place ---- */

static struct bh_keeper_place begin(void)
{
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (!bh_scratch_make(base, sizeof(base), "keeper") || n < 0)
        abort();
    self[n] = '\0';
    (void)snprintf(folder, sizeof(folder), "%s/7", base);
    (void)snprintf(run_dir, sizeof(run_dir), "%s/r", base);
    (void)mkdir(run_dir, 0700);
    (void)setenv("BH_TEST_RUN", run_dir, 1);
    return (struct bh_keeper_place){folder, run_dir, 7};
}

static void file(const char *name, const char *text)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)!bh_durable_write(fd, name, text, strlen(text), NULL);
    close(fd);
}

static struct bh_keeper_spec spec(void)
{
    return (struct bh_keeper_spec){.lease = 7, .run_dir = run_dir, .cgroup = "bulkhead/L7", .argv = argv_};
}

static enum bh_keeper_found found(const struct bh_keeper_place *at)
{
    struct bh_keeper_look l;
    if (bh_keeper_look(at, &l, NULL) < 0)
        return (enum bh_keeper_found)99;
    if (l.pidfd >= 0)
        close(l.pidfd);
    return l.found;
}

TEST(a_spec_is_written_once)
{
    const struct bh_keeper_place at = begin();
    struct bh_keeper_spec s = spec();
    struct bh_err err;
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    s.grace_ms = 1;
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_CONFLICT);
    /* the machine ended before it was on the disk: as if there were none */
    static const char *const torn[] = {"", "{\"version\": 1, \"lease\": 7, \"ru"};
    for (size_t i = 0; i < BH_COUNT_OF(torn); i++) {
        file(BH_KEEPER_SPEC_NAME, torn[i]);
        CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
        CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    }
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(bh_keeper_settle(&at, dir, &err), BH_OK);
    CHECK_EQ(unlinkat(dir, BH_KEEPER_SPEC_NAME, 0), 0);
    CHECK_EQ(bh_keeper_settle(&at, dir, &err), BH_NOT_FOUND);
    close(dir);
    s.lease = 0;
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_INVALID);
    CHECK(bh_scratch_remove(base));
}

TEST(what_is_found_of_a_lease)
{
    const struct bh_keeper_place at = begin();
    const struct bh_keeper_spec s = spec();
    struct bh_keeper_look l;
    struct bh_err err = {0};
    CHECK_EQ(found(&at), BH_KEEPER_NEVER); /* no folder */
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    CHECK_EQ(found(&at), BH_KEEPER_NEVER);
    file(BH_KEEPER_BEGUN_NAME, "1\n");
    CHECK_EQ(found(&at), BH_KEEPER_LOST);
    file(BH_KEEPER_END_NAME, "{\"version\": 1, \"lease\": 7, \"how\": \"killed\", \"signal\": 9}\n");
    CHECK_EQ(bh_keeper_look(&at, &l, &err), BH_OK);
    CHECK_EQ(l.found, BH_KEEPER_ENDED);
    CHECK_EQ(l.end.signal, 9);
    CHECK_EQ(l.pidfd, -1);
    static const char *const torn[] = {"", "{\"version\": 1, \"lease\": 7, \"how\": \"kil",
                                       "{\"version\": 1, \"lease\": 8, \"how\": \"exited\"}"};
    for (size_t i = 0; i < BH_COUNT_OF(torn); i++) {
        file(BH_KEEPER_END_NAME, torn[i]);
        CHECK_EQ(bh_keeper_look(&at, &l, &err), BH_INVALID);
        CHECK(strstr(err.msg, BH_KEEPER_END_NAME));
    }
    CHECK(bh_scratch_remove(base));
}

/* Not made is not made, whatever the reason; and what cannot be known is no answer. */
TEST(a_fence_is_there_or_it_says_so)
{
    const struct bh_keeper_place at = begin();
    const struct bh_keeper_spec s = spec();
    struct bh_keeper_look l;
    struct bh_err err = {0};
    char path[PATH_MAX + 16];
    CHECK_EQ(bh_keeper_fence(&at, &err), BH_OK); /* no folder, no keeper */
    CHECK_EQ(found(&at), BH_KEEPER_NEVER);
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    (void)snprintf(path, sizeof(path), "%s/" BH_KEEPER_BEGUN_NAME, folder);
    CHECK_EQ(symlink("nowhere", path), 0);
    CHECK(bh_keeper_fence(&at, &err) < 0);
    CHECK_EQ(found(&at), BH_KEEPER_NEVER);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(symlink(BH_KEEPER_BEGUN_NAME, path), 0); /* of itself: nobody can say what it is */
    CHECK_EQ(bh_keeper_look(&at, &l, &err), BH_SYSTEM);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(bh_keeper_fence(&at, &err), BH_OK);
    CHECK_EQ(bh_keeper_fence(&at, &err), BH_OK);
    CHECK_EQ(found(&at), BH_KEEPER_LOST);
    CHECK(bh_scratch_remove(base));
}

TEST(a_keeper_is_started_found_and_lost)
{
    const struct bh_keeper_place at = begin();
    const struct bh_keeper_spec s = spec();
    struct bh_keeper_look l;
    struct bh_keeper_status status;
    struct bh_err err = {0};
    int fd = -1, other;
    CHECK_EQ(bh_keeper_prepare(&at, &s, &err), BH_OK);
    const int stray = fcntl(STDOUT_FILENO, F_DUPFD, 100); /* not to be inherited */
    CHECK_EQ(bh_keeper_start(self, &at, &fd, &err), BH_OK);
    CHECK_EQ(bh_keeper_started(fd, &err), BH_OK);
    close(stray);
    CHECK_EQ(bh_keeper_look(&at, &l, &err), BH_OK);
    CHECK_EQ(l.found, BH_KEEPER_LIVES);
    CHECK_EQ(bh_keeper_start(self, &at, &other, &err), BH_OK);
    CHECK_EQ(bh_keeper_started(other, &err), BH_CONFLICT);
    const struct bh_keeper_order order = {.version = BH_KEEPER_VERSION, .op = BH_KEEPER_SIGNAL, .signal = 12};
    CHECK_EQ(bh_keeper_order(&at, &order, &status, &err), BH_OK);
    CHECK_EQ(status.signal, 12);
    CHECK_STR(status.text, "4 1");
    CHECK_EQ(syscall(SYS_pidfd_send_signal, l.pidfd, SIGKILL, NULL, 0), 0);
    struct pollfd gone = {.fd = l.pidfd, .events = POLLIN};
    CHECK_EQ(poll(&gone, 1, 60000), 1);
    close(l.pidfd);
    CHECK_EQ(found(&at), BH_KEEPER_NEVER);
    CHECK_EQ(bh_keeper_order(&at, &order, &status, &err), BH_NOT_FOUND);
    CHECK(bh_scratch_remove(base));
}

TEST(a_program_that_is_not_there)
{
    const struct bh_keeper_place at = begin();
    struct bh_err err;
    int fd = -1;
    CHECK_EQ(bh_keeper_start("/nowhere/bulkhead-keeper", &at, &fd, &err), BH_OK);
    CHECK_EQ(bh_keeper_started(fd, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "/nowhere/bulkhead-keeper"));
    CHECK(bh_scratch_remove(base));
}

TEST_MAIN
