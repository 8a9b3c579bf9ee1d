/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_fixture.h - an empty folder for a test, and away with it. */
#ifndef BH_HOST_BUNDLE_FIXTURE_H
#define BH_HOST_BUNDLE_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BH_SCRATCH_PATH = 512 };

static inline bool bh_scratch_make(char ret[BH_SCRATCH_PATH])
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(ret, BH_SCRATCH_PATH, "%s/bh-bundle-XXXXXX", tmp ? tmp : P_tmpdir);
    return mkdtemp(ret) != NULL;
}

static inline int bh_scratch_one_(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void bh_scratch_remove(const char *path)
{
    (void)nftw(path, bh_scratch_one_, 16, FTW_DEPTH | FTW_PHYS);
}

static inline bool bh_scratch_put(const char *folder, const char *name, const char *text)
{
    char path[BH_SCRATCH_PATH * 2];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            (void)mkdir(path, 0755);
            *c = '/';
        }
    FILE *f = fopen(path, "w");
    const bool ok = f && fputs(text, f) >= 0;
    return f && fclose(f) == 0 && ok;
}

/* The text of a file; NULL: there is none. The caller frees it. */
static inline char *bh_scratch_get(const char *folder, const char *name)
{
    char path[BH_SCRATCH_PATH * 2];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 20);
    if (text)
        (void)!fread(text, 1, (1 << 20) - 1, f);
    (void)fclose(f);
    return text;
}

#endif
