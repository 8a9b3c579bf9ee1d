/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/link_join.h"

#include "base/err.h"

enum {
    ASK_MS = 1000,
    SILENT_MAX_MS = 8000, /* each one that says nothing has us wait at its door */
    REFUSED_MAX_MS = 60000,
};

void bh_link_join_init(struct bh_link_join *j, uint32_t given_version)
{
    *j = (struct bh_link_join){.version = BH_GOVERN_WIRE_VERSION};
    bh_link_join_given(j, given_version);
}

void bh_link_join_given(struct bh_link_join *j, uint32_t version)
{
    j->hears_news |= version != 0;
    if (version >= BH_GOVERN_WIRE_OLDEST && version <= BH_GOVERN_WIRE_VERSION)
        j->version = version;
}

void bh_link_join_refused(struct bh_link_join *j, int32_t code)
{
    if (code == BH_CONFLICT && j->version > BH_GOVERN_WIRE_OLDEST) {
        j->version--;
        return;
    }
    if (code == BH_CONFLICT)
        j->version = BH_GOVERN_WIRE_VERSION;
    j->refused = code;
    j->refusals++;
}

void bh_link_join_taken(struct bh_link_join *j)
{
    j->silences = j->refusals = 0;
    j->refused = 0;
}

struct bh_lease_ask bh_link_join_ask(const struct bh_link_join *j)
{
    return (struct bh_lease_ask){j->refused ? BH_LEASE_ASK_REFUSED : BH_LEASE_ASK_GONE, j->refused};
}

static int64_t doubled(uint32_t times, int64_t max_ms)
{
    int64_t ms = ASK_MS;
    for (uint32_t i = 0; i < times && ms < max_ms; i++)
        ms *= 2;
    return ms < max_ms ? ms : max_ms;
}

int64_t bh_link_join_pause_ms(const struct bh_link_join *j)
{
    const int64_t silent = doubled(j->silences, SILENT_MAX_MS);
    const int64_t refused = doubled(j->refusals ? j->refusals - 1 : 0, REFUSED_MAX_MS);
    return refused > silent ? refused : silent;
}
