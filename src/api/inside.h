/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h - what the rooms of the API share: one request, and the table of routes.
 *
 * A request goes through dispatch (route.c) without knowing of sockets, so that tests and fuzzers send one
 * as easily as the server does. The server (server.c) only carries bytes.
 */
#ifndef BH_API_INSIDE_H
#define BH_API_INSIDE_H

#include "api/api.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/events.h"
#include "api/limit.h"
#include "api/problem.h"
#include "api/toll.h"
#include "base/json.h"
#include "store/state.h"
#include "store/state_tally.h"
#include "wire/stream.h"

#define BH_ROLE_BIT(R) (UINT32_C(1) << BH_ROLE_##R)
enum { BH_API_OUT_MAX = 64 << 20, BH_API_STATUSES = 600 };

struct bh_api_req;
struct bh_api_core;
typedef int (*bh_api_handler)(struct bh_api_core *core, struct bh_api_req *q);

struct bh_api_route {
    const char *method, *path; /* `/v1/jobs/{id}` */
    const char *tag;           /* group in the document */
    uint32_t roles;            /* bits: one of these, in some tenant at least; 0: nobody need be known */
    bool everywhere;           /* ... in all tenants */
    bool makes;                /* success is 201 */
    const struct bh_api_shape *query, *body; /* NULL: none */
    const char *answer;                      /* name of its schema; NULL: not JSON */
    const char *type;                        /* of the answer; NULL: application/json */
    const char *summary;
    bh_api_handler handle;
};
extern const struct bh_api_route bh_api_routes[];
extern const size_t bh_api_route_count;

/* What an answer looks like: `id:id tenant:text rows:[Job] until_ms:int?`. */
struct bh_api_schema {
    const char *name, *fields;
};
extern const struct bh_api_schema bh_api_schemas[];
extern const size_t bh_api_schema_count;

/* What of it is not HTTP's: everything a handler works with. */
/* All that anybody had so far, by tenant, as it was added up a moment ago: dashboards ask for it again and again. */
struct bh_api_recent {
    struct bh_arena arena;
    bh_store_usage_sums sums;
    uint64_t at_ms,
        to_ms; /* by the clock that does not jump, and by the one that the sums end at; at_ms 0: none */
};

struct bh_api_core {
    struct bh_store *store;
    const struct bh_api_ops *ops;
    const struct bh_api_view *view;
    const char *log_dir;
    uint64_t tickets;                  /* the last one given */
    const struct bh_limit *limit;      /* who is there; NULL: not known */
    struct bh_toll sums;               /* of usage: what callers took of a processor */
    struct bh_api_recent recent;       /* the same sums for who sees everything */
    struct bh_store_tally tally;       /* ... what they are made from */
    uint64_t answers[BH_API_STATUSES]; /* given so far, by HTTP status */
};

enum bh_api_follow {
    BH_FOLLOW_NOTHING,
    BH_FOLLOW_EVENTS, /* the answer goes on as long as there is anybody to read it */
    BH_FOLLOW_LOG,    /* nothing was there yet: asked again until something is or the time is over */
};

struct bh_api_req {
    struct bh_arena arena;
    /* what came */
    const char *method, *path;
    const char *key;               /* Idempotency-Key; NULL: none */
    const char *last_event;        /* Last-Event-ID; NULL: none */
    const char *accept;            /* Accept; NULL: none */
    BH_VEC(struct bh_keyed) query; /* decoded */
    const char *body;
    size_t n_body;
    struct bh_api_caller caller;
    /* what dispatch made of it */
    const struct bh_api_route *route;
    const char *param; /* the part of the path in braces; NULL: none */
    void *in;          /* of the route's body or query shape; NULL: none */
    uint64_t ticket;
    /* the answer */
    struct bh_buf out;
    struct bh_json json;
    struct bh_api_problem problem;
    int status;
    const char *type; /* of the answer; NULL: the route's */
    char made;        /* letter of the id that a command answers with; 0: a bare number under `name_of_id` */
    const char *name_of_id;
    const char *secret; /* of a new token: shown with its answer */
    uint64_t id;        /* that it answers with */
    enum bh_api_follow follow;
    uint64_t wait_ms;                  /* BH_FOLLOW_LOG */
    const char *log_folder, *log_name; /* likewise: what has to grow; NULL: there is none yet */
    struct bh_stream_mark log_mark;
    uint64_t next_offset, dropped; /* of a log; has_offset */
    bool has_offset, ended;
    bool bill; /* one is made elsewhere: whoever asked may go away meanwhile */
};

void bh_api_req_init(struct bh_api_req *q);
void bh_api_req_fini(struct bh_api_req *q);

/* The route of a path: BH_NOT_FOUND, or BH_INVALID with 405 where only the method is wrong. */
const struct bh_api_route *bh_api_route_find(const char *method, const char *path, struct bh_api_req *q);
/*
 * The whole way of a request whose caller is known: role, query, body, handler. 0: q->out and q->status are the answer;
 * BH_API_LATER: bh_api_req_answer() follows. A failure is an answer too, made from q->problem.
 */
int bh_api_dispatch(struct bh_api_core *core, struct bh_api_req *q);
/* The answer to a command that was done, refused or failed later. */
void bh_api_req_answer(struct bh_api_req *q, int rc, uint64_t id, const struct bh_err *err);
/* The answer of a failure that is in q->problem. */
void bh_api_req_fail(struct bh_api_req *q);

/* ---- for handlers ---- */

int bh_api_fail(struct bh_api_req *q, int rc,
                const struct bh_err *err);         /* a callback's or the store's failure */
int bh_api_fits(struct bh_api_req *q) BH_MUST_USE; /* what is written so far may be sent; or BH_TOO_LARGE */
bool bh_api_sees(const struct bh_api_req *q, const char *tenant); /* any role there */
/* The one tenant that the caller sees; NULL: several, or all. A list need not look at others then. */
const char *bh_api_only_tenant(const struct bh_api_req *q);
bool bh_api_sees_all(const struct bh_api_req *q);
/* May the caller do what this route does to something of this tenant and user? Else BH_DENIED with what it takes. */
int bh_api_check(struct bh_api_req *q, const char *tenant, const char *user) BH_MUST_USE;
int bh_api_not_there(struct bh_api_req *q, const char *what); /* or not to be seen: the same words */
#ifdef __clang_analyzer__ /* as with bh_fail: what comes back is a failure */
#define bh_api_not_there(q, what) ((void)(bh_api_not_there)(q, what), (int)BH_NOT_FOUND)
#endif
/* Text or null */
void bh_api_key_text(struct bh_json *j, const char *key, const char *s);
void bh_api_key_id(struct bh_json *j, const char *key, char letter, uint64_t id);
void bh_api_key_known(struct bh_json *j, const char *key, uint64_t v); /* UINT64_MAX: null */
/* What a command's callback returned, as an answer of this kind: {"id": "J17"}. */
int bh_api_command(struct bh_api_req *q, int rc, char letter, uint64_t id, const struct bh_err *err);

#endif
