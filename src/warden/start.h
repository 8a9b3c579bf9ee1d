/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - what a launcher asks a warden to serve, in today's words. */
#ifndef BH_WARDEN_START_H
#define BH_WARDEN_START_H

#include "base/err.h"
#include "wire/lease.h"

/* An order of a launcher from before an upgrade becomes one of today that means the same. BH_CONFLICT: a version that is not
 * spoken. */
int bh_start_take(struct bh_lease_start *start, struct bh_err *err) BH_MUST_USE;

#endif
