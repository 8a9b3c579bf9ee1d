/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - a tenant must not make its warden wait.
 *
 * Reading a tenant's memory can take as long as the tenant likes: a page may be one that it fills in itself (userfaultfd, a
 * file system of its own). While the warden waits nothing is counted. So a thread of its own looks how long the warden
 * has been reading, and ends those who keep it; where that does not help (somebody unknown fills in the page) it ends the
 * warden, for another one to take over. A warden that only waits for a processor is kept by nobody.
 *
 * What it waits for (waits.h) decides how long that may be. A page that a process fills in is waited for three looks of the
 * watchdog, of which there are twenty within the limit: nobody needs such a page for a call of the driver. One that comes from
 * a disk may take five times the limit. A process that forks, or gives much memory back, is not to be looked at until
 * the kernel is done with its tables: so who has much may take longer. Memory of its own counts, as it costs whoever has it; what is
 * mapped of files and shared with others can be had many times over for little, and counts for little. Where the kernel does not
 * tell, this last one decides.
 */
#ifndef BH_WARDEN_WATCHDOG_H
#define BH_WARDEN_WATCHDOG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_watchdog;

/* limit_ms: for how long one look at a tenant without memory may take, where nothing more is known. */
int bh_watchdog_start(uint32_t limit_ms, struct bh_watchdog **ret, struct bh_err *err) BH_MUST_USE;
void bh_watchdog_stop(struct bh_watchdog *w); /* NULL: nothing */

/* Of the host, as a process has it: anonymous, and of files or shared. */
struct bh_watchdog_memory {
    uint64_t own_bytes, mapped_bytes;
};
/* Of a process or thread; zeros: not to be told. */
struct bh_watchdog_memory bh_watchdog_memory_of(uint32_t pid);

/* The limit for a process with so much: tables of a gigabyte of its own take the kernel some 60 ms to copy. At most 8.1 s more than
 * without, for 64 GiB of its own and 16 GiB that it maps. */
uint32_t bh_watchdog_patience(uint32_t limit_ms, const struct bh_watchdog_memory *m);

/* Around each look; who: a process or thread, the first to be ended. w NULL: nothing. */
void bh_watchdog_enter(struct bh_watchdog *w, uint32_t who);
void bh_watchdog_leave(struct bh_watchdog *w);
/* Whom to end. The pidfds stay the caller's, open until they are taken out. */
void bh_watchdog_add(struct bh_watchdog *w, int pidfd);
void bh_watchdog_remove(struct bh_watchdog *w, int pidfd);
bool bh_watchdog_bit(const struct bh_watchdog *w); /* somebody was ended */

#endif
