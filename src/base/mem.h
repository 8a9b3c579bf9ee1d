/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - allocation and ownership.
 *
 * Running out of memory ends the process: durable state lives on disk and the
 * supervisor restarts us, so no caller carries a half-tested out-of-memory path.
 * Sizes that come from input are bounded by their parsers before they get here.
 */
#ifndef BH_BASE_MEM_H
#define BH_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *bh_alloc(size_t n, size_t size); /* zeroed; never NULL */
void *bh_grow_(void *p, size_t *cap, size_t want, size_t size);

static inline void bh_autofreep_(void *p)
{
    void *q;
    memcpy(&q, p, sizeof(q));
    free(q);
}
#define BH_AUTOFREE __attribute__((cleanup(bh_autofreep_)))
#define BH_AUTO(fn) __attribute__((cleanup(fn)))

static inline void *bh_steal_(void *pp)
{
    void *p, *nil = NULL;
    memcpy(&p, pp, sizeof(p));
    memcpy(pp, &nil, sizeof(nil));
    return p;
}
#define bh_steal(pp) ((__typeof__(*(pp)))bh_steal_(pp))

#define BH_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* BH_VEC(struct bh_slice) slices;  one growable array, no hidden allocation. */
#define BH_VEC(T)      \
    struct {           \
        T *at;         \
        size_t n, cap; \
    }
/* The new last element, not yet initialised. */
#define bh_vec_push(v)                                                                                   \
    ((v)->at = (v)->n < (v)->cap ? (v)->at : bh_grow_((v)->at, &(v)->cap, (v)->n + 1, sizeof(*(v)->at)), \
     &(v)->at[(v)->n++])
#define bh_vec_fini(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
