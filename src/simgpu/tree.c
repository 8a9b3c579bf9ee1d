/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - a machine's files, laid out as the kernel lays them out.
 *
 * A GPU hangs below a root port, a switch and the switch's port to it, each on a bus of its own; where a GPU's bus
 * leaves no room for those it hangs at the root port (as on Grace boards). Links are relative, so that the whole
 * folder stands for `/` wherever it is.
 */
#include "simgpu/tree.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "simgpu/labels.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_NAME    ".bulkhead-simulated"
#define CAPABILITIES "proc/driver/nvidia/capabilities/"
#define MARK_HEAD    "A simulated machine. Written by bulkhead; removed with it.\n"

enum { PATH_LEN = 512, TEXT_MAX = 1 << 20, DEPTH_MAX = 32, CONFIG = 4096, CHAIN = 4 };
/* The driver's table of capabilities: 32 GPUs of 15 instances of 8 compute instances. */
enum { CAP_GPUS = 32, CAP_GIS = 15, CAP_CIS = 8, CAP_FIRST = 3, CAP_IMEX = 4323 };
enum { ROOT_ONLY = 0400, EVERYBODY = 0444 };

/* ---- writing ---- */

struct tree {
    int root;
    const char *folder;
    struct bh_err *err;
    int rc; /* the first failure; nothing is written after it */
};

static void fail_errno(struct tree *t, const char *path, int error)
{
    t->rc = bh_fail(t->err, BH_SYSTEM, "%.200s/%.200s: %s", t->folder, path, strerror(error));
}

/* The folders of a path, not its last part. */
static void folders(struct tree *t, char *path)
{
    for (char *c = path; *c && t->rc == BH_OK; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        if (mkdirat(t->root, path, 0755) < 0 && errno != EEXIST)
            fail_errno(t, path, errno);
        *c = '/';
    }
}

static void put(struct tree *t, char *path, const void *bytes, size_t n, mode_t mode)
{
    folders(t, path);
    if (t->rc < 0)
        return;
    int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0;
    for (size_t done = 0; good && done < n;) {
        ssize_t w = write(fd, (const char *)bytes + done, n - done);
        good = w > 0 || (w < 0 && errno == EINTR);
        done += w > 0 ? (size_t)w : 0;
    }
    good =
        good && fchmod(fd, mode) == 0; /* not by open: a umask must not change what the machine looks like */
    int error = errno;
    if (fd >= 0 && close(fd) < 0 && good) {
        error = errno;
        good = false;
    }
    if (!good)
        fail_errno(t, path, error);
}

static void put_text(struct tree *t, const char *path, const char *fmt, ...) BH_PRINTF(3, 4);
static void put_text(struct tree *t, const char *path, const char *fmt, ...)
{
    char at[PATH_LEN], text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)snprintf(at, sizeof(at), "%s", path);
    if (n < 0 || (size_t)n >= sizeof(text))
        fail_errno(t, path, EFBIG);
    else
        put(t, at, text, (size_t)n, 0644);
}

static void put_buf(struct tree *t, const char *path, struct bh_buf *b)
{
    char at[PATH_LEN];
    (void)snprintf(at, sizeof(at), "%s", path);
    put(t, at, bh_buf_text(b), b->n, 0644);
    bh_buf_fini(b);
}

/* A device node: a plain file with its permissions. */
static void put_node(struct tree *t, const char *name, uint32_t number, bool numbered, mode_t mode)
{
    char at[PATH_LEN];
    (void)snprintf(at, sizeof(at), numbered ? "dev/%s%" PRIu32 : "dev/%s", name, number);
    put(t, at, "", 0, mode);
}

/* In place of what is there, at once; a file that says the same stays. */
static void replace(struct tree *t, const char *path, struct bh_buf *b)
{
    char old[64 << 10], fresh[PATH_LEN];
    int fd = openat(t->root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, old, sizeof(old));
    bool same = n >= 0 && (size_t)n == b->n && memcmp(old, bh_buf_text(b), b->n) == 0;
    if (fd >= 0)
        close(fd);
    if (t->rc == BH_OK && !same) {
        (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
        (void)unlinkat(t->root, fresh, 0);
        put(t, fresh, bh_buf_text(b), b->n, 0644);
        if (t->rc == BH_OK && renameat(t->root, fresh, t->root, path) < 0)
            fail_errno(t, path, errno);
    }
    bh_buf_fini(b);
}

/* A link at `path` to `to`; both are from the root on, and the link goes up and down again between them. */
static void put_link(struct tree *t, const char *path, const char *to)
{
    char at[PATH_LEN], target[PATH_LEN] = "";
    size_t same = 0, n = 0;
    for (size_t i = 0; path[i] && path[i] == to[i]; i++)
        if (path[i] == '/')
            same = i + 1;
    for (const char *c = path + same; *c && n + 4 < sizeof(target); c++)
        if (*c == '/')
            n += (size_t)snprintf(target + n, sizeof(target) - n, "../");
    (void)snprintf(target + n, sizeof(target) - n, "%s", to + same);
    (void)snprintf(at, sizeof(at), "%s", path);
    folders(t, at);
    if (t->rc == BH_OK && symlinkat(target, t->root, at) < 0)
        fail_errno(t, at, errno);
}

static void put_folder(struct tree *t, const char *path)
{
    char at[PATH_LEN + 2];
    (void)snprintf(at, sizeof(at), "%s/", path);
    folders(t, at);
}

/* ---- PCI ---- */

enum port_type { ENDPOINT = 0, ROOT_PORT = 4, UPSTREAM = 5, DOWNSTREAM = 6 };

struct device {
    char name[16], path[PATH_LEN]; /* `0000:18:00.0`, `sys/devices/...` */
    uint32_t id, class;            /* id: device << 16 | vendor */
    enum port_type type;
    int32_t numa;
};

static void put_config(struct tree *t, const struct device *d, bool acs)
{
    char at[PATH_LEN + 16];
    uint8_t c[CONFIG] = {0};
    for (unsigned i = 0; i < 4; i++)
        c[i] = (uint8_t)(d->id >> 8 * i); /* vendor, then device */
    c[0x06] = 0x10;                       /* there is a list of capabilities */
    c[0x0a] = (uint8_t)(d->class >> 8);
    c[0x0b] = (uint8_t)(d->class >> 16);
    c[0x0e] = d->type != ENDPOINT;
    c[0x34] = 0x40;
    c[0x40] = 0x10; /* PCI Express */
    c[0x42] = (uint8_t)(d->type << 4 | 2);
    if (d->type == ROOT_PORT || d->type == DOWNSTREAM) {
        c[0x100] = 0x0d; /* access control: validation, redirects and forwarding, all or nothing */
        c[0x102] = 0x01;
        c[0x104] = 0x1d;
        c[0x106] = acs ? 0x1d : 0;
    }
    (void)snprintf(at, sizeof(at), "%s/config", d->path);
    put(t, at, c, sizeof(c), 0644);
}

static void put_device(struct tree *t, const struct device *d, bool acs)
{
    char at[PATH_LEN + 32];
    const struct {
        const char *name;
        uint32_t value;
        int digits;
    } numbers[] = {{"vendor", d->id & 0xffff, 4}, {"device", d->id >> 16, 4}, {"class", d->class, 6}};
    for (size_t i = 0; i < BH_COUNT_OF(numbers); i++) {
        (void)snprintf(at, sizeof(at), "%s/%s", d->path, numbers[i].name);
        put_text(t, at, "0x%0*" PRIx32 "\n", numbers[i].digits, numbers[i].value);
    }
    (void)snprintf(at, sizeof(at), "%s/numa_node", d->path);
    put_text(t, at, "%" PRId32 "\n", d->numa);
    (void)snprintf(at, sizeof(at), "%s/local_cpulist", d->path);
    put_text(t, at, "%s\n", d->numa == 1 ? "56-111,168-223" : "0-55,112-167");
    put_config(t, d, acs);
    (void)snprintf(at, sizeof(at), "sys/bus/pci/devices/%s", d->name);
    put_link(t, at, d->path);
}

static uint32_t hex(const char *s, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 4 | (uint32_t)(bh_is_digit(s[i]) ? s[i] - '0' : bh_to_lower(s[i]) - 'a' + 10);
    return v;
}

/* The way from the processor to a GPU, the GPU last. Returns how many. */
static size_t chain_of(const struct bh_sim_gpu *g, struct device *ret)
{
    static const struct {
        enum port_type type;
        uint32_t id;
    } through_switch[] = {{ROOT_PORT, 0x352a8086}, {UPSTREAM, 0xc0301000}, {DOWNSTREAM, 0xc0301000}};
    uint32_t domain = hex(g->pci, 4), bus = hex(g->pci + 5, 2);
    size_t ports = bus >= BH_COUNT_OF(through_switch) ? BH_COUNT_OF(through_switch) : 1, len;
    uint32_t first = bus >= ports ? bus - (uint32_t)ports : 0;
    for (size_t i = 0; i <= ports; i++) {
        struct device *d = &ret[i];
        *d = (struct device){.id = g->device_id, .class = 0x030200, .type = ENDPOINT, .numa = g->numa};
        if (i < ports) {
            d->id = ports == 1 ? 0x22b210de : through_switch[i].id;
            d->class = 0x060400;
            d->type = through_switch[i].type;
            (void)snprintf(d->name, sizeof(d->name), "%04" PRIx32 ":%02" PRIx32 ":%02u.0", domain & 0xffff,
                           (first + (uint32_t)i) & 0xff, i == 0 && ports > 1);
        } else {
            (void)snprintf(d->name, sizeof(d->name), "%s", g->pci);
        }
        if (i == 0)
            (void)snprintf(d->path, sizeof(d->path), "sys/devices/pci%04" PRIx32 ":%02" PRIx32,
                           domain & 0xffff, first & 0xff);
        else
            memcpy(d->path, ret[i - 1].path, sizeof(d->path));
        len = strlen(d->path);
        (void)snprintf(d->path + len, sizeof(d->path) - len, "/%s", d->name);
    }
    return ports + 1;
}

static void put_group(struct tree *t, uint32_t group, const struct device *d)
{
    char at[PATH_LEN + 32], to[64];
    (void)snprintf(to, sizeof(to), "sys/kernel/iommu_groups/%" PRIu32, group);
    (void)snprintf(at, sizeof(at), "%s/iommu_group", d->path);
    put_link(t, at, to);
    (void)snprintf(at, sizeof(at), "%s/devices/%.15s", to, d->name);
    put_link(t, at, d->path);
}

/* Without access control the ports above a GPU cannot be told from it. */
static void put_gpu_device(struct tree *t, const struct bh_sim_node *node, uint32_t i)
{
    struct device chain[CHAIN];
    char at[PATH_LEN + 32];
    size_t n = chain_of(&node->gpus[i], chain);
    const struct device *gpu = &chain[n - 1];
    for (size_t k = 0; k < n; k++) {
        put_device(t, &chain[k], node->acs);
        if (node->iommu && (k == n - 1 || !node->acs))
            put_group(t, i + 1, &chain[k]);
    }
    if (node->iommu) {
        (void)snprintf(at, sizeof(at), "sys/kernel/iommu_groups/%" PRIu32 "/type", i + 1);
        put_text(t, at, "DMA-FQ\n");
    }
    (void)snprintf(at, sizeof(at), "%s/driver", gpu->path);
    put_link(t, at, "sys/bus/pci/drivers/nvidia");
    (void)snprintf(at, sizeof(at), "sys/bus/pci/drivers/nvidia/%s", gpu->name);
    put_link(t, at, gpu->path);
}

static void put_pci(struct tree *t, const struct bh_sim_node *node)
{
    /* A machine has more than GPUs: this one is there on a node without any. */
    struct device bridge = {
        "0000:00:1f.0", "sys/devices/pci0000:00/0000:00:1f.0", 0x1b818086, 0x060100, ENDPOINT, 0};
    put_folder(t, "sys/bus/pci/drivers/nvidia");
    put_folder(t, "sys/kernel/iommu_groups");
    put_device(t, &bridge, false);
    if (node->iommu)
        put_group(t, 0, &bridge);
    for (uint32_t i = 0; i < node->n_gpus; i++)
        put_gpu_device(t, node, i);
}

/* ---- the driver ---- */

static void put_capability(struct tree *t, const char *name, uint32_t minor, unsigned mode)
{
    char at[PATH_LEN];
    (void)snprintf(at, sizeof(at), CAPABILITIES "%s", name);
    put_text(t, at, "DeviceFileMinor: %" PRIu32 "\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor, mode);
}

static uint32_t cap_of(uint32_t gpu, uint32_t gi)
{
    return CAP_FIRST + (gpu * CAP_GIS + gi) * (1 + CAP_CIS);
}

static void put_capabilities(struct tree *t, const struct bh_sim_node *node)
{
    struct bh_buf b;
    char at[PATH_LEN];
    put_capability(t, "mig/config", 1, ROOT_ONLY);
    put_capability(t, "mig/monitor", 2, EVERYBODY);
    put_capability(t, "fabric-imex-mgmt", CAP_IMEX, ROOT_ONLY);
    put_text(t, "proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt 0\n");
    put_text(t, "proc/driver/nvidia-caps/sys-minors", "fabric-imex-mgmt %d\n", CAP_IMEX);
    bh_buf_init(&b, TEXT_MAX);
    bh_buf_str(&b, "config 1\nmonitor 2\n");
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        uint32_t gpu = node->gpus[i].minor;
        if (node->gpus[i].mig) {
            (void)snprintf(at, sizeof(at), "proc/driver/nvidia/capabilities/gpu%" PRIu32 "/mig", gpu);
            put_folder(t, at);
        }
        for (uint32_t gi = 0; gpu < CAP_GPUS && gi < CAP_GIS; gi++) {
            uint32_t minor = cap_of(gpu, gi);
            bh_buf_printf(&b, "gpu%" PRIu32 "/gi%" PRIu32 "/access %" PRIu32 "\n", gpu, gi, minor);
            for (uint32_t ci = 0; ci < CAP_CIS; ci++)
                bh_buf_printf(&b, "gpu%" PRIu32 "/gi%" PRIu32 "/ci%" PRIu32 "/access %" PRIu32 "\n", gpu, gi,
                              ci, minor + 1 + ci);
        }
    }
    put_buf(t, "proc/driver/nvidia-caps/mig-minors", &b);
}

static void put_gpu_information(struct tree *t, const struct bh_sim_node *node, const struct bh_sim_gpu *g)
{
    char at[PATH_LEN];
    (void)snprintf(at, sizeof(at), "proc/driver/nvidia/gpus/%s/information", g->pci);
    put_text(
        t, at,
        "Model: \t\t %s\nIRQ:   \t\t %" PRIu32 "\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\n"
        "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t %s\nDevice Minor: \t %" PRIu32
        "\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
        g->name, 200 + g->minor, g->uuid, g->vbios, g->pci, g->minor, node->driver);
}

/* Ampere's and Hopper's boards; later switches have no driver on the node. */
static void put_switches(struct tree *t, const struct bh_sim_node *node)
{
    const struct bh_sim_gpu *g = &node->gpus[0];
    const bool ampere = node->n_gpus && bh_str_eq(g->model->arch, "Ampere");
    char at[PATH_LEN];
    put_text(t, "proc/driver/nvidia-nvswitch/permissions", "DeviceFileMode: 438\n");
    put_folder(t, "proc/driver/nvidia-nvswitch/devices");
    if (node->n_gpus < 2 || !g->links || !(ampere || bh_str_eq(g->model->arch, "Hopper")))
        return;
    for (unsigned i = 0; i < (ampere ? 6 : 4); i++) {
        (void)snprintf(at, sizeof(at), "proc/driver/nvidia-nvswitch/devices/0000:f%x:00.0/information", i);
        put_text(t, at, "BIOS Version: %s\n", ampere ? "92.10.18.00.02" : "96.10.57.00.01");
    }
}

static void put_params(struct tree *t, bool scrubs)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    bh_buf_printf(&b,
                  "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
                  "EnableMSI: 1\nEnablePCIeGen3: 0\nMemoryPoolSize: 0\nEnableGpuFirmware: 18\n"
                  "EnableResizableBar: 0\nOpenRmEnableUnsupportedGpus: 1\nRmProfilingAdminOnly: 1\n"
                  "ImexChannelCount: 2048\nCreateImexChannel0: 0\nGrdmaPciTopoCheckOverride: 0\n"
                  "RegistryDwords: \"%s\"\nRegistryDwordsPerDevice: \"\"\nRmMsg: \"\"\nExcludedGpus: \"\"\n",
                  scrubs ? "" : "RMDisableScrubOnFree=1");
    replace(t, "proc/driver/nvidia/params", &b);
}

static void put_driver(struct tree *t, const struct bh_sim_node *node)
{
    put_text(t, "proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (simulated)\n"
             "GCC version:  gcc version 12.3.0\n",
             node->driver);
    put_params(t, true);
    put_text(t, "sys/module/nvidia/version", "%s\n", node->driver);
    put_text(t, "sys/module/nvidia/taint", "O\n");
    put_text(t, "sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n");
    put_text(
        t, "proc/devices",
        "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n195 nvidia\n195 nvidiactl\n234 nvidia-nvswitch\n"
        "235 nvidia-nvlink\n236 nvidia-caps\n237 nvidia-caps-imex-channels\n511 nvidia-uvm\n\n"
        "Block devices:\n  7 loop\n259 blkext\n");
    put_capabilities(t, node);
    put_switches(t, node);
    put_folder(t, "proc/driver/nvidia/gpus");
    put_node(t, "nvidiactl", 0, false, 0666);
    put_node(t, "nvidia-uvm", 0, false, 0666);
    put_node(t, "nvidia-caps/nvidia-cap", 1, true, ROOT_ONLY);
    put_node(t, "nvidia-caps/nvidia-cap", 2, true, EVERYBODY);
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        put_gpu_information(t, node, &node->gpus[i]);
        put_node(t, "nvidia", node->gpus[i].minor, true, 0666);
    }
}

/* ---- the rest of the machine ---- */

static void put_kernel(struct tree *t, const struct bh_sim_node *node)
{
    static const char *const secure_boot =
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    char at[PATH_LEN];
    uint8_t variable[5] = {6, 0, 0, 0, node->secure_boot};
    uint64_t host = 256 * BH_GIB;
    for (uint32_t i = 0; i < node->n_gpus; i++)
        host += 2 * node->gpus[i].total_bytes;
    put_text(t, "proc/sys/kernel/hostname", "%s\n", node->hostname);
    put_text(t, "proc/sys/kernel/osrelease", "%s\n", node->kernel);
    put_text(t, "proc/sys/kernel/yama/ptrace_scope", "1\n");
    put_text(t, "proc/sys/kernel/io_uring_disabled", "2\n");
    put_text(t, "proc/meminfo", "MemTotal:       %" PRIu64 " kB\nMemFree:        %" PRIu64 " kB\n",
             host / 1024, host / 2048);
    (void)snprintf(at, sizeof(at), "%s", secure_boot);
    put(t, at, variable, sizeof(variable), 0644);
    put_text(t, "sys/kernel/security/lockdown",
             node->secure_boot ? "none [integrity] confidentiality\n" : "[none] integrity confidentiality\n");
    put_text(t, "sys/kernel/security/lsm", "lockdown,capability,landlock,yama,apparmor");
    put_text(t, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n");
    put_text(t, "sys/devices/system/node/online", node->n_gpus > 1 ? "0-1\n" : "0\n");
}

static void add_package(struct bh_buf *b, const char *name, const char *version)
{
    bh_buf_printf(
        b,
        "Package: %s\nStatus: install ok installed\nPriority: optional\nArchitecture: amd64\nVersion: %s-1\n\n",
        name, version);
}

static void put_packages(struct tree *t, const struct bh_sim_node *node)
{
    struct bh_buf b;
    bool switched = node->n_gpus && node->gpus[0].links;
    bh_buf_init(&b, TEXT_MAX);
    add_package(&b, "crun", "1.21");
    add_package(&b, "nvidia-container-toolkit", node->toolkit);
    if (switched) {
        add_package(&b, "nvidia-fabricmanager", node->driver);
        put_text(t, "usr/bin/nv-fabricmanager", "%s", "");
        put_text(t, "usr/share/nvidia/nvswitch/fabricmanager.cfg", "FABRIC_MODE=0\n");
    }
    put_buf(t, "var/lib/dpkg/status", &b);
    put_text(t, "usr/bin/crun", "%s", "");
    put_text(t, "usr/bin/nvidia-ctk", "%s", "");
    put_text(t, "etc/nvidia-container-runtime/config.toml",
             "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"
             "[nvidia-container-cli]\nno-cgroups = false\n");
}

static void put_labels(struct tree *t, const struct bh_sim_node *node, const struct bh_sim_gpu_view *gpus)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    bh_sim_labels(&b, node, gpus);
    replace(t, "etc/kubernetes/node-feature-discovery/features.d/gfd", &b);
}

/* ---- MIG slices ---- */

/* A capability: its text below /proc and its node, there or gone. */
static void set_capability(struct tree *t, const char *name, uint32_t minor, bool on)
{
    char access[80], node[64], at[PATH_LEN];
    (void)snprintf(access, sizeof(access), "%.64s/access", name);
    (void)snprintf(node, sizeof(node), "dev/nvidia-caps/nvidia-cap%" PRIu32, minor);
    bool is_there = faccessat(t->root, node, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (t->rc < 0 || on == is_there)
        return;
    if (on) {
        put_capability(t, access, minor, EVERYBODY);
        put_node(t, "nvidia-caps/nvidia-cap", minor, true, EVERYBODY);
        return;
    }
    (void)snprintf(at, sizeof(at), CAPABILITIES "%s", access);
    (void)unlinkat(t->root, at, 0);
    *strrchr(at, '/') = '\0';
    (void)unlinkat(t->root, at, AT_REMOVEDIR);
    if (unlinkat(t->root, node, 0) < 0)
        fail_errno(t, node, errno);
}

static void follow_slices(struct tree *t, const struct bh_sim_gpu_view *g)
{
    char name[64];
    bool gis[CAP_GIS] = {false}, cis[CAP_GIS][CAP_CIS] = {{false}};
    if (g->minor >= CAP_GPUS)
        return;
    for (uint32_t i = 0; i < g->n_gis; i++) {
        const struct bh_sim_gi_view *gi = &g->gis[i];
        for (uint32_t k = 0; gi->id < CAP_GIS && k < gi->n_cis; k++)
            if (gi->cis[k].id < CAP_CIS)
                cis[gi->id][gi->cis[k].id] = true;
        if (gi->id < CAP_GIS)
            gis[gi->id] = true;
    }
    /* Compute instances first: their folders lie in the instance's. */
    for (uint32_t gi = 0; gi < CAP_GIS; gi++) {
        uint32_t minor = cap_of(g->minor, gi);
        for (uint32_t ci = 0; ci < CAP_CIS; ci++) {
            (void)snprintf(name, sizeof(name), "gpu%" PRIu32 "/mig/gi%" PRIu32 "/ci%" PRIu32, g->minor, gi,
                           ci);
            set_capability(t, name, minor + 1 + ci, cis[gi][ci]);
        }
        (void)snprintf(name, sizeof(name), "gpu%" PRIu32 "/mig/gi%" PRIu32, g->minor, gi);
        set_capability(t, name, minor, gis[gi]);
    }
}

/* ---- the whole ---- */

static int fail_folder(const char *folder, int error, struct bh_err *err)
{
    return bh_fail(err, error == ENOENT ? BH_NOT_FOUND : BH_SYSTEM, "%.300s: %s", folder, strerror(error));
}

/* 1, 0, or -1 and errno. */
static int is_empty(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), empty = 1;
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (!d) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    for (const struct dirent *e; empty && (e = readdir(d));)
        empty = bh_str_eq(e->d_name, ".") || bh_str_eq(e->d_name, "..");
    closedir(d);
    return empty;
}

int bh_sim_tree_write(const struct bh_sim_node *node, const char *folder, struct bh_err *err)
{
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return fail_folder(folder, errno, err);
    struct tree t = {.root = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                     .folder = folder,
                     .err = err,
                     .rc = BH_OK};
    if (t.root < 0)
        return fail_folder(folder, errno, err);
    int empty = is_empty(t.root);
    if (empty < 0)
        t.rc = fail_folder(folder, errno, err);
    else if (!empty)
        t.rc = bh_fail(err, BH_CONFLICT, "%.300s: something is in it already", folder);
    put_text(&t, MARK_NAME, MARK_HEAD "scene %s, seed %" PRIu64 "\n", node->scene, node->seed);
    put_kernel(&t, node);
    put_driver(&t, node);
    put_pci(&t, node);
    put_packages(&t, node);
    put_labels(&t, node, NULL);
    close(t.root);
    return t.rc;
}

static bool has_mark(int dir)
{
    char head[sizeof(MARK_HEAD)] = "";
    int fd = openat(dir, MARK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof(head) - 1 && bh_str_eq(head, MARK_HEAD);
}

static int fail_unmarked(const char *folder, struct bh_err *err)
{
    return bh_fail(err, BH_REFUSED, "%.300s: not the folder of a simulated machine", folder);
}

int bh_sim_tree_follow(const struct bh_sim_node *node, const char *folder,
                       const struct bh_sim_tree_state *now, struct bh_err *err)
{
    struct tree t = {.root = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                     .folder = folder,
                     .err = err,
                     .rc = BH_OK};
    if (t.root < 0)
        return fail_folder(folder, errno, err);
    if (!has_mark(t.root)) {
        close(t.root);
        return fail_unmarked(folder, err);
    }
    put_params(&t, now->scrubs);
    for (uint32_t i = 0; i < node->n_gpus; i++)
        follow_slices(&t, &now->gpus[i]);
    put_labels(&t, node, now->gpus);
    close(t.root);
    return t.rc;
}

/* All that is in a folder but the mark at the top. -1 and errno. Depth: at most DEPTH_MAX. */
static int empty_folder(int dir, unsigned depth)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (!d) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (bh_str_eq(e->d_name, ".") || bh_str_eq(e->d_name, "..") ||
            (depth == 0 && bh_str_eq(e->d_name, MARK_NAME)))
            continue;
        if (unlinkat(dir, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        /* A folder cannot be unlinked; a link in its place is not opened. */
        int below = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        errno = depth < DEPTH_MAX ? errno : ELOOP;
        rc = below < 0 || depth == DEPTH_MAX ? -1 : empty_folder(below, depth + 1);
        int error = errno;
        if (below >= 0)
            close(below);
        errno = error;
        if (rc == 0)
            rc = unlinkat(dir, e->d_name, AT_REMOVEDIR);
    }
    int error = errno;
    closedir(d);
    errno = error;
    return rc;
}

int bh_sim_tree_remove(const char *folder, struct bh_err *err)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return fail_folder(folder, errno, err);
    if (!has_mark(dir)) {
        close(dir);
        return fail_unmarked(folder, err);
    }
    int rc = empty_folder(dir, 0);
    if (rc == 0)
        rc = unlinkat(dir, MARK_NAME, 0);
    if (rc == 0)
        rc = rmdir(folder);
    int error = errno;
    close(dir);
    return rc < 0 ? fail_folder(folder, error, err) : BH_OK;
}
