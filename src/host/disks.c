/* SPDX-License-Identifier: Apache-2.0 */
/* disks.c - the kernel's list of block devices, less what has no hardware of its own. */
#include "host/disks.h"

#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `259:3` */
static bool read_numbers(const char *text, struct bh_disk *ret)
{
    char word[16];
    uint64_t first, second;
    const size_t n = strcspn(text, ":");
    if (text[n] != ':' || n >= sizeof(word))
        return false;
    (void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
    if (bh_uint_parse(word, UINT32_MAX, &first, NULL) < 0 ||
        bh_uint_parse(text + n + 1, UINT32_MAX, &second, NULL) < 0)
        return false;
    *ret = (struct bh_disk){.major = (uint32_t)first, .minor = (uint32_t)second};
    return true;
}

static int add_disk(const char *blocks, const char *name, bh_disks *ret, struct bh_err *err)
{
    char path[PATH_MAX], numbers[32];
    struct bh_disk disk;
    (void)snprintf(path, sizeof(path), "%.3000s/%s/device", blocks, name);
    if (access(path, F_OK) < 0)
        return BH_OK;
    (void)snprintf(path, sizeof(path), "%.3000s/%s/dev", blocks, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return BH_OK; /* it was pulled out meanwhile */
    const bool any = fgets(numbers, sizeof(numbers), f) != NULL;
    (void)fclose(f);
    if (!any)
        return BH_OK;
    numbers[strcspn(numbers, "\n")] = '\0';
    if (!read_numbers(numbers, &disk))
        return bh_fail(err, BH_SYSTEM, "%s has no numbers of a disk", path);
    *bh_vec_push(ret) = disk;
    return BH_OK;
}

int bh_disks_list(const char *root, bh_disks *ret, struct bh_err *err)
{
    char path[PATH_MAX];
    struct dirent **names = NULL;
    (void)snprintf(path, sizeof(path), "%.3000s/sys/block", root);
    const int n = scandir(path, &names, NULL, alphasort);
    if (n < 0)
        return errno == ENOENT ? BH_OK : bh_fail(err, BH_SYSTEM, "%s: %s", path, strerror(errno));
    int rc = BH_OK;
    for (int i = 0; i < n; i++) {
        if (rc == BH_OK && names[i]->d_name[0] != '.')
            rc = add_disk(path, names[i]->d_name, ret, err);
        free(names[i]);
    }
    free(names);
    return rc;
}
