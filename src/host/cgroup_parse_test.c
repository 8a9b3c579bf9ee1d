/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_parse_test.c - mounts and counters from text; a device program run by a small interpreter. */
#include "host/cgroup_parse.h"

#include "base/mem.h"
#include "base/test.h"

TEST(mounts_of_both_versions)
{
    static const char text[] =
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:7 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
        "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
        "41 31 0:38 / /mnt/with\\040blank\\134 rw - cgroup2 cgroup2 rw,nsdelegate\n"
        "42 31 0:39 / /cut rw -";
    struct bh_cgroup_mount m;
    size_t pos = 0;
    CHECK(bh_cgroup_next_mount(text, &pos, &m));
    CHECK_STR(m.path, "/sys/fs/cgroup/cpu,cpuacct");
    CHECK_EQ(m.controllers, BH_CGROUP_CPU);
    CHECK(!m.unified);
    CHECK(bh_cgroup_next_mount(text, &pos, &m));
    CHECK_EQ(m.controllers, 0);
    CHECK(bh_cgroup_next_mount(text, &pos, &m));
    CHECK(m.unified);
    CHECK_STR(m.path, "/mnt/with blank\\");
    CHECK(!bh_cgroup_next_mount(text, &pos, &m));
    CHECK(!bh_cgroup_next_mount(text, &pos, &m));
}

TEST(controllers_are_whole_words)
{
    CHECK_EQ(bh_cgroup_controllers("cpuset cpu io memory hugetlb pids rdma misc\n"),
             BH_CGROUP_CPUSET | BH_CGROUP_CPU | BH_CGROUP_IO | BH_CGROUP_MEMORY | BH_CGROUP_PIDS);
    CHECK_EQ(bh_cgroup_controllers("rw,blkio"), BH_CGROUP_IO);
    CHECK_EQ(bh_cgroup_controllers("rw,cpuacct,memoryx"), 0);
    CHECK_EQ(bh_cgroup_controllers(""), 0);
}

TEST(fields)
{
    uint64_t v = 0;
    CHECK(bh_cgroup_field("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill", &v));
    CHECK_EQ(v, 3);
    CHECK(!bh_cgroup_field("oom_kill_disable 0\n", "oom_kill", &v));
    CHECK(!bh_cgroup_field("oom_kill x\n", "oom_kill", &v));
    CHECK(!bh_cgroup_field("", "oom_kill", &v));
}

TEST(names)
{
    static const char *const good[] = {"bulkhead", "bulkhead/L17", "a/b.c/d_e-f"};
    static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.b", "a b", "a\n"};
    char longest[BH_CGROUP_NAME_MAX + 1];
    for (size_t i = 0; i < BH_COUNT_OF(good); i++)
        CHECK(bh_cgroup_name_valid(good[i]));
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK(!bh_cgroup_name_valid(bad[i]));
    memset(longest, 'a', BH_CGROUP_NAME_MAX);
    longest[BH_CGROUP_NAME_MAX] = '\0';
    CHECK(!bh_cgroup_name_valid(longest));
    longest[BH_CGROUP_NAME_MAX - 1] = '\0';
    CHECK(bh_cgroup_name_valid(longest));
}

TEST(rules_of_version_1)
{
    struct bh_cgroup_rule r;
    CHECK_STR(bh_cgroup_device_rule(&(struct bh_keeper_device){195, 0}, &r), "c 195:0 rw");
    CHECK_STR(bh_cgroup_device_rule(&(struct bh_keeper_device){136, UINT32_MAX}, &r), "c 136:* rw");
}

/* What the kernel would answer; -1: an instruction that the program should not have. */
static int run(const struct bpf_insn *p, size_t n, const uint32_t context[3])
{
    uint64_t r[11] = {0};
    for (size_t at = 0, steps = 0; at < n && steps < 100000; at++, steps++) {
        const struct bpf_insn *i = &p[at];
        switch (i->code) {
        case BPF_LDX | BPF_W | BPF_MEM:
            r[i->dst_reg] = context[i->off / 4];
            break;
        case BPF_ALU64 | BPF_MOV | BPF_X:
            r[i->dst_reg] = r[i->src_reg];
            break;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            r[i->dst_reg] = (uint64_t)(int64_t)i->imm;
            break;
        case BPF_ALU64 | BPF_AND | BPF_K:
            r[i->dst_reg] &= (uint64_t)(int64_t)i->imm;
            break;
        case BPF_ALU64 | BPF_RSH | BPF_K:
            r[i->dst_reg] >>= i->imm;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += r[i->dst_reg] == (uint64_t)(int64_t)i->imm ? (size_t)i->off : 0;
            break;
        case BPF_JMP32 | BPF_JNE | BPF_K:
            at += (uint32_t)r[i->dst_reg] != (uint32_t)i->imm ? (size_t)i->off : 0;
            break;
        case BPF_JMP | BPF_EXIT:
            return (int)r[0];
        default:
            return -1;
        }
    }
    return -1;
}

TEST(program_of_version_2)
{
    static const struct bh_keeper_device own[] = {{195, 1}, {235, UINT32_MAX}, {0xfffffff0, 2}};
    const struct bh_keeper_limits limits = {.devices_held = true, .devices = own, .n_devices = 3};
    const uint32_t c = BPF_DEVCG_DEV_CHAR, b = BPF_DEVCG_DEV_BLOCK, r = BPF_DEVCG_ACC_READ << 16,
                   w = BPF_DEVCG_ACC_WRITE << 16, m = BPF_DEVCG_ACC_MKNOD << 16;
    const struct {
        uint32_t context[3];
        int answer;
    } asked[] = {
        {{c | r | w, 195, 1}, 1}, {{c | r, 195, 1}, 1},
        {{c | r | w, 195, 0}, 0}, {{b | r, 195, 1}, 0},
        {{c | m | r, 195, 1}, 0}, {{c | m, 1, 3}, 0},
        {{c | r, 1, 3}, 1},       {{c | r, 1, 1}, 0},
        {{c | r, 235, 77}, 1},    {{c | r, 136, 5}, 1},
        {{c, 1, 3}, 1},           {{c | r, 0xfffffff0, 2}, 1},
        {{c | r, 10, 200}, 0},    {{c | r, 0xfffffff0, 3}, 0},
    };
    BH_AUTOFREE struct bpf_insn *p = NULL;
    const size_t n = bh_cgroup_device_program(&limits, &p);
    for (size_t i = 0; i < BH_COUNT_OF(asked); i++)
        CHECK_EQ(run(p, n, asked[i].context), asked[i].answer);
}

TEST_MAIN
