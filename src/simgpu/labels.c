/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/labels.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LABEL "nvidia.com/"

static bool in_one_cluster(const struct bh_sim_node *node)
{
    static const uint8_t none[16];
    const struct bh_sim_gpu *first = &node->gpus[0];
    for (uint32_t i = 1; i < node->n_gpus; i++)
        if (memcmp(node->gpus[i].cluster, first->cluster, sizeof(first->cluster)) != 0 ||
            node->gpus[i].clique != first->clique)
            return false;
    return node->n_gpus && memcmp(first->cluster, none, sizeof(none)) != 0;
}

static void add_clique(struct bh_buf *b, const struct bh_sim_gpu *g)
{
    bh_buf_str(b, LABEL "gpu.clique=");
    for (size_t i = 0; i < sizeof(g->cluster); i++)
        bh_buf_printf(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", g->cluster[i]);
    bh_buf_printf(b, ".%" PRIu32 "\n", g->clique);
}

/* A label's value has no blanks. */
static void add_label(struct bh_buf *b, const char *key, const char *value, bool lower)
{
    char text[80];
    (void)snprintf(text, sizeof(text), "%s", value);
    for (char *c = text; *c; c++)
        *c = *c == ' ' ? '-' : lower ? bh_to_lower(*c) : *c;
    bh_buf_printf(b, LABEL "%s=%s\n", key, text);
}

static uint32_t slices_of(const struct bh_sim_node *node, const struct bh_sim_gpu_view *gpus,
                          const struct bh_gpu_model *model, const struct bh_mig_profile *p)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < node->n_gpus; g++)
        for (uint32_t i = 0; node->gpus[g].model == model && i < gpus[g].n_gis; i++)
            n += gpus[g].gis[i].profile_id == p->gi_profile_id && gpus[g].gis[i].n_cis;
    return n;
}

/* `mig-1g.10gb.me.count=1`: a label has `.` where the profile has `+`. */
static void add_slices(struct bh_buf *b, const struct bh_sim_node *node, const struct bh_sim_gpu_view *gpus)
{
    for (size_t m = 0; m < bh_catalog_count(); m++)
        for (size_t k = 0; k < bh_catalog_at(m)->n_profiles; k++) {
            const struct bh_mig_profile *p = &bh_catalog_at(m)->profiles[k];
            uint32_t n = slices_of(node, gpus, bh_catalog_at(m), p);
            if (!n)
                continue;
            bh_buf_str(b, LABEL "mig-");
            for (const char *c = p->name; *c; c++)
                bh_buf_printf(b, "%c", *c == '+' ? '.' : *c);
            bh_buf_printf(b, ".count=%" PRIu32 "\n", n);
        }
}

void bh_sim_labels(struct bh_buf *b, const struct bh_sim_node *node, const struct bh_sim_gpu_view *gpus)
{
    const struct bh_gpu_model *model = node->n_gpus ? bh_catalog_find(node->product_label) : NULL;
    bool mig = false, capable = model && bh_model_has_mig(model);
    bh_buf_printf(b, LABEL "cuda.driver-version.full=%s\n" LABEL "gpu.machine=%s\n", node->driver,
                  "Simulated");
    if (node->n_gpus) {
        uint64_t mib = model ? model->memory_mib : 0;
        uint32_t named = 0;
        for (uint32_t i = 0; i < node->n_gpus; i++) {
            mig = mig || (gpus ? gpus[i].mig_on : node->gpus[i].mig);
            if (bh_str_eq(node->gpus[i].name, node->product_label)) {
                mib = node->gpus[i].total_bytes / BH_MIB;
                named++;
            }
        }
        add_label(b, "gpu.product", node->product_label, false);
        if (model)
            add_label(b, "gpu.family", model->arch, true);
        bh_buf_printf(b,
                      LABEL "gpu.count=%" PRIu32 "\n" LABEL "gpu.memory=%" PRIu64 "\n" LABEL
                            "gpu.replicas=1\n" LABEL "gpu.sharing-strategy=none\n" LABEL "gpu.mode=compute\n",
                      named ? named : node->n_gpus, mib);
    }
    bh_buf_printf(b, LABEL "mig.capable=%s\n" LABEL "mig.strategy=%s\n", capable ? "true" : "false",
                  capable && mig ? "mixed" : "none");
    if (capable && gpus)
        add_slices(b, node, gpus);
    if (in_one_cluster(node))
        add_clique(b, &node->gpus[0]);
}
