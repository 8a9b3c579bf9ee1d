/* SPDX-License-Identifier: Apache-2.0 */
/* The device plugin, in a ConfigMap or as a file. */
#include "conf/kube_fixture.h"

TEST(time_slicing_in_a_literal_block)
{
    CHECK(read1(time_slicing));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 1);
    const struct bh_pool *p = pool("time-slicing-config");
    CHECK(p);
    CHECK_STR(p->object, "ConfigMap/gpu-operator/time-slicing-config#any");
    CHECK_EQ(p->mechanism, BH_MECH_TIMESLICE);
    CHECK_EQ(p->tier, BH_TIER_CONTAINER);
    CHECK_EQ(p->replicas, 4);
    CHECK(p->any_tenant && !p->caps_by_plugin);
    CHECK_EQ(p->cap_memory_bytes, 0);
    CHECK(is_at(p->pos, 7, 3));
    CHECK_STR(p->resource, "nvidia.com/gpu");
    CHECK(is_at(p->resource_pos, 13, 9));
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_NO);
    CHECK(is_at(p->fail_pos, 14, 9));
    CHECK_EQ(p->exposes.n, 1);
    CHECK_STR(p->exposes.at[0].s, "nvidia.com/gpu");
}

TEST(names_that_pods_see)
{
    CHECK(read1("kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
                "  a: |\n" /* 4 */
                "    sharing:\n"
                "      timeSlicing:\n" /* 6 */
                "        renameByDefault: true\n"
                "        resources:\n"
                "        - {name: nvidia.com/gpu, replicas: 2}\n"
                "        - {name: mig-1g.5gb, replicas: 3, rename: small, devices: all}\n"
                "  readme: text about sharing nothing else\n"
                "  b: |\n" /* 12 */
                "    sharing:\n"
                "      timeSlicing:\n" /* 14 */
                "        resources:\n"
                "        - name: gpu\n"
                "          replicas: 2\n"));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 3);
    const struct bh_pool *p = pool("c/a/gpu");
    CHECK(p);
    CHECK_STR(p->resource, "nvidia.com/gpu.shared");
    CHECK(is_at(p->resource_pos, 7, 9));
    CHECK(is_at(p->fail_pos, 6, 7)); /* not written: the section that should say it */
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_NO);
    p = pool("c/a/mig-1g.5gb");
    CHECK(p);
    CHECK_STR(p->resource, "nvidia.com/small");
    CHECK(is_at(p->resource_pos, 10, 51)); /* its own `rename`, not renameByDefault */
    CHECK_EQ(p->replicas, 3);
    p = pool("c/b");
    CHECK(p);
    CHECK_STR(p->resource, "nvidia.com/gpu");
    CHECK(is_at(p->resource_pos, 16, 17));
    CHECK(is_at(p->pos, 12, 3));
}

TEST(mps_is_bounded_by_the_plugin)
{
    CHECK(load((const char *const[]){"version: v1\n"
                                     "flags: {migStrategy: mixed}\n"
                                     "sharing:\n" /* 3 */
                                     "  mps:\n"
                                     "    resources:\n"
                                     "    - {name: nvidia.com/gpu, replicas: 10, memoryGB: 8}\n"},
               1, "conf/mps.v2.yaml"));
    CHECK_EQ(diags.at.n, 0);
    const struct bh_pool *p = pool("mps.v2");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MPS);
    CHECK(is_at(p->pos, 3, 1));
    CHECK(p->caps_by_plugin);
    CHECK_EQ(p->cap_compute_ppm, 100000);
    CHECK_EQ(p->cap_memory_bytes, INT64_C(8000000000));
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_YES);

    /* a time slice has no memory limit, whatever is written */
    CHECK(read1("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, memoryGB: 8}]}}\n"));
    CHECK_EQ(policy.pools.n, 1);
    CHECK_STR(policy.pools.at[0].name, "device-plugin");
    CHECK_EQ(policy.pools.at[0].cap_memory_bytes, 0);
    CHECK(diag_with("bounds nothing"));
}

TEST(nodes_choose_a_configuration_by_its_key)
{
    static const char maps[] =
        "kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        "  t4: |\n    sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n"
        "  whole: |\n    {version: v1, flags: {migStrategy: none}}\n"
        "---\nkind: ConfigMap\nmetadata: {name: d}\ndata:\n"
        "  x: |\n    sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}\n";
    CHECK(read1(maps));
    CHECK_EQ(policy.pools.n, 2);
    CHECK(load(
        (const char *const[]){
            maps, "kind: Node\nmetadata: {name: n, labels: {nvidia.com/device-plugin.config: whole}}\n"},
        2, NULL));
    CHECK_EQ(policy.pools.n, 1); /* of the map that nobody chose from */
    CHECK(pool("d"));
    CHECK(is_at(diag_with("`t4` is chosen by no Node")->pos, 4, 3));
    CHECK(load(
        (const char *const[]){
            maps, "kind: ClusterPolicy\nmetadata: {name: n}\n"
                  "spec: {devicePlugin: {config: {name: c, default: t4}}}\n---\n"
                  "kind: Node\nmetadata: {name: n, labels: {nvidia.com/device-plugin.config: gone}}\n"},
        2, NULL));
    CHECK(pool("c/t4"));
    CHECK(is_at(diag_with("configuration `gone` is asked for")->pos, 6, 63));
}

TEST(json_in_quotes_points_to_its_key)
{
    CHECK(read1(
        "kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        "  any: '{\"version\": \"v1\", \"sharing\": {\"timeSlicing\": {\"failRequestsGreaterThanOne\": true,\n"
        "    \"resources\": [{\"name\": \"nvidia.com/gpu\", \"replicas\": 5}]}}}'\n"
        "  folded: >\n"
        "    {sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}}\n"));
    CHECK_EQ(diags.at.n, 0);
    const struct bh_pool *p = pool("c/any");
    CHECK(p);
    CHECK_EQ(p->replicas, 5);
    CHECK(is_at(p->pos, 4, 3));
    CHECK(is_at(p->resource_pos, 4, 3));
    CHECK(is_at(p->fail_pos, 4, 3));
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_YES);
    p = pool("c/folded");
    CHECK(p);
    CHECK(is_at(p->resource_pos, 6, 3));
}

TEST(block_indentation_is_measured)
{
    CHECK(read1("kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
                "    any: |2\n" /* 4: an indentation indicator, so the text keeps two blanks */
                "\n"
                "        sharing:\n"
                "          timeSlicing:\n"
                "            resources: [{name: nvidia.com/gpu, replicas: 2}]\n"));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 1);
    CHECK(is_at(policy.pools.at[0].resource_pos, 8, 32));
}

TEST(broken_configuration_is_an_error_in_place)
{
    CHECK(read1("kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
                "  any: |\n"
                "    sharing:\n"
                "      timeSlicing:\n"
                "        resources:\n"
                "        - name: nvidia.com/gpu\n"
                "          replicas: many\n" /* 9 */
                "        - replicas: 2\n"    /* 10 */
                "        - 7\n"
                "  bad: |\n"
                "    timeSlicing: [\n" /* 13 */
                "  flags: |\n"
                "    flags: {migStrategy: both}\n" /* 15 */
                "  inline:\n"
                "    sharing: {mps: {}}\n")); /* 17 */
    CHECK_EQ(policy.pools.n, 0);
    CHECK_EQ(diags.n_errors, 6);
    CHECK(is_at(diag_with("`replicas`")->pos, 9, 21));
    CHECK(is_at(diag_with("without a `name`")->pos, 10, 11));
    CHECK(is_at(diag_with("must be a map with")->pos, 11, 11));
    CHECK_EQ(diag_with("the configuration in `bad`")->pos.line, 14); /* where the block ends */
    CHECK(is_at(diag_with("none, single or mixed")->pos, 15, 26));
    CHECK(is_at(diag_with("a value of a ConfigMap is a text")->pos, 17, 5));
}

TEST(an_alias_of_a_block_points_to_its_key)
{
    CHECK(read1("kind: ConfigMap\nmetadata: {name: c}\ndata:\n"
                "  a: &x |\n"
                "    sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n"
                "  b: *x\n"));
    CHECK_EQ(policy.pools.n, 2);
    CHECK(is_at(pool("c/a")->resource_pos, 5, 48));
    CHECK(is_at(pool("c/b")->resource_pos, 6, 3));
}

TEST_MAIN
