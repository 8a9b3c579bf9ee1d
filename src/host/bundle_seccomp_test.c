/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_spec.h"

#include "base/mem.h"
#include "base/test.h"
#include "host/profile.h"

static struct bh_err err;

static int same(const char *want, const char *have)
{
    return bh_spec_same_seccomp(want, strlen(want), have, strlen(have), &err);
}

#define RULE                                                                                      \
    "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_NOTIFY\",\"args\":[{\"index\":1,\"value\":255," \
    "\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}"
#define BLOCK "{\"names\":[\"ptrace\",\"io_uring_setup\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1}"
#define OPEN \
    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"listenerPath\":\"/s\",\"syscalls\":["
static const char want[] = OPEN RULE "," BLOCK "]}";

TEST(the_same_in_other_words)
{
    CHECK_EQ(same(want, want), BH_OK);
    CHECK_EQ(same(want, OPEN BLOCK "," RULE "]}"), BH_OK);
    /* zeros left out, other order of keys, one rule for each name, empty lists */
    CHECK_EQ(
        same(
            want,
            "{\"flags\":[],\"syscalls\":["
            "{\"args\":null,\"errnoRet\":1,\"action\":\"SCMP_ACT_ERRNO\",\"names\":[\"io_uring_setup\"]},"
            "{\"action\":\"SCMP_ACT_ERRNO\",\"names\":[\"ptrace\"],\"errnoRet\":1},"
            "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_NOTIFY\",\"args\":[{\"index\":1,\"value\":255,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}],"
            "\"listenerPath\":\"/s\",\"listenerMetadata\":\"\","
            "\"architectures\":[\"SCMP_ARCH_X86_64\"],\"defaultAction\":\"SCMP_ACT_ALLOW\"}"),
        BH_OK);
}

TEST(every_difference_counts)
{
    const char *const other[] = {
        "null",
        "{}",
        "[]",
        "\"x\"",
        OPEN RULE "]}",
        OPEN BLOCK "]}",
        OPEN RULE "," BLOCK "," RULE "]}",
        OPEN RULE "," BLOCK ",{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ALLOW\"}]}",
        "{\"defaultAction\":\"SCMP_ACT_LOG\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"listenerPath\":\"/s\",\"syscalls\":[" RULE
        "," BLOCK "]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"listenerPath\":\"/t\",\"syscalls\":[" RULE
        "," BLOCK "]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"syscalls\":[" RULE
        "," BLOCK "]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[],\"listenerPath\":\"/s\",\"syscalls\":[" RULE
        "," BLOCK "]}",
        OPEN RULE "," BLOCK "],\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"]}",
        OPEN RULE "," BLOCK "],\"unheardOf\":1}",
        OPEN
        "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_NOTIFY\",\"args\":[{\"index\":1,\"value\":254,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}," BLOCK
        "]}",
        OPEN "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_NOTIFY\"}," BLOCK "]}",
        OPEN RULE
        ","
        "{\"names\":[\"ptrace\",\"io_uring_setup\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38}]}",
        OPEN RULE "," BLOCK "],\"syscalls\":[]}",
        OPEN RULE "," BLOCK "],\"Syscalls\":[]}",
    };
    for (size_t i = 0; i < BH_COUNT_OF(other); i++) {
        CHECK_EQ(same(want, other[i]), BH_REFUSED);
        CHECK(*err.msg);
    }
    CHECK_EQ(same("{", want), BH_REFUSED);
    CHECK(strstr(err.msg, "the lease's"));
}

TEST(the_gates_own_profile)
{
    struct bh_buf a, b;
    const struct bh_profile_mark mark = {.flags = BH_FILTER_CONTROLS, .name = "L17"}, less = {.name = "L17"};
    bh_buf_init(&a, 1 << 16);
    bh_buf_init(&b, 1 << 16);
    bh_profile_write(&bh_filter_archs[BH_MACHINE_X86_64], &mark, "/run/s", &a);
    bh_profile_write(&bh_filter_archs[BH_MACHINE_X86_64], &less, "/run/s", &b);
    CHECK_EQ(same(bh_buf_text(&a), bh_buf_text(&a)), BH_OK);
    CHECK_EQ(same(bh_buf_text(&a), bh_buf_text(&b)), BH_REFUSED);
    bh_buf_fini(&a);
    bh_buf_fini(&b);
}

TEST(too_much)
{
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    bh_buf_str(&b, "{\"architectures\":[\"x\"");
    for (int i = 0; i < 10000; i++)
        bh_buf_str(&b, ",\"x\"");
    bh_buf_str(&b, "]}");
    CHECK_EQ(same(want, bh_buf_text(&b)), BH_REFUSED);
    CHECK(strstr(err.msg, "more rules"));
    bh_buf_fini(&b);
}

TEST_MAIN
