/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_test.c - the profile says what the program does.
 *
 * The JSON is read back and evaluated as the OCI specification and libseccomp have it, and held against the program in
 * the interpreter, over random calls. The names of calls and the operators meet the real libseccomp in tests/gate/oci.py.
 */
#include "host/profile.h"

#include "base/choice.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"
#include "host/filter_fixture.h"

#include <errno.h>
#include <linux/audit.h>

enum { RULES_MAX = 128, ARGS_MAX = 6 };

struct read_rule {
    char name[32], action[32];
    uint64_t error;
    struct {
        uint64_t index, value, value_two;
        char op[32];
    } args[ARGS_MAX];
    size_t n_args;
};

struct read_profile {
    char def[32], arch[32], path[128], metadata[128];
    size_t n_archs, n_rules;
    struct read_rule rules[RULES_MAX];
};

static bool read_arg(struct bh_json_reader *r, struct read_rule *rule)
{
    char key[32];
    if (rule->n_args == ARGS_MAX || !bh_json_read_open(r, '{'))
        return false;
    while (bh_json_read_member(r, key, sizeof(key)))
        if (bh_str_eq(key, "op"))
            (void)bh_json_read_str(r, rule->args[rule->n_args].op, sizeof(rule->args[0].op));
        else
            (void)bh_json_read_u64(r, bh_str_eq(key, "index")   ? &rule->args[rule->n_args].index
                                      : bh_str_eq(key, "value") ? &rule->args[rule->n_args].value
                                                                : &rule->args[rule->n_args].value_two);
    rule->n_args++;
    return r->wrong == NULL;
}

static bool read_rule(struct bh_json_reader *r, struct read_rule *rule)
{
    char key[32];
    *rule = (struct read_rule){.error = EPERM}; /* as the specification has it when none is said */
    if (!bh_json_read_open(r, '{'))
        return false;
    while (bh_json_read_member(r, key, sizeof(key))) {
        if (bh_str_eq(key, "names")) {
            for (bool in = bh_json_read_open(r, '['); in && bh_json_read_item(r);)
                (void)bh_json_read_str(r, rule->name, sizeof(rule->name));
        } else if (bh_str_eq(key, "action")) {
            (void)bh_json_read_str(r, rule->action, sizeof(rule->action));
        } else if (bh_str_eq(key, "errnoRet")) {
            (void)bh_json_read_u64(r, &rule->error);
        } else if (bh_str_eq(key, "args")) {
            for (bool in = bh_json_read_open(r, '['); in && bh_json_read_item(r);)
                in = read_arg(r, rule);
        } else {
            return false;
        }
    }
    return r->wrong == NULL;
}

static bool read_profile(const char *text, size_t n, struct read_profile *ret)
{
    struct bh_json_reader r;
    char key[32];
    *ret = (struct read_profile){.n_rules = 0};
    bh_json_read_init(&r, text, n);
    for (bool in = bh_json_read_open(&r, '{'); in && bh_json_read_member(&r, key, sizeof(key));) {
        if (bh_str_eq(key, "defaultAction")) {
            (void)bh_json_read_str(&r, ret->def, sizeof(ret->def));
        } else if (bh_str_eq(key, "listenerPath")) {
            (void)bh_json_read_str(&r, ret->path, sizeof(ret->path));
        } else if (bh_str_eq(key, "listenerMetadata")) {
            (void)bh_json_read_str(&r, ret->metadata, sizeof(ret->metadata));
        } else if (bh_str_eq(key, "architectures")) {
            for (bool one = bh_json_read_open(&r, '['); one && bh_json_read_item(&r); ret->n_archs++)
                (void)bh_json_read_str(&r, ret->arch, sizeof(ret->arch));
        } else if (bh_str_eq(key, "syscalls")) {
            for (bool one = bh_json_read_open(&r, '['); one && bh_json_read_item(&r); ret->n_rules++)
                one = ret->n_rules < RULES_MAX && read_rule(&r, &ret->rules[ret->n_rules]);
        } else {
            in = false;
        }
    }
    return bh_json_read_end(&r);
}

static bool fits(const struct read_rule *rule, const struct bh_filter_arch *arch,
                 const struct seccomp_data *d)
{
    size_t call = 0;
    while (call < BH_FILTER_CALLS && !bh_str_eq(bh_filter_call_names[call], rule->name))
        call++;
    if (call == BH_FILTER_CALLS || (uint32_t)d->nr != arch->nr[call])
        return false;
    for (size_t i = 0; i < rule->n_args; i++)
        if (!bh_str_eq(rule->args[i].op, "SCMP_CMP_MASKED_EQ") ||
            (d->args[rule->args[i].index] & rule->args[i].value) != rule->args[i].value_two)
            return false;
    return true;
}

/* What the kernel would be told to do by the profile. Calls of another architecture are not let through: libseccomp ends
 * the thread, which is stricter than the program's ENOSYS and is taken for the same here. */
static uint32_t evaluate(const struct read_profile *p, const struct bh_filter_arch *arch,
                         const struct seccomp_data *d)
{
    uint32_t verdict = bh_str_eq(p->def, "SCMP_ACT_ALLOW") ? SECCOMP_RET_ALLOW : BAD_PROGRAM;
    if (d->arch != arch->audit || (arch->foreign_bit && (uint32_t)d->nr & arch->foreign_bit))
        return SECCOMP_RET_ERRNO | ENOSYS;
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct read_rule *r = &p->rules[i];
        if (!fits(r, arch, d))
            continue;
        if (verdict != SECCOMP_RET_ALLOW)
            return BAD_PROGRAM; /* two that fit: libseccomp would choose */
        verdict = bh_str_eq(r->action, "SCMP_ACT_NOTIFY")  ? SECCOMP_RET_USER_NOTIF
                  : bh_str_eq(r->action, "SCMP_ACT_ERRNO") ? SECCOMP_RET_ERRNO | (uint32_t)r->error
                                                           : BAD_PROGRAM;
    }
    return verdict;
}

static void random_call(uint64_t seed, const struct bh_filter_arch *arch, struct seccomp_data *ret)
{
    uint8_t bytes[sizeof(*ret) + 8];
    bh_choice_fill(bytes, sizeof(bytes), seed);
    struct bh_choice c = {bytes + sizeof(*ret), 8};
    memcpy(ret, bytes, sizeof(*ret));
    if (bh_choose(&c, 8))
        ret->arch = arch->audit;
    if (bh_choose(&c, 8))
        ret->nr = (int)arch->nr[bh_choose(&c, BH_FILTER_CALLS)];
    if (bh_choose(&c, 8) == 0)
        ret->nr = (int)((uint32_t)ret->nr ^ 0x40000000);
    if (bh_choose(&c, 2))
        ret->args[3] = bh_choose(&c, 256);
}

static char text[32768];

static bool write_and_read(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                           struct read_profile *ret)
{
    struct bh_buf out;
    bh_buf_init(&out, sizeof(text) - 1);
    bh_profile_write(arch, mark, "/run/bulkhead/adopt.sock", &out);
    const bool ok = !out.full && out.n < sizeof(text);
    if (ok)
        memcpy(text, bh_buf_text(&out), out.n + 1);
    bh_buf_fini(&out);
    return ok && read_profile(text, strlen(text), ret);
}

TEST(profile_and_program_agree)
{
    static struct read_profile profile;
    struct sock_filter filter[BH_FILTER_MAX];
    for (size_t i = 0; i < BH_FILTER_MACHINES * 2; i++) {
        const struct bh_filter_arch *arch = &bh_filter_archs[i / 2];
        const struct bh_profile_mark mark = {.flags = i % 2 ? BH_FILTER_CONTROLS : 0};
        const size_t n = bh_filter_build(arch, mark.flags, filter);
        unsigned seen_notify = 0, seen_errno = 0;
        CHECK(write_and_read(arch, &mark, &profile));
        for (uint64_t seed = 1; seed <= 100000; seed++) {
            struct seccomp_data d;
            random_call(seed, arch, &d);
            const uint32_t got = evaluate(&profile, arch, &d), want = interpret(filter, n, &d);
            seen_notify += want == SECCOMP_RET_USER_NOTIF;
            seen_errno += want == (SECCOMP_RET_ERRNO | EPERM);
            if (got != want)
                printf("# %s seed %llu nr %d: %x, not %x\n", arch->name, (unsigned long long)seed, d.nr, got,
                       want);
            CHECK(got == want);
        }
        CHECK(seen_notify > 1000 && seen_errno > 1000); /* the calls were not all beside the point */
    }
}

TEST(what_it_says_besides)
{
    static struct read_profile profile;
    struct bh_profile_mark mark = {.flags = BH_FILTER_CONTROLS, .name = "team-a.1_x"}, back;
    CHECK(write_and_read(&bh_filter_archs[BH_MACHINE_X86_64], &mark, &profile));
    CHECK_STR(profile.arch, "SCMP_ARCH_X86_64");
    CHECK_EQ(profile.n_archs, 1);
    CHECK_STR(profile.path, "/run/bulkhead/adopt.sock");
    CHECK_STR(profile.metadata, "bulkhead 1 controls name=team-a.1_x");
    CHECK_EQ(bh_profile_read_mark(profile.metadata, &back, NULL), 0);
    CHECK_EQ(back.flags, BH_FILTER_CONTROLS);
    CHECK_STR(back.name, "team-a.1_x");
    mark = (struct bh_profile_mark){0};
    CHECK(write_and_read(&bh_filter_archs[BH_MACHINE_AARCH64], &mark, &profile));
    CHECK_STR(profile.arch, "SCMP_ARCH_AARCH64");
    CHECK_STR(profile.metadata, "bulkhead 1");
    CHECK_EQ(bh_profile_read_mark(profile.metadata, &back, NULL), 0);
    CHECK_EQ(back.flags, 0);
    CHECK_STR(back.name, "");
}

TEST(marks_that_are_none)
{
    static const struct {
        const char *metadata, *says;
    } cases[] = {
        {"", "not one of bulkhead adopt --profile"},
        {"bulkheads 1", "not one of bulkhead adopt --profile"},
        {"MKNOD=/dev/null", "not one of bulkhead adopt --profile"},
        {"bulkhead", "another version"},
        {"bulkhead 2", "another version"},
        {"bulkhead 10", "another version"},
        {"bulkhead  1", "another version"},
        {"bulkhead 1 other", "does not know"},
        {"bulkhead 1 controls other", "does not know"},
        {"bulkhead 1 name=a b", "does not know"},
        {"bulkhead 1 name=a\n", "does not know"},
        {"bulkhead 1 name=0123456789012345678901234567890123456789012345678901234567890123", "does not know"},
    };
    struct bh_profile_mark mark;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        CHECK_EQ(bh_profile_read_mark(cases[i].metadata, &mark, &err), BH_REFUSED);
        if (!strstr(err.msg, cases[i].says))
            printf("# %s\n", err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
    }
    CHECK(bh_profile_name_valid("") && bh_profile_name_valid("a-1.B_2"));
    CHECK(!bh_profile_name_valid("a b") && !bh_profile_name_valid("a\"") &&
          !bh_profile_name_valid("\xc3\xa4"));
}

/* Which error a call of that name gets where no argument decides; -1: none. */
static int refused(const struct read_profile *p, const char *name)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (bh_str_eq(p->rules[i].name, name) && bh_str_eq(p->rules[i].action, "SCMP_ACT_ERRNO"))
            return (int)p->rules[i].error;
    return -1;
}

TEST(walls_of_a_container)
{
    static struct read_profile p;
    const struct bh_profile_mark mark = {.name = "L1"};
    const struct bh_filter_arch *arch = &bh_filter_archs[BH_MACHINE_X86_64];
    for (int gated = 0; gated < 2; gated++) {
        struct bh_buf out;
        bh_buf_init(&out, 1 << 16);
        bh_profile_container(arch, &mark, gated ? "/s" : NULL, &out);
        CHECK(!out.full && read_profile(out.at, out.n, &p));
        CHECK_EQ(refused(&p, "keyctl"), EPERM);
        CHECK_EQ(refused(&p, "bpf"), EPERM);
        CHECK_EQ(refused(&p, "userfaultfd"), EPERM);
        CHECK_EQ(refused(&p, "unshare"), EPERM);
        CHECK_EQ(refused(&p, "clone3"), ENOSYS);
        CHECK(refused(&p, "io_uring_setup") > 0);
        CHECK_EQ(p.path[0] != '\0', gated);
        /* Each call is refused by one of the two only: libseccomp takes no second word. */
        for (size_t i = 0; i < p.n_rules; i++)
            for (size_t k = i + 1; k < p.n_rules; k++)
                CHECK(!bh_str_eq(p.rules[i].name, p.rules[k].name) ||
                      p.rules[i].n_args + p.rules[k].n_args > 0);
        bh_buf_fini(&out);
    }
}

TEST_MAIN
