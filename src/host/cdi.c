/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi.c - CDI specification and seccomp profile of a lease.
 *
 * The version that is written is the oldest that has what is used, as the CDI specification asks for: engines refuse versions
 * that are newer than they are. A node that is called otherwise on the machine (hostPath) came with 0.5.0.
 */
#include "host/cdi.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "host/bundle_files.h"
#include "host/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "bulkhead-L", spec_end[] = ".json", profile_end[] = ".seccomp";

int bh_cdi_paths(const char *folder, uint64_t lease, struct bh_cdi_paths *ret, struct bh_err *err)
{
    if (!bh_gear_path_valid(folder))
        return bh_fail(err, BH_INVALID, "'%.200s' is no folder for CDI files: it must be absolute and clean",
                       folder);
    const int n =
        snprintf(ret->spec, sizeof(ret->spec), "%s/%s%" PRIu64 "%s", folder, prefix, lease, spec_end);
    const int m = snprintf(ret->profile, sizeof(ret->profile), "%s/%s%" PRIu64 "%s", folder, prefix, lease,
                           profile_end);
    return n < BH_CDI_PATH_MAX && m < BH_CDI_PATH_MAX
               ? BH_OK
               : bh_fail(err, BH_TOO_LARGE, "'%.200s' is too long for a folder of CDI files", folder);
}

/* ---- the specification ---- */

static const char *version_of(const struct bh_gear *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!bh_str_eq(g->nodes.at[i].host, g->nodes.at[i].inside))
            return "0.5.0";
    return "0.3.0";
}

static void write_nodes(struct bh_json *j, const struct bh_gear *g)
{
    bh_json_key(j, "deviceNodes");
    bh_json_open(j, '[');
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct bh_gear_node *n = &g->nodes.at[i];
        bh_json_open(j, '{');
        bh_json_key_str(j, "path", n->inside);
        if (!bh_str_eq(n->host, n->inside))
            bh_json_key_str(j, "hostPath", n->host);
        bh_json_key_str(j, "type", "c");
        bh_json_key_u64(j, "major", n->major);
        bh_json_key_u64(j, "minor", n->minor);
        bh_json_key_str(j, "permissions", n->is_read_only ? "r" : "rw");
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_mounts(struct bh_json *j, const struct bh_gear *g)
{
    static const char *const options[] = {"rbind", "nosuid", "nodev"};
    bh_json_key(j, "mounts");
    bh_json_open(j, '[');
    for (size_t i = 0; i < g->mounts.n; i++) {
        const struct bh_gear_mount *m = &g->mounts.at[i];
        bh_json_open(j, '{');
        bh_json_key_str(j, "hostPath", m->host);
        bh_json_key_str(j, "containerPath", m->inside);
        bh_json_key(j, "options");
        bh_json_open_flat(j, '[');
        for (size_t k = 0; k < BH_COUNT_OF(options); k++)
            bh_json_str(j, options[k]);
        bh_json_str(j, m->is_writable ? "rw" : "ro");
        if (m->is_socket)
            bh_json_str(j, "noexec");
        bh_json_close(j, ']');
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_hook(struct bh_json *j, const struct bh_cdi *c, const char *profile)
{
    char lease[32];
    (void)snprintf(lease, sizeof(lease), "%" PRIu64, c->lease);
    const char *const args[] = {"bulkhead-oci", "hook", "--lease", lease, "--profile", profile};
    bh_json_key(j, "hooks");
    bh_json_open(j, '[');
    bh_json_open(j, '{');
    bh_json_key_str(j, "hookName", "createRuntime");
    bh_json_key_str(j, "path", c->hook);
    bh_json_key(j, "args");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < BH_COUNT_OF(args); i++)
        bh_json_str(j, args[i]);
    if (c->cgroup) {
        bh_json_str(j, "--cgroup");
        bh_json_str(j, c->cgroup);
    }
    bh_json_close(j, ']');
    bh_json_key_u64(j, "timeout", 30);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
}

int bh_cdi_text(const struct bh_cdi *c, const char *profile, struct bh_buf *out, struct bh_err *err)
{
    struct bh_json j;
    char name[32], variable[64];
    if (!bh_gear_path_valid(c->hook) || !bh_gear_path_valid(c->listener))
        return bh_fail(
            err, BH_INVALID,
            "a CDI file needs the absolute paths of bulkhead-oci and of the listener, not '%.100s' and '%.100s'",
            c->hook, c->listener);
    (void)snprintf(name, sizeof(name), "L%" PRIu64, c->lease);
    (void)snprintf(variable, sizeof(variable), "BULKHEAD_LEASE=%s", name);
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "cdiVersion", version_of(c->gear));
    bh_json_key_str(&j, "kind", BH_CDI_KIND);
    bh_json_key(&j, "devices");
    bh_json_open(&j, '[');
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "name", name);
    bh_json_key(&j, "containerEdits");
    bh_json_open(&j, '{');
    bh_json_key(&j, "env");
    bh_json_open(&j, '[');
    bh_json_str(&j, variable);
    for (size_t i = 0; i < c->gear->env.n; i++)
        bh_json_str(&j, c->gear->env.at[i]);
    bh_json_close(&j, ']');
    write_nodes(&j, c->gear);
    write_mounts(&j, c->gear);
    write_hook(&j, c, profile);
    bh_json_close(&j, '}');
    bh_json_close(&j, '}');
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
    return out->full ? bh_fail(err, BH_TOO_LARGE, "the CDI file of L%" PRIu64 " would be too long", c->lease)
                     : BH_OK;
}

static int write_profile(const struct bh_cdi *c, struct bh_buf *out, struct bh_err *err)
{
    struct bh_profile_mark mark = {.flags = c->profile_flags};
    const struct bh_filter_arch *arch = bh_filter_here();
    if (!arch)
        return bh_fail(err, BH_REFUSED, "the gate does not know this machine's architecture");
    (void)snprintf(mark.name, sizeof(mark.name), "L%" PRIu64, c->lease);
    bh_profile_write(arch, &mark, c->listener, out);
    return out->full
               ? bh_fail(err, BH_TOO_LARGE, "the seccomp profile of L%" PRIu64 " would be too long", c->lease)
               : BH_OK;
}

/* ---- the folder ---- */

int bh_cdi_write(const char *folder, const struct bh_cdi *c, struct bh_err *err)
{
    struct bh_cdi_paths paths;
    struct bh_buf spec, profile;
    int fd;
    int rc = bh_cdi_paths(folder, c->lease, &paths, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&spec, BH_CDI_FILE_MAX);
    bh_buf_init(&profile, BH_CDI_FILE_MAX);
    rc = bh_cdi_text(c, paths.profile, &spec, err);
    rc = rc < 0 ? rc : write_profile(c, &profile, err);
    rc = rc < 0 ? rc : bh_folder_open(folder, 0755, &fd, err);
    if (rc == BH_OK) {
        rc = bh_file_put(fd, strrchr(paths.profile, '/') + 1, profile.at, profile.n, 0644, err);
        /* It carries what the tenant's environment carries. */
        rc = rc < 0 ? rc : bh_file_put(fd, strrchr(paths.spec, '/') + 1, spec.at, spec.n, 0600, err);
        close(fd);
        rc = rc < 0 ? bh_wrap(err, rc, "%.200s", folder) : rc;
    }
    bh_buf_fini(&spec);
    bh_buf_fini(&profile);
    return rc;
}

int bh_cdi_remove(const char *folder, uint64_t lease, struct bh_err *err)
{
    struct bh_cdi_paths paths;
    int rc = bh_cdi_paths(folder, lease, &paths, err);
    if (rc < 0)
        return rc;
    const char *const both[] = {paths.spec, paths.profile};
    for (size_t i = 0; i < BH_COUNT_OF(both); i++)
        if (unlink(both[i]) < 0 && errno != ENOENT && errno != ENOTDIR)
            return bh_file_fail(both[i], errno, err);
    return BH_OK;
}

/* The lease of a file `bulkhead-L17.json`; false: it is none. */
static bool lease_of(const char *name, const char *end, uint64_t *ret)
{
    char number[24];
    const size_t n = strlen(name), head = sizeof(prefix) - 1, tail = strlen(end);
    if (!bh_str_starts(name, prefix) || !bh_str_ends(name, end) || n <= head + tail ||
        n - head - tail >= sizeof(number))
        return false;
    (void)snprintf(number, sizeof(number), "%.*s", (int)(n - head - tail), name + head);
    return bh_uint_parse(number, UINT64_MAX, ret, NULL) == BH_OK;
}

int bh_cdi_list(const char *folder, void (*each)(void *arg, uint64_t lease), void *arg, struct bh_err *err)
{
    int fd;
    struct bh_err own = {0};
    int rc = bh_folder_open(folder, 0, &fd, &own);
    if (rc < 0)
        return rc == BH_NOT_FOUND ? BH_OK : bh_fail(err, own.code, "%s", own.msg);
    DIR *d = fdopendir(fd);
    if (!d) {
        const int error = errno;
        close(fd);
        return bh_file_fail(folder, error, err);
    }
    for (const struct dirent *e; (e = readdir(d));) {
        uint64_t lease;
        char spec[64];
        if (lease_of(e->d_name, spec_end, &lease)) {
            each(arg, lease);
            continue;
        }
        if (!lease_of(e->d_name, profile_end, &lease))
            continue;
        (void)snprintf(spec, sizeof(spec), "%s%" PRIu64 "%s", prefix, lease, spec_end);
        if (faccessat(fd, spec, F_OK, AT_SYMLINK_NOFOLLOW) < 0) /* a crash came between the two */
            each(arg, lease);
    }
    (void)closedir(d);
    return BH_OK;
}
