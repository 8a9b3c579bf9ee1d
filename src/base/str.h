/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - small questions about text: locale-free, allocation-free. */
#ifndef BH_BASE_STR_H
#define BH_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

static inline bool bh_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool bh_is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static inline bool bh_is_alpha(char c)
{
    return bh_is_lower(c) || (c >= 'A' && c <= 'Z');
}
static inline bool bh_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline char bh_to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool bh_str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool bh_str_eq_nocase(const char *a, const char *b);
bool bh_str_starts(const char *s, const char *prefix);
bool bh_str_ends(const char *s, const char *suffix);
/* `*` matches any run, `?` one character. Linear in practice, never exponential. */
bool bh_str_glob(const char *pattern, const char *s);

/* Edit distance, given up (and `limit + 1` returned) once it must pass limit. */
unsigned bh_str_distance(const char *a, const char *b, unsigned limit);
/* The candidate nearest to word, or NULL when none is near enough to be a typing slip. */
const char *bh_str_nearest(const char *word, const char *const *candidates, size_t n);

/* Length of the UTF-8 sequence at s (NUL-terminated), or 0 when it is malformed, overlong or a surrogate. */
size_t bh_utf8_len(const unsigned char *s);

#endif
