/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_crypto.h - the three things the audit log takes from GnuTLS: SHA-256, Ed25519, and nothing else.
 *
 * GnuTLS and not a copy of our own: distributions ship it with a FIPS mode, and nobody should have to trust ours.
 * What can only fail when the library itself is broken ends the process, as running out of memory does: a log
 * that cannot hash cannot go on.
 */
#ifndef BH_STORE_AUDIT_CRYPTO_H
#define BH_STORE_AUDIT_CRYPTO_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_HASH_BYTES = 32, BH_ED25519_BYTES = 32, BH_SIGNATURE_BYTES = 64 };
enum { BH_HASH_HEX = 2 * BH_HASH_BYTES + 1 };

struct bh_hash {
    uint8_t at[BH_HASH_BYTES];
};

struct bh_sign_key { /* secret */
    uint8_t seed[BH_ED25519_BYTES];
    uint8_t public[BH_ED25519_BYTES];
};

bool bh_hash_eq(const struct bh_hash *a, const struct bh_hash *b);
/* SHA-256 of tag and up to two pieces; a piece of 0 bytes may be NULL. */
void bh_hash_of(uint8_t tag, const void *a, size_t n_a, const void *b, size_t n_b, struct bh_hash *ret);
void bh_hash_plain(const void *a, size_t n, struct bh_hash *ret); /* without a tag */
const char *bh_hash_hex(const struct bh_hash *h, char buf[BH_HASH_HEX]);
bool bh_hash_parse(const char *hex, struct bh_hash *ret); /* 64 lower-case digits */

int bh_sign_key_new(struct bh_sign_key *ret, struct bh_err *err) BH_MUST_USE;
/* Fills key->public from key->seed. */
int bh_sign_key_public(struct bh_sign_key *key, struct bh_err *err) BH_MUST_USE;
int bh_sign(const struct bh_sign_key *key, const void *data, size_t n, uint8_t ret[BH_SIGNATURE_BYTES],
            struct bh_err *err) BH_MUST_USE;
bool bh_sign_check(const uint8_t public[BH_ED25519_BYTES], const void *data, size_t n,
                   const uint8_t signature[BH_SIGNATURE_BYTES]);

/* RFC 4648 base64 with padding. Parsing takes exactly n_text characters of canonical text, or answers -1. */
void bh_base64_add(struct bh_buf *out, const void *data, size_t n);
long bh_base64_parse(const char *text, size_t n_text, uint8_t *ret, size_t size);

#endif
