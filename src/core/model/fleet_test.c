/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "core/model/fleet.h"

static struct bh_fleet_node *node_add(struct bh_fleet *f, const char *name)
{
    struct bh_fleet_node *n = bh_vec_push(&f->nodes);
    *n = (struct bh_fleet_node){.name = bh_arena_str(&f->arena, name), .kernel = name};
    (void)bh_map_add(&f->by_name, n->name, (uint32_t)f->nodes.n - 1);
    return n;
}

static void gpu_add(struct bh_fleet_node *n, uint32_t index)
{
    struct bh_gpu *g = bh_vec_push(&n->gpus);
    *g = (struct bh_gpu){.index = index, .numa = -1};
    *bh_vec_push(&g->instances) = (struct bh_found_instance){.profile = "1g.18gb", .start = 0};
}

TEST(empty_fleet_has_nothing_to_find_or_free)
{
    struct bh_fleet f = {0};
    CHECK(bh_fleet_find(&f, "gpu-01") == NULL);
    bh_fleet_fini(&f);
    bh_fleet_fini(&f);
}

TEST(nodes_are_found_by_name)
{
    struct bh_fleet f BH_AUTO(bh_fleet_fini) = {0};
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "gpu-%03d", i);
        (void)node_add(&f, name);
    }
    CHECK(bh_fleet_find(&f, "gpu-000") == &f.nodes.at[0]);
    CHECK_STR(bh_fleet_find(&f, "gpu-999")->name, "gpu-999");
    CHECK(bh_fleet_find(&f, "gpu-1000") == NULL);
    CHECK(bh_fleet_find(&f, "GPU-000") == NULL);
    CHECK(bh_fleet_find(&f, "") == NULL);
}

TEST(gpus_are_found_by_index_whatever_their_order)
{
    struct bh_fleet f BH_AUTO(bh_fleet_fini) = {0};
    struct bh_fleet_node *n = node_add(&f, "gpu-01");
    static const uint32_t order[] = {0, 1, 3, 7, 2, UINT32_MAX};
    CHECK(bh_fleet_node_gpu(n, 0) == NULL);
    for (size_t i = 0; i < BH_COUNT_OF(order); i++)
        gpu_add(n, order[i]);
    for (size_t i = 0; i < BH_COUNT_OF(order); i++)
        CHECK(bh_fleet_node_gpu(n, order[i]) == &n->gpus.at[i]);
    CHECK(bh_fleet_node_gpu(n, 4) == NULL);
    CHECK(bh_fleet_node_gpu(n, UINT32_MAX - 1) == NULL);
}

TEST(keys_are_found_exactly)
{
    static const struct bh_keyed params[] = {
        {.key = "RmProfilingAdminOnly", .value = "1"},
        {.key = "x", .value = ""},
    };
    CHECK_STR(bh_keyed_find(params, 2, "RmProfilingAdminOnly"), "1");
    CHECK_STR(bh_keyed_find(params, 2, "x"), "");
    CHECK(bh_keyed_find(params, 2, "rmprofilingadminonly") == NULL);
    CHECK(bh_keyed_find(params, 0, "x") == NULL);
    CHECK(bh_keyed_find(NULL, 0, "x") == NULL);
}

TEST_MAIN
