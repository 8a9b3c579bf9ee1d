/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.c - the bytes of video memory, by physical address.
 *
 * Only what was written is kept, in pieces of 64 KiB; a piece that is all one byte takes no bytes of its own, and a block that is
 * filled with one no pieces, so a test may fill a whole card. Freed memory is scrubbed, as the driver does. With `scrub off` the pieces
 * stay where they were, and whoever is given those addresses next reads them: that is the leak which a self-test must find.
 */
#include "simgpu/rm/state.h"

#include <errno.h>

static uint64_t key_of(const struct sim_block *b, uint64_t offset)
{
    return (uint64_t)b->place->gpu << 48 | (b->base + offset) / SIM_UNIT;
}

static void chunk_drop(struct bh_sim_rm *rm, struct sim_chunk *c)
{
    SIM_UNLINK(c->block ? &c->block->chunks : &rm->residue, c, next, prev);
    rm->n_residue -= !c->block;
    rm->n_full_chunks -= c->bytes != NULL;
    (void)bh_idmap_remove(&rm->chunk_keys, c->key);
    free(c->bytes);
    SIM_DROP(rm, chunks, c);
}

static struct sim_chunk *chunk_find(const struct bh_sim_rm *rm, uint64_t key)
{
    uint32_t slot = bh_idmap_find(&rm->chunk_keys, key);
    return slot == BH_IDMAP_NONE ? NULL : rm->chunks.at[slot];
}

/* NULL: there is no room for more. */
static struct sim_chunk *chunk_get(struct bh_sim_rm *rm, struct sim_block *b, uint64_t key)
{
    struct sim_chunk *c = chunk_find(rm, key);
    if (c || SIM_LIVE(rm, chunks) >= SIM_CHUNKS_MAX)
        return c;
    c = bh_alloc(1, sizeof(*c));
    *c = (struct sim_chunk){.key = key, .block = b, .fill = b->fill};
    SIM_PUT(rm, chunks, c);
    (void)bh_idmap_add(&rm->chunk_keys, key, c->slot);
    SIM_LINK(&b->chunks, c, next, prev);
    return c;
}

static void fill_whole(struct bh_sim_rm *rm, struct sim_block *b, uint8_t byte)
{
    for (struct sim_chunk *c = b->chunks, *next; c; c = next) {
        next = c->next;
        chunk_drop(rm, c);
    }
    b->fill = byte;
}

void bh_simrm_content_free(struct bh_sim_rm *rm, struct sim_block *b)
{
    /* What stays is kept by its address; beyond SIM_CHUNKS_MAX it is lost, as if it had been scrubbed. */
    for (uint64_t at = 0; rm->scrub_off && b->fill && at < b->bytes; at += SIM_UNIT)
        if (!chunk_get(rm, b, key_of(b, at)))
            break;
    while (b->chunks) {
        struct sim_chunk *c = b->chunks;
        if (!rm->scrub_off) {
            chunk_drop(rm, c);
            continue;
        }
        SIM_UNLINK(&b->chunks, c, next, prev);
        c->block = NULL;
        SIM_LINK(&rm->residue, c, next, prev);
        rm->n_residue++;
    }
}

void bh_simrm_content_adopt(struct bh_sim_rm *rm, struct sim_block *b)
{
    uint64_t first = key_of(b, 0), end = first + b->bytes / SIM_UNIT;
    for (struct sim_chunk *c = rm->residue, *next; c; c = next) {
        next = c->next;
        if (c->key < first || c->key >= end)
            continue;
        SIM_UNLINK(&rm->residue, c, next, prev);
        rm->n_residue--;
        c->block = b;
        SIM_LINK(&b->chunks, c, next, prev);
    }
}

void bh_simrm_scrub(struct bh_sim_rm *rm)
{
    while (rm->residue)
        chunk_drop(rm, rm->residue);
}

/* What the caller names, when it may; *ret_rc says why not. */
static struct sim_block *block_of(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory,
                                  uint64_t offset, uint64_t n, int *ret_rc)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    struct sim_client *c = f ? bh_simrm_client(rm, f, client) : NULL;
    struct sim_object *o = c ? bh_simrm_object(rm, c, memory) : NULL;
    *ret_rc = 0;
    if (!f)
        *ret_rc = -EBADF;
    else if (!o || o->class->kind != SIM_MEMORY || !o->block)
        *ret_rc = -EINVAL;
    else if (rm->gpus[o->gpu].lost)
        *ret_rc = -EIO;
    else if (offset > o->block->bytes || n > o->block->bytes - offset)
        *ret_rc = -EFAULT;
    return *ret_rc ? NULL : o->block;
}

static int chunk_expand(struct bh_sim_rm *rm, struct sim_chunk *c)
{
    if (c->bytes)
        return 0;
    if (rm->n_full_chunks >= SIM_FULL_CHUNKS_MAX)
        return -ENOMEM;
    c->bytes = bh_alloc(1, SIM_UNIT);
    memset(c->bytes, c->fill, SIM_UNIT);
    rm->n_full_chunks++;
    return 0;
}

/* One piece of a write: from is NULL for a fill with `byte`. */
static int put(struct bh_sim_rm *rm, struct sim_block *b, uint64_t offset, const uint8_t *from, uint8_t byte,
               size_t n)
{
    uint64_t key = key_of(b, offset), in = offset % SIM_UNIT;
    bool whole = !from && n == SIM_UNIT;
    if (whole && byte == b->fill) { /* as if nothing had been written */
        struct sim_chunk *old = b->chunks ? chunk_find(rm, key) : NULL;
        if (old)
            chunk_drop(rm, old);
        return 0;
    }
    struct sim_chunk *c = chunk_get(rm, b, key);
    if (!c)
        return -ENOMEM;
    if (whole) {
        rm->n_full_chunks -= c->bytes != NULL;
        free(c->bytes);
        c->bytes = NULL;
        c->fill = byte;
        return 0;
    }
    int rc = chunk_expand(rm, c);
    if (rc == 0 && from)
        memcpy(c->bytes + in, from, n);
    else if (rc == 0)
        memset(c->bytes + in, byte, n);
    return rc;
}

/* How many bytes from offset on are in one piece. */
static size_t part(uint64_t offset, uint64_t left)
{
    uint64_t room = SIM_UNIT - offset % SIM_UNIT;
    return (size_t)(left < room ? left : room);
}

int bh_sim_rm_write(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                    const void *bytes, size_t n)
{
    int rc;
    struct sim_block *b = block_of(rm, file, client, memory, offset, n, &rc);
    for (size_t done = 0, step; rc == 0 && done < n; done += step) {
        step = part(offset + done, n - done);
        rc = put(rm, b, offset + done, (const uint8_t *)bytes + done, 0, step);
    }
    return rc;
}

int bh_sim_rm_fill(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                   uint8_t byte, uint64_t n)
{
    int rc;
    struct sim_block *b = block_of(rm, file, client, memory, offset, n, &rc);
    if (rc == 0 && n == b->bytes) {
        fill_whole(rm, b, byte);
        return 0;
    }
    for (uint64_t done = 0, step; rc == 0 && done < n; done += step) {
        step = part(offset + done, n - done);
        rc = put(rm, b, offset + done, NULL, byte, (size_t)step);
    }
    return rc;
}

int bh_sim_rm_read(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                   void *bytes, size_t n)
{
    int rc;
    struct sim_block *b = block_of(rm, file, client, memory, offset, n, &rc);
    for (size_t done = 0, step; rc == 0 && done < n; done += step) {
        uint8_t *to = (uint8_t *)bytes + done;
        const struct sim_chunk *c = chunk_find(rm, key_of(b, offset + done));
        step = part(offset + done, n - done);
        if (c && c->bytes)
            memcpy(to, c->bytes + (offset + done) % SIM_UNIT, step);
        else
            memset(to, c ? c->fill : b->fill, step);
    }
    return rc;
}
