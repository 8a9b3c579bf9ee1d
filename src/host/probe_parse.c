/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probe_parse.h"

#include "base/str.h"

#include <string.h>

/* Without a comment behind it and without quotes around it. */
static struct bh_span value_of(const char *at, size_t n)
{
    struct bh_span v = bh_span_trim(at, n);
    if (v.n >= 2 && (v.at[0] == '"' || v.at[0] == '\'')) {
        const char *end = memchr(v.at + 1, v.at[0], v.n - 1);
        if (end)
            return (struct bh_span){v.at + 1, (size_t)(end - v.at - 1)};
    }
    for (size_t i = 1; i < v.n; i++)
        if (v.at[i] == '#' && bh_is_space(v.at[i - 1]))
            return bh_span_trim(v.at, i);
    return v;
}

bool bh_pairs_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value)
{
    while (text[*pos]) {
        const char *line = text + *pos;
        size_t n = strcspn(line, "\n");
        *pos += n + (line[n] == '\n');
        struct bh_span whole = bh_span_trim(line, n);
        const char *equals = whole.n && *whole.at != '#' ? memchr(whole.at, '=', whole.n) : NULL;
        if (!equals)
            continue;
        struct bh_span key = bh_span_trim(whole.at, (size_t)(equals - whole.at));
        if (!key.n)
            continue;
        *ret_key = key;
        *ret_value = value_of(equals + 1, whole.n - (size_t)(equals + 1 - whole.at));
        return true;
    }
    return false;
}

bool bh_span_eq_nocase(struct bh_span s, const char *text)
{
    if (s.n != strlen(text))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (bh_to_lower(s.at[i]) != bh_to_lower(text[i]))
            return false;
    return true;
}

struct bh_span bh_pairs_find(const char *text, const char *key)
{
    struct bh_span found = {NULL, 0}, k, v;
    for (size_t pos = 0; bh_pairs_next(text, &pos, &k, &v);)
        if (bh_span_eq_nocase(k, key))
            found = v;
    return found;
}

bool bh_span_lists(struct bh_span s, const char *word)
{
    for (size_t from = 0; from < s.n;) {
        const char *comma = memchr(s.at + from, ',', s.n - from);
        size_t n = comma ? (size_t)(comma - s.at) - from : s.n - from;
        if (bh_span_eq_nocase(bh_span_trim(s.at + from, n), word))
            return true;
        from += n + 1;
    }
    return false;
}

bool bh_span_yes(struct bh_span s)
{
    static const char *const words[] = {"yes", "true", "on", "1", "y"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (bh_span_eq_nocase(s, words[i]))
            return true;
    return false;
}

bool bh_meminfo_bytes(const char *text, const char *key, uint64_t *ret)
{
    size_t k = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, key, k) != 0 || line[k] != ':')
            continue;
        const char *at = line + k + 1;
        uint64_t v = 0;
        while (*at == ' ')
            at++;
        if (!bh_is_digit(*at))
            return false;
        for (; bh_is_digit(*at); at++) {
            v = v * 10 + (uint64_t)(*at - '0');
            if (v > UINT64_MAX / 20480)
                return false;
        }
        *ret = v * 1024;
        return strncmp(at, " kB", 3) == 0;
    }
    return false;
}

bool bh_json_says_true(const char *text, const char *key)
{
    size_t k = strlen(key);
    for (const char *at = strchr(text, '"'); at; at = strchr(at + 1, '"')) {
        if (strncmp(at + 1, key, k) != 0 || at[k + 1] != '"')
            continue;
        const char *v = at + k + 2;
        v += strspn(v, " \t\r\n");
        if (*v != ':')
            continue;
        v++;
        v += strspn(v, " \t\r\n");
        if (strncmp(v, "true", 4) == 0)
            return true;
    }
    return false;
}

size_t bh_nvidia_minors(const char *text, bool set[BH_NODE_MINORS_MAX])
{
    static const char name[] = "/dev/nvidia";
    size_t n = 0;
    for (const char *at = strstr(text, name); at; at = strstr(at, name)) {
        unsigned minor = 0, digits = 0;
        at += sizeof(name) - 1;
        for (; bh_is_digit(*at) && digits < 4; at++, digits++)
            minor = minor * 10 + (unsigned)(*at - '0');
        if (!digits || bh_is_digit(*at) || minor >= BH_NODE_MINORS_MAX || set[minor])
            continue;
        set[minor] = true;
        n++;
    }
    return n;
}
