/* SPDX-License-Identifier: Apache-2.0 */
/* answer_test.c - answers that are right, that say more, that say less, and that are hostile. */
#include "cli/answer.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_arena arena;
static struct bh_err err;

static int read_jobs(const char *text, struct bh_a_jobs *ret)
{
    bh_arena_fini(&arena);
    return bh_answer_read(&arena, text, strlen(text), &bh_a_jobs_shape, ret, &err);
}

#define JOB(more)                                                                                                   \
    "{\"id\": \"J1\", \"tenant\": \"red\", \"user\": \"ada\", \"name\": null, \"pool\": \"p\", \"state\": "         \
    "\"ended\", \"why\": null, \"end\": \"exited\", \"status\": 3, \"signal\": null, \"gpus\": 1, \"milli\": 500, " \
    "\"memory_mib\": 0, \"profile\": null, \"tier\": \"process\", \"priority\": \"normal\", \"can_pause\": true, "  \
    "\"can_suspend\": false, \"can_requeue\": false, \"firm\": false, \"order\": -1, \"duration_ms\": null, "       \
    "\"deadline_ms\": null, \"submit_ms\": 1, \"state_ms\": 2" more "}"

TEST(rows_and_what_is_null)
{
    struct bh_a_jobs j;
    CHECK_EQ(
        read_jobs("{\"jobs\": [" JOB("") ", " JOB(", \"new\": {\"a\": [1.5e3, {}]}") "], \"next\": \"J1\", "
                                                                                     "\"others\": null}",
                  &j),
        0);
    CHECK_EQ(j.jobs.n, 2);
    CHECK_STR(j.next, "J1");
    CHECK(j.others == BH_ANSWER_UNKNOWN);
    const struct bh_a_job *job = &j.jobs.at[1];
    CHECK_STR(job->id, "J1");
    CHECK(!job->name && !job->why && job->can_pause && !job->firm);
    CHECK_EQ(job->status, 3);
    CHECK(job->signal == BH_ANSWER_UNKNOWN && job->duration_ms == BH_ANSWER_UNKNOWN);
    CHECK_EQ(job->milli, 500);
}

TEST(an_empty_list_and_fields_that_may_be_missing)
{
    struct bh_a_jobs j;
    CHECK_EQ(read_jobs("{\"jobs\": []}", &j), 0);
    CHECK(j.jobs.n == 0 && !j.next && j.others == BH_ANSWER_UNKNOWN);
}

TEST(objects_in_objects_and_lists_of_texts)
{
    static const char text[] =
        "{\"version\": 1, \"errors\": 0, \"changes\": [{\"tenant\": null, \"what\": \"a\\u00e9\", "
        "\"before\": \"1\", \"after\": \"2\", \"effect\": null}], \"findings\": [\"x\", \"y\\n\"]}";
    struct bh_a_diff d;
    bh_arena_fini(&arena);
    CHECK_EQ(bh_answer_read(&arena, text, sizeof(text) - 1, &bh_a_diff_shape, &d, &err), 0);
    CHECK_STR(d.changes.at[0].what, "a\xc3\xa9");
    CHECK_EQ(d.findings.n, 2);
    CHECK_STR(d.findings.at[1], "y\n");
}

TEST(hostile_answers_are_failures_with_a_sentence)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "'it'"},
        {"null", "is not an object"},
        {"[]", "is not an object"},
        {"{\"jobs\": {}}", "'jobs' is of another kind"},
        {"{\"jobs\": null}", "'jobs' is of another kind"},
        {"{\"jobs\": [null]}", "is not an object"},
        {"{\"jobs\": [[]]}", "is not an object"},
        {"{\"jobs\": [{}]}", "'id' is missing"},
        {"{\"others\": 1}", "'jobs' is missing"},
        {"{\"jobs\": [], \"others\": -1}", "a number was expected"},
        {"{\"jobs\": [], \"others\": 1.5}", "a whole number was expected"},
        {"{\"jobs\": [], \"others\": \"1\"}", "'others' is of another kind"},
        {"{\"jobs\": [], \"others\": 18446744073709551615}", "'others' is of another kind"},
        {"{\"jobs\": [], \"others\": 18446744073709551616}", "too large"},
        {"{\"jobs\": [], \"next\": 1}", "'next' is of another kind"},
        {"{\"jobs\": [], \"next\": \"a\\u0000b\"}", "NUL"},
        {"{\"jobs\": []} x", "something stands behind its end"},
        {"{\"jobs\": [" JOB("") "", "ends in the middle"},
        {"{\"jobs\": [{\"id\": \"J1", "ends in the middle"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_a_jobs j;
        err.msg[0] = '\0';
        CHECK_EQ(read_jobs(cases[i].text, &j), BH_SYSTEM);
        if (!strstr(err.msg, cases[i].words))
            CHECK_STR(err.msg, cases[i].words);
        CHECK(strstr(err.msg, "the daemon's answer is not understood"));
    }
}

/* Cut anywhere, it is a failure, and nothing is read that is not there. */
TEST(every_beginning_of_an_answer_is_a_failure)
{
    static const char text[] = "{\"jobs\": [" JOB("") "], \"next\": \"J1\", \"others\": 4}";
    struct bh_a_jobs j;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *part =
            bh_alloc(1, n + 1); /* of its own size, so that a sanitizer sees what is read behind it */
        memcpy(part, text, n);
        bh_arena_fini(&arena);
        const int rc = bh_answer_read(&arena, part, n, &bh_a_jobs_shape, &j, NULL);
        free(part);
        CHECK_EQ(rc, BH_SYSTEM);
    }
    CHECK_EQ(read_jobs(text, &j), 0);
    bh_arena_fini(&arena);
}

TEST_MAIN
