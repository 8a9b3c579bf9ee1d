/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - the API from a program's side: one connection over the unix socket, one question at a time.
 *
 * Blocking, by hand, without any library, so that the command can be carried anywhere. A failure that the daemon
 * stated comes back as a struct bh_err with its code and its words; that there is no daemon is BH_NOT_FOUND.
 */
#ifndef BH_CLIENT_CLIENT_H
#define BH_CLIENT_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_CLIENT_BODY_MAX = 64 << 20, BH_CLIENT_LINE_MAX = 16384 };

struct bh_client {
    int fd;         /* -1: not connected */
    int timeout_ms; /* for each wait; 0: for ever */
    char path[108]; /* of the socket */
    char in[BH_CLIENT_LINE_MAX];
    uint32_t in_at, in_n; /* what was received and not used yet */
};

/* Where the daemon's socket is: api.sock below BULKHEAD_RUN_DIR, else below /run/bulkhead. False: the path is too long. */
bool bh_client_path(char ret[108]);
/* Connects when the first question is asked. */
int bh_client_init(struct bh_client *c, struct bh_err *err) BH_MUST_USE; /* at bh_client_path() */
int bh_client_init_at(struct bh_client *c, const char *socket_path, struct bh_err *err) BH_MUST_USE;
void bh_client_fini(struct bh_client *c);

struct bh_client_reply {
    int status;           /* of HTTP */
    struct bh_buf body;   /* the caller's, initialised with a maximum; emptied first */
    char type[64];        /* content type, "" where none */
    uint64_t next_offset; /* of logs: Bulkhead-Next-Offset; UINT64_MAX: not said */
    bool ended;           /* of logs: nothing more will come */
    uint64_t dropped;     /* of logs: bytes before these that are no longer there */
};
void bh_client_reply_init(struct bh_client_reply *r);
void bh_client_reply_fini(struct bh_client_reply *r);

struct bh_client_ask {
    const char *method; /* `GET`, `POST`, `PUT`, `DELETE` */
    const char *path;   /* `/v1/status`, with its query */
    const char *type;   /* of the body; NULL: application/json */
    const char *body;   /* NULL: none */
    size_t n;
    const char *key; /* Idempotency-Key; NULL: none */
};
/* 0: the answer is 2xx and in *ret. Otherwise the daemon's words are in err, and ret->status has what it said. */
int bh_client_ask(struct bh_client *c, const struct bh_client_ask *ask, struct bh_client_reply *ret,
                  struct bh_err *err) BH_MUST_USE;
int bh_client_get(struct bh_client *c, const char *path, struct bh_client_reply *ret,
                  struct bh_err *err) BH_MUST_USE;
int bh_client_post(struct bh_client *c, const char *path, const char *json, struct bh_client_reply *ret,
                   struct bh_err *err) BH_MUST_USE;

/* One event of /v1/events. The strings live until fn returns. */
struct bh_client_event {
    const char *id, *kind, *data;
};
/* True: go on. */
typedef bool (*bh_client_event_fn)(void *ctx, const struct bh_client_event *e);
/*
 * Follows the events until fn says no (0), or the daemon ends them (BH_NOT_FOUND: connect again, with the id of the last one).
 * last_id NULL: from now on.
 */
int bh_client_events(struct bh_client *c, const char *last_id, bh_client_event_fn fn, void *ctx,
                     struct bh_err *err) BH_MUST_USE;

#endif
