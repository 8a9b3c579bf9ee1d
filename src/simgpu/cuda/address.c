/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - the addresses that device memory has in this process.
 *
 * They lie in a range that nothing can be read from or written to, so a host that follows a device pointer ends as it
 * would with a real one. Two tables, both sorted by address: what a pointer is (an allocation), and what is
 * behind it (a piece of memory of the resource manager). Several pieces may stand behind one allocation.
 */
#include "simgpu/cuda/internal.h"

#include <sys/mman.h>

/* How much is set aside: as much as this, less where the process may not have it. */
#define SPAN_MAX (UINT64_C(4) << 40)
#define SPAN_MIN (UINT64_C(64) << 30)

struct gap {
    uint64_t base, size;
};
static BH_VEC(struct gap) gaps; /* free addresses, sorted, never adjacent */
static BH_VEC(struct bh_cu_alloc) allocs;
static BH_VEC(struct bh_cu_back) backs;
static bool reserved;

/* Makes or closes a hole of one element. */
static void shift(void *at, size_t n, size_t where, size_t size, bool open)
{
    char *p = at;
    memmove(p + (where + open) * size, p + (where + !open) * size, (n - where - 1) * size);
}

static void reserve(void)
{
    void *at = MAP_FAILED;
    uint64_t span = SPAN_MAX * 2;
    while (at == MAP_FAILED && span > SPAN_MIN) {
        span /= 2;
        at = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    reserved = true;
    if (at == MAP_FAILED)
        return;
    const uint64_t base = BH_CU_ROUND((uint64_t)(uintptr_t)at, BH_CU_PAGE);
    *bh_vec_push(&gaps) = (struct gap){base, span - BH_CU_PAGE};
}

static void gap_insert(size_t i, struct gap g)
{
    (void)bh_vec_push(&gaps);
    shift(gaps.at, gaps.n, i, sizeof(g), true);
    gaps.at[i] = g;
}

static void gap_remove(size_t i)
{
    shift(gaps.at, gaps.n, i, sizeof(*gaps.at), false);
    gaps.n--;
}

uint64_t bh_cu_va_take(uint64_t size, uint64_t align)
{
    uint64_t at = 0;
    align = align > BH_CU_PAGE ? align : BH_CU_PAGE;
    size = BH_CU_ROUND(size, BH_CU_PAGE);
    pthread_mutex_lock(&cu.lock);
    if (!reserved)
        reserve();
    for (size_t i = 0; i < gaps.n && !at; i++) {
        const struct gap g = gaps.at[i];
        const uint64_t base = BH_CU_ROUND(g.base, align), end = g.base + g.size;
        if (base > end || end - base < size)
            continue;
        at = base;
        gap_remove(i);
        if (base + size < end)
            gap_insert(i, (struct gap){base + size, end - base - size});
        if (base > g.base)
            gap_insert(i, (struct gap){g.base, base - g.base});
    }
    pthread_mutex_unlock(&cu.lock);
    return at;
}

void bh_cu_va_give(uint64_t base, uint64_t size)
{
    size_t i = 0;
    size = BH_CU_ROUND(size, BH_CU_PAGE);
    pthread_mutex_lock(&cu.lock);
    while (i < gaps.n && gaps.at[i].base < base)
        i++;
    gap_insert(i, (struct gap){base, size});
    if (i + 1 < gaps.n && base + size == gaps.at[i + 1].base) {
        gaps.at[i].size += gaps.at[i + 1].size;
        gap_remove(i + 1);
    }
    if (i > 0 && gaps.at[i - 1].base + gaps.at[i - 1].size == base) {
        gaps.at[i - 1].size += gaps.at[i].size;
        gap_remove(i);
    }
    pthread_mutex_unlock(&cu.lock);
}

/* The first element that ends behind `at`: the one that holds it, or where it would go. */
#define LOWER(v, at_, ret)                                      \
    do {                                                        \
        size_t lo_ = 0, hi_ = (v).n;                            \
        while (lo_ < hi_) {                                     \
            size_t mid_ = lo_ + (hi_ - lo_) / 2;                \
            if ((v).at[mid_].base + (v).at[mid_].size <= (at_)) \
                lo_ = mid_ + 1;                                 \
            else                                                \
                hi_ = mid_;                                     \
        }                                                       \
        (ret) = lo_;                                            \
    } while (0)

void bh_cu_alloc_add(const struct bh_cu_alloc *alloc)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(allocs, alloc->base, i);
    (void)bh_vec_push(&allocs);
    shift(allocs.at, allocs.n, i, sizeof(*alloc), true);
    allocs.at[i] = *alloc;
    pthread_mutex_unlock(&cu.lock);
}

bool bh_cu_alloc_find(uint64_t at, struct bh_cu_alloc *ret)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(allocs, at, i);
    bool found = i < allocs.n && allocs.at[i].base <= at;
    if (found)
        *ret = allocs.at[i];
    pthread_mutex_unlock(&cu.lock);
    return found;
}

bool bh_cu_alloc_take(uint64_t base, struct bh_cu_alloc *ret)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(allocs, base, i);
    bool found = i < allocs.n && allocs.at[i].base == base;
    if (found) {
        *ret = allocs.at[i];
        shift(allocs.at, allocs.n, i, sizeof(*allocs.at), false);
        allocs.n--;
    }
    pthread_mutex_unlock(&cu.lock);
    return found;
}

bool bh_cu_alloc_any(enum bh_cu_what what)
{
    bool any = false;
    pthread_mutex_lock(&cu.lock);
    for (size_t i = 0; i < allocs.n && !any; i++)
        any = allocs.at[i].what == what;
    pthread_mutex_unlock(&cu.lock);
    return any;
}

bool bh_cu_alloc_touch(uint64_t base, uint32_t gpu)
{
    size_t i;
    bool fresh = false;
    pthread_mutex_lock(&cu.lock);
    LOWER(allocs, base, i);
    if (i < allocs.n && allocs.at[i].base == base && gpu < 64) {
        fresh = !(allocs.at[i].touched >> gpu & 1);
        allocs.at[i].touched |= UINT64_C(1) << gpu;
    }
    pthread_mutex_unlock(&cu.lock);
    return fresh;
}

void bh_cu_back_add(uint64_t base, uint64_t size, struct bh_cu_mem *mem, uint64_t offset)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(backs, base, i);
    (void)bh_vec_push(&backs);
    shift(backs.at, backs.n, i, sizeof(*backs.at), true);
    backs.at[i] = (struct bh_cu_back){.base = base, .size = size, .offset = offset, .mem = mem};
    pthread_mutex_unlock(&cu.lock);
}

bool bh_cu_back_find(uint64_t at, struct bh_cu_back *ret)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(backs, at, i);
    bool found = i < backs.n && backs.at[i].base <= at;
    if (found)
        *ret = backs.at[i];
    pthread_mutex_unlock(&cu.lock);
    return found;
}

bool bh_cu_back_of(const struct bh_cu_mem *mem, size_t n, struct bh_cu_back *ret)
{
    bool found = false;
    pthread_mutex_lock(&cu.lock);
    for (size_t i = 0; i < backs.n && !found; i++) {
        found = backs.at[i].mem == mem && n-- == 0;
        if (found)
            *ret = backs.at[i];
    }
    pthread_mutex_unlock(&cu.lock);
    return found;
}

bool bh_cu_back_overlaps(uint64_t base, uint64_t size)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(backs, base, i);
    bool overlaps = i < backs.n && backs.at[i].base < base + size;
    pthread_mutex_unlock(&cu.lock);
    return overlaps;
}

bool bh_cu_back_take(uint64_t base, uint64_t size, struct bh_cu_back *ret)
{
    size_t i;
    pthread_mutex_lock(&cu.lock);
    LOWER(backs, base, i);
    bool found =
        i < backs.n && backs.at[i].base >= base && backs.at[i].base + backs.at[i].size <= base + size;
    if (found) {
        *ret = backs.at[i];
        shift(backs.at, backs.n, i, sizeof(*backs.at), false);
        backs.n--;
    }
    pthread_mutex_unlock(&cu.lock);
    return found;
}

/* From the end, where taking one away moves nothing. */
bool bh_cu_alloc_take_of(CUcontext ctx, struct bh_cu_alloc *ret)
{
    bool found = false;
    pthread_mutex_lock(&cu.lock);
    for (size_t i = allocs.n; i-- > 0 && !found;) {
        found = allocs.at[i].ctx == ctx;
        if (!found)
            continue;
        *ret = allocs.at[i];
        shift(allocs.at, allocs.n, i, sizeof(*ret), false);
        allocs.n--;
    }
    pthread_mutex_unlock(&cu.lock);
    return found;
}
