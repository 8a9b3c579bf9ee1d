/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_busy.h - who has a card when, as the card writes it down: the driver's ring of records, read into a book.
 */
#ifndef BH_WARDEN_DRIVER_BUSY_H
#define BH_WARDEN_DRIVER_BUSY_H

#include "base/err.h"
#include "warden/driver_rm.h"

#include <stddef.h>
#include <stdint.h>

enum { BH_BUSY_NAMES = 3 }; /* how many objects it makes */

struct bh_busy;
/* Begins to watch the card of this subdevice. Its objects are named from first_name on. BH_REFUSED: the driver does not let us. */
int bh_busy_new(const struct bh_rm *rm, uint32_t subdevice, uint32_t first_name, struct bh_busy **ret,
                struct bh_err *err) BH_MUST_USE;
void bh_busy_free(struct bh_busy *b); /* NULL allowed; before its client goes */
/* As busy of struct bh_driver. */
size_t bh_busy_read(struct bh_busy *b, struct bh_driver_busy *ret, size_t max, uint64_t *ret_now_ns);
void bh_busy_ask_seldom(struct bh_busy *b, bool seldom);
/* As unused of struct bh_driver, when it was last read. */
uint32_t bh_busy_unused(const struct bh_busy *b);

#endif
