/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gpus_text.h"

#include "cli/gpus_fixture.h"
#include "gpu/health.h"

static struct bh_gpu_snapshot s;
static struct bh_cli cli;

static const char *shown(void (*fn)(struct bh_cli *, const struct bh_gpu_snapshot *), bool is_terminal,
                         bool paint)
{
    bh_buf_fini(&cli.out);
    cli = (struct bh_cli){.is_terminal = is_terminal, .paint_out = paint, .width = 80};
    bh_buf_init(&cli.out, 1u << 20);
    fn(&cli, &s);
    return bh_buf_text(&cli.out);
}

#define HEAD                                                              \
    "simulated: no GPU stands behind these lines, but stand\\x1b[in.so\n" \
    "driver 580.159.03, CUDA 13.0, 2 GPUs\n"

TEST(a_line_for_each_gpu_and_slice)
{
    bh_gpus_fixture_init(&s);
    CHECK_STR(shown(bh_gpus_text, true, false),
              HEAD "GPU    MODEL       MEMORY GiB  UTIL  PCI      NUMA  HEALTH  WHO\n"
                   "0      H200-141GB  3.5/140.4   -     18:00.0  1     ok      44(?)\n"
                   "0:1.0  3g.71gb@4   1.0/70.0    -                            43(bob) 2.2G 35% +1\n"
                   "0:9    1g.18gb     -/-         -                    unused  -\n"
                   "1      unknown     -/-         -     -        -     lost    ?\n"
                   "GPU 1: lost: it fell off the bus\n"
                   "note: one thing is odd\n");
    CHECK(strstr(shown(bh_gpus_text, false, false), "42(ada) 1.0G, 43(bob) 2.2G 35%\n") != NULL);
    CHECK(strstr(shown(bh_gpus_text, true, true), "\x1b[1;31mlost\x1b[0m") != NULL);
}

/* Where the devices in the slices could not be listed, nobody is said to be absent. */
TEST(a_process_that_fits_no_line_stands_on_the_gpus_own)
{
    struct bh_gpu_device *d = &s.devices.at[0];
    d->instances.at[0].ci = BH_NO_ID;
    d->instances_seen = (struct bh_reading){0, "the driver answered with error 999"};
    const char *text = shown(bh_gpus_text, false, false);
    CHECK(strstr(text, "1     ok      42(ada) 1.0G, 43(bob) 2.2G 35%, 44(?)\n"));
    CHECK(strstr(text, "\n0:1  3g.71gb@4   1.0/70.0    -                    ?       ?\n"));
    CHECK(!strstr(text, "unused"));
    size_t n = d->instances.n;
    d->instances.n = 0; /* MIG mode unknown: no slice at all */
    CHECK(strstr(shown(bh_gpus_text, true, false), "1     ok      43(bob) 2.2G 35% +2\n"));
    d->instances.n = n;
    d->instances.at[0].ci = 0;
    d->instances_seen = (struct bh_reading){2, NULL};
}

TEST(the_tree)
{
    CHECK_STR(shown(bh_gpus_tree, true, false),
              HEAD "  NUMA node unknown\n"
                   "    PCI unknown  GPU 1  unknown  lost\n"
                   "  NUMA node 1\n"
                   "    PCI 0000:18:00.0  GPU 0  H200-141GB  140.4 GiB  ok\n"
                   "      NVLink nvl-0: 1 link to switches\n"
                   "      MIG 1.0  3g.71gb  slices 4-7  MIG-1\n"
                   "      MIG 9  1g.18gb  no device\n"
                   "NVLink domain nvl-0: GPU 0\n"
                   "GPU 1: lost: it fell off the bus\n"
                   "note: one thing is odd\n");
}

TEST(gpus_of_two_makers)
{
    bh_gpus_fixture_amd(&s);
    const char *table = shown(bh_gpus_text, true, false);
    CHECK(strstr(table, "driver 580.159.03, CUDA 13.0, amdgpu 6.10.5, 3 GPUs\n"));
    CHECK(strstr(table, "2      MI300X      0.0/192.0   42%   c1:00.0  1     ok      ?\n"));
    CHECK(strstr(table, "GPU 2: who uses it is not known: amdgpu does not say\n"));
    const char *tree = shown(bh_gpus_tree, true, false);
    CHECK(strstr(tree, "    PCI 0000:c1:00.0  GPU 2  MI300X  192 GiB  ok\n"
                       "      xGMI xgmi-7: how many links is not known\n"
                       "      partition compute SPX (of SPX, CPX), memory NPS1, isolation off\n"));
    CHECK(strstr(tree, "xGMI domain xgmi-7: GPU 2\n"));
    s.devices.at[2].isolation = (struct bh_reading){BH_ISOLATION_UNWIPED, NULL};
    CHECK(strstr(shown(bh_gpus_tree, true, false), "memory NPS1, isolation on without wiping memory\n"));
    CHECK_STR(bh_gpu_isolation_word(&s.devices.at[2]), "on without wiping memory");
    s.devices.at[2].isolation = (struct bh_reading){0, "amdgpu does not say"};
    CHECK_STR(bh_gpu_isolation_word(&s.devices.at[2]), "unknown");
    s.library = NULL;
    CHECK(strstr(shown(bh_gpus_text, true, false), "\namdgpu 6.10.5, 3 GPUs\n"));
    s.amdgpu = NULL;
    CHECK(strstr(shown(bh_gpus_text, true, false), "\namdgpu of the kernel, 3 GPUs\n"));
    s.library = "x.so";
}

TEST(real_gpus_are_not_called_simulated)
{
    s.simulated = false;
    CHECK(strncmp(shown(bh_gpus_text, true, false), "driver", 6) == 0);
    CHECK(strncmp(shown(bh_gpus_tree, true, false), "driver", 6) == 0);
    bh_buf_fini(&cli.out);
    bh_gpu_snapshot_fini(&s);
}

TEST_MAIN
