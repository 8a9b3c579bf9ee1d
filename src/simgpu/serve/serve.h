/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the process around a simulated resource manager.
 *
 * One thread that carries messages (simgpu/wire.h) between callers and the manager and keeps the time. Each caller has
 * at most one request under way, nobody is waited for, what a caller held is given back when it hangs up, however it
 * ended, and no caller gets at what is another's. It is no fair share of the node: there is no limit for one user. One
 * who wants to can take all descriptors (but for the few that are kept for the node's owner), clients or contents
 * that there are, and hold up everybody for as long as its largest fill takes: a second, for a whole card.
 */
#ifndef BH_SIMGPU_SERVE_SERVE_H
#define BH_SIMGPU_SERVE_SERVE_H

#include "base/err.h"
#include "simgpu/node.h"

#include <stddef.h>

struct bh_sim_serve {
    const struct bh_sim_node *node;
    const char *folder;       /* where rm.sock is put; processes are shown below its sysroot/proc */
    size_t max_fds;           /* for connections and open files together; 0: what the process may have */
    void (*ready)(void *arg); /* called once, when callers are answered; may be NULL */
    void *arg;
};

/*
 * Runs until it is told to stop, or gets SIGTERM, SIGINT or SIGHUP (which are blocked meanwhile in this thread). The
 * socket is gone afterwards; the rest of the folder is the caller's.
 */
int bh_sim_serve(const struct bh_sim_serve *how, struct bh_err *err) BH_MUST_USE;

#endif
