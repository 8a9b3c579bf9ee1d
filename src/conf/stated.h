/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stated.h - the numbers that a comment or a description claims a quota is.
 *
 * People write `# at most five GPUs` beside a quota and later change only one of the
 * two. This finds the claims, so that they can be held against what is enforced. It reads
 * one text and looks for numbers that count devices; amounts of memory or time,
 * percentages, dates, years and versions are never taken for one.
 */
#ifndef BH_CONF_STATED_H
#define BH_CONF_STATED_H

#include "core/model/policy.h"

/*
 * The numbers of text, in digits or in words, that stand within three words before GPUs,
 * slices, instances, replicas, devices or cards, or within three words after `limit`, `max`,
 * `up to`, `quota` and their kin (six when a `to` stands between). In thousandths, in the order
 * of the text, at most `max` of them. Returns how many.
 */
size_t bh_stated_scan(const char *text, uint64_t *ret_milli, size_t max);

/* The same into the numbers of *ret; its words and place are the caller's. False: there is none. */
bool bh_stated_read(const char *text, struct bh_stated *ret);

#endif
