/* SPDX-License-Identifier: Apache-2.0 */
/* memo.c - an ask as text, and the verdict that was given on that text before. */
#include "node/memo.h"

#include "base/buf.h"

#include <inttypes.h>
#include <string.h>

enum { KEY_MAX = 8192 };

/* With its length, so that no two texts together look like two others. */
static void add_text(struct bh_buf *key, const char *s)
{
    if (s)
        bh_buf_printf(key, "%zu:%s,", strlen(s), s);
    else
        bh_buf_str(key, "-,");
}

/*
 * All that a verdict may depend on. What is only copied into it is put in by patch(). Lists are what the node never asks with:
 * one that has some is judged each time.
 */
static bool make_key(const struct bh_admit_ask *a, struct bh_buf *key)
{
    if (a->mounts || a->devices || a->n_env)
        return false;
    add_text(key, a->name);
    add_text(key, a->tenant);
    add_text(key, a->pool);
    add_text(key, a->profile);
    add_text(key, a->image);
    bh_buf_printf(key,
                  "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32
                  ",%" PRIu64 ",",
                  a->gpus, a->share_milli, a->memory_bytes, a->gpus_max, a->cpu_milli, a->host_mib,
                  a->image_mib, a->deadline_ms);
    bh_buf_printf(key, "%d%d%d,%u,%u,%u,%u,%u,", a->has_tier, a->has_priority, a->own_mps, a->tier,
                  a->priority, a->pace, a->can, a->checkpointable);
    bh_buf_printf(key, "%d%d%d%d%d%d%d%d", a->runs, a->gang, a->needs_nvlink, a->allow_span, a->privileged,
                  a->host_pid, a->host_ipc, a->host_network);
    return !key->full;
}

static void patch(struct bh_admit_grant *g, const struct bh_admit_ask *a)
{
    g->job.id = a->id;
    g->job.user = a->user;
    g->job.submit_ms = a->submit_ms;
    g->job.runtime_ms = a->duration_ms;
}

static void forget(struct bh_memo *m)
{
    bh_map_fini(&m->index);
    bh_arena_fini(&m->arena);
    m->index = (struct bh_map){0};
    m->grants.n = 0;
}

bool bh_memo_judge(struct bh_memo *m, const struct bh_admit_ask *ask, struct bh_admit_grant *ret,
                   struct bh_admit_refusal *why)
{
    struct bh_buf key;
    bh_buf_init(&key, KEY_MAX);
    const bool has_key = make_key(ask, &key);
    const uint32_t at = has_key ? bh_map_find(&m->index, bh_buf_text(&key)) : BH_MAP_NONE;
    bool yes = at != BH_MAP_NONE;
    if (yes) {
        *ret = m->grants.at[at];
        patch(ret, ask);
    } else {
        yes = bh_admit_job(m->of, ask, ret, why);
        m->judged++;
        if (yes && has_key) {
            if (m->grants.n >= BH_MEMO_MOST)
                forget(m);
            *bh_vec_push(&m->grants) = *ret;
            (void)bh_map_add(&m->index, bh_arena_str(&m->arena, bh_buf_text(&key)),
                             (uint32_t)m->grants.n - 1);
        }
    }
    bh_buf_fini(&key);
    return yes;
}

void bh_memo_fini(struct bh_memo *m)
{
    forget(m);
    bh_vec_fini(&m->grants);
}
