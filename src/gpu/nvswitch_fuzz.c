/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a switch's file or the name of its folder: what is taken from it has the letters of a version and nothing else. */
#include "base/mem.h"
#include "gpu/nvswitch.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1), bios[BH_NVSWITCH_BIOS_MAX], again[BH_NVSWITCH_BIOS_MAX],
         line[BH_NVSWITCH_BIOS_MAX + 16];
    if (size)
        memcpy(text, data, size);
    if (bh_nvswitch_bios(text, bios)) {
        must(*bios && strspn(bios, "0123456789abcdefABCDEF.") == strlen(bios));
        must(strstr(text, "BIOS Version:") != NULL);
        (void)snprintf(line, sizeof(line), "BIOS Version: %s", bios);
        must(bh_nvswitch_bios(line, again) && strcmp(bios, again) == 0);
    }
    must(!bh_nvswitch_is_pci(text) || (strlen(text) == 12 && !strchr(text, '/')));
    free(text);
    return 0;
}
