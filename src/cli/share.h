/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - the words by which a share of the cards' time is asked for, and how what came of it is shown. */
#ifndef BH_CLI_SHARE_H
#define BH_CLI_SHARE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "wire/govern.h"
#include "wire/lease.h"

#include <stdbool.h>

enum { BH_SHARE_WEIGHT = 100, BH_SHARE_WEIGHT_MAX = 10000 };

struct bh_share_words { /* as they were given; NULL: not */
    const char *share, *cap, *floor, *latency, *name;
    const char *command; /* gives the name where none was given */
};
/* weight 0: none of them was given, so nothing is to be held. */
int bh_share_read(const struct bh_share_words *w, struct bh_lease_share *ret, struct bh_err *err) BH_MUST_USE;

/* `25%`: a part of a GPU's time, 0.1% to 100%. A number without the % sign is refused. */
int bh_share_part(const char *text, uint32_t *ret_permille, struct bh_err *err) BH_MUST_USE;

/* `29.7%`, `-0.4%`; sign: `+1.2%` too. */
struct bh_share_text {
    char s[16];
};
const char *bh_share_permille(int32_t permille, bool sign, struct bh_share_text *ret);
const char *bh_share_state(uint32_t state); /* of enum bh_govern_shown: `runs` */
const char *bh_share_mode(uint32_t mode);   /* of enum bh_govern_mode: `turns` */
/* Does it say something of its own work, or tried to? */
bool bh_share_says(const struct bh_govern_row *r);
/* `lease 7 (serve): own rate 812.400 a second, own p50 230 us, own p99 412 us` */
void bh_share_own_text(struct bh_buf *out, const struct bh_govern_row *r);
/* `4711,4712,...`: its processes with channels; where there are none yet, the command itself. Those that do not fit, in the row or
 * in size, are dots. */
void bh_share_pids(const struct bh_govern_row *r, char *ret, size_t size);
/* `GPU 0: the floors come to 270.0%...`, for each card whose floors cannot all be held. Rows are in order of GPUs. */
void bh_share_floors_text(struct bh_buf *out, const struct bh_govern_row *at, size_t n);
/* One row as the members of an object. */
void bh_share_row_json(struct bh_json *j, const struct bh_govern_row *r);

#endif
