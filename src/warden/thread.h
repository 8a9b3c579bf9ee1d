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
    uint64_t user_ns; /* of it outside of the kernel, about: told in hundredths of a second */
};
void bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret);

/* Is it in this system call? One that waits in another one, or in none, is elsewhere; one that runs may be in it. */
enum bh_thread_in { BH_THREAD_UNTOLD, BH_THREAD_MAY_BE_IN, BH_THREAD_ELSEWHERE };
enum bh_thread_in bh_thread_in(uint32_t pid, uint32_t tid, long call);

/* Whom to ask for what a process's threads have in common. That is its first thread as long as it lives: one that has begun to end
 * lets go of memory and descriptors, and what the process has mapped or open goes with the last one that comes to that. Then
 * it is another that lives, also if it was told to end and did not come to it yet. 0: all have begun to end. Of a process that
 * is gone its number, too. */
uint32_t bh_thread_living(uint32_t pid);

/* When a process began, as the kernel counts; 0: it is gone. */
uint64_t bh_thread_started(uint32_t pid);

#endif
