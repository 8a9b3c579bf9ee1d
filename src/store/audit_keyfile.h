/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_keyfile.h - the secret key of the audit log, as a file that only its owner may read.
 *
 * Written whole or not at all: a new file, synced, then moved into place.
 */
#ifndef BH_STORE_AUDIT_KEYFILE_H
#define BH_STORE_AUDIT_KEYFILE_H

#include "store/audit_note.h"

struct bh_audit_secret {
    struct bh_audit_key key;
    struct bh_sign_key secret;
};

/* BH_NOT_FOUND; BH_DENIED: it is no plain file, somebody else's, or others may read it; BH_INVALID: no key in it. */
int bh_audit_keyfile_load(const char *path, struct bh_audit_secret *ret, struct bh_err *err) BH_MUST_USE;
int bh_audit_keyfile_save(const char *path, const struct bh_audit_secret *k, struct bh_err *err) BH_MUST_USE;
/* Moves one into the place of another, for good. */
int bh_audit_keyfile_move(const char *from, const char *to, struct bh_err *err) BH_MUST_USE;

#endif
