/* SPDX-License-Identifier: Apache-2.0 */
/* audit_note_fuzz.c - checkpoints and keys from anybody: read or refused, and what is read is written back the same. */
#include "store/audit_note.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t public[BH_ED25519_BYTES] = {1};
    const char *text = (const char *)data;
    struct bh_checkpoint c;
    struct bh_audit_key k, back, log;
    struct bh_sign_key secret;
    char buf[BH_KEY_TEXT_MAX];
    if (bh_checkpoint_parse(text, size, &c, NULL) == BH_OK) {
        if (c.n_signed > size || c.n_signatures > BH_NOTE_SIGNATURES || c.n_signatures == 0)
            abort();
        if (bh_audit_key_make(c.origin, public, &log, NULL) < 0 || bh_checkpoint_signed_by(&c, text, &log))
            abort(); /* nobody has that key's other half */
    }
    if (bh_audit_key_parse(text, size, &k, NULL) == BH_OK) {
        (void)bh_audit_key_format(&k, buf);
        if (bh_audit_key_parse(buf, strlen(buf), &back, NULL) < 0 || !bh_audit_key_eq(&k, &back))
            abort();
    }
    if (bh_audit_secret_parse(text, size, &k, &secret, NULL) == BH_OK) {
        bh_audit_secret_format(&k, &secret, buf);
        if (bh_audit_secret_parse(buf, strlen(buf), &back, &secret, NULL) < 0 || !bh_audit_key_eq(&k, &back))
            abort();
    }
    return 0;
}
