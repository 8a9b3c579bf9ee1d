/* SPDX-License-Identifier: Apache-2.0 */
/* file_fixture.h - a folder that lives as long as a test. Test code only. */
#ifndef BH_CONF_FILE_FIXTURE_H
#define BH_CONF_FILE_FIXTURE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bh_file_fixture {
    char root[64];
    char path[256]; /* of the last question */
};

static inline void bh_file_fixture_init(struct bh_file_fixture *f)
{
    (void)snprintf(f->root, sizeof(f->root), "%s/bulkhead-test-XXXXXX", P_tmpdir);
    if (!mkdtemp(f->root))
        abort();
}

static inline const char *bh_file_fixture_path(struct bh_file_fixture *f, const char *name)
{
    (void)snprintf(f->path, sizeof(f->path), "%s/%s", f->root, name);
    return f->path;
}

/* Write a file; the folders on the way to it are made. */
static inline void bh_file_fixture_put(struct bh_file_fixture *f, const char *name, const char *text)
{
    char folder[256];
    (void)snprintf(folder, sizeof(folder), "%s/%s", f->root, name);
    for (char *p = folder + strlen(f->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        (void)mkdir(folder, 0700);
    }
    FILE *out = fopen(bh_file_fixture_path(f, name), "wb");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0)
        abort();
}

static inline int bh_file_fixture_drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void bh_file_fixture_fini(struct bh_file_fixture *f)
{
    (void)nftw(f->root, bh_file_fixture_drop, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
