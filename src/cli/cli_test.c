/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

TEST(output_goes_out_whole)
{
    int fds[2];
    char got[16] = "";
    struct bh_cli cli = {0};
    CHECK_EQ(pipe(fds), 0);
    bh_buf_init(&cli.out, 64);
    bh_buf_str(&cli.out, "hello\n");
    int rc = bh_cli_flush(&cli, fds[1], NULL);
    ssize_t n = read(fds[0], got, sizeof(got) - 1);
    close(fds[0]);
    close(fds[1]);
    bh_buf_fini(&cli.out);
    CHECK_EQ(rc, 0);
    CHECK_EQ(n, 6);
    CHECK_STR(got, "hello\n");
}

TEST(a_reader_that_left_is_no_failure)
{
    int fds[2];
    struct bh_cli cli = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(pipe(fds), 0);
    close(fds[0]);
    bh_buf_init(&cli.out, 64);
    bh_buf_str(&cli.out, "hello\n");
    int rc = bh_cli_flush(&cli, fds[1], NULL);
    close(fds[1]);
    bh_buf_fini(&cli.out);
    CHECK_EQ(rc, 0);
}

TEST(a_full_disk_is_one)
{
    struct bh_cli cli = {0};
    struct bh_err err;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bh_buf_init(&cli.out, 64);
    bh_buf_str(&cli.out, "hello\n");
    int rc = bh_cli_flush(&cli, fd, &err);
    close(fd);
    bh_buf_fini(&cli.out);
    CHECK_EQ(rc, BH_SYSTEM);
    CHECK_EQ(bh_code_exit(rc), 70);
}

TEST(output_past_its_maximum_is_refused_not_cut)
{
    struct bh_cli cli = {0};
    struct bh_err err;
    bh_buf_init(&cli.out, 4);
    bh_buf_str(&cli.out, "hello\n");
    int rc = bh_cli_flush(&cli, -1, &err);
    bh_buf_fini(&cli.out);
    CHECK_EQ(rc, BH_TOO_LARGE);
}

TEST(formats_are_asked_by_place)
{
    struct bh_cli cli = {.value = {NULL, "json"}};
    CHECK(bh_cli_wants(&cli, 1, "json"));
    CHECK(!bh_cli_wants(&cli, 1, "sarif"));
    CHECK(!bh_cli_wants(&cli, 0, "json"));
}

TEST(hints_are_whole_or_absent)
{
    struct bh_cli cli = {0};
    char longer[1100];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    bh_buf_init(&cli.hint, 4096);
    bh_cli_next(&cli, "bulkhead lint %s", longer);
    bool none = cli.hint.n == 0;
    bh_cli_next(&cli, "bulkhead lint %s", "a.yaml");
    bool one = strcmp(bh_buf_text(&cli.hint), "next: bulkhead lint a.yaml\n") == 0;
    bh_buf_fini(&cli.hint);
    CHECK(none);
    CHECK(one);
}

TEST_MAIN
