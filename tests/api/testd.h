/* SPDX-License-Identifier: Apache-2.0 */
/* testd.h - the parts of the test daemon: what stands behind the API (testd_ops.c), what is in it (testd_seed.c). */
#ifndef BH_API_TESTD_H
#define BH_API_TESTD_H

#include "api/api.h"
#include "conf/input.h"
#include "store/audit.h"
#include "store/state_job.h"
#include "store/state_lease.h"

enum { TESTD_GPUS = 3 };

/* A command that is committed at the end of the turn of the loop. */
struct testd_later {
    uint64_t ticket, id;
    bool is_if, starts; /* a question */
};

struct testd {
    char folder[256];
    bool is_later;
    bool ponders; /* questions are not answered for now */
    struct bh_store *store;
    struct bh_audit *audit;
    struct bh_api *api;
    struct bh_input input; /* owns the policy */
    struct bh_api_view view;
    struct bh_api_ops ops;
    struct bh_api_gpu gpus[TESTD_GPUS];
    struct bh_api_live lives[2];
    struct bh_api_check checks[2];
    BH_VEC(struct testd_later) later;
};

__attribute__((noreturn)) void die(const char *what, const struct bh_err *err);
void testd_open(struct testd *t, const char *folder); /* the store, what is in it, the view, the callbacks */
void testd_close(struct testd *t);
void testd_clock(struct testd *t);
void testd_ops_init(struct testd *t);
void testd_commit_later(struct testd *t);
void testd_end_job(struct testd *t, uint64_t job);
/* A key and a certificate that it signed itself, as texts. */
void testd_certificate(struct bh_arena *arena, const char **ret_cert, const char **ret_key);

#endif
