/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm.h - the page that a storm and the tenants of one lease share.
 *
 * The tenants say there what they hold, and stand still when they are asked to: only then can what they say be compared
 * with the driver's own count. The page is a memfd that the launcher lets through, as it does every descriptor.
 */
#ifndef BH_TESTS_GATE_STORM_H
#define BH_TESTS_GATE_STORM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    STORM_WORKERS = 3,
    STORM_ALIVE_FD =
        8, /* a pipe that every tenant of the lease keeps open: it hangs up with the last of them */
    STORM_PAGE_FD = 9,
    STORM_NO_GATE = 38, /* exit status: the gate is gone, every call answers ENOSYS */
    STORM_FAILED = 99,
};
#define STORM_UNIT (UINT64_C(2) << 20) /* the driver rounds to it, so sums are exact */

struct storm_worker {
    _Atomic uint32_t pid; /* 0: there is none */
    _Atomic uint32_t ack; /* the pause it stands still in */
    _Atomic uint64_t held, mapped, steps;
    _Atomic uint32_t failed_line, failed_with; /* where, and the status or errno */
};

struct storm_page {
    uint64_t cap_bytes, seed;
    uint32_t storm; /* pid: when it is gone, so are we */
    _Atomic uint32_t pause, quit, nest, gate_gone;
    struct {
        _Atomic uint32_t to; /* pid of the worker that is asked; 0: done */
        _Atomic uint64_t bytes;
        _Atomic uint32_t fits, one_more; /* statuses: of so many bytes, and of a unit beyond them */
    } probe;
    struct storm_worker workers[STORM_WORKERS];
};

static inline uint64_t storm_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The first process of a lease: keeps its workers alive. Returns its exit status. */
int storm_nest(void);

#endif
