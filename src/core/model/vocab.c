/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/vocab.h"

#include <string.h>

#define BH_WORDS(list)           static const char *const list##_text[] = {
#define BH_WORD(list, NAME, str) str,
#define BH_WORDS_END(list) \
    }                      \
    ;                      \
    const struct bh_words bh_words_##list = {list##_text, sizeof(list##_text) / sizeof(list##_text[0])};
#include "core/model/vocab.def"

int bh_words_find(const struct bh_words *w, const char *text)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->text[i], text) == 0)
            return (int)i;
    return -1;
}
