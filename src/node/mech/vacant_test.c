/* SPDX-License-Identifier: Apache-2.0 */
#include "node/mech/vacant.h"

#include "base/test.h"
#include "base/units.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* 80 GiB, of which the driver keeps one; nobody is there. */
static struct bh_gpu_device card(void)
{
    return (struct bh_gpu_device){.alive = true,
                                  .minor = -1,
                                  .total_bytes = {80 * BH_GIB, NULL},
                                  .used_bytes = {4 * BH_MIB, NULL},
                                  .reserved_bytes = {1 * BH_GIB, NULL}};
}

static void put(struct bh_gpu_device *g, uint32_t pid, uint32_t gi, const char *name)
{
    *bh_vec_push(&g->processes) = (struct bh_gpu_process){.pid = pid, .gi = gi, .ci = gi, .name = name};
}

TEST(nobody)
{
    const struct bh_gpu_device g = card();
    struct bh_vacant v;
    bh_vacant_judge(&g, NULL, &v);
    CHECK(v.vacant);
    CHECK_STR(v.words, "");
    CHECK_EQ(v.usable_bytes, 79 * BH_GIB);
    CHECK_EQ(v.free_bytes, 79 * BH_GIB - 4 * BH_MIB);
}

TEST(one_that_holds_little_is_somebody)
{
    struct bh_gpu_device g = card();
    struct bh_vacant v;
    put(&g, 4711, BH_NO_ID, "python");
    bh_vacant_judge(&g, NULL, &v);
    CHECK(!v.vacant);
    CHECK_STR(v.words, "process 4711 (python) is on it");
    for (uint32_t i = 0; i < 9; i++)
        put(&g, 5000 + i, BH_NO_ID, NULL);
    bh_vacant_judge(&g, NULL, &v);
    CHECK(!v.vacant && strstr(v.words, "5000 (unknown)") && strstr(v.words, " and others is on it"));
    bh_vec_fini(&g.processes);
}

TEST(what_is_in_use_by_nobody_that_is_named)
{
    struct bh_gpu_device g = card();
    struct bh_vacant v;
    g.used_bytes.v = 300 * BH_MIB;
    bh_vacant_judge(&g, NULL, &v);
    CHECK(!v.vacant);
    CHECK_STR(v.words, "300 MiB of it are in use, and the driver names nobody");
    /* An older driver has its reserve in there. */
    g.reserved_bytes = (struct bh_reading){0, "not supported"};
    g.used_bytes.v = 1 * BH_GIB;
    bh_vacant_judge(&g, NULL, &v);
    CHECK(v.vacant);
}

TEST(what_is_not_known_is_not_nobody)
{
    struct bh_gpu_device g = card();
    struct bh_vacant v;
    g.processes_seen.why = "no permission";
    bh_vacant_judge(&g, NULL, &v);
    CHECK(!v.vacant);
    CHECK_STR(v.words, "the driver does not say who is on it: no permission");
    g = card();
    g.used_bytes = (struct bh_reading){0, "lost"};
    bh_vacant_judge(&g, NULL, &v);
    CHECK(!v.vacant && strstr(v.words, "lost"));
}

TEST(an_instance_and_its_neighbour)
{
    struct bh_gpu_device g = card();
    const struct bh_gpu_instance part = {
        .gi = 3, .total_bytes = {20 * BH_GIB, NULL}, .used_bytes = {20 * BH_MIB, NULL}};
    struct bh_vacant v;
    g.used_bytes.v = 50 * BH_GIB;
    put(&g, 4711, 4, "neighbour");
    bh_vacant_judge(&g, &part, &v);
    CHECK(v.vacant);
    CHECK_EQ(v.usable_bytes, 20 * BH_GIB);
    put(&g, 4712, 3, "mine");
    bh_vacant_judge(&g, &part, &v);
    CHECK_STR(v.words, "process 4712 (mine) is on it");
    g.processes.n = 1;
    put(&g, 4713, BH_NO_ID, "all");
    bh_vacant_judge(&g, &part, &v);
    CHECK_STR(v.words, "process 4713 (all) is on it");
    bh_vec_fini(&g.processes);
}

TEST(how_much_was_looked_at)
{
    const struct bh_vacant before = {
        .vacant = true, .usable_bytes = 79 * BH_GIB, .free_bytes = 79 * BH_GIB - 4 * BH_MIB};
    char words[160];
    CHECK(bh_vacant_covered(&before, 79 * BH_GIB - 600 * BH_MIB, words, sizeof(words)));
    CHECK_STR(words, "99.2 % of the 80896 MiB that can be used");
    /* Four gibibytes that somebody has are less than a tenth of the card. */
    CHECK(!bh_vacant_covered(&before, 75 * BH_GIB, words, sizeof(words)));
    CHECK_STR(words,
              "94.9 % of the 80896 MiB that can be used were to be had, and nobody is said to have the rest");
}

TEST(who_has_a_device_open)
{
    char words[160];
    struct stat st;
    int ends[2];
    char c;
    CHECK_EQ(stat("/dev/full", &st), 0);
    CHECK_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        const bool opened = open("/dev/full", O_RDONLY) >= 0;
        _exit(opened && write(ends[1], "x", 1) == 1 && pause() ? 0 : 1);
    }
    CHECK(pid > 0 && read(ends[0], &c, 1) == 1);
    char mine[40];
    (void)snprintf(mine, sizeof(mine), "%d (test-node-vac", (int)pid);
    CHECK(bh_vacant_holders("/proc", (uint64_t)st.st_rdev, words, sizeof(words)) >= 1);
    CHECK(strstr(words, mine) != NULL);
    (void)kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    (void)bh_vacant_holders("/proc", (uint64_t)st.st_rdev, words, sizeof(words));
    CHECK(strstr(words, mine) == NULL);
    CHECK_EQ(bh_vacant_holders("/nowhere", (uint64_t)st.st_rdev, words, sizeof(words)), 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_MAIN
