/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - a fuzz harness as an ordinary test.
 *
 * Linked with one *_fuzz.c, it feeds the harness every file of the folders given,
 * in name order, and then a fixed number of seeded mutations of each, so that a
 * plain test run also walks a little off the known paths. The same build and
 * corpus always try the same bytes. A harness reports a fault by dying; the bytes
 * on trial are then left in the file named by BH_REPLAY_SAVE. Speaks TAP, one
 * test a folder; an empty folder fails, since it would test nothing.
 */
#include "base/choice.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTATIONS = 24, EDITS_MAX = 4, FILE_MAX = 1 << 20 };

/* Keep the bytes on trial, so that a death can be looked into. */
static void save(const uint8_t *data, size_t size)
{
    const char *path = getenv("BH_REPLAY_SAVE");
    FILE *f = path ? fopen(path, "wb") : NULL;

    if (f) {
        (void)fwrite(data, 1, size, f);
        (void)fclose(f);
    }
}

/* The harness gets a block of exactly `size` bytes, so that a sanitizer sees one byte too many. */
static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *exact = bh_alloc(size, 1);

    if (size)
        memcpy(exact, data, size);
    save(exact, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* One small change to the bytes in buf; returns the new size. buf has room for one byte more than n. */
static size_t edit(struct bh_choice *c, uint8_t *buf, size_t n)
{
    static const uint8_t odd[] = {0,   '\n', ' ', ':', '-', '"',  '{',  '[',
                                  '&', '*',  '#', '%', '9', 0x7f, 0x80, 0xff};
    size_t at = bh_choose(c, (uint32_t)n + 1), len;

    switch (bh_choose(c, 5)) {
    case 0: /* flip a bit */
        if (at < n)
            buf[at] ^= (uint8_t)(1U << bh_choose(c, 8));
        return n;
    case 1: /* put in a byte that means something to a parser */
        memmove(buf + at + 1, buf + at, n - at);
        buf[at] = odd[bh_choose(c, sizeof(odd))];
        return n + 1;
    case 2: /* take out a piece */
        len = bh_choose(c, 16);
        len = len < n - at ? len : n - at;
        memmove(buf + at, buf + at + len, n - at - len);
        return n - len;
    case 3: /* write one piece over another */
        if (n < 2)
            return n;
        len = bh_choose(c, (uint32_t)(n - at) + 1);
        memmove(buf + bh_choose(c, (uint32_t)(n - len) + 1), buf + at, len);
        return n;
    default: /* end early */
        return at;
    }
}

static void mutate(const uint8_t *data, size_t size, uint64_t seed)
{
    uint8_t *buf = bh_alloc(size + EDITS_MAX, 1), draws[EDITS_MAX * 16];
    struct bh_choice c = {draws, sizeof(draws)};
    size_t n = size;

    bh_choice_fill(draws, sizeof(draws), seed);
    if (size)
        memcpy(buf, data, size);
    for (uint32_t edits = 1 + bh_choose(&c, EDITS_MAX); edits; edits--)
        n = edit(&c, buf, n);
    try_bytes(buf, n);
    free(buf);
}

/* FNV-1a: each file has mutations of its own, wherever it stands in the folder. */
static uint64_t seed_of(const uint8_t *data, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Read and try one file; 0, or -1 when it cannot be read whole. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data;
    size_t n;
    int rc = -1;

    if (!f)
        return -1;
    data = bh_alloc(FILE_MAX + 1, 1);
    n = fread(data, 1, FILE_MAX + 1, f);
    if (!ferror(f) && n <= FILE_MAX) {
        try_bytes(data, n);
        for (uint64_t i = 0, seed = seed_of(data, n); i < MUTATIONS; i++)
            mutate(data, n, seed + i);
        rc = 0;
    }
    free(data);
    (void)fclose(f);
    return rc;
}

/* How many files were tried, or -1 (and a line of why). */
static int replay_folder(const char *folder)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort), tried = 0;

    if (n < 0)
        printf("# %s: cannot be listed\n", folder);
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        int len = snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);

        if (tried >= 0 && len > 0 && (size_t)len < sizeof(path) && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode)) {
            if (replay_file(path) == 0) {
                tried++;
            } else {
                printf("# %s: cannot be read, or is larger than %d bytes\n", path, FILE_MAX);
                tried = -1;
            }
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n < 0 ? -1 : tried;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;

    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        int tried = replay_folder(argv[i]);

        bad |= tried <= 0;
        printf("%s %d - %s: %d files, %d mutations of each\n", tried > 0 ? "ok" : "not ok", i, argv[i],
               tried > 0 ? tried : 0, MUTATIONS);
        (void)fflush(stdout);
    }
    return bad;
}
