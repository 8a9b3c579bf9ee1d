/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/words.h"

#include "base/str.h"

#include <string.h>

static bool starts_nocase(const char *s, const char *phrase)
{
    for (; *phrase; s++, phrase++)
        if (bh_to_lower(*s) != bh_to_lower(*phrase))
            return false;
    return true;
}

static bool in_word(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c);
}

bool bh_mentions(const char *text, const char *phrase)
{
    for (; text && *text; text++)
        if (starts_nocase(text, phrase))
            return true;
    return false;
}

/* Is one of the three words before `at` a negation? */
static bool negated(const char *text, const char *at)
{
    static const char *const no[] = {"no", "not", "never", "without", "isn't", "nor"};
    const char *p = at;
    for (int word = 0; word < 3; word++) {
        while (p > text && !in_word(p[-1]) && p[-1] != '.')
            p--;
        const char *end = p;
        while (p > text && (in_word(p[-1]) || p[-1] == '\''))
            p--;
        if (p == end)
            return false;
        for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
            if (strlen(no[i]) == (size_t)(end - p) && starts_nocase(p, no[i]))
                return true;
    }
    return false;
}

bool bh_claims(const char *text, const char *phrase)
{
    size_t n = strlen(phrase);
    for (const char *p = text; p && *p; p++)
        if (starts_nocase(p, phrase) && (p == text || !in_word(p[-1])) && !in_word(p[n]) && !negated(text, p))
            return true;
    return false;
}
