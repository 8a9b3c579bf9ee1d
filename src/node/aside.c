/* SPDX-License-Identifier: Apache-2.0 */
/* aside.c - readers are served from within a wait for the disk. */
#include "node/aside.h"

#include "store/beside.h"

#include <errno.h>
#include <poll.h>

uint64_t bh_aside_asked(struct bh_daemon *d)
{
    const uint64_t now_ms = bh_daemon_now(d);
    if (now_ms > d->asked_ms + BH_ASKED_MS) /* what is known may be a minute old */
        d->look_deep = true;
    d->view.now_ms = d->asked_ms = now_ms;
    d->view.wall_ms = bh_clock_read().wall_ms;
    return now_ms;
}

static void serve(void *arg, int until)
{
    struct bh_daemon *d = arg;
    struct pollfd at[] = {{.fd = until, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    bool goes_on = d->serving;
    if (!goes_on)
        return;
    at[1].fd = bh_api_fd(d->api);
    d->aside = true;
    while (goes_on) {
        const int n = poll(at, BH_COUNT_OF(at), -1);
        goes_on = n < 0 ? errno == EINTR : !at[0].revents;
        if (!goes_on || n < 0)
            continue;
        (void)bh_aside_asked(d);
        goes_on = bh_api_run_reads(d->api);
    }
    d->aside = false;
    bh_api_reads_over(d->api);
}

void bh_aside_start(struct bh_daemon *d)
{
    struct bh_err err;
    int rc = bh_beside_start(&d->beside, &err);
    if (rc == BH_OK)
        bh_beside_meanwhile(d->beside, serve, d);
    if (rc == BH_OK)
        rc = bh_store_commit_beside(d->store, d->beside, &err);
    if (rc < 0)
        bh_daemon_say(d, "whoever reads waits for the disk: %s", err.msg);
}
