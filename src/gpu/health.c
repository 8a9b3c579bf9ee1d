/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/health.h"

#include <inttypes.h>

/* In NVML's order of bits. */
static const struct {
    const char *words;
    bool is_trouble;
} reasons[] = {
    {"idle", false},
    {"clocks set by a user", false},
    {"power cap", false},
    {"hardware slowdown", true},
    {"sync boost", false},
    {"too hot", true},
    {"too hot (hardware)", true},
    {"power brake", true},
    {"display clocks", false},
};

static void words_of(struct bh_buf *out, uint64_t bits, bool only_trouble)
{
    size_t before = out->n;
    for (size_t i = 0; i < BH_COUNT_OF(reasons); i++)
        if (bits >> i & 1 && (reasons[i].is_trouble || !only_trouble))
            bh_buf_printf(out, "%s%s", out->n == before ? "" : ", ", reasons[i].words);
    if (bits >> BH_COUNT_OF(reasons) && !only_trouble)
        bh_buf_printf(out, "%sother (0x%" PRIx64 ")", out->n == before ? "" : ", ",
                      bits >> BH_COUNT_OF(reasons) << BH_COUNT_OF(reasons));
}

void bh_throttle_words(struct bh_buf *out, uint64_t bits)
{
    words_of(out, bits, false);
}

static bool is_set(struct bh_reading r)
{
    return !r.why && r.v != 0;
}

/* Two bits each: 1 says bad. The four-bit field says 1 for a right configuration. */
static const char *fabric_trouble(uint32_t mask)
{
    static const char *const words[] = {"NVLink runs at less than full bandwidth",
                                        "NVLink routes are being recovered", "an NVLink route is unhealthy",
                                        "NVLink recovers from access timeouts"};
    for (unsigned i = 0; i < BH_COUNT_OF(words); i++)
        if ((mask >> 2 * i & 3) == 1)
            return words[i];
    return (mask >> 8 & 15) > 1 ? "the NVLink fabric is configured wrongly" : NULL;
}

const char *bh_gpu_trouble(struct bh_arena *a, const struct bh_gpu_device *d)
{
    if (d->trouble)
        return d->trouble;
    if (is_set(d->remap_failed))
        return "row remapping failed: the memory is worn out; replace the card";
    if (is_set(d->ecc_uncorrected_now))
        return bh_arena_printf(
            a, "%" PRIu64 " uncorrected memory errors since the driver was loaded; drain and reset it",
            d->ecc_uncorrected_now.v);
    if (is_set(d->remap_pending))
        return "a row remapping waits for a reset; drain and reset it";
    struct bh_buf hot;
    const char *said = NULL;
    bh_buf_init(&hot, 256);
    words_of(&hot, d->throttle.v, true);
    if (hot.n)
        said = bh_arena_printf(a, "slowed down: %s", bh_buf_text(&hot));
    bh_buf_fini(&hot);
    if (said)
        return said;
    if (d->fabric_error)
        return bh_arena_printf(a, "it could not join the NVLink fabric: error %" PRIu32, d->fabric_error);
    said = fabric_trouble(d->fabric_health);
    if (said)
        return said;
    if (!d->mig_mode.why && !d->mig_pending.why && d->mig_mode.v != d->mig_pending.v)
        return d->mig_pending.v ? "MIG goes on at the next reset" : "MIG goes off at the next reset";
    if (!d->ecc_mode.why && !d->ecc_pending.why && d->ecc_mode.v != d->ecc_pending.v)
        return d->ecc_pending.v ? "ECC goes on at the next reset" : "ECC goes off at the next reset";
    return NULL;
}

/* Errors that were met while nobody listened hit somebody who may be gone: the card is kept from the next one. */
enum bh_reach bh_gpu_reach(const struct bh_gpu_device *d)
{
    if (!d->alive)
        return BH_REACH_ALL;
    if (is_set(d->remap_failed) || is_set(d->remap_pending) || is_set(d->ecc_uncorrected_now))
        return BH_REACH_CARD;
    struct bh_arena a = {0};
    const bool any = bh_gpu_trouble(&a, d) != NULL;
    bh_arena_fini(&a);
    return any ? BH_REACH_NOTE : BH_REACH_NONE;
}

const char *bh_gpu_isolation_word(const struct bh_gpu_device *d)
{
    static const char *const words[] = {[BH_ISOLATION_OFF] = "off",
                                        [BH_ISOLATION_ON] = "on",
                                        [BH_ISOLATION_UNWIPED] = "on without wiping memory"};
    return d->isolation.why || d->isolation.v >= BH_COUNT_OF(words) ? "unknown" : words[d->isolation.v];
}
