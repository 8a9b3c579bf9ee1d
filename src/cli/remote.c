/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - questions to the daemon, and its refusals in one line. */
#include "cli/remote.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 1000, PATH_BYTES = 4096, SLOW_FIRST_S = 2, SLOW_EVERY_S = 10 };

int bh_remote_init(struct bh_remote *r, struct bh_err *err)
{
    *r = (struct bh_remote){.client = {.fd = -1}};
    bh_client_reply_init(&r->reply);
    const int rc = bh_client_init(&r->client, err);
    r->client.timeout_ms = BH_REMOTE_TIMEOUT_MS;
    return rc;
}

void bh_remote_fini(struct bh_remote *r)
{
    bh_client_fini(&r->client);
    bh_client_reply_fini(&r->reply);
    bh_arena_fini(&r->arena);
}

uint64_t bh_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- failures ---- */

struct hint {
    const char *message, *needed, *had, *next;
};
struct problem {
    const struct hint *error;
};

static const struct bh_answer_field hint_fields[] = {
    {"message", offsetof(struct hint, message), BH_ANSWER_TEXT, false, NULL},
    {"needed", offsetof(struct hint, needed), BH_ANSWER_TEXT, true, NULL},
    {"had", offsetof(struct hint, had), BH_ANSWER_TEXT, true, NULL},
    {"next", offsetof(struct hint, next), BH_ANSWER_TEXT, true, NULL},
};
static const struct bh_answer_shape hint_shape = {hint_fields, BH_COUNT_OF(hint_fields), sizeof(struct hint)};
static const struct bh_answer_field problem_fields[] = {
    {"error", offsetof(struct problem, error), BH_ANSWER_ONE, false, &hint_shape}};
static const struct bh_answer_shape problem_shape = {problem_fields, 1, sizeof(struct problem)};

/* The client has the message; needs, what was there and the next command are worth the rest of the line. */
static int stated(struct bh_remote *r, int rc, struct bh_err *err)
{
    struct problem p;
    const struct bh_buf *body = &r->reply.body;
    if (!r->reply.status ||
        bh_answer_read(&r->arena, bh_buf_text(body), body->n, &problem_shape, &p, NULL) < 0)
        return rc;
    struct hint *h = bh_arena_alloc(&r->arena, sizeof(*h));
    *h = *p.error;
    if (h->needed && strstr(h->message, h->needed)) /* said already */
        h->needed = NULL;
    return bh_fail(err, (enum bh_code)rc, "%.240s%s%.60s%s%.60s%s%s%.100s", h->message,
                   h->needed ? "; needed: " : "", h->needed ? h->needed : "",
                   h->had ? (h->needed ? ", had: " : "; had: ") : "", h->had ? h->had : "",
                   h->next ? "; " : "", h->next ? "next: " : "", h->next ? h->next : "");
}

bool bh_remote_is_away(const struct bh_remote *r, int rc)
{
    return rc == BH_NOT_FOUND && r->reply.status == 0;
}

int bh_remote_ask_once(struct bh_remote *r, const char *method, const char *path, const char *body,
                       const char *key, struct bh_err *err)
{
    const struct bh_client_ask ask = {
        .method = method, .path = path, .body = body, .n = body ? strlen(body) : 0, .key = key};
    struct bh_err told;
    const int rc = bh_client_ask(&r->client, &ask, &r->reply, &told);
    if (rc >= 0)
        return BH_OK;
    if (bh_remote_is_away(r, rc))
        return bh_fail(
            err, BH_NOT_FOUND,
            "no daemon answers at '%s'; start one: bulkheadd --policy FILE, or make run in a source tree",
            r->client.path);
    if (err)
        *err = told;
    return stated(r, rc, err);
}

int bh_remote_ask(struct bh_remote *r, const char *method, const char *path, const char *body,
                  struct bh_err *err)
{
    return bh_remote_ask_once(r, method, path, body, NULL, err);
}

int bh_remote_read(struct bh_remote *r, const struct bh_answer_shape *shape, void *ret, struct bh_err *err)
{
    return bh_answer_read(&r->arena, bh_buf_text(&r->reply.body), r->reply.body.n, shape, ret, err);
}

int bh_remote_get(struct bh_remote *r, const char *path, const struct bh_answer_shape *shape, void *ret,
                  struct bh_err *err)
{
    const int rc = bh_remote_ask(r, "GET", path, NULL, err);
    return rc < 0 ? rc : bh_remote_read(r, shape, ret, err);
}

/* ---- lists ---- */

struct listing {
    const char *key;
    struct bh_buf *out;
    uint64_t n, left;
    uint64_t others; /* UINT64_MAX: all are seen */
    char next[BH_REMOTE_ID_MAX];
};

/* The rows of one page are taken over as they are written. */
static bool take_rows(struct listing *l, struct bh_json_reader *j)
{
    const char *raw;
    size_t n;
    if (!bh_json_read_open(j, '['))
        return false;
    while (bh_json_read_item(j)) {
        if (!bh_json_read_raw(j, &raw, &n))
            return false;
        bh_buf_str(l->out, l->n++ ? ",\n    " : "\n    ");
        bh_buf_add(l->out, raw, n);
        l->left -= l->left > 0;
    }
    return !j->wrong;
}

/* It becomes a part of the next question. */
static bool read_next(struct bh_json_reader *j, char next[BH_REMOTE_ID_MAX])
{
    char word[BH_REMOTE_ID_MAX];
    return bh_json_read_str(j, word, sizeof(word)) && bh_is_alpha(word[0]) &&
           bh_remote_id(word, word[0], next);
}

static bool take_page(struct listing *l, const struct bh_buf *body)
{
    struct bh_json_reader j;
    uint64_t others;
    bool any = false;
    char key[32];
    l->next[0] = '\0';
    bh_json_read_init(&j, bh_buf_text(body), body->n);
    if (!bh_json_read_open(&j, '{'))
        return false;
    while (bh_json_read_member(&j, key, sizeof(key))) {
        const char kind = bh_json_read_peek(&j);
        bool ok;
        if (bh_str_eq(key, l->key))
            ok = any = take_rows(l, &j);
        else if (bh_str_eq(key, "next") && kind == '"')
            ok = read_next(&j, l->next);
        else if (bh_str_eq(key, "others") && kind == '0') {
            ok = bh_json_read_u64(&j, &others);
            l->others = l->others == UINT64_MAX ? 0 : l->others;
            l->others += ok ? others : 0;
        } else
            ok = bh_json_read_skip(&j);
        if (!ok)
            return false;
    }
    return bh_json_read_end(&j) && any;
}

/* Every page of one question; `others` is told with each, and counts once. */
static int list_one(struct bh_remote *r, struct listing *l, const char *path, struct bh_err *err)
{
    const uint64_t others_before = l->others;
    l->next[0] = '\0';
    do {
        l->others = others_before;
        const char *page =
            bh_arena_printf(&r->arena, "%s%climit=%" PRIu64 "%s%s", path, strchr(path, '?') ? '&' : '?',
                            l->left < PAGE ? l->left : (uint64_t)PAGE, l->next[0] ? "&after=" : "", l->next);
        const int rc = bh_remote_ask(r, "GET", page, NULL, err);
        if (rc < 0)
            return rc;
        const uint64_t left = l->left;
        if (!take_page(l, &r->reply.body))
            return bh_fail(err, BH_SYSTEM, "the daemon's answer is not understood: '%s'", l->key);
        if (l->left == left)
            l->next[0] = '\0'; /* a page without rows is the last, whatever it says */
    } while (l->next[0] && l->left);
    return BH_OK;
}

int bh_remote_list(struct bh_remote *r, const char *key, const char *const *paths, size_t n_paths,
                   uint64_t limit, struct bh_buf *ret, struct bh_err *err)
{
    struct listing l = {.key = key, .out = ret, .left = limit, .others = UINT64_MAX};
    int rc = BH_OK;
    bh_buf_printf(ret, "{\n  \"%s\": [", key);
    for (size_t i = 0; rc == BH_OK && i < n_paths && l.left; i++)
        rc = list_one(r, &l, paths[i], err);
    bh_buf_printf(ret, "%s],\n  \"next\": ", l.n ? "\n  " : "");
    if (l.next[0])
        bh_buf_printf(ret, "\"%s\"", l.next);
    else
        bh_buf_str(ret, "null");
    if (l.others == UINT64_MAX)
        bh_buf_str(ret, ",\n  \"others\": null\n}\n");
    else
        bh_buf_printf(ret, ",\n  \"others\": %" PRIu64 "\n}\n", l.others);
    return rc == BH_OK && ret->full
               ? bh_fail(err, BH_TOO_LARGE, "the list is too long; --limit makes it shorter")
               : rc;
}

void bh_remote_whys(struct bh_remote *r, struct bh_a_jobs *jobs, size_t most)
{
    struct bh_a_job *rows = bh_arena_alloc(&r->arena, (jobs->jobs.n + 1) * sizeof(*rows));
    struct bh_a_why w;
    if (jobs->jobs.n)
        memcpy(rows, jobs->jobs.at, jobs->jobs.n * sizeof(*rows));
    for (size_t i = 0; i < jobs->jobs.n && most; i++) {
        if (!bh_str_eq(rows[i].state, "waiting"))
            continue;
        const char *path = bh_arena_printf(&r->arena, "/v1/jobs/%s/why", rows[i].id);
        if (bh_remote_get(r, path, &bh_a_why_shape, &w, NULL) == BH_OK && w.sentence)
            rows[i].why = w.sentence;
        most--;
    }
    jobs->jobs.at = rows;
}

/* ---- words ---- */

bool bh_remote_id(const char *word, char letter, char ret[BH_REMOTE_ID_MAX])
{
    uint64_t n;
    if (*word == letter || *word == bh_to_lower(letter))
        word++;
    if (bh_uint_parse(word, INT64_MAX, &n, NULL) < 0 || !n)
        return false;
    (void)snprintf(ret, BH_REMOTE_ID_MAX, "%c%" PRIu64, letter, n);
    return true;
}

void bh_remote_quote(struct bh_buf *b, const char *s)
{
    for (; *s; s++)
        if (bh_is_alpha(*s) || bh_is_digit(*s) || strchr("-._~", *s))
            bh_buf_add(b, s, 1);
        else
            bh_buf_printf(b, "%%%02X", (unsigned char)*s);
}

int bh_remote_gpu(struct bh_remote *r, const char *name, struct bh_a_gpu *ret, struct bh_err *err)
{
    struct bh_buf path;
    bh_buf_init(&path, PATH_BYTES);
    bh_buf_str(&path, "/v1/gpus/");
    bh_remote_quote(&path, name);
    const int rc = bh_remote_get(r, bh_buf_text(&path), &bh_a_gpu_shape, ret, err);
    bh_buf_fini(&path);
    return rc;
}

int bh_remote_order(struct bh_remote *r, const char *kind, const char *name, const char *word,
                    const char *reason, struct bh_err *err)
{
    struct bh_buf path, body;
    struct bh_json j;
    bh_buf_init(&path, PATH_BYTES);
    bh_buf_init(&body, PATH_BYTES);
    bh_buf_printf(&path, "/v1/%s/", kind);
    bh_remote_quote(&path, name);
    bh_buf_printf(&path, "/%s", word);
    bh_json_init(&j, &body);
    bh_json_open_flat(&j, '{');
    if (reason)
        bh_json_key_str(&j, "reason", reason);
    bh_json_close(&j, '}');
    const int rc = path.full || body.full
                       ? bh_fail(err, BH_TOO_LARGE, "the words are too long")
                       : bh_remote_ask(r, "POST", bh_buf_text(&path), bh_buf_text(&body), err);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
    return rc;
}

/* ---- what takes long ---- */

static char slow_line[160];
static volatile sig_atomic_t slow_n;

static void on_alarm(int sig)
{
    (void)sig;
    (void)!write(STDERR_FILENO, slow_line, (size_t)slow_n);
}

void bh_remote_slow(const char *what)
{
    const struct itimerval at = {.it_interval.tv_sec = SLOW_EVERY_S, .it_value.tv_sec = SLOW_FIRST_S};
    const struct itimerval off = {0};
    if (!what) {
        (void)setitimer(ITIMER_REAL, &off, NULL);
        return;
    }
    slow_n = snprintf(slow_line, sizeof(slow_line), "bulkhead: %.120s ...\n", what);
    (void)sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART}, NULL);
    (void)setitimer(ITIMER_REAL, &at, NULL);
}

/* ---- one question, one screen ---- */

int bh_remote_show(struct bh_cli *cli, const struct bh_remote_view *view)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = bh_remote_ask(&r, "GET", view->path, NULL, &err);
    void *answer = bh_arena_alloc(&r.arena, view->shape->size);
    /* What is printed as it is must be whole too. */
    if (rc == BH_OK)
        rc = bh_remote_read(&r, view->shape, answer, &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    if (bh_cli_wants(cli, view->output_opt, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r.reply.body), r.reply.body.n);
    else
        view->text(cli, &r, answer);
    return BH_EXIT_OK;
}
