/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - the filter's rules as JSON.
 *
 * One entry a rule: within an entry all conditions must hold, so what are alternatives here are entries there. The
 * metadata travels with the listener and says which rules are on it; a listener cannot be asked. It is words with
 * a blank between: `bulkhead VERSION [controls] [name=NAME]`.
 */
#include "host/profile.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char name_word[] = "name=";

static void write_rule(struct bh_json *j, const struct bh_filter_rule *r)
{
    bh_json_open(j, '{');
    bh_json_key(j, "names");
    bh_json_open_flat(j, '[');
    bh_json_str(j, bh_filter_call_names[r->call]);
    bh_json_close(j, ']');
    bh_json_key_str(j, "action", r->error ? "SCMP_ACT_ERRNO" : "SCMP_ACT_NOTIFY");
    if (r->error)
        bh_json_key_u64(j, "errnoRet", (uint64_t)r->error);
    if (r->mask) {
        bh_json_key(j, "args");
        bh_json_open(j, '[');
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "index", r->arg);
        bh_json_key_u64(j, "value", r->mask);
        bh_json_key_u64(j, "valueTwo", r->value);
        bh_json_key_str(j, "op", "SCMP_CMP_MASKED_EQ");
        bh_json_close(j, '}');
        bh_json_close(j, ']');
    }
    bh_json_close(j, '}');
}

static void write_mark(struct bh_json *j, const struct bh_profile_mark *mark)
{
    char text[BH_PROFILE_NAME_MAX + 48];
    (void)snprintf(text, sizeof(text), "bulkhead %d%s%s%s", BH_PROFILE_VERSION,
                   mark->flags & BH_FILTER_CONTROLS ? " controls" : "", *mark->name ? " name=" : "",
                   mark->name);
    bh_json_key_str(j, "listenerMetadata", text);
}

/* ---- what a container has no business with, whoever holds its GPU ---- */

/* The kernel's own: keys, programs in it, modules, clocks, other mounts, other namespaces. Refused with EPERM. */
static const char *const walls[] = {
    "acct",           "add_key",         "adjtimex",       "bpf",
    "clock_adjtime",  "clock_settime",   "create_module",  "delete_module",
    "finit_module",   "fsconfig",        "fsmount",        "fsopen",
    "fspick",         "init_module",     "io_uring_enter", "io_uring_register",
    "io_uring_setup", "ioperm",          "iopl",           "kexec_file_load",
    "kexec_load",     "keyctl",          "lookup_dcookie", "mount",
    "mount_setattr",  "move_mount",      "nfsservctl",     "open_by_handle_at",
    "open_tree",      "perf_event_open", "pidfd_getfd",    "pivot_root",
    "quotactl",       "quotactl_fd",     "reboot",         "request_key",
    "setns",          "settimeofday",    "stime",          "swapoff",
    "swapon",         "syslog",          "umount2",        "uselib",
    "userfaultfd",    "vhangup",         "vm86",           "vm86old"};

/* A namespace of users is one with all capabilities, in which the kernel's rarely used code can be reached. */
enum { NEW_USERS = 0x10000000 };

static void write_refusal(struct bh_json *j, const char *name, int error, uint32_t bits)
{
    bh_json_open(j, '{');
    bh_json_key(j, "names");
    bh_json_open_flat(j, '[');
    bh_json_str(j, name);
    bh_json_close(j, ']');
    bh_json_key_str(j, "action", "SCMP_ACT_ERRNO");
    bh_json_key_u64(j, "errnoRet", (uint64_t)error);
    if (bits) {
        bh_json_key(j, "args");
        bh_json_open(j, '[');
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "index", 0);
        bh_json_key_u64(j, "value", bits);
        bh_json_key_u64(j, "valueTwo", bits);
        bh_json_key_str(j, "op", "SCMP_CMP_MASKED_EQ");
        bh_json_close(j, '}');
        bh_json_close(j, ']');
    }
    bh_json_close(j, '}');
}

/* The gate has a rule of its own for it. */
static bool is_gates(const char *name)
{
    for (size_t i = 0; i < BH_FILTER_CALLS; i++)
        if (strcmp(bh_filter_call_names[i], name) == 0)
            return true;
    return false;
}

static void write_walls(struct bh_json *j, bool gated)
{
    for (size_t i = 0; i < BH_COUNT_OF(walls); i++)
        if (!gated || !is_gates(walls[i]))
            write_refusal(j, walls[i], EPERM, 0);
    write_refusal(j, "unshare", EPERM, NEW_USERS);
    write_refusal(j, "clone", EPERM, NEW_USERS);
    /* Its flags are behind a pointer; C libraries do without it. */
    write_refusal(j, "clone3", ENOSYS, 0);
}

static void write_profile(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                          const char *listener_path, bool walled, struct bh_buf *out)
{
    const struct bh_filter_rule *rules;
    const size_t n = listener_path ? bh_filter_rules(&rules) : 0;
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "defaultAction", "SCMP_ACT_ALLOW");
    bh_json_key(&j, "architectures");
    bh_json_open_flat(&j, '[');
    bh_json_str(&j, arch->scmp);
    bh_json_close(&j, ']');
    if (listener_path) {
        bh_json_key_str(&j, "listenerPath", listener_path);
        write_mark(&j, mark);
    }
    bh_json_key(&j, "syscalls");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < n; i++)
        if ((rules[i].flags & mark->flags) == rules[i].flags)
            write_rule(&j, &rules[i]);
    if (walled)
        write_walls(&j, listener_path != NULL);
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
    bh_buf_str(out, "\n");
}

void bh_profile_write(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                      const char *listener_path, struct bh_buf *out)
{
    write_profile(arch, mark, listener_path, false, out);
}

void bh_profile_container(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                          const char *listener_path, struct bh_buf *out)
{
    write_profile(arch, mark, listener_path, true, out);
}

/* ---- the mark ---- */

bool bh_profile_name_valid(const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!bh_is_alpha(name[i]) && !bh_is_digit(name[i]) && !strchr("._-", name[i]))
            return false;
    return n < BH_PROFILE_NAME_MAX;
}

/* Takes `word` and the blank or the end behind it off the text. */
static bool take(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (!bh_str_starts(*at, word) || ((*at)[n] != ' ' && (*at)[n] != '\0'))
        return false;
    *at += n + ((*at)[n] == ' ');
    return true;
}

int bh_profile_read_mark(const char *metadata, struct bh_profile_mark *ret, struct bh_err *err)
{
    char version[16];
    const char *at = metadata;
    *ret = (struct bh_profile_mark){0};
    (void)snprintf(version, sizeof(version), "%d", BH_PROFILE_VERSION);
    if (!take(&at, "bulkhead"))
        return bh_fail(err, BH_REFUSED,
                       "the container's seccomp profile is not one of bulkhead adopt --profile: its "
                       "listenerMetadata is '%.60s'",
                       metadata);
    if (!take(&at, version))
        return bh_fail(
            err, BH_REFUSED,
            "the container's seccomp profile is of another version of bulkhead ('%.60s', not '%s'): "
            "make it anew with bulkhead adopt --profile",
            metadata, version);
    if (take(&at, "controls"))
        ret->flags |= BH_FILTER_CONTROLS;
    if (bh_str_starts(at, name_word) && bh_profile_name_valid(at + sizeof(name_word) - 1)) {
        memcpy(ret->name, at + sizeof(name_word) - 1, strlen(at) - sizeof(name_word) + 2);
        return BH_OK;
    }
    return *at == '\0'
               ? BH_OK
               : bh_fail(
                     err, BH_REFUSED,
                     "the container's listenerMetadata has words that this version does not know: '%.60s'",
                     at);
}
