/* SPDX-License-Identifier: Apache-2.0 */
/* db_cache.h - what stores take of a process's memory: where the pages lie, and how much it may be. */
#ifndef BH_STORE_DB_CACHE_H
#define BH_STORE_DB_CACHE_H

#include <stdint.h>

/*
 * For all stores of this process; before the first of them is opened, else nothing changes. Its memory is had from then on, and is
 * about what a store in use takes anyway. A child that touches a store dies of it.
 */
void bh_store_cache_apart(void);
/* For all stores of this process: what would need more memory fails with BH_SYSTEM. */
void bh_store_memory_most(uint64_t bytes);

#endif
