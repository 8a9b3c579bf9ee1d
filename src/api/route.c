/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - the way of a request: which route, may the caller, what was sent, the handler, the answer.
 *
 * Everything that all handlers need is done here once, so that none can forget it. A handler adds only the question
 * whose the thing is that it shows or touches (bh_api_check).
 */
#include "api/inside.h"

#include "base/str.h"

#include <stdio.h>

enum { PARAM_MAX = 128, SHAPE_MAX = 512 };

void bh_api_req_init(struct bh_api_req *q)
{
    *q = (struct bh_api_req){.status = 200};
    bh_buf_init(&q->out, BH_API_OUT_MAX);
    bh_json_init(&q->json, &q->out);
}

void bh_api_req_fini(struct bh_api_req *q)
{
    bh_buf_fini(&q->out);
    bh_vec_fini(&q->query);
    bh_arena_fini(&q->arena);
}

/* ---- which route ---- */

/* `/v1/jobs/{id}/why` against `/v1/jobs/J17/why`; the part in braces goes to *ret, n 0 where there is none. */
static bool matches(const char *pattern, const char *path, const char **ret, size_t *ret_n)
{
    *ret_n = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '{') {
            if (*pattern != *path++)
                return false;
            continue;
        }
        *ret = path;
        *ret_n = strcspn(path, "/");
        if (*ret_n == 0 || *ret_n > PARAM_MAX)
            return false;
        path += *ret_n;
        pattern = strchr(pattern, '}');
    }
    return *path == '\0';
}

const struct bh_api_route *bh_api_route_find(const char *method, const char *path, struct bh_api_req *q)
{
    const char *param = NULL, *near[64];
    char allowed[64] = "";
    size_t n = 0, n_near = 0;
    for (size_t i = 0; i < bh_api_route_count; i++) {
        const struct bh_api_route *r = &bh_api_routes[i];
        if (!matches(r->path, path, &param, &n)) {
            if (n_near < BH_COUNT_OF(near))
                near[n_near++] = r->path;
            continue;
        }
        if (bh_str_eq(r->method, method)) {
            q->param = n ? bh_arena_strn(&q->arena, param, n) : NULL;
            return r;
        }
        const size_t used = strlen(allowed);
        (void)snprintf(allowed + used, sizeof(allowed) - used, "%s%s", used ? ", " : "", r->method);
    }
    if (allowed[0]) {
        (void)bh_api_refuse(&q->problem, BH_INVALID, "'%.200s' is not done with %.20s", path, method);
        bh_api_hint(&q->problem, allowed, method, NULL);
        q->problem.http = 405;
        return NULL;
    }
    const char *nearest = bh_str_nearest(path, near, n_near);
    (void)bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is nothing at '%.200s'%s%s", path,
                        nearest ? "; nearest is " : "", nearest ? nearest : "");
    bh_api_hint(&q->problem, NULL, NULL, "GET /openapi.json lists what there is");
    return NULL;
}

/* ---- may the caller ---- */

static void role_words(uint32_t roles, char buf[160])
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < bh_words_role.n && used < 160; i++)
        if (roles & UINT32_C(1) << i)
            used += (size_t)snprintf(buf + used, 160 - used, "%s%s", used ? ", " : "", bh_words_role.text[i]);
}

static void had_words(const struct bh_api_caller *c, char buf[240])
{
    size_t used = (size_t)snprintf(buf, 240, "%.80s:", c->principal);
    if (!c->n_grants)
        (void)snprintf(buf + used, 240 - used, " no role");
    for (size_t i = 0; i < c->n_grants && used < 200; i++)
        used += (size_t)snprintf(buf + used, 240 - used, "%s %s%s%s", i ? "," : "",
                                 bh_words_role.text[c->grants[i].role], c->grants[i].tenant ? " of " : "",
                                 c->grants[i].tenant ? c->grants[i].tenant : "");
}

static int deny(struct bh_api_req *q, const char *where)
{
    char roles[160], had[240], needed[240];
    role_words(q->route->roles, roles);
    had_words(&q->caller, had);
    (void)snprintf(needed, sizeof(needed), "%s%s%s", roles, where ? " of " : "", where ? where : "");
    bh_api_hint(&q->problem, needed, had, "an operator binds roles in the policy's `roles`");
    return bh_api_refuse(&q->problem, BH_DENIED, "'%.80s' may not %s %s: it takes the role %s",
                         q->caller.principal, q->route->method, q->route->path, needed);
}

static bool has_role_somewhere(const struct bh_api_caller *c, uint32_t roles)
{
    for (size_t i = 0; i < c->n_grants; i++)
        if (roles & UINT32_C(1) << c->grants[i].role)
            return true;
    return false;
}

static int check_route(struct bh_api_req *q)
{
    const struct bh_api_route *r = q->route;
    if (!r->roles ||
        (r->everywhere ? bh_api_may(&q->caller, r->roles, NULL) : has_role_somewhere(&q->caller, r->roles)))
        return 0;
    return deny(q, r->everywhere ? "all tenants" : NULL);
}

bool bh_api_sees(const struct bh_api_req *q, const char *tenant)
{
    return bh_api_may(&q->caller, (UINT32_C(1) << BH_N_role) - 1, tenant);
}

bool bh_api_sees_all(const struct bh_api_req *q)
{
    return bh_api_sees(q, NULL);
}

const char *bh_api_only_tenant(const struct bh_api_req *q)
{
    const char *one = q->caller.n_grants ? q->caller.grants[0].tenant : NULL;
    for (size_t i = 1; i < q->caller.n_grants; i++)
        if (!bh_str_eq(q->caller.grants[i].tenant, one))
            return NULL;
    return one;
}

/* Nothing is held against him: his token may be a good one. */
static int check_known(struct bh_api_req *q)
{
    if (!q->route->roles || !q->caller.unsure)
        return 0;
    q->problem.retry_s = 1;
    bh_api_hint(&q->problem, NULL, NULL,
                "ask again; bulkhead doctor, on the node itself, says what is wrong with the store");
    return bh_api_refuse(&q->problem, BH_BUSY, "whose token this is cannot be looked up at the moment");
}

int bh_api_check(struct bh_api_req *q, const char *tenant, const char *user)
{
    const uint32_t roles = q->route->roles;
    if (bh_api_may(&q->caller, roles & ~BH_ROLE_BIT(TENANT_USER), tenant))
        return 0;
    if (!bh_api_may(&q->caller, roles & BH_ROLE_BIT(TENANT_USER), tenant))
        return deny(q, tenant);
    /* A user of a tenant touches what is his own. */
    if (!user || bh_str_eq(user, q->caller.user))
        return 0;
    bh_api_hint(&q->problem, "tenant-admin, or to be its owner", q->caller.principal, NULL);
    return bh_api_refuse(&q->problem, BH_DENIED, "it is of another user of tenant '%s'", tenant);
}

/* ---- what was sent ---- */

static int read_query(struct bh_api_req *q)
{
    static const struct bh_api_shape nothing = {.name = "Nothing"};
    const struct bh_api_shape *shape = q->route->query ? q->route->query : &nothing;
    uint32_t seen = 0;
    void *in = shape->size ? bh_arena_alloc(&q->arena, shape->size) : NULL;
    for (size_t i = 0; i < q->query.n; i++) {
        const int rc = bh_api_query_read(shape, q->query.at[i].key, q->query.at[i].value, &seen, &q->arena,
                                         in, &q->problem);
        if (rc < 0)
            return rc;
    }
    if (in)
        q->in = in;
    return bh_api_shape_done(shape, seen, &q->problem);
}

static int read_body(struct bh_api_req *q)
{
    const struct bh_api_shape *shape = q->route->body;
    if (!shape)
        return q->n_body ? bh_api_refuse(&q->problem, BH_INVALID, "%s %s takes no body", q->route->method,
                                         q->route->path)
                         : 0;
    q->in = bh_arena_alloc(&q->arena, shape->size);
    const bool none = q->n_body == 0; /* the same as {} */
    return bh_api_body_read(shape, none ? "{}" : q->body, none ? 2 : q->n_body, &q->arena, q->in,
                            &q->problem);
}

/* ---- the answer ---- */

void bh_api_req_fail(struct bh_api_req *q)
{
    q->follow = BH_FOLLOW_NOTHING;
    q->has_offset = false;
    q->out.n = 0;
    q->out.full = false;
    q->status = bh_api_problem_http(&q->problem);
    bh_api_problem_json(&q->out, &q->problem);
}

int bh_api_fail(struct bh_api_req *q, int rc, const struct bh_err *err)
{
    q->problem.err = *err;
    if (rc == BH_BUSY && !q->problem.retry_s)
        q->problem.retry_s = 1;
    return rc;
}

int(bh_api_not_there)(struct bh_api_req *q, const char *what)
{
    return bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is no %s '%.100s'", what,
                         q->param ? q->param : "");
}

void bh_api_key_text(struct bh_json *j, const char *key, const char *s)
{
    bh_json_key_str(j, key, s && *s ? s : NULL);
}

void bh_api_key_id(struct bh_json *j, const char *key, char letter, uint64_t id)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%c%llu", letter, (unsigned long long)id);
    bh_json_key_str(j, key, id ? text : NULL);
}

void bh_api_key_known(struct bh_json *j, const char *key, uint64_t v)
{
    if (v == UINT64_MAX)
        bh_json_key_str(j, key, NULL);
    else
        bh_json_key_u64(j, key, v);
}

/* {"id": "J17"}, or {"version": 4} */
static void command_done(struct bh_api_req *q)
{
    bh_json_open(&q->json, '{');
    if (q->name_of_id)
        bh_json_key_u64(&q->json, q->name_of_id, q->id);
    else if (q->made)
        bh_api_key_id(&q->json, "id", q->made, q->id);
    else
        bh_json_key_str(&q->json, "id", q->param);
    if (q->secret)
        bh_json_key_str(&q->json, "token", q->secret);
    bh_json_close(&q->json, '}');
    q->status = q->route->makes && q->id ? 201 : 200;
}

int bh_api_command(struct bh_api_req *q, int rc, char letter, uint64_t id, const struct bh_err *err)
{
    q->made = letter;
    q->id = id;
    if (rc == 0)
        command_done(q);
    return rc < 0 ? bh_api_fail(q, rc, err) : rc;
}

void bh_api_req_answer(struct bh_api_req *q, int rc, uint64_t id, const struct bh_err *err)
{
    if (id)
        q->id = id;
    if (rc == 0) {
        command_done(q);
        return;
    }
    (void)bh_api_fail(q, rc, err);
    bh_api_req_fail(q);
}

int bh_api_fits(struct bh_api_req *q)
{
    return q->out.full ? bh_api_refuse(&q->problem, BH_TOO_LARGE,
                                       "the answer is larger than any that is given; ask for less of it")
                       : 0;
}

/* What is only looked at is looked at in one moment of the store. */
static int handle(struct bh_api_core *core, struct bh_api_req *q)
{
    const bool looks = core->store && bh_str_eq(q->route->method, "GET");
    if (looks)
        bh_store_hold(core->store);
    const int rc = q->route->handle(core, q);
    if (looks)
        bh_store_release(core->store);
    return rc;
}

int bh_api_dispatch(struct bh_api_core *core, struct bh_api_req *q)
{
    int rc;
    if (!q->route && !(q->route = bh_api_route_find(q->method, q->path, q)))
        rc = q->problem.err.code;
    else if ((rc = check_known(q)) == 0 && (rc = check_route(q)) == 0 && (rc = read_query(q)) == 0 &&
             (rc = read_body(q)) == 0) {
        q->ticket = ++core->tickets;
        rc = handle(core, q);
    }
    if (rc == 0)
        rc = bh_api_fits(q);
    if (rc >= 0)
        return rc;
    bh_api_req_fail(q);
    return 0;
}
