/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - what goes wrong with the silicon, and what is done about it without asking anybody.
 *
 * The driver's events (vigil.h) are judged by one table (gpu/xid.h: enum bh_reach). What a tenant's own work did ends that
 * lease and is told to that tenant alone. What the card did keeps it from the next one, or ends all who are on it. Each is
 * one transaction: the card's health, the leases' steps and the record in the log. Events that come while the store cannot be
 * written wait. What the driver shows of a card is looked at as well, for errors that nobody heard.
 *
 * Nothing gets well by itself: `bulkhead resume GPU` looks at the card again, and gives it away where nothing is wrong.
 */
#ifndef BH_NODE_WATCH_HEALTH_H
#define BH_NODE_WATCH_HEALTH_H

#include "api/ops.h"
#include "node/watch/vigil.h"
#include "store/audit.h"

#include <systemd/sd-event.h>

struct bh_daemon;
enum { BH_HEALTH_LINES = 64, BH_HEALTH_SEEN = 64 };

/* An error that comes again and again is written down once a minute. */
struct bh_health_seen {
    char uuid[96];
    uint64_t type, data, at_ms, lease;
};

/* A card that does not look well the first time may be asked at a bad moment. */
struct bh_health_strike {
    char uuid[96];
    uint32_t times;
};

struct bh_node_health {
    struct bh_vigil vigil;
    sd_event_source *source;
    uint64_t start_ms; /* it is not started before */
    uint64_t pause_ms; /* before the next start */
    char said[320];    /* why it does not listen; "": it does */
    bool listens;      /* it has not failed since it was started */
    struct bh_xid_line lines[BH_HEALTH_LINES];
    size_t n_lines; /* ever: the newest take the place of the oldest */
    struct bh_health_seen seen[BH_HEALTH_SEEN];
    size_t n_seen;
    BH_VEC(struct bh_vigil_word) waiting;
    BH_VEC(struct bh_health_strike) strikes;
    bool other_driver;    /* than the last daemon ran on: until its cards were looked at */
    char driver_seen[64]; /* that was put in while this daemon ran; "": none was */
};

void bh_health_tick(struct bh_daemon *d);
/* The driver was asked again (silicon.h). */
void bh_health_looked(struct bh_daemon *d);
void bh_health_fini(struct bh_daemon *d);
/* A person wants the card back. BH_REFUSED: it is still not well, and how. In the caller's transaction. */
int bh_health_write_well(struct bh_daemon *d, const char *uuid, struct bh_err *err) BH_MUST_USE;
/* A card takes nobody new from now on, for a reason that is no event. In the caller's transaction; bh_decide_health follows. */
int bh_health_write_suspect(struct bh_daemon *d, const char *uuid, enum bh_audit_kind event, const char *why,
                            struct bh_err *err) BH_MUST_USE;

#endif
