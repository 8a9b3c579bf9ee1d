/* SPDX-License-Identifier: Apache-2.0 */
/* xid.h - what the driver's error numbers mean: whose fault, and what to do. Facts in xids.def. */
#ifndef BH_GPU_XID_H
#define BH_GPU_XID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_xid_fault { BH_XID_APPLICATION, BH_XID_HARDWARE, BH_XID_DRIVER };
enum bh_xid_action { BH_XID_RESTART, BH_XID_WATCH, BH_XID_DRAIN, BH_XID_REBOOT, BH_XID_REPLACE };

/*
 * How far an error goes, and so what is done without asking anybody. Whose work is broken already ends; whoever is beside it
 * goes on unless nothing on the card can be trusted any more.
 */
enum bh_reach {
    BH_REACH_NONE,
    BH_REACH_NOTE,  /* it is written down */
    BH_REACH_LEASE, /* the lease that did it ends */
    BH_REACH_HIT,   /* the lease that it hit ends; the card takes nobody new */
    BH_REACH_CARD,  /* the card takes nobody new; who is on it goes on */
    BH_REACH_ALL,   /* everybody on the card ends, and nobody gets it before a person has looked */
};

struct bh_xid {
    uint32_t number;
    uint8_t fault, action, reach; /* enum bh_xid_fault, enum bh_xid_action, enum bh_reach */
    const char *words;
};

const struct bh_xid *bh_xid_find(uint64_t number);       /* NULL: not a common one */
const char *bh_xid_fault_words(const struct bh_xid *x);  /* `the application's fault` */
const char *bh_xid_action_words(const struct bh_xid *x); /* `restart the tenant's work` */

/* A line of the kernel's log: `NVRM: Xid (PCI:0000:18:00): 31, pid=1234, name=python, ...`. */
struct bh_xid_line {
    uint32_t domain, bus, device;
    uint32_t number;
    uint32_t pid; /* 0: the line names none */
};
bool bh_xid_line(const char *text, size_t n, struct bh_xid_line *ret);

#endif
