/* SPDX-License-Identifier: Apache-2.0 */
/* remote_test.c - questions, refusals and lists; with a real API behind them: tests/cli/remote.py. */
#include "cli/remote_fixture.h"

static struct bh_remote r;
static struct bh_err err;

TEST(no_daemon_is_said_with_how_to_start_one)
{
    CHECK_EQ(setenv("BULKHEAD_RUN_DIR", "/nowhere-at-all", 1), 0);
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    const int rc = bh_remote_ask(&r, "GET", "/v1/status", NULL, &err);
    CHECK_EQ(rc, BH_NOT_FOUND);
    CHECK(bh_remote_is_away(&r, rc));
    CHECK_STR(err.msg,
              "no daemon answers at '/nowhere-at-all/api.sock'; start one: bulkheadd --policy FILE, or "
              "make run in a source tree");
    bh_remote_fini(&r);
}

TEST(a_folder_too_long_for_a_socket)
{
    char dir[200];
    memset(dir, 'x', sizeof(dir) - 1);
    dir[0] = '/';
    dir[sizeof(dir) - 1] = '\0';
    CHECK_EQ(setenv("BULKHEAD_RUN_DIR", dir, 1), 0);
    CHECK_EQ(bh_remote_init(&r, &err), BH_INVALID);
    bh_remote_fini(&r);
}

TEST(a_refusal_is_one_line_with_needs_and_the_next_command)
{
    static const char *const answers[] = {
        "HTTP/1.1 403 x\r\nConnection: close\r\n\r\n{\"error\": {\"code\": \"denied\", \"message\": \"you may not\", "
        "\"needed\": \"operator\", \"had\": \"viewer\", \"next\": \"ask ada\"}}",
        "HTTP/1.1 404 x\r\nConnection: close\r\n\r\n{\"error\": {\"code\": \"not_found\", \"message\": \"no job\"}}",
        "HTTP/1.1 500 x\r\nConnection: close\r\n\r\n<html>", NULL};
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    CHECK_EQ(bh_remote_ask(&r, "POST", "/v1/x", "{}", &err), BH_DENIED);
    CHECK_STR(err.msg, "you may not; needed: operator, had: viewer; next: ask ada");
    int rc = bh_remote_ask(&r, "GET", "/v1/jobs/J1", NULL, &err);
    CHECK_EQ(rc, BH_NOT_FOUND);
    CHECK(!bh_remote_is_away(&r, rc));
    CHECK_STR(err.msg, "no job");
    CHECK_EQ(bh_remote_ask(&r, "GET", "/", NULL, &err), BH_SYSTEM);
    CHECK_STR(fixture_stop(), "POST /v1/x HTTP/1.1\nGET /v1/jobs/J1 HTTP/1.1\nGET / HTTP/1.1\n");
    bh_remote_fini(&r);
}

TEST(an_answer_that_is_none)
{
    static const char *const answers[] = {OK_JSON "{\"quotas\": [", OK_JSON "[]", OK_JSON "{\"quotas\": []}",
                                          NULL};
    struct bh_a_quotas q;
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    CHECK_EQ(bh_remote_get(&r, "/v1/quota", &bh_a_quotas_shape, &q, &err), BH_SYSTEM);
    CHECK_EQ(bh_remote_get(&r, "/v1/quota", &bh_a_quotas_shape, &q, &err), BH_SYSTEM);
    CHECK_EQ(bh_remote_get(&r, "/v1/quota", &bh_a_quotas_shape, &q, &err), 0);
    (void)fixture_stop();
    bh_remote_fini(&r);
}

TEST(pages_and_questions_become_one_list)
{
    static const char *const answers[] = {OK_JSON
                                          "{\"jobs\": [{\"id\": 1}, 2], \"next\": \"J2\", \"others\": 3}",
                                          OK_JSON "{\"jobs\": [3], \"next\": null, \"others\": 3}",
                                          OK_JSON "{\"jobs\": [], \"next\": \"J9\", \"others\": 4}", NULL};
    static const char *const paths[] = {"/v1/jobs?state=running", "/v1/jobs"};
    struct bh_buf list;
    bh_buf_init(&list, 1 << 16);
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    CHECK_EQ(bh_remote_list(&r, "jobs", paths, 2, 10, &list, &err), 0);
    CHECK_STR(bh_buf_text(&list),
              "{\n  \"jobs\": [\n    {\"id\": 1},\n    2,\n    3\n  ],\n  \"next\": null,\n"
              "  \"others\": 7\n}\n");
    CHECK_STR(fixture_stop(), "GET /v1/jobs?state=running&limit=10 HTTP/1.1\n"
                              "GET /v1/jobs?state=running&limit=8&after=J2 HTTP/1.1\n"
                              "GET /v1/jobs?limit=7 HTTP/1.1\n");
    bh_buf_fini(&list);
    bh_remote_fini(&r);
}

TEST(a_list_ends_at_its_limit)
{
    static const char *const answers[] = {OK_JSON "{\"jobs\": [1, 2], \"next\": \"J2\", \"others\": null}",
                                          NULL};
    static const char *const paths[] = {"/v1/jobs", "/v1/never-asked"};
    struct bh_buf list;
    bh_buf_init(&list, 1 << 16);
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    CHECK_EQ(bh_remote_list(&r, "jobs", paths, 2, 2, &list, &err), 0);
    CHECK(strstr(bh_buf_text(&list), "\"next\": \"J2\",\n  \"others\": null\n"));
    CHECK_STR(fixture_stop(), "GET /v1/jobs?limit=2 HTTP/1.1\n");
    bh_buf_fini(&list);
    bh_remote_fini(&r);
}

/* An id is put into the next question: it must be one. */
TEST(hostile_pages)
{
    static const char *const answers[] = {OK_JSON "{\"jobs\": [1], \"next\": \"J2 HTTP/1.1\\r\\nX: y\"}",
                                          OK_JSON "{\"jobs\": [1], \"next\": \"\"}",
                                          OK_JSON "{\"jobs\": [1",
                                          OK_JSON "{\"jobs\": 1}",
                                          OK_JSON "{\"leases\": []}",
                                          OK_JSON "{\"jobs\": [1], \"others\": -1}",
                                          NULL};
    static const char *const path = "/v1/jobs";
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    for (size_t i = 0; i + 1 < BH_COUNT_OF(answers); i++) {
        struct bh_buf list;
        bh_buf_init(&list, 1 << 16);
        const int rc = bh_remote_list(&r, "jobs", &path, 1, 10, &list, &err);
        bh_buf_fini(&list);
        CHECK_EQ(rc, BH_SYSTEM);
    }
    (void)fixture_stop();
    bh_remote_fini(&r);
}

TEST(why_those_that_wait_do)
{
    static const char *const answers[] = {
        OK_JSON
        "{\"tier\": \"room\", \"sentence\": \"no GPU is free\", \"starts\": false, \"need_milli\": 1, "
        "\"free_milli\": 0, \"ahead\": 0, \"until_ms\": null, \"holders\": [], \"others\": {\"jobs\": 0, "
        "\"milli\": 0}, \"remedies\": []}",
        NULL};
    const struct bh_a_job rows[] = {{.id = "J1", .state = "running", .why = "x"},
                                    {.id = "J2", .state = "waiting", .why = "y"},
                                    {.id = "J3", .state = "waiting", .why = "z"}};
    struct bh_a_jobs jobs = {.jobs = {rows, 3}};
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    bh_remote_whys(&r, &jobs, 1);
    CHECK_STR(jobs.jobs.at[0].why, "x");
    CHECK_STR(jobs.jobs.at[1].why, "no GPU is free");
    CHECK_STR(jobs.jobs.at[2].why, "z");
    CHECK_STR(fixture_stop(), "GET /v1/jobs/J2/why HTTP/1.1\n");
    bh_remote_fini(&r);
}

TEST(orders)
{
    static const char *const answers[] = {OK_JSON "{\"id\": \"x\"}", OK_JSON "{\"id\": \"x\"}", NULL};
    CHECK(fixture_start(answers));
    CHECK_EQ(bh_remote_init(&r, &err), 0);
    CHECK_EQ(bh_remote_order(&r, "gpus", "a/b", "drain", "say \"why\"", &err), 0);
    CHECK_EQ(bh_remote_order(&r, "jobs", "J1", "cancel", NULL, &err), 0);
    char *large = bh_alloc(1, 5000);
    memset(large, 'x', 4999);
    CHECK_EQ(bh_remote_order(&r, "jobs", "J1", "cancel", large, &err), BH_TOO_LARGE);
    CHECK_EQ(bh_remote_order(&r, "gpus", large, "drain", NULL, &err), BH_TOO_LARGE);
    free(large);
    CHECK_STR(fixture_stop(), "POST /v1/gpus/a%2Fb/drain HTTP/1.1\nPOST /v1/jobs/J1/cancel HTTP/1.1\n");
    bh_remote_fini(&r);
}

TEST(ids_and_words)
{
    static const struct {
        const char *word, *id;
    } cases[] = {
        {"J17", "J17"}, {"j17", "J17"}, {"17", "J17"}, {"J0", NULL},  {"L17", NULL},
        {"J", NULL},    {"", NULL},     {"J1x", NULL}, {"J-1", NULL}, {"J99999999999999999999", NULL}};
    struct bh_buf b;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        char id[BH_REMOTE_ID_MAX];
        const bool is = bh_remote_id(cases[i].word, 'J', id);
        CHECK_EQ(is, cases[i].id != NULL);
        if (is)
            CHECK_STR(id, cases[i].id);
    }
    bh_buf_init(&b, 1000);
    bh_remote_quote(&b, "a b/c?d=\xc3\xa9&~");
    CHECK_STR(bh_buf_text(&b), "a%20b%2Fc%3Fd%3D%C3%A9%26~");
    bh_buf_fini(&b);
}

TEST_MAIN
