/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "gpu/nvml_fixture.h"

static struct bh_nvml_fixture f;

TEST(links_to_switches_make_one_domain)
{
    bh_nvml_fixture_take(&f, "h100x8");
    CHECK_EQ(f.s.paths.n, 28);
    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ(f.s.devices.at[i].links.v, i == 2 ? 17 : 18);
        CHECK_STR(f.s.devices.at[i].domain, "nvl-0");
    }
    const struct bh_gpu_link *l = &f.s.devices.at[0].up.at[1];
    CHECK(l->link == 1 && l->remote == BH_LINK_SWITCH);
    CHECK_STR(l->remote_pci, "0000:06:00.0");
    CHECK_STR(f.s.paths.at[0].ancestor, "one NUMA node");
    CHECK_STR(f.s.paths.at[6].ancestor, "across sockets");
    CHECK(f.s.paths.at[0].read.v == 1 && f.s.paths.at[0].write.v == 1 && f.s.paths.at[0].nvlink.v == 1);
    CHECK_EQ(f.s.paths.at[0].n_direct, 0);
}

TEST(direct_links_make_one_where_the_driver_does_not_say)
{
    bh_nvml_fixture_take(&f, "a100mig");
    CHECK_STR(f.s.paths.at[0].nvlink.why, "not supported by this GPU");
    CHECK_EQ(f.s.paths.at[0].n_direct, 12);
    CHECK_STR(f.s.devices.at[0].domain, "nvl-0");
    CHECK_STR(f.s.devices.at[1].domain, "nvl-0");
}

TEST(boards_that_do_not_reach_each_other_are_two_domains)
{
    bh_nvml_fixture_take(&f, "many");
    CHECK_STR(f.s.devices.at[31].domain, "nvl-0");
    CHECK_STR(f.s.devices.at[32].domain, "nvl-1");
    CHECK_STR(f.s.devices.at[63].domain, "nvl-1");
}

TEST(no_link_no_domain)
{
    bh_nvml_fixture_take(&f, "bare");
    CHECK(!f.s.devices.at[0].domain);
    bh_nvml_fixture_take(&f, "h200");
    CHECK_STR(f.s.devices.at[0].domain, "nvl-0");
    bh_gpu_snapshot_fini(&f.s);
}

TEST(domains_are_the_same_without_the_paths)
{
    static const char *const scenes[] = {"h100x8", "a100mig", "many", "bare", "h200"};
    for (size_t k = 0; k < BH_COUNT_OF(scenes); k++) {
        struct bh_gpu_snapshot s;
        bh_nvml_fixture_take(&f, scenes[k]);
        CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine_fleet, &s, &f.err), BH_OK);
        CHECK(s.devices.n == f.s.devices.n && s.paths.n == 0);
        for (size_t i = 0; i < s.devices.n && i < f.s.devices.n; i++) {
            CHECK(!s.devices.at[i].domain == !f.s.devices.at[i].domain);
            CHECK(bh_str_eq(s.devices.at[i].domain, f.s.devices.at[i].domain));
        }
        bh_gpu_snapshot_fini(&s);
    }
}

TEST(who_looks_again_does_not_ask_how_they_reach_each_other)
{
    bh_nvml_fixture_take(&f, "h100x8"); /* all of it, for what is to be the same */
    struct bh_gpu_snapshot s;
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_machine_state, &s, &f.err), BH_OK);
    CHECK(s.devices.n == f.s.devices.n && s.paths.n == 0 && s.depth == BH_GPU_STATE);
    for (size_t i = 0; i < s.devices.n && i < f.s.devices.n; i++) {
        const struct bh_gpu_device *d = &s.devices.at[i], *all = &f.s.devices.at[i];
        CHECK_STR(d->uuid, all->uuid);
        CHECK_EQ(d->links.v, all->links.v);
        CHECK_EQ(d->temperature_c.v, all->temperature_c.v);
        CHECK_EQ(d->processes.n, all->processes.n);
        CHECK(!d->domain && d->up.n == all->up.n && !d->up.at[0].remote_pci);
    }
    bh_gpu_snapshot_fini(&s);
    bh_gpu_snapshot_fini(&f.s);
    f.s = (struct bh_gpu_snapshot){0};
}

TEST_MAIN
