/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_pack.c - a byte of kind, maybe one more that says which fields follow, and their differences.
 *
 * First byte: the kind in five bits, whether the name and the size differ in one each, and whether a second byte says so of
 * the others. A difference is signed, seven bits in a byte, the lowest first.
 */
#include "warden/journal_pack.h"

#include "base/idmap.h"

#include <string.h>

/* The first two are in the first byte. */
enum { OBJECT, BYTES, PID, CLIENT, PARENT, CLASS, GPU_FLAGS, FILE_NUMBER, SOURCE_CLIENT, SOURCE };
enum { KIND_MASK = 31, IN_FIRST = 2, FIRST_SHIFT = 5, MORE = 0x80, NUMBER_MAX = 10 };
_Static_assert(SOURCE + 1 == BH_JOURNAL_FIELDS, "a field was not counted");
_Static_assert(BH_JOURNAL_FIELDS - IN_FIRST <= 8, "fields do not fit into a byte");

/*
 * Blocks are told right before the object that holds them, so the last one is the usual. UINT32_MAX is none, and takes the
 * place of one that was not told yet.
 */
static uint32_t source_turned(uint32_t blocks, uint32_t source)
{
    if (source == UINT32_MAX)
        return 0;
    return source == blocks ? blocks - UINT32_MAX : blocks - source;
}

static uint32_t source_of(uint32_t blocks, uint32_t turned)
{
    if (turned == 0)
        return UINT32_MAX;
    return turned == blocks - UINT32_MAX ? blocks : blocks - turned;
}

static void fields_of(const struct bh_journal_pack *p, const struct bh_ledger_op *op,
                      uint64_t ret[BH_JOURNAL_FIELDS])
{
    ret[OBJECT] = op->object;
    ret[BYTES] = op->bytes;
    ret[PID] = op->pid;
    ret[CLIENT] = op->client;
    ret[PARENT] = op->parent;
    ret[CLASS] = op->class;
    ret[GPU_FLAGS] = (uint64_t)op->flags << 32 | op->gpu;
    ret[FILE_NUMBER] = op->file;
    ret[SOURCE_CLIENT] = op->source_client;
    ret[SOURCE] = op->kind == BH_LEDGER_OP_HAS_OBJECT ? source_turned(p->blocks, op->source) : op->source;
}

static bool fits(const uint64_t f[BH_JOURNAL_FIELDS])
{
    return ((f[OBJECT] | f[PID] | f[CLIENT] | f[PARENT] | f[CLASS] | f[SOURCE_CLIENT] | f[SOURCE]) >> 32) ==
           0;
}

static struct bh_ledger_op op_of(const struct bh_journal_pack *p, uint32_t kind,
                                 const uint64_t f[BH_JOURNAL_FIELDS])
{
    const uint32_t source = (uint32_t)f[SOURCE];
    return (struct bh_ledger_op){.kind = kind,
                                 .object = (uint32_t)f[OBJECT],
                                 .bytes = f[BYTES],
                                 .pid = (uint32_t)f[PID],
                                 .client = (uint32_t)f[CLIENT],
                                 .parent = (uint32_t)f[PARENT],
                                 .class = (uint32_t)f[CLASS],
                                 .gpu = (uint32_t)f[GPU_FLAGS],
                                 .flags = (uint32_t)(f[GPU_FLAGS] >> 32),
                                 .file = f[FILE_NUMBER],
                                 .source_client = (uint32_t)f[SOURCE_CLIENT],
                                 .source =
                                     kind == BH_LEDGER_OP_HAS_OBJECT ? source_of(p->blocks, source) : source};
}

static void sum_up(struct bh_journal_pack *p, const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, n - i < 8 ? n - i : 8);
        p->sum = bh_idmap_mix(p->sum ^ word);
    }
}

static size_t put_number(uint64_t difference, uint8_t *to)
{
    uint64_t left = difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
    size_t n = 0;
    for (; left > 0x7f; left >>= 7)
        to[n++] = (uint8_t)(left | 0x80);
    to[n++] = (uint8_t)left;
    return n;
}

/* Returns 0 where it does not end in time. */
static size_t get_number(const uint8_t *at, size_t n, uint64_t *ret)
{
    uint64_t left = 0;
    for (size_t i = 0; i < n && i < NUMBER_MAX; i++) {
        left |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] & 0x80)
            continue;
        *ret = left >> 1 ^ (left & 1 ? UINT64_MAX : 0);
        return i + 1;
    }
    return 0;
}

static void remember(struct bh_journal_pack *p, uint32_t kind, const uint64_t f[BH_JOURNAL_FIELDS])
{
    memcpy(p->last[kind], f, sizeof(p->last[kind]));
    p->blocks += kind == BH_LEDGER_OP_HAS_BLOCK;
}

size_t bh_journal_pack(struct bh_journal_pack *p, const struct bh_ledger_op *op,
                       uint8_t ret[BH_JOURNAL_PACKED_MAX])
{
    const uint64_t *last = p->last[op->kind];
    uint64_t f[BH_JOURNAL_FIELDS];
    uint32_t differ = 0;
    fields_of(p, op, f);
    for (uint32_t i = 0; i < BH_JOURNAL_FIELDS; i++)
        differ |= (uint32_t)(f[i] != last[i]) << i;
    const uint32_t others = differ >> IN_FIRST;
    size_t n = 0;
    ret[n++] = (uint8_t)(op->kind | (differ & ((1 << IN_FIRST) - 1)) << FIRST_SHIFT | (others ? MORE : 0));
    if (others)
        ret[n++] = (uint8_t)others;
    for (; differ; differ &= differ - 1) {
        const int i = __builtin_ctz(differ);
        n += put_number(f[i] - last[i], ret + n);
    }
    remember(p, op->kind, f);
    sum_up(p, ret, n);
    return n;
}

static void seal_of(uint64_t sum, uint8_t ret[BH_JOURNAL_SEAL_BYTES])
{
    const uint32_t half = (uint32_t)(sum >> 32);
    ret[0] = BH_JOURNAL_KIND_SEAL;
    memcpy(ret + 1, &half, sizeof(half));
}

size_t bh_journal_pack_seal(struct bh_journal_pack *p, uint8_t ret[BH_JOURNAL_SEAL_BYTES])
{
    seal_of(p->sum, ret);
    sum_up(p, ret, BH_JOURNAL_SEAL_BYTES);
    return BH_JOURNAL_SEAL_BYTES;
}

static size_t unpack_seal(struct bh_journal_pack *p, const uint8_t *at, size_t n, struct bh_ledger_op *ret)
{
    uint8_t right[BH_JOURNAL_SEAL_BYTES];
    seal_of(p->sum, right);
    if (n < sizeof(right) || memcmp(right, at, sizeof(right)) != 0)
        return 0;
    sum_up(p, right, sizeof(right));
    *ret = (struct bh_ledger_op){.kind = BH_JOURNAL_KIND_SEAL};
    return sizeof(right);
}

size_t bh_journal_unpack(struct bh_journal_pack *p, const uint8_t *at, size_t n, struct bh_ledger_op *ret)
{
    uint64_t f[BH_JOURNAL_FIELDS];
    size_t used = 0;
    if (!n)
        return 0;
    const uint32_t kind = at[0] & KIND_MASK;
    if (kind == BH_JOURNAL_KIND_SEAL)
        return unpack_seal(p, at, n, ret);
    if (kind == BH_LEDGER_OP_NONE) /* where nothing was written: there may be hundreds of MiB of it */
        return 0;
    uint32_t differ = at[used++] >> FIRST_SHIFT & ((1 << IN_FIRST) - 1);
    if (at[0] & MORE) {
        if (used == n)
            return 0;
        differ |= (uint32_t)at[used++] << IN_FIRST;
    }
    memcpy(f, p->last[kind], sizeof(f));
    for (; differ; differ &= differ - 1) {
        uint64_t difference = 0;
        const size_t more = get_number(at + used, n - used, &difference);
        if (!more)
            return 0;
        f[__builtin_ctz(differ)] += difference;
        used += more;
    }
    if (!fits(f))
        return 0;
    *ret = op_of(p, kind, f);
    remember(p, kind, f);
    sum_up(p, at, used);
    return used;
}
