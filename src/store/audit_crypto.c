/* SPDX-License-Identifier: Apache-2.0 */
/* audit_crypto.c - SHA-256 and Ed25519 by GnuTLS, base64 by hand: it must refuse text that is not canonical. */
#include "store/audit_crypto.h"

#include "base/mem.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- SHA-256 ---- */

bool bh_hash_eq(const struct bh_hash *a, const struct bh_hash *b)
{
    return memcmp(a->at, b->at, sizeof(a->at)) == 0;
}

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "bulkhead: %s: %s\n", what, gnutls_strerror(rc));
    abort();
}

static void digest(const uint8_t *tag, const void *a, size_t n_a, const void *b, size_t n_b,
                   struct bh_hash *ret)
{
    gnutls_hash_hd_t h;
    must(gnutls_hash_init(&h, GNUTLS_DIG_SHA256), "SHA-256");
    if (tag)
        must(gnutls_hash(h, tag, 1), "SHA-256");
    if (n_a)
        must(gnutls_hash(h, a, n_a), "SHA-256");
    if (n_b)
        must(gnutls_hash(h, b, n_b), "SHA-256");
    gnutls_hash_deinit(h, ret->at);
}

void bh_hash_of(uint8_t tag, const void *a, size_t n_a, const void *b, size_t n_b, struct bh_hash *ret)
{
    digest(&tag, a, n_a, b, n_b, ret);
}

void bh_hash_plain(const void *a, size_t n, struct bh_hash *ret)
{
    digest(NULL, a, n, NULL, 0, ret);
}

const char *bh_hash_hex(const struct bh_hash *h, char buf[BH_HASH_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < BH_HASH_BYTES; i++) {
        buf[2 * i] = digits[h->at[i] >> 4];
        buf[2 * i + 1] = digits[h->at[i] & 15];
    }
    buf[BH_HASH_HEX - 1] = '\0';
    return buf;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool bh_hash_parse(const char *hex, struct bh_hash *ret)
{
    struct bh_hash h;
    for (size_t i = 0; i < BH_HASH_BYTES; i++) {
        const int high = nibble(hex[2 * i]), low = high < 0 ? -1 : nibble(hex[2 * i + 1]);
        if (low < 0)
            return false;
        h.at[i] = (uint8_t)(high << 4 | low);
    }
    if (hex[BH_HASH_HEX - 1] != '\0')
        return false;
    *ret = h;
    return true;
}

/* ---- Ed25519 ---- */

static int failed(struct bh_err *err, int rc)
{
    return bh_fail(err, BH_SYSTEM, "Ed25519: %s", gnutls_strerror(rc));
}

/* The two raw parts of a key, each of exactly 32 bytes. */
static int take_parts(gnutls_privkey_t k, struct bh_sign_key *ret, struct bh_err *err)
{
    gnutls_ecc_curve_t curve;
    gnutls_datum_t x = {0}, y = {0}, seed = {0};
    int rc = gnutls_privkey_export_ecc_raw2(k, &curve, &x, &y, &seed, 0);
    if (rc < 0)
        return failed(err, rc);
    const bool fits = x.size == BH_ED25519_BYTES && seed.size == BH_ED25519_BYTES;
    if (fits) {
        memcpy(ret->public, x.data, BH_ED25519_BYTES);
        memcpy(ret->seed, seed.data, BH_ED25519_BYTES);
    }
    if (seed.data)
        gnutls_memset(seed.data, 0, seed.size);
    gnutls_free(x.data);
    gnutls_free(y.data);
    gnutls_free(seed.data);
    return fits ? BH_OK : bh_fail(err, BH_SYSTEM, "Ed25519: a key that is not 32 bytes");
}

int bh_sign_key_new(struct bh_sign_key *ret, struct bh_err *err)
{
    gnutls_privkey_t k;
    int rc = gnutls_privkey_init(&k);
    if (rc < 0)
        return failed(err, rc);
    rc = gnutls_privkey_generate(k, GNUTLS_PK_EDDSA_ED25519, 0, 0);
    rc = rc < 0 ? failed(err, rc) : take_parts(k, ret, err);
    gnutls_privkey_deinit(k);
    return rc;
}

/* GnuTLS wants both halves; it takes the public one's word only for what it hashes into the signature. */
static int import_key(const struct bh_sign_key *key, gnutls_privkey_t *ret, struct bh_err *err)
{
    struct bh_sign_key copy = *key;
    const gnutls_datum_t x = {copy.public, BH_ED25519_BYTES}, seed = {copy.seed, BH_ED25519_BYTES};
    int rc = gnutls_privkey_init(ret);
    if (rc < 0)
        return failed(err, rc);
    rc = gnutls_privkey_import_ecc_raw(*ret, GNUTLS_ECC_CURVE_ED25519, &x, NULL, &seed);
    gnutls_memset(&copy, 0, sizeof(copy));
    if (rc < 0) {
        gnutls_privkey_deinit(*ret);
        return failed(err, rc);
    }
    return BH_OK;
}

/* RFC 8410: a PKCS#8 key may hold the seed alone, and the library then computes the other half. */
int bh_sign_key_public(struct bh_sign_key *key, struct bh_err *err)
{
    static const uint8_t head[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                   0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
    uint8_t der[sizeof(head) + BH_ED25519_BYTES];
    const gnutls_datum_t d = {der, sizeof(der)};
    gnutls_privkey_t k;
    int rc = gnutls_privkey_init(&k);
    if (rc < 0)
        return failed(err, rc);
    memcpy(der, head, sizeof(head));
    memcpy(der + sizeof(head), key->seed, BH_ED25519_BYTES);
    rc = gnutls_privkey_import_x509_raw(k, &d, GNUTLS_X509_FMT_DER, NULL, 0);
    rc = rc < 0 ? failed(err, rc) : take_parts(k, key, err);
    gnutls_memset(der, 0, sizeof(der));
    gnutls_privkey_deinit(k);
    return rc;
}

int bh_sign(const struct bh_sign_key *key, const void *data, size_t n, uint8_t ret[BH_SIGNATURE_BYTES],
            struct bh_err *err)
{
    gnutls_privkey_t k;
    gnutls_datum_t sig = {0};
    int rc = import_key(key, &k, err);
    if (rc < 0)
        return rc;
    uint8_t *copy = bh_alloc(n ? n : 1, 1); /* the library does not take const */
    if (n)
        memcpy(copy, data, n);
    const gnutls_datum_t d = {copy, (unsigned)n};
    rc = gnutls_privkey_sign_data2(k, GNUTLS_SIGN_EDDSA_ED25519, 0, &d, &sig);
    if (rc < 0)
        rc = failed(err, rc);
    else if (sig.size != BH_SIGNATURE_BYTES)
        rc = bh_fail(err, BH_SYSTEM, "Ed25519: a signature of %u bytes", sig.size);
    else
        memcpy(ret, sig.data, BH_SIGNATURE_BYTES);
    gnutls_free(sig.data);
    gnutls_privkey_deinit(k);
    free(copy);
    return rc < 0 ? rc : BH_OK;
}

bool bh_sign_check(const uint8_t public[BH_ED25519_BYTES], const void *data, size_t n,
                   const uint8_t signature[BH_SIGNATURE_BYTES])
{
    uint8_t x[BH_ED25519_BYTES], s[BH_SIGNATURE_BYTES], *copy = bh_alloc(n ? n : 1, 1);
    gnutls_pubkey_t k;
    memcpy(x, public, sizeof(x));
    memcpy(s, signature, sizeof(s));
    if (n)
        memcpy(copy, data, n);
    const gnutls_datum_t dx = {x, sizeof(x)}, ds = {s, sizeof(s)}, d = {copy, (unsigned)n};
    int rc = gnutls_pubkey_init(&k);
    if (rc >= 0) {
        rc = gnutls_pubkey_import_ecc_raw(k, GNUTLS_ECC_CURVE_ED25519, &dx, NULL);
        if (rc >= 0)
            rc = gnutls_pubkey_verify_data2(k, GNUTLS_SIGN_EDDSA_ED25519, 0, &d, &ds);
        gnutls_pubkey_deinit(k);
    }
    free(copy);
    return rc >= 0;
}

/* ---- base64 ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void bh_base64_add(struct bh_buf *out, const void *data, size_t n)
{
    const uint8_t *d = data;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t v = (uint32_t)d[i] << 16 | (left > 1 ? (uint32_t)d[i + 1] << 8 : 0) |
                           (left > 2 ? (uint32_t)d[i + 2] : 0);
        const char four[4] = {letters[v >> 18], letters[v >> 12 & 63], left > 1 ? letters[v >> 6 & 63] : '=',
                              left > 2 ? letters[v & 63] : '='};
        bh_buf_add(out, four, 4);
    }
}

static int sextet(char c)
{
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? (int)(at - letters) : -1;
}

long bh_base64_parse(const char *text, size_t n_text, uint8_t *ret, size_t size)
{
    size_t n = 0;
    if (n_text % 4)
        return -1;
    for (size_t i = 0; i < n_text; i += 4) {
        const bool last = i + 4 == n_text;
        const unsigned pads = !last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        uint32_t v = 0;
        for (unsigned k = 0; k < 4; k++) {
            const int six = k >= 4 - pads ? 0 : sextet(text[i + k]);
            if (six < 0)
                return -1;
            v = v << 6 | (uint32_t)six;
        }
        /* bits that no byte takes must be 0: one text for the same bytes */
        if (v & ((UINT32_C(1) << 8 * pads) - 1) || size - n < 3 - pads)
            return -1;
        for (unsigned k = 0; k < 3 - pads; k++)
            ret[n++] = (uint8_t)(v >> (16 - 8 * k));
    }
    return (long)n;
}
