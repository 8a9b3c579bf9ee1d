/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net_run.h"

#include "base/test.h"

static struct bh_err err;

static int run(const char *const *argv, const char *input, struct bh_buf *out)
{
    return bh_run_tool(&(struct bh_run){.argv = argv, .input = input, .netns = -1, .out = out}, &err);
}

TEST(input_and_output)
{
    struct bh_buf out;
    bh_buf_init(&out, 1 << 20);
    CHECK_EQ(run((const char *const[]){"cat", NULL}, "some\nwords\n", &out), BH_OK);
    CHECK_STR(bh_buf_text(&out), "some\nwords\n");
    bh_buf_fini(&out);
    /* more than any pipe holds: nobody waits for anybody */
    char *big = calloc(1, (1 << 19) + 1);
    CHECK(big);
    memset(big, 'x', 1 << 19);
    bh_buf_init(&out, 1 << 20);
    CHECK_EQ(run((const char *const[]){"cat", NULL}, big, &out), BH_OK);
    CHECK_EQ(out.n, 1 << 19);
    bh_buf_fini(&out);
    free(big);
}

TEST(nothing_is_inherited)
{
    struct bh_buf out;
    (void)setenv("BULKHEAD_SECRET", "x", 1);
    bh_buf_init(&out, 1 << 16);
    CHECK_EQ(run((const char *const[]){"env", NULL}, NULL, &out), BH_OK);
    CHECK_STR(bh_buf_text(&out), "PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\n");
    bh_buf_fini(&out);
}

TEST(failures)
{
    CHECK_EQ(run((const char *const[]){"no-such-tool", NULL}, NULL, NULL), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "no-such-tool is not installed"));
    CHECK_EQ(run((const char *const[]){"ls", "/no-such-file", NULL}, NULL, NULL), BH_SYSTEM);
    CHECK(strstr(err.msg, "`ls /no-such-file` failed: ls: cannot access") && !strchr(err.msg, '\n'));
    CHECK_EQ(run((const char *const[]){"../bin/ls", "-d", "/", NULL}, NULL, NULL),
             BH_OK); /* a name, whoever wrote it is us */
}

TEST_MAIN
