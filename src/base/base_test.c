/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, memory and vectors, arenas, maps, buffers and the generator of choices. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/choice.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/test.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* ---- err ---- */

TEST(codes_have_text_status_and_exit)
{
    CHECK_STR(bh_code_str(BH_OK), "ok");
    CHECK_EQ(bh_code_http(BH_OK), 200);
    CHECK_EQ(bh_code_exit(BH_OK), 0);
    CHECK_STR(bh_code_str(BH_INVALID), "invalid");
    CHECK_EQ(bh_code_http(BH_NOT_FOUND), 404);
    CHECK_EQ(bh_code_exit(BH_REFUSED), 1);
    CHECK_STR(bh_code_str(BH_SYSTEM), "system");
}

TEST(unknown_codes_read_as_the_internal_failure)
{
    static const int odd[] = {
        1, -1, 42, BH_CODE_BASE_, BH_CODE_BASE_ - 1, BH_UNKNOWN_CALLER + 1, INT32_MAX, -INT32_MAX,
    };
    for (size_t i = 0; i < BH_COUNT_OF(odd); i++) {
        CHECK_STR(bh_code_str(odd[i]), "system");
        CHECK_EQ(bh_code_http(odd[i]), 500);
        CHECK_EQ(bh_code_exit(odd[i]), 70);
    }
}

TEST(fail_records_and_returns)
{
    struct bh_err err;
    CHECK_EQ(bh_fail(&err, BH_QUOTA, "need %d, %d free", 3, 1), BH_QUOTA);
    CHECK_EQ(err.code, BH_QUOTA);
    CHECK_STR(err.msg, "need 3, 1 free");
    CHECK_EQ(bh_wrap(&err, err.code, "tenant '%s'", "blue"), BH_QUOTA);
    CHECK_STR(err.msg, "tenant 'blue': need 3, 1 free");
    CHECK_EQ(bh_fail(NULL, BH_DENIED, "not read"), BH_DENIED);
    CHECK_EQ(bh_wrap(NULL, BH_DENIED, "not read"), BH_DENIED);
}

TEST(long_messages_are_cut_never_overrun)
{
    struct bh_err err;
    char text[2000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK_EQ(bh_fail(&err, BH_INVALID, "%s", text), BH_INVALID);
    CHECK_EQ(strlen(err.msg), sizeof(err.msg) - 1);
    CHECK_EQ(bh_wrap(&err, BH_INVALID, "%s", text), BH_INVALID);
    CHECK_EQ(strlen(err.msg), sizeof(err.msg) - 1);
    CHECK_EQ(bh_fail(&err, BH_INVALID, "end"), BH_INVALID);
    for (int i = 0; i < 200; i++)
        (void)bh_wrap(&err, BH_INVALID, "layer %d", i);
    CHECK(strncmp(err.msg, "layer 199: layer 198: ", 22) == 0);
    CHECK_EQ(strlen(err.msg), sizeof(err.msg) - 1);
}

/* ---- mem ---- */

TEST(alloc_is_zeroed_and_never_null)
{
    BH_AUTOFREE unsigned char *p = bh_alloc(1000, 1);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(p[i], 0);
    BH_AUTOFREE void *none = bh_alloc(0, 8);
    BH_AUTOFREE void *nothing = bh_alloc(8, 0);
    CHECK(none && nothing);
}

TEST(vector_grows_and_keeps_its_elements)
{
    BH_VEC(uint64_t) v = {0};
    for (uint64_t i = 0; i < 10000; i++)
        *bh_vec_push(&v) = i * 3;
    CHECK_EQ(v.n, 10000);
    CHECK(v.cap >= v.n && v.cap < 2 * v.n + 8);
    for (uint64_t i = 0; i < 10000; i++)
        CHECK_EQ(v.at[i], i * 3);
    bh_vec_fini(&v);
    CHECK(!v.at && !v.n && !v.cap);
    bh_vec_fini(&v);
}

TEST(steal_leaves_nothing_to_free)
{
    BH_AUTOFREE char *s = bh_alloc(4, 1);
    char *t = bh_steal(&s);
    CHECK(s == NULL && t != NULL);
    free(t);
}

/* ---- arena ---- */

TEST(arena_pieces_are_aligned_zeroed_and_apart)
{
    enum { N = 3000 };
    struct bh_arena a = {0};
    BH_AUTOFREE unsigned char **at = bh_alloc(N, sizeof(*at));
    uint8_t bytes[2 * N];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), 7);
    BH_AUTOFREE size_t *size = bh_alloc(N, sizeof(*size));
    for (size_t i = 0; i < N; i++) {
        size[i] = i % 500 == 0 ? 70000 + i * 100 : bh_choose(&c, 300);
        at[i] = bh_arena_alloc(&a, size[i]);
        CHECK_EQ((uintptr_t)at[i] % 8, 0);
        for (size_t k = 0; k < size[i]; k++)
            CHECK_EQ(at[i][k], 0);
        memset(at[i], (int)(i % 251) + 1, size[i]);
        if (i % 7 == 0)
            CHECK_STR(bh_arena_str(&a, "unaligned"), "unaligned");
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            CHECK_EQ(at[i][k], i % 251 + 1);
    bh_arena_fini(&a);
    CHECK(!a.head && !a.total_bytes);
    bh_arena_fini(&a);
}

/* Small strings between large ones: the large ones must not throw away the room of the small. */
TEST(arena_wastes_little)
{
    struct bh_arena a = {0};
    size_t asked = 0;
    for (int i = 0; i < 400; i++) {
        size_t n = i % 4 == 0 ? 600 * 1024 : 30000;
        (void)bh_arena_alloc(&a, n);
        asked += n;
    }
    CHECK(a.total_bytes >= asked);
    CHECK(a.total_bytes < asked + asked / 10);
    bh_arena_fini(&a);
}

TEST(arena_prints_short_and_long)
{
    struct bh_arena a = {0};
    char text[5000];
    memset(text, 'y', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK_STR(bh_arena_printf(&a, "%s:%d", "gpu-01", 3), "gpu-01:3");
    CHECK_STR(bh_arena_printf(&a, "%s", text), text);
    for (int n = 250; n < 262; n++) /* around the size of the first try */
        CHECK_EQ(strlen(bh_arena_printf(&a, "%.*s", n, text)), n);
    CHECK_STR(bh_arena_strn(&a, "abcdef", 3), "abc");
    CHECK_STR(bh_arena_strn(&a, NULL, 0), "");
    bh_arena_fini(&a);
}

/* ---- map ---- */

TEST(empty_map_finds_nothing)
{
    struct bh_map m = {0};
    CHECK_EQ(bh_map_find(&m, "x"), BH_MAP_NONE);
    CHECK_EQ(bh_map_add(&m, "", 5), BH_MAP_NONE);
    CHECK_EQ(bh_map_find(&m, ""), 5);
    bh_map_fini(&m);
    CHECK_EQ(bh_map_find(&m, ""), BH_MAP_NONE);
    bh_map_fini(&m);
}

/* Any order of additions and look-ups answers as a list searched from the front would. */
TEST(map_agrees_with_a_list)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint8_t bytes[4000];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_arena arena = {0};
        struct bh_map m = {0};
        BH_VEC(struct {
            const char *key;
            uint32_t value;
        })
        list = {0};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (uint32_t i = 0; c.left; i++) {
            const char *key = bh_arena_printf(&arena, "k%u", bh_choose(&c, 300));
            uint32_t expected = BH_MAP_NONE;
            for (size_t k = 0; k < list.n && expected == BH_MAP_NONE; k++)
                if (strcmp(list.at[k].key, key) == 0)
                    expected = list.at[k].value;
            CHECK_EQ(bh_map_find(&m, key), expected);
            if (bh_choose(&c, 2)) {
                CHECK_EQ(bh_map_add(&m, key, i), expected);
                if (expected == BH_MAP_NONE) {
                    __typeof__(list.at) added = bh_vec_push(&list);
                    added->key = key;
                    added->value = i;
                }
            }
        }
        CHECK_EQ(m.n, list.n);
        CHECK(m.n * 4 <= m.cap * 3 && (m.cap & (m.cap - 1)) == 0);
        bh_vec_fini(&list);
        bh_map_fini(&m);
        bh_arena_fini(&arena);
    }
}

TEST(map_holds_a_hundred_thousand_names)
{
    enum { N = 100000 };
    struct bh_arena arena = {0};
    struct bh_map m = {0};
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQ(bh_map_add(&m, bh_arena_printf(&arena, "tenant-%05u", i), i), BH_MAP_NONE);
    for (uint32_t i = 0; i < N; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "tenant-%05u", i);
        CHECK_EQ(bh_map_find(&m, name), i);
    }
    CHECK_EQ(bh_map_find(&m, "tenant-100000"), BH_MAP_NONE);
    bh_map_fini(&m);
    bh_arena_fini(&arena);
}

/* SipHash-1-3 folded to 32 bits; the values are those of a second, independent writing of it. */
TEST(hash_is_the_same_everywhere)
{
    CHECK_EQ(bh_hash("", 0), 0xc4f7f44e);
    CHECK_EQ(bh_hash("a", 1), 0xf8ef50c1);
    CHECK_EQ(bh_hash("foobar", 6), 0x2ac8353e);
    CHECK_EQ(bh_hash("a name longer than eight", 24), 0x28111ec7);
    CHECK_EQ(bh_hash("\xff", 1), bh_hash("\xff\x00", 1));
    bh_map_key(1, 2);
    CHECK_EQ(bh_hash("foobar", 6), 0x7c7e09aa);
    bh_map_key(0, 0);
}

/* ---- buf ---- */

TEST(buffer_stops_at_its_maximum)
{
    struct bh_buf b;
    bh_buf_init(&b, 10);
    CHECK_STR(bh_buf_text(&b), "");
    bh_buf_str(&b, "12345");
    bh_buf_add(&b, "67890", 5);
    CHECK_STR(bh_buf_text(&b), "1234567890");
    CHECK(!b.full);
    bh_buf_add(&b, "", 0);
    CHECK(!b.full);
    bh_buf_str(&b, "x");
    CHECK(b.full);
    CHECK_STR(bh_buf_text(&b), "1234567890");
    bh_buf_fini(&b);
}

TEST(buffer_writes_numbers_and_grows_as_it_must)
{
    struct bh_buf b;
    bh_buf_init(&b, 100);
    bh_buf_u64(&b, 0);
    bh_buf_str(&b, " ");
    bh_buf_u64(&b, UINT64_MAX);
    CHECK_STR(bh_buf_text(&b), "0 18446744073709551615");
    /* Into the room that is left, exactly up to it, and past it. */
    for (size_t n = 0; n < 80; n++) {
        char want[96];
        bh_buf_fini(&b);
        bh_buf_init(&b, 100);
        bh_buf_str(&b, "12345");
        bh_buf_printf(&b, "%0*d", (int)n, 7);
        (void)snprintf(want, sizeof(want), "12345%0*d", (int)n, 7);
        CHECK_STR(bh_buf_text(&b), want);
        CHECK_EQ(b.n, strlen(want));
    }
    CHECK(!b.full);
    /* It has the memory, but not the leave: nothing of it is to be seen. */
    bh_buf_fini(&b);
    bh_buf_init(&b, 9);
    bh_buf_str(&b, "12345678");
    bh_buf_printf(&b, "%s", "90");
    CHECK(b.full);
    CHECK_STR(bh_buf_text(&b), "12345678");
    bh_buf_fini(&b);
}

TEST(full_buffer_takes_nothing_more)
{
    struct bh_buf b;
    bh_buf_init(&b, 10);
    bh_buf_str(&b, "12345");
    bh_buf_printf(&b, "%s", "too long by one");
    CHECK(b.full);
    bh_buf_str(&b, "6"); /* would fit, but a hole before it would go unseen */
    CHECK_STR(bh_buf_text(&b), "12345");
    bh_buf_add(&b, "x", SIZE_MAX);
    CHECK_STR(bh_buf_text(&b), "12345");
    bh_buf_fini(&b);
    CHECK_STR(bh_buf_text(&b), "");
}

TEST(buffer_prints_and_grows)
{
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    size_t n = 0;
    for (int i = 0; i < 20000; i++)
        bh_buf_printf(&b, "%d,", i % 10);
    CHECK_EQ(b.n, 40000);
    CHECK_EQ(strlen(bh_buf_text(&b)), b.n);
    for (const char *p = bh_buf_text(&b); *p; p++)
        n += *p == ',';
    CHECK_EQ(n, 20000);
    CHECK(!b.full);
    bh_buf_fini(&b);
}

/* ---- choice ---- */

TEST(choices_stay_in_range_and_end)
{
    static const uint32_t spans[] = {
        1, 2, 3, 255, 256, 257, 65535, 65536, 65537, UINT32_C(1) << 31, UINT32_MAX,
    };
    uint8_t bytes[64];
    bh_choice_fill(bytes, sizeof(bytes), 99);
    for (size_t i = 0; i < BH_COUNT_OF(spans); i++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        uint32_t most = 0;
        while (c.left) {
            uint32_t v = bh_choose(&c, spans[i]);
            CHECK(v < spans[i]);
            most = v > most ? v : most;
            if (spans[i] == 1)
                break; /* takes no bytes */
        }
        CHECK(most >= spans[i] / 4); /* wide spans draw enough bytes to reach their upper part */
    }
    struct bh_choice empty = {bytes, 0};
    CHECK_EQ(bh_choose(&empty, 100), 0);
    CHECK_EQ(bh_choose(&empty, 0), 0);
}

TEST(fill_is_reproducible_and_mixed)
{
    uint8_t a[4096], b[4096];
    unsigned seen[256] = {0};
    bh_choice_fill(a, sizeof(a), 5);
    bh_choice_fill(b, sizeof(b), 5);
    CHECK_EQ(memcmp(a, b, sizeof(a)), 0);
    bh_choice_fill(b, sizeof(b), 6);
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    for (size_t i = 0; i < sizeof(a); i++)
        seen[a[i]]++;
    for (int i = 0; i < 256; i++)
        CHECK(seen[i] > 0 && seen[i] < 64);
}

/* What a list without its end mark would be read on into: seen by the sanitizer, piece by piece. */
TEST(pieces_of_an_arena_do_not_touch_under_the_sanitizer)
{
    struct bh_arena a = {0};
    const char *const *list = bh_arena_alloc(&a, 2 * sizeof(*list));
    const char *text = bh_arena_str(&a, "abc");
    (void)bh_arena_str(&a, "next");
    CHECK(text[3] == '\0' && !list[1]);
#ifdef __SANITIZE_ADDRESS__
    CHECK(__asan_address_is_poisoned(list + 2));
    CHECK(__asan_address_is_poisoned(text + 4));
    CHECK(!__asan_address_is_poisoned(text + 3));
#endif
    bh_arena_fini(&a);
}

TEST_MAIN
