/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/file.h"

#include "base/test.h"
#include "conf/file_fixture.h"

#include <sys/stat.h>

static struct bh_file_fixture fx;

TEST(a_file_whole)
{
    struct bh_err err;
    char *text;
    size_t n;
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "a.yaml", "hello\n");
    CHECK_EQ(bh_file_read(bh_file_fixture_path(&fx, "a.yaml"), 100, &text, &n, &err), 0);
    CHECK_EQ(n, 6);
    CHECK_STR(text, "hello\n");
    free(text);
    CHECK_EQ(bh_file_read(bh_file_fixture_path(&fx, "a.yaml"), 6, &text, &n, &err), 0);
    free(text);
    CHECK_EQ(bh_file_read(bh_file_fixture_path(&fx, "a.yaml"), 5, &text, &n, &err), BH_TOO_LARGE);
    CHECK_EQ(bh_file_read("/dev/zero", 1 << 20, &text, &n, &err), BH_TOO_LARGE);
    CHECK(strstr(err.msg, "larger than 1 MiB"));
    CHECK_EQ(bh_file_read("/dev/null", 10, &text, &n, &err), 0);
    CHECK_EQ(n, 0);
    CHECK_STR(text, "");
    free(text);
    CHECK_EQ(bh_file_read(bh_file_fixture_path(&fx, "none"), 10, &text, &n, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "No such file"));
    CHECK_EQ(bh_file_read(bh_file_fixture_path(&fx, "."), 10, &text, &n, &err), BH_SYSTEM);
    bh_file_fixture_fini(&fx);
}

TEST(standard_input)
{
    struct bh_err err;
    char *text;
    size_t n;
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "in", "from a pipe");
    CHECK(freopen(bh_file_fixture_path(&fx, "in"), "rb", stdin) != NULL);
    CHECK_EQ(bh_file_read("-", 100, &text, &n, &err), 0);
    CHECK_STR(text, "from a pipe");
    free(text);
    bh_file_fixture_fini(&fx);
}

TEST(a_folder_in_order)
{
    struct bh_err err;
    struct bh_arena a = {0};
    bh_listed_vec paths = {0};
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "b.yml", "");
    bh_file_fixture_put(&fx, "a.yaml", "");
    bh_file_fixture_put(&fx, "c.json", "");
    bh_file_fixture_put(&fx, "readme.md", "");
    bh_file_fixture_put(&fx, ".hidden.yaml", "");
    bh_file_fixture_put(&fx, "sub/slurm.conf", "");
    bh_file_fixture_put(&fx, "sub/deep/z.yaml", "");
    bh_file_fixture_put(&fx, ".git/x.yaml", "");
    CHECK_EQ(symlink("..", bh_file_fixture_path(&fx, "sub/back")), 0);
    CHECK_EQ(symlink("loop", bh_file_fixture_path(&fx, "loop")), 0);
    CHECK_EQ(symlink("nowhere", bh_file_fixture_path(&fx, "gone.yaml")), 0);
    CHECK_EQ(symlink("a.yaml", bh_file_fixture_path(&fx, "link.yaml")), 0);
    CHECK_EQ(mkfifo(bh_file_fixture_path(&fx, "pipe.yaml"), 0600), 0);
    CHECK_EQ(mkfifo(bh_file_fixture_path(&fx, "pipe"), 0600), 0);
    CHECK(bh_file_is_folder(fx.root));
    CHECK(!bh_file_is_folder(bh_file_fixture_path(&fx, "a.yaml")));
    CHECK_EQ(bh_file_list(&a, fx.root, &paths, &err), 0);
    static const struct bh_listed want[] = {
        {"/a.yaml", NULL},          {"/b.yml", NULL},
        {"/c.json", NULL},          {"/gone.yaml", "a link to nowhere"},
        {"/link.yaml", NULL},       {"/pipe.yaml", "no regular file"},
        {"/sub/deep/z.yaml", NULL}, {"/sub/slurm.conf", NULL},
    };
    CHECK_EQ(paths.n, BH_COUNT_OF(want));
    for (size_t i = 0; i < paths.n; i++) {
        CHECK_STR(paths.at[i].path + strlen(fx.root), want[i].path);
        CHECK_EQ(paths.at[i].odd == NULL, want[i].odd == NULL);
        if (want[i].odd)
            CHECK_STR(paths.at[i].odd, want[i].odd);
    }
    CHECK_EQ(bh_file_list(&a, bh_file_fixture_path(&fx, "none"), &paths, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_file_list(&a, bh_file_fixture_path(&fx, "a.yaml"), &paths, &err), BH_SYSTEM);
    bh_vec_fini(&paths);
    bh_arena_fini(&a);
    bh_file_fixture_fini(&fx);
}

TEST_MAIN
