/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stated.h - the number that a comment or a description claims a quota is.
 *
 * People write `# at most five GPUs` beside a quota and later change only one of the
 * two. This finds the claim, so that it can be held against what is enforced. It reads
 * one text and looks for a number that counts devices; amounts of memory or time,
 * percentages, dates and versions are never taken for one.
 */
#ifndef BH_CONF_STATED_H
#define BH_CONF_STATED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The first number of text, in digits or in words, that stands within three words before
 * GPUs, slices, instances, replicas, devices or cards, or within three words after `limit`,
 * `max`, `up to`, `quota` and their kin (six when a `to` stands between). In thousandths. False: there is none.
 */
bool bh_stated_scan(const char *text, uint64_t *ret_milli);

#endif
