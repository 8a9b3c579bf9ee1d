/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.h - before a cap is promised: does it hold here?
 *
 * Layouts and numbers are those of a recorded driver; another build of the same branch could differ. So a process of our
 * own goes through the real filter and the real gate, takes memory of a known size by the same calls that programs use,
 * and is refused more. What it was given, what the gate's ledger says and what the driver counts must be one number.
 */
#ifndef BH_WARDEN_SELFTEST_H
#define BH_WARDEN_SELFTEST_H

#include "base/err.h"
#include "warden/driver.h"

#include <stdbool.h>

/*
 * BH_REFUSED: which number was expected and which was seen, and what still works. Once it held it is not done again until
 * the machine or the driver is another (a file in BULKHEAD_RUN_DIR, else /run/bulkhead; for simulated silicon only
 * where that is set). Needs what the gate needs; called before rights are given up.
 */
int bh_selftest(const struct bh_driver *driver, const char *version, struct bh_err *err) BH_MUST_USE;
/* The test itself, whatever is remembered. */
int bh_selftest_now(const struct bh_driver *driver, const char *version, struct bh_err *err) BH_MUST_USE;

/* selftest_memo.c. Not to be trusted, or not there: false. Not to be written: nothing happens. */
bool bh_selftest_remembered(const struct bh_driver *driver, const char *version);
void bh_selftest_remember(const struct bh_driver *driver, const char *version);

#endif
