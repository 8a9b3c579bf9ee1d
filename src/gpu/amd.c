/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd.c - AMD's GPUs, from what their kernel driver shows below /sys/class/drm.
 *
 * No library is needed. A file that a kernel or a model does not have makes its reading unknown. Partitions of
 * one GPU are told by their mode; they are no lines of their own.
 */
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "gpu/amd_parse.h"
#include "gpu/gpu.h"
#include "gpu/text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#define CARDS  "/sys/class/drm"
#define SILENT "amdgpu does not say"
enum { CARDS_MAX = 256, CARD_NUMBER_MAX = 4095, NUMA_MAX = 1023, TEXT = 256, FILE_MAX = 4096 };

/* A card's folder, `/sys/class/drm/card1/device`. */
struct card {
    char at[64];
};

/* ---- files of a card ---- */

static int line_of(const struct card *c, const char *file, char *buf, size_t size)
{
    char path[160];
    bh_gpu_asking(file);
    (void)snprintf(path, sizeof(path), "%s/%s", c->at, file);
    return bh_sysfile_line(path, buf, size, NULL);
}

static const char *text_of(struct bh_arena *a, const struct card *c, const char *file)
{
    char text[TEXT];
    return line_of(c, file, text, sizeof(text)) == BH_OK ? bh_gpu_text(a, text, sizeof(text)) : NULL;
}

static const char *why_of(int rc)
{
    return rc == BH_NOT_FOUND ? SILENT
           : rc == BH_DENIED  ? "not permitted; try as root"
                              : "amdgpu does not answer";
}

static struct bh_reading number_of(const struct card *c, const char *file, uint64_t max)
{
    char text[32];
    uint64_t v;
    int rc = line_of(c, file, text, sizeof(text));
    if (rc < 0)
        return (struct bh_reading){0, why_of(rc)};
    if (bh_uint_parse(text, max, &v, NULL) < 0)
        return (struct bh_reading){0, "amdgpu's answer makes no sense"};
    return (struct bh_reading){v, NULL};
}

static bool uevent_of(const char *folder, const char *key, char *buf, size_t size)
{
    char path[192];
    BH_AUTOFREE char *text = NULL;
    (void)snprintf(path, sizeof(path), "%s/uevent", folder);
    bh_gpu_asking("uevent");
    return bh_sysfile_read(path, FILE_MAX, &text, NULL, NULL) == BH_OK && bh_amd_uevent(text, key, buf, size);
}

static bool pci_of(const char *folder, char pci[BH_AMD_PCI_MAX])
{
    return uevent_of(folder, "PCI_SLOT_NAME", pci, BH_AMD_PCI_MAX) && bh_amd_is_pci(pci);
}

/* ---- cards ---- */

/* `card12`, and no connector of it (`card12-DP-1`). */
static bool card_number(const char *name, uint64_t *ret)
{
    return bh_str_starts(name, "card") && bh_uint_parse(name + 4, CARD_NUMBER_MAX, ret, NULL) == BH_OK;
}

static bool is_amd(const struct card *c)
{
    char text[16], driver[32];
    return line_of(c, "vendor", text, sizeof(text)) == BH_OK && bh_str_eq_nocase(text, "0x1002") &&
           uevent_of(c->at, "DRIVER", driver, sizeof(driver)) && bh_str_eq(driver, "amdgpu");
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbers of AMD's cards, in order. */
static size_t find_cards(uint64_t ret[CARDS_MAX])
{
    char path[BH_SYSPATH_MAX];
    DIR *folder = bh_syspath(path, CARDS) ? opendir(path) : NULL;
    size_t n = 0;
    if (!folder)
        return 0;
    for (const struct dirent *e; n < CARDS_MAX && (e = readdir(folder));)
        n += card_number(e->d_name, &ret[n]);
    (void)closedir(folder);
    qsort(ret, n, sizeof(*ret), by_number);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct card c;
        (void)snprintf(c.at, sizeof(c.at), CARDS "/card%" PRIu64 "/device", ret[i]);
        if (is_amd(&c))
            ret[kept++] = ret[i];
    }
    return kept;
}

/* ---- one card ---- */

static void read_identity(struct bh_arena *a, const struct card *c, struct bh_gpu_device *d)
{
    char text[TEXT], unique[17], pci[BH_AMD_PCI_MAX];
    d->name = text_of(a, c, "product_name");
    if (!d->name) {
        const char *id = text_of(a, c, "device");
        d->name = id ? bh_arena_printf(a, "AMD GPU %s", id) : "AMD GPU";
    }
    if (line_of(c, "unique_id", text, sizeof(text)) == BH_OK && bh_amd_unique_id(text, unique))
        d->uuid = bh_arena_printf(a, "GPU-%s", unique);
    if (pci_of(c->at, pci))
        d->pci = bh_arena_str(a, pci);
    d->serial = text_of(a, c, "serial_number");
    d->vbios = text_of(a, c, "vbios_version");
    struct bh_reading numa = number_of(c, "numa_node", NUMA_MAX); /* the kernel writes -1 for unknown */
    d->numa = numa.why ? -1 : (int32_t)numa.v;
}

static const char *modes_of(struct bh_arena *a, const struct card *c, const char *file)
{
    char text[TEXT], modes[BH_AMD_MODES_MAX];
    if (line_of(c, file, text, sizeof(text)) < 0 || !bh_amd_modes(text, modes))
        return NULL;
    return bh_arena_str(a, modes);
}

static void read_partitions(struct bh_arena *a, const struct card *c, struct bh_gpu_device *d)
{
    char text[TEXT];
    d->compute_partition = modes_of(a, c, "current_compute_partition");
    d->compute_partitions = modes_of(a, c, "available_compute_partition");
    d->memory_partition = modes_of(a, c, "current_memory_partition");
    d->memory_partitions = modes_of(a, c, "available_memory_partition");
    int rc = line_of(c, "enforce_isolation", text, sizeof(text)), on = rc < 0 ? -1 : bh_amd_isolation(text);
    d->isolation = on >= 0  ? (struct bh_reading){(uint64_t)on, NULL}
                   : rc < 0 ? (struct bh_reading){0, why_of(rc)}
                            : (struct bh_reading){0, "amdgpu's answer makes no sense"};
}

static void read_memory(const struct card *c, struct bh_gpu_device *d)
{
    d->total_bytes = number_of(c, "mem_info_vram_total", INT64_MAX);
    d->used_bytes = number_of(c, "mem_info_vram_used", INT64_MAX);
    if (!d->total_bytes.why && !d->used_bytes.why && d->used_bytes.v <= d->total_bytes.v)
        d->free_bytes = (struct bh_reading){d->total_bytes.v - d->used_bytes.v, NULL};
    d->util_percent = number_of(c, "gpu_busy_percent", 100);
    d->memory_util_percent = number_of(c, "mem_busy_percent", 100);
}

/* GPUs of one hive reach each other; node K of the hive has the K-th number of links, counted from 1. */
static void read_hive(struct bh_arena *a, const struct card *c, struct bh_gpu_device *d)
{
    char text[TEXT], folder[128], pci[BH_AMD_PCI_MAX];
    uint8_t counts[BH_AMD_NODES_MAX];
    struct bh_reading hive = number_of(c, "xgmi_hive_info/xgmi_hive_id", UINT64_MAX);
    if (hive.why || hive.v == 0)
        return;
    d->domain = bh_arena_printf(a, "xgmi-%" PRIu64, hive.v);
    int rc = line_of(c, "xgmi_num_links", text, sizeof(text));
    size_t n = rc < 0 ? 0 : bh_amd_counts(text, counts);
    d->links = (struct bh_reading){0, rc < 0 ? why_of(rc) : n ? NULL : "amdgpu's answer makes no sense"};
    for (size_t k = 0; k < n; k++) {
        (void)snprintf(folder, sizeof(folder), "%s/xgmi_hive_info/node%zu", c->at, k + 1);
        bool known = pci_of(folder, pci);
        if (known && bh_str_eq(pci, d->pci))
            continue;
        const char *peer = known ? bh_arena_str(a, pci) : NULL;
        for (unsigned i = 0; i < counts[k]; i++) {
            uint32_t link = (uint32_t)d->up.n;
            *bh_vec_push(&d->up) =
                (struct bh_gpu_link){.link = link, .remote = BH_LINK_GPU, .remote_pci = peer};
        }
    }
    if (!d->links.why)
        d->links.v = d->up.n;
}

static void read_card(struct bh_gpu_snapshot *s, uint64_t number)
{
    struct card c;
    struct bh_gpu_device *d = bh_vec_push(&s->devices);
    *d = (struct bh_gpu_device){
        .index = (uint32_t)s->devices.n - 1, .vendor = BH_GPU_AMD, .minor = (int32_t)number, .module_id = -1};
    (void)snprintf(c.at, sizeof(c.at), CARDS "/card%" PRIu64 "/device", number);
    bh_gpu_asking_of(d->index);
    bh_gpu_mark_dead(d, SILENT); /* until read below */
    d->alive = true;
    read_identity(&s->arena, &c, d);
    read_memory(&c, d);
    read_partitions(&s->arena, &c, d);
    read_hive(&s->arena, &c, d);
    if (d->total_bytes.why && !bh_str_eq(d->total_bytes.why, SILENT)) {
        d->alive = false;
        d->trouble = bh_arena_printf(&s->arena, "its memory cannot be read: %s", d->total_bytes.why);
    }
}

static void add_paths(struct bh_gpu_snapshot *s, uint32_t first)
{
    const struct bh_reading silent = {0, SILENT}, other = {0, "no NVIDIA GPU"};
    for (uint32_t a = first; a < s->devices.n; a++)
        for (uint32_t b = a + 1; b < s->devices.n; b++) {
            const struct bh_gpu_device *from = &s->devices.at[a], *to = &s->devices.at[b];
            struct bh_gpu_path *p = bh_vec_push(&s->paths);
            *p = (struct bh_gpu_path){.a = a, .b = b, .read = silent, .write = silent, .nvlink = other};
            for (size_t i = 0; to->pci && i < from->up.n; i++)
                p->n_direct += bh_str_eq(from->up.at[i].remote_pci, to->pci);
        }
}

/* ---- the backend ---- */

static int open_cards(void **ret_self, struct bh_err *err)
{
    uint64_t numbers[CARDS_MAX];
    *ret_self = NULL;
    if (find_cards(numbers) == 0)
        return bh_fail(err, BH_NOT_FOUND, "no AMD GPU on this machine: amdgpu drives no card below %s",
                       CARDS);
    return BH_OK;
}

static int take_cards(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    (void)self, (void)err;
    uint64_t numbers[CARDS_MAX];
    char version[TEXT];
    uint32_t first = (uint32_t)s->devices.n;
    size_t n = find_cards(numbers);
    if (bh_sysfile_line("/sys/module/amdgpu/version", version, sizeof(version), NULL) == BH_OK)
        s->amdgpu = bh_gpu_text(&s->arena, version, sizeof(version));
    for (size_t i = 0; i < n; i++)
        read_card(s, numbers[i]);
    bh_gpu_asking_of(BH_NO_ID);
    add_paths(s, first);
    /* files in a folder are not this machine's */
    s->simulated |= *bh_sysroot() != '\0';
    return BH_OK;
}

static void close_cards(void *self)
{
    (void)self;
}

const struct bh_gpu_backend bh_gpu_amd = {open_cards, take_cards, close_cards, BH_GPU_ALL};
