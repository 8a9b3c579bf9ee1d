/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/patience.h"

#include "base/err.h"
#include "launch/warden.h"

#include <time.h>

enum { NAP_MS = 20 };

struct bh_patience bh_patience_of(int ms)
{
    return (struct bh_patience){.until_ms = bh_warden_now_ms() + ms, .brief = ms <= BH_PATIENCE_FOLLOWED_MS};
}

bool bh_patience_again(struct bh_patience *p, int rc, bool answered, bool socket_left)
{
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    const bool ended = rc == BH_BUSY && !answered, nobody = rc == BH_NOT_FOUND && !answered;
    const int64_t now = bh_warden_now_ms();
    const bool first = ended && !p->lost;
    p->lost |= ended;
    if (p->brief)
        return first && now < p->until_ms;
    p->anew |= ended || (nobody && socket_left);
    if (p->young && answered && rc == BH_NOT_FOUND && now < p->until_ms) {
        (void)nanosleep(&nap, NULL);
        return true;
    }
    if (!p->anew || !(ended || rc == BH_NOT_FOUND))
        return false;
    if (!nobody)
        p->followed_ms = 0;
    else if (!p->followed_ms)
        p->followed_ms = now + BH_PATIENCE_FOLLOWED_MS;
    if (now >= p->until_ms || (nobody && now >= p->followed_ms))
        return false;
    (void)nanosleep(&nap, NULL);
    return true;
}
