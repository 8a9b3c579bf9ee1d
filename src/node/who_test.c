/* SPDX-License-Identifier: Apache-2.0 */
#include "node/who.h"

#include "base/scratch.h"
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static void put(const char *file, const char *text)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "42/%s", file);
    CHECK(bh_scratch_put(folder, name, text));
}

static void begin(void)
{
    CHECK(bh_scratch_make(folder, sizeof(folder), "who"));
    put("stat", "42 (a) b) R 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3\n");
    put("status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t0\n");
    put("cgroup", "0::/user.slice\n");
}

TEST(a_stranger)
{
    struct bh_who w;
    begin();
    CHECK(bh_who_read(folder, 42, "bulkhead", &w));
    CHECK_STR(w.name, "a) b");
    CHECK_EQ(w.began, 987654);
    CHECK_EQ(w.uid, 1000);
    CHECK(!w.root && !w.ours && !w.lease && !w.server);
    CHECK(!bh_who_read(folder, 43, "bulkhead", &w)); /* gone */
    put("stat", "42 no name\n");
    CHECK(!bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(bh_scratch_remove(folder));
}

TEST(whose_cgroup)
{
    static const struct {
        const char *text;
        uint64_t lease, server;
    } cases[] = {{"4:devices:/bulkhead/L17\n1:name=systemd:/x\n", 17, 0},
                 {"0::/system.slice/bulkheadd.service/bulkhead/L5/inner", 5, 0},
                 {"0::/bulkhead/M3\n", 0, 3},
                 {"0::/bulkhead/L17x\n0::/bulkhead/L\n0::/bulkhead/L18446744073709551616\n", 0, 0},
                 {"0::/mybulkhead/L17\n", 0, 0},
                 {"0::/bulkhead/keeper\n", 0, 0}};
    struct bh_who w;
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        put("cgroup", cases[i].text);
        CHECK(bh_who_read(folder, 42, "bulkhead", &w));
        CHECK_EQ(w.lease, cases[i].lease);
        CHECK_EQ(w.server, cases[i].server);
    }
    CHECK(bh_scratch_remove(folder));
}

TEST(root_in_every_respect)
{
    char path[320];
    struct bh_who w;
    begin();
    (void)snprintf(path, sizeof(path), "%s/42/exe", folder);
    CHECK_EQ(symlink("/usr/libexec/bulkhead/bulkhead-scrub", path), 0);
    CHECK(bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(!w.root && !w.ours); /* anybody can call a program so */
    put("status", "Name:\tx\nUid:\t1000\t0\t0\t0\n");
    CHECK(bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(!w.root && !w.ours && w.uid == 1000);
    put("status", "Name:\tx\nUid:\t0\t0\t0\t0\n");
    CHECK(bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(w.root && w.ours);
    put("cgroup", "0::/bulkhead/L1\n");
    CHECK(bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(w.root && !w.ours);
    put("status", "Name:\tx\n");
    CHECK(!bh_who_read(folder, 42, "bulkhead", &w));
    CHECK(bh_scratch_remove(folder));
}

TEST(the_rule)
{
    static const struct {
        struct bh_who_case c;
        enum bh_who_act act;
    } cases[] = {
        {{.here = true, .of_lease = true, .reachable = true, .seen_before = true}, BH_WHO_FINE},
        {{.ours = true, .root = true, .seen_before = true}, BH_WHO_FINE},
        {{.reachable = true}, BH_WHO_WAIT},
        {{.of_lease = true, .reachable = true}, BH_WHO_WAIT},
        {{.reachable = true, .seen_before = true}, BH_WHO_STOP},
        {{.reachable = true, .seen_before = true, .given = true}, BH_WHO_STOP},
        {{.reachable = true, .seen_before = true, .was_there = true}, BH_WHO_LEAVE},
        {{.reachable = true, .seen_before = true, .was_there = true, .given = true}, BH_WHO_STOP},
        {{.reachable = true, .seen_before = true, .root = true, .given = true}, BH_WHO_LEAVE},
        /* One of a lease without this card, or of one that is over, is stopped whoever it runs as. */
        {{.of_lease = true, .reachable = true, .seen_before = true, .root = true, .was_there = true},
         BH_WHO_STOP},
        {{.of_lease = true, .seen_before = true}, BH_WHO_LEAVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_EQ(bh_who_judge(&cases[i].c), cases[i].act);
}

TEST_MAIN
