/* SPDX-License-Identifier: Apache-2.0 */
/* fill.h - ways to take memory, one piece a call; what they return is CUDA's result. */
#ifndef BH_TESTS_TENANTS_FILL_H
#define BH_TESTS_TENANTS_FILL_H

#include "tenant.h"

struct fill {
    const struct tenant *t;
    CUmemoryPool pool;
};

typedef int fill_fn(struct fill *f, uint64_t bytes);

/* fill_more.c: memory that is not asked for by an allocation of one's own */
fill_fn fill_by_module, fill_by_heap, fill_by_stack, fill_by_ipc, fill_by_import, fill_by_external;

#endif
