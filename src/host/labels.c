/* SPDX-License-Identifier: Apache-2.0 */
#include "host/labels.h"

#include "base/str.h"

#include <string.h>

enum { NAME_MAX_ = 63, PREFIX_MAX = 253 };

static bool is_edge(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c);
}

/* Letters, digits, `.`, `_`, `-`; a letter or digit at both ends. */
static bool is_name(const char *s, size_t n, size_t max)
{
    if (!n || n > max || !is_edge(s[0]) || !is_edge(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_edge(s[i]) && !strchr("._-", s[i]))
            return false;
    return true;
}

static bool is_key(const char *s, size_t n)
{
    const char *slash = memchr(s, '/', n);
    if (!slash)
        return is_name(s, n, NAME_MAX_);
    size_t prefix = (size_t)(slash - s);
    return is_name(s, prefix, PREFIX_MAX) && is_name(slash + 1, n - prefix - 1, NAME_MAX_);
}

bool bh_labels_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value,
                    size_t *bad)
{
    while (text[*pos]) {
        const char *line = text + *pos, *end = line + strcspn(line, "\n");
        *pos = (size_t)(end - text) + (*end == '\n');
        while (line < end && bh_is_space(*line))
            line++;
        while (end > line && bh_is_space(end[-1]))
            end--;
        if (line == end || *line == '#')
            continue;
        const char *equals = memchr(line, '=', (size_t)(end - line));
        const char *key_end = equals ? equals : end;
        struct bh_span value = {"true", 4};
        if (equals)
            value = (struct bh_span){equals + 1, (size_t)(end - equals) - 1};
        if (is_key(line, (size_t)(key_end - line)) && (!value.n || is_name(value.at, value.n, NAME_MAX_))) {
            *ret_key = (struct bh_span){line, (size_t)(key_end - line)};
            *ret_value = value;
            return true;
        }
        ++*bad;
    }
    return false;
}
