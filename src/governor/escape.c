/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - who runs though it is paused, and who is paused though it should run. */
#include "governor/escape.h"

/* What failed to be paused is no escape. */
static bool is_paused(const struct bh_seat *s)
{
    for (size_t i = 0; i < s->channels.n; i++)
        if (s->channels.at[i].run != BH_CHANNEL_PAUSED)
            return false;
    return s->channels.n > 0;
}

bool bh_escape_watch(struct bh_seat *s, bool to_pause, uint64_t gpu_ns, uint32_t elapsed_us)
{
    const bool paused = to_pause && is_paused(s);
    const bool settled = paused && s->paused_us >= BH_ESCAPE_SETTLED_US;
    if (!paused)
        s->paused_us = 0;
    else if (!settled)
        s->paused_us += elapsed_us < BH_ESCAPE_SETTLED_US ? elapsed_us : BH_ESCAPE_SETTLED_US;
    if (!settled || gpu_ns == BH_GOVERN_NO_SAMPLE)
        return false;
    if (gpu_ns / 1000 <= elapsed_us / BH_ESCAPE_PART) {
        s->escaped_us = 0;
        return false;
    }
    bh_seat_unsure(s);
    s->escaped_us += elapsed_us < BH_ESCAPE_END_US ? elapsed_us : BH_ESCAPE_END_US;
    if (s->escaped_us < BH_ESCAPE_END_US)
        return false;
    s->escaped_us = 0; /* and is said again if nobody acts on it */
    return true;
}

void bh_escape_look(struct bh_seat *s, bool to_run, uint64_t now_ns)
{
    if (!to_run || (s->looked_ns && now_ns - s->looked_ns < BH_ESCAPE_LOOK_NS))
        return;
    if (s->looked_ns && s->busy_ns == s->looked_busy_ns)
        bh_seat_unsure(s);
    s->looked_ns = now_ns;
    s->looked_busy_ns = s->busy_ns;
}
