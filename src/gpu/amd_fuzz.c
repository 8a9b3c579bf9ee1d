/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is any of amdgpu's files: each parser ends, and what it gives has the shape it promises. */
#include "base/mem.h"
#include "gpu/amd_parse.h"
#include "gpu/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_alloc(size + 1, 1), pci[BH_AMD_PCI_MAX], id[17], modes[BH_AMD_MODES_MAX],
         again[BH_AMD_MODES_MAX];
    uint8_t counts[BH_AMD_NODES_MAX];
    if (size)
        memcpy(text, data, size);
    if (bh_amd_uevent(text, "PCI_SLOT_NAME", pci, sizeof(pci)))
        must(*pci && !strchr(pci, '\n'));
    (void)bh_amd_is_pci(text);
    if (bh_amd_unique_id(text, id))
        must(*id && strspn(id, "0123456789abcdef") == strlen(id));
    /* what was understood once is understood again, and stays the same */
    if (bh_amd_modes(text, modes))
        must(bh_amd_modes(modes, again) && strcmp(modes, again) == 0);
    must(bh_amd_counts(text, counts) <= BH_AMD_NODES_MAX);
    int on = bh_amd_isolation(text);
    must(on == -1 || on == BH_ISOLATION_OFF || on == BH_ISOLATION_UNWIPED || on == BH_ISOLATION_ON);
    free(text);
    return 0;
}
