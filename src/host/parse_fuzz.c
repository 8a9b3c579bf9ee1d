/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are any of the files: each parser ends, stays inside them, and what it points at is in them. */
#include "base/mem.h"
#include "host/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(const char *text, size_t size, struct bh_span s)
{
    if (s.n && (s.at < text || s.at + s.n > text + size))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1);
    struct bh_span key, value;
    size_t pos = 0, last = 0;
    bool is_port;
    if (size)
        memcpy(text, data, size);
    while (bh_params_next(text, &pos, &key, &value)) {
        inside(text, size, key);
        inside(text, size, value);
        if (pos <= last || !key.n)
            abort();
        last = pos;
    }
    inside(text, size, bh_lockdown_word(text));
    inside(text, size, bh_dpkg_version(text, "nvidia-container-toolkit"));
    inside(text, size, bh_driver_version(text));
    (void)bh_secure_boot(data, size);
    (void)bh_acs_redirects(data, size, &is_port);
    free(text);
    return 0;
}
