/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gpus_text.h"
#include "gpu/health.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

enum { GPU, MODEL, MEMORY, UTIL, PCI, NUMA, HEALTH, WHO, N_COLUMNS };

struct row {
    char *cell[N_COLUMNS];
    enum bh_paint health;
};

struct table {
    struct bh_arena arena;
    BH_VEC(struct row) rows;
};

/* ---- words ---- */

static const char *model_of(const struct bh_gpu_device *d)
{
    return d->model ? d->model->name : d->name ? d->name : "unknown";
}

static uint64_t tenths_gib(uint64_t bytes)
{
    return (bytes >> 20) * 10 / 1024;
}

/* `1.2/140.4`; unknown parts are `-`. */
static char *memory_cell(struct bh_arena *a, struct bh_reading used, struct bh_reading total)
{
    char left[32] = "-", right[32] = "-";
    if (!used.why)
        (void)snprintf(left, sizeof(left), "%" PRIu64 ".%" PRIu64, tenths_gib(used.v) / 10,
                       tenths_gib(used.v) % 10);
    if (!total.why)
        (void)snprintf(right, sizeof(right), "%" PRIu64 ".%" PRIu64, tenths_gib(total.v) / 10,
                       tenths_gib(total.v) % 10);
    return bh_arena_printf(a, "%s/%s", left, right);
}

/* The domain is left out where it says nothing. */
static const char *short_pci(const char *pci)
{
    return !pci ? "-" : bh_str_starts(pci, "0000:") ? pci + 5 : pci;
}

static void add_process(struct bh_buf *b, const struct bh_gpu_process *p)
{
    bh_buf_printf(b, "%" PRIu32 "(", p->pid);
    bh_text_add(b, p->user ? p->user : "?");
    bh_buf_str(b, ")");
    if (!p->memory_bytes.why)
        bh_buf_printf(b, " %" PRIu64 ".%" PRIu64 "G", tenths_gib(p->memory_bytes.v) / 10,
                      tenths_gib(p->memory_bytes.v) % 10);
    if (!p->sm_percent.why)
        bh_buf_printf(b, " %" PRIu64 "%%", p->sm_percent.v);
}

static bool before(const struct bh_gpu_process *a, const struct bh_gpu_process *b)
{
    return a->memory_bytes.v > b->memory_bytes.v ||
           (a->memory_bytes.v == b->memory_bytes.v && a->pid < b->pid);
}

/* The line a process belongs on; NULL: the GPU's own, also where no slice that is listed fits. */
static const struct bh_gpu_instance *slice_of(const struct bh_gpu_device *d, const struct bh_gpu_process *p)
{
    for (size_t i = 0; i < d->instances.n; i++)
        if (d->instances.at[i].gi == p->gi && d->instances.at[i].ci == p->ci)
            return &d->instances.at[i];
    return NULL;
}

/* The heaviest of a line (slice NULL: the GPU's own), and how many more. */
static char *who_cell(struct bh_arena *a, const struct bh_gpu_device *d, const struct bh_gpu_instance *slice,
                      bool all)
{
    bool may_hide = d->processes_seen.why || (slice && slice->ci == BH_NO_ID && d->instances_seen.why);
    struct bh_buf b;
    const struct bh_gpu_process *first = NULL;
    size_t n = 0;
    bh_buf_init(&b, 1u << 16);
    for (size_t i = 0; i < d->processes.n; i++) {
        const struct bh_gpu_process *p = &d->processes.at[i];
        if (slice_of(d, p) != slice)
            continue;
        if (all) {
            bh_buf_str(&b, n ? ", " : "");
            add_process(&b, p);
        }
        first = !first || before(p, first) ? p : first;
        n++;
    }
    if (!all && first)
        add_process(&b, first);
    if (!all && n > 1)
        bh_buf_printf(&b, " +%zu", n - 1);
    char *text = bh_arena_str(a, n ? bh_buf_text(&b) : may_hide ? "?" : "-");
    bh_buf_fini(&b);
    return text;
}

static const char *health_word(const struct bh_gpu_device *d)
{
    return !d->alive ? (bh_str_starts(d->trouble, "lost") ? "lost" : "silent") : d->trouble ? "warn" : "ok";
}

/* ---- the table ---- */

static void add_device(struct table *t, const struct bh_gpu_device *d, bool all)
{
    struct bh_arena *a = &t->arena;
    struct row *r = bh_vec_push(&t->rows);
    *r = (struct row){.health = !d->alive ? BH_PAINT_RED : d->trouble ? BH_PAINT_YELLOW : BH_PAINT_GREEN};
    r->cell[GPU] = bh_arena_printf(a, "%" PRIu32, d->index);
    r->cell[MODEL] = bh_arena_str(a, model_of(d));
    r->cell[MEMORY] = memory_cell(a, d->used_bytes, d->total_bytes);
    r->cell[UTIL] =
        d->util_percent.why ? bh_arena_str(a, "-") : bh_arena_printf(a, "%" PRIu64 "%%", d->util_percent.v);
    r->cell[PCI] = bh_arena_str(a, short_pci(d->pci));
    r->cell[NUMA] = d->numa < 0 ? bh_arena_str(a, "-") : bh_arena_printf(a, "%" PRId32, d->numa);
    r->cell[HEALTH] = bh_arena_str(a, health_word(d));
    r->cell[WHO] = who_cell(a, d, NULL, all);
}

static char *slice_name(struct bh_arena *a, const struct bh_gpu_instance *i)
{
    const char *profile = i->profile ? i->profile : "slice";
    if (i->start.why)
        return bh_arena_str(a, profile);
    return bh_arena_printf(a, "%s@%" PRIu64, profile, i->start.v);
}

static void add_slice(struct table *t, const struct bh_gpu_device *d, const struct bh_gpu_instance *i,
                      bool all)
{
    struct bh_arena *a = &t->arena;
    struct row *r = bh_vec_push(&t->rows);
    bool is_device = i->ci != BH_NO_ID;
    *r = (struct row){.health = is_device ? BH_PAINT_PLAIN : BH_PAINT_DIM};
    r->cell[GPU] = is_device ? bh_arena_printf(a, "%" PRIu32 ":%" PRIu32 ".%" PRIu32, d->index, i->gi, i->ci)
                             : bh_arena_printf(a, "%" PRIu32 ":%" PRIu32, d->index, i->gi);
    r->cell[MODEL] = slice_name(a, i);
    r->cell[MEMORY] = memory_cell(a, i->used_bytes, i->total_bytes);
    r->cell[UTIL] = bh_arena_str(a, "-");
    r->cell[PCI] = bh_arena_str(a, "");
    r->cell[NUMA] = bh_arena_str(a, "");
    /* unused is what has no device: where devices could not be listed, nobody knows */
    r->cell[HEALTH] = bh_arena_str(a, is_device ? "" : d->instances_seen.why ? "?" : "unused");
    r->cell[WHO] = who_cell(a, d, i, all);
}

static void write_table(struct bh_cli *cli, const struct table *t)
{
    static const char *const heads[] = {"GPU", "MODEL", "MEMORY GiB", "UTIL", "PCI", "NUMA", "HEALTH", "WHO"};
    size_t width[N_COLUMNS];
    for (size_t c = 0; c < N_COLUMNS; c++) {
        width[c] = strlen(heads[c]);
        for (size_t i = 0; i < t->rows.n; i++) {
            size_t n = bh_text_width(t->rows.at[i].cell[c]);
            width[c] = n > width[c] ? n : width[c];
        }
    }
    for (size_t c = 0; c < N_COLUMNS; c++) {
        bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, heads[c]);
        bh_text_blanks(&cli->out, c == WHO ? 0 : width[c] - strlen(heads[c]) + 2);
    }
    bh_buf_str(&cli->out, "\n");
    for (size_t i = 0; i < t->rows.n; i++) {
        const struct row *r = &t->rows.at[i];
        for (size_t c = 0; c < N_COLUMNS; c++) {
            bh_paint_add(&cli->out, cli->paint_out && c == HEALTH, r->health, r->cell[c]);
            bh_text_blanks(&cli->out, c == WHO ? 0 : width[c] - bh_text_width(r->cell[c]) + 2);
        }
        bh_buf_str(&cli->out, "\n");
    }
}

/* Who stands behind the numbers; nothing when they are real. */
static void say_simulated(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    if (!s->simulated)
        return;
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_YELLOW, "simulated");
    bh_buf_str(&cli->out, ": no GPU stands behind these lines, but ");
    bh_text_add(&cli->out, s->library ? s->library : bh_sysroot());
    bh_buf_str(&cli->out, "\n");
}

static bool has_amd(const struct bh_gpu_snapshot *s)
{
    for (size_t i = 0; i < s->devices.n; i++)
        if (s->devices.at[i].vendor == BH_GPU_AMD)
            return true;
    return false;
}

static void write_head(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    say_simulated(cli, s);
    if (s->library) {
        bh_buf_str(&cli->out, "driver ");
        bh_text_add(&cli->out, s->driver ? s->driver : "unknown");
        bh_buf_str(&cli->out, ", CUDA ");
        bh_text_add(&cli->out, s->cuda ? s->cuda : "unknown");
    }
    if (has_amd(s)) {
        bh_buf_str(&cli->out, s->library ? ", amdgpu " : "amdgpu ");
        bh_text_add(&cli->out, s->amdgpu ? s->amdgpu : "of the kernel");
    }
    bh_buf_printf(&cli->out, ", %zu %s\n", s->devices.n, s->devices.n == 1 ? "GPU" : "GPUs");
}

static void sentence(struct bh_cli *cli, uint32_t index, const char *lead, const char *text)
{
    char head[64];
    (void)snprintf(head, sizeof(head), "GPU %" PRIu32 ": %.40s", index, lead);
    bh_buf_str(&cli->out, head);
    bh_text_wrap(&cli->out, text, (unsigned)strlen(head), 4, cli->width);
}

/* What is wrong, in full sentences under the table. */
static void write_troubles(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    for (size_t i = 0; i < s->devices.n; i++) {
        const struct bh_gpu_device *d = &s->devices.at[i];
        if (d->trouble)
            sentence(cli, d->index, "", d->trouble);
        if (d->alive && d->processes_seen.why)
            sentence(cli, d->index, "who uses it is not known: ", d->processes_seen.why);
    }
    for (size_t i = 0; i < s->notes.n; i++) {
        bh_buf_str(&cli->out, "note: ");
        bh_text_wrap(&cli->out, s->notes.at[i], 6, 4, cli->width);
    }
}

void bh_gpus_text(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    struct table t = {0};
    bool all = !cli->is_terminal; /* a pipe has room for everyone */
    write_head(cli, s);
    for (size_t i = 0; i < s->devices.n; i++) {
        const struct bh_gpu_device *d = &s->devices.at[i];
        add_device(&t, d, all);
        for (size_t k = 0; k < d->instances.n; k++)
            add_slice(&t, d, &d->instances.at[k], all);
    }
    if (t.rows.n)
        write_table(cli, &t);
    write_troubles(cli, s);
    bh_vec_fini(&t.rows);
    bh_arena_fini(&t.arena);
}

/* ---- the tree ---- */

static const char *link_word(const struct bh_gpu_device *d)
{
    return d->vendor == BH_GPU_AMD ? "xGMI" : "NVLink";
}

static void links_line(struct bh_buf *b, const struct bh_gpu_device *d)
{
    size_t to[3] = {0};
    for (size_t i = 0; i < d->up.n; i++)
        to[d->up.at[i].remote]++;
    bh_buf_printf(b, "      %s %s: %s", link_word(d), d->domain,
                  d->up.n ? "" : "how many links is not known");
    static const char *const words[] = {"to GPUs", "to switches", "elsewhere"};
    const char *comma = "";
    for (size_t i = 0; i < BH_COUNT_OF(to); i++)
        if (to[i]) {
            bh_buf_printf(b, "%s%zu %s %s", comma, to[i], to[i] == 1 ? "link" : "links", words[i]);
            comma = ", ";
        }
    bh_buf_str(b, "\n");
}

/* How an AMD GPU is cut, and how it could be. */
static void partition_line(struct bh_buf *b, const struct bh_gpu_device *d)
{
    const struct {
        const char *what, *is, *may;
    } table[] = {{"compute", d->compute_partition, d->compute_partitions},
                 {"memory", d->memory_partition, d->memory_partitions}};
    const char *lead = "      partition ";
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        if (!table[i].is)
            continue;
        bh_buf_printf(b, "%s%s %s", lead, table[i].what, table[i].is);
        if (table[i].may)
            bh_buf_printf(b, " (of %s)", table[i].may);
        lead = ", ";
    }
    if (d->vendor == BH_GPU_AMD && !d->isolation.why) {
        bh_buf_printf(b, "%s%s", *lead == ',' ? ", isolation " : "      isolation ",
                      bh_gpu_isolation_word(d));
        lead = ", ";
    }
    bh_buf_str(b, *lead == ',' ? "\n" : "");
}

static void device_lines(struct bh_cli *cli, const struct bh_gpu_device *d)
{
    struct bh_buf *b = &cli->out;
    struct bh_unit_text t;
    bh_buf_str(b, "    PCI ");
    bh_text_add(b, d->pci ? d->pci : "unknown");
    bh_buf_printf(b, "  GPU %" PRIu32 "  ", d->index);
    bh_text_add(b, model_of(d));
    if (!d->total_bytes.why)
        bh_buf_printf(b, "  %s", bh_size_format(d->total_bytes.v, &t));
    if (d->module_id >= 0)
        bh_buf_printf(b, "  module %" PRId32, d->module_id);
    bh_buf_str(b, "  ");
    bh_paint_add(b, cli->paint_out,
                 !d->alive    ? BH_PAINT_RED
                 : d->trouble ? BH_PAINT_YELLOW
                              : BH_PAINT_GREEN,
                 health_word(d));
    bh_buf_str(b, "\n");
    if (d->domain)
        links_line(b, d);
    partition_line(b, d);
    for (size_t i = 0; i < d->instances.n; i++) {
        const struct bh_gpu_instance *at = &d->instances.at[i];
        bh_buf_printf(b, "      MIG %" PRIu32, at->gi);
        if (at->ci != BH_NO_ID)
            bh_buf_printf(b, ".%" PRIu32, at->ci);
        bh_buf_str(b, "  ");
        bh_text_add(b, at->profile ? at->profile : "unknown profile");
        if (!at->start.why && at->size.v > 1)
            bh_buf_printf(b, "  slices %" PRIu64 "-%" PRIu64, at->start.v, at->start.v + at->size.v - 1);
        else if (!at->start.why)
            bh_buf_printf(b, "  slice %" PRIu64, at->start.v);
        bh_buf_str(b, "  ");
        bh_text_add(b, at->uuid ? at->uuid : "no device");
        bh_buf_str(b, "\n");
    }
}

/* Who reaches whom over NVLink, one line a domain; then what joins the first GPU to the others without it. */
static void domain_lines(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    for (size_t i = 0; i < s->devices.n; i++) {
        const char *domain = s->devices.at[i].domain;
        bool first = domain != NULL;
        for (size_t k = 0; k < i && first; k++)
            first = !bh_str_eq(s->devices.at[k].domain, domain);
        if (!first)
            continue;
        bh_buf_printf(&cli->out, "%s domain %s: GPU", link_word(&s->devices.at[i]), domain);
        for (size_t k = i; k < s->devices.n; k++)
            if (bh_str_eq(s->devices.at[k].domain, domain))
                bh_buf_printf(&cli->out, " %" PRIu32, s->devices.at[k].index);
        if (s->devices.at[i].fabric_key)
            bh_buf_printf(&cli->out, " (fabric %s)", s->devices.at[i].fabric_key);
        bh_buf_str(&cli->out, "\n");
    }
    for (size_t i = 0; i < s->paths.n; i++) {
        const struct bh_gpu_path *p = &s->paths.at[i];
        const char *a = s->devices.at[p->a].domain, *b = s->devices.at[p->b].domain;
        if ((a && bh_str_eq(a, b)) || s->devices.n > 16)
            continue;
        bh_buf_printf(&cli->out, "GPU %" PRIu32 " and %" PRIu32 ": no %s; %s\n", s->devices.at[p->a].index,
                      s->devices.at[p->b].index, link_word(&s->devices.at[p->a]),
                      p->ancestor ? p->ancestor : "how they are joined is not known");
    }
}

void bh_gpus_tree(struct bh_cli *cli, const struct bh_gpu_snapshot *s)
{
    int32_t numa = -2, next;
    write_head(cli, s);
    /* Nodes in order; GPUs whose node is unknown come first. */
    for (;; numa = next) {
        next = INT32_MAX;
        for (size_t i = 0; i < s->devices.n; i++)
            if (s->devices.at[i].numa > numa && s->devices.at[i].numa < next)
                next = s->devices.at[i].numa;
        if (next == INT32_MAX)
            break;
        if (next < 0)
            bh_buf_str(&cli->out, "  NUMA node unknown\n");
        else
            bh_buf_printf(&cli->out, "  NUMA node %" PRId32 "\n", next);
        for (size_t i = 0; i < s->devices.n; i++)
            if (s->devices.at[i].numa == next)
                device_lines(cli, &s->devices.at[i]);
    }
    domain_lines(cli, s);
    write_troubles(cli, s);
}
