/* SPDX-License-Identifier: Apache-2.0 */
/* tier_near.c - lists of processors, read, cut to what is there, and written. */
#include "node/mech/tier_near.h"

#include "base/sysfile.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 4096, NUMBER_MAX = 1 << 20 };

static bool read_number(const char *text, size_t n, uint64_t *ret)
{
    char word[16];
    if (n == 0 || n >= sizeof(word))
        return false;
    (void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
    return bh_uint_parse(word, NUMBER_MAX, ret, NULL) == BH_OK;
}

bool bh_near_parse(const char *list, cpu_set_t *ret)
{
    while (*list) {
        const size_t n = strcspn(list, ",");
        const size_t dash = strcspn(list, "-,");
        uint64_t first, last;
        if (!read_number(list, dash, &first))
            return false;
        last = first;
        if (dash < n && !read_number(list + dash + 1, n - dash - 1, &last))
            return false;
        for (uint64_t i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET(i, ret);
        list += n;
        if (*list == ',' && !*++list)
            return false;
    }
    return true;
}

const char *bh_near_words(struct bh_arena *arena, const cpu_set_t *set)
{
    const char *text = "";
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, set))
            continue;
        const size_t first = i;
        while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set))
            i++;
        text = i > first ? bh_arena_printf(arena, "%s%s%zu-%zu", text, *text ? "," : "", first, i)
                         : bh_arena_printf(arena, "%s%s%zu", text, *text ? "," : "", first);
    }
    return text;
}

void bh_near_add(struct bh_near *n, const struct bh_gpu_device *gpu)
{
    char path[256], list[LIST_MAX];
    struct bh_err err;
    bool known = gpu->pci != NULL && gpu->numa >= 0 && gpu->numa < CPU_SETSIZE;
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/local_cpulist", gpu->pci ? gpu->pci : "");
    known =
        known && bh_sysfile_line(path, list, sizeof(list), &err) == BH_OK && bh_near_parse(list, &n->cpus);
    if (known)
        CPU_SET((size_t)gpu->numa, &n->nodes);
    n->all_known = n->all_known && known;
}

const char *bh_near_cpus(struct bh_arena *arena, const struct bh_near *n)
{
    cpu_set_t mine;
    CPU_ZERO(&mine);
    if (!n->all_known || sched_getaffinity(0, sizeof(mine), &mine) < 0)
        return NULL;
    CPU_AND(&mine, &mine, &n->cpus);
    return CPU_COUNT(&mine) ? bh_near_words(arena, &mine) : NULL;
}

const char *bh_near_nodes(struct bh_arena *arena, const struct bh_near *n)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    /* of this machine, simulated GPUs or not: the kernel is the real one */
    for (size_t i = 0; n->all_known && i < CPU_SETSIZE; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%zu", i);
        if (CPU_ISSET(i, &n->nodes) && access(path, F_OK) == 0)
            CPU_SET(i, &here);
    }
    /* a node that is not here means that the list is another machine's */
    return n->all_known && CPU_COUNT(&here) && CPU_EQUAL(&here, &n->nodes) ? bh_near_words(arena, &here)
                                                                           : NULL;
}
