/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/openb.h"

#include "base/test.h"

static const char nodes[] = "sn,cpu_milli,memory_mib,gpu,model\n"
                            "node-a,64000,262144,2,P100\n"
                            "node-b,96000,393216,8,G2\n"
                            "node-c,96000,393216,0,\n";
static const char pods[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
                           "p0,12000,16384,1,1000,,LS\n"
                           "p1,6000,12288,1,460,G2|T4,LS\n"
                           "p2,1000,100,0,0,,BE\n"
                           "p3,1000,100,8,1000,G2|G2,BE\n";

static int read_both(struct bh_openb *o, const char *n, const char *p, struct bh_err *err)
{
    *o = (struct bh_openb){0};
    int rc = bh_openb_read_nodes(o, "n.csv", n, strlen(n), err);
    return rc < 0 ? rc : bh_openb_read_pods(o, "p.csv", p, strlen(p), err);
}

TEST(both_lists)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_err err;
    CHECK_EQ(read_both(&o, nodes, pods, &err), BH_OK);
    CHECK_EQ(o.nodes.n, 3);
    CHECK_EQ(bh_openb_gpus(&o), 10);
    CHECK_STR(o.nodes.at[1].name, "node-b");
    CHECK_STR(o.models[o.nodes.at[1].model], "G2");
    CHECK_EQ(o.nodes.at[1].mem_mib, 393216);
    CHECK_EQ(o.pods.n, 4);
    CHECK_EQ(o.n_models, 3); /* T4 is asked for, though no node has it */
    CHECK_EQ(o.pods.at[1].models, 1u << 1 | 1u << 2);
    CHECK_EQ(o.pods.at[3].models, 1u << 1);
    CHECK_EQ(o.pods.at[0].models, 0);
    CHECK_EQ(bh_openb_demand_milli(&o), 1000 + 460 + 8000);
}

TEST(the_short_form_has_no_models)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_err err;
    CHECK_EQ(read_both(&o, nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,2,1,500\n", &err),
             BH_OK);
    CHECK_EQ(o.pods.at[0].gpu_milli, 500);
    CHECK_EQ(o.pods.at[0].models, 0);
}

TEST(written_and_read_again)
{
    struct bh_openb a BH_AUTO(bh_openb_fini), b BH_AUTO(bh_openb_fini);
    struct bh_buf n BH_AUTO(bh_buf_fini), p BH_AUTO(bh_buf_fini), again BH_AUTO(bh_buf_fini);
    struct bh_err err;
    b = (struct bh_openb){0};
    bh_buf_init(&n, 1 << 16);
    bh_buf_init(&p, 1 << 16);
    bh_buf_init(&again, 1 << 16);
    CHECK_EQ(read_both(&a, nodes, pods, &err), BH_OK);
    bh_openb_write_nodes(&a, &n);
    bh_openb_write_pods(&a, &p);
    CHECK_STR(bh_buf_text(&n), nodes);
    CHECK_EQ(read_both(&b, bh_buf_text(&n), bh_buf_text(&p), &err), BH_OK);
    bh_openb_write_pods(&b, &again);
    CHECK_STR(bh_buf_text(&again), bh_buf_text(&p));
}

static bool says(const char *n, const char *p, const char *message)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_err err = {0};
    const int rc = read_both(&o, n, p, &err);
    if (rc != BH_INVALID || strcmp(err.msg, message) != 0)
        printf("# %d %s\n#   wanted %s\n", rc, err.msg, message);
    return rc == BH_INVALID && strcmp(err.msg, message) == 0;
}

TEST(mistakes_in_nodes)
{
    CHECK(says("", pods, "n.csv:1:1: needs a row of names (sn, cpu_milli, ...), is empty"));
    CHECK(says("sn,cpu_milli,memory_mib,gpu\n", pods,
               "n.csv:1:1: needs a row of names with a column 'model', begins with 'sn'"));
    CHECK(says("sn,cpu_milli,memory_mib,gpu,model\na,1,2,three,G2\n", pods,
               "n.csv:2:7: gpu needs a whole number from 0 to 16, is 'three'"));
    CHECK(says("sn,cpu_milli,memory_mib,gpu,model\na,1,2,3\n", pods,
               "n.csv:2:8: model needs 1 to 256 printable characters, is ''"));
    CHECK(says("sn,cpu_milli,memory_mib,gpu,model\na,1,2,0,\n", pods,
               "n.csv:2:1: needs a node with a GPU, has 1 nodes without"));
}

TEST(mistakes_in_pods)
{
    CHECK(says(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,0,5\n",
               "p.csv:2:9: gpu_milli needs 0 without GPUs (num_gpu), is '5'"));
    CHECK(says(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,0\n",
               "p.csv:2:9: gpu_milli needs 1 to 1000 with GPUs (num_gpu), is '0'"));
    CHECK(says(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,1001\n",
               "p.csv:2:9: gpu_milli needs a whole number from 0 to 1000, is '1001'"));
    CHECK(says(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1,2,1,10,G2||T4\n",
               "p.csv:2:12: gpu_spec needs a model between bars, has none"));
    CHECK(says(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,0,0\n",
               "p.csv:2:1: needs a pod that asks for a GPU, has 1 that do not"));
}

TEST(too_many_models)
{
    struct bh_buf text BH_AUTO(bh_buf_fini);
    bh_buf_init(&text, 1 << 16);
    bh_buf_str(&text, "sn,cpu_milli,memory_mib,gpu,model\n");
    for (int i = 0; i <= BH_OPENB_MODELS; i++)
        bh_buf_printf(&text, "n,1,1,1,M%d\n", i);
    CHECK(says(bh_buf_text(&text), pods, "n.csv:66:9: needs at most 64 different models, 'M64' is one more"));
}

TEST_MAIN
