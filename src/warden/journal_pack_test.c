/* SPDX-License-Identifier: Apache-2.0 */
/* What is unpacked is what was packed, whatever it was; what cannot have been packed is refused. */
#include "base/idmap.h"
#include "base/mem.h"
#include "base/test.h"
#include "warden/journal_pack.h"

enum { N = 20000 };

static bool same(const struct bh_ledger_op *a, const struct bh_ledger_op *b)
{
    return a->kind == b->kind && a->pid == b->pid && a->client == b->client && a->parent == b->parent &&
           a->object == b->object && a->class == b->class && a->gpu == b->gpu && a->flags == b->flags &&
           a->bytes == b->bytes && a->file == b->file && a->source_client == b->source_client &&
           a->source == b->source;
}

static uint64_t drawn;

/* Mostly near what was there, at times at an end, at times anything. */
static uint64_t near(uint64_t was, uint64_t most)
{
    const uint64_t r = drawn = bh_idmap_mix(drawn);
    switch (r % 8) {
    case 0:
        return bh_idmap_mix(r) & most;
    case 1:
        return r >> 32 & 1 ? most : 0;
    case 2:
    case 3:
        return (was + (r >> 40) % 9 - 4) & most;
    default:
        return was;
    }
}

static struct bh_ledger_op next(struct bh_ledger_op o)
{
    uint32_t *const words[] = {&o.pid, &o.client, &o.parent,        &o.object, &o.class,
                               &o.gpu, &o.flags,  &o.source_client, &o.source};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        *words[i] = (uint32_t)near(*words[i], UINT32_MAX);
    o.bytes = near(o.bytes, UINT64_MAX);
    o.file = near(o.file, UINT64_MAX);
    o.kind = 1 + (uint32_t)(bh_idmap_mix(drawn) % (BH_JOURNAL_KIND_SEAL - 1));
    return o;
}

static struct bh_ledger_op ops[N];
static uint8_t bytes[N * BH_JOURNAL_PACKED_MAX];

TEST(any_record_comes_back)
{
    struct bh_journal_pack to = {.sum = 7}, from = {.sum = 7};
    struct bh_ledger_op op = {0}, got;
    size_t n = 0, at = 0, most = 0;
    drawn = 1;
    for (size_t i = 0; i < N; i++) {
        ops[i] = op = next(op);
        const size_t one = bh_journal_pack(&to, &op, bytes + n);
        most = one > most ? one : most;
        n += one;
        if (i % 100 == 99)
            n += bh_journal_pack_seal(&to, bytes + n);
    }
    CHECK(most <= BH_JOURNAL_PACKED_MAX);
    for (size_t i = 0; i < N; i++) {
        const size_t one = bh_journal_unpack(&from, bytes + at, n - at, &got);
        CHECK(one > 0 && same(&got, &ops[i]));
        at += one;
        if (i % 100 != 99)
            continue;
        CHECK_EQ(bh_journal_unpack(&from, bytes + at, n - at, &got), BH_JOURNAL_SEAL_BYTES);
        CHECK_EQ(got.kind, BH_JOURNAL_KIND_SEAL);
        at += BH_JOURNAL_SEAL_BYTES;
    }
    CHECK_EQ(at, n);
    CHECK_EQ(from.sum, to.sum);
}

/* One after the other, as a ledger is told. */
TEST(pieces_of_one_size_take_three_bytes)
{
    struct bh_journal_pack p = {0}, from = {0};
    struct bh_ledger_op got;
    uint8_t at[BH_JOURNAL_PACKED_MAX];
    size_t n = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const struct bh_ledger_op block = {.kind = BH_LEDGER_OP_HAS_BLOCK, .gpu = 1, .bytes = 2 << 20},
                                  object = {.kind = BH_LEDGER_OP_HAS_OBJECT,
                                            .client = 0xc1d00001,
                                            .object = 0x5c001000 - i,
                                            .parent = 3,
                                            .source = i,
                                            .class = 0x40,
                                            .gpu = 1,
                                            .flags = 1};
        size_t one = bh_journal_pack(&p, &block, at);
        CHECK_EQ(bh_journal_unpack(&from, at, one, &got), one);
        n += one;
        one = bh_journal_pack(&p, &object, at);
        CHECK_EQ(bh_journal_unpack(&from, at, one, &got), one);
        CHECK(same(&got, &object));
        n += one;
    }
    CHECK(n <= 3 * 1000 + 32);
}

/* None, the newest, one that cannot be yet, and what would be mistaken for it. */
TEST(whose_memory_it_is_comes_back)
{
    static const uint32_t sources[] = {UINT32_MAX, 0, 1, 2, 3, 4, UINT32_MAX - 1, 5, 0x80000000};
    for (uint32_t blocks = 0; blocks < 4; blocks++)
        for (size_t i = 0; i < BH_COUNT_OF(sources); i++) {
            struct bh_journal_pack p = {0}, from = {0};
            uint8_t at[BH_JOURNAL_PACKED_MAX];
            const struct bh_ledger_op op = {.kind = BH_LEDGER_OP_HAS_OBJECT, .source = sources[i]};
            struct bh_ledger_op got;
            p.blocks = from.blocks = blocks;
            const size_t one = bh_journal_pack(&p, &op, at);
            CHECK_EQ(bh_journal_unpack(&from, at, one, &got), one);
            CHECK(same(&op, &got));
        }
}

TEST(what_was_cut_or_cannot_be_is_refused)
{
    struct bh_journal_pack p = {0};
    struct bh_ledger_op got;
    uint8_t at[BH_JOURNAL_PACKED_MAX];
    const struct bh_ledger_op op = {
        .kind = BH_LEDGER_OP_OBJECT, .client = 70000, .object = 9, .bytes = UINT64_MAX / 3};
    const size_t n = bh_journal_pack(&p, &op, at);
    for (size_t cut = 0; cut < n; cut++)
        CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, at, cut, &got), 0);
    CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, at, n, &got), n);
    CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, (const uint8_t[8]){0}, 8, &got), 0);
    /* a name of 33 bits, one below 0, and a number that does not end */
    static const uint8_t large[] = {BH_LEDGER_OP_DROP | 1 << 5, 0x80, 0x80, 0x80, 0x80, 0x20};
    static const uint8_t below[] = {BH_LEDGER_OP_DROP | 1 << 5, 1};
    static const uint8_t endless[] = {
        BH_LEDGER_OP_DROP | 2 << 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, large, sizeof(large), &got), 0);
    CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, below, sizeof(below), &got), 0);
    CHECK_EQ(bh_journal_unpack(&(struct bh_journal_pack){0}, endless, sizeof(endless), &got), 0);
}

TEST(a_seal_is_of_all_before_it)
{
    uint8_t at[2 * BH_JOURNAL_PACKED_MAX + BH_JOURNAL_SEAL_BYTES];
    const struct bh_ledger_op op = {.kind = BH_LEDGER_OP_MAP, .pid = 5, .bytes = 4096};
    struct bh_journal_pack p = {.sum = 1};
    struct bh_ledger_op got;
    size_t n = bh_journal_pack(&p, &op, at);
    const size_t seal = n;
    n += bh_journal_pack_seal(&p, at + n);
    for (size_t i = 0; i < n; i++) {
        struct bh_journal_pack from = {.sum = 1};
        at[i] ^= 0x40;
        const size_t first = bh_journal_unpack(&from, at, n, &got);
        const size_t second = first ? bh_journal_unpack(&from, at + first, n - first, &got) : 0;
        CHECK(!first || !second || first + second != n || got.kind != BH_JOURNAL_KIND_SEAL);
        at[i] ^= 0x40;
    }
    struct bh_journal_pack other = {.sum = 2};
    CHECK_EQ(bh_journal_unpack(&other, at, n, &got), seal);
    CHECK_EQ(bh_journal_unpack(&other, at + seal, n - seal, &got), 0);
}

TEST_MAIN
