/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_record.h - what an audit record says, and the bytes that are hashed for it.
 *
 * The bytes are JSON in the one form of RFC 8785 (keys in order, no blanks, one way to write each string). A binary
 * form would be shorter; but this one is its own export: an auditor checks a line with any language's SHA-256 and
 * reads it with their eyes, and no second form exists that could say something else. Whole numbers past 2^53 are
 * strings, as RFC 8785 asks. A field that is empty is left out. Bytes that are not UTF-8 become U+FFFD; a text
 * longer than BH_AUDIT_TEXT_MAX is cut and ends in an ellipsis.
 *
 *   hash_i  = SHA-256(0x00, length of body_i as 8 bytes (high first), body_i)
 *   chain_i = SHA-256(0x01, chain_(i-1), hash_i);  chain_0 is 32 zero bytes
 *
 * hash_i is also RFC 6962's leaf hash of (length, body_i), so the Merkle tree stands on the same hashes. body_i
 * holds chain_(i-1) as `prev`.
 *
 * No secret and nobody's data belongs into a record: name a document by its hash.
 */
#ifndef BH_STORE_AUDIT_RECORD_H
#define BH_STORE_AUDIT_RECORD_H

#include "base/arena.h"
#include "store/audit_crypto.h"

enum bh_audit_kind {
#define BH_AUDIT_EVENT(id, name) BH_AUDIT_##id,
#include "store/audit_events.def"
#undef BH_AUDIT_EVENT
    BH_AUDIT_EVENTS
};
extern const char *const bh_audit_names[BH_AUDIT_EVENTS];
/* The number of an event, or BH_AUDIT_EVENTS. */
enum bh_audit_kind bh_audit_kind_find(const char *name);
/* May a policy leave the event's class out? */
bool bh_audit_is_optional(enum bh_audit_kind kind);

enum bh_audit_outcome { BH_AUDIT_SUCCESS, BH_AUDIT_FAILURE, BH_AUDIT_DENIED, BH_AUDIT_OUTCOMES };
extern const char *const bh_audit_outcomes[BH_AUDIT_OUTCOMES];

enum { BH_AUDIT_TEXT_MAX = 4096, BH_AUDIT_RULES_MAX = 64, BH_AUDIT_BODY_MAX = 1 << 18 };

/* What the caller knows. Zeroed: nothing; every text may be NULL. */
struct bh_audit_event {
    enum bh_audit_kind event;
    enum bh_audit_outcome outcome;
    const char *sub;     /* who: `user:ada`, `service:bulkheadd` */
    const char *idp;     /* who says so: `unix`, `token`, an issuer */
    const char *authn;   /* how: `peercred`, `bearer`, `mtls` */
    const char *session; /* token or connection; never a secret */
    bool has_uid;
    uint32_t uid;
    const char *tenant;
    const char *action;                  /* as it was asked for: `POST /v1/jobs`, the command */
    const char *object_type, *object_id; /* `lease` `L17`, `gpu` `GPU-...`, `policy` ... */
    const char *before, *after;          /* states or hashes */
    const char *reason;
    const char *request_id, *policy_version, *src_addr;
    const char *const *rule_ids;
    size_t n_rule_ids;
};

struct bh_audit_record {
    struct bh_audit_event is;
    uint64_t seq;     /* from 1, without a gap */
    int64_t utc_ns;   /* since 1970; microseconds and below are as the clock gave them */
    uint64_t mono_ns; /* since boot */
    const char *boot_id, *host, *component, *version;
    const char *signature; /* of a key record: see audit_note.h */
    struct bh_hash prev;   /* chain_(seq - 1) */
};

/* BH_TOO_LARGE, BH_INVALID (an instant before 1970 or after 9999, a seq past 2^53). */
int bh_audit_encode(const struct bh_audit_record *r, struct bh_buf *out, struct bh_err *err) BH_MUST_USE;
/* The texts go into the arena. Anything but the exact bytes that bh_audit_encode writes is BH_INVALID. */
int bh_audit_decode(const char *body, size_t n, struct bh_arena *arena, struct bh_audit_record *ret,
                    struct bh_err *err) BH_MUST_USE;

void bh_audit_hash(const char *body, size_t n, struct bh_hash *ret);
void bh_audit_chain(const struct bh_hash *prev, const struct bh_hash *hash, struct bh_hash *ret);

/* `2026-08-01T12:00:00.000000001Z`; buf of BH_AUDIT_TIME_MAX bytes. False: outside 1970 to 9999. */
enum { BH_AUDIT_TIME_MAX = 40 };
bool bh_audit_time_format(int64_t utc_ns, char buf[BH_AUDIT_TIME_MAX]);
bool bh_audit_time_parse(const char *s, int64_t *ret_utc_ns);
/* s as a record keeps it: UTF-8, at most BH_AUDIT_TEXT_MAX bytes; and that as an RFC 8785 string, with its quotes. */
void bh_audit_clean(struct bh_buf *out, const char *s);
void bh_audit_quote(struct bh_buf *out, const char *s);

#endif
