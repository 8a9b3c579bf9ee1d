/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_edge_fixture.h - stands in front of journal.c where that is built for journal_edge_test.c: before and within each
 * of its stores the test is asked, and how large a page is, and what is given back, goes by the test too.
 */
#ifndef BH_WARDEN_JOURNAL_EDGE_FIXTURE_H
#define BH_WARDEN_JOURNAL_EDGE_FIXTURE_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void edge_point(void); /* a warden may be killed here */
void *edge_mmap(size_t n, int protection, int flags, int fd);
int edge_madvise(void *at, size_t n, int advice);
long edge_sysconf(int name);

static inline void edge_memcpy(void *to, const void *from, size_t n)
{
    edge_point();
    memcpy(to, from, n / 2);
    edge_point();
    memcpy(to, from, n);
}

static inline void edge_memset(void *at, int value, size_t n)
{
    edge_point();
    memset((uint8_t *)at + n / 2, value, n - n / 2); /* a library's may be in any order */
    edge_point();
    memset(at, value, n);
}

static inline void edge_store(_Atomic uint64_t *at, uint64_t value)
{
    edge_point();
    atomic_store(at, value);
    edge_point();
}

#ifdef BH_JOURNAL_EDGE
#undef memcpy
#undef memset
#undef atomic_store_explicit
#define memcpy(to, from, n)                     edge_memcpy(to, from, n)
#define memset(at, value, n)                    edge_memset(at, value, n)
#define atomic_store_explicit(at, value, order) edge_store(at, value)
#define mmap(at, n, protection, flags, fd, off) edge_mmap(n, protection, flags, fd)
#define madvise(at, n, advice)                  edge_madvise(at, n, advice)
#define sysconf(name)                           edge_sysconf(name)
#endif

#endif
