/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a line of the kernel's log: nothing is read past its end, and nobody is named by a line that names nobody. */
#include "base/mem.h"
#include "gpu/xid.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1);
    struct bh_xid_line l;
    if (size)
        memcpy(text, data, size);
    if (bh_xid_line(text, size, &l) && l.pid && !memmem(text, size, "pid=", 4))
        abort();
    free(text);
    return 0;
}
