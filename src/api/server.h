/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - what carries requests: connections, exchanges (one request and its answer), and the API as a whole.
 *
 *   server.c    start, the turn of the loop, the clock, the end
 *   conn.c      connections: who is there, how many, how long they may take
 *   exchange.c  from libmicrohttpd's calls to dispatch and back; answers that come later, streams
 */
#ifndef BH_API_SERVER_H
#define BH_API_SERVER_H

#include "api/inside.h"

#include <microhttpd.h>

enum {
    BH_BODY_MAX = 2 << 20,
    BH_BODIES_MAX = 32 << 20, /* of all who are not root, at one time */
    BH_PATH_MAX = 2048,
};

struct bh_conn {
    struct bh_conn *next, *prev;
    struct bh_arena arena;
    struct bh_peer peer;
    char key[BH_LIMIT_KEY];
    int fd;
    bool cut;                /* was shut down; libmicrohttpd closes it when it sees that */
    uint64_t since_ms;       /* it came, or its last answer was over */
    struct bh_exchange *now; /* NULL: none under way */
};

enum bh_exchange_state {
    BH_EX_READING, /* the request is coming */
    BH_EX_LATER,   /* suspended: a command's answer follows */
    BH_EX_LOG,     /* suspended: a log has to grow */
    BH_EX_READY,   /* resumed: the answer is in q */
    BH_EX_STREAM,  /* events go out as they come */
    BH_EX_ANSWERED,
};

struct bh_exchange {
    struct bh_exchange *next, *prev; /* of those that wait or stream */
    struct bh_conn *conn;
    struct MHD_Connection *mhd;
    struct bh_api *api;
    struct bh_api_req q;
    const struct bh_console_file
        *file; /* of the console, asked for by its path; NULL: a question to the API */
    struct bh_buf body;
    size_t counted; /* bytes of it in api->body_bytes */
    enum bh_exchange_state state;
    bool failed; /* READING: refused before its body was taken */
    bool too_large, listed, suspended;
    bool touched;      /* LOG: its job changed */
    uint64_t until_ms; /* LOG: the answer goes out then; STREAM: it ends then; 0: never */
    uint64_t
        moved_ms; /* ANSWERED, STREAM: when the last of it was taken; LATER: when it was looked for who asks */
    struct bh_cursor cursor;
    struct bh_buf piece; /* STREAM: text that was not taken yet */
    size_t piece_at;
    char stream_key[BH_LIMIT_KEY]; /* "": not counted as a stream */
};

struct bh_api {
    struct bh_api_core core;
    struct bh_limit limit;
    struct bh_events events;
    struct MHD_Daemon *daemon[2]; /* unix, HTTPS; NULL: none */
    int epoll_fd, timer_fd;
    struct bh_conn *conns;
    struct bh_exchange *waiting; /* all that are not READING or ANSWERED */
    size_t body_bytes;
    uint64_t swept_ms, logs_ms;
    bool draining;
    bool changed;     /* events came: streams have to be woken */
    bool end_streams; /* roles may be others now */
};

uint64_t bh_api_clock(void); /* ms, monotonic */

/* conn.c */
void bh_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode code);
void bh_conn_cut(struct bh_conn *c);
/* Cuts off who takes too long; returns when to look again, 0: nobody is there. */
uint64_t bh_conns_sweep(struct bh_api *api, uint64_t now_ms);

/* exchange.c */
enum MHD_Result bh_exchange_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                   const char *version, const char *data, size_t *n_data, void **con_cls);
void bh_exchange_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                           enum MHD_RequestTerminationCode why);
/* Who asked is still who he was and may see what he might: else an answer that was long in the making is not his any more. */
int bh_exchange_know_again(struct bh_exchange *x) BH_MUST_USE;
size_t bh_exchange_unescape(void *cls, struct MHD_Connection *mhd, char *s);

/* wait.c: exchanges that are not over */
void bh_wait_add(struct bh_exchange *x, enum bh_exchange_state state); /* suspends all but streams */
void bh_wait_remove(struct bh_exchange *x);
void bh_wait_ready(struct bh_exchange *x); /* the answer is there: on with it */
/* Wakes who has something to do now; returns when to look again, 0: when something happens. */
uint64_t bh_waits_wake(struct bh_api *api, uint64_t now_ms);
enum MHD_Result bh_stream_start(struct bh_exchange *x); /* queues the answer; MHD_NO: could not */
void bh_streams_reap(struct bh_api *api);               /* ends those whose reader is gone */

#endif
