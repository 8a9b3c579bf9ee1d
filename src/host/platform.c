/* SPDX-License-Identifier: Apache-2.0 */
#include "host/platform.h"

#include "base/str.h"
#include "base/sysfile.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PCI_DEVICES "/sys/bus/pci/devices/"
#define SECURE_BOOT "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
enum { LINE = 256, PARAMS_MAX = 1 << 16, DPKG_MAX = 64 << 20, CONFIG_MAX = 4096, BRIDGES_MAX = 32 };

static struct bh_platform_text unknown(struct bh_platform *p, const struct bh_err *err)
{
    return (struct bh_platform_text){NULL, bh_arena_str(&p->arena, err->msg)};
}

static struct bh_platform_text line_of(struct bh_platform *p, const char *path)
{
    struct bh_err err;
    char text[LINE];
    if (bh_sysfile_line(path, text, sizeof(text), &err) < 0)
        return unknown(p, &err);
    if (!*text)
        return (struct bh_platform_text){NULL, bh_arena_printf(&p->arena, "%s: empty", path)};
    return (struct bh_platform_text){bh_arena_str(&p->arena, text), NULL};
}

/* A span inside a whole file. */
static struct bh_platform_text span_text(struct bh_platform *p, struct bh_span s, const char *why)
{
    if (!s.n)
        return (struct bh_platform_text){NULL, why};
    return (struct bh_platform_text){bh_arena_strn(&p->arena, s.at, s.n), NULL};
}

static void read_names(struct bh_platform *p)
{
    struct utsname u;
    p->hostname = line_of(p, "/proc/sys/kernel/hostname");
    p->kernel = line_of(p, "/proc/sys/kernel/osrelease");
    if (p->root || uname(&u) < 0)
        return;
    if (!p->hostname.text)
        p->hostname = (struct bh_platform_text){bh_arena_str(&p->arena, u.nodename), NULL};
    if (!p->kernel.text)
        p->kernel = (struct bh_platform_text){bh_arena_str(&p->arena, u.release), NULL};
}

static void read_driver(struct bh_platform *p)
{
    struct bh_err err;
    BH_AUTOFREE char *text = NULL;
    p->driver = line_of(p, "/sys/module/nvidia/version");
    if (p->driver.text)
        return;
    if (bh_sysfile_read("/proc/driver/nvidia/version", PARAMS_MAX, &text, NULL, &err) < 0)
        p->driver = unknown(p, &err);
    else
        p->driver = span_text(p, bh_driver_version(text), "/proc/driver/nvidia/version: no version in it");
}

static void read_params(struct bh_platform *p)
{
    struct bh_err err;
    BH_AUTOFREE char *text = NULL;
    struct bh_span key, value;
    size_t pos = 0;
    if (bh_sysfile_read("/proc/driver/nvidia/params", PARAMS_MAX, &text, NULL, &err) < 0) {
        p->params_why = bh_arena_str(&p->arena, err.msg);
        return;
    }
    while (bh_params_next(text, &pos, &key, &value))
        *bh_vec_push(&p->params) = (struct bh_platform_param){bh_arena_strn(&p->arena, key.at, key.n),
                                                              bh_arena_strn(&p->arena, value.at, value.n)};
    if (!p->params.n)
        p->params_why = "/proc/driver/nvidia/params: nothing in it";
}

/* No program is run to ask it: the package list has the version, and the file alone says only that it is there. */
static void read_toolkit(struct bh_platform *p)
{
    struct bh_err err;
    BH_AUTOFREE char *text = NULL;
    const char *why = bh_sysfile_exists("/usr/bin/nvidia-ctk")
                          ? "nvidia-ctk is there, and the package list does not have its version"
                          : "no nvidia-ctk on this machine";
    if (bh_sysfile_read("/var/lib/dpkg/status", DPKG_MAX, &text, NULL, &err) < 0)
        p->toolkit = (struct bh_platform_text){NULL, why};
    else
        p->toolkit = span_text(p, bh_dpkg_version(text, "nvidia-container-toolkit"), why);
}

static void read_boot(struct bh_platform *p)
{
    struct bh_err err;
    BH_AUTOFREE char *bytes = NULL, *text = NULL;
    size_t n = 0;
    if (bh_sysfile_read(SECURE_BOOT, CONFIG_MAX, &bytes, &n, &err) < 0)
        p->secure_boot.why =
            bh_sysfile_exists("/sys/firmware/efi")
                ? "the firmware's SecureBoot variable cannot be read here"
                : "no EFI variables to be seen: booted by a BIOS, or a virtual machine or container";
    else if ((p->secure_boot.known = (uint8_t)bh_secure_boot((uint8_t *)bytes, n)) == BH_KNOWN_NOT)
        p->secure_boot.why = "the firmware's SecureBoot variable makes no sense";
    if (bh_sysfile_read("/sys/kernel/security/lockdown", PARAMS_MAX, &text, NULL, &err) < 0)
        p->lockdown = unknown(p, &err);
    else
        p->lockdown =
            span_text(p, bh_lockdown_word(text), "/sys/kernel/security/lockdown: no word in brackets");
}

static void read_cgroup(struct bh_platform *p)
{
    const char *mode = bh_sysfile_exists("/sys/fs/cgroup/cgroup.controllers") ? "v2"
                       : bh_sysfile_exists("/sys/fs/cgroup/unified")          ? "hybrid"
                       : bh_sysfile_exists("/sys/fs/cgroup/devices")          ? "v1"
                                                                              : NULL;
    p->cgroup = (struct bh_platform_text){mode, mode ? NULL : "no cgroups to be seen below /sys/fs/cgroup"};
}

/* ---- PCI ---- */

static bool has_entries(const char *path)
{
    char at[BH_SYSPATH_MAX];
    DIR *dir = bh_syspath(at, path) ? opendir(at) : NULL;
    bool found = false;
    for (const struct dirent *e; dir && !found && (e = readdir(dir));)
        found = e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return found;
}

static const char unplaced[] = "the PCI address of a GPU is not known";

static void read_iommu(struct bh_platform *p, const char *const *gpus, size_t n)
{
    char path[BH_SYSPATH_MAX];
    if (!bh_sysfile_exists("/sys/kernel/iommu_groups")) {
        p->iommu.why = "no /sys/kernel/iommu_groups to be seen";
        return;
    }
    if (!has_entries("/sys/kernel/iommu_groups")) {
        p->iommu = (struct bh_platform_fact){BH_KNOWN_NO, "the kernel has no IOMMU groups"};
        return;
    }
    p->iommu = n ? (struct bh_platform_fact){BH_KNOWN_YES, NULL}
                 : (struct bh_platform_fact){BH_KNOWN_NOT, "no GPU whose group could be looked at"};
    for (size_t i = 0; i < n && p->iommu.known != BH_KNOWN_NO; i++) {
        if (!gpus[i]) {
            p->iommu = (struct bh_platform_fact){BH_KNOWN_NOT, unplaced};
            continue;
        }
        (void)snprintf(path, sizeof(path), PCI_DEVICES "%.60s/iommu_group", gpus[i]);
        if (!bh_sysfile_exists(path))
            p->iommu = (struct bh_platform_fact){
                BH_KNOWN_NO, bh_arena_printf(&p->arena, "GPU %.60s is in no IOMMU group", gpus[i])};
    }
}

/* The fact of one bridge, by its folder below the real path. */
static struct bh_platform_fact bridge_acs(struct bh_platform *p, const char *folder, bool *ret_port)
{
    char path[BH_SYSPATH_MAX];
    BH_AUTOFREE char *config = NULL;
    size_t n = 0;
    const char *name = strrchr(folder, '/') + 1;
    *ret_port = true;
    (void)snprintf(path, sizeof(path), PCI_DEVICES "%.60s/config", name);
    if (bh_sysfile_read(path, CONFIG_MAX, &config, &n, NULL) < 0)
        return (struct bh_platform_fact){BH_KNOWN_NOT,
                                         bh_arena_printf(&p->arena, "%.60s cannot be read", name)};
    enum bh_known known = bh_acs_redirects((uint8_t *)config, n, ret_port);
    return (struct bh_platform_fact){
        (uint8_t)known,
        known == BH_KNOWN_YES ? NULL
        : known == BH_KNOWN_NO
            ? bh_arena_printf(&p->arena, "port %.60s lets peer traffic pass the IOMMU by", name)
            : bh_arena_printf(&p->arena, "only root may read the configuration of port %.60s", name)};
}

/* Every port between a GPU and the processor. The worst answer counts: no before unknown before yes. */
static struct bh_platform_fact gpu_acs(struct bh_platform *p, const char *gpu)
{
    char below[BH_SYSPATH_MAX], at[BH_SYSPATH_MAX];
    struct bh_platform_fact all = {BH_KNOWN_YES, NULL};
    unsigned ports = 0;
    (void)snprintf(below, sizeof(below), PCI_DEVICES "%.60s", gpu);
    BH_AUTOFREE char *real = bh_syspath(at, below) ? realpath(at, NULL) : NULL;
    if (!real)
        return (struct bh_platform_fact){BH_KNOWN_NOT,
                                         bh_arena_printf(&p->arena, "GPU %.60s is not in sysfs", gpu)};
    for (unsigned steps = 0; steps < BRIDGES_MAX; steps++) {
        char *slash = strrchr(real, '/');
        if (!slash || slash == real)
            break;
        *slash = '\0';
        const char *name = strrchr(real, '/');
        /* `0000:17:01.0` is a bridge, `pci0000:17` its host bridge: the way ends there */
        if (!name || strlen(name) < 12 || !strchr(name, '.') || bh_str_starts(name, "/pci"))
            break;
        bool is_port;
        struct bh_platform_fact one = bridge_acs(p, real, &is_port);
        if (!is_port)
            continue;
        ports++;
        if (one.known == BH_KNOWN_NO || (one.known == BH_KNOWN_NOT && all.known == BH_KNOWN_YES))
            all = one;
    }
    if (!ports)
        return (struct bh_platform_fact){
            BH_KNOWN_NOT,
            bh_arena_printf(&p->arena, "no port above GPU %.60s to be seen (a virtual machine?)", gpu)};
    return all;
}

static void read_acs(struct bh_platform *p, const char *const *gpus, size_t n)
{
    p->acs =
        n ? (struct bh_platform_fact){BH_KNOWN_YES, NULL}
          : (struct bh_platform_fact){BH_KNOWN_NOT, "no GPU whose way to the processor could be looked at"};
    for (size_t i = 0; i < n; i++) {
        struct bh_platform_fact one =
            gpus[i] ? gpu_acs(p, gpus[i]) : (struct bh_platform_fact){BH_KNOWN_NOT, unplaced};
        if (one.known == BH_KNOWN_NO || (one.known == BH_KNOWN_NOT && p->acs.known == BH_KNOWN_YES))
            p->acs = one;
    }
}

void bh_platform_read(struct bh_platform *ret, const char *const *gpus, size_t n_gpus)
{
    *ret = (struct bh_platform){0};
    if (*bh_sysroot())
        ret->root = bh_arena_str(&ret->arena, bh_sysroot());
    read_names(ret);
    read_driver(ret);
    read_params(ret);
    read_toolkit(ret);
    read_boot(ret);
    read_cgroup(ret);
    read_iommu(ret, gpus, n_gpus);
    read_acs(ret, gpus, n_gpus);
}

void bh_platform_fini(struct bh_platform *p)
{
    bh_vec_fini(&p->params);
    bh_arena_fini(&p->arena);
}
