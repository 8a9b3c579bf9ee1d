/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.c - the numbers of the control and GPU files: which structure each takes and where its status goes.
 *
 * The driver looks at the low byte of a command and at the size in it, so that is what a row is found by. Number 211
 * wraps another command behind a pointer. Pointers are not followed here, so it is refused like any number without
 * a row.
 */
#include "simgpu/rm/state.h"

#include <errno.h>
#include <stdio.h>

enum { NO_STATUS = UINT16_MAX, CARD_BYTES = 72, ANY_SIZE = 0 };

uint32_t bh_simrm_gpu_id(const struct bh_sim_gpu *gpu)
{
    /* `0000:18:00.0`: bus and slot, as the driver numbers cards */
    uint32_t id = 0;
    for (const char *p = gpu->pci + 5; *p && *p != '.'; p++) {
        uint32_t digit = (uint32_t)(*p >= 'a' ? *p - 'a' + 10 : *p - '0');
        id = *p == ':' ? id : id << 4 | (digit & 15);
    }
    return id;
}

static int free_object(struct sim_call *c, void *arg, size_t n)
{
    struct rm_free f;
    (void)n;
    memcpy(&f, arg, sizeof(f));
    c->client = bh_simrm_client(c->rm, c->file, f.client);
    struct sim_object *o = c->client ? bh_simrm_object(c->rm, c->client, f.object) : NULL;
    if (!c->client)
        return RM_INVALID_CLIENT;
    if (!o)
        return RM_OK; /* the card answered so: the vendor's library frees one that is not there when it starts */
    if (o == c->client->root)
        bh_simrm_client_free(c->rm, c->client);
    else
        bh_simrm_object_free(c->rm, o);
    return RM_OK;
}

static int map_memory(struct sim_call *c, void *arg, size_t n)
{
    struct rm_map_memory m;
    (void)n;
    memcpy(&m, arg, sizeof(m));
    c->client = bh_simrm_client(c->rm, c->file, m.client);
    struct sim_object *o = c->client ? bh_simrm_object(c->rm, c->client, m.memory) : NULL;
    if (!o)
        return c->client ? RM_OBJECT_NOT_FOUND : RM_INVALID_CLIENT;
    if (o->gpu != SIM_NONE && c->rm->gpus[o->gpu].lost)
        return RM_GPU_IS_LOST;
    bool fits = !o->block || (m.offset <= o->block->bytes && m.length <= o->block->bytes - m.offset);
    return fits ? RM_OK : RM_INVALID_LIMIT;
}

/* Mappings take nothing, so nothing is kept of them: client and memory must be there. */
static int names_memory(struct sim_call *c, const void *arg, size_t at)
{
    uint32_t client, memory;
    memcpy(&client, arg, sizeof(client));
    memcpy(&memory, (const char *)arg + at, sizeof(memory));
    c->client = bh_simrm_client(c->rm, c->file, client);
    if (!c->client)
        return RM_INVALID_CLIENT;
    return bh_simrm_object(c->rm, c->client, memory) ? RM_OK : RM_OBJECT_NOT_FOUND;
}

static int unmap_memory(struct sim_call *c, void *arg, size_t n)
{
    (void)n;
    return names_memory(c, arg, 8);
}

static int map_dma(struct sim_call *c, void *arg, size_t n)
{
    (void)n;
    return names_memory(c, arg, 12);
}

static int os_event(struct sim_call *c, void *arg, size_t n)
{
    uint32_t client;
    (void)n;
    memcpy(&client, arg, sizeof(client));
    return bh_simrm_client(c->rm, c->file, client) ? RM_OK : RM_INVALID_CLIENT;
}

static void put32(uint8_t *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
}

/* Per card: valid, place on the bus, ids, sizes, minor. */
static int card_info(struct sim_call *c, void *arg, size_t n)
{
    const struct bh_sim_node *node = &c->rm->node;
    memset(arg, 0, n);
    for (uint32_t i = 0; i < node->n_gpus && (i + 1) * CARD_BYTES <= n; i++) {
        const struct bh_sim_gpu *g = &node->gpus[i];
        uint8_t *card = (uint8_t *)arg + (size_t)i * CARD_BYTES;
        uint32_t id = bh_simrm_gpu_id(g);
        card[0] = 1;
        card[8] = (uint8_t)(id >> 8);
        card[9] = (uint8_t)id;
        put32(card + 12, g->device_id); /* vendor, then device */
        put32(card + 16, id);
        memcpy(card + 48, &g->total_bytes, sizeof(g->total_bytes));
        put32(card + 56, g->minor);
        (void)snprintf((char *)card + 60, 10, "nvidia%u", g->minor);
    }
    return 0;
}

static int check_version(struct sim_call *c, void *arg, size_t n)
{
    enum { STRICT = 0, AT_REPLY = 4, AT_TEXT = 8, RECOGNIZED = 1 };
    uint8_t *a = arg;
    uint32_t what;
    char text[64] = {0};
    memcpy(&what, a, sizeof(what));
    size_t len = strlen(c->rm->driver);
    memcpy(text, c->rm->driver, len);
    bool same = memcmp(a + AT_TEXT, text, len + 1) == 0;
    memcpy(a + AT_TEXT, text, n - AT_TEXT);
    put32(a + AT_REPLY, same || what != STRICT ? RECOGNIZED : 0);
    return same || what != STRICT ? 0 : -EINVAL;
}

static int sys_params(struct sim_call *c, void *arg, size_t n)
{
    uint64_t block = UINT64_C(128) << 20; /* the machine's memory comes in blocks of this */
    (void)c;
    memcpy(arg, &block, n);
    return 0;
}

static int opened(struct sim_call *c, void *arg, size_t n)
{
    (void)c;
    memset(arg, 0, n); /* the open is complete, without an error */
    return 0;
}

static int accepted(struct sim_call *c, void *arg, size_t n)
{
    (void)c;
    (void)arg;
    (void)n;
    return 0;
}

static const struct {
    uint8_t number;
    bool can_fail; /* `calls fail` is about these: giving back always works */
    uint16_t bytes, status_at;
    int (*call)(struct sim_call *c, void *arg, size_t n); /* a status or a negative errno */
} ROWS[] = {
    {RM_ALLOC, true, sizeof(struct rm_alloc), offsetof(struct rm_alloc, status), bh_simrm_alloc},
    {RM_ALLOC, true, sizeof(struct rm_alloc_short), offsetof(struct rm_alloc_short, status), bh_simrm_alloc},
    {RM_CONTROL, true, sizeof(struct rm_control), offsetof(struct rm_control, status), bh_simrm_control},
    {RM_FREE, false, sizeof(struct rm_free), offsetof(struct rm_free, status), free_object},
    {RM_ALLOC_MEMORY, true, sizeof(struct rm_alloc_memory), offsetof(struct rm_alloc_memory, status),
     bh_simrm_alloc_memory},
    {RM_ALLOC_OBJECT, true, 20, 16, bh_simrm_alloc_object},
    {RM_DUP_OBJECT, true, sizeof(struct rm_dup), offsetof(struct rm_dup, status), bh_simrm_dup},
    {RM_SHARE, true, 24, 20, bh_simrm_share},
    {RM_VID_HEAP_CONTROL, true, sizeof(struct rm_vid_heap), offsetof(struct rm_vid_heap, status),
     bh_simrm_heap},
    {RM_MAP_MEMORY, true, sizeof(struct rm_map_memory), offsetof(struct rm_map_memory, status), map_memory},
    {RM_UNMAP_MEMORY, false, 32, 24, unmap_memory},
    {RM_MAP_MEMORY_DMA, true, 64, 56, map_dma},
    {RM_UNMAP_MEMORY_DMA, false, 48, 40, map_dma},
    {0x5e /* the address of a mapping changed */, false, 40, 32, unmap_memory},
    {RM_ALLOC_OS_EVENT, true, 16, 12, os_event},
    {RM_FREE_OS_EVENT, false, 16, 12, os_event},
    {RM_CARD_INFO, false, ANY_SIZE, NO_STATUS, card_info},
    {RM_REGISTER_FD, false, 4, NO_STATUS, accepted},
    {RM_ATTACH_GPUS, false, ANY_SIZE, NO_STATUS, accepted},
    {RM_CHECK_VERSION, false, 72, NO_STATUS, check_version},
    {215 /* memory nodes of the machine */, false, 560, NO_STATUS, accepted},
    {RM_SYS_PARAMS, false, 8, NO_STATUS, sys_params},
    {RM_WAIT_OPEN_COMPLETE, false, 8, NO_STATUS, opened},
};

int bh_simrm_escape(struct sim_call *c, uint32_t number, void *arg, size_t n)
{
    for (size_t i = 0; i < BH_COUNT_OF(ROWS); i++) {
        if (ROWS[i].number != number || (ROWS[i].bytes != ANY_SIZE && ROWS[i].bytes != n))
            continue;
        int rc = ROWS[i].can_fail ? (int)bh_simrm_fault(c->rm) : RM_OK;
        if (rc == RM_OK)
            rc = ROWS[i].call(c, arg, n);
        if (rc >= 0 && ROWS[i].status_at != NO_STATUS)
            put32((uint8_t *)arg + ROWS[i].status_at, (uint32_t)rc);
        return rc < 0 ? rc : 0;
    }
    return -EINVAL;
}
