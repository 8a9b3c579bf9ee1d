/* SPDX-License-Identifier: Apache-2.0 */
/* handle_leases.c - leases: the list, one with its history, and what its owner orders it to do. */
#include "api/pager.h"

#include "base/str.h"
#include "core/policy/predicate.h"

static const struct bh_api_live *live_find(const struct bh_api_view *v, uint64_t lease)
{
    size_t low = 0, high = v->n_lives;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (v->lives[mid].lease == lease)
            return &v->lives[mid];
        if (v->lives[mid].lease < lease)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* The cards that it was given something of, each once, and how much of them. */
static void given_json(struct bh_json *j, const bh_store_grants *grants)
{
    uint64_t milli = 0, mib = 0;
    bh_json_key(j, "gpus");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < grants->n; i++) {
        size_t first = 0;
        while (!bh_str_eq(grants->at[first].slice.gpu, grants->at[i].slice.gpu))
            first++;
        if (first == i)
            bh_json_str(j, grants->at[i].slice.gpu);
        milli += grants->at[i].milli;
        mib += grants->at[i].mib;
    }
    bh_json_close(j, ']');
    bh_json_key_u64(j, "milli", milli);
    bh_json_key_u64(j, "memory_mib", mib);
}

static void lease_json(struct bh_json *j, const struct bh_api_core *core, const struct bh_store_lease *l,
                       const bh_store_grants *grants)
{
    const struct bh_api_live *live = live_find(core->view, l->id);
    bh_json_open(j, '{');
    bh_api_key_id(j, "id", 'L', l->id);
    bh_api_key_id(j, "job", 'J', l->job);
    bh_json_key_str(j, "tenant", l->tenant);
    bh_json_key_str(j, "user", l->user);
    bh_api_key_text(j, "pool", l->pool);
    bh_json_key_str(j, "state", bh_lease_state_str(l->state));
    bh_api_key_text(j, "cause", l->cause);
    bh_api_key_text(j, "why", l->why);
    bh_json_key_str(j, "mechanism", bh_word(mechanism, l->mechanism));
    bh_api_key_text(j, "stack", l->stack);
    bh_json_key_str(j, "tier", bh_word(tier, l->tier));
    given_json(j, grants);
    bh_json_key_bool(j, "paused", l->paused);
    bh_json_key_u64(j, "created_ms", l->created_ms);
    bh_json_key_u64(j, "state_ms", l->state_ms);
    bh_api_key_known(j, "until_ms", l->until_ms ? l->until_ms : UINT64_MAX);
    bh_json_key(j, "live");
    if (!live)
        bh_json_str(j, NULL);
    else {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "state", live->state);
        bh_json_key_u64(j, "compute_ppm", live->compute_ppm);
        bh_json_key_u64(j, "memory_mib", live->memory_mib);
        bh_json_key_u64(j, "refused", live->refused);
        bh_json_close(j, '}');
    }
    bh_json_close(j, '}');
}

int bh_h_lease_json(struct bh_api_req *q, const struct bh_api_core *core, const struct bh_store_lease *l,
                    struct bh_err *err)
{
    bh_store_grants grants = {0};
    const int rc = bh_store_lease_grants(core->store, &q->arena, l->id, &grants, err);
    if (rc == 0)
        lease_json(&q->json, core, l, &grants);
    bh_vec_fini(&grants);
    return rc;
}

/* `live` stands for all that may hold something. */
static int state_bits(struct bh_api_req *q, const char *word, uint32_t *ret)
{
    const int state = word ? bh_lease_state_find(word) : 0;
    if (state < 0 && !bh_str_eq(word, "live"))
        return bh_api_refuse(&q->problem, BH_INVALID, "'%.40s' is no state of a lease", word);
    *ret = !word ? 0 : state < 0 ? bh_store_lease_live() : UINT32_C(1) << state;
    return 0;
}

static int count_leases(struct bh_api_core *core, const void *filter, const char *tenant, uint64_t *ret,
                        struct bh_err *err)
{
    struct bh_store_lease_filter f = *(const struct bh_store_lease_filter *)filter;
    f.tenant = tenant;
    return bh_store_leases_count(core->store, &f, ret, err);
}

static int list_leases(struct bh_api_core *core, struct bh_api_req *q, const struct bh_store_lease_filter *f,
                       struct bh_pager *p, struct bh_err *err)
{
    for (bh_pager_init(p, q); p->more;) {
        bh_store_leases rows = {0};
        int rc = bh_store_leases_list(core->store, &q->arena, f, &p->page, &rows, err);
        bh_pager_got(p, rows.n);
        for (size_t i = 0; rc == 0 && i < rows.n; i++)
            if (bh_pager_shows(p, rows.at[i].id, rows.at[i].tenant))
                rc = bh_h_lease_json(q, core, &rows.at[i], err);
        bh_vec_fini(&rows);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int bh_h_leases(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_list *in = q->in;
    struct bh_store_lease_filter f = {.tenant = in->tenant ? in->tenant : bh_api_only_tenant(q),
                                      .job = in->job};
    struct bh_pager p;
    uint64_t hidden = 0;
    struct bh_err err;
    int rc = state_bits(q, in->state, &f.states);
    if (rc < 0)
        return rc;
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "leases");
    bh_json_open(&q->json, '[');
    rc = list_leases(core, q, &f, &p, &err);
    if (rc == 0 && !bh_api_sees_all(q) && !in->job)
        rc = bh_pager_hidden(core, q, count_leases, &f, &hidden, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    bh_pager_close(&p, &q->json, 'L', hidden);
    return 0;
}

int bh_h_lease_get(struct bh_api_core *core, struct bh_api_req *q, struct bh_store_lease *ret)
{
    struct bh_err err;
    uint64_t id;
    if (!bh_api_id_parse(q->param, 'L', &id))
        return bh_api_not_there(q, "lease");
    const int rc = bh_store_lease_get(core->store, &q->arena, id, ret, &err);
    if (rc < 0 && rc != BH_NOT_FOUND)
        return bh_api_fail(q, rc, &err);
    return rc < 0 || !bh_api_sees(q, ret->tenant) ? bh_api_not_there(q, "lease") : 0;
}

static void grants_json(struct bh_json *j, const bh_store_grants *grants)
{
    bh_json_key(j, "slices");
    bh_json_open(j, '[');
    for (size_t i = 0; i < grants->n; i++) {
        const struct bh_store_grant *g = &grants->at[i];
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "gpu", g->slice.gpu);
        bh_json_key_str(j, "kind", bh_slice_kind_str(g->slice.kind));
        bh_api_key_text(j, "key", g->slice.key);
        bh_json_key_u64(j, "milli", g->milli);
        bh_json_key_u64(j, "memory_mib", g->mib);
        bh_json_key_bool(j, "proved_clean", g->proved != 0);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

const char *bh_h_stays_shared(struct bh_arena *arena, uint8_t mechanism, uint8_t tier)
{
    const char *text = "";
    for (const char *const *s = bh_mech_stays_shared((enum bh_mechanism)mechanism, (enum bh_tier)tier); *s;
         s++)
        text = bh_arena_printf(arena, "%s%s%s", text, *text ? "; " : "", *s);
    return text;
}

static int history_json(struct bh_api_core *core, struct bh_api_req *q, uint64_t id, struct bh_err *err)
{
    const struct bh_store_page page = {.limit = BH_API_LIST_MAX};
    struct bh_json *j = &q->json;
    bh_store_lease_steps steps = {0};
    const int rc = bh_store_lease_history(core->store, &q->arena, id, &page, &steps, err);
    bh_json_key(j, "history");
    bh_json_open(j, '[');
    for (size_t i = 0; rc == 0 && i < steps.n; i++) {
        const struct bh_store_lease_step *s = &steps.at[i];
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "at_ms", s->at_ms);
        bh_api_key_text(j, "from", s->from);
        bh_json_key_str(j, "to", s->to);
        bh_api_key_text(j, "cause", s->cause);
        bh_api_key_text(j, "why", s->why);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_vec_fini(&steps);
    return rc;
}

static int scrubs_json(struct bh_api_core *core, struct bh_api_req *q, uint64_t id, struct bh_err *err)
{
    const struct bh_store_page page = {.limit = BH_API_LIST_MAX};
    struct bh_json *j = &q->json;
    bh_store_scrubs scrubs = {0};
    const int rc = bh_store_scrubs_list(core->store, &q->arena, id, &page, &scrubs, err);
    bh_json_key(j, "scrubs");
    bh_json_open(j, '[');
    for (size_t i = 0; rc == 0 && i < scrubs.n; i++) {
        const struct bh_store_scrub *s = &scrubs.at[i];
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "at_ms", s->at_ms);
        bh_json_key_str(j, "gpu", s->slice.gpu);
        bh_json_key_str(j, "verdict", bh_scrub_verdict_str(s->verdict));
        bh_api_key_text(j, "method", s->method);
        bh_json_key_u64(j, "probed_bytes", s->probed_bytes);
        bh_json_key_u64(j, "total_bytes", s->total_bytes);
        bh_api_key_text(j, "words", s->words);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_vec_fini(&scrubs);
    return rc;
}

int bh_h_lease(struct bh_api_core *core, struct bh_api_req *q)
{
    bh_store_grants grants = {0};
    struct bh_store_lease l;
    struct bh_err err;
    int rc = bh_h_lease_get(core, q, &l);
    if (rc < 0)
        return rc;
    rc = bh_store_lease_grants(core->store, &q->arena, l.id, &grants, &err);
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "lease");
    lease_json(&q->json, core, &l, &grants);
    bh_json_key_str(&q->json, "stays_shared", bh_h_stays_shared(&q->arena, l.mechanism, l.tier));
    grants_json(&q->json, &grants);
    bh_vec_fini(&grants);
    if (rc == 0)
        rc = history_json(core, q, l.id, &err);
    if (rc == 0)
        rc = scrubs_json(core, q, l.id, &err);
    bh_json_close(&q->json, '}');
    return rc < 0 ? bh_api_fail(q, rc, &err) : 0;
}

int bh_h_lease_order(struct bh_api_core *core, struct bh_api_req *q)
{
    static const char *const words[BH_API_LEASE_ORDERS] = {
        [BH_API_LEASE_PAUSE] = "/pause",
        [BH_API_LEASE_RESUME] = "/resume",
        [BH_API_LEASE_SUSPEND] = "/suspend",
        [BH_API_LEASE_END] = "/end",
    };
    const struct bh_b_reason *in = q->in;
    struct bh_store_lease l;
    struct bh_err err;
    size_t order = 0;
    int rc = bh_h_lease_get(core, q, &l);
    if (rc < 0 || (rc = bh_api_check(q, l.tenant, l.user)) < 0)
        return rc;
    while (!bh_str_ends(q->route->path, words[order]))
        order++;
    rc = core->ops->lease(core->ops->self, &q->caller, (enum bh_api_lease_order)order, l.id, in->reason,
                          q->ticket, &err);
    return bh_api_command(q, rc, 'L', l.id, &err);
}
