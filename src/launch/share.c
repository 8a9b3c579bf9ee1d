/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - looks for governors and hands them on. */
#include "launch/share.h"

#include "launch/governor.h"
#include "launch/governor_at.h"
#include "launch/warden.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    GIVE_MS = 200, /* a governor that is there is found in that time */
    MUTE = 2,      /* once it may have been slow */
};

static void close_governor(struct bh_share_link *l)
{
    if (l->governor >= 0)
        close(l->governor);
    l->governor = -1;
}

void bh_share_give(struct bh_share_link *l, const struct bh_child *warden, const struct bh_err *why)
{
    bh_warden_give(warden, l->governor, l->version, why);
    close_governor(l);
}

void bh_share_seek(struct bh_share_link *l, const struct bh_child *warden)
{
    struct bh_err err;
    if (l->seeker.pid == 0 && bh_governor_seek(&l->seeker, &err) < 0)
        bh_share_give(l, warden, &err); /* it asks again later */
}

/* Once, however often it is tried. The whole reason is the governor's, and stays with the warden. */
static void tell_refused(struct bh_share_link *l, int32_t code)
{
    char line[240];
    const char *why = code == BH_REFUSED    ? "it shares by slices alone, and holds no cap and no latency"
                      : code == BH_BUSY     ? "it has no room, or somebody else speaks for this lease"
                      : code == BH_CONFLICT ? "it is of another version"
                                            : "it takes this promise for none";
    (void)snprintf(
        line, sizeof(line),
        "the governor is another one now, and does not take this lease: %s; its share, cap or latency "
        "is not held for now, and is asked for again",
        why);
    if (!l->refused)
        l->tell(l->arg, line);
    l->refused = true;
}

void bh_share_asked(struct bh_share_link *l, const struct bh_child *warden, const struct bh_lease_ask *ask)
{
    if (ask->what == BH_LEASE_ASK_JOINED) {
        l->tell(l->arg, "the governor was gone, or silent; shares go on");
        l->refused = false;
        l->mute = 0;
        return;
    }
    if (ask->what == BH_LEASE_ASK_REFUSED)
        tell_refused(l, ask->code);
    l->asked = true;
    bh_share_seek(l, warden);
}

/* It is there, and says nothing: it may not be taken for gone, as it may go on and hold what it held. */
static void tell_mute(struct bh_share_link *l)
{
    struct bh_err err;
    char line[sizeof(err.msg) + 80];
    if (l->mute < MUTE && ++l->mute == MUTE) {
        (void)bh_governor_no_answer(&err);
        (void)snprintf(line, sizeof(line), "%s; shares are not held for now", err.msg);
        l->tell(l->arg, line);
    }
}

void bh_share_hear(struct bh_share_link *l, const struct bh_child *warden)
{
    struct bh_err err;
    char line[sizeof(err.msg) + 120];
    const int rc = bh_governor_found(&l->seeker, &l->governor, &l->version, &err);
    if (rc < 0 && l->asked && !l->ungoverned) {
        (void)snprintf(line, sizeof(line), "%s%s; shares are not held for now",
                       rc == BH_BUSY ? "" : "the governor is gone, and another one cannot be had: ", err.msg);
        l->tell(l->arg, line);
    }
    if (rc == BH_OK && l->asked && l->version == UINT32_MAX)
        tell_mute(l);
    l->ungoverned = rc < 0;
    l->asked = false;
    if (warden->fd >= 0)
        bh_share_give(l, warden, &err);
    else
        close_governor(l);
}

void bh_share_give_soon(struct bh_share_link *l, const struct bh_child *warden)
{
    struct bh_err err;
    bh_share_seek(l, warden);
    struct pollfd at = {.fd = l->seeker.fd, .events = POLLIN};
    if (l->seeker.pid && poll(&at, 1, GIVE_MS) > 0) {
        bh_share_hear(l, warden);
    } else if (l->seeker.pid) {
        (void)bh_fail(&err, BH_BUSY, "it is being looked for"); /* and given when it is found */
        bh_share_give(l, warden, &err);
    }
}

void bh_share_end(struct bh_share_link *l)
{
    if (l->seeker.pid) { /* it looks for nobody */
        (void)kill(l->seeker.pid, SIGKILL);
        (void)bh_child_reap(&l->seeker);
    }
    close_governor(l);
}
