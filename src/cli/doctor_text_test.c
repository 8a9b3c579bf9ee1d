/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_fixture.h"

static struct bh_doctor_fixture x;
static struct bh_cli cli;

static const char *shown(bool verbose, bool is_terminal, bool paint)
{
    struct bh_doctor d = {0};
    bh_buf_fini(&cli.out);
    cli = (struct bh_cli){.is_terminal = is_terminal, .paint_out = paint, .width = 80};
    bh_buf_init(&cli.out, 1u << 20);
    bh_doctor_judge(&d, &x.facts);
    bh_doctor_text(&cli, &d, verbose);
    bh_doctor_fini(&d);
    return bh_buf_text(&cli.out);
}

static bool starts(const char *s, const char *head)
{
    return strncmp(s, head, strlen(head)) == 0;
}

TEST(a_line_for_each_check_and_what_the_node_can_keep)
{
    bh_doctor_fixture_init(&x);
    const char *out = shown(false, false, false);
    CHECK(starts(out,
                 "node gpu-01, kernel 6.8.0-60-generic\n"
                 "silicon\n"
                 "  ok         silicon.library            libnvidia-ml.so.1, driver 580.159.03, CUDA 13.0\n"
                 "  ok         silicon.gpus               2, all answer\n"));
    CHECK(strstr(out, "\nkernel boundary\n  ok         kernel.rights  ") != NULL);
    CHECK(strstr(out, "0 notes, 0 need attention, 0 broken, 0 unknown\n"
                      "can keep: whole GPU, MIG, gate, MPS, NVLink, suspend, container tier, VM tier and "
                      "confidential VM tier\n") != NULL);
    CHECK(!strstr(out, "why:") && !strstr(out, "simulated") && !strstr(out, "GPU-0"));
    CHECK(strstr(shown(true, false, false), "               GPU 0: H100-80GB-SXM, GPU-0, answers\n") != NULL);
}

TEST(faults_say_rule_reason_and_cure)
{
    x.gpus.devices.at[1].ecc_mode.v = x.gpus.devices.at[1].ecc_pending.v = 0;
    x.platform.iommu = (struct bh_platform_fact){BH_KNOWN_NO, "the kernel has no IOMMU groups"};
    x.platform.acs = (struct bh_platform_fact){BH_KNOWN_NOT, "only root may read it"};
    x.probes.getfd = (struct bh_probe){BH_PROBE_DENIED, 1, 0};
    x.node.files[BH_FILE_MEMINFO].text = "";
    const char *out = shown(false, false, false);
    CHECK(
        strstr(out,
               "  attention  silicon.ecc                off on GPU 1\n"
               "             rule: BH-056 ECC is off beside neighbours\n"
               "             why:  Without ECC a neighbour can flip bits in a tenant's memory (GPUHammer).\n"
               "             mend: nvidia-smi -e 1 on the drained GPU, then reset it\n") != NULL);
    CHECK(strstr(out, "  note       virtual.iommu              the kernel has no IOMMU groups\n  ok ") !=
          NULL);
    CHECK(strstr(out,
                 "1 note, 2 need attention, 0 broken, 1 unknown\n"
                 "can keep: whole GPU, MIG, MPS, NVLink and container tier; cannot: gate (pidfd_open and "
                 "pidfd_getfd not permitted here), VM tier and confidential VM tier (no IOMMU); not known: "
                 "suspend (the host's or the GPUs' memory is not known)\n") != NULL);
    out = shown(true, false, false);
    CHECK(strstr(out, "  -          virtual.acs                without an IOMMU") != NULL);
    CHECK(strstr(out, "             rule: BH-057 ") != NULL);
}

TEST(simulated_is_on_the_first_line_and_the_last)
{
    x.gpus.simulated = true;
    x.gpus.library = "stand\x1b[in.so";
    x.platform.root = "/r";
    const char *out = shown(false, false, false);
    CHECK(starts(out, "simulated: no GPU stands behind these lines, but stand\\x1b[in.so\n"
                      "files: read below /r\nnode "));
    CHECK(strstr(out, "\nsimulated: can keep: ") != NULL);
}

TEST(simulated_is_said_where_the_stand_in_does_not_answer)
{
    x.facts.gpus = NULL;
    x.facts.gpus_err = (struct bh_err){BH_CONFLICT, "simulated: library and driver differ"};
    x.facts.stand_in = "a library that calls itself a stand-in";
    const char *out = shown(false, false, false);
    CHECK(starts(
        out, "simulated: no GPU stands behind these lines, but a library that calls itself a stand-in\n"));
    CHECK(strstr(out, "\nsimulated: can keep: nothing") != NULL);
    x.facts.gpus = &x.gpus;
    x.gpus.simulated = false;
    x.facts.stand_in = "a simulated node";
    CHECK(starts(shown(false, false, false),
                 "simulated: beside a driver of this machine stands a simulated node"));
    x.facts.stand_in = NULL;
    CHECK(!strstr(shown(false, false, false), "simulated"));
    x.gpus.simulated = true;
}

TEST(colour_and_folding_are_for_a_terminal)
{
    CHECK(strstr(shown(false, true, true), "mattention\x1b[0m") != NULL);
    CHECK(!strchr(shown(false, true, false), '\x1b'));
    for (const char *line = shown(false, true, false); line && *line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        CHECK(strcspn(line, "\n") <= 80 || starts(line, "simulated:"));
    bh_buf_fini(&cli.out);
    bh_doctor_fixture_fini(&x);
}

TEST_MAIN
