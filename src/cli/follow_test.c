/* SPDX-License-Identifier: Apache-2.0 */
/* follow_test.c - what a job writes, from attempt to attempt; with a real API behind it: tests/cli/remote.py. */
#include "cli/follow.h"

#include "cli/remote_fixture.h"

#define LOG(next, ended, text)                                                                 \
    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nBulkhead-Next-Offset: " next \
    "\r\nBulkhead-Ended: " ended "\r\nConnection: close\r\n\r\n" text
#define LEASE(id, state)                                                                            \
    "{\"id\": \"" id "\", \"job\": \"J1\", \"tenant\": \"a\", \"user\": \"u\", \"state\": \"" state \
    "\", \"mechanism\": \"whole\", \"tier\": \"process\", \"paused\": false, \"created_ms\": 1, \"state_ms\": 1}"
#define JOB(state, end, leases)                                                                                 \
    OK_JSON                                                                                                     \
    "{\"job\": {\"id\": \"J1\", \"tenant\": \"a\", \"user\": \"u\", \"state\": \"" state "\", " end             \
    "\"tier\": \"process\", \"priority\": \"normal\", \"gpus\": 1, \"milli\": 1000, \"memory_mib\": 0, "        \
    "\"submit_ms\": 1, \"state_ms\": 1, \"can_pause\": false, \"can_suspend\": false, \"can_requeue\": false, " \
    "\"firm\": false}, \"argv\": [], \"leases\": [" leases "]}"

static struct bh_cli cli;
static struct bh_remote r;
static struct bh_err err;
static struct bh_follow f;
static int pipe_fd[2];

static bool begin(const char *const *answers)
{
    if (!fixture_start(answers) || bh_remote_init(&r, &err) < 0 || pipe(pipe_fd) < 0)
        return false;
    bh_follow_init(&f, &cli, &r, "J1");
    f.fd[0] = pipe_fd[1];
    return true;
}

/* What was passed on, and what was asked. */
static const char *end(const char **ret_asked)
{
    static char text[4096];
    (void)close(pipe_fd[1]);
    const ssize_t n = read(pipe_fd[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(pipe_fd[0]);
    *ret_asked = fixture_stop();
    bh_remote_fini(&r);
    return text;
}

TEST(what_there_is_and_no_more)
{
    static const char *const answers[] = {LOG("4", "false", "one\n"), LOG("4", "false", ""),
                                          LOG("0", "true", ""), NULL};
    const char *asked;
    CHECK(begin(answers));
    f.fd[1] = pipe_fd[1];
    CHECK_EQ(bh_follow_rest(&f, &err), 0);
    CHECK_STR(end(&asked), "one\n");
    CHECK_STR(asked, "GET /v1/jobs/J1/logs?stream=out&offset=0&wait_ms=0 HTTP/1.1\n"
                     "GET /v1/jobs/J1/logs?stream=out&offset=4&wait_ms=0 HTTP/1.1\n"
                     "GET /v1/jobs/J1/logs?stream=err&offset=0&wait_ms=0 HTTP/1.1\n");
}

TEST(from_attempt_to_attempt_to_the_end)
{
    static const char *const answers[] = {
        JOB("running", "", LEASE("L1", "active")), LOG("4", "false", "one\n"),
        /* within the same half second it is not looked at the job again */
        LOG("4", "true", ""), JOB("waiting", "", LEASE("L1", "released") "," LEASE("L2", "admitted")),
        JOB("ended", "\"end\": \"exited\", \"status\": 3, ",
            LEASE("L1", "released") "," LEASE("L2", "released")),
        LOG("4", "true", "two\n"), NULL};
    struct bh_follow_end how;
    const char *asked;
    CHECK(begin(answers));
    f.fd[1] = -1;
    CHECK_EQ(bh_follow(&f, NULL, NULL, &how, &err), 0);
    CHECK(how.job && how.job->status == 3);
    CHECK_STR(end(&asked), "one\ntwo\n");
    CHECK(strstr(asked, "stream=out&offset=0&wait_ms=0&lease=L2"));
    CHECK(!strstr(asked, "stream=err"));
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

TEST(who_does_not_want_it_any_more_is_not_kept)
{
    static const char *const answers[] = {NULL};
    struct bh_follow_end how;
    const char *asked;
    CHECK(begin(answers));
    CHECK_EQ(bh_follow(&f, never, NULL, &how, &err), 0);
    CHECK(!how.job);
    CHECK_STR(end(&asked), "");
    CHECK_STR(asked, "");
}

TEST(a_job_that_is_not_there_and_answers_that_are_none)
{
    static const char *const answers[] = {
        "HTTP/1.1 404 x\r\nConnection: close\r\n\r\n{\"error\": {\"code\": \"not_found\", \"message\": \"no job\"}}",
        OK_JSON "{}", OK_JSON "a log without an offset", LOG("18446744073709551616", "true", ""), NULL};
    struct bh_follow_end how;
    const char *asked;
    size_t n;
    CHECK(begin(answers));
    CHECK_EQ(bh_follow(&f, NULL, NULL, &how, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_follow(&f, NULL, NULL, &how, &err), BH_SYSTEM);
    CHECK_EQ(bh_follow_piece(&f, 0, 0, &n, &err), BH_SYSTEM);
    CHECK(bh_follow_piece(&f, 0, 0, &n, &err) < 0);
    CHECK_STR(end(&asked), "");
}

TEST_MAIN
