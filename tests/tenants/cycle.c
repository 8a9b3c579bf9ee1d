/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle.c - allocate and free, over and over, close below a limit: nothing of it may ever be refused.
 *
 * What a limit leaves room for is taken until the next piece does not fit, then something goes: the tenant stays near the
 * limit and its pieces are of all sizes and ages. Memory in pools comes in parts of the pool's own size, so pools get a share
 * of the limit only.
 */
#include "tenant.h"

#include <stdio.h>
#include <string.h>

enum { PIECES = 96, SMALLEST_SHIFT = 16, SIZES = 13 }; /* 64 KiB to 256 MiB */

enum kind { PLAIN, ASYNC, POOL, KINDS };

struct piece {
    CUdeviceptr at;
    uint64_t bytes; /* 0: none */
    enum kind kind;
};

struct cycle {
    uint64_t limit, held, pooled, random;
    struct piece pieces[PIECES];
    CUmemoryPool pool;
    uint64_t cycles, by_kind[KINDS], refused;
};

static int take_by(struct cycle *c, struct piece *p)
{
    switch (p->kind) {
    case ASYNC:
        return cuda.cuMemAllocAsync(&p->at, p->bytes, NULL);
    case POOL:
        return cuda.cuMemAllocFromPoolAsync(&p->at, p->bytes, c->pool, NULL);
    default:
        return cuda.cuMemAlloc_v2(&p->at, p->bytes);
    }
}

static void give(struct cycle *c, struct piece *p)
{
    if (p->kind == PLAIN) {
        MUST(cuMemFree_v2, p->at);
    } else {
        MUST(cuMemFreeAsync, p->at, NULL);
        MUST(cuStreamSynchronize, NULL);
        c->pooled -= p->bytes;
    }
    c->held -= p->bytes;
    c->by_kind[p->kind]++;
    c->cycles++;
    p->bytes = 0;
}

/* False: it would not fit below the limit. */
static bool take(struct cycle *c, struct piece *p)
{
    const uint64_t bytes = UINT64_C(1) << (SMALLEST_SHIFT + tenant_random(&c->random) % SIZES);
    const enum kind kind = (enum kind)(tenant_random(&c->random) % KINDS);
    if (bytes > c->limit / 8 || bytes + c->held > c->limit ||
        (kind != PLAIN && bytes + c->pooled > c->limit / 4))
        return false;
    *p = (struct piece){.bytes = bytes, .kind = kind};
    const int rc = take_by(c, p);
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        p->bytes = 0;
        c->refused++;
        return true;
    }
    tenant_must(rc, "allocating");
    c->held += bytes;
    c->pooled += kind != PLAIN ? bytes : 0;
    return true;
}

static void step(struct cycle *c)
{
    struct piece *p = &c->pieces[tenant_random(&c->random) % PIECES];
    if (p->bytes || take(c, p)) {
        if (p->bytes && tenant_random(&c->random) % 16 == 0)
            give(c, p);
        return;
    }
    for (size_t i = 0; i < PIECES; i++) {
        p = &c->pieces[tenant_random(&c->random) % PIECES];
        if (p->bytes) {
            give(c, p);
            return;
        }
    }
}

int tenant_cycle(const struct tenant *t, int n, char **args)
{
    const CUmemPoolProps props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}};
    struct cycle c = {.random = 1};
    uint64_t cycles, most = 0;
    if (n < 2 || n > 3 || !tenant_number(args[0], &cycles) || !tenant_size(args[1], &c.limit) ||
        (n == 3 && !tenant_number(args[2], &c.random))) {
        fprintf(stderr, "usage: tenant cycle COUNT LIMIT [SEED]\n");
        return 2;
    }
    MUST(cuMemPoolCreate, &c.pool, &props);
    printf("ready\n");
    (void)fflush(stdout);
    const uint64_t start = tenant_now_ns();
    while (c.cycles < cycles && c.refused == 0) {
        step(&c);
        most = c.held > most ? c.held : most;
    }
    const uint64_t took = tenant_now_ns() - start;
    for (size_t i = 0; i < PIECES; i++)
        if (c.pieces[i].bytes)
            give(&c, &c.pieces[i]);
    MUST(cuMemPoolDestroy, c.pool);
    printf("cycles %llu\nplain %llu\nasync %llu\npool %llu\nmost %llu\nrefused %llu\nus-per-cycle %.2f\n",
           (unsigned long long)c.cycles, (unsigned long long)c.by_kind[PLAIN],
           (unsigned long long)c.by_kind[ASYNC], (unsigned long long)c.by_kind[POOL],
           (unsigned long long)most, (unsigned long long)c.refused,
           (double)took / 1e3 / (double)(cycles ? cycles : 1));
    return c.refused != 0;
}
