/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - a folder for a test, and away with it. For tests and benchmarks only.
 *
 * What is made here goes at the latest when the process that made it ends, so that a test which failed half way leaves
 * nothing either; a forked child that calls exit() takes nothing of its parent's along. A path that does not fit the
 * caller's buffer is refused and never cut: whoever binds a socket in a folder gives a buffer that leaves room for its
 * name in an address.
 */
#ifndef BH_BASE_SCRATCH_H
#define BH_BASE_SCRATCH_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BH_SCRATCH_PATH = 512, BH_SCRATCH_SOCKET_PATH = 64, BH_SCRATCH_TEXT = 1 << 20 };

struct bh_scratch_made_ {
    struct bh_scratch_made_ *next;
    pid_t by;
    char path[];
};

static struct bh_scratch_made_ *bh_scratch_all_;

/* What cannot be removed is passed over: the rest goes all the same, and the folder that stays tells. */
static inline int bh_scratch_drop_(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

/* With all that is in it; false: something stayed. Follows no link and enters nothing that is mounted there. */
static inline bool bh_scratch_remove(const char *path)
{
    (void)nftw(path, bh_scratch_drop_, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return access(path, F_OK) < 0;
}

static inline void bh_scratch_end_(void)
{
    for (const struct bh_scratch_made_ *m = bh_scratch_all_; m; m = m->next)
        if (m->by == getpid())
            (void)bh_scratch_remove(m->path);
}

/* An empty folder bh-<what>-... where temporary files go; its path in ret. */
static inline bool bh_scratch_make(char *ret, size_t size, const char *what)
{
    static bool told;
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(ret, size, "%s/bh-%s-XXXXXX", tmp && *tmp ? tmp : P_tmpdir, what);
    if (n < 0 || (size_t)n >= size || !mkdtemp(ret))
        return false;
    struct bh_scratch_made_ *m = malloc(sizeof(*m) + (size_t)n + 1);
    if (!m || (!told && atexit(bh_scratch_end_) != 0)) {
        free(m);
        (void)rmdir(ret);
        return false;
    }
    told = true;
    m->by = getpid();
    memcpy(m->path, ret, (size_t)n + 1);
    m->next = bh_scratch_all_;
    bh_scratch_all_ = m;
    return true;
}

/* One that stands for the machine: files are looked up below it from here on. */
static inline bool bh_scratch_root(char *ret, size_t size, const char *what)
{
    return bh_scratch_make(ret, size, what) && setenv("BULKHEAD_SYSROOT", ret, 1) == 0;
}

/* The path of a thing in the folder; the folders on the way to it are made. */
static inline bool bh_scratch_path(char *ret, size_t size, const char *folder, const char *name)
{
    const int n = snprintf(ret, size, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *c = ret + strlen(folder) + 1; (c = strchr(c, '/')); *c++ = '/') {
        *c = '\0';
        (void)mkdir(ret, 0700);
    }
    return true;
}

static inline bool bh_scratch_put_bytes(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[BH_SCRATCH_PATH * 2];
    FILE *f = bh_scratch_path(path, sizeof(path), folder, name) ? fopen(path, "we") : NULL;
    const bool ok = f && fwrite(bytes, 1, n, f) == n;
    return f && fclose(f) == 0 && ok;
}

static inline bool bh_scratch_put(const char *folder, const char *name, const char *text)
{
    return bh_scratch_put_bytes(folder, name, text, strlen(text));
}

/* The text of a file, as far as BH_SCRATCH_TEXT goes; NULL: there is none. The caller frees it. */
static inline char *bh_scratch_get(const char *folder, const char *name)
{
    char path[BH_SCRATCH_PATH * 2];
    const int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
    if (!f)
        return NULL;
    char *text = calloc(1, BH_SCRATCH_TEXT);
    if (text)
        (void)!fread(text, 1, BH_SCRATCH_TEXT - 1, f);
    (void)fclose(f);
    return text;
}

#endif
