/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_fixture.h - a recording held against what came of playing it again.
 *
 * What may differ is written down by whoever plays; anything else fails, and so does a difference that is not there.
 */
#ifndef BH_SIMGPU_CUDA_REPLAY_FIXTURE_H
#define BH_SIMGPU_CUDA_REPLAY_FIXTURE_H

#include "base/sysfile.h"
#include "base/test.h"
#include "record/record.h"

static inline struct bh_recording read_recording(const char *path)
{
    struct bh_recording r = {0};
    struct bh_err err = {0};
    char *text = NULL;
    size_t n = 0;
    int rc = bh_sysfile_read(path, BH_RECORDING_BYTES_MAX, &text, &n, &err);
    if (rc < 0 || bh_recording_parse(path, text, n, &r, &err) < 0) {
        printf("# %s\n", err.msg);
        abort();
    }
    free(text);
    return r;
}

/*
 * The next call of a list that counts repetitions. Not compared: marks, closes, and the opening of capability nodes,
 * which are files of the machine and not of this driver.
 */
static inline const struct bh_call *replay_next(const struct bh_recording *r, size_t *at, uint32_t *done)
{
    for (; *at < r->calls.n; (*at)++, *done = 0) {
        const struct bh_call *c = &r->calls.at[*at];
        bool compared = c->kind > BH_CALL_PROCESS && c->kind != BH_CALL_CLOSE &&
                        !(c->kind == BH_CALL_OPEN && c->file == BH_FILE_CAP);
        if (compared && *done < (c->times ? c->times : 1)) {
            (*done)++;
            return c;
        }
    }
    return NULL;
}

struct known {
    uint32_t kind, what, recorded, answered; /* statuses */
    size_t times;
};

/* A difference that is let be, counted: it must be there as often as it says. */
static inline bool replay_is_known(const struct bh_call *a, const struct bh_call *b,
                                   const struct known *known, size_t *seen)
{
    for (size_t i = 0; known[i].times; i++)
        if (a->kind == known[i].kind && a->what == known[i].what && a->status == known[i].recorded &&
            b->status == known[i].answered) {
            seen[i]++;
            return true;
        }
    return false;
}

static inline bool replay_same_but_status(const struct bh_call *a, const struct bh_call *b)
{
    return a->kind == b->kind && a->file == b->file && a->gpu == b->gpu && a->number == b->number &&
           a->bytes == b->bytes && a->what == b->what && a->params == b->params && a->flags == b->flags &&
           a->size == b->size && a->attr == b->attr && a->attr2 == b->attr2 && a->mflags == b->mflags &&
           a->error == b->error;
}

static inline void replay_tell(const char *name, size_t i, const struct bh_call *a, const struct bh_call *b)
{
    struct bh_buf text;
    bh_buf_init(&text, 4096);
    bh_call_write(&text, a);
    bh_buf_str(&text, " | ");
    if (b)
        bh_call_write(&text, b);
    printf("# %s: call %zu: %s\n", name, i, bh_buf_text(&text));
    bh_buf_fini(&text);
}

/* Was all of it asked for, in order, and answered alike? At least so many calls. */
static inline bool replays_as(const char *name, const struct bh_recording *r,
                              const struct bh_recording *played, size_t at_least, const struct known *known)
{
    size_t i = 0, k = 0, n = 0, bad = 0, seen[8] = {0};
    uint32_t di = 0, dk = 0;
    for (const struct bh_call *a = replay_next(r, &i, &di); a; a = replay_next(r, &i, &di), n++) {
        const struct bh_call *b = replay_next(played, &k, &dk);
        if (b && replay_same_but_status(a, b) &&
            (a->status == b->status || replay_is_known(a, b, known, seen)))
            continue;
        if (bad++ < 5)
            replay_tell(name, n, a, b);
        if (!b)
            break;
    }
    if (replay_next(played, &k, &dk) && bad++ == 0)
        printf("# %s: asked for more than was recorded\n", name);
    for (size_t x = 0; known[x].times; x++)
        if (seen[x] != known[x].times && ++bad)
            printf("# %s: known difference %zu seen %zu times\n", name, x, seen[x]);
    if (n < at_least)
        printf("# %s: only %zu calls\n", name, n);
    return bad == 0 && n >= at_least;
}

#endif
