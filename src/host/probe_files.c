/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probe_files.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "host/labels.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MPS_FOLDER "/tmp/nvidia-mps"
enum {
    LINE = 512,
    TEXT_MAX = 1 << 20,
    DPKG_MAX = 64 << 20,
    PLACES = 4,
    CDI_FILES_MAX = 64,
    MEMBERS_MAX = 64
};

static const char *const lines[BH_N_LINES] = {
    [BH_LINE_MODULE_VERSION] = "/sys/module/nvidia/version",
    [BH_LINE_MODULE_TAINT] = "/sys/module/nvidia/taint",
    [BH_LINE_UVM_DISABLE_HMM] = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm",
    [BH_LINE_PTRACE_SCOPE] = "/proc/sys/kernel/yama/ptrace_scope",
    [BH_LINE_IO_URING_DISABLED] = "/proc/sys/kernel/io_uring_disabled",
    [BH_LINE_CGROUP_CONTROLLERS] = "/sys/fs/cgroup/cgroup.controllers",
    [BH_LINE_UNSAFE_INTERRUPTS] = "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts",
    [BH_LINE_UNSAFE_NOIOMMU] = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
    [BH_LINE_NUMA_ONLINE] = "/sys/devices/system/node/online",
    [BH_LINE_SEV_SNP] = "/sys/module/kvm_amd/parameters/sev_snp",
    [BH_LINE_TDX] = "/sys/module/kvm_intel/parameters/tdx",
};

static const char *const files[BH_N_FILES][PLACES] = {
    [BH_FILE_DRIVER_VERSION] = {"/proc/driver/nvidia/version"},
    [BH_FILE_MEMINFO] = {"/proc/meminfo"},
    [BH_FILE_FABRIC_CONFIG] = {"/usr/share/nvidia/nvswitch/fabricmanager.cfg",
                               "/etc/nvidia/fabricmanager.cfg"},
    [BH_FILE_TOOLKIT_CONFIG] = {"/etc/nvidia-container-runtime/config.toml"},
    [BH_FILE_CONTAINERD_CONFIG] = {"/etc/containerd/config.toml"},
    [BH_FILE_DOCKER_CONFIG] = {"/etc/docker/daemon.json"},
    [BH_FILE_SLURM] = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"},
    [BH_FILE_SLURM_CGROUP] = {"/etc/slurm/cgroup.conf", "/etc/slurm-llnl/cgroup.conf",
                              "/run/slurm/conf/cgroup.conf"},
    [BH_FILE_SLURM_GRES] = {"/etc/slurm/gres.conf", "/etc/slurm-llnl/gres.conf", "/run/slurm/conf/gres.conf"},
    [BH_FILE_LABELS] = {BH_LABELS_GFD},
};

/* Where each is installed, and the packages it comes in; the first found counts. */
static const struct {
    const char *places[PLACES], *packages[PLACES];
} programs[BH_N_PROGRAMS] = {
    [BH_PROGRAM_CRUN] = {{"/usr/bin/crun", "/usr/local/bin/crun"}, {"crun"}},
    [BH_PROGRAM_RUNC] = {{"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"}, {"runc"}},
    [BH_PROGRAM_CONTAINERD] = {{"/usr/bin/containerd", "/usr/local/bin/containerd"},
                               {"containerd.io", "containerd"}},
    [BH_PROGRAM_DOCKER] = {{"/usr/bin/dockerd", "/usr/sbin/dockerd"}, {"docker-ce", "docker.io"}},
    [BH_PROGRAM_QEMU] = {{"/usr/bin/qemu-system-x86_64", "/usr/bin/qemu-system-aarch64",
                          "/usr/libexec/qemu-kvm"},
                         {"qemu-system-x86", "qemu-system-arm"}},
    [BH_PROGRAM_KUBELET] = {{"/usr/bin/kubelet", "/usr/local/bin/kubelet"}, {"kubelet"}},
    [BH_PROGRAM_SLURMD] = {{"/usr/sbin/slurmd", "/usr/local/sbin/slurmd"}, {"slurmd", "slurm-smd-slurmd"}},
    [BH_PROGRAM_FABRIC_MANAGER] = {{"/usr/bin/nv-fabricmanager"}, {"nvidia-fabricmanager"}},
    [BH_PROGRAM_MPS_CONTROL] = {{"/usr/bin/nvidia-cuda-mps-control"}, {NULL}},
    [BH_PROGRAM_MPS_SERVER] = {{"/usr/bin/nvidia-cuda-mps-server"}, {NULL}},
};

static void read_lines(struct bh_node *n)
{
    struct bh_err err;
    char text[LINE];
    for (size_t i = 0; i < BH_N_LINES; i++) {
        int rc = bh_sysfile_line(lines[i], text, sizeof(text), &err);
        if (rc < 0)
            n->lines[i] = (struct bh_node_value){.why = bh_arena_str(&n->arena, err.msg),
                                                 .is_absent = rc == BH_NOT_FOUND};
        else
            n->lines[i].text = bh_arena_str(&n->arena, text);
    }
}

static struct bh_node_file read_text(struct bh_node *n, const char *path)
{
    struct bh_err err;
    BH_AUTOFREE char *text = NULL;
    struct bh_node_file f = {.path = bh_arena_str(&n->arena, path)};
    if (bh_sysfile_read(path, TEXT_MAX, &text, NULL, &err) < 0)
        f.why = bh_arena_str(&n->arena, err.msg);
    else
        f.text = bh_arena_str(&n->arena, text);
    return f;
}

/* Whether something is there cannot be told from outside a folder that is closed: then it may be. */
static bool may_be_there(const char *path)
{
    char at[BH_SYSPATH_MAX];
    struct stat st;
    return bh_syspath(at, path) && (stat(at, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

static void read_files(struct bh_node *n)
{
    for (size_t i = 0; i < BH_N_FILES; i++)
        for (size_t k = 0; k < PLACES && files[i][k] && !n->files[i].path; k++)
            if (may_be_there(files[i][k]))
                n->files[i] = read_text(n, files[i][k]);
}

static void read_programs(struct bh_node *n)
{
    BH_AUTOFREE char *dpkg = NULL;
    bool has_list = bh_sysfile_read("/var/lib/dpkg/status", DPKG_MAX, &dpkg, NULL, NULL) == BH_OK;
    for (size_t i = 0; i < BH_N_PROGRAMS; i++) {
        struct bh_node_program *p = &n->programs[i];
        for (size_t k = 0; k < PLACES && programs[i].places[k] && !p->path; k++)
            if (bh_sysfile_exists(programs[i].places[k]))
                p->path = programs[i].places[k];
        for (size_t k = 0; p->path && has_list && k < PLACES && programs[i].packages[k] && !p->version; k++) {
            struct bh_span v = bh_dpkg_version(dpkg, programs[i].packages[k]);
            if (v.n)
                p->version = bh_arena_strn(&n->arena, v.at, v.n);
        }
    }
}

/* ---- device nodes ---- */

static struct bh_devnode node_at(struct bh_node *n, const char *path)
{
    char at[BH_SYSPATH_MAX];
    struct stat st;
    struct bh_devnode d = {.path = bh_arena_str(&n->arena, path)};
    if (!bh_syspath(at, path) || stat(at, &st) < 0)
        return d;
    d.exists = true;
    d.is_device = S_ISCHR(st.st_mode) || *bh_sysroot();
    d.mode = (uint32_t)(st.st_mode & 07777);
    d.uid = st.st_uid;
    d.gid = st.st_gid;
    return d;
}

static struct bh_devnode node_numbered(struct bh_node *n, const char *stem, uint32_t number)
{
    char path[96];
    (void)snprintf(path, sizeof(path), "%s%u", stem, (unsigned)number);
    return node_at(n, path);
}

static void read_devices(struct bh_node *n, const struct bh_node_ask *ask)
{
    n->ctl = node_at(n, "/dev/nvidiactl");
    n->uvm = node_at(n, "/dev/nvidia-uvm");
    n->mig_config = node_at(n, "/dev/nvidia-caps/nvidia-cap1");
    n->imex_channel0 = node_at(n, "/dev/nvidia-caps-imex-channels/channel0");
    n->kvm = node_at(n, "/dev/kvm");
    for (size_t i = 0; i < ask->n_minors; i++)
        *bh_vec_push(&n->gpus) = node_numbered(n, "/dev/nvidia", ask->minors[i]);
    for (size_t i = 0; i < ask->n_caps; i++)
        *bh_vec_push(&n->caps) = node_numbered(n, "/dev/nvidia-caps/nvidia-cap", ask->caps[i]);
}

/* ---- folders ---- */

typedef BH_VEC(const char *) name_vec;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, sorted; at most max, so that a hostile folder costs no more. 0 or an errno. */
static int list(struct bh_arena *a, const char *folder, size_t max, name_vec *ret)
{
    char at[BH_SYSPATH_MAX];
    errno = ENAMETOOLONG;
    DIR *dir = bh_syspath(at, folder) ? opendir(at) : NULL;
    int error = dir ? 0 : errno;
    for (const struct dirent *e; dir && ret->n < max && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            *bh_vec_push(ret) = bh_arena_str(a, e->d_name);
    if (dir)
        closedir(dir);
    if (ret->n)
        qsort(ret->at, ret->n, sizeof(*ret->at), by_name);
    return error;
}

static void read_cdi(struct bh_node *n, const char *folder)
{
    name_vec names = {0};
    char path[BH_SYSPATH_MAX];
    int error = list(&n->arena, folder, CDI_FILES_MAX, &names);
    if (error && error != ENOENT)
        *bh_vec_push(&n->cdi) = (struct bh_node_file){
            .path = folder, .why = bh_arena_printf(&n->arena, "%s: %s", folder, strerror(error))};
    for (size_t i = 0; i < names.n; i++)
        if (bh_str_ends(names.at[i], ".json") || bh_str_ends(names.at[i], ".yaml")) {
            (void)snprintf(path, sizeof(path), "%s/%.255s", folder, names.at[i]);
            *bh_vec_push(&n->cdi) = read_text(n, path);
        }
    bh_vec_fini(&names);
}

/* ---- IOMMU groups ---- */

/* Functions of the GPU's own slot move with it, and bridges belong to nobody. */
static bool is_stranger(const char *gpu, const char *member)
{
    char path[BH_SYSPATH_MAX], class[LINE];
    const char *dot = strrchr(gpu, '.');
    if (dot && strncmp(gpu, member, (size_t)(dot - gpu) + 1) == 0)
        return false;
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.60s/class", member);
    return bh_sysfile_line(path, class, sizeof(class), NULL) < 0 || !bh_str_starts(class, "0x0604");
}

static void read_group(struct bh_node *n, const char *gpu)
{
    char path[BH_SYSPATH_MAX], at[BH_SYSPATH_MAX], to[BH_SYSPATH_MAX];
    struct bh_node_group *g = bh_vec_push(&n->groups);
    name_vec members = {0};
    *g = (struct bh_node_group){.gpu = bh_arena_str(&n->arena, gpu)};
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.60s/iommu_group", gpu);
    ssize_t len = bh_syspath(at, path) ? readlink(at, to, sizeof(to) - 1) : -1;
    if (len <= 0)
        return;
    to[len] = '\0';
    const char *slash = strrchr(to, '/');
    g->id = bh_arena_str(&n->arena, slash ? slash + 1 : to);
    (void)snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%.60s/devices", g->id);
    int error = list(&n->arena, path, MEMBERS_MAX, &members);
    bool has_gpu = false;
    for (size_t i = 0; i < members.n; i++) {
        has_gpu = has_gpu || bh_str_eq(members.at[i], gpu);
        if (is_stranger(gpu, members.at[i]))
            g->others =
                g->others ? bh_arena_printf(&n->arena, "%s, %s", g->others, members.at[i]) : members.at[i];
    }
    /* A list that does not have the GPU itself is not the group's, or was cut. */
    if (error)
        g->why = bh_arena_printf(&n->arena, "%s: %s", path, strerror(error));
    else if (!has_gpu || members.n == MEMBERS_MAX)
        g->why = bh_arena_printf(&n->arena, "%s does not name all of its members", path);
    bh_vec_fini(&members);
}

/* ---- the rest ---- */

static void read_state_folder(struct bh_node *n)
{
    static const char *const places[] = {"/var/lib/bulkhead", "/var/lib", "/var", "/"};
    char at[BH_SYSPATH_MAX];
    struct statvfs st;
    for (size_t i = 0; i < BH_COUNT_OF(places) && !n->state_folder; i++)
        if (bh_syspath(at, places[i]) && statvfs(at, &st) == 0) {
            n->state_folder = places[i];
            n->state_free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
        }
}

void bh_node_read(struct bh_node *ret, const struct bh_node_ask *ask)
{
    *ret = (struct bh_node){0};
    read_lines(ret);
    read_files(ret);
    read_programs(ret);
    read_devices(ret, ask);
    read_cdi(ret, "/etc/cdi");
    read_cdi(ret, "/var/run/cdi");
    for (size_t i = 0; i < ask->n_pci; i++)
        read_group(ret, ask->pci[i]);
    ret->persistenced = bh_sysfile_exists("/var/run/nvidia-persistenced/socket") ||
                        bh_sysfile_exists("/run/nvidia-persistenced/socket");
    ret->vfio =
        bh_sysfile_exists("/sys/module/vfio_pci") || bh_sysfile_exists("/sys/bus/pci/drivers/vfio-pci");
    ret->mps_running = bh_sysfile_exists(MPS_FOLDER "/control");
    ret->mps_hidden = !ret->mps_running && may_be_there(MPS_FOLDER "/control");
    ret->mps_folder_mode = node_at(ret, MPS_FOLDER).mode;
    read_state_folder(ret);
}

void bh_node_fini(struct bh_node *n)
{
    bh_vec_fini(&n->gpus);
    bh_vec_fini(&n->caps);
    bh_vec_fini(&n->cdi);
    bh_vec_fini(&n->groups);
    bh_arena_fini(&n->arena);
}
