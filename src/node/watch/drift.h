/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drift.h - is this the machine that was written down?
 *
 * Of each card the store keeps what it was when somebody last agreed to it: model, memory, place, links, ECC, firmware. A
 * difference keeps the card from new leases, with both values and the command that accepts it (`bulkhead resume`). Firmware is
 * recorded and does not hold a card up; a driver of another version is tested with canaries again before GPUs are shared.
 */
#ifndef BH_NODE_WATCH_DRIFT_H
#define BH_NODE_WATCH_DRIFT_H

#include "base/buf.h"
#include "gpu/gpu.h"

struct bh_daemon;

/* `model=H100-80GB-SXM\nmemory_mib=81559\n...`: a line for each fact that is known. */
void bh_drift_write(struct bh_buf *out, const struct bh_gpu_device *d);
/*
 * What is different, as words, into two buffers: the shape of the card, and its firmware. A fact that is unknown on either
 * side is no difference. other_driver: another driver counts memory in another way.
 */
void bh_drift_compare(const char *before, const struct bh_gpu_device *now, bool other_driver,
                      struct bh_buf *ret_shape, struct bh_buf *ret_firmware);

/* At the start, before the driver is tested: a driver of another version is written down, and its test is due again. */
int bh_drift_driver(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* At the start: cards that are gone are named, the others looked at. */
void bh_drift_start(struct bh_daemon *d);
/* After each look. */
void bh_drift_look(struct bh_daemon *d, const struct bh_gpu_snapshot *now);
/* What it is now is what it should be. In the caller's transaction. */
int bh_drift_write_accept(struct bh_daemon *d, const struct bh_gpu_device *now,
                          struct bh_err *err) BH_MUST_USE;

/* `3 advisories open, the worst CVE-... (8.8); 580.159.03 has the fixes, the oldest for 120 days`; NULL: nothing is known. */
const char *bh_drift_exposure(struct bh_arena *a, const char *driver, int32_t day, bool *ret_open);

#endif
