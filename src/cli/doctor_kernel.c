/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_kernel.c - what the kernel gives to hold a tenant from outside: the gate's ground. */
#include "base/str.h"
#include "cli/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

enum { NOTIF_BYTES = 80, LANDLOCK_IOCTL_DEV = 5 };

/*
 * A probe as a judgement. absent: what is said of a kernel without it. Not permitted is not absent: who may
 * do more would get an answer, so for a plain user it is unknown; for root it is the place that is narrow, which
 * weighs as much as its absence would.
 */
static struct bh_check_result judge(struct bh_doctor *d, struct bh_probe p, enum bh_check_state absent,
                                    uint32_t takes, const char *good, const char *what)
{
    struct bh_check_result r;
    switch (p.state) {
    case BH_PROBE_WORKS:
        return bh_saw(d, BH_CHECK_OK, 0, "%s", good);
    case BH_PROBE_ABSENT:
        r = bh_saw(d, absent, takes, "this kernel has no %s%s", what,
                   d->f->probes->is_filtered ? ", or the seccomp filter on this process hides it" : "");
        r.because = bh_arena_printf(&d->arena, "no %s", what);
        return r;
    case BH_PROBE_DENIED:
        r = bh_saw(d, d->f->probes->is_root ? absent : BH_CHECK_UNKNOWN, takes, "%s: not permitted here%s",
                   what,
                   d->f->probes->is_filtered ? ": a seccomp filter is on this process (a container?)"
                   : d->f->probes->is_root   ? ""
                                             : " to a plain user");
        r.because = bh_arena_printf(&d->arena, "%s not permitted here", what);
        r.mend = d->f->probes->is_root
                     ? "run on the host itself, or give the container the capability and the system call"
                     : "ask again as root";
        return r;
    case BH_PROBE_SKIPPED:
        return bh_saw(d, BH_CHECK_UNKNOWN, takes, "%s: could not be tried, what it builds on did not work",
                      what);
    default:
        r = bh_saw(d, BH_CHECK_ATTENTION, takes, "%s does not work: %s", what, strerrordesc_np(p.error));
        r.because = bh_arena_printf(&d->arena, "%s does not work", what);
        if (p.error == EBUSY)
            r.mend = "another supervisor listens already (a container manager?): run on the host itself";
        return r;
    }
}

static struct bh_check_result notify(struct bh_doctor *d)
{
    const struct bh_probes *p = d->f->probes;
    bh_doctor_detail(d, "a notification has %" PRIu64 " bytes", p->notify.value);
    if (p->notify.state != BH_PROBE_WORKS)
        return judge(d, p->notify, BH_CHECK_ATTENTION, BH_MODE_GATE, "", "seccomp user notification");
    if (p->notify.value < NOTIF_BYTES)
        return bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_GATE, "notifications of %" PRIu64 " bytes are too short",
                      p->notify.value);
    return judge(d, p->listen, BH_CHECK_ATTENTION, BH_MODE_GATE,
                 "a listener was installed on a child and taken back", "seccomp listener");
}

static struct bh_check_result sync_wake(struct bh_doctor *d)
{
    return judge(d, d->f->probes->sync, BH_CHECK_NOTE, 0, "the listener wakes on the tenant's processor",
                 "synchronous wake-up of a listener (Linux 6.6)");
}

static struct bh_check_result pidfd(struct bh_doctor *d)
{
    struct bh_probe p = d->f->probes->pidfd;
    return judge(d, p.state == BH_PROBE_WORKS ? d->f->probes->getfd : p, BH_CHECK_ATTENTION, BH_MODE_GATE,
                 "a descriptor was taken over from a child", "pidfd_open and pidfd_getfd");
}

static struct bh_check_result vm_read(struct bh_doctor *d)
{
    return judge(d, d->f->probes->vm_read, BH_CHECK_ATTENTION, BH_MODE_GATE, "a child's memory was read",
                 "process_vm_readv");
}

static struct bh_check_result memfd(struct bh_doctor *d)
{
    return judge(d, d->f->probes->memfd, BH_CHECK_ATTENTION, BH_MODE_GATE, "made and sealed", "sealed memfd");
}

static struct bh_check_result landlock(struct bh_doctor *d)
{
    struct bh_probe p = d->f->probes->landlock;
    if (p.state == BH_PROBE_WORKS && p.value < LANDLOCK_IOCTL_DEV)
        return bh_saw(d, BH_CHECK_NOTE, 0,
                      "version %" PRIu64 ": too old to hold back ioctl on devices (5, Linux 6.10)", p.value);
    return judge(d, p, BH_CHECK_NOTE, 0, bh_arena_printf(&d->arena, "version %" PRIu64, p.value), "Landlock");
}

/* Only cgroup v2 needs a program for its device rules. */
static struct bh_check_result bpf_device(struct bh_doctor *d)
{
    const char *cgroup = d->f->platform->cgroup.text;
    if (cgroup && !bh_str_eq(cgroup, "v2"))
        return bh_saw(d, BH_CHECK_NONE, 0, "device rules are those of cgroup v1");
    return judge(d, d->f->probes->bpf_device, BH_CHECK_ATTENTION, BH_MODE_CONTAINER,
                 "device rules can be loaded", "BPF device rules for cgroups");
}

static struct bh_check_result cgroup(struct bh_doctor *d)
{
    static const char *const wanted[] = {"cpuset", "cpu", "memory", "pids"};
    const struct bh_platform_text mode = d->f->platform->cgroup;
    const struct bh_node_value controllers = d->f->node->lines[BH_LINE_CGROUP_CONTROLLERS];
    const char *have = controllers.text;
    if (!mode.text)
        return bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_CONTAINER, "%s", mode.why);
    if (!bh_str_eq(mode.text, "v2"))
        return bh_saw(d, BH_CHECK_ATTENTION, 0,
                      "%s: kubelet 1.35 and later do not start on it, nor does every crun",
                      bh_str_eq(mode.text, "v1") ? "v1" : "v1 and v2 mixed");
    if (!have)
        return bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_CONTAINER,
                      "v2, and its controllers are not to be seen: %s", controllers.why);
    for (size_t i = 0; i < BH_COUNT_OF(wanted); i++) {
        size_t n = strlen(wanted[i]);
        bool found = false;
        for (const char *at = have; at && *at && !found; at = strchr(at, ' '), at = at ? at + 1 : NULL)
            found = strncmp(at, wanted[i], n) == 0 && (at[n] == ' ' || at[n] == '\0');
        if (!found)
            return bh_saw(d, BH_CHECK_ATTENTION, 0, "v2 without the controller '%s'", wanted[i]);
    }
    return bh_saw(d, BH_CHECK_OK, 0, "v2 with cpuset, cpu, memory, pids");
}

static struct bh_check_result userns(struct bh_doctor *d)
{
    return judge(d, d->f->probes->userns, BH_CHECK_NOTE, 0, "can be made", "user namespaces");
}

/* A setting is one digit; anything else says nothing. */
static bool is_one_of(const char *text, const char *digits)
{
    return text[0] && !text[1] && strchr(digits, text[0]);
}

static struct bh_check_result not_said(struct bh_doctor *d, uint32_t takes, const char *name,
                                       struct bh_node_value v)
{
    return v.text ? bh_saw(d, BH_CHECK_UNKNOWN, takes, "%s makes no sense: '%s'", name, v.text)
                  : bh_saw(d, BH_CHECK_UNKNOWN, takes, "%s", v.why);
}

static struct bh_check_result ptrace_scope(struct bh_doctor *d)
{
    const struct bh_node_value v = d->f->node->lines[BH_LINE_PTRACE_SCOPE];
    if (v.is_absent)
        return bh_saw(d, BH_CHECK_NONE, 0, "Yama is not part of this kernel: the usual rights decide");
    if (!v.text || !is_one_of(v.text, "0123"))
        return not_said(d, BH_MODE_GATE, "ptrace_scope", v);
    if (bh_str_eq(v.text, "3")) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_GATE,
                                          "3: nobody may look into another process, not even root");
        r.because = "ptrace is forbidden to all";
        return r;
    }
    return bh_saw(d, BH_CHECK_OK, 0, "%s: root may look into a tenant's process", v.text);
}

static struct bh_check_result secure_boot(struct bh_doctor *d)
{
    const struct bh_platform_fact f = d->f->platform->secure_boot;
    const char *lockdown = d->f->platform->lockdown.text;
    bh_doctor_detail(d, "lockdown: %s", lockdown ? lockdown : d->f->platform->lockdown.why);
    if (f.known == BH_KNOWN_NOT)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", f.why);
    if (f.known == BH_KNOWN_NO)
        return bh_saw(d, BH_CHECK_NOTE, 0, "off");
    return bh_saw(d, BH_CHECK_OK, 0, "on, lockdown %s", lockdown ? lockdown : "not known");
}

static struct bh_check_result io_uring(struct bh_doctor *d)
{
    const struct bh_node_value v = d->f->node->lines[BH_LINE_IO_URING_DISABLED];
    if (!v.is_absent && (!v.text || !is_one_of(v.text, "012")))
        return not_said(d, 0, "io_uring_disabled", v);
    if (!v.text)
        return bh_saw(d, BH_CHECK_NOTE, 0, "cannot be turned off on this kernel, or is not part of it");
    if (bh_str_eq(v.text, "0"))
        return bh_saw(d, BH_CHECK_NOTE, 0, "open to every process");
    return bh_saw(d, BH_CHECK_OK, 0, "%s", bh_str_eq(v.text, "1") ? "for a group alone" : "off");
}

/* What the warden and the daemon need, and what for. */
static const struct {
    unsigned cap;
    const char *name;
} rights_wanted[] = {
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}, {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {CAP_SETUID, "CAP_SETUID"},
    {CAP_SETGID, "CAP_SETGID"},         {CAP_MKNOD, "CAP_MKNOD"},         {CAP_KILL, "CAP_KILL"},
};

static struct bh_check_result plain_user(struct bh_doctor *d)
{
    struct bh_check_result r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_GATE | BH_MODE_CONTAINER,
                                      "a plain user: what only root may see is unknown below");
    r.because = "asked as a plain user";
    r.mend = "ask again as root";
    return r;
}

static struct bh_check_result rights(struct bh_doctor *d)
{
    const struct bh_probes *p = d->f->probes;
    for (size_t i = 0; i < BH_COUNT_OF(rights_wanted); i++) {
        if (p->caps >> rights_wanted[i].cap & 1)
            continue;
        if (!p->is_root)
            return plain_user(d);
        struct bh_check_result r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_GATE | BH_MODE_CONTAINER,
                                          "root without %s", rights_wanted[i].name);
        r.because = bh_arena_printf(&d->arena, "no %s", rights_wanted[i].name);
        return r;
    }
    return bh_saw(d, BH_CHECK_OK, 0, "%s",
                  p->is_root ? "root with all it takes" : "a user with all it takes");
}

const struct bh_check bh_checks_kernel[] = {
    {"kernel.rights",
     {NULL},
     BH_MODE_GATE | BH_MODE_CONTAINER,
     false,
     true,
     rights,
     "Holding a tenant from outside takes rights over its process.",
     "run as root on the host"},
    {"kernel.seccomp-notify",
     {"BH-034", NULL},
     BH_MODE_GATE,
     false,
     true,
     notify,
     "The gate learns of a tenant's allocations through it; without it a shared GPU has no hard memory cap.",
     "a kernel of 5.10 or later with CONFIG_SECCOMP_FILTER"},
    {"kernel.sync-wake",
     {NULL},
     0,
     false,
     true,
     sync_wake,
     "Without it each call that passes the gate takes several times as long.",
     "Linux 6.6 or later"},
    {"kernel.pidfd",
     {"BH-034", NULL},
     BH_MODE_GATE,
     false,
     true,
     pidfd,
     "The gate issues a tenant's call on the tenant's own descriptor; else the arguments could change after the check.",
     "Linux 5.6 or later"},
    {"kernel.vm-read",
     {"BH-034", NULL},
     BH_MODE_GATE,
     false,
     true,
     vm_read,
     "The gate reads what a tenant asks for out of its memory.",
     "CONFIG_CROSS_MEMORY_ATTACH"},
    {"kernel.memfd",
     {"BH-034", NULL},
     BH_MODE_GATE,
     false,
     true,
     memfd,
     "The gate's ledger outlives the process that keeps it in such memory.",
     "CONFIG_MEMFD_CREATE"},
    {"kernel.ptrace-scope",
     {"BH-034", NULL},
     BH_MODE_GATE,
     false,
     false,
     ptrace_scope,
     "The gate must look into the tenant's process.",
     "sysctl kernel.yama.ptrace_scope=2 (1 and 0 do as well); 3 stays until a reboot"},
    {"kernel.landlock",
     {NULL},
     0,
     false,
     true,
     landlock,
     "A second lock on device nodes, for tenants that are plain processes.",
     "Linux 6.10 or later with landlock in the lsm= list"},
    {"kernel.bpf-device",
     {"BH-072", NULL},
     BH_MODE_CONTAINER,
     false,
     true,
     bpf_device,
     "On cgroup v2 a container is kept from others' GPUs by such a program and nothing else.",
     "CONFIG_CGROUP_BPF and CAP_BPF"},
    {"kernel.cgroup",
     {NULL},
     BH_MODE_CONTAINER,
     false,
     false,
     cgroup,
     "Device, memory and process limits of a tenant hang on its cgroup.",
     "boot with systemd.unified_cgroup_hierarchy=1 (or cgroup_no_v1=all)"},
    {"kernel.userns",
     {NULL},
     0,
     false,
     true,
     userns,
     "In a user namespace root of a container is nobody on the host.",
     "sysctl user.max_user_namespaces above 0"},
    {"kernel.secure-boot",
     {"BH-058", NULL},
     0,
     false,
     false,
     secure_boot,
     "A node for regulated tenants has to show that its kernel is the one that was signed.",
     "turn it on in the firmware, with a signed driver module"},
    {"kernel.io-uring",
     {NULL},
     0,
     false,
     false,
     io_uring,
     "What is asked through io_uring passes no seccomp filter; the gate's filter therefore denies it to tenants.",
     "sysctl kernel.io_uring_disabled=2 where nothing on the host needs it"},
    {0},
};
