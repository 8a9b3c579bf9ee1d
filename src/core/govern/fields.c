/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - the tables. Their order is the order in the log, which is read back by place: add at the end. */
#include "core/govern/fields.h"

#include "base/mem.h"
#include "core/govern/fair.h"
#include "core/govern/govern.h"

#include <inttypes.h>
#include <string.h>

#define FIELD(type, field, min, max, preset) \
    {#field, offsetof(struct type, field), sizeof(((struct type *)0)->field), min, max, preset}
#define FIELDS(table) {table, BH_COUNT_OF(table)}

enum { SECOND_US = 1000000 };

static const struct bh_field config[] = {
    FIELD(bh_govern_config, switch_us, 1, 10000, 200),
    FIELD(bh_govern_config, loss_permille, 1, 500, 22),
    FIELD(bh_govern_config, round_max_us, 1000, SECOND_US, 250000),
    FIELD(bh_govern_config, default_slice_us, 100, 100000, 2000),
    FIELD(bh_govern_config, slice_min_us, 1, 10000, 1000),
    FIELD(bh_govern_config, slice_max_us, 10000, SECOND_US, 100000),
    FIELD(bh_govern_config, short_slice_us, 1, 1000, 20),
    FIELD(bh_govern_config, latency_slice_us, 1000, 100000, 10000),
    FIELD(bh_govern_config, turn_us, 2000, SECOND_US, 32000),
    FIELD(bh_govern_config, calm_turn_us, 2000, SECOND_US, 25000),
    FIELD(bh_govern_config, lead_us, 500, SECOND_US, 5000),
    FIELD(bh_govern_config, idle_us, 1000, SECOND_US, 15000),
    FIELD(bh_govern_config, away_us, 1000, SECOND_US, 200000),
    FIELD(bh_govern_config, stale_us, 1000, 10 * SECOND_US, 500000),
    FIELD(bh_govern_config, lag_us, 0, 200000, 2000),
    FIELD(bh_govern_config, default_level, 0, 2, 1),
    FIELD(bh_govern_config, slices_only, 0, 1, 0),
};
static const struct bh_field input[] = {
    FIELD(bh_govern_in, elapsed_us, 1, BH_GOVERN_ELAPSED_MAX_US, 0),
    FIELD(bh_govern_in, n, 0, BH_GOVERN_TENANTS, 0),
    FIELD(bh_govern_in, unused_permille, 0, 1000, 0),
};
static const struct bh_field asked[] = {
    FIELD(bh_govern_asked, id, 1, UINT64_MAX, 0),
    FIELD(bh_govern_asked, weight, 1, BH_FAIR_WEIGHT_MAX, 0),
    FIELD(bh_govern_asked, cap_permille, 0, 1000, 0),
    FIELD(bh_govern_asked, floor_permille, 0, 1000, 0),
    FIELD(bh_govern_asked, latency, BH_GOVERN_BATCH, BH_GOVERN_LATENCY, 0),
    FIELD(bh_govern_asked, state, BH_GOVERN_UNKNOWN, BH_GOVERN_BUSY, 0),
    FIELD(bh_govern_asked, gpu_ns, 0, UINT64_MAX, 0),
    FIELD(bh_govern_asked, doubt, 0, 1, 0),
};
static const struct bh_field output[] = {
    FIELD(bh_govern_out, mode, 0, BH_GOVERN_MODES - 1, 0),
    FIELD(bh_govern_out, turns, 0, 1, 0),
    FIELD(bh_govern_out, open_loop, 0, 1, 0),
    FIELD(bh_govern_out, pause_first, 0, 1, 0),
    FIELD(bh_govern_out, settled, 0, 1, 0),
    FIELD(bh_govern_out, n, 0, BH_GOVERN_TENANTS, 0),
};
static const struct bh_field told[] = {
    FIELD(bh_govern_told, id, 1, UINT64_MAX, 0),
    FIELD(bh_govern_told, slice_us, 1, UINT32_MAX, 0),
    FIELD(bh_govern_told, level, 0, 2, 0),
    FIELD(bh_govern_told, paused, 0, 1, 0),
    FIELD(bh_govern_told, active, 0, 1, 0),
    FIELD(bh_govern_told, light, 0, 1, 0),
    FIELD(bh_govern_told, seen, 0, 1, 0),
    FIELD(bh_govern_told, escaped, 0, 1, 0),
    FIELD(bh_govern_told, target_permille, 0, 1000, 0),
    FIELD(bh_govern_told, delivered_permille, 0, UINT32_MAX, 0),
    FIELD(bh_govern_told, held_permille, 0, UINT32_MAX, 0),
    FIELD(bh_govern_told, corrections, 0, UINT32_MAX, 0),
};
const struct bh_fields bh_govern_config_fields = FIELDS(config), bh_govern_in_fields = FIELDS(input),
                       bh_govern_asked_fields = FIELDS(asked), bh_govern_out_fields = FIELDS(output),
                       bh_govern_told_fields = FIELDS(told);

uint64_t bh_field_get(const struct bh_field *f, const void *from)
{
    const char *at = (const char *)from + f->offset;
    uint64_t v8 = 0;
    uint32_t v4 = 0;
    switch (f->size) {
    case sizeof(v8):
        memcpy(&v8, at, sizeof(v8));
        return v8;
    case sizeof(v4):
        memcpy(&v4, at, sizeof(v4));
        return v4;
    default:
        return (uint8_t)*at;
    }
}

void bh_field_put(const struct bh_field *f, void *to, uint64_t v)
{
    char *at = (char *)to + f->offset;
    const uint32_t v4 = (uint32_t)v;
    switch (f->size) {
    case sizeof(v):
        memcpy(at, &v, sizeof(v));
        break;
    case sizeof(v4):
        memcpy(at, &v4, sizeof(v4));
        break;
    default:
        *at = (char)(uint8_t)v;
    }
}

int bh_fields_check(const struct bh_fields *fs, const void *from, struct bh_err *err)
{
    for (size_t i = 0; i < fs->n; i++) {
        const struct bh_field *f = &fs->at[i];
        const uint64_t v = bh_field_get(f, from);
        if (v < f->min || v > f->max)
            return bh_fail(err, BH_INVALID, "%s is %" PRIu64 ", not from %" PRIu64 " to %" PRIu64, f->name, v,
                           f->min, f->max);
    }
    return 0;
}

void bh_govern_config_default(struct bh_govern_config *ret)
{
    for (size_t i = 0; i < BH_COUNT_OF(config); i++)
        bh_field_put(&config[i], ret, config[i].preset);
}
