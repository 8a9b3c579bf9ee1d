/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

TEST(characters_know_only_ascii)
{
    for (int i = -128; i < 128; i++) {
        char c = (char)i;
        CHECK_EQ(bh_is_digit(c), i >= '0' && i <= '9');
        CHECK_EQ(bh_is_alpha(c), (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z'));
        CHECK_EQ(bh_to_lower(c) != c, i >= 'A' && i <= 'Z');
        CHECK_EQ(bh_is_space(c), i == ' ' || (i >= 9 && i <= 13));
    }
    CHECK_EQ(bh_to_lower('Q'), 'q');
}

TEST(equality)
{
    CHECK(bh_str_eq("a", "a") && !bh_str_eq("a", "A") && !bh_str_eq("a", "ab"));
    CHECK(bh_str_eq(NULL, NULL) && !bh_str_eq(NULL, "") && !bh_str_eq("", NULL));
    CHECK(bh_str_eq_nocase("H200", "h200") && bh_str_eq_nocase("", ""));
    CHECK(!bh_str_eq_nocase("H200", "h2000") && !bh_str_eq_nocase("H2000", "h200"));
    CHECK(!bh_str_eq_nocase("[", "{")); /* 32 apart, but no letters */
}

TEST(beginnings_and_ends)
{
    CHECK(bh_str_starts("gpu-01", "gpu-") && bh_str_starts("a", "") && bh_str_starts("", ""));
    CHECK(!bh_str_starts("gp", "gpu") && !bh_str_starts("", "x"));
    CHECK(bh_str_ends("gpu-01", "-01") && bh_str_ends("a", "") && bh_str_ends("abc", "abc"));
    CHECK(!bh_str_ends("c", "abc") && !bh_str_ends("abcd", "abc"));
}

TEST(glob_by_example)
{
    static const struct {
        const char *pattern, *s;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"**", "anything", true},
        {"?", "", false},
        {"registry.example/acme/*", "registry.example/acme/train:1", true},
        {"registry.example/acme/*", "registry.example/acmex/train:1", false},
        {"nvidia.com/mig-*", "nvidia.com/mig-1g.18gb", true},
        {"a*b*c", "aXbXbXc", true},
        {"a*b*c", "aXbXbX", false},
        {"*.c", ".c", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a*", "a", true},
        {"[a]", "a", false},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        if (bh_str_glob(cases[i].pattern, cases[i].s) != cases[i].match)
            CHECK_STR(cases[i].pattern, cases[i].s);
}

static bool naive_glob(const char *p, const char *s)
{
    if (!*p)
        return !*s;
    if (*p == '*')
        return naive_glob(p + 1, s) || (*s && naive_glob(p, s + 1));
    return *s && (*p == '?' || *p == *s) && naive_glob(p + 1, s + 1);
}

static void draw(struct bh_choice *c, const char *letters, char *buf, uint32_t max)
{
    uint32_t n = bh_choose(c, max + 1);
    for (uint32_t i = 0; i < n; i++)
        buf[i] = letters[bh_choose(c, (uint32_t)strlen(letters))];
    buf[n] = '\0';
}

TEST(glob_agrees_with_the_definition)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint8_t bytes[32];
        char pattern[16], s[16];
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        draw(&c, "ab*?", pattern, 8);
        draw(&c, "ab", s, 10);
        if (bh_str_glob(pattern, s) != naive_glob(pattern, s)) {
            printf("# seed %" PRIu64 "\n", seed);
            CHECK_STR(pattern, s);
        }
    }
}

/* A pattern that takes a backtracking matcher longer than the universe has. */
TEST(glob_is_never_exponential)
{
    char pattern[401], s[20001];
    for (int i = 0; i < 400; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[400] = '\0';
    memset(s, 'a', sizeof(s) - 1);
    s[sizeof(s) - 2] = 'b';
    s[sizeof(s) - 1] = '\0';
    CHECK(!bh_str_glob(pattern, s));
    s[sizeof(s) - 2] = 'a';
    CHECK(bh_str_glob(pattern, s));
}

TEST(distance_by_example)
{
    CHECK_EQ(bh_str_distance("tenants", "tenats", 3), 1);
    CHECK_EQ(bh_str_distance("", "abc", 3), 3);
    CHECK_EQ(bh_str_distance("same", "SAME", 3), 0);
    CHECK_EQ(bh_str_distance("form", "from", 3), 1);
    CHECK_EQ(bh_str_distance("fOrm", "from", 3), 1);
    CHECK_EQ(bh_str_distance("kitten", "sitting", 5), 3);
    CHECK_EQ(bh_str_distance("kitten", "sitting", 2), 3); /* given up */
    CHECK_EQ(bh_str_distance("abcdef", "uvwxyz", 2), 3);
}

TEST(distance_survives_long_words)
{
    char a[200], b[66];
    memset(a, 'a', sizeof(a) - 1);
    a[sizeof(a) - 1] = '\0';
    memset(b, 'a', sizeof(b) - 1);
    b[sizeof(b) - 1] = '\0';
    CHECK_EQ(bh_str_distance(a, a, 3), 4); /* no typing slip is looked for in such words */
    CHECK_EQ(bh_str_distance(b, b, 3), 4);
    b[64] = '\0';
    CHECK_EQ(bh_str_distance(b, b, 3), 0);
    CHECK_EQ(bh_str_distance(b, "a", 70), 63);
}

static unsigned naive_distance(const char *a, size_t n, const char *b, size_t m)
{
    if (!n || !m)
        return (unsigned)(n + m);
    unsigned d = naive_distance(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]);
    unsigned del = naive_distance(a, n - 1, b, m) + 1, ins = naive_distance(a, n, b, m - 1) + 1;
    d = del < d ? del : d;
    d = ins < d ? ins : d;
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        unsigned swap = naive_distance(a, n - 2, b, m - 2) + 1;
        d = swap < d ? swap : d;
    }
    return d;
}

TEST(distance_agrees_with_the_definition_and_is_symmetric)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint8_t bytes[32];
        char a[8], b[8];
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        draw(&c, "abc", a, 6);
        draw(&c, "abc", b, 6);
        unsigned real = naive_distance(a, strlen(a), b, strlen(b));
        for (unsigned limit = 0; limit < 8; limit++) {
            unsigned got = bh_str_distance(a, b, limit);
            CHECK_EQ(got, real <= limit ? real : limit + 1);
            CHECK_EQ(got, bh_str_distance(b, a, limit));
        }
        CHECK_EQ(real == 0, strcmp(a, b) == 0);
    }
}

TEST(nearest_is_a_typing_slip_or_nothing)
{
    static const char *const keys[] = {"tenants", "pools", "fabric", "workloads", "classes", "waivers", "a"};
    size_t n = BH_COUNT_OF(keys);
    CHECK_STR(bh_str_nearest("tenats", keys, n), "tenants");
    CHECK_STR(bh_str_nearest("Pools", keys, n), "pools");
    CHECK_STR(bh_str_nearest("wavier", keys, n), "waivers");
    CHECK_STR(bh_str_nearest("workload", keys, n), "workloads");
    CHECK(bh_str_nearest("elephant", keys, n) == NULL);
    CHECK(bh_str_nearest("b", keys, n) == NULL); /* another letter is another word */
    CHECK(bh_str_nearest("", keys, n) == NULL);
    CHECK(bh_str_nearest("pools", keys, 0) == NULL);
}

TEST(nearest_prefers_the_closest_then_the_first)
{
    static const char *const words[] = {"abcdxy", "abcdxf", "abcdef", "abcdeg"};
    CHECK_STR(bh_str_nearest("abcdef", words, 4), "abcdef");
    CHECK_STR(bh_str_nearest("abcdeh", words, 4), "abcdef");
}

TEST_MAIN
