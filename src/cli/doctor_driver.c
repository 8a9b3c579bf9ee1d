/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_driver.c - the kernel driver, how it was told to behave, and the nodes it is reached through. */
#include "base/str.h"
#include "base/units.h"
#include "cli/doctor.h"
#include "host/parse.h"

#include <inttypes.h>
#include <strings.h>

/* The branch whose calls were recorded for the gate (gpu/abi/rm.h). */
#define GATE_BRANCH "580"

/* `0`, `0x0`: parameters are written in either base. What is no number says nothing. */
static enum bh_known is_set(const char *value, size_t n)
{
    bool is_hex = n > 2 && value[0] == '0' && bh_to_lower(value[1]) == 'x', any = false;
    for (size_t i = is_hex ? 2 : 0; i < n; i++) {
        char c = bh_to_lower(value[i]);
        if (!bh_is_digit(c) && !(is_hex && c >= 'a' && c <= 'f'))
            return BH_KNOWN_NOT;
        any = any || c != '0';
    }
    return !n ? BH_KNOWN_NOT : any ? BH_KNOWN_YES : BH_KNOWN_NO;
}

static bool is_simulated(const struct bh_doctor *d)
{
    return bh_doctor_simulated(d) != NULL;
}

/* A driver is there, whether or not its files are to be seen. */
static bool has_driver(const struct bh_doctor *d)
{
    return d->f->platform->driver.text || (d->f->gpus && d->f->gpus->driver);
}

/* ---- driver ---- */

static struct bh_check_result module(struct bh_doctor *d)
{
    const struct bh_platform_text v = d->f->platform->driver;
    const char *about = d->f->node->files[BH_FILE_DRIVER_VERSION].text;
    if (v.text)
        return bh_saw(d, BH_CHECK_OK, 0, "%s%s", v.text,
                      about && strstr(about, "Open Kernel Module") ? ", open kernel module" : "");
    if (is_simulated(d))
        return bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs need no kernel module");
    if (d->f->gpus)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "it answers, and its version is not to be seen: %s", v.why);
    if (bh_doctor_amd_alone(d))
        return bh_saw(d, BH_CHECK_NONE, 0, "no NVIDIA GPU");
    const struct bh_node_value version = d->f->node->lines[BH_LINE_MODULE_VERSION];
    const struct bh_node_file *proc = &d->f->node->files[BH_FILE_DRIVER_VERSION];
    if (!version.is_absent || proc->path) {
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_ALL & ~BH_MODE_VM, "not to be seen: %s",
                   version.is_absent || version.text ? v.why : version.why);
        r.because = "the kernel driver is not to be seen";
        return r;
    }
    struct bh_check_result r = bh_saw(d, BH_CHECK_BROKEN, BH_MODE_ALL & ~BH_MODE_VM, "not loaded: %s", v.why);
    r.because = "the kernel driver is not loaded";
    return r;
}

/* NVML's own version starts with CUDA's: `13.580.159.03`. */
static struct bh_check_result match(struct bh_doctor *d)
{
    const struct bh_gpu_snapshot *s = d->f->gpus;
    const char *kernel = d->f->platform->driver.text, *library = s ? s->nvml : NULL;
    if (!s && d->f->gpus_err.code == BH_CONFLICT)
        return bh_saw(d, BH_CHECK_BROKEN, 0, "library and kernel driver are of different versions");
    if (!s || !s->driver)
        return bh_saw(d, BH_CHECK_NONE, 0, "no driver to compare with");
    bool library_fits = !library || bh_str_eq(library, s->driver) ||
                        (strlen(library) > strlen(s->driver) && bh_str_ends(library, s->driver));
    if (!library_fits || (kernel && !bh_str_eq(kernel, s->driver)))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "kernel %s, library %s, driver as it reports itself %s",
                      kernel ? kernel : "not known", library ? library : "not known", s->driver);
    if (!kernel && !is_simulated(d))
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "the kernel's version is not to be seen");
    return bh_saw(d, BH_CHECK_OK, 0, "library and driver agree on %s", s->driver);
}

static const char *driver_version(const struct bh_doctor *d)
{
    return d->f->gpus && d->f->gpus->driver ? d->f->gpus->driver : d->f->platform->driver.text;
}

static struct bh_check_result advisories(struct bh_doctor *d)
{
    const char *version = driver_version(d);
    return version ? bh_doctor_advisories(d, "nvidia-driver", version)
                   : bh_saw(d, BH_CHECK_NONE, 0, "no driver");
}

static struct bh_check_result branch(struct bh_doctor *d)
{
    const char *version = driver_version(d);
    if (!version)
        return bh_saw(d, BH_CHECK_NONE, 0, "no driver");
    if (bh_str_starts(version, GATE_BRANCH "."))
        return bh_saw(d, BH_CHECK_OK, 0, GATE_BRANCH ", whose calls the gate knows");
    struct bh_check_result r =
        bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_GATE,
               "%s is not of branch " GATE_BRANCH ", the only one the gate knows", version);
    r.because = "the driver's branch is not known to it";
    return r;
}

/* A parameter that must be as the driver has it by default. */
static struct bh_check_result param(struct bh_doctor *d, const char *key, bool want_zero, const char *good,
                                    const char *bad)
{
    const char *value = bh_doctor_param(d, key);
    if (!value && is_simulated(d) && d->f->platform->params_why)
        return bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs have no module parameters");
    if (!value)
        return bh_saw(d, has_driver(d) ? BH_CHECK_UNKNOWN : BH_CHECK_NONE, 0, "%s: %s", key,
                      d->f->platform->params_why ? d->f->platform->params_why : "this driver does not say");
    enum bh_known set = is_set(value, strlen(value));
    if (set == BH_KNOWN_NOT)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s makes no sense: '%s'", key, value);
    if (set == (want_zero ? BH_KNOWN_NO : BH_KNOWN_YES))
        return bh_saw(d, BH_CHECK_OK, 0, "%s", good);
    return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s (%s: %s)", bad, key, value);
}

static struct bh_check_result profiling(struct bh_doctor *d)
{
    return param(d, "RmProfilingAdminOnly", false, "performance counters are for root alone",
                 "performance counters are open to everyone");
}

static struct bh_check_result imex(struct bh_doctor *d)
{
    if (d->f->node->imex_channel0.exists && d->f->node->imex_channel0.mode & 06)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s is open to everyone (%04o)",
                      d->f->node->imex_channel0.path, (unsigned)d->f->node->imex_channel0.mode);
    return param(d, "CreateImexChannel0", true, "no IMEX channel is made for everyone",
                 "an IMEX channel is made for everyone");
}

/*
 * Is this word set anywhere in `A=1;RMDisableScrubOnFree=0x1;B=2`? Which of two settings counts, how blanks are read
 * and whether letter case matters is the driver's affair: one that sets it is enough.
 */
static enum bh_known word_is_set(const char *text, const char *word)
{
    enum bh_known worst = BH_KNOWN_NO;
    size_t n = strlen(word);
    for (const char *at = text; *at; at++) {
        if ((at > text && (bh_is_alpha(at[-1]) || bh_is_digit(at[-1]))) || strncasecmp(at, word, n) != 0)
            continue;
        if (bh_is_alpha(at[n]) || bh_is_digit(at[n]))
            continue; /* a longer word */
        const char *value = at + n + strspn(at + n, " \t");
        value += *value == '=';
        value += strspn(value, " \t");
        enum bh_known set = is_set(value, strcspn(value, ";, \t"));
        if (set == BH_KNOWN_YES)
            return set;
        worst = set == BH_KNOWN_NOT ? set : worst;
    }
    return worst;
}

static struct bh_check_result scrub(struct bh_doctor *d)
{
    static const char word[] = "RMDisableScrubOnFree";
    const struct bh_platform *p = d->f->platform;
    enum bh_known off = BH_KNOWN_NO;
    for (size_t i = 0; i < p->params.n && off != BH_KNOWN_YES; i++) {
        const char *value = p->params.at[i].value;
        enum bh_known set = bh_str_eq_nocase(p->params.at[i].key, word) ? is_set(value, strlen(value))
                                                                        : word_is_set(value, word);
        off = set != BH_KNOWN_NO ? set : off;
    }
    struct bh_check_result r;
    if (off == BH_KNOWN_YES) {
        r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_GATE | BH_MODE_MPS, "off: %s is set", word);
        r.because = "freed memory is not cleared";
    } else if (off == BH_KNOWN_NOT) {
        r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_GATE | BH_MODE_MPS,
                   "%s is given, and its value makes no sense", word);
        r.because = "not known whether freed memory is cleared";
    } else if (p->params.n) {
        r = bh_saw(d, BH_CHECK_OK, 0, "the driver clears what is freed (its default)");
    } else if (is_simulated(d)) {
        r = bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs have no module parameters");
    } else if (!has_driver(d)) {
        r = bh_saw(d, BH_CHECK_NONE, 0, "no driver");
    } else {
        r = bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_GATE | BH_MODE_MPS, "%s", p->params_why);
        r.because = "the driver's parameters cannot be read";
    }
    return r;
}

static struct bh_check_result hmm(struct bh_doctor *d)
{
    const struct bh_node_value v = d->f->node->lines[BH_LINE_UVM_DISABLE_HMM];
    if (v.is_absent)
        return bh_saw(d, BH_CHECK_NONE, 0, "the UVM module is not loaded or has no such setting");
    if (!v.text || !*v.text)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", v.text ? "uvm_disable_hmm is empty" : v.why);
    if (bh_str_eq(v.text, "Y") || bh_str_eq(v.text, "1"))
        return bh_saw(d, BH_CHECK_OK, 0, "off");
    return bh_saw(d, BH_CHECK_ATTENTION, 0, "on where kernel and GPU have it (uvm_disable_hmm: %s)", v.text);
}

static struct bh_check_result persistence(struct bh_doctor *d)
{
    if (is_simulated(d))
        return bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs keep their state");
    return d->f->node->persistenced
               ? bh_saw(d, BH_CHECK_OK, 0, "nvidia-persistenced runs")
               : bh_saw(d, BH_CHECK_NOTE, 0,
                        "no nvidia-persistenced; the driver's own persistence mode is not looked at");
}

static struct bh_check_result is_signed(struct bh_doctor *d)
{
    const struct bh_node_value v = d->f->node->lines[BH_LINE_MODULE_TAINT];
    if (!v.text)
        return v.is_absent ? bh_saw(d, BH_CHECK_NONE, 0, "no module to be seen")
                           : bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", v.why);
    if (strchr(v.text, 'E'))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "the module carries no signature the kernel knows (taint %s)",
                      v.text);
    return bh_saw(d, BH_CHECK_OK, 0, "the module is signed, or the kernel does not ask");
}

const struct bh_check bh_checks_driver[] = {
    {"driver.module",
     {NULL},
     BH_MODE_ALL & ~BH_MODE_VM,
     false,
     false,
     module,
     "Nothing reaches a GPU on this kernel without its driver.",
     "modprobe -a nvidia nvidia-uvm; install the driver for this kernel when there is no such module"},
    {"driver.match",
     {NULL},
     0,
     false,
     false,
     match,
     "Programs of one version do not start on a driver of another.",
     "reload the driver or reboot after its update"},
    {"driver.advisories",
     {"BH-052", "BH-053"},
     0,
     false,
     false,
     advisories,
     "Known holes let a tenant out of its container or into another's memory.",
     "update the driver"},
    {"driver.branch",
     {NULL},
     BH_MODE_GATE,
     false,
     false,
     branch,
     "The gate counts memory by the driver's own calls, which differ from branch to branch; it refuses what it has not "
     "been shown.",
     "install a " GATE_BRANCH " driver, or share this node's GPUs by MIG"},
    {"driver.profiling",
     {"BH-071", NULL},
     0,
     false,
     false,
     profiling,
     "Counters of the whole GPU let one tenant watch another.",
     "options nvidia NVreg_RestrictProfilingToAdminUsers=1 in /etc/modprobe.d, then reload the driver"},
    {"driver.scrub",
     {"BH-055", "BH-054"},
     BH_MODE_GATE | BH_MODE_MPS,
     false,
     false,
     scrub,
     "Memory that is freed by one tenant is given to the next as it was left.",
     "take RMDisableScrubOnFree out of NVreg_RegistryDwords and reload the driver"},
    {"driver.imex",
     {"BH-041", NULL},
     0,
     false,
     false,
     imex,
     "Whoever opens the same channel in a domain can import the other's memory.",
     "NVreg_CreateImexChannel0=0, remove the node, and make one channel per tenant"},
    {"driver.hmm",
     {"BH-033", NULL},
     0,
     false,
     false,
     hmm,
     "Ordinary memory that a GPU touches moves onto it without a call that could be counted against a cap.",
     "options nvidia_uvm uvm_disable_hmm=1 in /etc/modprobe.d, then reload the driver"},
    {"driver.persistence",
     {NULL},
     0,
     true,
     false,
     persistence,
     "When the last program closes a GPU, clocks and modes set for tenants fall back, and the next start is slow.",
     "systemctl enable --now nvidia-persistenced; nothing where nvidia-smi -q says that persistence mode is on"},
    {"driver.signed",
     {"BH-058", NULL},
     0,
     false,
     false,
     is_signed,
     "A node for regulated tenants has to show that it runs the vendor's driver and no other.",
     "install a signed module, or sign it with a key enrolled in the firmware"},
    {0},
};

/* ---- device nodes ---- */

static struct bh_check_result nodes(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    const struct bh_devnode *missing = NULL, *const fixed[] = {&n->ctl, &n->uvm};
    size_t there = 0;
    if (is_simulated(d) && !n->ctl.exists)
        return bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs have no device nodes");
    for (size_t i = 0; i < n->gpus.n + BH_COUNT_OF(fixed); i++) {
        const struct bh_devnode *at = i < BH_COUNT_OF(fixed) ? fixed[i] : &n->gpus.at[i - BH_COUNT_OF(fixed)];
        there += at->exists && at->is_device;
        missing = !missing && !(at->exists && at->is_device) ? at : missing;
        bh_doctor_detail(d, "%s: %s, mode %04o", at->path, at->exists ? "there" : "missing",
                         (unsigned)at->mode);
    }
    if (!missing)
        return bh_saw(d, BH_CHECK_OK, 0, "all %zu are there", there);
    struct bh_check_result r = bh_saw(d, BH_CHECK_ATTENTION, 0, "%s is %s", missing->path,
                                      missing->exists ? "no device" : "missing");
    /* A container sees only its own GPUs; without the two common nodes it sees none. */
    if (missing == &n->ctl || missing == &n->uvm || there == BH_COUNT_OF(fixed)) {
        r.takes = BH_MODE_WHOLE | BH_MODE_GATE | BH_MODE_CONTAINER;
        r.because = "device nodes are missing";
    }
    return r;
}

static struct bh_check_result node_modes(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    const struct bh_devnode *open = NULL;
    size_t there = 0;
    for (size_t i = 0; i < n->gpus.n + n->caps.n; i++) {
        const struct bh_devnode *at = i < n->gpus.n ? &n->gpus.at[i] : &n->caps.at[i - n->gpus.n];
        there += at->exists;
        open = !open && at->mode & 06 ? at : open;
    }
    if (!there)
        return bh_saw(d, BH_CHECK_NONE, 0, "no GPU node to look at");
    if (open)
        return bh_saw(d, BH_CHECK_NOTE, 0, "every user of this machine may open %s (%04o)", open->path,
                      (unsigned)open->mode);
    return bh_saw(d, BH_CHECK_OK, 0, "closed to users without a group");
}

/* Who may open it besides root; NULL: nobody. Owners below a folder that stands for a machine are not the machine's. */
static const char *opened_to(struct bh_doctor *d, const struct bh_devnode *at)
{
    bool known_owner = !d->f->platform->root;
    if (!at->exists)
        return NULL;
    if (at->mode & 07)
        return "everyone";
    if (known_owner && at->uid != 0)
        return bh_arena_printf(&d->arena, "user %" PRIu32, at->uid);
    if (known_owner && at->gid != 0 && at->mode & 070)
        return bh_arena_printf(&d->arena, "group %" PRIu32, at->gid);
    return NULL;
}

static struct bh_check_result caps(struct bh_doctor *d)
{
    const struct bh_node *n = d->f->node;
    const char *opened = opened_to(d, &n->mig_config);
    if (opened) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_ATTENTION, 0, "%s is open to %s (%04o)",
                                          n->mig_config.path, opened, (unsigned)n->mig_config.mode);
        r.mend = bh_arena_printf(&d->arena, "chown root:root %s, chmod 0400 %s", n->mig_config.path,
                                 n->mig_config.path);
        return r;
    }
    if (!n->caps.n)
        return bh_saw(d, BH_CHECK_NONE, 0, "no MIG slice");
    if (is_simulated(d) && !n->ctl.exists)
        return bh_saw(d, BH_CHECK_NONE, 0, "simulated GPUs have no device nodes");
    for (size_t i = 0; i < n->caps.n; i++)
        if (!n->caps.at[i].exists) {
            struct bh_check_result r = bh_saw(d, BH_CHECK_ATTENTION, BH_MODE_MIG,
                                              "%s of a MIG slice is missing", n->caps.at[i].path);
            r.because = "capability nodes are missing";
            return r;
        }
    return bh_saw(d, BH_CHECK_OK, 0, "the nodes of all slices are there, %s",
                  !n->mig_config.exists  ? "and none that cuts them"
                  : d->f->platform->root ? "the one that cuts them is closed to others"
                                         : "the one that cuts them is root's");
}

const struct bh_check bh_checks_devices[] = {
    {"devices.nodes",
     {NULL},
     BH_MODE_WHOLE | BH_MODE_GATE | BH_MODE_CONTAINER,
     true,
     false,
     nodes,
     "A GPU without its node cannot be given to a tenant.",
     "nvidia-modprobe -u -c 0 (or run nvidia-smi once as root)"},
    {"devices.modes",
     {"BH-072", NULL},
     0,
     false,
     false,
     node_modes,
     "Containers are held by the device cgroup; a plain process of any user is not held at all.",
     "options nvidia NVreg_DeviceFileMode=0660 NVreg_DeviceFileGID=<group> in /etc/modprobe.d"},
    {"devices.caps",
     {"BH-072", NULL},
     BH_MODE_MIG,
     false,
     false,
     caps,
     "Who opens the configuration node can cut up a GPU under its tenants; without a slice's own node it cannot be used.",
     "nvidia-modprobe -f /proc/driver/nvidia/capabilities/... for each slice"},
    {0},
};
