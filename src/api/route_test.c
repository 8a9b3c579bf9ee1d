/* SPDX-License-Identifier: Apache-2.0 */
/* route_test.c - the table is whole, paths find their routes, and nothing is done for who may not. */
#include "api/inside.h"

#include "base/json_read.h"
#include "base/str.h"
#include "base/test.h"

static const char *found(const char *method, const char *path, const char **param)
{
    static struct bh_api_req q;
    bh_api_req_fini(&q);
    bh_api_req_init(&q);
    const struct bh_api_route *r = bh_api_route_find(method, path, &q);
    *param = q.param ? q.param : "";
    return r ? r->path : bh_api_problem_http(&q.problem) == 405 ? "405" : "404";
}

TEST(paths)
{
    const char *p;
    CHECK_STR(found("GET", "/v1/status", &p), "/v1/status");
    CHECK_STR(found("GET", "/v1/jobs/J17", &p), "/v1/jobs/{id}");
    CHECK_STR(p, "J17");
    CHECK_STR(found("POST", "/v1/jobs/J17/cancel", &p), "/v1/jobs/{id}/cancel");
    CHECK_STR(found("POST", "/v1/jobs", &p), "/v1/jobs");
    CHECK_STR(p, "");
    CHECK_STR(found("PUT", "/v1/jobs", &p), "405");
    CHECK_STR(found("DELETE", "/v1/jobs/J1", &p), "405");
    static const char *const none[] = {"",
                                       "/",
                                       "/v1",
                                       "/v1/",
                                       "/v1/jobs/",
                                       "/v1/jobs//why",
                                       "/v1/jobs/J1/",
                                       "/v1/jobs/J1/why/x",
                                       "/v1/statuss",
                                       "v1/status",
                                       "/V1/status",
                                       "//v1/status"};
    for (size_t i = 0; i < BH_COUNT_OF(none); i++)
        CHECK_STR(found("GET", none[i], &p), "404");
    char longer[300] = "/v1/jobs/";
    memset(longer + 9, 'x', 200);
    CHECK_STR(found("GET", longer, &p), "404");
}

/* What the document and the dispatcher rely on. */
TEST(the_table_is_whole)
{
    for (size_t i = 0; i < bh_api_route_count; i++) {
        const struct bh_api_route *r = &bh_api_routes[i];
        CHECK(r->handle && r->summary && r->tag && (r->answer || r->type));
        CHECK(!r->body || bh_str_eq(r->method, "POST"));
        CHECK(!r->query || bh_str_eq(r->method, "GET"));
        CHECK(r->roles || bh_str_eq(r->path, "/openapi.json"));
        CHECK((r->body ? r->body->n : 0) <= 32 && (r->query ? r->query->n : 0) <= 32);
        for (size_t k = 0; k < i; k++)
            CHECK(!bh_str_eq(bh_api_routes[k].path, r->path) ||
                  !bh_str_eq(bh_api_routes[k].method, r->method));
        bool known = !r->answer;
        for (size_t k = 0; k < bh_api_schema_count; k++)
            known |= bh_str_eq(bh_api_schemas[k].name, r->answer);
        CHECK(known);
    }
}

/* Every route, as somebody without a role and as one whose role is in no tenant that exists: refused before its handler. */
TEST(nobody_gets_nothing)
{
    struct bh_api_core core = {0}; /* a handler that ran would fall over it */
    for (size_t i = 0; i < bh_api_route_count; i++) {
        struct bh_api_req q;
        if (!bh_api_routes[i].roles)
            continue;
        bh_api_req_init(&q);
        q.method = bh_api_routes[i].method;
        q.route = &bh_api_routes[i];
        q.caller = (struct bh_api_caller){.principal = "user:x", .user = "x"};
        CHECK_EQ(bh_api_dispatch(&core, &q), 0);
        CHECK_EQ(q.status, 403);
        CHECK(strstr(bh_buf_text(&q.out), "\"denied\"") && strstr(bh_buf_text(&q.out), "no role"));
        bh_api_req_fini(&q);
    }
}

/* Of whom nothing is known for a moment: asked to come again, whatever it is, and before any handler. */
TEST(who_cannot_be_looked_up)
{
    struct bh_api_core core = {0};
    for (size_t i = 0; i < bh_api_route_count; i++) {
        struct bh_api_req q;
        if (!bh_api_routes[i].roles)
            continue;
        bh_api_req_init(&q);
        q.route = &bh_api_routes[i];
        q.caller = (struct bh_api_caller){.principal = "address:192.0.2.1", .user = "", .unsure = true};
        CHECK_EQ(bh_api_dispatch(&core, &q), 0);
        CHECK_EQ(q.status, 503);
        CHECK_EQ(q.problem.retry_s, 1);
        bh_api_req_fini(&q);
    }
}

/* What is of the whole node is not for who has the role in one tenant. */
TEST(a_tenants_operator_is_none_of_the_node)
{
    const struct bh_api_grant grant = {BH_ROLE_OPERATOR, "a"};
    struct bh_api_core core = {0};
    size_t n = 0;
    for (size_t i = 0; i < bh_api_route_count; i++) {
        struct bh_api_req q;
        if (!bh_api_routes[i].everywhere)
            continue;
        bh_api_req_init(&q);
        q.route = &bh_api_routes[i];
        q.caller =
            (struct bh_api_caller){.principal = "user:x", .user = "x", .grants = &grant, .n_grants = 1};
        CHECK_EQ(bh_api_dispatch(&core, &q), 0);
        CHECK_EQ(q.status, 403);
        n++;
        bh_api_req_fini(&q);
    }
    CHECK(n > 8);
}

/* How long something takes tells of neighbours as well: of one that is not to be seen nothing is asked, as of one that is not there. */
TEST(nothing_is_looked_up_of_a_neighbour)
{
    static const char *const paths[] = {"/v1/usage", "/v1/usage/records"};
    static const char *const empty[] = {"\"usage\": []", "\"records\": []"};
    const struct bh_api_grant grant = {BH_ROLE_TENANT_ADMIN, "a"};
    const struct bh_api_view view = {.now_ms = 1000};
    struct bh_api_core core = {.view = &view}; /* no store: a question to it would fall over that */
    for (size_t i = 0; i < BH_COUNT_OF(paths); i++) {
        struct bh_api_req q;
        bh_api_req_init(&q);
        q.method = "GET";
        q.path = paths[i];
        q.caller =
            (struct bh_api_caller){.principal = "user:x", .user = "x", .grants = &grant, .n_grants = 1};
        *bh_vec_push(&q.query) = (struct bh_keyed){.key = "tenant", .value = "b"};
        CHECK_EQ(bh_api_dispatch(&core, &q), 0);
        CHECK_EQ(q.status, 200);
        CHECK(strstr(bh_buf_text(&q.out), empty[i]));
        bh_api_req_fini(&q);
    }
}

/* One thread answers everybody: who took much of it for sums, or to find few rows of many, waits, and others ask on. */
TEST(usage_is_given_in_turn)
{
    const struct bh_api_grant grant = {BH_ROLE_TENANT_ADMIN, "a"};
    const struct bh_api_view view = {.now_ms = 1000};
    static struct bh_api_core core;
    core.view = &view; /* and no store */
    bh_toll_pay(&core.sums, "user:x", UINT64_C(1000) * UINT32_MAX, 0);
    for (int k = 0; k < 4; k++) {
        const int i = k % 2;
        struct bh_api_req q;
        bh_api_req_init(&q);
        q.method = "GET";
        q.path = k < 2 ? "/v1/usage" : "/v1/usage/records";
        q.caller = (struct bh_api_caller){
            .principal = i ? "user:y" : "user:x", .user = "x", .grants = &grant, .n_grants = 1};
        if (i) /* of a neighbour nothing is asked, so there need be no store */
            *bh_vec_push(&q.query) = (struct bh_keyed){.key = "tenant", .value = "b"};
        CHECK_EQ(bh_api_dispatch(&core, &q), 0);
        CHECK_EQ(q.status, i ? 200 : 503);
        CHECK_EQ(q.problem.retry_s, i ? 0 : 3600);
        bh_api_req_fini(&q);
    }
}

TEST(the_document_is_json)
{
    struct bh_json_reader r;
    struct bh_buf out;
    bh_buf_init(&out, 1 << 20);
    bh_api_openapi(&out);
    bh_json_read_init(&r, bh_buf_text(&out), out.n);
    CHECK(!out.full && bh_json_read_skip(&r) && bh_json_read_end(&r));
    for (size_t i = 0; i < bh_api_route_count; i++)
        CHECK(strstr(bh_buf_text(&out), bh_api_routes[i].summary));
    bh_buf_fini(&out);
}

TEST_MAIN
