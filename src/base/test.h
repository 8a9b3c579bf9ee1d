/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h - TEST(name) { ... } registers itself; the binary speaks TAP to meson.
 *
 * A failed CHECK prints what was compared and with which values, marks the test
 * and returns from it. Tests run in the order they stand in the file.
 */
#ifndef BH_BASE_TEST_H
#define BH_BASE_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bh_test {
    const char *name;
    void (*fn)(void);
    struct bh_test *next;
};
extern struct bh_test *bh_tests, **bh_tests_tail;
extern int bh_test_failed;

/* A test runs once: what takes long under a sanitizer is to compile its many comparisons well. Helpers are compiled as ever. (Without
 * one the C library's own checks of lengths want the optimizer.) */
#if !defined(__clang__) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define BH_TEST_PLAIN __attribute__((optimize("O0")))
#else
#define BH_TEST_PLAIN
#endif
#define TEST(n)                                            \
    BH_TEST_PLAIN static void test_##n(void);              \
    __attribute__((constructor)) static void reg_##n(void) \
    {                                                      \
        static struct bh_test t = {#n, test_##n, NULL};    \
        if (!bh_tests_tail)                                \
            bh_tests_tail = &bh_tests;                     \
        *bh_tests_tail = &t;                               \
        bh_tests_tail = &t.next;                           \
    }                                                      \
    static void test_##n(void)

#define CHECK(e)                                             \
    do {                                                     \
        if (!(e)) {                                          \
            bh_test_failed = 1;                              \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #e); \
            return;                                          \
        }                                                    \
    } while (0)

#define CHECK_EQ(a, b)                                                                                      \
    do {                                                                                                    \
        int64_t a_ = (int64_t)(a), b_ = (int64_t)(b);                                                       \
        if (a_ != b_) {                                                                                     \
            bh_test_failed = 1;                                                                             \
            printf("# %s:%d: %s == %s (%" PRId64 " vs %" PRId64 ")\n", __FILE__, __LINE__, #a, #b, a_, b_); \
            return;                                                                                         \
        }                                                                                                   \
    } while (0)

#define CHECK_STR(a, b)                                                                             \
    do {                                                                                            \
        const char *a_ = (a), *b_ = (b);                                                            \
        if (!a_ || !b_ || strcmp(a_, b_) != 0) {                                                    \
            bh_test_failed = 1;                                                                     \
            printf("# %s:%d: %s == %s\n#   left:  %s\n#   right: %s\n", __FILE__, __LINE__, #a, #b, \
                   a_ ? a_ : "(null)", b_ ? b_ : "(null)");                                         \
            return;                                                                                 \
        }                                                                                           \
    } while (0)

/* One test binary per file: this line ends it. */
#define TEST_MAIN                                                                   \
    struct bh_test *bh_tests, **bh_tests_tail;                                      \
    int bh_test_failed;                                                             \
    int main(void)                                                                  \
    {                                                                               \
        int n = 0, bad = 0;                                                         \
        for (struct bh_test *t = bh_tests; t; t = t->next) {                        \
            bh_test_failed = 0;                                                     \
            t->fn();                                                                \
            bad |= bh_test_failed;                                                  \
            printf("%s %d - %s\n", bh_test_failed ? "not ok" : "ok", ++n, t->name); \
            (void)fflush(stdout); /* a test that forks must not say it twice */     \
        }                                                                           \
        printf("1..%d\n", n);                                                       \
        return bad || n == 0;                                                       \
    }

#endif
