/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_gear.c - collects what a container is given; every name is checked on its way in, so that writers need not. */
#include "host/bundle_gear.h"

#include "base/str.h"
#include "base/sysfile.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { ENV_MAX = BH_GEAR_PATH_MAX * 32, FIRST_INSTANCE_CAP = 3, IMEX_CAP = 4323 };

void bh_gear_fini(struct bh_gear *g)
{
    bh_vec_fini(&g->nodes);
    bh_vec_fini(&g->mounts);
    bh_vec_fini(&g->env);
    bh_arena_fini(&g->arena);
}

/* One part of a path: `.` and `..` would leave where it stands, a control character the line of a message. */
static bool part_valid(const char *s, size_t n)
{
    if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
            return false;
    return true;
}

static bool is_utf8(const char *s)
{
    for (const unsigned char *at = (const unsigned char *)s; *at;) {
        const size_t n = bh_utf8_len(at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

bool bh_gear_path_valid(const char *path)
{
    if (path[0] != '/' || strlen(path) >= BH_GEAR_PATH_MAX || !is_utf8(path))
        return false;
    const char *at = path + 1;
    for (;;) {
        const size_t n = strcspn(at, "/");
        if (!part_valid(at, n))
            return false;
        if (at[n] == '\0')
            return true;
        at += n + 1;
    }
}

static int check_path(const char *path, struct bh_err *err)
{
    return bh_gear_path_valid(path)
               ? BH_OK
               : bh_fail(
                     err, BH_INVALID,
                     "'%.200s' is no path that a container can be given: it must be absolute, clean and shorter than %d bytes",
                     path, BH_GEAR_PATH_MAX);
}

static int check_room(size_t n, const char *what, struct bh_err *err)
{
    return n < BH_GEAR_MAX ? BH_OK
                           : bh_fail(err, BH_TOO_LARGE, "more than %d %s for one lease", BH_GEAR_MAX, what);
}

static int look(const char *path, struct stat *ret, struct bh_err *err)
{
    if (stat(path, ret) == 0)
        return BH_OK;
    const int error = errno;
    return bh_fail(err, error == ENOENT || error == ENOTDIR ? BH_NOT_FOUND : BH_SYSTEM, "%.300s: %s", path,
                   strerror(error));
}

int bh_gear_node(struct bh_gear *g, const char *host, const char *inside, bool is_read_only,
                 struct bh_err *err)
{
    struct stat st;
    inside = inside ? inside : host;
    int rc = check_path(host, err);
    rc = rc < 0 ? rc : check_path(inside, err);
    rc = rc < 0 ? rc : look(host, &st, err);
    if (rc < 0)
        return rc;
    if (!bh_str_starts(inside, "/dev/"))
        return bh_fail(err, BH_INVALID, "a device node stands below /dev, not at '%.200s'", inside);
    if (!S_ISCHR(st.st_mode))
        return bh_fail(err, BH_INVALID, "%.300s is no character device", host);
    const uint32_t major_ = major(st.st_rdev), minor_ = minor(st.st_rdev);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct bh_gear_node *n = &g->nodes.at[i];
        if (!bh_str_eq(n->inside, inside))
            continue;
        if (n->major == major_ && n->minor == minor_ && n->is_read_only == is_read_only)
            return BH_OK;
        return bh_fail(err, BH_CONFLICT, "two devices for one place, %.200s", inside);
    }
    rc = check_room(g->nodes.n, "device nodes", err);
    if (rc < 0)
        return rc;
    *bh_vec_push(&g->nodes) = (struct bh_gear_node){
        .host = bh_arena_str(&g->arena, host),
        .inside = bh_arena_str(&g->arena, inside),
        .major = major_,
        .minor = minor_,
        .is_read_only = is_read_only,
    };
    return BH_OK;
}

static int add_mount(struct bh_gear *g, const struct bh_gear_mount *new, struct bh_err *err)
{
    for (size_t i = 0; i < g->mounts.n; i++) {
        const struct bh_gear_mount *m = &g->mounts.at[i];
        if (!bh_str_eq(m->inside, new->inside))
            continue;
        if (bh_str_eq(m->host, new->host) && m->is_writable == new->is_writable &&
            m->is_socket == new->is_socket)
            return BH_OK;
        return bh_fail(err, BH_CONFLICT, "two files for one place, %.200s", new->inside);
    }
    const int rc = check_room(g->mounts.n, "mounts", err);
    if (rc < 0)
        return rc;
    *bh_vec_push(&g->mounts) = (struct bh_gear_mount){
        .host = bh_arena_str(&g->arena, new->host),
        .inside = bh_arena_str(&g->arena, new->inside),
        .is_writable = new->is_writable,
        .is_socket = new->is_socket,
    };
    return BH_OK;
}

int bh_gear_mount(struct bh_gear *g, const char *host, const char *inside, bool is_writable,
                  struct bh_err *err)
{
    const struct bh_gear_mount new = {.host = host, .inside = inside, .is_writable = is_writable};
    struct stat st;
    int rc = check_path(host, err);
    rc = rc < 0 ? rc : check_path(inside, err);
    rc = rc < 0 ? rc : look(host, &st, err);
    if (rc < 0)
        return rc;
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
        return bh_fail(err, BH_INVALID, "%.300s is a device and must be given as one", host);
    return add_mount(g, &new, err);
}

int bh_gear_socket(struct bh_gear *g, const char *host, const char *inside, struct bh_err *err)
{
    const struct bh_gear_mount new = {.host = host, .inside = inside, .is_socket = true};
    int rc = check_path(host, err);
    rc = rc < 0 ? rc : check_path(inside, err);
    return rc < 0 ? rc : add_mount(g, &new, err);
}

int bh_gear_env(struct bh_gear *g, const char *name, const char *value, struct bh_err *err)
{
    const size_t n = strlen(name);
    if (n == 0 || strchr(name, '=') || !part_valid(name, n))
        return bh_fail(err, BH_INVALID, "'%.100s' is no name of a variable", name);
    if (n + strlen(value) + 1 >= ENV_MAX)
        return bh_fail(err, BH_TOO_LARGE, "the variable %.100s is longer than %d bytes", name, ENV_MAX);
    if (!is_utf8(name) || !is_utf8(value))
        return bh_fail(err, BH_INVALID,
                       "the variable %.100s is not UTF-8, and a container's environment must be", name);
    for (size_t i = 0; i < g->env.n; i++)
        if (strncmp(g->env.at[i], name, n) == 0 && g->env.at[i][n] == '=')
            return bh_str_eq(g->env.at[i] + n + 1, value)
                       ? BH_OK
                       : bh_fail(err, BH_CONFLICT, "two values for the variable %.100s", name);
    int rc = check_room(g->env.n, "variables", err);
    if (rc < 0)
        return rc;
    *bh_vec_push(&g->env) = bh_arena_printf(&g->arena, "%s=%s", name, value);
    return BH_OK;
}

/* ---- NVIDIA's ---- */

static int add_node(struct bh_gear *g, const char *path, bool is_read_only, struct bh_err *err)
{
    char host[BH_SYSPATH_MAX];
    if (!bh_syspath(host, path))
        return bh_fail(err, BH_TOO_LARGE, "%.200s: the path is too long", path);
    return bh_gear_node(g, host, path, is_read_only, err);
}

int bh_gear_gpu(struct bh_gear *g, uint32_t minor, struct bh_err *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
    int rc = add_node(g, path, false, err);
    rc = rc < 0 ? rc : add_node(g, "/dev/nvidiactl", false, err);
    return rc < 0 ? rc : add_node(g, "/dev/nvidia-uvm", false, err);
}

int bh_gear_cap(struct bh_gear *g, uint32_t cap_minor, struct bh_err *err)
{
    char path[64];
    if (cap_minor < FIRST_INSTANCE_CAP || cap_minor == IMEX_CAP)
        return bh_fail(err, BH_DENIED, "nvidia-cap%u is for managing cards, and no tenant's", cap_minor);
    (void)snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u", cap_minor);
    return add_node(g, path, true, err);
}

/* What computing needs of the driver's libraries; those of displays stay outside. */
static const char *const wanted[] = {
    "libcuda.so*",
    "libcudadebugger.so*",
    "libnvidia-allocator.so*",
    "libnvidia-cfg.so*",
    "libnvidia-encode.so*",
    "libnvidia-gpucomp.so*",
    "libnvidia-ml.so*",
    "libnvidia-nvvm*.so*",
    "libnvidia-opencl.so*",
    "libnvidia-opticalflow.so*",
    "libnvidia-pkcs11*.so*",
    "libnvidia-ptxjitcompiler.so*",
    "libnvcuvid.so*",
};
static const char *const library_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib64",
    "/usr/lib",
};

static bool is_wanted(const char *name)
{
    for (size_t i = 0; i < BH_COUNT_OF(wanted); i++)
        if (bh_str_glob(wanted[i], name))
            return true;
    return false;
}

/* One name of a library: what it leads to must be of that version ("": any), so that no other driver's is mixed in. */
static int add_library(struct bh_gear *g, const char *folder, const char *name, const char *version,
                       struct bh_err *err)
{
    char at[PATH_MAX], real[PATH_MAX], inside[PATH_MAX];
    if (snprintf(at, sizeof(at), "%s/%s", folder, name) >= (int)sizeof(at) || !realpath(at, real))
        return BH_OK; /* a dead link is no library */
    if (*version && (!bh_str_ends(real, version) || real[strlen(real) - strlen(version) - 1] != '.'))
        return BH_OK;
    if (snprintf(inside, sizeof(inside), "%s/%s", BH_GEAR_LIBRARIES, name) >= (int)sizeof(inside))
        return bh_fail(err, BH_TOO_LARGE, "%.200s: the name is too long", name);
    int rc = bh_gear_mount(g, real, inside, false, err);
    return rc == BH_CONFLICT ? BH_OK : rc; /* the first folder wins, as for the loader */
}

static int add_libraries(struct bh_gear *g, const char *folder, const char *version, struct bh_err *err)
{
    DIR *d = opendir(folder);
    int rc = BH_OK;
    if (!d)
        return BH_OK;
    for (const struct dirent *e; rc == BH_OK && (e = readdir(d));)
        if (is_wanted(e->d_name))
            rc = add_library(g, folder, e->d_name, version, err);
    (void)closedir(d);
    return rc;
}

int bh_gear_driver(struct bh_gear *g, const char *version, struct bh_err *err)
{
    const size_t before = g->mounts.n;
    if (!*version || strspn(version, "0123456789.") != strlen(version))
        return bh_fail(err, BH_INVALID, "'%.60s' is no version of a driver", version);
    for (size_t i = 0; i < BH_COUNT_OF(library_folders); i++) {
        char folder[BH_SYSPATH_MAX];
        if (!bh_syspath(folder, library_folders[i]))
            continue;
        int rc = add_libraries(g, folder, version, err);
        if (rc < 0)
            return rc;
    }
    if (g->mounts.n == before)
        return bh_fail(
            err, BH_NOT_FOUND,
            "no library of driver %.60s below /usr/lib or /usr/lib64: is the driver's library package installed?",
            version);
    return bh_gear_env(g, "LD_LIBRARY_PATH", BH_GEAR_LIBRARIES, err);
}

/* ---- simulated silicon ---- */

int bh_gear_simulated(struct bh_gear *g, const char *folder, struct bh_err *err)
{
    static const struct {
        const char *name, *value;
    } vars[] = {
        {"BULKHEAD_SIM", BH_GEAR_INSIDE "/sim"},
        {"BULKHEAD_SYSROOT", BH_GEAR_INSIDE "/sim/sysroot"},
        {"BULKHEAD_NVML", BH_GEAR_LIBRARIES "/libnvidia-ml.so.1"},
        {"LD_LIBRARY_PATH", BH_GEAR_LIBRARIES},
    };
    char libraries[BH_GEAR_PATH_MAX + 8];
    int rc = bh_gear_mount(g, folder, BH_GEAR_INSIDE "/sim", false, err);
    if (rc < 0)
        return rc;
    const size_t before = g->mounts.n;
    (void)snprintf(libraries, sizeof(libraries), "%s/lib", folder);
    rc = add_libraries(g, libraries, "", err);
    if (rc == BH_OK && g->mounts.n == before)
        rc = bh_fail(err, BH_NOT_FOUND, "%.300s has no libraries: is it a node of bulkhead sim?", folder);
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT_OF(vars); i++)
        rc = bh_gear_env(g, vars[i].name, vars[i].value, err);
    return rc;
}
