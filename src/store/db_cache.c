/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db_cache.c - the pages of stores that are in memory, where a child of this process does not get them.
 *
 * Every child is begun as a copy: what it shares with its parent is entered into tables of its own, and copied once more where
 * the parent writes to it next. No child may touch a store, so what it would get here is of no use to it.
 */
#include "store/db_cache.h"

#include "store/db_sql.h"

#include <sys/mman.h>

enum { PAGE_BYTES = 4096, PAGES = 2112 /* what one store keeps (db.c), and some for what is sorted */ };

void bh_store_cache_apart(void)
{
    int head = 0;
    if (sqlite3_config(SQLITE_CONFIG_PCACHE_HDRSZ, &head) != SQLITE_OK || head < 0)
        return;
    const size_t each = PAGE_BYTES + (((size_t)head + 7) & ~(size_t)7), bytes = each * PAGES;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    if (madvise(at, bytes, MADV_DONTFORK) < 0 ||
        sqlite3_config(SQLITE_CONFIG_PAGECACHE, at, (int)each, (int)PAGES) != SQLITE_OK)
        (void)munmap(at, bytes); /* a store is open already: its pages are where they are */
}

void bh_store_memory_most(uint64_t bytes)
{
    (void)sqlite3_hard_heap_limit64((sqlite3_int64)bytes);
}
