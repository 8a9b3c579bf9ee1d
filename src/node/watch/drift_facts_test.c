/* SPDX-License-Identifier: Apache-2.0 */
#include "node/watch/drift.h"

#include "base/test.h"
#include "base/units.h"

#define GIB (UINT64_C(1) << 30)

static struct bh_gpu_device card(void)
{
    return (struct bh_gpu_device){.alive = true,
                                  .name = "NVIDIA H100",
                                  .pci = "0000:18:00.0",
                                  .vbios = "96.00.99.00.01",
                                  .gsp = "580.159.03",
                                  .fabric_key = NULL,
                                  .total_bytes = {80 * GIB, NULL},
                                  .links = {18, NULL},
                                  .ecc_mode = {1, NULL}};
}

static struct {
    char shape[256], firmware[256];
} said;

static void compare(const char *before, struct bh_gpu_device now, bool other_driver)
{
    struct bh_buf shape, firmware;
    bh_buf_init(&shape, 256);
    bh_buf_init(&firmware, 256);
    bh_drift_compare(before, &now, other_driver, &shape, &firmware);
    (void)snprintf(said.shape, sizeof(said.shape), "%s", bh_buf_text(&shape));
    (void)snprintf(said.firmware, sizeof(said.firmware), "%s", bh_buf_text(&firmware));
    bh_buf_fini(&shape);
    bh_buf_fini(&firmware);
}

static const char *facts_of(struct bh_gpu_device d)
{
    static char text[1024];
    struct bh_buf b;
    bh_buf_init(&b, sizeof(text));
    bh_drift_write(&b, &d);
    (void)snprintf(text, sizeof(text), "%s", bh_buf_text(&b));
    bh_buf_fini(&b);
    return text;
}

TEST(facts_are_lines)
{
    CHECK_STR(
        facts_of(card()),
        "model=NVIDIA H100\nmemory_mib=81920\npci=0000:18:00.0\nlinks=18\necc=on\nvbios=96.00.99.00.01\n"
        "gsp=580.159.03\n");
    compare(facts_of(card()), card(), false);
    CHECK_STR(said.shape, "");
    CHECK_STR(said.firmware, "");
}

TEST(differences_are_words)
{
    struct bh_gpu_device d = card();
    d.total_bytes.v = 40 * GIB;
    d.links.v = 17;
    d.vbios = "96.00.A0.00.01";
    compare(facts_of(card()), d, false);
    CHECK_STR(said.shape, "memory in MiB is 40960, was 81920; links to other GPUs is 17, was 18");
    CHECK_STR(said.firmware, "VBIOS is 96.00.A0.00.01, was 96.00.99.00.01");
    /* another driver counts memory in its own way */
    compare(facts_of(card()), d, true);
    CHECK_STR(said.shape, "links to other GPUs is 17, was 18");
    d = card();
    d.total_bytes.v = 79 * GIB; /* and a little less is no other card */
    compare(facts_of(card()), d, false);
    CHECK_STR(said.shape, "");
}

TEST(what_is_unknown_is_no_difference)
{
    struct bh_gpu_device d = card();
    d.links = (struct bh_reading){0, "not supported by this driver"};
    d.ecc_mode = d.total_bytes = d.links;
    d.vbios = d.pci = NULL;
    compare(facts_of(card()), d, false);
    CHECK_STR(said.shape, "");
    CHECK_STR(said.firmware, "");
    compare("", card(), false);
    CHECK_STR(said.shape, "");
    compare("memory_mib=lots\nlinks", card(), false); /* a note that somebody wrote by hand */
    CHECK_STR(said.shape, "memory in MiB is 81920, was lots");
}

TEST(days_behind_a_fix)
{
    struct bh_arena a = {0};
    int32_t day;
    bool open;
    CHECK_EQ(bh_date_parse("2026-11-15", &day, NULL), BH_OK);
    const char *said_of = bh_drift_exposure(&a, "580.95.05", day, &open);
    CHECK(open && said_of && strstr(said_of, "driver 580.95.05: ") &&
          strstr(said_of, "all are fixed in 580.159.03") && strstr(said_of, " days"));
    said_of = bh_drift_exposure(&a, "580.159.03", day, &open);
    CHECK_STR(said_of, "driver 580.159.03: no published fix is missing");
    CHECK(!open);
    said_of = bh_drift_exposure(&a, "570.211.01", day, &open);
    CHECK(open && said_of);
    CHECK(!bh_drift_exposure(&a, "beta", day, &open));
    bh_arena_fini(&a);
}

TEST_MAIN
