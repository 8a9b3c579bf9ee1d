/* SPDX-License-Identifier: Apache-2.0 */
/* cap.c - what cannot work as a cap is refused before anything is started. */
#include "cli/cap.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "core/model/catalog.h"
#include "wire/lease.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

enum { TICK_MAX_MS = 10000, INFORMATION_MAX = 4096 };
/* A CUDA context takes 518 MiB on an H200 before the first allocation; below this no program gets as far. */
#define LEAST_BYTES (600 * BH_MIB)

const char *const bh_cap_views[] = {
    [BH_VIEW_CARD] = "card", [BH_VIEW_SLICE] = "slice", [BH_VIEW_PRIVATE] = "private", NULL};

int bh_cap_read(const char *verb, const char *memory, uint64_t *ret_bytes, struct bh_err *err)
{
    if (!memory)
        return bh_fail(err, BH_USAGE, "%s needs --memory SIZE, for example --memory 10GiB", verb);
    const int rc = bh_size_parse(memory, ret_bytes, err);
    if (rc < 0)
        return bh_wrap(err, rc, "--memory");
    if (*ret_bytes < LEAST_BYTES)
        return bh_fail(err, BH_INVALID,
                       "--memory %.40s is less than a program needs to start: a CUDA context alone takes "
                       "several hundred MiB (518 MiB on an H200); give it 600MiB or more",
                       memory);
    return BH_OK;
}

int bh_cap_read_tick(const char *tick, uint32_t *ret_ms, struct bh_err *err)
{
    uint64_t ms = 0;
    *ret_ms = 0;
    if (!tick)
        return BH_OK;
    if (bh_uint_parse(tick, TICK_MAX_MS, &ms, NULL) < 0 || ms == 0)
        return bh_fail(err, BH_INVALID, "--tick: a whole number of milliseconds from 1 to %d, not '%.40s'",
                       TICK_MAX_MS, tick);
    *ret_ms = (uint32_t)ms;
    return BH_OK;
}

uint32_t bh_cap_read_view(const char *view)
{
    uint32_t v = BH_VIEW_CARD;
    if (!view)
        return BH_VIEW_SLICE;
    while (!bh_str_eq(bh_cap_views[v], view))
        v++;
    return v;
}

/* `Model: \t\t NVIDIA H200` of one card's file, as the catalogue knows it; NULL: it does not. */
static const struct bh_gpu_model *model_of(const char *card)
{
    char path[BH_SYSPATH_MAX];
    static const char key[] = "Model:";
    BH_AUTOFREE char *text = NULL;
    (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", card);
    if (bh_sysfile_read(path, INFORMATION_MAX, &text, NULL, NULL) < 0 || !bh_str_starts(text, key))
        return NULL;
    char *name = text + strlen(key);
    while (bh_is_space(*name))
        name++;
    name[strcspn(name, "\n")] = '\0';
    return bh_catalog_find(name);
}

/* The catalogue says how large cards are: asking the vendor's library would take longer than the rest of the start. */
int bh_cap_check_cards(uint64_t cap_bytes, struct bh_err *err)
{
    const struct bh_gpu_model *largest = NULL;
    char folder[BH_SYSPATH_MAX];
    DIR *d = bh_syspath(folder, "/proc/driver/nvidia/gpus") ? opendir(folder) : NULL;
    bool all_known = d != NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        const struct bh_gpu_model *m = model_of(e->d_name);
        all_known = all_known && m && m->memory_mib;
        if (m && (!largest || m->memory_mib > largest->memory_mib))
            largest = m;
    }
    if (d)
        closedir(d);
    if (!all_known || !largest || cap_bytes <= largest->memory_mib * BH_MIB)
        return BH_OK;
    struct bh_unit_text asked, there;
    return bh_fail(
        err, BH_REFUSED,
        "--memory %s is more than any GPU here has: the largest is %s with %s; a cap that cannot be "
        "reached holds nothing, so give a smaller one",
        bh_size_format(cap_bytes, &asked), largest->name,
        bh_size_format(largest->memory_mib * BH_MIB, &there));
}
