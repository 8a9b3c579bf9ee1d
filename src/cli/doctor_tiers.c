/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_tiers.c - what stands between a tenant and the host: containers and virtual machines. */
#include "base/str.h"
#include "cli/doctor.h"
#include "host/probe_parse.h"

#include <inttypes.h>
#include <stdio.h>

static const char *version_of(const struct bh_node_program *p)
{
    return p->version ? p->version : "version not known";
}

/* ---- containers ---- */

/* The first releases that hand a seccomp listener to a socket (linux.seccomp.listenerPath). */
#define CRUN_FLOOR "0.19"
#define RUNC_FLOOR "1.1.0"

static struct bh_check_result runtime(struct bh_doctor *d)
{
    const struct bh_node_program *crun = &d->f->node->programs[BH_PROGRAM_CRUN];
    const struct bh_node_program *runc = &d->f->node->programs[BH_PROGRAM_RUNC];
    const struct bh_node_program *p = crun->path ? crun : runc;
    const char *name = crun->path ? "crun" : "runc", *floor = crun->path ? CRUN_FLOOR : RUNC_FLOOR;
    if (!p->path) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_CONTAINER, "neither crun nor runc");
        r.because = "no crun or runc";
        return r;
    }
    if (p->version && !bh_doctor_at_least(p->version, floor))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s %s cannot hand on a seccomp listener: %s or later does",
                      name, p->version, floor);
    return bh_saw(d, BH_CHECK_OK, 0, "%s %s at %s", name, version_of(p), p->path);
}

/* containerd passes CDI devices on from 1.7 when told to, from 2.0 by itself; before, it drops them. */
static struct bh_check_result containerd_cdi(struct bh_doctor *d, const struct bh_node_program *p)
{
    const struct bh_node_file *config = &d->f->node->files[BH_FILE_CONTAINERD_CONFIG];
    struct bh_span told =
        config->text ? bh_pairs_find(config->text, "enable_cdi") : (struct bh_span){NULL, 0};
    if (!p->version)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "containerd at %s, version not known", p->path);
    if (!bh_doctor_at_least(p->version, "1.7~0"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "containerd %s drops CDI devices without a word", p->version);
    if (told.at ? !bh_span_yes(told) : !bh_doctor_at_least(p->version, "2.0~0"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "containerd %s with CDI off", p->version);
    return bh_saw(d, BH_CHECK_OK, 0, "containerd %s with CDI", p->version);
}

/* Docker has CDI as a feature to be turned on from 25, and on by itself from 28.2. */
static struct bh_check_result docker_cdi(struct bh_doctor *d, const struct bh_node_program *p)
{
    const struct bh_node_file *config = &d->f->node->files[BH_FILE_DOCKER_CONFIG];
    bool told = config->text && bh_json_says_true(config->text, "cdi");
    if (!p->version)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "docker at %s, version not known", p->path);
    if (!bh_doctor_at_least(p->version, "25~0"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "docker %s has no CDI", p->version);
    if (!told && !bh_doctor_at_least(p->version, "28.2~0"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "docker %s with CDI off", p->version);
    return bh_saw(d, BH_CHECK_OK, 0, "docker %s with CDI", p->version);
}

static struct bh_check_result engine(struct bh_doctor *d)
{
    const struct bh_node_program *containerd = &d->f->node->programs[BH_PROGRAM_CONTAINERD];
    const struct bh_node_program *docker = &d->f->node->programs[BH_PROGRAM_DOCKER];
    if (docker->path)
        return docker_cdi(d, docker);
    if (containerd->path)
        return containerd_cdi(d, containerd);
    return bh_saw(d, BH_CHECK_NONE, 0, "neither containerd nor docker on this node");
}

/* What a spec hands out and the GPUs that are there. */
static struct bh_check_result cdi(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    const struct bh_gpu_snapshot *s = d->f->gpus;
    bool named[BH_NODE_MINORS_MAX] = {false};
    size_t total = 0, here = 0;
    const char *closed = NULL;
    for (size_t i = 0; i < n->cdi.n; i++) {
        closed = closed ? closed : n->cdi.at[i].why;
        bh_doctor_detail(d, "%s%s%s", n->cdi.at[i].path, n->cdi.at[i].why ? ": " : "",
                         n->cdi.at[i].why ? n->cdi.at[i].why : "");
        if (n->cdi.at[i].text)
            total += bh_nvidia_minors(n->cdi.at[i].text, named);
    }
    if (closed) /* what stands in it may be what the others lack */
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", closed);
    if (!total)
        return bh_saw(d, BH_CHECK_NOTE, 0, "no spec in /etc/cdi or /var/run/cdi names a GPU");
    for (size_t i = 0; i < s->devices.n; i++) {
        const struct bh_gpu_device *g = &s->devices.at[i];
        if (!g->alive || g->minor < 0 || g->minor >= BH_NODE_MINORS_MAX)
            continue;
        if (!named[g->minor])
            return bh_saw(d, BH_CHECK_ATTENTION, 0,
                          "the specs do not name GPU %" PRIu32 " (/dev/nvidia%" PRId32 ")", g->index,
                          g->minor);
        here++;
    }
    if (here < total)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "the specs name %zu GPUs, %zu of them %s here", total, here,
                      here == 1 ? "is" : "are");
    return bh_saw(d, BH_CHECK_OK, 0, "the specs name every GPU");
}

static struct bh_check_result toolkit(struct bh_doctor *d)
{
    const struct bh_platform_text v = d->f->platform->toolkit;
    if (v.text)
        return bh_doctor_advisories(d, "nvidia-container-toolkit", v.text);
    if (d->f->node->files[BH_FILE_TOOLKIT_CONFIG].path)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", v.why);
    return bh_saw(d, BH_CHECK_NONE, 0, "%s", v.why);
}

static struct bh_check_result toolkit_config(struct bh_doctor *d)
{
    const struct bh_node_file *f = &d->f->node->files[BH_FILE_TOOLKIT_CONFIG];
    if (!f->path)
        return bh_saw(d, BH_CHECK_NONE, 0, "the toolkit's runtime is not configured on this node");
    if (!f->text)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", f->why);
    struct bh_span env = bh_pairs_find(f->text, "accept-nvidia-visible-devices-envvar-when-unprivileged");
    struct bh_span cgroups = bh_pairs_find(f->text, "no-cgroups");
    if (bh_span_yes(cgroups)) {
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_CONTAINER, "no-cgroups: device rules are off");
        r.because = "the toolkit leaves device rules out";
        r.mend = "no-cgroups = false in /etc/nvidia-container-runtime/config.toml";
        return r;
    }
    if (!env.at || bh_span_yes(env))
        return bh_saw(d, BH_CHECK_ATTENTION, 0,
                      "a container gets the GPUs its image names in NVIDIA_VISIBLE_DEVICES");
    return bh_saw(d, BH_CHECK_OK, 0, "GPUs are given by the platform alone");
}

const struct bh_check bh_checks_containers[] = {
    {"containers.runtime",
     {NULL},
     BH_MODE_CONTAINER,
     false,
     false,
     runtime,
     "Tenants in containers are started by it, and it hands the gate its listener.",
     "install crun (or runc 1.1 or later)"},
    {"containers.engine",
     {NULL},
     0,
     false,
     false,
     engine,
     "A container that asked for a GPU starts without it, or with more than its own.",
     "containerd 2.0 or later, or 1.7 with enable_cdi = true; docker 28.2 or later, or features.cdi in daemon.json"},
    {"containers.cdi",
     {NULL},
     0,
     true,
     false,
     cdi,
     "Containers get exactly the device nodes a CDI spec names.",
     "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, again after each change of driver or layout"},
    {"containers.toolkit",
     {"BH-052", "BH-053"},
     0,
     false,
     false,
     toolkit,
     "Its holes let a container write to the host (CVE-2024-0132, CVE-2025-23266).",
     "update nvidia-container-toolkit"},
    {"containers.toolkit-config",
     {"BH-072", NULL},
     BH_MODE_CONTAINER,
     false,
     false,
     toolkit_config,
     "An image can give itself every GPU of the node, past scheduler and quota.",
     "accept-nvidia-visible-devices-envvar-when-unprivileged = false, and CDI or volume mounts instead"},
    {0},
};

/* ---- virtualisation ---- */

static struct bh_check_result fact(struct bh_doctor *d, struct bh_platform_fact f, const char *good,
                                   const char *because)
{
    if (f.known == BH_KNOWN_YES)
        return bh_saw(d, BH_CHECK_OK, 0, "%s", good);
    struct bh_check_result r = bh_saw(d, f.known == BH_KNOWN_NO ? BH_CHECK_NOTE : BH_CHECK_UNKNOWN,
                                      BH_MODE_VM | BH_MODE_CVM, "%s", f.why ? f.why : because);
    r.because = f.known == BH_KNOWN_NO ? because : NULL;
    return r;
}

/* A GPU whose address is not known was not looked at, whatever is said of the others; dead ones count. */
static bool has_unplaced(struct bh_doctor *d, struct bh_check_result *ret)
{
    for (size_t i = 0; i < d->f->gpus->devices.n; i++)
        if (!d->f->gpus->devices.at[i].pci) {
            *ret = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_VM | BH_MODE_CVM,
                          "GPU %" PRIu32 ": its PCI address is not known, so it was not looked at",
                          d->f->gpus->devices.at[i].index);
            ret->because = "a GPU's PCI address is not known";
            return true;
        }
    return false;
}

static struct bh_check_result iommu(struct bh_doctor *d)
{
    struct bh_check_result r;
    if (d->f->platform->iommu.known == BH_KNOWN_YES && has_unplaced(d, &r))
        return r;
    return fact(d, d->f->platform->iommu, "on, every GPU is in a group", "no IOMMU");
}

static struct bh_check_result acs(struct bh_doctor *d)
{
    if (d->f->platform->iommu.known == BH_KNOWN_NO)
        return bh_saw(d, BH_CHECK_NONE, 0, "without an IOMMU there is nothing to redirect to");
    struct bh_check_result r;
    if (d->f->platform->acs.known == BH_KNOWN_YES && has_unplaced(d, &r))
        return r;
    return fact(d, d->f->platform->acs, "peer traffic goes up to the IOMMU on every port", "ACS is off");
}

static struct bh_check_result groups(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    const struct bh_node_group *unread = NULL, *outside = NULL;
    size_t grouped = 0;
    struct bh_check_result r;
    for (size_t i = 0; i < n->groups.n; i++) {
        const struct bh_node_group *g = &n->groups.at[i];
        grouped += g->id != NULL;
        outside = !outside && !g->id ? g : outside;
        unread = !unread && g->why ? g : unread;
        if (!g->others)
            continue;
        r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_VM | BH_MODE_CVM, "GPU %s shares group %s with %s",
                   n->groups.at[i].gpu, n->groups.at[i].id, n->groups.at[i].others);
        r.because = "a GPU shares its IOMMU group";
        return r;
    }
    if (!grouped)
        return has_unplaced(d, &r) ? r : bh_saw(d, BH_CHECK_NONE, 0, "no GPU is in a group");
    if (unread) {
        r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_VM | BH_MODE_CVM, "who shares group %s with GPU %s: %s",
                   unread->id, unread->gpu, unread->why);
        r.because = "who is in a GPU's IOMMU group is not known";
        return r;
    }
    if (outside) {
        r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_VM | BH_MODE_CVM, "GPU %s is in no group", outside->gpu);
        r.because = "a GPU is in no IOMMU group";
        return r;
    }
    return has_unplaced(d, &r) ? r : bh_saw(d, BH_CHECK_OK, 0, "each GPU alone in its group");
}

static struct bh_check_result vfio(struct bh_doctor *d)
{
    if (d->f->node->vfio)
        return bh_saw(d, BH_CHECK_OK, 0, "vfio-pci is there");
    struct bh_check_result r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_VM | BH_MODE_CVM, "vfio-pci is not loaded");
    r.because = "vfio-pci is not loaded";
    return r;
}

static struct bh_check_result unsafe(struct bh_doctor *d)
{
    static const struct {
        enum bh_node_line line;
        const char *name;
    } params[] = {{BH_LINE_UNSAFE_INTERRUPTS, "allow_unsafe_interrupts"},
                  {BH_LINE_UNSAFE_NOIOMMU, "enable_unsafe_noiommu_mode"}};
    size_t known = 0;
    const char *gap = NULL;
    for (size_t i = 0; i < BH_COUNT_OF(params); i++) {
        const struct bh_node_value line = d->f->node->lines[params[i].line];
        const char *v = line.text;
        known += v && *v;
        if (!line.is_absent && (!v || !*v) && !gap)
            gap = v ? bh_arena_printf(&d->arena, "%s is empty", params[i].name) : line.why;
        if (!v || !*v || bh_str_eq(v, "N") || bh_str_eq(v, "0"))
            continue;
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_VM | BH_MODE_CVM, "%s is %s", params[i].name, v);
        r.because = params[i].name;
        return r;
    }
    if (gap)
        return bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_VM | BH_MODE_CVM, "%s", gap);
    if (!known)
        return bh_saw(d, BH_CHECK_NONE, 0, "the VFIO modules are not loaded");
    return bh_saw(d, BH_CHECK_OK, 0, "no unsafe mode is on");
}

static struct bh_check_result kvm(struct bh_doctor *d)
{
    const struct bh_devnode *k = &d->f->node->kvm;
    if (k->exists && k->is_device)
        return bh_saw(d, BH_CHECK_OK, 0, "/dev/kvm is there");
    struct bh_check_result r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_VM | BH_MODE_CVM, "no /dev/kvm");
    r.because = "no KVM";
    return r;
}

static struct bh_check_result qemu(struct bh_doctor *d)
{
    const struct bh_node_program *p = &d->f->node->programs[BH_PROGRAM_QEMU];
    if (p->path)
        return bh_saw(d, BH_CHECK_OK, 0, "%s at %s", version_of(p), p->path);
    struct bh_check_result r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_VM | BH_MODE_CVM, "not installed");
    r.because = "no QEMU";
    return r;
}

/* The processor's side: SEV-SNP or TDX. */
static enum bh_known processor_keeps(const struct bh_node *n)
{
    enum bh_known known = BH_KNOWN_NO;
    const enum bh_node_line lines[] = {BH_LINE_SEV_SNP, BH_LINE_TDX};
    for (size_t i = 0; i < BH_COUNT_OF(lines); i++) {
        const struct bh_node_value v = n->lines[lines[i]];
        if (v.text && (bh_str_eq(v.text, "Y") || bh_str_eq(v.text, "1")))
            return BH_KNOWN_YES;
        known = v.is_absent || (v.text && *v.text) ? known : BH_KNOWN_NOT;
    }
    return known;
}

static struct bh_check_result confidential(struct bh_doctor *d)
{
    enum { PRODUCTION = 2 };
    static const char *const words[] = {
        [BH_KNOWN_NOT] = "not known", [BH_KNOWN_NO] = "not to be seen", [BH_KNOWN_YES] = "on"};
    const struct bh_gpu_snapshot *s = d->f->gpus;
    const struct bh_reading asked[] = {s->cc_feature, s->cc_devtools, s->cc_environment};
    enum bh_known cpu = processor_keeps(d->f->node);
    bh_doctor_detail(d, "the processor's side (SEV-SNP or TDX): %s", words[cpu]);
    const char *gap = NULL; /* a driver that does not know the question has not turned it on */
    for (size_t i = 0; i < BH_COUNT_OF(asked) && !gap; i++)
        gap = asked[i].why && !bh_str_starts(asked[i].why, "not supported by this ") ? asked[i].why : NULL;
    struct bh_check_result r;
    if (gap) {
        r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_CVM, "not known of the GPUs: %s", gap);
        r.because = "the GPUs do not say whether it is on";
    } else if (s->cc_feature.why || !s->cc_feature.v) {
        r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_CVM, "off on the GPUs%s%s", s->cc_feature.why ? ": " : "",
                   s->cc_feature.why ? s->cc_feature.why : "");
        r.because = "confidential computing is off";
    } else if (s->cc_devtools.v || s->cc_environment.v != PRODUCTION) {
        r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_CVM, "in developer mode: the host can debug the GPU");
        r.because = "the GPUs are in developer mode";
        r.mend = "nvidia_gpu_tools.py --set-cc-mode=on --reset-after-cc-mode-switch";
    } else if (cpu == BH_KNOWN_NOT) {
        r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_CVM,
                   "on for the GPUs; SEV-SNP or TDX on the host is not known");
        r.because = "not known whether the processor has it on";
    } else if (cpu == BH_KNOWN_NO) {
        r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_CVM, "on for the GPUs, and neither SEV-SNP nor TDX on the host");
        r.because = "neither SEV-SNP nor TDX";
    } else {
        r = bh_saw(d, BH_CHECK_OK, 0, "on, production mode");
    }
    return r;
}

const struct bh_check bh_checks_virtual[] = {
    {"virtual.iommu",
     {"BH-057", "BH-001"},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     iommu,
     "Without it a GPU given to a VM reads and writes all of the host's memory.",
     "turn on VT-d or AMD-Vi in the firmware; boot with intel_iommu=on on Intel"},
    {"virtual.groups",
     {"BH-057", NULL},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     groups,
     "Devices of one group reach each other's memory, so they go to one tenant or to none.",
     "move the card to a slot with ACS, or give all of the group to one VM"},
    {"virtual.acs",
     {"BH-057", NULL},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     acs,
     "Two GPUs behind one switch reach each other past the IOMMU.",
     "turn ACS on in the firmware (it is often turned off for speed); as root, look with lspci -vvv"},
    {"virtual.vfio",
     {NULL},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     vfio,
     "A GPU is handed to a VM through it.",
     "modprobe vfio-pci"},
    {"virtual.unsafe",
     {"BH-057", NULL},
     BH_MODE_VM | BH_MODE_CVM,
     false,
     false,
     unsafe,
     "A VM could send interrupts or memory accesses that nothing checks.",
     "take the option out of /etc/modprobe.d and reload the module"},
    {"virtual.kvm",
     {"BH-001", NULL},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     kvm,
     "Tenants that distrust each other need kernels of their own.",
     "turn on virtualisation in the firmware; modprobe kvm"},
    {"virtual.qemu",
     {"BH-001", NULL},
     BH_MODE_VM | BH_MODE_CVM,
     true,
     false,
     qemu,
     "VMs are run by it.",
     "install qemu-system-x86"},
    {"virtual.confidential",
     {"BH-006", "BH-007"},
     BH_MODE_CVM,
     true,
     false,
     confidential,
     "Only this keeps the operator out of a tenant's memory.",
     "a GPU and a processor that have it (Hopper or later; SEV-SNP or TDX), both turned on"},
    {0},
};
