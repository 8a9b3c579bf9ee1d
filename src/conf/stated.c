/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/stated.h"

#include "base/mem.h"
#include "base/str.h"

#include <stddef.h>

enum {
    WINDOW = 3,
    WINDOW_TO = 6,
    WHOLE_DIGITS_MAX = 9,
    DECIMALS = 3,
    YEAR_DIGITS = 4,
    YEAR_FIRST = 1990,
    YEAR_LAST = 2100,
};

/* A word as it stands in the text, without the punctuation around it. */
struct word {
    const char *p; /* NULL: none */
    size_t n;
    bool ends; /* a sentence or a clause ends with it */
};

static bool is_word_char(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c) || (unsigned char)c >= 0x80;
}

static bool word_is(const struct word *w, const char *lower)
{
    size_t i = 0;
    while (i < w->n && lower[i] && bh_to_lower(w->p[i]) == lower[i])
        i++;
    return i == w->n && !lower[i];
}

static bool word_starts(const struct word *w, const char *lower)
{
    size_t i = 0;
    while (i < w->n && lower[i] && bh_to_lower(w->p[i]) == lower[i])
        i++;
    return !lower[i];
}

static bool word_among(const struct word *w, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (word_is(w, list[i]))
            return true;
    return false;
}
#define AMONG(w, list) word_among(w, list, BH_COUNT_OF(list))

/*
 * The word at or after s, and where the text goes on. `#12`, `$4` and `-5` keep their sign and
 * `50%` its percent, so that none of them reads as a bare number.
 */
static const char *next_word(const char *s, struct word *ret)
{
    *ret = (struct word){0};
    while (!ret->p) {
        while (bh_is_space(*s))
            s++;
        if (!*s)
            return s;
        const char *start = s;
        while (*s && !bh_is_space(*s))
            s++;
        const char *end = s;
        while (start < end && strchr("([{<\"'`*_~:=", *start))
            start++;
        for (; end > start && !is_word_char(end[-1]) && end[-1] != '%'; end--)
            ret->ends |= strchr(".;!?", end[-1]) != NULL;
        if (end > start) {
            ret->p = start;
            ret->n = (size_t)(end - start);
        }
    }
    if (word_is(ret, "max"))
        ret->ends = false; /* `max. 5` */
    return s;
}

static bool counts_devices(const struct word *w)
{
    static const char *const stems[] = {"gpu", "slice", "instance", "replica", "device", "card"};
    for (size_t i = 0; i < BH_COUNT_OF(stems); i++)
        if (word_starts(w, stems[i]))
            return true;
    return false;
}

static bool limits(const struct word *w)
{
    static const char *const words[] = {
        "limit", "limits", "limited", "limiting", "max",    "maximum", "most",   "up",
        "cap",   "caps",   "capped",  "quota",    "quotas", "allow",   "allows", "allowed",
    };
    return AMONG(w, words);
}

/* Right after a number, these say that it counts something else. */
static bool measures_else(const struct word *w)
{
    static const char *const words[] = {
        "%",        "percent",   "b",          "kb",         "mb",        "gb",       "tb",     "kib",
        "mib",      "gib",       "tib",        "gi",         "mi",        "ki",       "ti",     "gigabytes",
        "ms",       "s",         "sec",        "secs",       "second",    "seconds",  "min",    "mins",
        "minute",   "minutes",   "h",          "hr",         "hrs",       "hour",     "hours",  "day",
        "days",     "week",      "weeks",      "month",      "months",    "year",     "years",  "w",
        "kw",       "watt",      "watts",      "mhz",        "ghz",       "core",     "cores",  "cpu",
        "cpus",     "sm",        "sms",        "node",       "nodes",     "host",     "hosts",  "pod",
        "pods",     "job",       "jobs",       "user",       "users",     "team",     "teams",  "tenant",
        "tenants",  "pool",      "pools",      "namespaces", "namespace", "people",   "person", "processes",
        "workload", "workloads", "containers", "container",  "times",     "requests", "euro",   "eur",
        "usd",      "thousand",  "million",
    };
    return AMONG(w, words);
}

/* Right before a number, these say that it is a name, a version or a year. */
static bool names_else(const struct word *w)
{
    static const char *const words[] = {
        "driver",     "drivers", "version", "versions", "branch", "release",  "cuda",       "issue", "ticket",
        "rule",       "step",    "phase",   "since",    "until",  "year",     "port",       "line",  "gen",
        "generation", "year's",  "was",     "were",     "former", "formerly", "previously",
    };
    return AMONG(w, words);
}

/* `5`, `0.5`, `4x`; nothing may follow, so `80GB`, `580.159.03`, `2026-12-31` and `1g.18gb` are none. */
static bool digits(const char *p, size_t n, uint64_t *ret_milli)
{
    uint64_t v = 0;
    size_t i = 0, decimals = 0;
    while (i < n && i <= WHOLE_DIGITS_MAX && bh_is_digit(p[i]))
        v = v * 10 + (uint64_t)(p[i++] - '0');
    if (i == 0 || i > WHOLE_DIGITS_MAX)
        return false;
    if (i + 1 < n && p[i] == '.' && bh_is_digit(p[i + 1]))
        for (i++; i < n && bh_is_digit(p[i]) && decimals < DECIMALS; decimals++)
            v = v * 10 + (uint64_t)(p[i++] - '0');
    if (i < n && (p[i] == 'x' || p[i] == 'X'))
        i++;
    for (; decimals < DECIMALS; decimals++)
        v *= 10;
    *ret_milli = v;
    return i == n;
}

static bool spelled(const char *p, size_t n, uint64_t *ret)
{
    static const struct {
        const char *word;
        uint8_t value;
    } table[] = {
        {"zero", 0},     {"one", 1},      {"two", 2},        {"three", 3},     {"four", 4},
        {"five", 5},     {"six", 6},      {"seven", 7},      {"eight", 8},     {"nine", 9},
        {"ten", 10},     {"eleven", 11},  {"twelve", 12},    {"thirteen", 13}, {"fourteen", 14},
        {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19},
        {"twenty", 20},  {"thirty", 30},  {"forty", 40},     {"fifty", 50},    {"sixty", 60},
        {"seventy", 70}, {"eighty", 80},  {"ninety", 90},    {"hundred", 100}, {"dozen", 12},
    };
    struct word w = {p, n, false};
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        if (word_is(&w, table[i].word)) {
            *ret = table[i].value;
            return true;
        }
    return false;
}

/* A word that is a number; `twenty-five` is one. */
static bool number(const struct word *w, uint64_t *ret_milli)
{
    uint64_t tens, ones;
    if (digits(w->p, w->n, ret_milli))
        return true;
    if (spelled(w->p, w->n, &tens)) {
        *ret_milli = tens * 1000;
        return true;
    }
    const char *dash = memchr(w->p, '-', w->n);
    if (!dash || !spelled(w->p, (size_t)(dash - w->p), &tens) || tens < 20 ||
        !spelled(dash + 1, (size_t)(w->p + w->n - dash - 1), &ones) || ones > 9)
        return false;
    *ret_milli = (tens + ones) * 1000;
    return true;
}

/* A number that may take two words, `twenty five` or `two hundred`. s, and what is returned, stand after it. */
static const char *number_phrase(const char *s, const struct word *w, uint64_t *ret_milli)
{
    struct word next;
    uint64_t more;
    if (!number(w, ret_milli))
        return NULL;
    const char *after = next_word(s, &next);
    if (w->ends || !next.p || !spelled(next.p, next.n, &more))
        return s;
    bool tens =
        *ret_milli >= 20000 && *ret_milli < 100000 && *ret_milli % 10000 == 0 && !bh_is_digit(w->p[0]);
    bool dozen = word_is(&next, "dozen");
    if ((more == 100 || dozen) && *ret_milli < 100000)
        *ret_milli *= more;
    else if (tens && more >= 1 && more <= 9)
        *ret_milli += more * 1000;
    else
        return s;
    return after;
}

/* `five-GPU` and `4-slice`: the number and the thing in one word. */
static bool compound(const struct word *w, uint64_t *ret_milli)
{
    const char *dash = memchr(w->p, '-', w->n);
    if (!dash)
        return false;
    struct word head = {w->p, (size_t)(dash - w->p), false};
    struct word tail = {dash + 1, (size_t)(w->p + w->n - dash - 1), false};
    return head.n && number(&head, ret_milli) && counts_devices(&tail) && !memchr(tail.p, '-', tail.n);
}

/* `200 GPU hours` and `8 GPU-hours` measure time, `20 GPU memory units` memory. */
static bool is_rate(const struct word *device, const char *rest)
{
    static const char *const words[] = {"hour", "hours", "h", "hrs", "days", "minutes", "seconds", "memory"};
    struct word next;
    if (memchr(device->p, '-', device->n) || memchr(device->p, '/', device->n))
        return true;
    (void)next_word(rest, &next);
    return !device->ends && next.p && AMONG(&next, words);
}

/* Is it devices that the number before s counts? -1: clearly something else. */
static int counted(const char *s)
{
    struct word w;
    for (unsigned i = 0; i < WINDOW; i++) {
        s = next_word(s, &w);
        if (!w.p || word_is(&w, "per"))
            return 0;
        if (i == 0 && measures_else(&w))
            return -1;
        if (counts_devices(&w))
            return is_rate(&w, s) ? -1 : 1;
        if (w.ends)
            return 0;
    }
    return 0;
}

/* before[0] is the word right before the number. A `to` there may reach further: `limits the whole team to 5`. */
static bool limited(const struct word before[WINDOW_TO])
{
    unsigned reach = before[0].p && word_is(&before[0], "to") ? WINDOW_TO : WINDOW;
    for (unsigned i = 0; i < reach && before[i].p && !before[i].ends; i++)
        if (limits(&before[i]))
            return true;
    return false;
}

/* Does the word before a number say that it counts no devices? */
static bool is_named(const struct word *w, const struct word *before)
{
    static const char *const pronouns[] = {"each", "this", "that", "every", "any", "which", "no", "another"};
    if (!before->p || before->ends)
        return false;
    return names_else(before) || (word_is(w, "one") && AMONG(before, pronouns));
}

/* `Q3 2026 GPU budget`: four digits that may be a year are one, unless the text calls them a limit. */
static bool is_year(const struct word *w, uint64_t milli, const struct word before[WINDOW_TO])
{
    static const char *const periods[] = {
        "q1",       "q2",       "q3",    "q4",  "h1",   "h2",   "fy",     "quarter",   "january",
        "february", "march",    "april", "may", "june", "july", "august", "september", "october",
        "november", "december", "jan",   "feb", "mar",  "apr",  "jun",    "jul",       "aug",
        "sep",      "sept",     "oct",   "nov", "dec",  "in",   "for",
    };
    if (w->n != YEAR_DIGITS || milli < YEAR_FIRST * UINT64_C(1000) || milli > YEAR_LAST * UINT64_C(1000))
        return false;
    return (before[0].p && !before[0].ends && AMONG(&before[0], periods)) || !limited(before);
}

/* The number that w begins, if it counts devices; *s, after w, is left behind it. */
static bool stated_at(const char **s, const struct word *w, const struct word before[WINDOW_TO],
                      uint64_t *ret_milli)
{
    if (compound(w, ret_milli))
        return true;
    const char *after = is_named(w, &before[0]) ? NULL : number_phrase(*s, w, ret_milli);
    if (!after || is_year(w, *ret_milli, before))
        return false;
    int what = w->ends ? 0 : counted(after);
    if (what < 0 || (what == 0 && !limited(before)))
        return false;
    *s = after;
    return true;
}

size_t bh_stated_scan(const char *text, uint64_t *ret_milli, size_t max)
{
    struct word before[WINDOW_TO] = {0}, w;
    size_t n = 0;
    for (const char *s = next_word(text, &w); w.p && n < max; s = next_word(s, &w)) {
        uint64_t milli;
        if (stated_at(&s, &w, before, &milli))
            ret_milli[n++] = milli;
        memmove(before + 1, before, sizeof(before) - sizeof(before[0]));
        before[0] = w;
    }
    return n;
}

bool bh_stated_read(const char *text, struct bh_stated *ret)
{
    uint64_t milli[BH_STATED_ALSO_MAX + 1];
    size_t n = bh_stated_scan(text, milli, BH_COUNT_OF(milli));
    if (n == 0)
        return false;
    ret->milli = milli[0];
    ret->n_also = (uint8_t)(n - 1);
    memcpy(ret->also, milli + 1, (n - 1) * sizeof(*milli));
    return true;
}
