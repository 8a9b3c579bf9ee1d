/* SPDX-License-Identifier: Apache-2.0 */
/* durable_test.c - a file is the old one or the new one. */
#include "launch/durable.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(there_and_back)
{
    char path[PATH_MAX];
    struct bh_err err;
    char *text = NULL;
    size_t n = 0;
    CHECK(bh_scratch_make(path, sizeof(path), "durable"));
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(bh_durable_read(dir, "f", 10, &text, &n, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_durable_place(dir, "f", "one", 3, &err), BH_OK);
    CHECK_EQ(faccessat(dir, "f.new", F_OK, 0), -1);
    CHECK_EQ(bh_durable_read(dir, "f", 3, &text, &n, &err), BH_OK);
    CHECK_STR(text, "one");
    free(text);
    CHECK_EQ(bh_durable_write(dir, "f", "three", 5, &err), BH_OK);
    CHECK_EQ(bh_durable_read(dir, "f", 5, &text, &n, &err), BH_OK);
    CHECK_EQ(n, 5);
    CHECK_STR(text, "three");
    free(text);
    CHECK_EQ(bh_durable_read(dir, "f", 4, &text, &n, &err), BH_TOO_LARGE);
    CHECK_EQ(faccessat(dir, "f.new", F_OK, 0), -1);
    CHECK_EQ(bh_durable_create(dir, "f", "four", 4, &err), BH_CONFLICT);
    CHECK_EQ(bh_durable_read(dir, "f", 5, &text, &n, &err), BH_OK);
    CHECK_STR(text, "three");
    free(text);
    CHECK_EQ(unlinkat(dir, "f", 0), 0);
    CHECK_EQ(bh_durable_create(dir, "f", "four", 4, &err), BH_OK);
    CHECK_EQ(faccessat(dir, "f.new", F_OK, 0), -1);
    CHECK_EQ(mkdirat(dir, "d", 0700), 0);
    CHECK_EQ(mkdirat(dir, "d/x", 0700), 0);
    CHECK_EQ(bh_durable_write(dir, "d", "one", 3, &err), BH_SYSTEM);
    CHECK_EQ(faccessat(dir, "d.new", F_OK, 0), -1);
    CHECK_EQ(bh_durable_read(dir, "d", 4, &text, &n, &err), BH_INVALID);
    close(dir);
    CHECK(bh_scratch_remove(path));
}

TEST_MAIN
