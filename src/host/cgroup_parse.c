/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_parse.c - where hierarchies are mounted, what counters say, and which devices a program lets through. */
#include "host/cgroup_parse.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/parse.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum bh_cgroup_controller is;
} controllers[] = {
    {"memory", BH_CGROUP_MEMORY}, {"pids", BH_CGROUP_PIDS},       {"cpu", BH_CGROUP_CPU},
    {"cpuset", BH_CGROUP_CPUSET}, {"devices", BH_CGROUP_DEVICES}, {"freezer", BH_CGROUP_FREEZER},
    {"io", BH_CGROUP_IO},         {"blkio", BH_CGROUP_IO},
};

unsigned bh_cgroup_controllers(const char *words)
{
    static const char between[] = " ,\n";
    unsigned found = 0;
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, between);
        for (size_t i = 0; i < BH_COUNT_OF(controllers); i++)
            if (strlen(controllers[i].name) == n && strncmp(controllers[i].name, at, n) == 0)
                found |= controllers[i].is;
        at += n;
        at += strspn(at, between);
    }
    return found;
}

/* ---- mounts ---- */

/* The word at *at, which moves behind it and the blanks after it. */
static struct bh_span word(const char **at)
{
    const size_t n = strcspn(*at, " \n");
    const struct bh_span w = {*at, n};
    *at += n;
    *at += strspn(*at, " ");
    return w;
}

static bool is_word(struct bh_span w, const char *s)
{
    return strlen(s) == w.n && strncmp(s, w.at, w.n) == 0;
}

static bool is_octal(const char *s)
{
    return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* The kernel writes blanks, newlines and backslashes as \040. */
static bool unescape(struct bh_span w, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        char c = w.at[i];
        if (c == '\\' && i + 3 < w.n && is_octal(w.at + i + 1)) {
            c = (char)((w.at[i + 1] - '0') << 6 | (w.at[i + 2] - '0') << 3 | (w.at[i + 3] - '0'));
            i += 3;
        }
        if (n + 1 >= size || c == '\0')
            return false;
        ret[n++] = c;
    }
    ret[n] = '\0';
    return n > 0;
}

/* `36 35 98:0 / /sys/fs/cgroup/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu` */
static bool mount_of(const char *line, struct bh_cgroup_mount *ret)
{
    const char *at = line;
    for (int i = 0; i < 4; i++)
        (void)word(&at);
    const struct bh_span where = word(&at);
    struct bh_span w;
    do
        w = word(&at);
    while (w.n && !is_word(w, "-"));
    const struct bh_span type = word(&at);
    (void)word(&at);
    const struct bh_span options = word(&at);
    char copy[256];
    *ret = (struct bh_cgroup_mount){.unified = is_word(type, "cgroup2")};
    if ((!ret->unified && !is_word(type, "cgroup")) || options.n >= sizeof(copy) ||
        !unescape(where, ret->path, sizeof(ret->path)))
        return false;
    memcpy(copy, options.at, options.n);
    copy[options.n] = '\0';
    ret->controllers = ret->unified ? 0 : bh_cgroup_controllers(copy);
    return true;
}

bool bh_cgroup_next_mount(const char *text, size_t *pos, struct bh_cgroup_mount *ret)
{
    while (text[*pos]) {
        const char *line = text + *pos;
        const size_t n = strcspn(line, "\n");
        *pos += n + (line[n] == '\n');
        if (mount_of(line, ret))
            return true;
    }
    return false;
}

bool bh_cgroup_field(const char *text, const char *key, uint64_t *ret)
{
    const size_t n = strlen(key);
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        char number[24];
        if (len > n + 1 && len - n - 1 < sizeof(number) && strncmp(at, key, n) == 0 && at[n] == ' ') {
            memcpy(number, at + n + 1, len - n - 1);
            number[len - n - 1] = '\0';
            return bh_uint_parse(number, UINT64_MAX, ret, NULL) == BH_OK;
        }
        at += len + (at[len] == '\n');
    }
    return false;
}

/* ---- devices ---- */

const struct bh_keeper_device bh_cgroup_devices[] = {
    {1, 3}, /* null */ {1, 5},    /* zero */ {1, 7}, /* full */ {1, 8},            /* random */
    {1, 9}, /* urandom */ {5, 0}, /* tty */ {5, 2},  /* ptmx */ {136, UINT32_MAX}, /* pts */
};
const size_t bh_cgroup_n_devices = BH_COUNT_OF(bh_cgroup_devices);

const char *bh_cgroup_device_rule(const struct bh_keeper_device *d, struct bh_cgroup_rule *ret)
{
    if (d->minor == UINT32_MAX)
        (void)snprintf(ret->text, sizeof(ret->text), "c %u:* rw", d->major);
    else
        (void)snprintf(ret->text, sizeof(ret->text), "c %u:%u rw", d->major, d->minor);
    return ret->text;
}

struct program {
    struct bpf_insn *at;
    size_t n, cap;
};
enum { ANSWER = BPF_REG_0, CONTEXT = BPF_REG_1, ACCESS = BPF_REG_2, TYPE, MAJOR, MINOR };

static void add(struct program *p, unsigned code, unsigned dst, unsigned src, size_t off, uint32_t value)
{
    *bh_vec_push(p) = (struct bpf_insn){.code = (uint8_t)code,
                                        .dst_reg = (uint8_t)(dst & 15),
                                        .src_reg = (uint8_t)(src & 15),
                                        .off = (int16_t)off,
                                        .imm = (int32_t)value};
}

static void load(struct program *p, unsigned to, size_t off)
{
    add(p, BPF_LDX | BPF_W | BPF_MEM, to, CONTEXT, off, 0);
}

static void answer(struct program *p, bool yes)
{
    add(p, BPF_ALU64 | BPF_MOV | BPF_K, ANSWER, 0, 0, yes);
    add(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Compared as 32 bits: a jump of 64 would take a large number for a negative one. */
static void allow(struct program *p, const struct bh_keeper_device *d)
{
    const bool all = d->minor == UINT32_MAX;
    add(p, BPF_JMP32 | BPF_JNE | BPF_K, MAJOR, 0, all ? 2 : 3, d->major);
    if (!all)
        add(p, BPF_JMP32 | BPF_JNE | BPF_K, MINOR, 0, 2, d->minor);
    answer(p, true);
}

size_t bh_cgroup_device_program(const struct bh_keeper_limits *limits, struct bpf_insn **ret)
{
    struct program p = {0};
    load(&p, ACCESS, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    add(&p, BPF_ALU64 | BPF_MOV | BPF_X, TYPE, ACCESS, 0, 0);
    add(&p, BPF_ALU64 | BPF_AND | BPF_K, TYPE, 0, 0, 0xffff);
    add(&p, BPF_ALU64 | BPF_RSH | BPF_K, ACCESS, 0, 0, 16);
    load(&p, MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
    load(&p, MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
    add(&p, BPF_JMP | BPF_JEQ | BPF_K, TYPE, 0, 2, BPF_DEVCG_DEV_CHAR);
    answer(&p, false);
    add(&p, BPF_ALU64 | BPF_AND | BPF_K, ACCESS, 0, 0, BPF_DEVCG_ACC_MKNOD);
    add(&p, BPF_JMP | BPF_JEQ | BPF_K, ACCESS, 0, 2, 0);
    answer(&p, false);
    for (size_t i = 0; i < bh_cgroup_n_devices; i++)
        allow(&p, &bh_cgroup_devices[i]);
    for (size_t i = 0; i < limits->n_devices; i++)
        allow(&p, &limits->devices[i]);
    answer(&p, false);
    *ret = p.at;
    return p.n;
}
