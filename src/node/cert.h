/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cert.h - the certificate that HTTPS shows: the operator's own, or one that the daemon made and signed itself.
 *
 * Nobody vouches for a certificate of one's own making, so whoever connects compares its fingerprint, which the daemon says when it
 * starts. It is one file with the key in it, readable by root alone, so that the two can never be of different times.
 */
#ifndef BH_NODE_CERT_H
#define BH_NODE_CERT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_CERT_DAYS = 365, BH_CERT_RENEW_DAYS = 30, BH_CERT_PRINT = 3 * 32 };

struct bh_cert {
    char *cert_pem, *key_pem;  /* of the struct */
    char print[BH_CERT_PRINT]; /* SHA-256 of the certificate: AB:CD:... */
    uint64_t until_ms;         /* since 1970: it holds no longer */
    bool made;                 /* just now */
};

/* The operator's. BH_INVALID: not a certificate, not a key, or the two do not belong together. */
int bh_cert_load(const char *cert_path, const char *key_path, struct bh_cert *ret,
                 struct bh_err *err) BH_MUST_USE;
/*
 * The one at `path`; made anew where there is none, where it has run out or soon will, and where it does not name the host or the
 * address (an IP address without a port; NULL: all, so none is named). now_ms: since 1970.
 */
int bh_cert_own(const char *path, const char *host, const char *address, uint64_t now_ms, struct bh_cert *ret,
                struct bh_err *err) BH_MUST_USE;
void bh_cert_fini(struct bh_cert *c);

#endif
