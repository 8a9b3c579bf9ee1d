/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_pack.h - records of a journal as few bytes.
 *
 * Most records are like the last one of their kind: the same client, a name that is one more, the same size. So a record
 * is which of its fields are not what they were then, and by how much. That takes three bytes for what there may be tens of
 * thousands of, which would take a hundred as they are.
 *
 * Pure. Whoever reads has the state that the writer had at the same place, since both begin with none.
 */
#ifndef BH_WARDEN_JOURNAL_PACK_H
#define BH_WARDEN_JOURNAL_PACK_H

#include "warden/ledger.h"

/* Kinds beside the ledger's, in the fields of its records. */
enum bh_journal_kind {
    BH_JOURNAL_KIND_SLOT = 24,
    BH_JOURNAL_KIND_SLOT_GONE,
    BH_JOURNAL_KIND_PROCESS,
    BH_JOURNAL_KIND_MAPPING,
    BH_JOURNAL_KIND_SEAL = 31, /* what came before is whole: the sum of it */
    BH_JOURNAL_KINDS = 32
};
_Static_assert((int)BH_LEDGER_OP_N_ < (int)BH_JOURNAL_KIND_SLOT, "the ledger's kinds run into ours");

enum {
    BH_JOURNAL_FIELDS = 10,
    BH_JOURNAL_PACKED_MAX = 2 + 10 * BH_JOURNAL_FIELDS, /* bytes of a record, at the very most */
    BH_JOURNAL_SEAL_BYTES = 5,
};

struct bh_journal_pack { /* zeroed: nothing was packed yet */
    uint64_t last[BH_JOURNAL_KINDS][BH_JOURNAL_FIELDS];
    uint32_t blocks; /* told so far */
    uint64_t sum;    /* of all bytes; what it starts with is the caller's */
};

/* Returns how many bytes it took. The kind is one of the above or the ledger's, and no seal. */
size_t bh_journal_pack(struct bh_journal_pack *p, const struct bh_ledger_op *op,
                       uint8_t ret[BH_JOURNAL_PACKED_MAX]);
size_t bh_journal_pack_seal(struct bh_journal_pack *p, uint8_t ret[BH_JOURNAL_SEAL_BYTES]);
/* Returns how many bytes of `n` it took; 0: this cannot be a record, or it is a seal of something else. */
size_t bh_journal_unpack(struct bh_journal_pack *p, const uint8_t *at, size_t n, struct bh_ledger_op *ret);

#endif
