/* SPDX-License-Identifier: Apache-2.0 */
/* journal_old_fixture.h - a journal as wardens of version 1 wrote it, of records that a test tells. */
#ifndef BH_WARDEN_JOURNAL_OLD_FIXTURE_H
#define BH_WARDEN_JOURNAL_OLD_FIXTURE_H

#include "base/idmap.h"
#include "warden/journal.h"

#include <unistd.h>

enum { OLD_HEAD = 4096, OLD_RECORD = 64, OLD_SLOT = 64, OLD_SLOT_GONE, OLD_PROCESS, OLD_MAPPING };
#define OLD_HALF ((off_t)OLD_RECORD << 22)

struct old_journal {
    int fd;
    uint32_t half, n;
    bool failed;
};

static inline void old_write(struct old_journal *old, const void *from, size_t n, off_t at)
{
    old->failed = old->failed || pwrite(old->fd, from, n, at) != (ssize_t)n;
}

static inline void old_put(struct old_journal *old, const void *body, size_t bytes)
{
    uint64_t r[8] = {0};
    memcpy(r + 1, body, bytes < 56 ? bytes : 56);
    r[0] = (uint64_t)old->half << 32 | old->n;
    for (int i = 1; i < 8; i++)
        r[0] = bh_idmap_mix(r[0] ^ r[i]);
    old_write(old, r, sizeof(r), OLD_HEAD + OLD_HALF * (off_t)old->half + (off_t)OLD_RECORD * old->n++);
}

/* arg: the journal; as a ledger tells it. */
static inline void old_hear(void *arg, const struct bh_ledger_op *op)
{
    old_put(arg, op, sizeof(*op));
}

static inline void old_slot(struct old_journal *old, uint32_t kind, const struct bh_journal_slot *slot)
{
    struct {
        uint32_t kind;
        struct bh_journal_slot slot;
    } body;
    memset(&body, 0, sizeof(body));
    body.kind = kind;
    body.slot = *slot;
    old_put(old, &body, sizeof(body));
}

static inline void old_process(struct old_journal *old, const struct bh_journal_process *process)
{
    struct {
        uint32_t kind;
        struct bh_journal_process process;
    } body;
    memset(&body, 0, sizeof(body));
    body.kind = OLD_PROCESS;
    body.process = *process;
    old_put(old, &body, sizeof(body));
}

static inline void old_mapping(struct old_journal *old, const struct bh_journal_mapping *mapping)
{
    struct {
        uint32_t kind;
        struct bh_journal_mapping mapping;
    } body;
    memset(&body, 0, sizeof(body));
    body.kind = OLD_MAPPING;
    body.mapping = *mapping;
    old_put(old, &body, sizeof(body));
}

/* All that was put counts. */
static inline void old_commit(struct old_journal *old, uint64_t cap_bytes, enum bh_journal_stage stage)
{
    const uint64_t head[4] = {UINT64_C(0x6c6e6a2d64686b62),
                              (uint64_t)sizeof(struct bh_journal_flight) << 32 | 1, cap_bytes,
                              (uint64_t)old->n << 3 | (uint64_t)stage << 1 | old->half};
    old->failed = old->failed || ftruncate(old->fd, OLD_HEAD + 2 * OLD_HALF) < 0;
    old_write(old, head, sizeof(head), 0);
}

#endif
