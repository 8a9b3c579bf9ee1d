/* SPDX-License-Identifier: Apache-2.0 */
/* client_test.c - the client against a daemon that says what the test wants; with the real one: tests/api/client.py. */
#include "client/client.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[BH_SCRATCH_SOCKET_PATH], path[108];
static pid_t child;

/* Each answer is given to one request; "" hangs up instead. A new connection is taken where the last one ended. */
static void serve(const char *const *answers, int listener)
{
    char buf[4096];
    int c = -1;
    for (; *answers; answers++) {
        ssize_t n = 0;
        while (c < 0 || (n = read(c, buf, sizeof(buf))) <= 0) {
            if (c >= 0)
                (void)close(c);
            c = accept(listener, NULL, NULL);
        }
        if (!**answers) {
            (void)close(c);
            c = -1;
        } else if (write(c, *answers, strlen(*answers)) < 0)
            _exit(1);
    }
    _exit(0);
}

static bool start(const char *const *answers)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!bh_scratch_make(folder, sizeof(folder), "client"))
        return false;
    (void)snprintf(path, sizeof(path), "%s/api.sock", folder);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 8) < 0)
        return false;
    if ((child = fork()) == 0)
        serve(answers, listener);
    (void)close(listener);
    return child > 0;
}

static void stop(void)
{
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)bh_scratch_remove(folder);
}

#define HEAD(n) "HTTP/1.1 200 OK\r\nContent-Length: " #n "\r\n\r\n"

TEST(questions_on_one_connection)
{
    static const char *const answers[] = {
        HEAD(2) "ok", HEAD(3) "yes",
        "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", NULL};
    struct bh_client_reply r;
    struct bh_client c;
    CHECK(start(answers));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_get(&c, "/a", &r, NULL), 0);
    CHECK_STR(bh_buf_text(&r.body), "ok");
    CHECK_EQ(bh_client_get(&c, "/b", &r, NULL), 0);
    CHECK_STR(bh_buf_text(&r.body), "yes");
    CHECK_EQ(bh_client_post(&c, "/c", "{\"x\": 1}", &r, NULL), 0);
    CHECK_EQ(r.status, 201);
    CHECK_STR(bh_buf_text(&r.body), "{}");
    bh_client_reply_fini(&r);
    bh_client_fini(&c);
    stop();
}

TEST(the_daemons_words)
{
    static const char *const answers[] = {
        "HTTP/1.1 409 Conflict\r\nContent-Length: 80\r\n\r\n"
        "{\"error\": {\"code\": \"quota_exceeded\", \"message\": \"no more\", \"had\": [1], \"x\": {}}}",
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 74\r\n\r\n"
        "{\"error\": {\"code\": \"denied\", \"message\": \"you may not\", \"next\": \"ask ada\"}}",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nwhat",
        "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", NULL};
    struct bh_client_reply r;
    struct bh_client c;
    struct bh_err err;
    CHECK(start(answers));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_QUOTA);
    CHECK_STR(err.msg, "no more");
    CHECK_EQ(r.status, 409);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_DENIED);
    CHECK_STR(err.msg, "you may not; ask ada");
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "the daemon answered 400");
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_BUSY);
    bh_client_reply_fini(&r);
    bh_client_fini(&c);
    stop();
}

#define LATER(s) "HTTP/1.1 429 x\r\nRetry-After: " #s "\r\nContent-Length: 0\r\n\r\n"

TEST(a_short_while_is_waited_a_long_one_is_told)
{
    static const char *const answers[] = {LATER(1), LATER(1), HEAD(2) "ok", LATER(3600), LATER(tomorrow),
                                          LATER(2), LATER(1), HEAD(2) "ok", NULL};
    struct bh_client_reply r;
    struct bh_client c;
    CHECK(start(answers));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_post(&c, "/", "{}", &r, NULL), 0);
    CHECK_STR(bh_buf_text(&r.body), "ok");
    CHECK(bh_client_get(&c, "/", &r, NULL) < 0);
    CHECK_EQ(r.status, 429);
    CHECK(bh_client_get(&c, "/", &r, NULL) < 0);
    CHECK(bh_client_get(&c, "/", &r, NULL) < 0); /* two seconds are enough */
    CHECK_EQ(bh_client_get(&c, "/", &r, NULL), 0);
    bh_client_reply_fini(&r);
    bh_client_fini(&c);
    stop();
}

TEST(a_connection_that_went_away)
{
    /* asked again where that does nothing twice; else told */
    static const char *const answers[] = {HEAD(1) "1", "", HEAD(1) "2", "",
                                          HEAD(1) "3", "", HEAD(1) "4", NULL};
    const struct bh_client_ask keyed = {.method = "POST", .path = "/", .body = "{}", .n = 2, .key = "k"};
    struct bh_client_reply r;
    struct bh_client c;
    struct bh_err err;
    CHECK(start(answers));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), 0);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), 0);
    CHECK_STR(bh_buf_text(&r.body), "2");
    CHECK_EQ(bh_client_ask(&c, &keyed, &r, &err), 0);
    CHECK_STR(bh_buf_text(&r.body), "3");
    CHECK_EQ(bh_client_post(&c, "/", "{}", &r, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), 0);
    CHECK_STR(bh_buf_text(&r.body), "4");
    bh_client_reply_fini(&r);
    bh_client_fini(&c);
    stop();
}

TEST(nobody_there)
{
    struct bh_client_reply r;
    struct bh_client c;
    struct bh_err err;
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK_EQ(bh_client_init_at(&c, longer, &err), BH_INVALID);
    (void)setenv("BULKHEAD_RUN_DIR", "/proc/no/such/place", 1);
    CHECK_EQ(bh_client_init(&c, &err), 0);
    CHECK_STR(c.path, "/proc/no/such/place/api.sock");
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "is bulkheadd running?"));
    (void)setenv("BULKHEAD_RUN_DIR", longer, 1);
    CHECK_EQ(bh_client_init(&c, &err), BH_INVALID);
    (void)unsetenv("BULKHEAD_RUN_DIR");
    CHECK(bh_client_path(longer));
    CHECK_STR(longer, "/run/bulkhead/api.sock");
    bh_client_reply_fini(&r);
}

TEST(no_answer_in_time)
{
    static const char *const answers[] = {HEAD(9) "half", NULL};
    struct bh_client_reply r;
    struct bh_client c;
    struct bh_err err;
    CHECK(start((const char *const[]){"HTTP/1.1 200 OK\r\n", answers[0], NULL}));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    c.timeout_ms = 50;
    bh_client_reply_init(&r);
    CHECK_EQ(bh_client_get(&c, "/", &r, &err), BH_BUSY);
    CHECK_EQ(c.fd, -1); /* what comes late is not taken for the next answer */
    bh_client_reply_fini(&r);
    stop();
}

static bool count_three(void *ctx, const struct bh_client_event *e)
{
    int *n = ctx;
    return e->data[0] == '0' + *n && ++*n < 3;
}

TEST(events)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 0\n\n\r\n12\r\ndata: 1\n\ndata: 2\n\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: 0\n\n",
        "HTTP/1.1 403 x\r\nContent-Length: 47\r\n\r\n{\"error\": {\"code\": \"denied\", \"message\": \"not\"}}  ",
        NULL};
    struct bh_client c;
    struct bh_err err;
    int n = 0;
    CHECK(start(answers));
    CHECK_EQ(bh_client_init_at(&c, path, NULL), 0);
    CHECK_EQ(bh_client_events(&c, NULL, count_three, &n, &err), 0);
    CHECK_EQ(n, 3);
    n = 0;
    CHECK_EQ(bh_client_events(&c, "7-1", count_three, &n, &err), BH_NOT_FOUND);
    CHECK_EQ(n, 1);
    CHECK_EQ(bh_client_events(&c, NULL, count_three, &n, &err), BH_DENIED);
    CHECK_STR(err.msg, "not");
    bh_client_fini(&c);
    stop();
}

TEST_MAIN
