/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - what a text says, as far as a rule may take it at its word. Private to core/policy. */
#ifndef BH_CORE_POLICY_WORDS_H
#define BH_CORE_POLICY_WORDS_H

#include <stdbool.h>

/*
 * Does the text claim the phrase? Whole words, letter case ignored, and not where a "no", "not",
 * "never" or "without" stands within the three words before it. NULL claims nothing.
 */
bool bh_claims(const char *text, const char *phrase);
/* The phrase anywhere, letter case ignored. */
bool bh_mentions(const char *text, const char *phrase);

#endif
