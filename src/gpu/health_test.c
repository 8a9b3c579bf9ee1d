/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/health.h"

#include "base/test.h"

static const char *words(uint64_t bits)
{
    static char text[256];
    struct bh_buf b;
    bh_buf_init(&b, 256);
    bh_throttle_words(&b, bits);
    (void)snprintf(text, sizeof(text), "%s", bh_buf_text(&b));
    bh_buf_fini(&b);
    return text;
}

TEST(throttle_reasons_are_words)
{
    CHECK_STR(words(0), "");
    CHECK_STR(words(1), "idle");
    CHECK_STR(words(0x24), "power cap, too hot");
    CHECK_STR(words(0x1c8), "hardware slowdown, too hot (hardware), power brake, display clocks");
    CHECK_STR(words(UINT64_C(1) << 40), "other (0x10000000000)");
}

static const char *trouble(struct bh_arena *a, struct bh_gpu_device d)
{
    const char *said = bh_gpu_trouble(a, &d);
    return said ? said : "";
}

TEST(the_worst_trouble_is_said)
{
    struct bh_arena a = {0};
    const struct bh_reading none = {0, "not supported by this GPU"}, two = {2, NULL}, one = {1, NULL};
    CHECK_STR(trouble(&a, (struct bh_gpu_device){0}), "");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.throttle = {0x7, NULL}, .fabric_health = 0x11aa}), "");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.trouble = "lost", .remap_failed = one}), "lost");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.remap_failed = one, .ecc_uncorrected_now = two}),
              "row remapping failed: the memory is worn out; replace the card");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.ecc_uncorrected_now = two, .remap_pending = one}),
              "2 uncorrected memory errors since the driver was loaded; drain and reset it");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.remap_pending = one}),
              "a row remapping waits for a reset; drain and reset it");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.throttle = {0x4c, NULL}}),
              "slowed down: hardware slowdown, too hot (hardware)");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.fabric_health = 0x11a9}),
              "NVLink runs at less than full bandwidth");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.fabric_health = 0x15aa}),
              "the NVLink fabric is configured wrongly");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.fabric_error = 999, .fabric_health = 0x11a9}),
              "it could not join the NVLink fabric: error 999");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.mig_pending = one}), "MIG goes on at the next reset");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.mig_mode = none, .mig_pending = one}), "");
    CHECK_STR(trouble(&a, (struct bh_gpu_device){.ecc_mode = one}), "ECC goes off at the next reset");
    bh_arena_fini(&a);
}

TEST(how_far_it_goes)
{
    const struct bh_reading none = {0, "not supported by this GPU"}, one = {1, NULL};
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true}), BH_REACH_NONE);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true, .remap_pending = none}), BH_REACH_NONE);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true, .throttle = {0x20, NULL}}), BH_REACH_NOTE);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true, .remap_pending = one}), BH_REACH_CARD);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true, .remap_failed = one}), BH_REACH_CARD);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.alive = true, .ecc_uncorrected_now = one}), BH_REACH_CARD);
    CHECK_EQ(bh_gpu_reach(&(struct bh_gpu_device){.trouble = "lost"}), BH_REACH_ALL);
}

TEST_MAIN
