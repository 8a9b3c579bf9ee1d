/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/fleet_write.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of YAML that mean something else than their letters. */
static bool is_word(const char *s)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        if (bh_str_eq_nocase(s, words[i]))
            return true;
    return false;
}

static bool is_plain(const char *s)
{
    if (!bh_is_alpha(*s) && !bh_is_digit(*s))
        return false;
    for (const char *c = s; *c; c++)
        if (!bh_is_alpha(*c) && !bh_is_digit(*c) && !strchr("._-+/@", *c))
            return false;
    return !is_word(s);
}

/* The length of the UTF-8 character at s that may stand in a file as it is; 0: it may not. */
static size_t character(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc3 && s[0] < 0xe0 ? 2 : s[0] >= 0xe1 && s[0] < 0xed ? 3 : 0;
    if (n == 1)
        return s[0] >= 0x20 && s[0] != 0x7f;
    for (size_t i = 1; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return n;
}

/* A text as YAML reads it back; bytes that no YAML file may hold become `?`. */
static void add_text(struct bh_buf *b, const char *s)
{
    if (is_plain(s)) {
        bh_buf_str(b, s);
        return;
    }
    bh_buf_str(b, "\"");
    for (const char *c = s; *c;) {
        size_t n = character((const unsigned char *)c);
        if (*c == '"' || *c == '\\')
            bh_buf_str(b, "\\");
        if (n)
            bh_buf_add(b, c, n);
        else
            bh_buf_str(b, "?");
        c += n ? n : 1;
    }
    bh_buf_str(b, "\"");
}

/* One comment line, whatever the text holds. */
static void add_remark(struct bh_buf *b, const char *indent, const char *s)
{
    bh_buf_printf(b, "%s# ", indent);
    for (const char *c = s; *c;) {
        size_t n = character((const unsigned char *)c);
        if (n)
            bh_buf_add(b, c, n);
        else
            bh_buf_str(b, *c == '\n' ? " " : "?");
        c += n ? n : 1;
    }
    bh_buf_str(b, "\n");
}

static void add_line(struct bh_buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    bh_buf_printf(b, "    %s: ", key);
    add_text(b, value);
    bh_buf_str(b, "\n");
}

static void add_fact(struct bh_buf *b, const char *key, uint8_t fact)
{
    if (fact != BH_FACT_UNKNOWN)
        bh_buf_printf(b, "    %s: %s\n", key, fact == BH_FACT_YES ? "true" : "false");
}

static void add_pairs(struct bh_buf *b, const char *name, const struct bh_keyed *at, size_t n)
{
    if (n)
        bh_buf_printf(b, "    %s:\n", name);
    for (size_t i = 0; i < n; i++) {
        bh_buf_str(b, "      ");
        add_text(b, at[i].key);
        bh_buf_str(b, ": ");
        add_text(b, at[i].value);
        bh_buf_str(b, "\n");
    }
}

static void add_mig(struct bh_buf *b, const struct bh_gpu *g)
{
    if (g->mig_enabled == BH_FACT_UNKNOWN && !g->instances.n)
        return;
    bh_buf_str(b, ", mig: {");
    if (g->mig_enabled != BH_FACT_UNKNOWN)
        bh_buf_printf(b, "enabled: %s", g->mig_enabled == BH_FACT_YES ? "true" : "false");
    for (size_t i = 0; i < g->instances.n; i++) {
        const struct bh_found_instance *at = &g->instances.at[i];
        char start[8] = "";
        bh_buf_str(b, i ? ", " : g->mig_enabled != BH_FACT_UNKNOWN ? ", instances: [" : "instances: [");
        if (at->start >= 0)
            (void)snprintf(start, sizeof(start), "@%d", at->start);
        struct bh_buf word;
        bh_buf_init(&word, 512);
        bh_buf_printf(&word, "%.400s%s", at->profile, start);
        add_text(b, bh_buf_text(&word));
        bh_buf_fini(&word);
    }
    bh_buf_str(b, g->instances.n ? "]}" : "}");
}

static void add_gpu(struct bh_buf *b, const struct bh_gpu *g)
{
    bh_buf_printf(b, "      - {index: %" PRIu32, g->index);
    if (g->uuid) {
        bh_buf_str(b, ", uuid: ");
        add_text(b, g->uuid);
    }
    bh_buf_str(b, ", model: ");
    add_text(b, g->model_name);
    if (g->numa >= 0)
        bh_buf_printf(b, ", numa: %" PRId32, g->numa);
    if (g->fabric) {
        bh_buf_str(b, ", fabric: ");
        add_text(b, g->fabric);
    }
    add_mig(b, g);
    bh_buf_str(b, "}\n");
}

static void add_node(struct bh_buf *b, const struct bh_fleet_node *n, const bh_remarks *remarks)
{
    bh_buf_str(b, "  - name: ");
    add_text(b, n->name);
    bh_buf_str(b, "\n");
    for (size_t i = 0; remarks && i < remarks->n; i++)
        add_remark(b, "    ", remarks->at[i]);
    add_line(b, "kernel", bh_str_eq(n->kernel, n->name) ? NULL : n->kernel);
    add_line(b, "site", n->site);
    add_line(b, "driver", n->driver);
    add_line(b, "toolkit", n->toolkit);
    add_line(b, "operator", n->operator_);
    add_line(b, "vgpuManager", n->vgpu_manager);
    add_fact(b, "iommu", n->iommu);
    add_fact(b, "acs", n->acs);
    add_fact(b, "secureBoot", n->secure_boot);
    add_fact(b, "ecc", n->ecc);
    add_pairs(b, "params", n->params.at, n->params.n);
    add_pairs(b, "labels", n->labels.at, n->labels.n);
    bh_buf_str(b, n->gpus.n ? "    gpus:\n" : "    gpus: []\n");
    for (size_t i = 0; i < n->gpus.n; i++)
        add_gpu(b, &n->gpus.at[i]);
}

void bh_fleet_write(struct bh_buf *out, const struct bh_fleet *f, const bh_remarks *remarks,
                    const bh_remarks *node_remarks)
{
    for (size_t i = 0; remarks && i < remarks->n; i++)
        add_remark(out, "", remarks->at[i]);
    bh_buf_str(out, f->nodes.n ? "bulkhead: 1\nnodes:\n" : "bulkhead: 1\nnodes: []\n");
    for (size_t i = 0; i < f->nodes.n; i++)
        add_node(out, &f->nodes.at[i], node_remarks ? &node_remarks[i] : NULL);
}
