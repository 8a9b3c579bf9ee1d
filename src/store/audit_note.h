/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_note.h - keys and signed checkpoints as text, in the forms that transparency logs use.
 *
 * A checkpoint is a signed note (C2SP signed-note and tlog-checkpoint): the log's name, how many records, the root of
 * their Merkle tree, an empty line, signatures. It is small enough for a ticket or a printed page, and whoever has one can
 * tell whether a log is still the one it was made from. Signatures of others (witnesses) may stand under it: they are
 * read past. Keys are written as in Go's note package: `name+id+base64`, secret ones with PRIVATE+KEY+ before.
 */
#ifndef BH_STORE_AUDIT_NOTE_H
#define BH_STORE_AUDIT_NOTE_H

#include "store/audit_crypto.h"

enum { BH_NOTE_NAME_MAX = 128, BH_NOTE_MAX = 4096, BH_NOTE_SIGNATURES = 16, BH_KEY_TEXT_MAX = 256 };

/* ---- keys ---- */

struct bh_audit_key { /* public */
    char name[BH_NOTE_NAME_MAX];
    uint32_t id; /* the first bytes of SHA-256(name, newline, 1, key) */
    uint8_t public[BH_ED25519_BYTES];
};

bool bh_audit_key_eq(const struct bh_audit_key *a, const struct bh_audit_key *b);
/* BH_INVALID: a name that is empty, too long, or holds a blank, a control character or a plus. */
int bh_audit_key_make(const char *name, const uint8_t public[BH_ED25519_BYTES], struct bh_audit_key *ret,
                      struct bh_err *err) BH_MUST_USE;
/* One line; blanks around it are fine. */
int bh_audit_key_parse(const char *text, size_t n, struct bh_audit_key *ret, struct bh_err *err) BH_MUST_USE;
const char *bh_audit_key_format(const struct bh_audit_key *k, char buf[BH_KEY_TEXT_MAX]);
/* The secret form, for the key file. */
int bh_audit_secret_parse(const char *text, size_t n, struct bh_audit_key *ret,
                          struct bh_sign_key *ret_secret, struct bh_err *err) BH_MUST_USE;
void bh_audit_secret_format(const struct bh_audit_key *k, const struct bh_sign_key *secret,
                            char buf[BH_KEY_TEXT_MAX]);

/*
 * What is signed when a key begins to be used: by itself when it is the first of the log, else by the key before it.
 * Log, place, what came before and the new key are in it, so it fits nowhere else.
 */
void bh_audit_key_statement(const struct bh_audit_key *k, uint64_t seq, const struct bh_hash *prev,
                            struct bh_buf *out);

/* ---- checkpoints ---- */

struct bh_note_signature {
    char name[BH_NOTE_NAME_MAX];
    uint32_t id;
    uint8_t at[BH_SIGNATURE_BYTES];
};

struct bh_checkpoint {
    char origin[BH_NOTE_NAME_MAX];
    uint64_t size; /* records */
    struct bh_hash root;
    size_t n_signed; /* bytes of the text that are signed */
    size_t n_signatures;
    struct bh_note_signature signature[BH_NOTE_SIGNATURES]; /* those of Ed25519's length */
};

/* The text without signatures; then one line for each key that signs it. */
void bh_checkpoint_text(const char *origin, uint64_t size, const struct bh_hash *root, struct bh_buf *out);
int bh_checkpoint_sign(struct bh_buf *note, size_t n_text, const struct bh_audit_key *k,
                       const struct bh_sign_key *secret, struct bh_err *err) BH_MUST_USE;
/* Well formed or BH_INVALID; whose signatures they are and whether they hold is asked next. */
int bh_checkpoint_parse(const char *text, size_t n, struct bh_checkpoint *ret,
                        struct bh_err *err) BH_MUST_USE;
/* Is there a signature of this key under it, and does it hold? text as it was parsed. */
bool bh_checkpoint_signed_by(const struct bh_checkpoint *c, const char *text, const struct bh_audit_key *k);

#endif
