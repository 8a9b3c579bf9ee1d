/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn.c - a tenant that is never still: memory comes and goes, kernels and copies in between.
 *
 * Every buffer carries a pattern made from its number. Whenever one is looked at, and before it is given back, it must be
 * there unchanged: whatever else happens on the card, nobody wrote into it.
 */
#include "tenant.h"

#include <stdio.h>
#include <string.h>

enum { BUFFERS = 24, PROBE = 4096 };

struct buffer {
    CUdeviceptr at;
    uint64_t bytes;
    uint32_t mark; /* 0: none */
    bool async;
};

struct churn {
    const struct tenant *t;
    uint64_t random;
    struct buffer buffers[BUFFERS];
    CUstream stream;
    uint32_t marks;
    uint64_t allocs, frees, launches, copies, refused, wrong;
};

/* The pattern at one place of a buffer. */
static uint32_t word_at(const struct buffer *b, uint64_t offset)
{
    return b->mark * UINT32_C(2654435761) ^ (uint32_t)(offset / PROBE);
}

/* One probe at a place: PROBE bytes that hold the same word. */
static void probe_write(struct churn *c, const struct buffer *b, uint64_t offset)
{
    uint32_t words[PROBE / sizeof(uint32_t)];
    for (size_t i = 0; i < PROBE / sizeof(uint32_t); i++)
        words[i] = word_at(b, offset);
    MUST(cuMemcpyHtoD_v2, b->at + offset, words, sizeof(words));
    c->copies++;
}

static void probe_check(struct churn *c, const struct buffer *b, uint64_t offset)
{
    uint32_t words[PROBE / sizeof(uint32_t)] = {0};
    if (c->copies++ % 2)
        MUST(cuMemcpyDtoH_v2, words, b->at + offset, sizeof(words));
    else {
        MUST(cuMemcpyDtoHAsync_v2, words, b->at + offset, sizeof(words), c->stream);
        MUST(cuStreamSynchronize, c->stream);
    }
    for (size_t i = 0; i < PROBE / sizeof(uint32_t); i++)
        c->wrong += words[i] != word_at(b, offset);
}

/* First, middle, last. */
static uint64_t place(const struct buffer *b, unsigned which)
{
    return which == 0 ? 0 : which == 1 ? b->bytes / 2 / PROBE * PROBE : b->bytes - PROBE;
}

static void take(struct churn *c, struct buffer *b)
{
    static const uint64_t sizes[] = {PROBE, 64 * 1024, MIB, 2 * MIB, 6 * MIB, 32 * MIB, 100 * MIB};
    b->bytes = sizes[tenant_random(&c->random) % (sizeof(sizes) / sizeof(sizes[0]))];
    b->async = tenant_random(&c->random) % 4 == 0;
    int rc =
        b->async ? cuda.cuMemAllocAsync(&b->at, b->bytes, c->stream) : cuda.cuMemAlloc_v2(&b->at, b->bytes);
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        c->refused++;
        return;
    }
    tenant_must(rc, b->async ? "cuMemAllocAsync" : "cuMemAlloc");
    if (b->async)
        MUST(cuStreamSynchronize, c->stream);
    b->mark = ++c->marks;
    c->allocs++;
    for (unsigned i = 0; i < 3; i++)
        probe_write(c, b, place(b, i));
    /* A copy from ordinary memory may return before it has arrived, and the stream waits for nobody. */
    MUST(cuCtxSynchronize);
}

static void give(struct churn *c, struct buffer *b)
{
    for (unsigned i = 0; i < 3; i++)
        probe_check(c, b, place(b, i));
    if (b->async)
        MUST(cuMemFreeAsync, b->at, c->stream);
    else
        MUST(cuMemFree_v2, b->at);
    b->mark = 0;
    c->frees++;
}

static void step(struct churn *c)
{
    struct buffer *b = &c->buffers[tenant_random(&c->random) % BUFFERS];
    switch (tenant_random(&c->random) % 4) {
    case 0:
    case 1:
        if (b->mark)
            give(c, b);
        else
            take(c, b);
        return;
    case 2:
        tenant_must(tenant_spin(c->t, 1000 * (1 + tenant_random(&c->random) % 200), c->stream),
                    "cuLaunchKernel");
        c->launches++;
        return;
    default:
        if (b->mark)
            probe_check(c, b, place(b, (unsigned)(tenant_random(&c->random) % 3)));
    }
}

int tenant_churn(const struct tenant *t, int n, char **args)
{
    struct churn c = {.t = t};
    uint64_t steps;
    if (n != 2 || !tenant_number(args[0], &steps) || !tenant_number(args[1], &c.random)) {
        fprintf(stderr, "usage: tenant churn STEPS SEED\n");
        return 2;
    }
    MUST(cuStreamCreate, &c.stream, CU_STREAM_NON_BLOCKING);
    printf("ready\n");
    fflush(stdout);
    for (uint64_t i = 0; i < steps; i++)
        step(&c);
    for (size_t i = 0; i < BUFFERS; i++)
        if (c.buffers[i].mark)
            give(&c, &c.buffers[i]);
    MUST(cuCtxSynchronize);
    MUST(cuStreamDestroy_v2, c.stream);
    printf("allocs %llu\nfrees %llu\nlaunches %llu\ncopies %llu\nrefused %llu\nwrong %llu\n",
           (unsigned long long)c.allocs, (unsigned long long)c.frees, (unsigned long long)c.launches,
           (unsigned long long)c.copies, (unsigned long long)c.refused, (unsigned long long)c.wrong);
    return c.wrong != 0;
}
