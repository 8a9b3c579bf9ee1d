/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - config.json of a lease's container. The walls are written first to last in one place, for whoever reviews them. */
#include "host/bundle.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "host/bundle_host.h"
#include "host/bundle_spec.h"
#include "host/cgroup.h"
#include "host/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A folder of the container's own, whatever the machine has under that name. */
#define INSIDE(name) "/" name
enum { CPU_PERIOD_US = 100000, PROFILE_MAX = 1 << 16 };

/* ---- what is refused ---- */

static int check_words(const struct bh_bundle *b, struct bh_err *err)
{
    if (b->n_argv == 0)
        return bh_fail(err, BH_INVALID, "a container needs a command");
    if (b->n_argv > BH_BUNDLE_ARGS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "a command of more than %d words", BH_BUNDLE_ARGS_MAX);
    for (size_t i = 0; i < b->n_argv; i++)
        for (const unsigned char *at = (const unsigned char *)b->argv[i]; *at;) {
            const size_t n = bh_utf8_len(at);
            if (n == 0)
                return bh_fail(err, BH_INVALID,
                               "word %zu of the command is not UTF-8, and a container's must be", i);
            at += n;
        }
    return BH_OK;
}

static bool list_valid(const char *s)
{
    return !s || (*s && strlen(s) < BH_GEAR_PATH_MAX && strspn(s, "0123456789,-") == strlen(s));
}

static int check_ids(const struct bh_bundle *b, struct bh_err *err)
{
    if (b->uid >= BH_BUNDLE_IDS || b->gid >= BH_BUNDLE_IDS)
        return bh_fail(err, BH_INVALID, "user %u and group %u of a container must be below %d", b->uid,
                       b->gid, BH_BUNDLE_IDS);
    if (b->first_id < BH_BUNDLE_IDS || b->first_id > UINT32_MAX - BH_BUNDLE_IDS)
        return bh_fail(err, BH_INVALID,
                       "a tenant's users on this machine cannot begin at %u: that is where others are",
                       b->first_id);
    return BH_OK;
}

static int check_path(const char *path, const char *what, struct bh_err *err)
{
    return !path || bh_gear_path_valid(path)
               ? BH_OK
               : bh_fail(err, BH_INVALID, "%s '%.200s' is not an absolute, clean path", what, path);
}

static int check(const struct bh_bundle *b, struct bh_err *err)
{
    if (!bh_name_valid(b->tenant))
        return bh_fail(err, BH_INVALID, "'%.100s' is no name of a tenant", b->tenant);
    int rc = check_words(b, err);
    rc = rc < 0 ? rc : check_ids(b, err);
    rc = rc < 0 ? rc : check_path(b->rootfs, "the root file system", err);
    rc = rc < 0 ? rc : check_path(b->home, "the home", err);
    rc = rc < 0 ? rc : check_path(b->listener, "the listener", err);
    rc = rc < 0 ? rc : check_path(b->hook, "the hook", err);
    if (rc == BH_OK && b->cwd && !bh_str_eq(b->cwd, "/"))
        rc = check_path(b->cwd, "the working folder", err);
    if (rc < 0)
        return rc;
    if (b->cgroup && !bh_cgroup_name_valid(b->cgroup))
        return bh_fail(err, BH_INVALID, "'%.100s' is no name of a cgroup", b->cgroup);
    if (!list_valid(b->limits.cpus) || !list_valid(b->limits.mems))
        return bh_fail(err, BH_INVALID, "processors and memory nodes are lists as 0-3,8");
    if (b->net && !b->hook)
        return bh_fail(err, BH_INVALID, "a container with a network needs bulkhead-oci as its hook");
    if (b->net && (b->net->lease != b->lease || !bh_str_eq(b->net->tenant, b->tenant)))
        return bh_fail(err, BH_INVALID, "the network is another lease's");
    return BH_OK;
}

/* ---- the process ---- */

static void write_list(struct bh_json *j, const char *key, const char *const *words, size_t n)
{
    bh_json_key(j, key);
    bh_json_open(j, '[');
    for (size_t i = 0; i < n; i++)
        bh_json_str(j, words[i]);
    bh_json_close(j, ']');
}

static bool has_env(const struct bh_gear *g, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; g && i < g->env.n; i++)
        if (strncmp(g->env.at[i], name, n) == 0 && g->env.at[i][n] == '=')
            return true;
    return false;
}

static void write_env(struct bh_json *j, const struct bh_bundle *b, const char *home)
{
    char text[BH_GEAR_PATH_MAX + 16];
    bh_json_key(j, "env");
    bh_json_open(j, '[');
    if (!has_env(b->gear, "PATH"))
        bh_json_str(j, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (!has_env(b->gear, "HOME")) {
        (void)snprintf(text, sizeof(text), "HOME=%s", home);
        bh_json_str(j, text);
    }
    if (!has_env(b->gear, "BULKHEAD_LEASE")) {
        (void)snprintf(text, sizeof(text), "BULKHEAD_LEASE=L%" PRIu64, b->lease);
        bh_json_str(j, text);
    }
    for (size_t i = 0; b->gear && i < b->gear->env.n; i++)
        bh_json_str(j, b->gear->env.at[i]);
    bh_json_close(j, ']');
}

static void write_process(struct bh_json *j, const struct bh_bundle *b, const char *home)
{
    static const char *const sets[] = {"bounding", "effective", "permitted", "inheritable", "ambient"};
    bh_json_key(j, "process");
    bh_json_open(j, '{');
    bh_json_key_bool(j, "terminal", b->has_terminal);
    bh_json_key(j, "user");
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "uid", b->uid);
    bh_json_key_u64(j, "gid", b->gid);
    bh_json_close(j, '}');
    write_list(j, "args", b->argv, b->n_argv);
    write_env(j, b, home);
    bh_json_key_str(j, "cwd", b->cwd ? b->cwd : home);
    bh_json_key(j, "capabilities");
    bh_json_open(j, '{');
    for (size_t i = 0; i < BH_COUNT_OF(sets); i++)
        write_list(j, sets[i], NULL, 0);
    bh_json_close(j, '}');
    /* A core file goes where the machine's pattern says, past every wall here. */
    bh_json_key(j, "rlimits");
    bh_json_open(j, '[');
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "type", "RLIMIT_CORE");
    bh_json_key_u64(j, "hard", 0);
    bh_json_key_u64(j, "soft", 0);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    bh_json_key_bool(j, "noNewPrivileges", true);
    bh_json_close(j, '}');
}

/* ---- what it sees ---- */

static void mount(struct bh_json *j, const char *inside, const char *type, const char *source,
                  const char *options)
{
    bh_json_open(j, '{');
    bh_json_key_str(j, "destination", inside);
    bh_json_key_str(j, "type", type);
    bh_json_key_str(j, "source", source);
    bh_json_key(j, "options");
    bh_json_open_flat(j, '[');
    for (const char *at = options; *at;) {
        char word[64];
        const size_t n = strcspn(at, ",");
        (void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
        bh_json_str(j, word);
        at += n + (at[n] == ',');
    }
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

static void scratch(struct bh_json *j, const char *inside, const char *options, uint64_t bytes)
{
    char text[160];
    (void)snprintf(text, sizeof(text), "%s,size=%" PRIu64, options, bytes);
    mount(j, inside, "tmpfs", "tmpfs", text);
}

static void write_private(struct bh_json *j, const struct bh_bundle *b)
{
    const struct bh_bundle_limits *l = &b->limits;
    const uint64_t room = l->scratch_bytes  ? l->scratch_bytes
                          : l->memory_bytes ? l->memory_bytes / 4
                                            : BH_GIB;
    char home[96];
    mount(j, "/proc", "proc", "proc", "nosuid,noexec,nodev");
    scratch(j, "/dev", "nosuid,noexec,mode=755", BH_MIB);
    mount(j, "/dev/pts", "devpts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620");
    scratch(j, "/dev/shm", "nosuid,noexec,nodev,mode=1777", room);
    mount(j, "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev");
    mount(j, "/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro");
    scratch(j, "/run", "nosuid,nodev,mode=755", 16 * BH_MIB);
    scratch(j, INSIDE("tmp"), "nosuid,nodev,mode=1777", room);
    /* The user's, whatever the folder below it is: runc gives a tmpfs that folder's mode. */
    (void)snprintf(home, sizeof(home), "nosuid,nodev,mode=755,uid=%u,gid=%u", b->uid, b->gid);
    scratch(j, INSIDE("home"), home, b->home ? BH_MIB : room);
}

static void write_mounts(struct bh_json *j, const struct bh_bundle *b, const char *home)
{
    const struct bh_gear *g = b->gear;
    bh_json_key(j, "mounts");
    bh_json_open(j, '[');
    write_private(j, b);
    for (size_t i = 0; !b->rootfs && i < BH_HOST_FOLDERS; i++)
        if (bh_host_folder_is_mounted(i))
            mount(j, bh_host_folders[i], "bind", bh_host_folders[i], "rbind,ro,nosuid,nodev");
    if (b->home)
        mount(j, home, "bind", b->home, "rbind,rw,nosuid,nodev");
    for (size_t i = 0; g && i < g->mounts.n; i++)
        mount(j, g->mounts.at[i].inside, "bind", g->mounts.at[i].host,
              g->mounts.at[i].is_socket     ? "bind,ro,nosuid,nodev,noexec"
              : g->mounts.at[i].is_writable ? "rbind,rw,nosuid,nodev"
                                            : "rbind,ro,nosuid,nodev");
    /* In a user namespace no node can be made: the machine's own is shown. What opens it is the devices cgroup's to say. */
    for (size_t i = 0; g && i < g->nodes.n; i++)
        mount(j, g->nodes.at[i].inside, "bind", g->nodes.at[i].host, "bind,rw,nosuid,noexec");
    bh_json_close(j, ']');
}

/* ---- the kernel's part ---- */

static void write_map(struct bh_json *j, const char *key, uint32_t first_id)
{
    bh_json_key(j, key);
    bh_json_open(j, '[');
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "containerID", 0);
    bh_json_key_u64(j, "hostID", first_id);
    bh_json_key_u64(j, "size", BH_BUNDLE_IDS);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
}

static void write_devices(struct bh_json *j, const struct bh_gear *g)
{
    bh_json_key(j, "devices");
    bh_json_open(j, '[');
    bh_json_open_flat(j, '{');
    bh_json_key_bool(j, "allow", false);
    bh_json_key_str(j, "access", "rwm");
    bh_json_close(j, '}');
    for (size_t i = 0; g && i < g->nodes.n; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_bool(j, "allow", true);
        bh_json_key_str(j, "type", "c");
        bh_json_key_u64(j, "major", g->nodes.at[i].major);
        bh_json_key_u64(j, "minor", g->nodes.at[i].minor);
        bh_json_key_str(j, "access", g->nodes.at[i].is_read_only ? "r" : "rw");
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_rate(struct bh_json *j, const char *key, const struct bh_bundle_limits *l)
{
    bh_json_key(j, key);
    bh_json_open(j, '[');
    for (size_t i = 0; i < l->disks.n; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "major", l->disks.at[i].major);
        bh_json_key_u64(j, "minor", l->disks.at[i].minor);
        bh_json_key_u64(j, "rate", l->disk_bytes_per_s);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_cpu(struct bh_json *j, const struct bh_bundle_limits *l)
{
    bh_json_key(j, "cpu");
    bh_json_open(j, '{');
    if (l->cpu_milli) {
        bh_json_key_u64(j, "quota", (uint64_t)l->cpu_milli * CPU_PERIOD_US / 1000);
        bh_json_key_u64(j, "period", CPU_PERIOD_US);
    }
    if (l->cpus)
        bh_json_key_str(j, "cpus", l->cpus);
    if (l->mems)
        bh_json_key_str(j, "mems", l->mems);
    bh_json_close(j, '}');
}

static void write_resources(struct bh_json *j, const struct bh_bundle *b)
{
    const struct bh_bundle_limits *l = &b->limits;
    bh_json_key(j, "resources");
    bh_json_open(j, '{');
    write_devices(j, b->gear);
    if (l->memory_bytes) {
        bh_json_key(j, "memory");
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "limit", l->memory_bytes);
        if (bh_host_counts_swap())
            bh_json_key_u64(j, "swap", l->memory_bytes);
        bh_json_close(j, '}');
    }
    if (l->pids) {
        bh_json_key(j, "pids");
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "limit", l->pids);
        bh_json_close(j, '}');
    }
    write_cpu(j, l);
    if (l->disk_bytes_per_s && l->disks.n) {
        bh_json_key(j, "blockIO");
        bh_json_open(j, '{');
        write_rate(j, "throttleReadBpsDevice", l);
        write_rate(j, "throttleWriteBpsDevice", l);
        bh_json_close(j, '}');
    }
    bh_json_close(j, '}');
}

static void write_linux(struct bh_json *j, const struct bh_bundle *b)
{
    static const char *const spaces[] = {"pid", "network", "ipc", "uts", "mount", "cgroup", "user"};
    /* What tells of the machine, or of others on it. */
    static const char *const masked[] = {
        "/proc/acpi",        "/proc/asound",
        "/proc/interrupts",  "/proc/kcore",
        "/proc/keys",        "/proc/latency_stats",
        "/proc/sched_debug", "/proc/scsi",
        "/proc/timer_list",  "/proc/timer_stats",
        "/sys/firmware",     "/sys/fs/bpf",
        "/sys/kernel/debug", "/sys/devices/virtual/powercap",
    };
    static const char *const kept[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                       "/proc/sysrq-trigger"};
    char group[BH_CGROUP_NAME_MAX + 2];
    bh_json_key(j, "linux");
    bh_json_open(j, '{');
    bh_json_key(j, "namespaces");
    bh_json_open(j, '[');
    for (size_t i = 0; i < BH_COUNT_OF(spaces); i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "type", spaces[i]);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    write_map(j, "uidMappings", b->first_id);
    write_map(j, "gidMappings", b->first_id);
    if (b->cgroup)
        (void)snprintf(group, sizeof(group), "/%s", b->cgroup);
    else
        (void)snprintf(group, sizeof(group), "/bulkhead/L%" PRIu64, b->lease);
    bh_json_key_str(j, "cgroupsPath", group);
    write_resources(j, b);
    write_list(j, "maskedPaths", masked, BH_COUNT_OF(masked));
    write_list(j, "readonlyPaths", kept, BH_COUNT_OF(kept));
    bh_json_close(j, '}');
}

/* The runtime calls it with the namespaces made and the root not yet changed: the network gets its port there. */
static void write_hook(struct bh_json *j, const struct bh_bundle *b)
{
    char lease[32], rate[32];
    const char *words[12];
    size_t n = 0;
    (void)snprintf(lease, sizeof(lease), "%" PRIu64, b->lease);
    (void)snprintf(rate, sizeof(rate), "%" PRIu64, b->net->bits_per_s);
    words[n++] = "bulkhead-oci";
    words[n++] = "hook";
    words[n++] = "--lease";
    words[n++] = lease;
    words[n++] = "--network";
    words[n++] = b->tenant;
    words[n++] = "--rate";
    words[n++] = rate;
    if (b->net->may_peer)
        words[n++] = "--peers";
    if (b->net->may_go_outside)
        words[n++] = "--outside";
    bh_json_key(j, "hooks");
    bh_json_open(j, '{');
    bh_json_key(j, "createRuntime");
    bh_json_open(j, '[');
    bh_json_open(j, '{');
    bh_json_key_str(j, "path", b->hook);
    write_list(j, "args", words, n);
    bh_json_key_u64(j, "timeout", 30);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

static void write_config(const struct bh_bundle *b, struct bh_buf *out)
{
    struct bh_json j;
    char home[96], name[32];
    (void)snprintf(home, sizeof(home), "%s%s%s", INSIDE("home"), b->home ? "/" : "",
                   b->home ? b->tenant : "");
    (void)snprintf(name, sizeof(name), "l%" PRIu64, b->lease);
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "ociVersion", "1.0.2");
    bh_json_key_str(&j, "hostname", name);
    bh_json_key(&j, "root");
    bh_json_open_flat(&j, '{');
    bh_json_key_str(&j, "path", b->rootfs ? b->rootfs : BH_HOST_ROOTFS);
    bh_json_key_bool(&j, "readonly", true);
    bh_json_close(&j, '}');
    write_process(&j, b, home);
    write_mounts(&j, b, home);
    write_linux(&j, b);
    if (b->net)
        write_hook(&j, b);
    bh_json_key(&j, "annotations");
    bh_json_open(&j, '{');
    name[0] = 'L';
    bh_json_key_str(&j, "bulkhead.dev/lease", name);
    bh_json_key_str(&j, "bulkhead.dev/tenant", b->tenant);
    bh_json_close(&j, '}');
    bh_json_close(&j, '}');
}

/* The gate's profile, put into what was written: by the same code that puts it into others' bundles. */
static int add_profile(const struct bh_bundle *b, const struct bh_buf *config, struct bh_buf *out,
                       struct bh_err *err)
{
    struct bh_profile_mark mark = {.flags = b->profile_flags};
    const struct bh_filter_arch *arch = bh_filter_here();
    struct bh_buf profile;
    struct bh_spec spec;
    if (!arch)
        return bh_fail(err, BH_REFUSED, "no filter is known for this machine's architecture");
    (void)snprintf(mark.name, sizeof(mark.name), "L%" PRIu64, b->lease);
    bh_buf_init(&profile, PROFILE_MAX);
    bh_profile_container(arch, &mark, b->listener, &profile);
    int rc = profile.full ? bh_fail(err, BH_TOO_LARGE, "the seccomp profile is too large") : BH_OK;
    rc = rc < 0 ? rc : bh_spec_read(config->at, config->n, &spec, err);
    rc = rc < 0 ? rc : bh_spec_put_seccomp(config->at, config->n, &spec, bh_buf_text(&profile), out, err);
    bh_buf_fini(&profile);
    return rc;
}

int bh_bundle_write(const struct bh_bundle *b, struct bh_buf *out, struct bh_err *err)
{
    struct bh_buf config;
    int rc = check(b, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&config, BH_BUNDLE_MAX);
    write_config(b, &config);
    if (config.full)
        rc = bh_fail(err, BH_TOO_LARGE, "the container's configuration would be longer than %d bytes",
                     BH_BUNDLE_MAX);
    else
        rc = add_profile(b, &config, out, err);
    bh_buf_fini(&config);
    if (rc == BH_OK && out->full)
        rc = bh_fail(err, BH_TOO_LARGE, "the container's configuration does not fit");
    return rc;
}
