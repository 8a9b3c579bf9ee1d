/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - names: given back twice, given to two, taken from somebody else, duplicated. */
#include "bypass.h"

#include <errno.h>

/* Whatever was done before, no more than a cap may come of it. `held`: bytes that must still be held. */
static int fill_after(const char *what, struct rm *r, uint64_t held)
{
    uint64_t got = held;
    int rc = RM_OK;
    while (got < BP_TIMES * bp.cap && (rc = rm_take(r, bp.piece, NULL)) == RM_OK)
        got += bp.piece;
    bp_how("%s: %llu MiB in all, then %s", what, (unsigned long long)(got / MIB), bp_result(rc));
    bp_got(got);
    if (got > bp.cap)
        bp_how("more than the cap");
    return bp_hold();
}

static void must(int rc, const char *what)
{
    if (rc != RM_OK)
        bp_cannot("%s: %s", what, bp_result(rc));
}

static int free_twice(void)
{
    struct rm r;
    uint32_t keep, once;
    rm_must_open(&r);
    must(rm_take(&r, bp.piece, &keep), "the first piece");
    for (int i = 0; i < BP_PIECES * BP_TIMES; i++) {
        must(rm_take(&r, bp.piece, &once), "a piece");
        (void)rm_free(&r, r.client, once);
        (void)rm_free(&r, r.client, once);
        (void)rm_free(&r, r.client, once + 1000);
    }
    return fill_after("each freed twice", &r, bp.piece);
}

/* One client's memory, freed in the name of another one that the same process has. */
static int free_foreign(void)
{
    struct rm a, b;
    uint32_t memory[BP_PIECES - 1];
    rm_must_open(&a);
    rm_must_open(&b);
    for (size_t i = 0; i < COUNT(memory); i++)
        must(rm_take(&a, bp.piece, &memory[i]), "a piece");
    for (size_t i = 0; i < COUNT(memory); i++) {
        (void)rm_free(&b, b.client, memory[i]);
        (void)rm_free(&b, 0, memory[i]);
        (void)rm_free(&b, memory[i], a.client);
        (void)rm_free(&a, b.client, memory[i]);
    }
    return fill_after("freed in another client's name", &b, bp.piece * COUNT(memory));
}

static int same_name(void)
{
    struct rm a, b;
    uint32_t in_a, in_b;
    rm_must_open(&a);
    rm_must_open(&b);
    b.last = a.last;
    must(rm_take(&a, bp.piece, &in_a), "a piece");
    must(rm_take(&b, bp.piece, &in_b), "a piece of the same name");
    if (in_a != in_b)
        bp_cannot("the names differ");
    must(rm_free(&a, a.client, in_a), "freeing one");
    return fill_after("same name in two clients, one freed", &a, bp.piece);
}

/* A client by a name that is another one's, or an object by the name of a client. */
static int client_collision(void)
{
    struct rm a, b;
    rm_must_open(&a);
    rm_must_open(&b);
    uint32_t name = a.client;
    struct rm fresh = {.ctl = dev_open("/dev/nvidiactl"), .gpu = -1};
    int rc = rm_alloc(&fresh, 0, &name, RM_CLASS_CLIENT, NULL);
    bp_how("a client named as another: %s", bp_result(rc));
    struct rm_memory_params p = rm_memory(bp.piece);
    uint32_t object = b.client;
    rc = rm_alloc(&b, b.device, &object, RM_CLASS_MEMORY_LOCAL, &p);
    bp_how("memory named as its client: %s", bp_result(rc));
    const uint64_t held = rc == RM_OK ? bp.piece : 0;
    p = rm_memory(bp.piece);
    object = b.device;
    rc = rm_alloc(&b, b.device, &object, RM_CLASS_MEMORY_LOCAL, &p);
    bp_how("memory named as its device: %s", bp_result(rc));
    return fill_after("names of clients", &b, held + (rc == RM_OK ? bp.piece : 0));
}

/* A client whose own name is given back and taken again, with everything that was below it gone or not. */
static int client_again(void)
{
    struct rm a, b;
    rm_must_open(&a);
    rm_must_open(&b);
    const uint64_t held = bp.piece * 4;
    for (int i = 0; i < 4; i++)
        must(rm_take(&b, bp.piece, NULL), "a piece");
    must(rm_take(&a, bp.piece, NULL), "a piece");
    must(rm_free(&a, a.client, a.client), "freeing a client");
    uint32_t name = a.client;
    int rc = rm_alloc(&a, 0, &name, RM_CLASS_CLIENT, NULL);
    bp_how("the client's name once more: %s", bp_result(rc));
    return fill_after("a client freed and made again", &b, held);
}

static int dup_free_source(void)
{
    struct rm a, b;
    rm_must_open(&a);
    rm_must_open(&b);
    uint64_t held = 0;
    for (int i = 0; i < BP_PIECES * BP_TIMES; i++) {
        uint32_t source, copy;
        int rc = rm_take(&a, bp.piece, &source);
        if (rc != RM_OK)
            break;
        must(rm_dup(&b, &copy, a.client, source), "a duplicate");
        must(rm_free(&a, a.client, source), "freeing the source");
        held += bp.piece;
    }
    return fill_after("duplicated into another client, source freed", &a, held);
}

/* The whole source goes: its client, then its file. */
static int dup_close_source(void)
{
    struct rm b;
    rm_must_open(&b);
    uint64_t held = 0;
    for (int i = 0; i < BP_PIECES * BP_TIMES; i++) {
        struct rm a;
        uint32_t source, copy;
        rm_must_open(&a);
        if (rm_take(&a, bp.piece, &source) != RM_OK) {
            rm_close(&a);
            break;
        }
        must(rm_dup(&b, &copy, a.client, source), "a duplicate");
        if (i % 2)
            must(rm_free(&a, a.client, a.client), "freeing the client");
        rm_close(&a);
        held += bp.piece;
    }
    return fill_after("duplicated, the source's file closed", &b, held);
}

static int dup_many(void)
{
    enum { COPIES = 16 };
    struct rm r;
    rm_must_open(&r);
    uint64_t held = 0;
    for (int i = 0; i < BP_PIECES * BP_TIMES; i++) {
        uint32_t copies[COPIES];
        if (rm_take(&r, bp.piece, &copies[0]) != RM_OK)
            break;
        for (size_t k = 1; k < COPIES; k++)
            must(rm_dup(&r, &copies[k], r.client, copies[k - 1]), "a duplicate");
        for (size_t k = 0; k + 1 < COPIES; k++)
            must(rm_free(&r, r.client, copies[k]), "freeing a duplicate");
        held += bp.piece;
    }
    return fill_after("all but the last of 16 duplicates freed", &r, held);
}

/* Below what the gate has not seen being made. */
static int unknown_parents(void)
{
    struct rm r;
    rm_must_open(&r);
    uint32_t space = rm_name(&r), unknown = 0x0bad0001;
    struct {
        uint32_t words[12];
    } params = {{0}};
    int rc = rm_alloc(&r, r.device, &space, RM_CLASS_VASPACE, &params);
    bp_how("an address space: %s", bp_result(rc));
    const struct {
        const char *what;
        uint32_t parent;
    } parents[] = {{"an address space", space}, {"the client", r.client}, {"nobody", unknown}, {"0", 0}};
    for (size_t i = 0; i < COUNT(parents); i++) {
        uint64_t got = 0;
        for (rc = RM_OK; rc == RM_OK && got < BP_TIMES * bp.cap; got += rc == RM_OK ? bp.piece : 0) {
            struct rm_memory_params p = rm_memory(bp.piece);
            uint32_t object = rm_name(&r);
            rc = rm_alloc(&r, parents[i].parent, &object, RM_CLASS_MEMORY_LOCAL, &p);
        }
        bp_how("below %s: %llu MiB, then %s", parents[i].what, (unsigned long long)(got / MIB),
               bp_result(rc));
    }
    return bp_hold();
}

/* Taken and given back until the names come around, and a subtree at a time. */
static int churn_trees(void)
{
    struct rm r;
    rm_must_open(&r);
    uint32_t kept;
    must(rm_take(&r, bp.piece, &kept), "a piece");
    for (int i = 0; i < 64; i++) {
        uint32_t device = rm_name(&r), memory = rm_name(&r);
        struct rm_device_params d = {.client_share = r.client};
        struct rm_memory_params p = rm_memory(bp.piece);
        int rc = rm_alloc(&r, r.client, &device, RM_CLASS_DEVICE, &d);
        if (rc != RM_OK) {
            bp_how("a second device: %s", bp_result(rc));
            break;
        }
        must(rm_alloc(&r, device, &memory, RM_CLASS_MEMORY_LOCAL, &p), "memory below it");
        must(rm_free(&r, r.client, device), "freeing the device");
        (void)rm_free(&r, r.client, memory);
    }
    return fill_after("subtrees freed from above, then what was in them", &r, bp.piece);
}

const struct bp_attempt bp_handles[] = {
    {"free-twice", free_twice, BP_RAW, "memory freed twice"},
    {"free-foreign", free_foreign, BP_RAW, "another client's memory freed"},
    {"same-name", same_name, BP_RAW, "one name in two clients"},
    {"client-collision", client_collision, BP_RAW, "names of clients and devices given to memory"},
    {"client-again", client_again, BP_RAW, "a client freed and made again"},
    {"dup-free-source", dup_free_source, BP_RAW, "duplicated, then the source freed"},
    {"dup-close-source", dup_close_source, BP_RAW, "duplicated, then the source's file closed"},
    {"dup-many", dup_many, BP_RAW, "duplicated over and over, all but one freed"},
    {"unknown-parents", unknown_parents, BP_RAW, "memory below what the gate did not see being made"},
    {"churn-trees", churn_trees, BP_RAW, "whole subtrees freed"},
    {0},
};
