/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.h - the words of the policy language: enum bh_trust { BH_TRUST_INTERNAL, ... }, and their text. */
#ifndef BH_CORE_MODEL_VOCAB_H
#define BH_CORE_MODEL_VOCAB_H

#include <stddef.h>

#define BH_WORDS(list) \
    enum bh_##list     \
    {
#define BH_WORD(list, NAME, str) BH_##NAME,
#define BH_WORDS_END(list) \
    BH_N_##list            \
    }                      \
    ;
#include "core/model/vocab.def"
#undef BH_WORDS
#undef BH_WORD
#undef BH_WORDS_END

/* A word list as data, for readers and writers: bh_words_trust.text[BH_TRUST_PARTNER] is "partner". */
struct bh_words {
    const char *const *text;
    size_t n;
};
#define BH_WORDS(list) extern const struct bh_words bh_words_##list;
#define BH_WORD(list, NAME, str)
#define BH_WORDS_END(list)
#include "core/model/vocab.def"
#undef BH_WORDS
#undef BH_WORD
#undef BH_WORDS_END

/* bh_word(trust, t->trust) */
#define bh_word(list, v) (bh_words_##list.text[v])
/* The word's value, or -1. */
int bh_words_find(const struct bh_words *w, const char *text);

#endif
