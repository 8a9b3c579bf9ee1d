/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/read_fixture.h"

static struct bh_read_fixture f;

static const char *said(const char *text)
{
    return bh_read_fixture_read(&f, text, strlen(text), true);
}

#define NODE "bulkhead: 1\nnodes:\n"

TEST(a_node_in_full)
{
    CHECK_STR(said("bulkhead: 1\n"
                   "nodes:\n"
                   "  - name: gpu-01\n"
                   "    kernel: k-7\n"
                   "    site: eu-de-1\n"
                   "    driver: 580.159.03\n"
                   "    toolkit: 1.17.8\n"
                   "    operator: 25.3.2\n"
                   "    vgpuManager: \"\"\n"
                   "    iommu: true\n"
                   "    acs: false\n"
                   "    secureBoot: true\n"
                   "    params: {RmProfilingAdminOnly: 1, RMDisableScrubOnFree: 0}\n"
                   "    labels: {fabric-domain: A, numa-node: 0}\n"
                   "    gpus:\n"
                   "      - {index: 0, uuid: GPU-1, model: H200, numa: 1, fabric: A,\n"
                   "         mig: {enabled: true, instances: [1g.18gb@0, 3g.71gb@4, 9g.1gb, 1g.18gb]}}\n"
                   "      - {index: 1, model: H200}\n"
                   "  - name: Node_2.example.org\n"),
              "");
    CHECK_EQ(f.fleet.nodes.n, 2);
    const struct bh_fleet_node *n = bh_fleet_find(&f.fleet, "gpu-01");
    CHECK(n == &f.fleet.nodes.at[0]);
    CHECK_EQ(n->pos.line, 3);
    CHECK_EQ(n->pos.column, 5);
    CHECK_STR(n->kernel, "k-7");
    CHECK_STR(n->site, "eu-de-1");
    CHECK_STR(n->driver, "580.159.03");
    CHECK_STR(n->toolkit, "1.17.8");
    CHECK_STR(n->operator_, "25.3.2");
    CHECK(n->vgpu_manager == NULL);
    CHECK_EQ(n->iommu, BH_FACT_YES);
    CHECK_EQ(n->acs, BH_FACT_NO);
    CHECK_EQ(n->ecc, BH_FACT_UNKNOWN);
    CHECK_STR(bh_keyed_find(n->params.at, n->params.n, "RMDisableScrubOnFree"), "0");
    CHECK_STR(bh_keyed_find(n->labels.at, n->labels.n, "fabric-domain"), "A");
    CHECK_EQ(n->gpus.n, 2);
    const struct bh_gpu *g = &n->gpus.at[0];
    CHECK_STR(g->uuid, "GPU-1");
    CHECK(g->model && strcmp(g->model->arch, "Hopper") == 0);
    CHECK_EQ(g->numa, 1);
    CHECK_STR(g->fabric, "A");
    CHECK_EQ(g->mig_enabled, BH_FACT_YES);
    CHECK_EQ(g->instances.n, 4);
    CHECK(g->instances.at[0].known && g->instances.at[1].known);
    CHECK_STR(g->instances.at[1].profile, "3g.71gb");
    CHECK_EQ(g->instances.at[1].start, 4);
    CHECK_EQ(g->instances.at[1].pos.line, 17);
    CHECK_EQ(g->instances.at[1].pos.column, 54);
    CHECK(g->instances.at[2].known == NULL);
    CHECK_EQ(g->instances.at[3].start, -1);
    CHECK_EQ(n->gpus.at[1].numa, -1);
    CHECK_EQ(n->gpus.at[1].mig_enabled, BH_FACT_UNKNOWN);
    CHECK_STR(f.fleet.nodes.at[1].kernel, "Node_2.example.org");
}

TEST(unknown_models_are_noted_once)
{
    CHECK_STR(said(NODE "  - name: a\n"
                        "    gpus:\n"
                        "      - {index: 0, model: X9000, mig: {instances: [1g.5gb@0]}}\n"
                        "      - {index: 1, model: H100}\n"
                        "      - {index: 2, model: X9000}\n"),
              "5:27: note: `X9000` is not in the GPU catalogue; nothing is assumed about its partitions\n");
    CHECK(f.fleet.nodes.at[0].gpus.at[0].model == NULL);
    CHECK(f.fleet.nodes.at[0].gpus.at[1].model != NULL);
}

TEST(mistakes)
{
    static const struct {
        const char *text, *said;
    } table[] = {
        {"bulkhead: 1\n", "1:1: `nodes` is required\n"},
        {"", "1:1: the file is empty; a fleet file begins with `bulkhead: 1`\n"},
        {"nodes: []\n", "1:1: `bulkhead: 1` is required: the version of the language\n"},
        {NODE "  - {name: a, drivers: 1}\n", "3:15: `drivers` is unknown here; did you mean `driver`?\n"},
        {NODE "  - {name: a, iommu: maybe}\n",
         "3:22: `iommu` of node 'a' needs true or false; found 'maybe'\n"},
        {NODE "  - {name: \"a:b\"}\n",
         "3:12: `name` of node 'a:b' needs a name of letters, digits, `.`, `_` and `-`; found the text 'a:b'\n"},
        {NODE "  - {name: a}\n  - {name: b}\n  - {name: a}\n",
         "5:12: node 'a' is listed twice: on line 3 and on line 5\n"},
        {NODE "  - {name: a, params: [x], labels: {k: [v]}}\n",
         "3:23: `params` of node 'a' needs a map from driver parameters to values; found a list\n"
         "3:40: `k` of `labels` of node 'a' needs a text or a number; found a list\n"},
        {NODE "  - name: a\n    gpus: [{model: H100}, {index: 0}]\n",
         "4:12: `index` of the GPU on line 4 is required\n"
         "4:27: `model` of the GPU on line 4 is required\n"
         "4:27: GPU 0 of node 'a' is listed twice: on line 4 and on line 4\n"},
        {NODE "  - name: a\n    gpus: [{model: H100, index: 1024, numa: -1}]\n",
         "4:33: `index` of the GPU on line 4 needs a whole number from 0 to 1023; found '1024'\n"
         "4:45: `numa` of the GPU on line 4 needs a whole number from 0 to 1023; found '-1'\n"},
        {NODE "  - name: a\n    gpus: [{model: H100, index: 1, uuid: X}, {model: H100, index: 2, uuid: X}]\n",
         "4:76: GPU 'X' is listed twice: on line 4 and on line 4\n"},
        {NODE
         "  - name: a\n    gpus: [{model: H200, index: 1, mig: {instances: [1g.18gb@16, \"@1\", 1g.18gb@x, [1]]}}]\n",
         "4:54: `instances` of `mig` of the GPU on line 4 needs instances like 1g.18gb@0, the slice behind the `@` from 0 "
         "to 15; found '1g.18gb@16'\n"
         "4:66: `instances` of `mig` of the GPU on line 4 needs instances like 1g.18gb@0, the slice behind the `@` from 0 "
         "to 15; found the text '@1'\n"
         "4:72: `instances` of `mig` of the GPU on line 4 needs instances like 1g.18gb@0, the slice behind the `@` from 0 "
         "to 15; found '1g.18gb@x'\n"
         "4:83: `instances` of `mig` of the GPU on line 4 needs instances like 1g.18gb@0, the slice behind the `@` from 0 "
         "to 15; found a list\n"},
        {NODE "  - name: a\n    gpus: [{model: H200, index: 1, mig: {instances: 1g.18gb}}]\n",
         "4:53: `instances` of `mig` of the GPU on line 4 needs a list of instances like 1g.18gb@0; found '1g.18gb'\n"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        CHECK_STR(said(table[i].text), table[i].said);
}

TEST(memory_goes_back)
{
    bh_read_fixture_fini(&f);
    CHECK(f.fleet.arena.head == NULL);
}

TEST_MAIN
