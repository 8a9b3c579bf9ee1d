/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

enum { FIRST_BLOCK = 4096, LAST_BLOCK = 1 << 20, LARGE = LAST_BLOCK / 16, ALIGN = 8 };

/* Pieces lie side by side, and who reads past one reads the next. AddressSanitizer sees that where a gap is between them. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
enum { GAP = ALIGN, ALIGN_LEAST = ALIGN };
#else
#define ASAN_POISON_MEMORY_REGION(at, n)   ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
enum { GAP = 0, ALIGN_LEAST = 1 };
#endif

struct bh_arena_block {
    struct bh_arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

void bh_arena_fini(struct bh_arena *a)
{
    struct bh_arena_block *b = a->head;
    while (b) {
        struct bh_arena_block *next = b->next;
        ASAN_UNPOISON_MEMORY_REGION(b->data, b->size);
        free(b);
        b = next;
    }
    a->head = NULL;
    a->total_bytes = 0;
}

/* A large piece gets a block of its own behind the head, so that what is left of the head is not thrown away. */
static struct bh_arena_block *block_new(struct bh_arena *a, size_t want)
{
    size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK;
    if (size > LAST_BLOCK)
        size = LAST_BLOCK;
    if (size < want || want > LARGE)
        size = want;
    struct bh_arena_block *b = bh_alloc(1, sizeof(*b) + size);
    struct bh_arena_block **at = a->head && want > LARGE ? &a->head->next : &a->head;
    b->size = size;
    b->next = *at;
    *at = b;
    a->total_bytes += sizeof(*b) + size;
    ASAN_POISON_MEMORY_REGION(b->data, size);
    return b;
}

static void *take(struct bh_arena *a, size_t n, size_t align)
{
    struct bh_arena_block *b = a->head;
    const size_t whole = n + GAP;
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;
    if (!b || whole > b->size || at > b->size - whole) {
        b = block_new(a, whole);
        at = 0;
    }
    b->used = at + whole;
    ASAN_UNPOISON_MEMORY_REGION(b->data + at, n);
    return b->data + at;
}

void *bh_arena_alloc(struct bh_arena *a, size_t n_bytes)
{
    return take(a, n_bytes, ALIGN);
}

char *bh_arena_strn(struct bh_arena *a, const char *s, size_t n)
{
    char *p = take(a, n + 1, ALIGN_LEAST);
    if (n)
        memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *bh_arena_str(struct bh_arena *a, const char *s)
{
    return bh_arena_strn(a, s, strlen(s));
}

char *bh_arena_printf(struct bh_arena *a, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0)
        return bh_arena_strn(a, "", 0);
    if ((size_t)n < sizeof(small))
        return bh_arena_strn(a, small, (size_t)n);
    char *p = take(a, (size_t)n + 1, ALIGN_LEAST);
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
