/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden.h - a bulkhead-warden as a child of this process: what it takes, how it is started, heard, and taken leave of
 * (wire/lease.h).
 *
 * It outlives this process: nothing here ends it but bh_warden_kill, and its lease.
 */
#ifndef BH_LAUNCH_WARDEN_H
#define BH_LAUNCH_WARDEN_H

#include "base/err.h"
#include "launch/child.h"
#include "wire/lease.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what it takes ---- */

/* May this process start one that can work? BH_DENIED says what it lacks; verb: who asks. */
int bh_warden_rights(const char *verb, struct bh_err *err) BH_MUST_USE;
/* Its program: in the build folder or where it is installed, seen from this program. */
int bh_warden_find(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* The governor's program (launch/governor.h), found in the same way. */
int bh_governor_program(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* The keeper's (launch/keeper.h), too. */
int bh_keeper_program(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* The one that proves cards clean (src/scrub). */
int bh_scrub_program(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* The hook of containers, which is a runtime of engines too (src/oci). */
int bh_oci_program(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* And the one that reads the audit log. */
int bh_audit_program(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* An empty journal for a new lease. */
int bh_warden_journal(int *ret_fd, struct bh_err *err) BH_MUST_USE;

/* When the wardens of one lease followed one another: those that die again and again are no way to go on. */
enum { BH_WARDEN_FOLLOWERS = 3, BH_WARDEN_FOLLOWERS_MS = 10000 };
struct bh_warden_followers {
    int64_t at_ms[BH_WARDEN_FOLLOWERS]; /* 0: none yet; a clock that never shows 0 */
};
int64_t bh_warden_now_ms(void);              /* that clock */
int64_t bh_warden_left_ms(int64_t until_ms); /* by that clock; 0: it is past */
/* May another one follow now? Takes note of it then. */
bool bh_warden_may_follow(struct bh_warden_followers *f, int64_t now_ms) BH_MUST_USE;

/* ---- one of them ---- */

int bh_warden_start(const char *program, struct bh_child *ret, struct bh_err *err) BH_MUST_USE;
/* Gives it the lease; the descriptors stay the caller's. Whether that reached anybody, its answer will say. */
void bh_warden_hand_over(const struct bh_child *w, const struct bh_lease_start *start,
                         const int fds[BH_LEASE_FDS]);
/* Of a lease with BH_LEASE_HAS_PROBE, right after that: where its processes say what they do. Stays the caller's. */
void bh_warden_give_probe(const struct bh_child *w, int probe);
/* Its first word, waited for. 0: it is ready, and start (or NULL) says whose those that follow it are to be. Otherwise why it
 * is not, and it is to be killed; *ret_died (or NULL): it is gone without a word, and may be followed by another. */
int bh_warden_ready(const struct bh_child *w, struct bh_lease_start *start, bool *ret_died,
                    struct bh_err *err) BH_MUST_USE;
/* Of a lease whose share is held: the connection to the governor, which stays the caller's; below 0: why there is none. */
void bh_warden_give(const struct bh_child *w, int governor, uint32_t version, const struct bh_err *why);
/* Something came from one that is ready. True: it was the question for another governor, and is taken. */
bool bh_warden_asks(const struct bh_child *w, struct bh_lease_ask *ret);
/* Its last word, waited for. False: it died without one, and *ret_status is how. It is forgotten in both cases. */
bool bh_warden_end(struct bh_child *w, struct bh_lease_end *ret, int *ret_status) BH_MUST_USE;
/* Ends it and forgets it. One that hangs in the driver is not waited for: returns the process that waitpid is still to be
 * called for, or 0. */
pid_t bh_warden_kill(struct bh_child *w);

/* What to say of a warden that could open no more files. */
struct bh_warden_room {
    char text[160];
};
const char *bh_warden_no_room(const struct bh_lease_end *end, struct bh_warden_room *ret);

/* `was killed by signal 9`, `ended with status 3`. */
struct bh_warden_how {
    char text[48];
};
const char *bh_warden_how(int status, struct bh_warden_how *ret);

#endif
