/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.h - what a runtime calls when a container of a lease is made and has not run yet (createRuntime).
 *
 * `bulkhead-oci hook --lease N [--profile FILE] [--cgroup NAME] [--network TENANT [--rate BITS] [--peers] [--outside]]`, the
 * container's state on standard input. With a profile: a container whose bundle lacks it does not start. With a cgroup: it is
 * held by that one, whatever its engine set up. With a network: it gets its port.
 */
#ifndef BH_OCI_HOOK_H
#define BH_OCI_HOOK_H

#include "base/err.h"
#include "host/net.h"

#include <stddef.h>

struct bh_hook {
    uint64_t lease;
    const char *profile; /* NULL: none is asked for */
    const char *cgroup;  /* `bulkhead/L17`; NULL: it stays where its engine put it */
    struct bh_net net;   /* tenant NULL: no network */
};

/* argv from behind `hook`. */
int bh_hook_options(int argc, char **argv, struct bh_hook *ret, struct bh_err *err) BH_MUST_USE;
/* Would this container be held? BH_REFUSED says why not, BH_INVALID what cannot be read. */
int bh_hook_judge(const struct bh_hook *h, const char *bundle, struct bh_err *err) BH_MUST_USE;
/* All of it, the state from a descriptor. */
int bh_hook_run(const struct bh_hook *h, int state, struct bh_err *err) BH_MUST_USE;

#endif
