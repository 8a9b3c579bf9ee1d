/* SPDX-License-Identifier: Apache-2.0 */
/* file_fixture.h - a folder that lives as long as a test. Test code only. */
#ifndef BH_CONF_FILE_FIXTURE_H
#define BH_CONF_FILE_FIXTURE_H

#include "base/scratch.h"

struct bh_file_fixture {
    char root[128];
    char path[256]; /* of the last question */
};

static inline void bh_file_fixture_init(struct bh_file_fixture *f)
{
    if (!bh_scratch_make(f->root, sizeof(f->root), "file"))
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
    if (!bh_scratch_put(f->root, name, text))
        abort();
}

static inline void bh_file_fixture_fini(struct bh_file_fixture *f)
{
    (void)bh_scratch_remove(f->root);
}

#endif
