/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_write.h - a fleet as the file that fleet_read.c reads.
 *
 * What is unknown is left out. Remarks become comments: those of the file on top, those of a node (which facts
 * are missing and why) at its head. What is written and read again is the same fleet.
 */
#ifndef BH_CONF_FLEET_WRITE_H
#define BH_CONF_FLEET_WRITE_H

#include "base/buf.h"
#include "core/model/fleet.h"

typedef BH_VEC(const char *) bh_remarks;

/* node_remarks: one for each node of f, in its order; NULL: none. The caller looks at out->full. */
void bh_fleet_write(struct bh_buf *out, const struct bh_fleet *f, const bh_remarks *remarks,
                    const bh_remarks *node_remarks);

#endif
