/* SPDX-License-Identifier: Apache-2.0 */
/* pressure_test.c - a card whose counters are known, and cards that lack some. */
#include "gpu/pressure.h"

#include "gpu/nvml_fixture.h"

#include <unistd.h>

enum { WINDOW_US = 110000, GPM = 1 << BH_PRESSURE_SM | 1 << BH_PRESSURE_DRAM };
enum { PCIE = 1 << BH_PRESSURE_PCIE_RX | 1 << BH_PRESSURE_PCIE_TX };

static char folder[BH_SCRATCH_PATH];
static struct bh_pressure *p;
static struct bh_pressure_sample s;
static struct bh_err err;

static bool say(const char *text)
{
    return bh_scratch_put(folder, "numbers", text);
}

static int begin(const char *library, bool slow)
{
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s.so", BH_STANDINS, library);
    err = (struct bh_err){0};
    return setenv("BULKHEAD_NVML", path, 1) == 0 ? bh_pressure_open(0, slow, &p, &err) : BH_SYSTEM;
}

/* The second look, when the driver has had its time. */
static void look(void)
{
    bh_pressure_take(p, &s);
    (void)usleep(WINDOW_US);
    bh_pressure_take(p, &s);
}

TEST(starts)
{
    char numbers[BH_SCRATCH_PATH + 16];
    CHECK(bh_scratch_make(folder, sizeof(folder), "gpm") && say(""));
    (void)snprintf(numbers, sizeof(numbers), "%s/numbers", folder);
    CHECK_EQ(setenv("STANDIN_GPM", numbers, 1), 0);
}

TEST(all_of_it_in_our_units)
{
    CHECK(say("93.26 87.04 1000 2 0 512000 4"));
    CHECK_EQ(begin("gpm", false), BH_OK);
    CHECK_EQ(bh_pressure_link_kbps(p), UINT64_C(16) * 3938462);
    bh_pressure_take(p, &s);
    CHECK_EQ(s.missing, GPM | PCIE); /* one look is nothing to compare with */
    CHECK_EQ(s.power_mw, 512000);
    CHECK_STR(bh_pressure_why(p, BH_PRESSURE_SM), "the driver has no value");
    look();
    CHECK_EQ(s.missing, 0);
    CHECK_EQ(s.sm_permille, 933);
    CHECK_EQ(s.dram_permille, 870);
    CHECK_EQ(s.pcie_rx_kbps, 1048576);
    CHECK_EQ(s.pcie_tx_kbps, 2097);
    CHECK_EQ(s.clock_reasons, 4);
    CHECK(!bh_pressure_why(p, BH_PRESSURE_SM));
    bh_pressure_take(p, &s); /* too soon */
    CHECK_EQ(s.missing, GPM | PCIE);
    CHECK_EQ(s.sm_permille, 0);
    bh_pressure_close(p);
}

TEST(one_metric_may_be_missing)
{
    CHECK(say("50 -1 10 -1 300 1 0"));
    CHECK_EQ(begin("gpm", false), BH_OK);
    look();
    CHECK_EQ(s.missing, 1 << BH_PRESSURE_DRAM | 1 << BH_PRESSURE_PCIE_TX);
    CHECK_EQ(s.sm_permille, 500);
    CHECK_EQ(s.pcie_tx_kbps, 0);
    CHECK_STR(bh_pressure_why(p, BH_PRESSURE_DRAM), "not supported by this GPU");
    CHECK_STR(bh_pressure_counter(BH_PRESSURE_DRAM), "NVML GPM DRAM_BW_UTIL");
    bh_pressure_close(p);
    CHECK_EQ(begin("gpm", true), BH_OK); /* who has the time gets PCIe in the older way */
    look();
    CHECK_EQ(s.missing, 1 << BH_PRESSURE_DRAM);
    CHECK_EQ(s.pcie_tx_kbps, 300);
    CHECK_EQ(s.pcie_rx_kbps, 10486);
    bh_pressure_close(p);
}

/* The mean of a second is second best, and a field that is not there no number. */
TEST(power_is_that_of_the_moment)
{
    CHECK(say("50 50 50 50 0 512000 0 90000"));
    CHECK_EQ(begin("gpm", false), BH_OK);
    CHECK_EQ(bh_pressure_limit_mw(p), 700000);
    bh_pressure_take(p, &s);
    CHECK_EQ(s.power_mw, 90000);
    CHECK(say("50 50 50 50 0 512000 0 -1"));
    bh_pressure_take(p, &s);
    CHECK_EQ(s.power_mw, 512000);
    CHECK(say("50 50 50 50 0 400000 0 -2"));
    bh_pressure_take(p, &s);
    CHECK_EQ(s.power_mw, 400000);
    CHECK(say("50 50 50 50 0 300000 0 0"));
    bh_pressure_take(p, &s);
    CHECK_EQ(s.power_mw, 300000);
    CHECK(!bh_pressure_why(p, BH_PRESSURE_POWER));
    bh_pressure_close(p);
}

TEST(numbers_that_make_no_sense_are_cut)
{
    CHECK(say("250 nan 1e12 0 0 1 0"));
    CHECK_EQ(begin("gpm", false), BH_OK);
    look();
    CHECK_EQ(s.sm_permille, 1000);
    CHECK_EQ(s.dram_permille, 0);
    CHECK_EQ(s.pcie_rx_kbps, 4000000000u);
    bh_pressure_close(p);
}

TEST(a_card_without_gpm)
{
    CHECK(say("50 50 50 50 300 7 0"));
    CHECK_EQ(setenv("STANDIN_GPM_NONE", "1", 1), 0);
    CHECK_EQ(begin("gpm", false), BH_OK);
    look();
    CHECK_EQ(s.missing, GPM | PCIE);
    CHECK_EQ(s.power_mw, 7);
    bh_pressure_close(p);
    CHECK_EQ(begin("gpm", true), BH_OK);
    look();
    CHECK_EQ(s.missing, GPM);
    CHECK_EQ(s.pcie_rx_kbps, 301);
    bh_pressure_close(p);
    CHECK_EQ(unsetenv("STANDIN_GPM_NONE"), 0);
}

TEST(a_library_from_before_it)
{
    CHECK_EQ(begin("h200", true), BH_OK);
    look();
    CHECK_EQ(s.missing & (GPM | PCIE), GPM | PCIE);
    CHECK_STR(bh_pressure_why(p, BH_PRESSURE_DRAM), "not supported by this driver");
    CHECK_EQ(s.power_mw, 70000);
    CHECK_EQ(bh_pressure_link_kbps(p), 0);
    bh_pressure_close(p);
}

TEST(no_such_gpu_and_no_library)
{
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/gpm.so", BH_STANDINS);
    CHECK_EQ(setenv("BULKHEAD_NVML", path, 1), 0);
    CHECK_EQ(bh_pressure_open(3, false, &p, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "GPU 3"));
    CHECK_EQ(begin("not-there", false), BH_NOT_FOUND);
    CHECK(bh_scratch_remove(folder));
}

TEST_MAIN
