/* SPDX-License-Identifier: Apache-2.0 */
/* steer_show.c - what is shown of leases and cards, and what holds of them at any time. */
#include "governor/steer_inside.h"

#include <string.h>

/* ---- what is shown ---- */

static uint32_t shown(const struct bh_governed *l, const struct bh_seat *seat)
{
    if (l->hold != BH_HOLD_NONE)
        return l->hold == BH_HOLD_PAUSED ? BH_GOVERN_SHOWN_PAUSED : BH_GOVERN_SHOWN_SUSPENDED;
    if (!seat || !seat->channels.n || !seat->told.active)
        return BH_GOVERN_SHOWN_IDLE;
    return seat->told.paused ? BH_GOVERN_SHOWN_TURN : BH_GOVERN_SHOWN_RUNS;
}

static void row_of_seat(const struct bh_steer *t, struct bh_seat *seat, struct bh_govern_row *r)
{
    size_t n;
    const uint32_t *pids = bh_seat_pids(seat, &n);
    const struct card *c = t->cards[seat->gpu];
    r->gpu = seat->gpu;
    r->mode = c ? c->out.mode : BH_GOVERN_FREE;
    r->target_permille = seat->told.target_permille;
    r->delivered_permille = seat->told.delivered_permille;
    r->held_permille = seat->told.held_permille;
    r->error_permille = bh_govern_error(&seat->told);
    r->slice_us = seat->slice_us;
    r->level = seat->level_1 ? seat->level_1 - 1 : t->tuning.default_level;
    r->corrections = seat->corrections;
    r->pauses = seat->pauses;
    r->seen = seat->told.seen;
    r->busy_ns = seat->busy_ns;
    r->n_pids = (uint32_t)n;
    for (size_t i = 0; i < n && i < BH_COUNT_OF(r->pids); i++)
        r->pids[i] = pids[i];
}

static void uses_of(const struct bh_steer *t, const struct bh_governed *l, struct bh_govern_row *r)
{
    uint32_t at[BH_CULPRIT_RESOURCES];
    if (!t->config.gauge)
        return;
    bh_gauge_uses(t->config.gauge, r->gpu, t->now_ns, l->id, at);
    r->sm_permille = at[BH_CULPRIT_TIME];
    r->dram_permille = at[BH_CULPRIT_DRAM];
    r->pcie_permille = at[BH_CULPRIT_PCIE];
    r->power_permille = at[BH_CULPRIT_WATTS];
    r->lowered_permille = at[BH_CULPRIT_POWER];
}

static void own_of(const struct bh_steer *t, const struct bh_governed *l, struct bh_govern_row *r)
{
    if (!bh_state_says(l, t->now_ns))
        return;
    r->own_rate_milli = l->own.last.has_rate ? l->own.last.rate_milli : UINT64_MAX;
    r->own_p50_us = l->own.last.p50_us;
    r->own_p99_us = l->own.last.p99_us;
}

void bh_steer_row(const struct bh_steer *t, const struct bh_governed *l, struct bh_seat *seat,
                  struct bh_govern_row *ret)
{
    *ret = (struct bh_govern_row){.op = BH_GOVERN_ROW,
                                  .gpu = UINT32_MAX,
                                  .lease = l->id,
                                  .root_pid = l->root_pid,
                                  .uid = l->uid,
                                  .weight = l->weight,
                                  .cap_permille = l->cap_permille,
                                  .floor_permille = l->floor_permille,
                                  .latency = l->latency,
                                  .state = shown(l, seat),
                                  .tampered = l->tampered,
                                  .level = t->tuning.default_level,
                                  .sm_permille = UINT32_MAX,
                                  .dram_permille = UINT32_MAX,
                                  .pcie_permille = UINT32_MAX,
                                  .power_permille = UINT32_MAX,
                                  .lowered_permille = UINT32_MAX,
                                  .own_rate_milli = UINT64_MAX,
                                  .own_p50_us = UINT32_MAX,
                                  .own_p99_us = UINT32_MAX,
                                  .own_garbage = l->own.last.garbage};
    memcpy(ret->name, l->name, sizeof(ret->name));
    own_of(t, l, ret);
    if (seat) {
        row_of_seat(t, seat, ret);
        uses_of(t, l, ret);
    }
}

void bh_steer_noise(const struct bh_steer *t, uint32_t gpu, uint64_t now_ns, struct bh_buf *out)
{
    const struct card *c = t->cards[gpu];
    if (t->config.gauge && c && c->tally.competed_ns)
        bh_gauge_report(t->config.gauge, gpu, now_ns, out);
}

struct bh_steer_counts bh_steer_counts(const struct bh_steer *t)
{
    struct bh_steer_counts c = t->counts;
    c.orphans = t->orphans.n;
    return c;
}

/* ---- what holds ---- */

static bool is_orphan(const struct orphan *o, uint32_t gpu, struct bh_driver_channel name)
{
    return o->gpu == gpu && o->name.client == name.client && o->name.channel == name.channel;
}

bool bh_steer_knows(const struct bh_steer *t, uint32_t gpu, struct bh_driver_channel name)
{
    const struct bh_state *s = t->config.state;
    for (size_t i = 0; i < s->n; i++) {
        const struct bh_seat *seat = bh_seat_find(s->at[i], gpu);
        const struct bh_channel *c = seat ? bh_seat_channel(seat, name) : NULL;
        if (c && c->run != BH_CHANNEL_RUNS)
            return true;
    }
    for (size_t i = 0; i < t->orphans.n; i++)
        if (is_orphan(&t->orphans.at[i], gpu, name))
            return true;
    return false;
}

const char *bh_steer_check(const struct bh_steer *t)
{
    const struct bh_state *s = t->config.state;
    const char *why = bh_state_check(s);
    for (size_t i = 0; !why && i < s->n; i++) {
        const struct bh_governed *l = s->at[i];
        for (size_t k = 0; !why && k < l->seats.n; k++) {
            const struct bh_seat *seat = &l->seats.at[k];
            const bool meant = bh_steer_is_to_pause(l, seat);
            for (size_t n = 0; !why && n < seat->channels.n; n++)
                if (seat->channels.at[n].run == BH_CHANNEL_PAUSED && !meant)
                    why = "somebody is paused whom nobody meant to pause";
        }
    }
    return why;
}
