/* SPDX-License-Identifier: Apache-2.0 */
/* node_test.c - every scene can be made, is the same every time, and is a machine that could be. */
#include "simgpu/node.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"
#include "core/model/advisory.h"

#include <stdio.h>

static struct bh_sim_node node, other;
static struct bh_err err;

static bool unique(const struct bh_sim_node *n, size_t offset)
{
    for (uint32_t i = 0; i < n->n_gpus; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp((const char *)&n->gpus[i] + offset, (const char *)&n->gpus[j] + offset) == 0)
                return false;
    return true;
}

/* NULL, or what cannot be. */
static const char *wrong_gpu(const struct bh_sim_gpu *g, uint32_t index)
{
    if (!g->model || bh_catalog_find(g->name) != g->model)
        return "the catalogue does not know it by its name";
    if (strlen(g->uuid) != 40 || !bh_str_starts(g->uuid, "GPU-") || strlen(g->serial) != 13)
        return "its uuid or serial number";
    if (strlen(g->pci) != 12 || !*g->vbios)
        return "its address or firmware";
    if ((g->device_id & 0xffff) != 0x10de || !g->device_id >> 16)
        return "its device id";
    if (bh_model_has_devices(g->model) && bh_catalog_by_device((uint16_t)(g->device_id >> 16)) != g->model)
        return "a device id of another model";
    if (!g->sm || !g->total_bytes || g->reserved_bytes * 20 > g->total_bytes || !g->reserved_bytes)
        return "its size";
    if (g->links > BH_SIM_LINKS_MAX || (g->links == 0) != (g->switch_group == 0))
        return "its links";
    if ((g->links == 0) != (g->module_id == UINT32_MAX))
        return "its module";
    if (g->numa < 0 || g->numa > 1 || g->minor != index)
        return "its place";
    for (size_t i = 0; i < g->model->n_profiles; i++)
        if ((uint64_t)g->model->profiles[i].memory_mib * BH_MIB > g->total_bytes)
            return "a slice larger than it";
    return g->mig && !bh_model_has_mig(g->model) ? "MIG on what has none" : NULL;
}

static const char *wrong_node(const struct bh_sim_node *n)
{
    for (uint32_t i = 0; i < n->n_gpus; i++) {
        const char *wrong = wrong_gpu(&n->gpus[i], i);
        if (wrong)
            return wrong;
        for (uint32_t j = 0; j < i; j++)
            if (n->gpus[i].links && n->gpus[j].links && n->gpus[i].module_id == n->gpus[j].module_id)
                return "two GPUs in one socket";
    }
    if (!unique(n, offsetof(struct bh_sim_gpu, uuid)) || !unique(n, offsetof(struct bh_sim_gpu, serial)) ||
        !unique(n, offsetof(struct bh_sim_gpu, pci)))
        return "two GPUs of one uuid, serial number or address";
    if (!bh_str_starts(n->hostname, "sim-") || !*n->driver || !*n->kernel || !*n->toolkit)
        return "no name or version";
    for (const char *c = n->hostname; *c; c++)
        if (!bh_is_lower(*c) && !bh_is_digit(*c) && *c != '-')
            return "a name no host has";
    return NULL;
}

TEST(every_scene_is_a_machine_and_always_the_same)
{
    size_t n = 0;
    for (; bh_sim_scenes[n].name; n++) {
        memset(&node, 1, sizeof(node));
        memset(&other, 2, sizeof(other));
        CHECK(*bh_sim_scenes[n].summary);
        CHECK_EQ(bh_sim_node_make(&node, bh_sim_scenes[n].name, 42, &err), BH_OK);
        CHECK_EQ(bh_sim_node_make(&other, bh_sim_scenes[n].name, 42, &err), BH_OK);
        CHECK(memcmp(&node, &other, sizeof(node)) == 0);
        CHECK_STR(node.scene, bh_sim_scenes[n].name);
        CHECK_EQ(node.seed, 42);
        const char *wrong = wrong_node(&node);
        if (wrong)
            printf("# %s: %s\n", node.scene, wrong);
        CHECK(!wrong);
        CHECK_EQ(bh_sim_node_make(&other, bh_sim_scenes[n].name, 43, &err), BH_OK);
        for (uint32_t i = 0; i < node.n_gpus; i++)
            for (uint32_t j = 0; j < node.n_gpus; j++)
                CHECK(strcmp(node.gpus[i].uuid, other.gpus[j].uuid) != 0);
    }
    CHECK(n >= 17);
}

TEST(two_scenes_of_one_seed_are_two_machines)
{
    CHECK_EQ(bh_sim_node_make(&node, "h100x8", 1, &err), BH_OK);
    CHECK_EQ(bh_sim_node_make(&other, "dead", 1, &err), BH_OK);
    CHECK(strcmp(node.gpus[0].uuid, other.gpus[0].uuid) != 0);
}

TEST(every_model_of_the_catalogue)
{
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        char name[64];
        const struct bh_gpu_model *m = bh_catalog_at(i);
        (void)snprintf(name, sizeof(name), "%sx3", m->name);
        CHECK_EQ(bh_sim_node_make(&node, name, 7, &err), BH_OK);
        CHECK_EQ(node.n_gpus, 3);
        const char *wrong = wrong_node(&node);
        if (wrong)
            printf("# %s: %s\n", name, wrong);
        CHECK(!wrong);
        CHECK(node.gpus[2].model == m);
        CHECK_STR(node.scene, name);
        CHECK_EQ(bh_sim_node_make(&node, m->name, 7, &err), BH_OK);
        CHECK_EQ(node.n_gpus, 1);
    }
    CHECK_EQ(bh_sim_node_make(&node, "A30-24GBx4", 7, &err), BH_OK);
    CHECK_STR(node.scene, "A30x4");
    CHECK_STR(node.hostname, "sim-a30x4");
    CHECK_EQ(bh_sim_node_make(&node, "RTX PRO 6000 Blackwell Server EditionX64", 7, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 64);
    CHECK(!wrong_node(&node));
}

TEST(what_the_scenes_promise)
{
    CHECK_EQ(bh_sim_node_make(&node, "h200", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 1);
    CHECK_STR(node.gpus[0].name, "NVIDIA H200");
    CHECK_EQ(node.gpus[0].total_bytes, 143771 * BH_MIB);
    CHECK_STR(node.hostname, "sim-h200");
    CHECK_STR(node.driver, "580.159.04");
    CHECK_EQ(bh_sim_node_make(&node, "h100x8", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 8);
    CHECK_EQ(node.gpus[7].links, 18);
    CHECK_EQ(node.gpus[0].switch_group, node.gpus[7].switch_group);
    CHECK(node.gpus[0].numa == 0 && node.gpus[3].numa == 0 && node.gpus[4].numa == 1);
    CHECK(node.gpus[0].module_id != 1 && node.gpus[1].module_id != 2);
    CHECK_STR(node.product_label, node.gpus[0].name);
    CHECK_EQ(bh_sim_node_make(&node, "a100x8", 1, &err), BH_OK);
    CHECK_EQ(node.gpus[0].links, 12);
    CHECK_EQ(bh_sim_node_make(&node, "a30x4", 1, &err), BH_OK);
    CHECK(node.n_gpus == 4 && node.gpus[0].links == 0);
    CHECK_EQ(bh_sim_node_make(&node, "mixed", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 5);
    CHECK_STR(node.gpus[0].model->name, "H100-80GB-PCIe");
    CHECK_STR(node.gpus[2].model->name, "A30");
    CHECK_STR(node.gpus[4].model->name, "L40S");
    CHECK_EQ(bh_sim_node_make(&node, "many", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 64);
    CHECK_EQ(bh_sim_node_make(&node, "none", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 0);
    CHECK_STR(node.product_label, "");
    CHECK_EQ(bh_sim_node_make(&node, "mig", 1, &err), BH_OK);
    for (uint32_t i = 0; i < node.n_gpus; i++)
        CHECK(node.gpus[i].mig);
}

TEST(fabric_domains)
{
    static const uint8_t zero[16];
    CHECK_EQ(bh_sim_node_make(&node, "h200x8", 1, &err), BH_OK);
    CHECK(memcmp(node.gpus[0].cluster, zero, 16) == 0 && node.gpus[0].clique == 0);
    CHECK_EQ(bh_sim_node_make(&node, "two-domains", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct bh_sim_gpu *g = &node.gpus[i], *first = &node.gpus[0];
        CHECK(memcmp(g->cluster, zero, 16) != 0);
        CHECK_EQ(memcmp(g->cluster, first->cluster, 16) == 0, i < 4);
        CHECK_EQ(g->clique == first->clique, i < 4);
        CHECK_EQ(g->switch_group == first->switch_group, i < 4);
    }
    CHECK(memcmp(node.gpus[4].cluster, node.gpus[7].cluster, 16) == 0);
    CHECK_EQ(bh_sim_node_make(&node, "gb200x4", 1, &err), BH_OK);
    CHECK_EQ(node.n_gpus, 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK(memcmp(node.gpus[i].cluster, node.gpus[0].cluster, 16) == 0);
    CHECK(memcmp(node.gpus[0].cluster, zero, 16) != 0 && node.gpus[0].clique != 0);
}

TEST(what_is_broken)
{
    CHECK_EQ(bh_sim_node_make(&node, "drifted", 1, &err), BH_OK);
    CHECK(strcmp(node.product_label, node.gpus[0].name) != 0);
    CHECK(node.gpus[0].mig && !node.gpus[3].mig);
    CHECK(!bh_model_has_mig(bh_catalog_find(node.product_label)));
    CHECK_EQ(bh_sim_node_make(&node, "dead", 1, &err), BH_OK);
    for (uint32_t i = 0; i < 8; i++)
        CHECK_EQ(node.gpus[i].dead, i == 5);
    CHECK_EQ(bh_sim_node_make(&node, "failing", 1, &err), BH_OK);
    CHECK(node.fail_every > 1 && node.slow_ms == 0);
    CHECK_EQ(bh_sim_node_make(&node, "slow", 1, &err), BH_OK);
    CHECK(node.slow_ms > 0 && node.fail_every == 0);
    CHECK_EQ(bh_sim_node_make(&node, "old-driver", 1, &err), BH_OK);
    CHECK(bh_str_starts(node.driver, "535."));
}

/* Only the scene that is about an old driver has advisories open against it. */
TEST(versions_are_current)
{
    struct bh_exposure e;
    CHECK_EQ(bh_sim_node_make(&node, "h100x8", 1, &err), BH_OK);
    CHECK_EQ(bh_advisory_check("nvidia-driver", node.driver, INT32_MAX, &e, &err), BH_OK);
    CHECK(e.n_open == 0 && !e.unpatched_branch);
    CHECK_EQ(bh_advisory_check("nvidia-container-toolkit", node.toolkit, INT32_MAX, &e, &err), BH_OK);
    CHECK_EQ(e.n_open, 0);
    CHECK_EQ(bh_sim_node_make(&node, "old-driver", 1, &err), BH_OK);
    CHECK_EQ(bh_advisory_check("nvidia-driver", node.driver, INT32_MAX, &e, &err), BH_OK);
    CHECK(e.n_open > 0);
}

TEST(an_unknown_scene_names_the_nearest)
{
    CHECK_EQ(bh_sim_node_make(&node, "h10x8", 1, &err), BH_NOT_FOUND);
    CHECK_EQ(err.code, BH_NOT_FOUND);
    CHECK_STR(err.msg, "no simulated node 'h10x8'; did you mean 'h100x8'?");
    CHECK_EQ(bh_sim_node_make(&node, "two-domain", 1, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "'two-domains'"));
    CHECK_EQ(bh_sim_node_make(&node, "a-quite-different-thing", 1, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "'h100x8'"));
    const char *const none[] = {"", "x4", "x", "8", "quuxx4"};
    for (size_t i = 0; i < BH_COUNT_OF(none); i++)
        CHECK_EQ(bh_sim_node_make(&node, none[i], 1, &err), BH_NOT_FOUND);
    char longer[300];
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK_EQ(bh_sim_node_make(&node, longer, 1, &err), BH_NOT_FOUND);
}

TEST(as_many_as_a_node_holds)
{
    CHECK_EQ(bh_sim_node_make(&node, "A30x64", 1, &err), BH_OK);
    const char *const bad[] = {"A30x65", "A30x0", "A30x99999999999999999999"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        CHECK_EQ(bh_sim_node_make(&node, bad[i], 1, &err), BH_INVALID);
        CHECK(strstr(err.msg, "1 to 64"));
    }
}

TEST_MAIN
