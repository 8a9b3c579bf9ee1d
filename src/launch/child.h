/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a child of this process at the other end of a connection, and the answer it gives (wire/lease.h). */
#ifndef BH_LAUNCH_CHILD_H
#define BH_LAUNCH_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bh_child {
    pid_t pid; /* 0: none */
    int fd;    /* to wait on: readable when it has said something, or is gone; -1: none */
};

/* Forks; the child is `be`, which does not return. */
int bh_child_start(void (*be)(const void *arg, int to_parent), const void *arg, struct bh_child *ret,
                   struct bh_err *err) BH_MUST_USE;
/* Its answer, waited for. 0: it is ready. Otherwise why it is not; `who` is what it is called there. *ret_uid (or NULL): whose
 * it is by its own word. *ret_died (or NULL): it is gone without a word. */
int bh_child_answer(const struct bh_child *c, const char *who, uint32_t *ret_uid, bool *ret_died,
                    struct bh_err *err) BH_MUST_USE;
/* Waits for its end and forgets it; how it ended, as waitpid has it. */
int bh_child_reap(struct bh_child *c);
void bh_child_close(struct bh_child *c); /* our end alone */

#endif
