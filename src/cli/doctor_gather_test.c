/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "base/scratch.h"
#include "base/test.h"

#include <unistd.h>

static struct bh_doctor_gathered g;

TEST(a_machine_without_a_driver_has_facts_all_the_same)
{
    CHECK(setenv("BULKHEAD_NVML", "no-such-library.so", 1) == 0 && unsetenv("BULKHEAD_SYSROOT") == 0);
    bh_doctor_gather(&g, 20605);
    CHECK(!g.facts.gpus && g.facts.gpus_err.code == BH_NOT_FOUND &&
          strstr(g.facts.gpus_err.msg, "no-such-library.so"));
    CHECK(g.facts.platform == &g.platform && g.facts.node == &g.node && g.facts.probes == &g.probes);
    CHECK_EQ(g.facts.day, 20605);
    CHECK(!g.probes.skipped && g.probes.memfd.state != BH_PROBE_SKIPPED);
    CHECK(g.platform.kernel.text && !g.platform.root);
    CHECK(g.node.gpus.n == 0 && g.node.groups.n == 0);
    bh_doctor_gathered_fini(&g);
}

TEST(the_kernel_of_another_machine_is_not_asked)
{
    char root[BH_SCRATCH_PATH];
    CHECK(bh_scratch_root(root, sizeof(root), "gather"));
    bh_doctor_gather(&g, 0);
    CHECK(g.probes.skipped && g.probes.memfd.state == BH_PROBE_SKIPPED);
    CHECK_STR(g.platform.root, root);
    bh_doctor_gathered_fini(&g);
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0 && bh_scratch_remove(root));
}

TEST(a_simulated_node_says_so_and_its_kernel_is_this_one)
{
    char root[BH_SCRATCH_PATH];
    CHECK(setenv("BULKHEAD_NVML", "no-such-library.so", 1) == 0);
    CHECK(bh_scratch_root(root, sizeof(root), "gather"));
    CHECK(setenv("BULKHEAD_SIM", root, 1) == 0);
    bh_doctor_gather(&g, 0);
    CHECK(g.facts.stand_in && !g.probes.skipped && g.probes.memfd.state != BH_PROBE_SKIPPED);
    bh_doctor_gathered_fini(&g);
    CHECK(setenv("BULKHEAD_SIM", "", 1) == 0);
    bh_doctor_gather(&g, 0);
    CHECK(!g.facts.stand_in && g.probes.skipped);
    bh_doctor_gathered_fini(&g);
    CHECK(bh_scratch_put(root, ".bulkhead-simulated", ""));
    bh_doctor_gather(&g, 0);
    CHECK(g.facts.stand_in && !g.probes.skipped);
    bh_doctor_gathered_fini(&g);
    CHECK(unsetenv("BULKHEAD_SIM") == 0 && unsetenv("BULKHEAD_SYSROOT") == 0);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
