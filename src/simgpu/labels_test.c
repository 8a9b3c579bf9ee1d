/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/labels.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_sim_node node;
static struct bh_buf b;

static const char *labels_of(const char *scene, const struct bh_sim_gpu_view *gpus)
{
    bh_buf_fini(&b);
    bh_buf_init(&b, 1u << 16);
    if (bh_sim_node_make(&node, scene, 1, NULL) < 0)
        return "";
    bh_sim_labels(&b, &node, gpus);
    return bh_buf_text(&b);
}

TEST(a_mixed_node_has_one_product_and_counts_its_gpus)
{
    const char *text = labels_of("mixed", NULL);
    CHECK(strstr(text, "nvidia.com/gpu.product=NVIDIA-H100-PCIe\n") != NULL);
    CHECK(strstr(text, "nvidia.com/gpu.count=2\n") && strstr(text, "nvidia.com/gpu.memory=81559\n"));
}

TEST(a_drifted_label_counts_what_is_not_there)
{
    const char *text = labels_of("drifted", NULL);
    CHECK(strstr(text, "nvidia.com/gpu.product=NVIDIA-L40S\n") && strstr(text, "nvidia.com/gpu.count=4\n"));
}

TEST(slices_are_counted_by_profile)
{
    struct bh_sim_gpu_view *gpus = bh_alloc(BH_SIM_GPUS_MAX, sizeof(*gpus));
    CHECK(strstr(labels_of("mig", gpus), "nvidia.com/mig.strategy=none\n") != NULL);
    for (uint32_t i = 0; i < 4; i++)
        gpus[i].mig_on = 1;
    const char *text = labels_of("mig", gpus);
    CHECK(strstr(text, "nvidia.com/mig.strategy=mixed\n") && !strstr(text, "nvidia.com/mig-"));
    const struct bh_mig_profile *small = bh_mig_find(node.gpus[0].model, "1g.10gb"),
                                *media = bh_mig_find(node.gpus[0].model, "1g.10gb+me");
    CHECK(small && media);
    gpus[0].n_gis = 2;
    gpus[0].gis[0] = (struct bh_sim_gi_view){.profile_id = small->gi_profile_id, .n_cis = 1};
    gpus[0].gis[1] = (struct bh_sim_gi_view){.profile_id = media->gi_profile_id, .n_cis = 1};
    gpus[3].n_gis = 2;
    gpus[3].gis[0] = gpus[0].gis[0];
    gpus[3].gis[1] = (struct bh_sim_gi_view){.profile_id = small->gi_profile_id}; /* no device */
    text = labels_of("mig", gpus);
    CHECK(strstr(text, "nvidia.com/mig-1g.10gb.count=2\n") != NULL);
    CHECK(strstr(text, "nvidia.com/mig-1g.10gb.me.count=1\n") != NULL);
    free(gpus);
    bh_buf_fini(&b);
}

TEST_MAIN
