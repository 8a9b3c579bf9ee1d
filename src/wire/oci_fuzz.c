/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are what a runtime sent: the reader ends, stays inside them, and fills what it says it filled. What is
 * whole is whole however it is cut: every beginning of it is right so far, and none is whole already, but for the blanks
 * behind it.
 */
#include "base/mem.h"
#include "base/str.h"
#include "wire/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CUTS_MAX = 4096 };
    /* Exactly as long as it is: a reader that looks one byte too far is seen. */
    char *text = bh_alloc(size ? size : 1, 1);
    struct bh_oci_state state, part;
    struct bh_err err = {0};
    if (size)
        memcpy(text, data, size);
    const int rc = bh_oci_parse(text, size, &state, &err);
    if (rc != BH_OK && rc != BH_BUSY && rc != BH_INVALID)
        abort();
    if ((rc == BH_OK) != (err.msg[0] == '\0'))
        abort();
    if (!memchr(state.id, 0, sizeof(state.id)) || !memchr(state.metadata, 0, sizeof(state.metadata)) ||
        !memchr(state.status, 0, sizeof(state.status)))
        abort();
    size_t whole = size;
    while (whole > 0 && bh_is_space(text[whole - 1]))
        whole--;
    for (size_t n = 0; rc == BH_OK && size <= CUTS_MAX && n < whole; n++)
        if (bh_oci_parse(text, n, &part, NULL) != BH_BUSY)
            abort();
    free(text);
    return 0;
}
