/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - where a tenant's thread is, as far as /proc tells. */
#ifndef BH_WARDEN_THREAD_H
#define BH_WARDEN_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct bh_thread_seen {
    char state;       /* as /proc/PID/stat has it; '\0': it is gone, or as good as; '?': it cannot be told */
    uint64_t cpu_ns;  /* its processor time: at least this much, and ... */
    uint64_t most_ns; /* ... at most this much */
};
void bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret);

/* Is it in this system call? One that waits in another one, or in none, is elsewhere; one that runs may be in it. */
enum bh_thread_in { BH_THREAD_UNTOLD, BH_THREAD_MAY_BE_IN, BH_THREAD_ELSEWHERE };
enum bh_thread_in bh_thread_in(uint32_t pid, uint32_t tid, long call);

/* Is a process on its way out, or has it ended and is waited for? Its first thread has let go of its descriptors then, or will,
 * and what it had open is closed by the last one that comes to that. False where its other threads live on. */
bool bh_thread_all_end(uint32_t pid);

/* When a process began, as the kernel counts; 0: it is gone. */
uint64_t bh_thread_started(uint32_t pid);

#endif
