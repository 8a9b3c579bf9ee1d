/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_export_fuzz.c - an export from anybody: read to its end or refused; what is said to hold names a key, is signed by
 * it and has an end.
 */
#include "store/audit_export.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_audit_verifier v = {0};
    struct bh_audit_import im = {.v = &v};
    int rc = BH_OK;
    for (const char *at = (const char *)data, *end = at + size; rc == BH_OK && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t len = newline ? (size_t)(newline - at) : (size_t)(end - at);
        rc = bh_audit_import_line(&im, at, len, NULL);
        at += len;
        at += at < end;
    }
    if (rc == BH_OK)
        rc = bh_audit_import_end(&im, NULL);
    /* what holds was signed, and has an end */
    if (rc == BH_OK && v.findings == 0 && (!im.ended || v.keys == 0 || v.signed_size == 0))
        abort();
    bh_audit_import_fini(&im);
    bh_audit_verify_fini(&v);
    return 0;
}
