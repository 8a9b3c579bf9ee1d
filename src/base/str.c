/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <string.h>

bool bh_str_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool bh_str_eq_nocase(const char *a, const char *b)
{
    while (*a && bh_to_lower(*a) == bh_to_lower(*b)) {
        a++;
        b++;
    }
    return bh_to_lower(*a) == bh_to_lower(*b);
}

bool bh_str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool bh_str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

/* Only the latest star is ever retried, which is enough: an earlier star that
 * took more would leave the later one less to match. */
bool bh_str_glob(const char *pattern, const char *s)
{
    const char *star = NULL, *retry = NULL;
    while (*s) {
        if (*pattern == '*') {
            star = pattern++;
            retry = s;
        } else if (*pattern == '?' || *pattern == *s) {
            pattern++;
            s++;
        } else if (star) {
            pattern = star + 1;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

enum { WORD_MAX = 64 };

static bool swapped(const char *a, const char *b)
{
    return bh_to_lower(a[0]) == bh_to_lower(b[1]) && bh_to_lower(a[1]) == bh_to_lower(b[0]);
}

unsigned bh_str_distance(const char *a, const char *b, unsigned limit)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned two[WORD_MAX + 1], prev[WORD_MAX + 1], cur[WORD_MAX + 1], prev_min = 0;

    if (n > WORD_MAX || m > WORD_MAX || (n > m ? n - m : m - n) > limit)
        return limit + 1;
    for (size_t j = 0; j <= m; j++)
        prev[j] = two[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned row_min = cur[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned d = prev[j - 1] + (bh_to_lower(a[i - 1]) != bh_to_lower(b[j - 1]));
            if (prev[j] + 1 < d)
                d = prev[j] + 1;
            if (cur[j - 1] + 1 < d)
                d = cur[j - 1] + 1;
            /* two letters swapped is one slip of the fingers */
            if (i > 1 && j > 1 && swapped(a + i - 2, b + j - 2) && two[j - 2] + 1 < d)
                d = two[j - 2] + 1;
            cur[j] = d;
            row_min = d < row_min ? d : row_min;
        }
        /* a swap reaches back over one row, so two rows past the limit end it */
        if (row_min > limit && prev_min > limit)
            return limit + 1;
        prev_min = row_min;
        memcpy(two, prev, (m + 1) * sizeof(two[0]));
        memcpy(prev, cur, (m + 1) * sizeof(prev[0]));
    }
    return prev[m] <= limit ? prev[m] : limit + 1;
}

const char *bh_str_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strlen(word);
    unsigned limit = len <= 1 ? 0 : len <= 3 ? 1 : len <= 6 ? 2 : 3;
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned d = bh_str_distance(word, candidates[i], limit);
        if (d <= limit) {
            best = candidates[i];
            if (d == 0)
                break;
            limit = d - 1;
        }
    }
    return best;
}

size_t bh_utf8_len(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}
