/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_silicon.c - the GPUs themselves, and the fabric between them. */
#include "base/str.h"
#include "base/units.h"
#include "cli/doctor.h"
#include "gpu/health.h"
#include "host/probe_parse.h"

#include <inttypes.h>

enum { FABRIC_UNSUPPORTED = 0, FABRIC_COMPLETED = 3, LINKS_AMPERE = 12, LINKS_LATER = 18 };

static bool is_on(struct bh_reading r)
{
    return !r.why && r.v != 0;
}

static bool is_off(struct bh_reading r)
{
    return !r.why && r.v == 0;
}

static bool differs(struct bh_reading a, struct bh_reading b)
{
    return !a.why && !b.why && a.v != b.v;
}

/* ---- silicon ---- */

/* What a failure of the library means and how it is mended; a NULL mend: the check's own. The last is for the rest. */
static const struct {
    enum bh_code code;
    const char *because, *mend;
} failures[] = {
    {BH_NOT_FOUND, "no NVIDIA driver", NULL},
    {BH_CONFLICT, "driver and library differ",
     "reload the driver or reboot, so that library and kernel driver are of one version"},
    {BH_DENIED, "the NVIDIA driver may not be asked",
     "ask again as root, or as a user who may open /dev/nvidiactl"},
    {BH_BUSY, "the NVIDIA driver does not answer in time",
     "look in the kernel log for NVRM and Xid lines; drain the node and reset the GPU or reboot. "
     "BULKHEAD_GPU_TIMEOUT waits longer"},
    {BH_OK, "the NVIDIA driver does not answer",
     "look in the kernel log for NVRM and Xid lines; reinstall the driver when it is its library that fails"},
};

/* Not permitted to a plain user is not known; to root it is broken. */
static struct bh_check_result no_library(struct bh_doctor *d)
{
    const struct bh_err *err = &d->f->gpus_err;
    size_t i = 0;
    if (bh_doctor_amd_alone(d)) {
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_NOTE, BH_MODE_ALL, "none of NVIDIA's: the GPUs are AMD's");
        r.because = "only AMD GPUs";
        r.mend = "nothing on this node, as long as all its GPUs are AMD's";
        return r;
    }
    while (failures[i].code != BH_OK && failures[i].code != err->code)
        i++;
    bool may_ask = err->code != BH_DENIED || d->f->probes->is_root;
    struct bh_check_result r =
        bh_saw(d, may_ask ? BH_CHECK_BROKEN : BH_CHECK_UNKNOWN, BH_MODE_ALL, "%s", err->msg);
    r.because = failures[i].because;
    r.mend = failures[i].mend;
    return r;
}

static struct bh_check_result library(struct bh_doctor *d)
{
    const struct bh_gpu_snapshot *s = d->f->gpus;
    if (!s)
        return no_library(d);
    for (size_t i = 0; i < s->notes.n; i++)
        bh_doctor_detail(d, "%s", s->notes.at[i]);
    return bh_saw(d, BH_CHECK_OK, 0, "%s, driver %s, CUDA %s", s->library ? s->library : "found",
                  s->driver ? s->driver : "unknown", s->cuda ? s->cuda : "unknown");
}

static struct bh_check_result gpus(struct bh_doctor *d)
{
    const struct bh_gpu_snapshot *s = d->f->gpus;
    const struct bh_gpu_device *dead = NULL;
    size_t living = 0;
    if (!s)
        return bh_saw(d, BH_CHECK_NONE, 0, "the driver cannot be asked");
    for (size_t i = 0; i < s->devices.n; i++) {
        const struct bh_gpu_device *g = &s->devices.at[i];
        living += g->alive;
        dead = !g->alive && !dead ? g : dead;
        bh_doctor_detail(d, "GPU %" PRIu32 ": %s, %s, %s", g->index,
                         g->model  ? g->model->name
                         : g->name ? g->name
                                   : "unknown model",
                         g->uuid ? g->uuid : "no UUID", g->alive ? "answers" : "does not answer");
    }
    struct bh_check_result r;
    if (!s->devices.n) {
        r = bh_saw(d, BH_CHECK_BROKEN, BH_MODE_ALL, "the driver knows no GPU");
        r.because = "no GPU";
        r.mend = "look with lspci whether the card is on the bus, and in the kernel log for NVRM lines";
    } else if (!living) {
        r = bh_saw(d, BH_CHECK_BROKEN, BH_MODE_ALL, "no GPU of %zu answers; GPU %" PRIu32 ": %s",
                   s->devices.n, dead->index, dead->trouble ? dead->trouble : "no reason given");
        r.because = "no GPU answers";
    } else if (dead) {
        r = bh_saw(d, BH_CHECK_BROKEN, 0, "%zu of %zu answer; GPU %" PRIu32 ": %s", living, s->devices.n,
                   dead->index, dead->trouble ? dead->trouble : "no reason given");
    } else {
        r = bh_saw(d, BH_CHECK_OK, 0, "%zu, all answer", living);
    }
    return r;
}

static struct bh_check_result amd(struct bh_doctor *d)
{
    const struct bh_gpu_snapshot *s = d->f->amd;
    if (!s && d->f->amd_err.code != BH_OK && d->f->amd_err.code != BH_NOT_FOUND)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", d->f->amd_err.msg);
    if (!s || !s->devices.n)
        return bh_saw(d, BH_CHECK_NONE, 0, "no AMD GPU");
    const struct bh_gpu_device *first = &s->devices.at[0];
    for (size_t i = 0; i < s->devices.n; i++)
        bh_doctor_detail(d, "%s: %s, %s", s->devices.at[i].pci ? s->devices.at[i].pci : "no address",
                         s->devices.at[i].name ? s->devices.at[i].name : "unknown model",
                         s->devices.at[i].alive ? "answers" : "does not answer");
    return bh_saw(d, BH_CHECK_NOTE, 0,
                  "%zu%s%s: shown and exported; none of the promises below is made on %s", s->devices.n,
                  first->name ? ", " : "", first->name ? first->name : "", s->devices.n == 1 ? "it" : "them");
}

static bool is_stranger(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->model;
}

static struct bh_check_result catalogue(struct bh_doctor *d)
{
    size_t n;
    const char *who = bh_doctor_gpus(d, is_stranger, &n);
    if (!n)
        return bh_saw(d, BH_CHECK_OK, 0, "every model is in the catalogue");
    return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s %s not in the catalogue", who, n == 1 ? "is" : "are");
}

static bool is_worn(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return is_on(g->remap_failed) || is_on(g->remap_pending) || is_on(g->ecc_uncorrected_now);
}

static bool has_no_counters(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return g->ecc_uncorrected_now.why || g->remap_failed.why || g->remap_pending.why;
}

static struct bh_check_result memory(struct bh_doctor *d)
{
    size_t n, blind;
    const char *who = bh_doctor_gpus(d, is_worn, &n), *silent = bh_doctor_gpus(d, has_no_counters, &blind);
    bool failed = false;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *g = &d->f->gpus->devices.at[i];
        failed = failed || (g->alive && is_on(g->remap_failed));
        if (g->alive && !g->remapped_rows.why)
            bh_doctor_detail(d,
                             "GPU %" PRIu32 ": %" PRIu64 " rows remapped, %" PRIu64
                             " uncorrected errors since it was made",
                             g->index, g->remapped_rows.v, g->ecc_uncorrected.v);
    }
    if (n)
        return bh_saw(d, failed ? BH_CHECK_BROKEN : BH_CHECK_ATTENTION, 0, "%s: %s", who,
                      failed ? "row remapping failed, the memory is worn out"
                             : "uncorrected errors or a remapping that waits for a reset");
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: not all error counters can be read", silent);
    return bh_saw(d, BH_CHECK_OK, 0, "no uncorrected error since the driver was loaded");
}

static bool has_ecc_off(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return is_off(g->ecc_mode);
}

static bool has_ecc_pending(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return differs(g->ecc_mode, g->ecc_pending);
}

static bool has_ecc_unknown(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return g->ecc_mode.why != NULL;
}

static struct bh_check_result ecc(struct bh_doctor *d)
{
    size_t off, pending, blind;
    const char *who = bh_doctor_gpus(d, has_ecc_off, &off),
               *waits = bh_doctor_gpus(d, has_ecc_pending, &pending),
               *silent = bh_doctor_gpus(d, has_ecc_unknown, &blind);
    if (off)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "off on %s", who);
    if (pending)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "changes at the next reset of %s", waits);
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: not known whether it is on", silent);
    return bh_saw(d, BH_CHECK_OK, 0, "on");
}

/* NVML's bits. Idling and clocks that were asked for hold nothing down; a power cap is how a busy GPU runs. */
enum { POWER_CAP = 1 << 2, HELD_DOWN = 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 };

static bool is_slowed(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->throttle.why && (g->throttle.v & HELD_DOWN);
}

static bool is_capped(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->throttle.why && (g->throttle.v & POWER_CAP);
}

static bool has_no_throttle(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return g->throttle.why != NULL;
}

static struct bh_check_result throttle(struct bh_doctor *d)
{
    size_t n, capped, blind;
    const char *who = bh_doctor_gpus(d, is_slowed, &n), *at_cap = bh_doctor_gpus(d, is_capped, &capped),
               *silent = bh_doctor_gpus(d, has_no_throttle, &blind);
    struct bh_buf words;
    bh_buf_init(&words, 512);
    for (size_t i = 0; i < d->f->gpus->devices.n && !words.n; i++)
        if (d->f->gpus->devices.at[i].alive && is_slowed(d, &d->f->gpus->devices.at[i]))
            bh_throttle_words(&words, d->f->gpus->devices.at[i].throttle.v & (HELD_DOWN | POWER_CAP));
    struct bh_check_result r;
    if (n)
        r = bh_saw(d, BH_CHECK_ATTENTION, 0, "%s slowed down: %s", who, bh_buf_text(&words));
    else if (blind)
        r = bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: not known", silent);
    else if (capped)
        r = bh_saw(d, BH_CHECK_NOTE, 0, "%s at the power cap", at_cap);
    else
        r = bh_saw(d, BH_CHECK_OK, 0, "no GPU is slowed down by heat or power");
    bh_buf_fini(&words);
    return r;
}

static bool can_mig(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->mig_mode.why;
}

/* A model without MIG has nothing to be known. Of a GPU that is cut the slices belong to it. */
static bool has_mig_unknown(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return (bh_reading_blind(g->mig_mode) && (!g->model || bh_model_has_mig(g->model))) ||
           (is_on(g->mig_mode) && g->instances_seen.why);
}

static bool has_mig_pending(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return differs(g->mig_mode, g->mig_pending);
}

/* MIG on and nothing a program could use: no instance, or one without compute instance. */
static bool is_half_cut(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    size_t usable = 0;
    for (size_t i = 0; i < g->instances.n; i++)
        usable += g->instances.at[i].ci != BH_NO_ID;
    return is_on(g->mig_mode) && !g->instances_seen.why && (!usable || usable < g->instances.n);
}

static bool has_mig_on(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return is_on(g->mig_mode);
}

static struct bh_check_result mig(struct bh_doctor *d)
{
    size_t able, pending, half, on, blind;
    const char *who = bh_doctor_gpus(d, can_mig, &able),
               *waits = bh_doctor_gpus(d, has_mig_pending, &pending),
               *idle = bh_doctor_gpus(d, is_half_cut, &half),
               *silent = bh_doctor_gpus(d, has_mig_unknown, &blind);
    (void)bh_doctor_gpus(d, has_mig_on, &on);
    if (!able && !blind) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_NOTE, BH_MODE_MIG, "no GPU here can be partitioned");
        r.because = "no GPU that has it";
        r.mend = "nothing on this node: MIG needs another model";
        return r;
    }
    if (pending)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "the mode of %s changes at the next reset", waits);
    if (half) {
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_ATTENTION, 0, "on, and %s %s parts that no program can use", idle,
                   half == 1 ? "has" : "have");
        r.mend = "make GPU and compute instances, or turn MIG off";
        return r;
    }
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, able ? 0 : BH_MODE_MIG,
                      "%s: the MIG mode or its slices are not known", silent);
    return bh_saw(d, BH_CHECK_OK, 0, "%s can be partitioned; MIG is on for %s", who,
                  on ? bh_arena_printf(&d->arena, "%zu", on) : "none");
}

/* The first living GPU before g of the same model. */
static const struct bh_gpu_device *sibling(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    for (const struct bh_gpu_device *e = d->f->gpus->devices.at; e < g; e++)
        if (e->alive && e->model && e->model == g->model)
            return e;
    return NULL;
}

static bool has_other_firmware(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    const struct bh_gpu_device *e = sibling(d, g);
    bool vbios = e && e->vbios && g->vbios && !bh_str_eq(e->vbios, g->vbios);
    bool gsp = g->gsp && d->f->gpus->driver && !bh_str_eq(g->gsp, d->f->gpus->driver);
    return vbios || gsp;
}

static bool has_no_firmware(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->vbios;
}

/* One whose firmware is another than the first one's; NULL: all that is known is the same. */
static const struct bh_gpu_switch *look_at_switches(struct bh_doctor *d)
{
    const struct bh_gpu_switch *at = d->f->gpus->switches.at, *first = NULL, *mixed = NULL;
    for (size_t i = 0; i < d->f->gpus->switches.n; i++) {
        bh_doctor_detail(d, "NVSwitch %s: firmware %s", at[i].pci, at[i].bios ? at[i].bios : "unknown");
        if (at[i].bios && !first)
            first = &at[i];
        else if (at[i].bios && !mixed && !bh_str_eq(at[i].bios, first->bios))
            mixed = &at[i];
    }
    return mixed;
}

static struct bh_check_result firmware(struct bh_doctor *d)
{
    size_t n, blind;
    const char *who = bh_doctor_gpus(d, has_other_firmware, &n),
               *silent = bh_doctor_gpus(d, has_no_firmware, &blind);
    for (size_t i = 0; i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *g = &d->f->gpus->devices.at[i];
        if (g->alive)
            bh_doctor_detail(d, "GPU %" PRIu32 ": vBIOS %s, GSP %s", g->index,
                             g->vbios ? g->vbios : "unknown", g->gsp ? g->gsp : "unknown");
    }
    const struct bh_gpu_switch *mixed = look_at_switches(d);
    if (n)
        return bh_saw(d, BH_CHECK_ATTENTION, 0,
                      "%s: vBIOS or GSP firmware is not that of the others or the driver", who);
    if (mixed)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "NVSwitch %s: its firmware is not that of the others",
                      mixed->pci);
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: vBIOS version not known", silent);
    return bh_saw(d, BH_CHECK_OK, 0, "the same on all GPUs of a model");
}

const struct bh_check bh_checks_silicon[] = {
    {"silicon.library",
     {NULL},
     BH_MODE_ALL,
     false,
     false,
     library,
     "Without the driver's library no GPU can be seen, cut or watched.",
     "install NVIDIA's data-centre driver (580 or later) and load it: modprobe nvidia"},
    {"silicon.gpus",
     {NULL},
     BH_MODE_ALL,
     false,
     false,
     gpus,
     "A GPU that does not answer holds its tenant's work and cannot be scrubbed for the next one.",
     "drain the node, reset the GPU or reboot; replace it when it does not come back"},
    {"silicon.amd",
     {NULL},
     0,
     false,
     false,
     amd,
     "Partitions, the gate, MPS and suspend are built on NVIDIA's driver: on other GPUs this release holds nobody back.",
     "leave AMD GPUs to pools that give them out whole"},
    {"silicon.catalogue",
     {"BH-047", "BH-048"},
     0,
     true,
     false,
     catalogue,
     "Layouts cannot be planned for a model whose geometry is not known.",
     "take a release of Bulkhead that knows the model, or leave it to whole-GPU pools"},
    {"silicon.memory",
     {NULL},
     0,
     true,
     false,
     memory,
     "Data of a tenant may be lost, and worn memory fails again.",
     "drain and reset it; replace it if that fails"},
    {"silicon.ecc",
     {"BH-056", NULL},
     0,
     true,
     false,
     ecc,
     "Without ECC a neighbour can flip bits in a tenant's memory (GPUHammer).",
     "nvidia-smi -e 1 on the drained GPU, then reset it"},
    {"silicon.throttle",
     {"BH-021", NULL},
     0,
     true,
     false,
     throttle,
     "Clocks and power are shared: a promise of speed is not kept while they are held down.",
     "look after cooling and power supply"},
    {"silicon.mig",
     {"BH-060", NULL},
     BH_MODE_MIG,
     true,
     false,
     mig,
     "A partition is the only hard boundary inside a GPU; half-made ones are no capacity.",
     "drain the GPU, then reset it so that the mode it waits for is set"},
    {"silicon.firmware",
     {"BH-078", NULL},
     0,
     true,
     false,
     firmware,
     "What was tested on one GPU does not hold for one with other firmware.",
     "flash the same vBIOS everywhere; GSP firmware comes with the driver: reinstall it"},
    {0},
};

/* ---- fabric ---- */

static bool has_links(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return is_on(g->links);
}

/* "No such link" of the first one is how some GPUs say that they have none. */
static bool has_links_unknown(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return bh_reading_blind(g->links) &&
           !bh_str_eq(g->links.why, "refused by the driver as a wrong argument");
}

static bool goes_to_switch(const struct bh_gpu_device *g)
{
    for (size_t i = 0; i < g->up.n; i++)
        if (g->up.at[i].remote == BH_LINK_SWITCH)
            return true;
    return false;
}

/* Behind a switch the model says how many there are; else the best of its siblings does. */
static uint64_t expected_links(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    uint64_t most = g->links.v;
    if (goes_to_switch(g) && g->model)
        return bh_str_eq(g->model->arch, "Ampere") ? LINKS_AMPERE : LINKS_LATER;
    for (size_t i = 0; i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *e = &d->f->gpus->devices.at[i];
        if (e->alive && e->model == g->model && !e->links.why && e->links.v > most)
            most = e->links.v;
    }
    return most;
}

static bool lacks_links(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    return !g->links.why && g->links.v < expected_links(d, g);
}

static struct bh_check_result links(struct bh_doctor *d)
{
    size_t n, few, blind;
    (void)bh_doctor_gpus(d, has_links, &n);
    const char *who = bh_doctor_gpus(d, lacks_links, &few),
               *silent = bh_doctor_gpus(d, has_links_unknown, &blind);
    if (!n && !blind) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_NONE, BH_MODE_NVLINK, "no NVLink is up on this node");
        r.because = "no link is up";
        return r;
    }
    if (few)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s: fewer links up than %s should have", who,
                      few == 1 ? "it" : "they");
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, n ? 0 : BH_MODE_NVLINK, "%s: not known whether links are up",
                      silent);
    return bh_saw(d, BH_CHECK_OK, 0, "all links are up on %zu %s", n, n == 1 ? "GPU" : "GPUs");
}

static bool waits_for_fabric(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return !g->fabric_state.why && g->fabric_state.v != FABRIC_UNSUPPORTED &&
           g->fabric_state.v != FABRIC_COMPLETED;
}

static bool has_sick_fabric(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    bool bad = g->fabric_error || (g->fabric_health >> 8 & 15) > 1;
    for (unsigned i = 0; i < 4; i++)
        bad = bad || (g->fabric_health >> 2 * i & 3) == 1;
    return bad;
}

static bool has_fabric(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return is_on(g->fabric_state);
}

/* Where no link is up there is no fabric to have joined. */
static bool has_fabric_unknown(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return bh_reading_blind(g->fabric_state) && !is_off(g->links) && !bh_reading_lacks(g->links);
}

static struct bh_check_result fabric_state(struct bh_doctor *d)
{
    size_t n, waits, sick, blind;
    (void)bh_doctor_gpus(d, has_fabric, &n);
    const char *who = bh_doctor_gpus(d, waits_for_fabric, &waits),
               *ill = bh_doctor_gpus(d, has_sick_fabric, &sick),
               *silent = bh_doctor_gpus(d, has_fabric_unknown, &blind);
    if (!n && !blind)
        return bh_saw(d, BH_CHECK_NONE, 0, "no GPU here joins a fabric");
    if (waits) {
        struct bh_check_result r = bh_saw(d, BH_CHECK_BROKEN, BH_MODE_NVLINK, "%s %s not joined the fabric",
                                          who, waits == 1 ? "has" : "have");
        r.because = "the fabric is not set up";
        return r;
    }
    if (sick)
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "%s: the fabric is unhealthy or configured wrongly", ill);
    if (blind) {
        struct bh_check_result r =
            bh_saw(d, BH_CHECK_UNKNOWN, BH_MODE_NVLINK, "%s: the fabric's state is not known", silent);
        r.because = "the fabric's state is not known";
        return r;
    }
    return bh_saw(d, BH_CHECK_OK, 0, "set up on all GPUs");
}

static bool is_in_other_domain(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    for (size_t i = 0; i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *e = &d->f->gpus->devices.at[i];
        if (!e->alive || !e->domain || !g->domain)
            continue;
        const char *a = e->fabric_key ? e->fabric_key : e->domain,
                   *b = g->fabric_key ? g->fabric_key : g->domain;
        return !bh_str_eq(a, b);
    }
    return false;
}

static struct bh_check_result domains(struct bh_doctor *d)
{
    size_t n, other, blind;
    (void)bh_doctor_gpus(d, has_links, &n);
    const char *who = bh_doctor_gpus(d, is_in_other_domain, &other),
               *silent = bh_doctor_gpus(d, has_links_unknown, &blind);
    if (!n && !blind)
        return bh_saw(d, BH_CHECK_NONE, 0, "no NVLink is up on this node");
    if (other)
        return bh_saw(d, BH_CHECK_NOTE, 0, "%s: another domain than the first GPU", who);
    if (blind)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s: not known whether links are up", silent);
    return bh_saw(d, BH_CHECK_OK, 0, "one domain");
}

static bool is_behind_switch(const struct bh_doctor *d, const struct bh_gpu_device *g)
{
    (void)d;
    return goes_to_switch(g);
}

/* The default is 0: bare metal, no partitions. */
static struct bh_check_result fabric_manager(struct bh_doctor *d)
{
    const struct bh_node_file *config = &d->f->node->files[BH_FILE_FABRIC_CONFIG];
    const struct bh_node_program *program = &d->f->node->programs[BH_PROGRAM_FABRIC_MANAGER];
    size_t n, joined;
    (void)bh_doctor_gpus(d, is_behind_switch, &n);
    (void)bh_doctor_gpus(d, has_fabric, &joined);
    if (!n)
        return bh_saw(d, BH_CHECK_NONE, 0, "no NVSwitch");
    if (!program->path && !joined)
        return bh_saw(d, BH_CHECK_ATTENTION, 0,
                      "GPUs behind an NVSwitch, and no fabric manager on this node");
    struct bh_span mode =
        config->text ? bh_pairs_find(config->text, "FABRIC_MODE") : (struct bh_span){NULL, 0};
    if (program->version && d->f->gpus->driver && !bh_str_eq(program->version, d->f->gpus->driver))
        return bh_saw(d, BH_CHECK_ATTENTION, 0, "fabric manager %s with driver %s", program->version,
                      d->f->gpus->driver);
    if (mode.at && (bh_span_eq_nocase(mode, "1") || bh_span_eq_nocase(mode, "2")))
        return bh_saw(d, BH_CHECK_OK, 0, "keeps partitions apart (FABRIC_MODE %.*s)", (int)mode.n, mode.at);
    struct bh_check_result r =
        bh_saw(d, BH_CHECK_NOTE, 0, "%s",
               mode.at ? "no partitions (FABRIC_MODE 0): who is on a domain reaches all of it"
                       : "partitions: not known, its configuration is not on this node");
    r.mend = "for tenants that distrust each other: FABRIC_MODE=1 and a partition each, or whole baseboards";
    return r;
}

const struct bh_check bh_checks_fabric[] = {
    {"fabric.links",
     {"BH-042", NULL},
     BH_MODE_NVLINK,
     true,
     false,
     links,
     "A job that was promised NVLink gets less of it, or waits for its slowest member.",
     "look in the kernel log for SXid and Xid 74 lines; reseat or replace the baseboard"},
    {"fabric.state",
     {"BH-040", NULL},
     BH_MODE_NVLINK,
     true,
     false,
     fabric_state,
     "Without it programs that use NVLink do not start (CUDA error 802) or run slowly.",
     "start nvidia-fabricmanager of exactly the driver's version and look at its log"},
    {"fabric.domains",
     {"BH-040", NULL},
     0,
     true,
     false,
     domains,
     "A job across two domains talks over PCIe or the network; placement must keep it inside one.",
     "nothing when it is built so; else compare the GPUs' cluster ids and cliques"},
    {"fabric.manager",
     {"BH-041", NULL},
     0,
     true,
     false,
     fabric_manager,
     "Only the fabric manager's partitions keep tenants on one NVSwitch apart.",
     "install nvidia-fabricmanager of exactly the driver's version and start it"},
    {0},
};
