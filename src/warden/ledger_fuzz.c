/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a lease. Half of them play tenants of a driver that keeps its rules (ledger_fixture.h); the others tell the
 * ledger anything at all, in any order: it keeps its invariants and its cap, and holds nothing once everybody is gone.
 */
#include "warden/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 6, WILD_GPUS = 3 };

static void stop_if(const char *why)
{
    if (!why)
        return;
    (void)fprintf(stderr, "%s\n", why);
    abort();
}

static uint32_t wild_name(struct bh_choice *c) /* the same few for clients and objects: they collide */
{
    return bh_choose(c, NAMES);
}

static uint32_t wild_gpu(struct bh_choice *c)
{
    static const uint32_t gpus[] = {0, 1, 2, UINT32_MAX, 0, 1, UINT32_MAX, BH_LEDGER_GPUS};
    return gpus[bh_choose(c, sizeof(gpus) / sizeof(gpus[0]))];
}

static uint64_t wild_bytes(struct bh_choice *c)
{
    static const uint64_t bytes[] = {0,         1,          STORM_UNIT,     5 * STORM_UNIT,
                                     STORM_CAP, UINT64_MAX, UINT64_MAX - 1, 3};
    return bytes[bh_choose(c, sizeof(bytes) / sizeof(bytes[0]))];
}

static struct bh_ledger_object wild_object(struct bh_choice *c)
{
    struct bh_ledger_object o = {.client = wild_name(c), .parent = wild_name(c), .object = wild_name(c)};
    o.gpu = wild_gpu(c);
    o.bytes = wild_bytes(c);
    o.reserved = bh_choose(c, 4) ? 0 : wild_bytes(c);
    return o;
}

static void wild_object_step(struct bh_ledger *l, struct bh_choice *c)
{
    struct bh_ledger_object o = wild_object(c);
    bh_ledger_object(l, &o);
}

static void wild_dup(struct bh_ledger *l, struct bh_choice *c)
{
    struct bh_ledger_object o = wild_object(c);
    uint32_t source_client = wild_name(c);
    bh_ledger_dup(l, &o, source_client, wild_name(c));
}

static void wild_reserve(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t gpu = wild_gpu(c);
    uint64_t bytes = wild_bytes(c), before = bh_ledger_sum(l, gpu).reserved;
    bool fits = bh_ledger_reserve(l, gpu, bytes);
    struct bh_ledger_sum s = bh_ledger_sum(l, gpu);
    if (fits && bytes && s.used > s.cap)
        stop_if("a grant past the cap");
    if (s.reserved != before + (fits ? bytes : 0))
        stop_if("a reservation of another size");
}

static void wild_give_back(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t gpu = wild_gpu(c);
    bh_ledger_give_back(l, gpu, wild_bytes(c));
}

static void wild_client(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t pid = wild_name(c), file = wild_name(c);
    (void)bh_ledger_client(l, pid, file, wild_name(c));
}

static void wild_drop(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t client = wild_name(c);
    bh_ledger_drop(l, client, wild_name(c));
    if (bh_ledger_gpu_of(l, client, client) != UINT32_MAX)
        stop_if("a client on a GPU");
}

static void wild_end(struct bh_ledger *l, struct bh_choice *c)
{
    if (bh_choose(c, 2))
        bh_ledger_file_closed(l, wild_name(c));
    else
        bh_ledger_process_gone(l, wild_name(c));
}

static void wild_managed(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t pid = wild_name(c);
    if (bh_choose(c, 2))
        (void)bh_ledger_map(l, pid, wild_bytes(c));
    else
        bh_ledger_unmap(l, pid, wild_bytes(c));
}

static void wild_counted(struct bh_ledger *l, struct bh_choice *c)
{
    uint32_t gpu = wild_gpu(c);
    bh_ledger_counted(l, gpu, wild_bytes(c));
}

static void wild(struct bh_choice *c)
{
    static void (*const steps[])(struct bh_ledger *, struct bh_choice *) = {
        wild_object_step, wild_object_step, wild_object_step, wild_dup,    wild_dup,
        wild_reserve,     wild_give_back,   wild_client,      wild_client, wild_end,
        wild_managed,     wild_counted,     wild_drop,
    };
    struct bh_ledger *l = bh_ledger_new(bh_choose(c, 4) ? STORM_CAP : UINT64_MAX);
    while (c->left) {
        steps[bh_choose(c, sizeof(steps) / sizeof(steps[0]))](l, c);
        stop_if(bh_ledger_check(l));
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        bh_ledger_process_gone(l, i);
        bh_ledger_file_closed(l, i);
    }
    for (uint32_t g = 0; g < WILD_GPUS; g++) {
        bh_ledger_give_back(l, g, UINT64_MAX);
        bh_ledger_counted(l, g, 0);
        struct bh_ledger_sum s = bh_ledger_sum(l, g);
        if (s.held | s.reserved | s.managed | s.overhead | s.used | s.objects | s.clients)
            stop_if("something is left at the end");
    }
    stop_if(bh_ledger_check(l));
    bh_ledger_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct storm s;
    struct bh_choice c = {data, size};
    if (bh_choose(&c, 2)) {
        wild(&c);
        return 0;
    }
    storm_init(&s, &c, 0);
    while (c.left) {
        storm_step(&s);
        stop_if(s.why);
    }
    stop_if(storm_end(&s));
    return 0;
}
