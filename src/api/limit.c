/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - token buckets, counts and lockouts, by caller. */
#include "api/limit.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

void bh_api_limits_init(struct bh_api_limits *l)
{
    *l = (struct bh_api_limits){
        .connections = 512,
        .connections_per_caller = 64,
        .streams = 128,
        .streams_per_caller = 8,
        .per_second = 200,
        .burst = 400,
        .idle_ms = 30000,
        .answer_ms = 60000,
        .auth_failures = 10,
        .lockout_ms = 60000,
        .events = 4096,
    };
}

void bh_limit_init(struct bh_limit *l, const struct bh_api_limits *limits)
{
    *l = (struct bh_limit){.limits = *limits};
}

static bool may_go(const struct bh_limit_caller *c, uint64_t now_ms)
{
    return !c->connections && !c->streams && !bh_limit_is_locked(c, now_ms);
}

static struct bh_limit_caller *known(struct bh_limit *l, const char *key)
{
    for (size_t i = 0; i < BH_LIMIT_CALLERS; i++)
        if (l->callers[i].key[0] && bh_str_eq(l->callers[i].key, key))
            return &l->callers[i];
    return NULL;
}

struct bh_limit_caller *bh_limit_find(struct bh_limit *l, const char *key, uint64_t now_ms)
{
    struct bh_limit_caller *c = known(l, key), *oldest = NULL;
    if (c)
        return c;
    for (size_t i = 0; i < BH_LIMIT_CALLERS; i++) {
        c = &l->callers[i];
        if (!c->key[0] || (may_go(c, now_ms) && (!oldest || c->heard_ms < oldest->heard_ms))) {
            oldest = c;
            if (!c->key[0])
                break;
        }
    }
    if (!oldest)
        return NULL;
    *oldest = (struct bh_limit_caller){.heard_ms = now_ms, .milli = (uint64_t)l->limits.burst * 1000};
    (void)snprintf(oldest->key, sizeof(oldest->key), "%s", key);
    return oldest;
}

bool bh_limit_request(struct bh_limit *l, struct bh_limit_caller *c, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    const uint64_t full = (uint64_t)l->limits.burst * 1000, rate = l->limits.per_second;
    /* A clock that went back gives nothing and takes nothing. */
    const uint64_t passed = now_ms > c->heard_ms ? now_ms - c->heard_ms : 0;
    c->heard_ms = now_ms;
    c->milli = passed > full / rate || c->milli + passed * rate > full ? full : c->milli + passed * rate;
    if (c->milli >= 1000) {
        c->milli -= 1000;
        return true;
    }
    *ret_wait_ms = (1000 - c->milli + rate - 1) / rate;
    return false;
}

bool bh_limit_connect(struct bh_limit *l, struct bh_limit_caller *c, bool is_root)
{
    if (!is_root &&
        (l->connections >= l->limits.connections || c->connections >= l->limits.connections_per_caller))
        return false;
    l->connections++;
    c->connections++;
    return true;
}

bool bh_limit_stream(struct bh_limit *l, struct bh_limit_caller *c)
{
    if (l->streams >= l->limits.streams || c->streams >= l->limits.streams_per_caller)
        return false;
    l->streams++;
    c->streams++;
    return true;
}

void bh_limit_disconnect(struct bh_limit *l, const char *key)
{
    struct bh_limit_caller *c = known(l, key);
    l->connections--;
    if (c) /* an entry with something open is never given away */
        c->connections--;
}

void bh_limit_stream_end(struct bh_limit *l, const char *key)
{
    struct bh_limit_caller *c = known(l, key);
    l->streams--;
    if (c)
        c->streams--;
}

bool bh_limit_auth_failed(struct bh_limit *l, struct bh_limit_caller *c, uint64_t now_ms)
{
    if (now_ms - c->failed_ms > l->limits.lockout_ms) {
        c->failures = 0;
        c->failed_ms = now_ms;
    }
    if (++c->failures < l->limits.auth_failures)
        return false;
    c->failures = 0;
    c->locked_until_ms = now_ms + l->limits.lockout_ms;
    return true;
}

bool bh_limit_is_locked(const struct bh_limit_caller *c, uint64_t now_ms)
{
    return now_ms < c->locked_until_ms;
}
