/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/load.h"

#include <fcntl.h>
#include <unistd.h>

/* Load one file with this text, standard error put into `said`. */
static int load(const char *text, char *said, size_t n)
{
    char path[] = "/tmp/bh-load-XXXXXX.yaml", talk[] = "/tmp/bh-load-XXXXXX";
    const char *operands[1] = {path};
    struct bh_cli cli = {.operands = operands, .n_operands = 1};
    struct bh_input in = {0};
    int fd = mkstemps(path, 5), err = mkstemp(talk), keep = dup(STDERR_FILENO);
    if (fd < 0 || err < 0 || keep < 0 || write(fd, text, strlen(text)) < 0)
        abort();
    fflush(stderr);
    dup2(err, STDERR_FILENO);
    int status = bh_cli_load(&cli, &in, NULL);
    fflush(stderr);
    dup2(keep, STDERR_FILENO);
    ssize_t got = pread(err, said, n - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    bh_input_fini(&in);
    close(fd);
    close(err);
    close(keep);
    unlink(path);
    unlink(talk);
    return status;
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
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
    char folder[] = "/tmp/bh-load-XXXXXX", good[64], bad[64];
    const char *operands[1] = {folder};
    struct bh_cli cli = {.operands = operands, .n_operands = 1};
    struct bh_input in = {0};
    CHECK(mkdtemp(folder));
    (void)snprintf(good, sizeof(good), "%s/a.yaml", folder);
    (void)snprintf(bad, sizeof(bad), "%s/b.yaml", folder);
    put(good, "bulkhead: 1\ntenants:\n  - name: acme\n");
    put(bad, "a: [\n");
    CHECK_EQ(bh_cli_load(&cli, &in, NULL), BH_EXIT_OK);
    CHECK_EQ(in.n_set_aside, 1);
    CHECK_EQ(in.units.n, 1);
    bh_input_fini(&in);
    unlink(good);
    CHECK_EQ(bh_cli_load(&cli, &in, NULL), BH_EXIT_UNREADABLE);
    bh_input_fini(&in);
    unlink(bad);
    rmdir(folder);
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
