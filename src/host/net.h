/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the network of container leases: a port each on one bridge, and nothing passes that was not allowed.
 *
 * The network namespace is the runtime's to make; this puts a port into it. On the bridge `bulkhead0` everything between ports is
 * dropped, unless both are of one tenant whose leases may talk to each other. A port sends with its own address only. The
 * machine itself cannot be reached; the outside only where a lease may. Without a port a lease has lo and nothing else.
 *
 * Done by running ip, tc and nft with fixed arguments (no shell): nftables' own protocol is a compiler's target, and what an
 * operator sees in our errors is what they can type. Rules change by one `nft -f -`, which the kernel takes whole or not at all.
 * All of it works on the network namespace that the caller is in.
 */
#ifndef BH_HOST_NET_H
#define BH_HOST_NET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BH_NET_BRIDGE "bulkhead0"
enum { BH_NET_SLOTS = 65000, BH_NET_TEXT = 20, BH_NET_MAX = 4096 };

struct bh_net {
    uint64_t lease;
    const char *tenant;  /* a name (base/units.h) */
    bool may_peer;       /* with the tenant's other leases that may */
    bool may_go_outside; /* through this machine's own address; needs net.ipv4.ip_forward */
    uint64_t bits_per_s; /* each way; 0: not limited */
};

/* Where a lease is: leases BH_NET_SLOTS apart have the same place, and the second of two at one time is BH_CONFLICT. */
void bh_net_address(uint64_t lease, char ret[BH_NET_TEXT]);
void bh_net_port(uint64_t lease, char ret[BH_NET_TEXT]); /* its name on this machine */

/* Bridge and tables, where they are not there yet. */
int bh_net_set_up(struct bh_err *err) BH_MUST_USE;
/* A port for the lease in the network namespace of that process, as eth0. Sets up what is missing; again: made anew. */
int bh_net_attach(const struct bh_net *n, pid_t pid, struct bh_err *err) BH_MUST_USE;
/* Takes it away. What is not there is no failure. Only lease and tenant are looked at. */
int bh_net_detach(const struct bh_net *n, struct bh_err *err) BH_MUST_USE;
/* After a restart: the rules anew for exactly these leases, in one step, and ports of no lease among them are removed. */
int bh_net_reconcile(const struct bh_net *live, size_t n, struct bh_err *err) BH_MUST_USE;
/* Bridge, ports and tables, away. */
int bh_net_tear_down(struct bh_err *err) BH_MUST_USE;

#endif
