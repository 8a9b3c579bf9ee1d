/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd_parse.h"

#include "base/str.h"
#include "gpu/gpu.h"

#include <string.h>

static bool is_hex(char c)
{
    char l = bh_to_lower(c);
    return bh_is_digit(c) || (l >= 'a' && l <= 'f');
}

static unsigned hex_value(char c)
{
    return bh_is_digit(c) ? (unsigned)(c - '0') : (unsigned)(bh_to_lower(c) - 'a') + 10;
}

static size_t hex_run(const char *s)
{
    size_t n = 0;
    while (is_hex(s[n]))
        n++;
    return n;
}

bool bh_amd_uevent(const char *text, const char *key, char *buf, size_t size)
{
    size_t n_key = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (!bh_str_starts(line, key) || line[n_key] != '=')
            continue;
        const char *value = line + n_key + 1;
        size_t n = strcspn(value, "\r\n");
        if (!n || n >= size)
            return false;
        memcpy(buf, value, n);
        buf[n] = '\0';
        return true;
    }
    return false;
}

bool bh_amd_is_pci(const char *s)
{
    size_t domain = hex_run(s);
    if (domain < 4 || domain > 8 || s[domain] != ':')
        return false;
    s += domain + 1;
    return hex_run(s) == 2 && s[2] == ':' && hex_run(s + 3) == 2 && s[5] == '.' && s[6] >= '0' &&
           s[6] <= '7' && s[7] == '\0';
}

bool bh_amd_unique_id(const char *text, char ret[17])
{
    size_t n = hex_run(text);
    if (!n || n > 16 || text[n] != '\0' || strspn(text, "0") == n)
        return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = bh_to_lower(text[i]);
    ret[n] = '\0';
    return true;
}

bool bh_amd_modes(const char *text, char ret[BH_AMD_MODES_MAX])
{
    size_t used = 0;
    for (const char *s = text;;) {
        size_t n = 0;
        s += strspn(s, " ,\t\r\n");
        if (!*s)
            break;
        while (bh_is_digit(s[n]) || (bh_is_alpha(s[n]) && !bh_is_lower(s[n])))
            n++;
        if (!n || used + n + 3 > BH_AMD_MODES_MAX)
            return false;
        memcpy(ret + used, used ? ", " : "", used ? 2 : 0);
        used += used ? 2 : 0;
        memcpy(ret + used, s, n);
        used += n;
        s += n;
        if (*s && !strchr(" ,\t\r\n", *s))
            return false;
    }
    ret[used] = '\0';
    return used > 0;
}

size_t bh_amd_counts(const char *text, uint8_t ret[BH_AMD_NODES_MAX])
{
    size_t n = 0;
    for (const char *s = text + strspn(text, " \t\r\n"); *s; s += strspn(s, " \t\r\n")) {
        if (hex_run(s) != 2 || n == BH_AMD_NODES_MAX)
            return 0;
        ret[n] = (uint8_t)(hex_value(s[0]) << 4 | hex_value(s[1]));
        if (ret[n++] > BH_AMD_LINKS_MAX)
            return 0;
        s += 2;
        if (*s && !bh_is_space(*s))
            return 0;
    }
    return n;
}

int bh_amd_isolation(const char *text)
{
    /* by the kernel's number; each row is worse than those below it */
    static const struct {
        const char *numbers;
        int is;
    } table[] = {{"0", BH_ISOLATION_OFF}, {"3", BH_ISOLATION_UNWIPED}, {"12", BH_ISOLATION_ON}};
    size_t worst = BH_COUNT_OF(table);
    for (const char *s = text + strspn(text, " \t\r\n"); *s; s += strspn(s, " \t\r\n")) {
        size_t i = 0;
        while (i < BH_COUNT_OF(table) && !strchr(table[i].numbers, *s))
            i++;
        if (i == BH_COUNT_OF(table) || (s[1] && !bh_is_space(s[1])))
            return -1;
        worst = i < worst ? i : worst;
        s++;
    }
    return worst < BH_COUNT_OF(table) ? table[worst].is : -1;
}
