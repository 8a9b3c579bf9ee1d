/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/governor_at.h"

#include "launch/governor.h"
#include "launch/governor_fixture.h"
#include "launch/patience.h"
#include "launch/warden.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

TEST(nobody_listens)
{
    int fd;
    begin_folder();
    CHECK_EQ(bh_governor_connect(&fd, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_governor_order_by("x", BH_GOVERN_PAUSE, &err), BH_NOT_FOUND);
    CHECK(!bh_governor_look().is_there && !bh_governor_look().is_young);
    /* a socket that one left who was killed */
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path));
    CHECK_EQ(bind(s, (const struct sockaddr *)&at, sizeof(at)), 0);
    close(s);
    CHECK_EQ(bh_governor_connect(&fd, &err), BH_NOT_FOUND);
    CHECK(bh_governor_look().is_there && bh_governor_look().is_young);
    end();
}

TEST(a_socket_grows_old)
{
    const struct timespec nap = {.tv_nsec = 20 * 1000000L};
    begin_folder();
    const int64_t made = bh_warden_now_ms();
    CHECK_EQ(mkfifo(path, 0600), 0); /* whatever it is */
    CHECK(bh_governor_look().is_young);
    while (bh_warden_now_ms() <= made + BH_PATIENCE_FOLLOWED_MS)
        (void)nanosleep(&nap, NULL);
    CHECK(bh_governor_look().is_there && !bh_governor_look().is_young);
    end();
}

TEST(a_run_folder_with_too_long_a_name)
{
    struct sockaddr_un at;
    char longest[120];
    int fd = -1;
    memset(longest, 'x', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    (void)setenv("BULKHEAD_RUN_DIR", longest, 1);
    CHECK_EQ(bh_governor_address(&at, &err), BH_INVALID);
    CHECK(strstr(err.msg, "too long a name"));
    CHECK_EQ(bh_governor_connect(&fd, &err), BH_INVALID);
    CHECK(fd == -1 && !bh_governor_look().is_there);
    (void)unsetenv("BULKHEAD_RUN_DIR");
}

TEST(one_whose_queue_is_full_is_not_waited_for)
{
    struct sockaddr_un at;
    int fds[3] = {-1, -1, -1}, fd = -1;
    begin_folder();
    CHECK_EQ(bh_governor_address(&at, &err), BH_OK);
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK(bind(s, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(s, 0) == 0);
    for (size_t i = 0; i < 3; i++) {
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fds[i], (const struct sockaddr *)&at, sizeof(at));
    }
    CHECK_EQ(bh_governor_connect_until(bh_warden_now_ms() + 30, &fd, &err), BH_BUSY);
    CHECK(fd == -1 && strstr(err.msg, "does not answer"));
    CHECK_EQ(bh_warden_left_ms(bh_warden_now_ms() - 1), 0);
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
    close(s);
    end();
}

TEST_MAIN
