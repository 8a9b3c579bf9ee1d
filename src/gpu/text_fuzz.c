/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a driver's text: what comes out is UTF-8 on one line, no longer than what went in, and stays as it is. */
#include "base/mem.h"
#include "base/str.h"
#include "gpu/text.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_arena a = {0};
    const char *text = bh_gpu_text(&a, (const char *)data, size);
    if (text) {
        const char *again = bh_gpu_text(&a, text, strlen(text));
        if (!*text || strlen(text) > size || !again || strcmp(text, again) != 0)
            abort();
        for (const char *c = text; *c;) {
            size_t n = bh_utf8_len((const unsigned char *)c);
            if (!n || (unsigned char)*c < 0x20)
                abort();
            c += n;
        }
    }
    bh_arena_fini(&a);
    return 0;
}
