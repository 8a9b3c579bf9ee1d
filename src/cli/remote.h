/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - a verb's way to the daemon: one question, one answer, one sentence where it went wrong.
 *
 * A failure is said as: what, what was needed and what was there, the next command. That there is no daemon is said with how
 * to start one.
 */
#ifndef BH_CLI_REMOTE_H
#define BH_CLI_REMOTE_H

#include "cli/answer.h"
#include "cli/cli.h"
#include "client/client.h"

enum { BH_REMOTE_ID_MAX = 24, BH_REMOTE_TIMEOUT_MS = 30000 };

struct bh_remote {
    struct bh_client client;
    struct bh_client_reply reply; /* of the last question */
    struct bh_arena arena;        /* of what was read from it, and of what a verb says */
};

int bh_remote_init(struct bh_remote *r, struct bh_err *err) BH_MUST_USE;
void bh_remote_fini(struct bh_remote *r);

/* body NULL: a GET. The answer is in r->reply; where the daemon refused, its words, needs and hints are in err. */
int bh_remote_ask(struct bh_remote *r, const char *method, const char *path, const char *body,
                  struct bh_err *err) BH_MUST_USE;
/* The same with an Idempotency-Key: it is done once however often it is sent, and so it is sent again if need be. */
int bh_remote_ask_once(struct bh_remote *r, const char *method, const char *path, const char *body,
                       const char *key, struct bh_err *err) BH_MUST_USE;
/* GET, and the answer read into *ret. */
int bh_remote_get(struct bh_remote *r, const char *path, const struct bh_answer_shape *shape, void *ret,
                  struct bh_err *err) BH_MUST_USE;
/* The answer to the last question, read once more. */
int bh_remote_read(struct bh_remote *r, const struct bh_answer_shape *shape, void *ret,
                   struct bh_err *err) BH_MUST_USE;
/* Was it that nobody answers at all, rather than the answer? */
bool bh_remote_is_away(const struct bh_remote *r, int rc);

/*
 * The rows of several questions, page after page, as one answer: {"jobs": [...], "next": ..., "others": ...}. limit: rows
 * in all; where there are so many, there may be more.
 */
int bh_remote_list(struct bh_remote *r, const char *key, const char *const *paths, size_t n_paths,
                   uint64_t limit, struct bh_buf *ret, struct bh_err *err) BH_MUST_USE;

/* Of the first `most` jobs that wait, `why` becomes the scheduler's sentence of now, where it has one for this caller. */
void bh_remote_whys(struct bh_remote *r, struct bh_a_jobs *jobs, size_t most);

/* One card, by index or uuid. */
int bh_remote_gpu(struct bh_remote *r, const char *name, struct bh_a_gpu *ret,
                  struct bh_err *err) BH_MUST_USE;
/* POST /v1/KIND/NAME/WORD with the reason, which may be NULL. */
int bh_remote_order(struct bh_remote *r, const char *kind, const char *name, const char *word,
                    const char *reason, struct bh_err *err) BH_MUST_USE;

/* `J17`, `j17` or `17` as `J17`; false: it is none. */
bool bh_remote_id(const char *word, char letter, char ret[BH_REMOTE_ID_MAX]);
/* Bytes that mean something in a path or a query become %NN. */
void bh_remote_quote(struct bh_buf *b, const char *s);

/* While it is on, a line on standard error says after two seconds, and every ten, what takes so long. NULL: off. */
void bh_remote_slow(const char *what);

/* A verb that asks one thing: `-o json` prints the answer as it is, else `text` is called with it read. */
struct bh_remote_view {
    const char *path;
    const struct bh_answer_shape *shape;
    size_t output_opt;
    void (*text)(struct bh_cli *cli, struct bh_remote *r, const void *answer);
};
int bh_remote_show(struct bh_cli *cli, const struct bh_remote_view *view); /* returns the exit status */

uint64_t bh_now_ms(void); /* since 1970 */

#endif
