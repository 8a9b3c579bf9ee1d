/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a file of labels: reading it ends, goes forward, and stays inside of it. */
#include "base/mem.h"
#include "host/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1);
    struct bh_span key, value;
    size_t pos = 0, last = 0, bad = 0;
    if (size)
        memcpy(text, data, size);
    while (bh_labels_next(text, &pos, &key, &value, &bad)) {
        if (pos <= last || pos > size || !key.n || key.at < text || key.at + key.n > text + size)
            abort();
        if (memchr(key.at, '\n', key.n) || (value.n && memchr(value.at, '\n', value.n)))
            abort();
        last = pos;
    }
    if (bad > size)
        abort();
    free(text);
    return 0;
}
