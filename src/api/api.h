/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the daemon's door: JSON over HTTP/1.1 on a unix socket and, if wanted, HTTPS.
 *
 * One thread, no thread of its own: everything hangs below one epoll descriptor that the daemon's loop watches.
 * Whenever it is readable, bh_api_run() is called. Who may do what is decided here (roles of the policy in force, root on
 * the unix socket is operator); what is done is in ops.h.
 */
#ifndef BH_API_API_H
#define BH_API_API_H

#include "api/ops.h"
#include "base/buf.h"

struct bh_store;
struct bh_api;

struct bh_api_limits {
    uint32_t connections;            /* in all; root is let in past it */
    uint32_t connections_per_caller; /* of one uid or address */
    uint32_t streams, streams_per_caller;
    uint32_t per_second, burst; /* requests of one caller */
    uint32_t idle_ms;           /* for a request to come, whole */
    uint32_t answer_ms;         /* for an answer to be taken */
    uint32_t auth_failures;     /* of one address before it is locked out */
    uint32_t lockout_ms;
    uint32_t events; /* kept for those who come back */
};
void bh_api_limits_init(struct bh_api_limits *l); /* the defaults */

struct bh_api_config {
    int unix_fd;                    /* a listening AF_UNIX socket, taken over on success; -1: none */
    int tcp_fd;                     /* a listening TCP socket for HTTPS, likewise; -1: none */
    const char *cert_pem, *key_pem; /* texts, for tcp_fd */
    struct bh_store *store;         /* lent */
    const struct bh_api_ops *ops;   /* lent */
    const struct bh_api_view
        *view;           /* lent: its members change between turns of the loop, its address does not */
    const char *log_dir; /* STATE/leases: ID/out and ID/err below it */
    struct bh_api_limits limits;
};

int bh_api_start(const struct bh_api_config *c, struct bh_api **ret, struct bh_err *err) BH_MUST_USE;
void bh_api_free(struct bh_api *api); /* NULL is fine; whoever still waits is cut off */

int bh_api_fd(
    const struct bh_api *api); /* an epoll descriptor: readable when bh_api_run() has something to do */
void bh_api_run(struct bh_api *api);

/* The answer to a command whose callback said BH_API_LATER. rc 0 or negative, as the callback would have returned. */
void bh_api_answer(struct bh_api *api, uint64_t ticket, int rc, uint64_t id, const struct bh_err *err);
/* Of a question: what was worked out, shown as far as the caller may see it. */
void bh_api_answer_why(struct bh_api *api, uint64_t ticket, int rc, const struct bh_api_why *why,
                       const struct bh_err *err);

/* Of a bill that was made elsewhere; what is to be kept of it is taken out. took_ms: of a processor, for this caller to pay. */
void bh_api_answer_bill(struct bh_api *api, uint64_t ticket, int rc, struct bh_store_bill *bill,
                        uint64_t took_ms, const struct bh_err *err);

/* Something changed: those who listen are told, if they may see it. tenant NULL: shown only to who sees everything. */
enum bh_api_kind {
    BH_API_KIND_JOB,
    BH_API_KIND_LEASE,
    BH_API_KIND_GPU,
    BH_API_KIND_POLICY,
    BH_API_KIND_HEALTH,
    BH_API_KINDS
};
/* id: of the job or lease, the index of the GPU, the version of the policy; state: one word, NULL: none. api NULL: not started. */
void bh_api_changed(struct bh_api *api, enum bh_api_kind kind, uint64_t id, const char *tenant,
                    const char *state);

/* No new connections, streams end, answers that are under way go out. True: nobody is left; ask again after bh_api_run(). */
bool bh_api_drain(struct bh_api *api);

/* The OpenAPI document, from the same table that serves. */
void bh_api_openapi(struct bh_buf *out);

#endif
