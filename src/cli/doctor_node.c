/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_node.c - who schedules this node, MPS, and the host's own means. */
#include "base/str.h"
#include "base/units.h"
#include "cli/doctor.h"
#include "core/model/catalog.h"
#include "host/labels.h"
#include "host/probe_parse.h"

#include <inttypes.h>

#define LABEL(name) "nvidia.com/" name

/* ---- scheduler ---- */

static bool has_slurm(const struct bh_node *n)
{
    return n->programs[BH_PROGRAM_SLURMD].path || n->files[BH_FILE_SLURM].path;
}

static struct bh_check_result present(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    bool slurm = has_slurm(n), kubelet = n->programs[BH_PROGRAM_KUBELET].path != NULL;
    if (slurm && kubelet)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "both slurmd and a kubelet: each may give out the same GPU");
    if (slurm)
        return bh_saw(d, BH_CHECK_OK, 0, "Slurm");
    if (kubelet)
        return bh_saw(d, BH_CHECK_OK, 0, "Kubernetes (kubelet %s)",
                      n->programs[BH_PROGRAM_KUBELET].version ? n->programs[BH_PROGRAM_KUBELET].version
                                                              : "of unknown version");
    return bh_saw(d, BH_CHECK_OK, 0, "none: this node stands alone");
}

static struct bh_check_result slurm(struct bh_doctor *d)
{
    const struct bh_node_file *conf = &d->f->node->files[BH_FILE_SLURM],
                              *cgroup = &d->f->node->files[BH_FILE_SLURM_CGROUP],
                              *gres = &d->f->node->files[BH_FILE_SLURM_GRES];
    if (!has_slurm(d->f->node))
        return bh_saw(d, BH_CHECK_NONE, 0, "no Slurm");
    if (!conf->text)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "slurm.conf: %s", conf->why ? conf->why : "not on this node");
    if (!bh_span_lists(bh_pairs_find(conf->text, "GresTypes"), "gpu"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "GresTypes has no gpu: jobs take GPUs without asking");
    if (!gres->path)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "no gres.conf: Slurm does not know which nodes are GPUs");
    if (!bh_span_lists(bh_pairs_find(conf->text, "TaskPlugin"), "task/cgroup"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "TaskPlugin has no task/cgroup: every job reaches every GPU");
    if (!cgroup->text)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "cgroup.conf %s: every job reaches every GPU",
                      cgroup->path ? "cannot be read" : "is missing");
    if (!bh_span_yes(bh_pairs_find(cgroup->text, "ConstrainDevices")))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "ConstrainDevices is not yes: every job reaches every GPU");
    return bh_saw(d, BH_CHECK_OK, 0, "jobs are held to their GPUs (ConstrainDevices)");
}

/* A label as text, or NULL. */
static const char *label(struct bh_doctor *d, const char *key)
{
    struct bh_span k, v;
    size_t bad = 0;
    for (size_t pos = 0; bh_labels_next(d->f->node->files[BH_FILE_LABELS].text, &pos, &k, &v, &bad);)
        if (bh_span_eq_nocase(k, key))
            return bh_arena_strn(&d->arena, v.at, v.n);
    return NULL;
}

static struct bh_check_result drift(struct bh_doctor *d, const char *what, const char *said,
                                    const char *found)
{
    return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s: the label says %s, the silicon %s", what, said, found);
}

/* GPU instances with a device, of one profile; `+` is written `.` in a label. */
static size_t slices_of(const struct bh_doctor *d, const char *profile, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++)
        for (size_t k = 0; k < d->f->gpus->devices.at[i].instances.n; k++) {
            const struct bh_gpu_instance *at = &d->f->gpus->devices.at[i].instances.at[k];
            bool same = at->ci != BH_NO_ID && at->profile && strlen(at->profile) == n;
            for (size_t c = 0; same && c < n; c++)
                same = at->profile[c] == profile[c] || (at->profile[c] == '+' && profile[c] == '.');
            found += same;
        }
    return found;
}

static const char mig_head[] = LABEL("mig-"), mig_tail[] = ".count";

/* `nvidia.com/mig-1g.10gb.count=7` against the slices that are there; false: nothing differs. */
static bool slices_drift(struct bh_doctor *d, struct bh_check_result *ret)
{
    struct bh_span key, value;
    size_t h = sizeof(mig_head) - 1, t = sizeof(mig_tail) - 1, bad = 0;
    for (size_t pos = 0; bh_labels_next(d->f->node->files[BH_FILE_LABELS].text, &pos, &key, &value, &bad);) {
        if (key.n <= h + t || memcmp(key.at, mig_head, h) != 0 ||
            memcmp(key.at + key.n - t, mig_tail, t) != 0)
            continue;
        size_t n = slices_of(d, key.at + h, key.n - h - t);
        const char *found = bh_arena_printf(&d->arena, "%zu", n);
        if (value.n == strlen(found) && memcmp(value.at, found, value.n) == 0)
            continue;
        *ret = drift(d, bh_arena_strn(&d->arena, key.at, key.n), bh_arena_strn(&d->arena, value.at, value.n),
                     found);
        return true;
    }
    return false;
}

/* Under the strategy `mixed` each profile has its own resource, and so its own label. */
static bool slices_unlabelled(struct bh_doctor *d, struct bh_check_result *ret)
{
    const char *strategy = label(d, LABEL("mig.strategy"));
    if (!strategy || !bh_str_eq(strategy, "mixed"))
        return false;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++)
        for (size_t k = 0; k < d->f->gpus->devices.at[i].instances.n; k++) {
            const struct bh_gpu_instance *at = &d->f->gpus->devices.at[i].instances.at[k];
            if (at->ci == BH_NO_ID || !at->profile)
                continue;
            char *key = bh_arena_printf(&d->arena, "%s%s%s", mig_head, at->profile, mig_tail);
            for (char *c = key; *c; c++)
                *c = *c == '+' ? '.' : *c;
            if (label(d, key))
                continue;
            *ret = drift(d, key, "nothing",
                         bh_arena_printf(&d->arena, "%zu", slices_of(d, at->profile, strlen(at->profile))));
            return true;
        }
    return false;
}

/* A label has dashes where a name has blanks. */
static bool names_gpu(const char *product, const struct bh_gpu_device *g)
{
    if (g->model)
        return bh_catalog_matches(product, g->model);
    size_t n = g->name ? strlen(g->name) : 0;
    for (size_t i = 0; i < n; i++)
        if (bh_to_lower(product[i]) != (g->name[i] == ' ' ? '-' : bh_to_lower(g->name[i])))
            return false;
    return n && (product[n] == '\0' || product[n] == '-'); /* -SHARED, -MIG-1g.10gb */
}

/*
 * The label names one product, also of a node that has several: then it speaks of those GPUs, and so does the count.
 * Of a node whose GPUs are all cut the plugin says `...-MIG-1g.10gb`, and counts slices instead of GPUs.
 */
static bool product_drifts(struct bh_doctor *d, struct bh_check_result *ret)
{
    const char *product = label(d, LABEL("gpu.product")), *count = label(d, LABEL("gpu.count"));
    const char *cut = product ? strstr(product, "-MIG-") : NULL;
    const struct bh_gpu_device *other = NULL;
    size_t named = 0, living = 0;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *g = &d->f->gpus->devices.at[i];
        if (!g->alive)
            continue;
        bool same = !product || names_gpu(product, g);
        living++;
        named += same;
        other = !same && !other ? g : other;
    }
    if (!named && other) {
        *ret = drift(d, LABEL("gpu.product"), product,
                     other->model  ? other->model->name
                     : other->name ? other->name
                                   : "unknown");
        return true;
    }
    if (cut)
        named = slices_of(d, cut + strlen("-MIG-"), strlen(cut) - strlen("-MIG-"));
    const char *found = bh_arena_printf(&d->arena, "%zu", named);
    if (count && !bh_str_eq(count, found)) {
        *ret = drift(d, LABEL("gpu.count"), count, found);
        return true;
    }
    if (other)
        bh_doctor_detail(d, "the labels speak of %zu of %zu GPUs; a node has one gpu.product", named, living);
    return false;
}

static bool mode_drifts(struct bh_doctor *d, struct bh_check_result *ret)
{
    const char *driver = label(d, LABEL("cuda.driver-version.full")),
               *strategy = label(d, LABEL("mig.strategy"));
    size_t cut = 0;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++)
        cut += !d->f->gpus->devices.at[i].mig_mode.why && d->f->gpus->devices.at[i].mig_mode.v;
    if (driver && d->f->gpus->driver && !bh_str_eq(driver, d->f->gpus->driver)) {
        *ret = drift(d, LABEL("cuda.driver-version.full"), driver, d->f->gpus->driver);
        return true;
    }
    if (cut && (!strategy || bh_str_eq(strategy, "none"))) {
        *ret = drift(d, LABEL("mig.strategy"), strategy ? strategy : "nothing", "is cut up by MIG");
        return true;
    }
    return false;
}

static struct bh_check_result labels(struct bh_doctor *d)
{
    const struct bh_node_file *f = &d->f->node->files[BH_FILE_LABELS];
    struct bh_check_result r;
    if (!f->path)
        return bh_saw(d, BH_CHECK_NONE, 0, "no labels of GPU Feature Discovery on this node");
    if (!f->text)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", f->why);
    if (product_drifts(d, &r) || mode_drifts(d, &r) || slices_drift(d, &r) || slices_unlabelled(d, &r))
        return r;
    return bh_saw(d, BH_CHECK_OK, 0, "agree with the silicon");
}

const struct bh_check bh_checks_scheduler[] = {
    {"scheduler.present",
     {NULL},
     0,
     false,
     false,
     present,
     "Two who give out the same GPU give it out twice.",
     "leave the node to one of them"},
    {"scheduler.slurm",
     {"BH-072", NULL},
     0,
     false,
     false,
     slurm,
     "Slurm counts GPUs; without cgroups nothing holds a job to those it was given.",
     "GresTypes=gpu, gres.conf, TaskPlugin=task/cgroup, and ConstrainDevices=yes in cgroup.conf; restart slurmd"},
    {"scheduler.labels",
     {"BH-043", NULL},
     0,
     true,
     false,
     labels,
     "Pods are placed by these labels, on silicon that is not what they say.",
     "restart GPU Feature Discovery on this node; keep it cordoned until they agree"},
    {0},
};

/* ---- MPS ---- */

static struct bh_check_result mps_programs(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    if (n->programs[BH_PROGRAM_MPS_CONTROL].path && n->programs[BH_PROGRAM_MPS_SERVER].path)
        return bh_saw(d, BH_CHECK_OK, 0, "%s", n->programs[BH_PROGRAM_MPS_CONTROL].path);
    struct bh_check_result r =
        bh_saw(d, BH_CHECK_NOTE, BH_MODE_MPS, "nvidia-cuda-mps-control or its server is not here");
    r.because = "its programs are not here";
    return r;
}

static struct bh_check_result mps_daemon(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    if (n->mps_hidden)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "the default place may not be looked into (%04o)",
                      (unsigned)n->mps_folder_mode);
    if (!n->mps_running)
        return bh_saw(d, BH_CHECK_OK, 0, "none in the default place");
    if (n->mps_folder_mode & 01)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "one in the default place, which every user may enter (%04o)",
                      (unsigned)n->mps_folder_mode);
    return bh_saw(d, BH_CHECK_OK, 0, "one in the default place, closed to others");
}

const struct bh_check bh_checks_mps[] = {
    {"mps.programs",
     {NULL},
     BH_MODE_MPS,
     true,
     false,
     mps_programs,
     "MPS shares a GPU between programs of one trust domain.",
     "install the driver's compute utilities"},
    {"mps.daemon",
     {"BH-002", "BH-072"},
     0,
     false,
     false,
     mps_daemon,
     "Whoever reaches its pipe becomes a client beside the others: a fault of one ends all.",
     "a CUDA_MPS_PIPE_DIRECTORY for each pool, mode 0700; stop this one: echo quit | nvidia-cuda-mps-control"},
    {0},
};

/* ---- host ---- */

/* The driver can park a process in host memory from this branch on. */
#define SUSPEND_FLOOR "570"

static struct bh_check_result host_memory(struct bh_doctor *d)
{
    const struct bh_node_file *f = &d->f->node->files[BH_FILE_MEMINFO];
    const char *driver = d->f->gpus->driver;
    uint64_t total, need = bh_doctor_largest(d);
    struct bh_unit_text a, b;
    struct bh_check_result r;
    if (!f->text || !bh_meminfo_bytes(f->text, "MemTotal", &total) || !need)
        return bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_SUSPEND, "the host's or the GPUs' memory is not known");
    if (driver && !bh_doctor_at_least(driver, SUSPEND_FLOOR)) {
        r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_SUSPEND,
                   "driver %s cannot park a process: " SUSPEND_FLOOR " or later can", driver);
        r.because = "the driver is too old";
        return r;
    }
    if (total < need) {
        r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_SUSPEND, "%s, less than one GPU's %s", bh_size_format(total, &a),
                   bh_size_format(need, &b));
        r.because = "less host memory than a GPU has";
        return r;
    }
    return bh_saw(d, BH_CHECK_OK, 0, "%s for GPUs of %s", bh_size_format(total, &a),
                  bh_size_format(need, &b));
}

static struct bh_check_result disk(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    struct bh_unit_text t;
    if (!n->state_folder)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "no folder for the daemon's state can be looked at");
    if (n->state_free_bytes < BH_GIB)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s free in %s", bh_size_format(n->state_free_bytes, &t),
                      n->state_folder);
    return bh_saw(d, BH_CHECK_OK, 0, "%s free in %s",
                  bh_size_format(n->state_free_bytes / BH_GIB * BH_GIB, &t), n->state_folder);
}

static bool has_no_numa(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return g->numa < 0;
}

static struct bh_check_result numa(struct bh_doctor *d)
{
    const struct bh_node_value online = d->f->node->lines[BH_LINE_NUMA_ONLINE];
    size_t n;
    const char *who = bh_doctor_gpus(d, has_no_numa, &n);
    if (!n)
        return bh_saw(d, BH_CHECK_OK, 0, "known for every GPU");
    if (!online.text || !*online.text)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: not known, nor how many nodes there are", who);
    if (bh_str_eq(online.text, "0"))
        return bh_saw(d, BH_CHECK_OK, 0, "there is one");
    return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s: not known, of nodes %s", who, online.text);
}

const struct bh_check bh_checks_host[] = {
    {"host.memory",
     {NULL},
     BH_MODE_SUSPEND,
     true,
     false,
     host_memory,
     "A suspended tenant's GPU memory lies in the host's.",
     "more memory; or let preemption requeue jobs instead"},
    {"host.disk",
     {"BH-076", NULL},
     0,
     false,
     true,
     disk,
     "When the audit trail cannot be written, nothing privileged is done.",
     "make room, or put /var/lib/bulkhead elsewhere"},
    {"host.numa",
     {"BH-045", NULL},
     0,
     true,
     false,
     numa,
     "A VM or job may be placed on the far socket's processors and memory.",
     "the firmware does not say which socket a slot belongs to: update it, or pin by hand"},
    {0},
};
