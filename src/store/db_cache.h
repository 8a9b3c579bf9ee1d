/* SPDX-License-Identifier: Apache-2.0 */
/* db_cache.h - a process that begins many children keeps the pages of its store from them. */
#ifndef BH_STORE_DB_CACHE_H
#define BH_STORE_DB_CACHE_H

/*
 * For all stores of this process; before the first of them is opened, else nothing changes. Its memory is had from then on, and is
 * about what a store in use takes anyway. A child that touches a store dies of it.
 */
void bh_store_cache_apart(void);

#endif
