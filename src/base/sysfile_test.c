/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sysfile.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[BH_SCRATCH_PATH];

static void put(const char *name, const char *text, size_t n)
{
    CHECK(bh_scratch_put_bytes(root, name, text, n));
}

TEST(files_are_looked_up_below_the_root)
{
    BH_AUTOFREE char *text = NULL;
    size_t n;
    CHECK_STR(bh_sysroot(), "");
    CHECK(bh_scratch_root(root, sizeof(root), "sysfile"));
    CHECK_STR(bh_sysroot(), root);
    put("/a", "one\0two", 7);
    CHECK_EQ(bh_sysfile_read("/a", 100, &text, &n, NULL), BH_OK);
    CHECK_EQ(n, 7);
    CHECK(memcmp(text, "one\0two", 8) == 0);
    CHECK(bh_sysfile_exists("/a") && !bh_sysfile_exists("/b"));
}

TEST(lines_lose_their_blanks)
{
    static const struct {
        const char *text, *line;
    } table[] = {
        {"580.1\n", "580.1"}, {"  x y \t\nnext", "x y"}, {"", ""},
        {"\n\nlate", ""},     {"0123456789", "0123456"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        char buf[8];
        put("/line", table[i].text, strlen(table[i].text));
        CHECK_EQ(bh_sysfile_line("/line", buf, sizeof(buf), NULL), BH_OK);
        CHECK_STR(buf, table[i].line);
    }
}

TEST(what_cannot_be_read_is_said)
{
    struct bh_err err = {0};
    char *text = NULL, *path = bh_alloc(BH_SYSPATH_MAX + 2, 1), buf[BH_SYSPATH_MAX];
    CHECK_EQ(bh_sysfile_read("/none", 10, &text, NULL, &err), BH_NOT_FOUND);
    CHECK_STR(err.msg, "/none: No such file or directory");
    CHECK_EQ(bh_sysfile_read("/", 10, &text, NULL, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "/: not a file");
    put("/big", "0123456789a", 11);
    CHECK_EQ(bh_sysfile_read("/big", 10, &text, NULL, &err), BH_TOO_LARGE);
    memset(path, 'x', BH_SYSPATH_MAX);
    CHECK_EQ(bh_sysfile_read(path, 10, &text, NULL, &err), BH_TOO_LARGE);
    free(path);
    CHECK(bh_syspath(buf, "/pipe") && mkfifo(buf, 0600) == 0);
    CHECK_EQ(bh_sysfile_read("/pipe", 10, &text, NULL, &err), BH_SYSTEM);
    CHECK(text == NULL);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
