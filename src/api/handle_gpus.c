/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_gpus.c - cards, their slices, and what an operator orders them to do.
 *
 * A tenant sees the cards that it has something of, and of these its own slices. How busy or full a card is tells of
 * neighbours too, so it is shown only to who sees them all, or has all of the card.
 */
#include "api/handle.h"
#include "api/use.h"

#include "base/str.h"
#include "base/units.h"

#include <assert.h>

struct sums {
    uint64_t slices, milli, mib;
    uint64_t own; /* slices the caller may see */
};

static struct sums sum_of(const struct bh_api_req *q, const struct bh_uses *u, const char *uuid)
{
    struct sums s = {0};
    for (size_t i = 0; i < u->slices.n; i++) {
        const struct bh_use_slice *at = &u->slices.at[i];
        if (!bh_str_eq(at->slice.name.gpu, uuid) || at->slice.state == BH_SLICE_FREE)
            continue;
        if (at->tenant && bh_api_sees(q, at->tenant)) {
            s.own++;
            continue;
        }
        s.slices++;
        s.milli += at->slice.milli;
        s.mib += at->slice.mib;
    }
    return s;
}

static void slices_json(struct bh_json *j, const struct bh_api_req *q, const struct bh_uses *u,
                        const char *uuid)
{
    const bool all = bh_api_sees_all(q);
    bh_json_key(j, "slices");
    bh_json_open(j, '[');
    for (size_t i = 0; i < u->slices.n; i++) {
        const struct bh_store_slice *s = &u->slices.at[i].slice;
        const char *tenant = u->slices.at[i].tenant;
        if (!bh_str_eq(s->name.gpu, uuid) || !(all || (tenant && bh_api_sees(q, tenant))))
            continue;
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "kind", bh_slice_kind_str(s->name.kind));
        bh_api_key_text(j, "key", s->name.key);
        bh_json_key_str(j, "state", bh_slice_state_str(s->state));
        bh_json_key_u64(j, "milli", s->milli);
        bh_json_key_u64(j, "memory_mib", s->mib);
        bh_api_key_id(j, "lease", 'L', s->lease);
        bh_json_key_str(j, "tenant", tenant);
        bh_json_key_u64(j, "since_ms", s->since_ms);
        bh_api_key_text(j, "why", s->why);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void gpu_json(struct bh_json *j, const struct bh_api_req *q, const struct bh_uses *u,
                     const struct bh_api_gpu *g)
{
    const struct sums s = sum_of(q, u, g->uuid);
    const bool all = bh_api_sees_all(q), open = all || (s.own && !s.slices);
    bh_json_open(j, '{');
    bh_json_key_u64(j, "index", g->index);
    bh_json_key_str(j, "uuid", g->uuid);
    bh_json_key_str(j, "model", g->model);
    bh_json_key_str(j, "pci", g->pci);
    bh_json_key_str(j, "pool", g->pool);
    bh_json_key_str(j, "state", g->state);
    bh_json_key_str(j, "reason", all ? g->reason : NULL);
    bh_json_key_str(j, "health", g->health);
    bh_json_key_str(j, "layout", all ? g->layout : NULL);
    bh_json_key_str(j, "vbios", all ? g->vbios : NULL);
    bh_json_key_str(j, "gsp", all ? g->gsp : NULL);
    bh_json_key_str(j, "inforom", all ? g->inforom : NULL);
    bh_api_key_known(j, "numa", g->numa);
    bh_json_key_str(j, "fabric", g->fabric);
    bh_json_key_u64(j, "memory_mib", g->memory_mib);
    bh_api_key_known(j, "used_mib", open ? g->used_mib : UINT64_MAX);
    bh_api_key_known(j, "util_percent", open ? g->util_percent : UINT64_MAX);
    bh_api_key_known(j, "temperature_c", open ? g->temperature_c : UINT64_MAX);
    bh_api_key_known(j, "power_mw", open ? g->power_mw : UINT64_MAX);
    slices_json(j, q, u, g->uuid);
    bh_json_key(j, "others");
    if (all)
        bh_json_str(j, NULL);
    else {
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "slices", s.slices);
        bh_json_key_u64(j, "milli", s.milli);
        bh_json_key_u64(j, "memory_mib", s.mib);
        bh_json_close(j, '}');
    }
    bh_json_close(j, '}');
}

static bool shown(const struct bh_api_req *q, const struct bh_uses *u, const struct bh_api_gpu *g)
{
    return bh_api_sees_all(q) || sum_of(q, u, g->uuid).own > 0;
}

int bh_h_gpus(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_api_view *v = core->view;
    struct bh_json *j = &q->json;
    uint64_t hidden = 0;
    struct bh_uses u;
    const int rc = bh_uses_read_gpu(core, q, NULL, &u);
    if (rc < 0)
        return rc;
    bh_json_open(j, '{');
    bh_json_key(j, "gpus");
    bh_json_open(j, '[');
    for (size_t i = 0; i < v->n_gpus; i++) {
        if (shown(q, &u, &v->gpus[i]))
            gpu_json(j, q, &u, &v->gpus[i]);
        else
            hidden++;
    }
    bh_json_close(j, ']');
    bh_json_key(j, "switches");
    bh_json_open(j, '[');
    for (size_t i = 0; bh_api_sees_all(q) && i < v->n_switches; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "pci", v->switches[i].pci);
        bh_json_key_str(j, "firmware", v->switches[i].firmware);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_api_key_known(j, "others", bh_api_sees_all(q) ? UINT64_MAX : hidden);
    bh_json_close(j, '}');
    bh_uses_fini(&u);
    return 0;
}

/* By index or by uuid; NULL: there is none. */
static const struct bh_api_gpu *gpu_find(const struct bh_api_view *v, const char *name)
{
    uint64_t index;
    const bool is_index = bh_uint_parse(name, UINT32_MAX, &index, NULL) == 0;
    for (size_t i = 0; i < v->n_gpus; i++)
        if (bh_str_eq(v->gpus[i].uuid, name) || (is_index && v->gpus[i].index == index))
            return &v->gpus[i];
    return NULL;
}

int bh_h_gpu(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_api_gpu *g = gpu_find(core->view, q->param);
    struct bh_uses u;
    const int rc = bh_uses_read_gpu(core, q, g ? g->uuid : "", &u);
    if (rc < 0)
        return rc;
    const bool is_shown = g && shown(q, &u, g);
    if (is_shown)
        gpu_json(&q->json, q, &u, g);
    bh_uses_fini(&u);
    return is_shown ? 0 : bh_api_not_there(q, "GPU");
}

int bh_h_gpu_order(struct bh_api_core *core, struct bh_api_req *q)
{
    static const char *const words[BH_API_GPU_ORDERS] = {
        [BH_API_GPU_CORDON] = "/cordon", [BH_API_GPU_UNCORDON] = "/uncordon", [BH_API_GPU_DRAIN] = "/drain"};
    const struct bh_b_reason *in = q->in;
    const struct bh_api_gpu *g = gpu_find(core->view, q->param);
    struct bh_err err;
    size_t order = 0;
    if (!g || !g->uuid)
        return bh_api_not_there(q, "GPU");
    while (!bh_str_ends(q->route->path, words[order])) {
        order++;
        assert(order < BH_API_GPU_ORDERS); /* its routes end in one of them */
    }
    q->param = bh_arena_str(&q->arena, g->uuid);
    return bh_api_command(q,
                          core->ops->gpu(core->ops->self, &q->caller, (enum bh_api_gpu_order)order, q->param,
                                         in->reason, q->ticket, &err),
                          0, 0, &err);
}
