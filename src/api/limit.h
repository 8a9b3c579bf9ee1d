/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - how much one caller may ask for: requests a second, connections, streams, and wrong tokens.
 *
 * Callers are kept under a key (`uid:1000`, `addr:192.0.2.7`). The table has a fixed size, so that a crowd of addresses costs
 * no memory: the one heard of longest ago makes room, unless it has something open or is locked out. Where none can, the
 * newcomer is refused. Pure: time is a parameter.
 */
#ifndef BH_API_LIMIT_H
#define BH_API_LIMIT_H

#include "api/api.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_LIMIT_CALLERS = 512, BH_LIMIT_KEY = 64 };

struct bh_limit_caller {
    char key[BH_LIMIT_KEY]; /* "": not in use */
    uint64_t heard_ms;
    uint64_t milli; /* thousandths of requests it may still make */
    uint32_t connections, streams;
    uint32_t failures;
    uint64_t failed_ms;       /* the first of these */
    uint64_t locked_until_ms; /* 0: it is not */
};

struct bh_limit {
    struct bh_api_limits limits;
    uint32_t connections, streams; /* in all */
    struct bh_limit_caller callers[BH_LIMIT_CALLERS];
};

void bh_limit_init(struct bh_limit *l, const struct bh_api_limits *limits);
/* The entry of a key, made if need be; NULL: there is no room for another. Valid until the next call of this. */
struct bh_limit_caller *bh_limit_find(struct bh_limit *l, const char *key, uint64_t now_ms);
/* Takes one request; false: too many, and *ret_wait_ms is when the next one may come. */
bool bh_limit_request(struct bh_limit *l, struct bh_limit_caller *c, uint64_t now_ms, uint64_t *ret_wait_ms);
/* Count one up; false: no more may be open (root: no limit in all holds it back). */
bool bh_limit_connect(struct bh_limit *l, struct bh_limit_caller *c, bool is_root);
bool bh_limit_stream(struct bh_limit *l, struct bh_limit_caller *c);
void bh_limit_disconnect(struct bh_limit *l, const char *key);
void bh_limit_stream_end(struct bh_limit *l, const char *key);
/* A wrong token was shown; true: this one locked it out. */
bool bh_limit_auth_failed(struct bh_limit *l, struct bh_limit_caller *c, uint64_t now_ms);
bool bh_limit_is_locked(const struct bh_limit_caller *c, uint64_t now_ms);

#endif
