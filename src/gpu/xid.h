/* SPDX-License-Identifier: Apache-2.0 */
/* xid.h - what the driver's error numbers mean: whose fault, and what to do. Facts in xids.def. */
#ifndef BH_GPU_XID_H
#define BH_GPU_XID_H

#include <stdint.h>

enum bh_xid_fault { BH_XID_APPLICATION, BH_XID_HARDWARE, BH_XID_DRIVER };
enum bh_xid_action { BH_XID_RESTART, BH_XID_WATCH, BH_XID_DRAIN, BH_XID_REBOOT, BH_XID_REPLACE };

struct bh_xid {
    uint32_t number;
    uint8_t fault, action; /* enum bh_xid_fault, enum bh_xid_action */
    const char *words;
};

const struct bh_xid *bh_xid_find(uint64_t number);       /* NULL: not a common one */
const char *bh_xid_fault_words(const struct bh_xid *x);  /* `the application's fault` */
const char *bh_xid_action_words(const struct bh_xid *x); /* `restart the tenant's work` */

#endif
