/* SPDX-License-Identifier: Apache-2.0 */
/* gate_view.h - controls of the driver that are answered by what the lease has (warden/view.h). Of the gate alone. */
#ifndef BH_WARDEN_GATE_VIEW_H
#define BH_WARDEN_GATE_VIEW_H

#include "gpu/abi/rm.h"
#include "warden/gate_inside.h"

static inline bool bh_gate_is_control(uint64_t cmd)
{
    return RM_IOC_NUMBER(cmd) == RM_CONTROL;
}

/* Before anything is known of the call: most controls are none of ours, and go on after one look. */
int bh_gate_control(struct bh_gate *g, struct bh_gate_call *c);

#endif
