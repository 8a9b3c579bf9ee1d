/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probe_parse.h"

#include "base/test.h"

static bool is(struct bh_span s, const char *text)
{
    return s.at && s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

TEST(pairs_of_lines)
{
    const char text[] = "# made by hand\nGresTypes=gpu\n\nno pair\n =x\n"
                        "NodeName=n1 CPUs=8";
    struct bh_span k, v;
    size_t pos = 0;
    CHECK(bh_pairs_next(text, &pos, &k, &v) && is(k, "GresTypes") && is(v, "gpu"));
    CHECK(bh_pairs_next(text, &pos, &k, &v) && is(v, "n1 CPUs=8"));
    CHECK(!bh_pairs_next(text, &pos, &k, &v));
    CHECK_EQ(pos, sizeof(text) - 1);
}

TEST(the_last_line_counts_and_comments_do_not)
{
    const char text[] = "ConstrainDevices=no\n#ConstrainDevices=maybe\n  constraindevices = yes # at last\n";
    CHECK(is(bh_pairs_find(text, "ConstrainDevices"), "yes"));
    CHECK(bh_pairs_find(text, "Constrain").at == NULL);
    CHECK(is(bh_pairs_find("a = \"b # c\" # d\n", "a"), "b # c"));
    CHECK(is(bh_pairs_find("a='x'", "A"), "x"));
    CHECK(is(bh_pairs_find("a=\"", "a"), "\""));
    CHECK(is(bh_pairs_find("a=", "a"), ""));
}

TEST(lists_and_yes)
{
    CHECK(bh_span_lists(bh_pairs_find("TaskPlugin=task/affinity, Task/Cgroup", "taskplugin"), "task/cgroup"));
    CHECK(!bh_span_lists(bh_pairs_find("TaskPlugin=task/cgroups,", "taskplugin"), "task/cgroup"));
    CHECK(!bh_span_lists((struct bh_span){NULL, 0}, "x"));
    CHECK(bh_span_yes((struct bh_span){"YES", 3}) && bh_span_yes((struct bh_span){"1", 1}));
    CHECK(!bh_span_yes((struct bh_span){"no", 2}) && !bh_span_yes((struct bh_span){NULL, 0}));
}

TEST(memory)
{
    uint64_t v = 7;
    CHECK(bh_meminfo_bytes("Mem: 1 kB\nMemTotal:       24689234 kB\n", "MemTotal", &v));
    CHECK_EQ(v, UINT64_C(24689234) * 1024);
    CHECK(!bh_meminfo_bytes("MemTotal: x kB\n", "MemTotal", &v));
    CHECK(!bh_meminfo_bytes("MemTotal: 5 pages\n", "MemTotal", &v));
    CHECK(!bh_meminfo_bytes("MemTotal: 99999999999999999999 kB\n", "MemTotal", &v));
    CHECK(!bh_meminfo_bytes("", "MemTotal", &v));
}

TEST(json_flags)
{
    CHECK(bh_json_says_true("{\"features\": {\"cdi\" :\n true}}", "cdi"));
    CHECK(!bh_json_says_true("{\"cdi\": false, \"x\": \"cdi\"}", "cdi"));
    CHECK(!bh_json_says_true("\"cdi", "cdi"));
}

TEST(device_nodes_of_a_spec)
{
    bool set[BH_NODE_MINORS_MAX] = {false};
    CHECK_EQ(bh_nvidia_minors("/dev/nvidia0 /dev/nvidia12\n/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm "
                              "/dev/nvidia99999 /dev/nvidia256 /dev/nvidia",
                              set),
             2);
    CHECK(set[0] && set[12] && !set[99]);
}

TEST_MAIN
