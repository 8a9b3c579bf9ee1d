/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the process around a simulated resource manager.
 *
 * One thread that carries messages (simgpu/wire.h) between callers and the manager and keeps the time. Nothing a caller
 * does may harm another one: each has at most one request under way, nobody is waited for, and what a caller
 * held is given back when it hangs up, however it ended.
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
