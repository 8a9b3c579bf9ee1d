/* SPDX-License-Identifier: Apache-2.0 */
/* cap.h - the words by which a lease's cap is given, read and judged the same way by every verb that takes them. */
#ifndef BH_CLI_CAP_H
#define BH_CLI_CAP_H

#include "base/err.h"

#include <stdint.h>

/* No cap: more than any card has, and little enough to be added up. */
#define BH_CAP_NONE (UINT64_C(1) << 42)

/* What --view takes, by enum bh_lease_view; NULL-terminated. */
extern const char *const bh_cap_views[];

/* `10GiB`, as --memory has it; what no program can start with is refused. verb: who asks; NULL memory: it was not given. */
int bh_cap_read(const char *verb, const char *memory, uint64_t *ret_bytes, struct bh_err *err) BH_MUST_USE;
/* --tick; NULL: not given, 0. */
int bh_cap_read_tick(const char *tick, uint32_t *ret_ms, struct bh_err *err) BH_MUST_USE;
/* --view, which the parser has found among bh_cap_views; NULL: not given, the slice. */
uint32_t bh_cap_read_view(const char *view);
/* BH_REFUSED: no card of this machine is that large, so it holds nothing. Cards that are not known are not judged. */
int bh_cap_check_cards(uint64_t cap_bytes, struct bh_err *err) BH_MUST_USE;

#endif
