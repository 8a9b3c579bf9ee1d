/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"
#include "base/test.h"
#include "cli/load.h"

#include <fcntl.h>
#include <unistd.h>

/* Load one file with this text, standard error put into `said`. */
static int load(const char *text, char *said, size_t n)
{
    char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8], talk[BH_SCRATCH_PATH + 8];
    const char *operands[1] = {path};
    struct bh_cli cli = {.operands = operands, .n_operands = 1};
    struct bh_input in = {0};
    if (!bh_scratch_make(folder, sizeof(folder), "load") || !bh_scratch_put(folder, "p.yaml", text))
        abort();
    (void)snprintf(path, sizeof(path), "%s/p.yaml", folder);
    (void)snprintf(talk, sizeof(talk), "%s/said", folder);
    const int err = open(talk, O_RDWR | O_CREAT | O_CLOEXEC, 0600), keep = dup(STDERR_FILENO);
    if (err < 0 || keep < 0)
        abort();
    fflush(stderr);
    dup2(err, STDERR_FILENO);
    int status = bh_cli_load(&cli, &in, NULL);
    fflush(stderr);
    dup2(keep, STDERR_FILENO);
    ssize_t got = pread(err, said, n - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    bh_input_fini(&in);
    close(err);
    close(keep);
    (void)bh_scratch_remove(folder);
    return status;
}

TEST(a_good_policy_loads_quietly)
{
    char said[2048];
    CHECK_EQ(load("bulkhead: 1\ntenants:\n  - name: acme\n", said, sizeof(said)), BH_EXIT_OK);
    CHECK_STR(said, "");
}

TEST(every_mistake_is_said_with_its_place)
{
    char said[2048];
    CHECK_EQ(load("bulkhead: 1\ntenats: []\npoools: []\n", said, sizeof(said)), BH_EXIT_UNREADABLE);
    CHECK(strstr(said, ".yaml:2:1: "));
    CHECK(strstr(said, ".yaml:3:1: "));
    CHECK(strstr(said, "bulkhead: 2 mistakes; nothing was judged\n"));
}

TEST(a_fleet_alone_is_nothing_to_judge)
{
    char said[2048];
    CHECK_EQ(load("bulkhead: 1\nnodes: []\n", said, sizeof(said)), BH_EXIT_UNREADABLE);
    CHECK(strstr(said, "nothing to judge"));
}

TEST(a_mistake_in_a_folder_leaves_the_rest)
{
    char folder[BH_SCRATCH_PATH], good[BH_SCRATCH_PATH + 8];
    const char *operands[1] = {folder};
    struct bh_cli cli = {.operands = operands, .n_operands = 1};
    struct bh_input in = {0};
    CHECK(bh_scratch_make(folder, sizeof(folder), "load"));
    CHECK(bh_scratch_put(folder, "a.yaml", "bulkhead: 1\ntenants:\n  - name: acme\n"));
    CHECK(bh_scratch_put(folder, "b.yaml", "a: [\n"));
    CHECK_EQ(bh_cli_load(&cli, &in, NULL), BH_EXIT_OK);
    CHECK_EQ(in.n_set_aside, 1);
    CHECK_EQ(in.units.n, 1);
    bh_input_fini(&in);
    (void)snprintf(good, sizeof(good), "%s/a.yaml", folder);
    CHECK_EQ(unlink(good), 0);
    CHECK_EQ(bh_cli_load(&cli, &in, NULL), BH_EXIT_UNREADABLE);
    bh_input_fini(&in);
    CHECK(bh_scratch_remove(folder));
}

TEST(a_path_that_is_not_there_is_unreadable)
{
    const char *operands[1] = {"/nonexistent/policy.yaml"};
    struct bh_cli cli = {.operands = operands, .n_operands = 1};
    struct bh_input in = {0};
    int status = bh_cli_load(&cli, &in, NULL);
    bh_input_fini(&in);
    CHECK_EQ(status, BH_EXIT_UNREADABLE);
}

TEST(places_say_as_much_as_there_is)
{
    const char *files[1] = {"a.yaml"};
    struct bh_input in = {0};
    struct bh_buf b;
    in.files.at = files;
    in.files.n = 1;
    bh_buf_init(&b, 256);
    bh_text_place(&b, &in, (struct bh_pos){0, 3, 4});
    bh_text_place(&b, &in, (struct bh_pos){0, 0, 0});
    char got[64];
    (void)snprintf(got, sizeof(got), "%s", bh_buf_text(&b));
    bh_buf_fini(&b);
    CHECK_STR(got, "a.yaml:3:4: a.yaml: ");
}

TEST_MAIN
