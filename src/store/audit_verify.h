/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_verify.h - holds a log against itself, against a key, and against a checkpoint that was kept elsewhere.
 *
 * The log is given piece by piece, from a database (audit_db.h) or an export (audit_export.h): records in the order they
 * lie there, each checkpoint after the last record it covers. Everything that is wrong is told, by record, with
 * what was expected; the walk goes on behind it from what the log says, so that one edit is one finding.
 *
 * Found without help from outside: a record that was edited, put elsewhere, taken out or put in; a column that differs from
 * what was hashed; a checkpoint that was edited, forged or taken out; an end that lies before what the head or the
 * last checkpoint covers. Found only with a checkpoint from elsewhere: a log cut back to an older checkpoint together with
 * its head, and one rewritten by whoever has the key. Never found: records cut off after the newest checkpoint anyone has.
 */
#ifndef BH_STORE_AUDIT_VERIFY_H
#define BH_STORE_AUDIT_VERIFY_H

#include "base/mem.h"
#include "store/audit_rows.h"

enum bh_audit_wrong {
#define BH_AUDIT_WRONG(id, word) BH_WRONG_##id,
#include "store/audit_wrong.def"
#undef BH_AUDIT_WRONG
    BH_AUDIT_WRONGS
};
extern const char *const bh_audit_wrongs[BH_AUDIT_WRONGS];

struct bh_audit_finding {
    uint64_t seq; /* the record, or that a checkpoint covers; 0: the log as a whole */
    enum bh_audit_wrong wrong;
    char text[480];
};

struct bh_audit_verifier {
    /* given */
    const struct bh_audit_key *trusted; /* NULL: the keys are those that the log names */
    const char *saved_note;             /* NULL: none */
    size_t n_saved_note;
    void (*found)(void *arg, const struct bh_audit_finding *f);
    void *arg;
    /* what came out */
    char origin[BH_NOTE_NAME_MAX];
    uint64_t first, records, findings;
    uint64_t checkpoints, signed_size; /* records under the last checkpoint that holds */
    uint64_t backwards;                /* records that are older than the one before: the clock was set */
    struct bh_audit_key key;           /* in force at the end */
    uint32_t keys;
    bool trusted_seen, saved_held;
    uint64_t saved_size;
    /* on the way */
    struct bh_checkpoint saved;
    struct bh_hash chain, cut_chain;
    struct bh_merkle edge, cut;
    bool torn;     /* records are missing or in another order: roots mean nothing any more */
    uint64_t owes; /* the record of a checkpoint whose checkpoint did not come yet; 0: none */
    int64_t newest_ns, checkpoint_ns; /* of the last record; of the last one that tells of a checkpoint */
    BH_VEC(struct bh_audit_key) all_keys;
};

/* BH_INVALID: the saved checkpoint is none. The four fields above are set before. */
int bh_audit_verify_begin(struct bh_audit_verifier *v, const char *origin, const struct bh_merkle *cut,
                          const struct bh_hash *cut_chain, struct bh_err *err) BH_MUST_USE;
void bh_audit_verify_row(struct bh_audit_verifier *v, const struct bh_audit_row *row);
void bh_audit_verify_checkpoint(struct bh_audit_verifier *v, uint64_t size, const char *note, size_t n);
/* What the log itself says of its end: how many records, and their chain. */
void bh_audit_verify_end(struct bh_audit_verifier *v, uint64_t end_n, const struct bh_hash *end_chain);
void bh_audit_verify_fini(struct bh_audit_verifier *v);

/* For what is not a log in one piece (audit_export.h). */
void bh_audit_verify_say(struct bh_audit_verifier *v, uint64_t seq, enum bh_audit_wrong wrong,
                         const char *fmt, ...) BH_PRINTF(4, 5);
/* A record that names a key: is it vouched for? It is in force from here on. */
void bh_audit_verify_key(struct bh_audit_verifier *v, const struct bh_audit_record *r);
/* Did any key of this log sign it? */
bool bh_audit_verify_signed(const struct bh_audit_verifier *v, const struct bh_checkpoint *c,
                            const char *note);
/* After the last key and record: the key that was given, and the checkpoint that was saved, must have been met. */
void bh_audit_verify_trust(struct bh_audit_verifier *v);

#endif
