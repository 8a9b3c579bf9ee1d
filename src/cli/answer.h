/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - what the daemon answers, as rows of C.
 *
 * A shape names the fields of an object that are wanted, and where they go; what else an answer has is passed over, so that a
 * newer daemon may say more. What is missing, of another type, or cut short is a failure with a sentence: no verb sees half
 * an answer. Everything that is read lives in the caller's arena.
 */
#ifndef BH_CLI_ANSWER_H
#define BH_CLI_ANSWER_H

#include "base/arena.h"
#include "base/err.h"
#include "report/bill.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH_ANSWER_UNKNOWN UINT64_MAX /* of a number that may be null */

enum bh_answer_kind {
    BH_ANSWER_TEXT,  /* const char *; NULL where it may be null */
    BH_ANSWER_U64,   /* uint64_t */
    BH_ANSWER_BOOL,  /* bool */
    BH_ANSWER_TEXTS, /* BH_ROWS(const char *) */
    BH_ANSWER_ONE,   /* a pointer to a struct; NULL where it may be null */
    BH_ANSWER_MANY,  /* BH_ROWS of a struct */
};

#define BH_ROWS(T)   \
    struct {         \
        T const *at; \
        size_t n;    \
    }

struct bh_answer_shape;
struct bh_answer_field {
    const char *name;
    size_t at; /* in the struct */
    enum bh_answer_kind kind;
    bool maybe; /* may be null or missing */
    const struct bh_answer_shape *of;
};
struct bh_answer_shape {
    const struct bh_answer_field *fields;
    size_t n; /* at most 64 */
    size_t size;
};

/* The text is one object of that shape, and *ret (shape->size bytes) is filled. BH_SYSTEM: it is not. */
int bh_answer_read(struct bh_arena *arena, const char *text, size_t n, const struct bh_answer_shape *shape,
                   void *ret, struct bh_err *err) BH_MUST_USE;

/* ---- the answers of the API (GET /openapi.json has them all); ids are texts such as `J17` ---- */

struct bh_a_use {
    const char *tenant, *class;
    uint64_t quota_milli, max_milli; /* BH_ANSWER_UNKNOWN: none */
    uint64_t waiting, running, leases, milli, memory_mib;
};
struct bh_a_others {
    uint64_t tenants, waiting, running, leases, milli, memory_mib;
};
struct bh_a_grant {
    const char *role, *tenant;
};
struct bh_a_you {
    const char *principal;
    BH_ROWS(struct bh_a_grant) roles;
};
struct bh_a_status {
    const char *node, *version, *driver, *health;
    bool simulated;
    uint64_t now_ms, started_ms, policy_version, gpus;
    BH_ROWS(struct bh_a_use) tenants;
    const struct bh_a_others *others;
    const struct bh_a_you *you;
};
struct bh_a_tenants {
    BH_ROWS(struct bh_a_use) tenants;
    const struct bh_a_others *others;
};

struct bh_a_quota {
    const char *tenant, *model;
    uint64_t guaranteed_milli, max_milli, weight, used_milli, borrowed_milli, waiting_jobs;
    bool may_borrow;
};
struct bh_a_quotas {
    BH_ROWS(struct bh_a_quota) quotas;
};
struct bh_a_pool {
    const char *pool, *mechanism, *tier;
    bool shared;
};
struct bh_a_tenant {
    const struct bh_a_use *use;
    const struct bh_a_quota *quota;
    const char *trust, *domain, *cost_center;
    BH_ROWS(struct bh_a_pool) pools;
};

struct bh_a_check {
    const char *layer, *state, *sentence, *mend;
};
struct bh_a_doctor {
    const char *health;
    BH_ROWS(struct bh_a_check) checks;
};

struct bh_a_slice {
    const char *kind, *key, *state, *lease, *tenant, *why;
    uint64_t milli, memory_mib, since_ms;
};
struct bh_a_gpu_others {
    uint64_t slices, milli, memory_mib;
};
struct bh_a_gpu {
    uint64_t index, memory_mib, used_mib, util_percent, temperature_c, power_mw;
    const char *uuid, *model, *pci, *pool, *state, *reason, *health, *layout;
    const char *vbios, *gsp, *inforom;
    BH_ROWS(struct bh_a_slice) slices;
    const struct bh_a_gpu_others *others;
};
struct bh_a_switch {
    const char *pci, *firmware;
};
struct bh_a_gpus {
    BH_ROWS(struct bh_a_gpu) gpus;
    BH_ROWS(struct bh_a_switch) switches;
    uint64_t others;
};

struct bh_a_live {
    const char *state;
    uint64_t compute_ppm, memory_mib, refused;
};
struct bh_a_lease {
    const char *id, *job, *tenant, *user, *pool, *state, *cause, *why, *mechanism, *stack, *tier;
    bool paused;
    uint64_t created_ms, state_ms, until_ms;
    const struct bh_a_live *live;
};
struct bh_a_leases {
    BH_ROWS(struct bh_a_lease) leases;
    const char *next;
    uint64_t others;
};
struct bh_a_granted {
    const char *gpu, *kind, *key;
    uint64_t milli, memory_mib;
    bool proved_clean;
};
struct bh_a_step {
    uint64_t at_ms;
    const char *from, *to, *cause, *why;
};
struct bh_a_scrub {
    uint64_t at_ms, probed_bytes, total_bytes;
    const char *gpu, *verdict, *method, *words;
};
struct bh_a_lease_detail {
    const struct bh_a_lease *lease;
    const char *stays_shared; /* parts with `; ` between them */
    BH_ROWS(struct bh_a_granted) slices;
    BH_ROWS(struct bh_a_step) history;
    BH_ROWS(struct bh_a_scrub) scrubs;
};

struct bh_a_job {
    const char *id, *tenant, *user, *name, *pool, *state, *why, *end, *profile, *tier, *priority;
    uint64_t status, signal; /* BH_ANSWER_UNKNOWN: it did not end so */
    uint64_t gpus, milli, memory_mib, duration_ms, deadline_ms, submit_ms, state_ms;
    bool can_pause, can_suspend, can_requeue, firm;
};
struct bh_a_jobs {
    BH_ROWS(struct bh_a_job) jobs;
    const char *next;
    uint64_t others;
};
struct bh_a_job_detail {
    const struct bh_a_job *job;
    BH_ROWS(const char *) argv;
    const char *cwd, *image;
    BH_ROWS(struct bh_a_lease) leases;
};

struct bh_a_holder {
    const char *job, *tenant;
    uint64_t milli, end_ms;
};
struct bh_a_why_others {
    uint64_t jobs, milli;
};
struct bh_a_remedy {
    const char *kind, *sentence, *tenant;
    bool touches_others;
    uint64_t milli, at_ms;
};
struct bh_a_why {
    const char *tier, *sentence;
    bool starts;
    uint64_t need_milli, free_milli, ahead, until_ms;
    BH_ROWS(struct bh_a_holder) holders;
    const struct bh_a_why_others *others;
    BH_ROWS(struct bh_a_remedy) remedies;
};

struct bh_a_policy {
    uint64_t version, at_ms;
    const char *sha256, *who, *why, *text;
};
struct bh_a_change {
    const char *tenant, *what, *before, *after, *effect;
};
struct bh_a_diff {
    uint64_t version, errors;
    BH_ROWS(struct bh_a_change) changes;
    BH_ROWS(const char *) findings;
};

struct bh_a_card_use {
    const char *gpu;
    uint64_t index, memory_mib, milli_ms, stranded_milli_ms, stranded_mib_ms;
};
struct bh_a_usage {
    uint64_t from_ms, to_ms;
    uint64_t
        complete_from_ms; /* what was over before may have been dropped; BH_ANSWER_UNKNOWN: nothing was */
    BH_ROWS(struct bh_bill_line) usage;
    const struct bh_bill_prices *prices;
    BH_ROWS(struct bh_a_card_use) cards;
};
struct bh_a_usage_record {
    uint64_t seq, milli, mib, from_ms, to_ms;
    const char *tenant, *cost_center, *user, *job, *lease, *gpu, *kind, *key, *mechanism;
    bool lost;
};
struct bh_a_usage_records {
    BH_ROWS(struct bh_a_usage_record) records;
    uint64_t next;
};

struct bh_a_record {
    uint64_t at_ms;
    const char *event, *outcome, *who, *object_id, *reason;
};
struct bh_a_records {
    BH_ROWS(struct bh_a_record) records;
};

struct bh_a_token {
    const char *id, *subject, *role, *tenant;
    uint64_t created_ms, expires_ms, revoked_ms;
};
struct bh_a_tokens {
    BH_ROWS(struct bh_a_token) tokens;
};

/* Of commands: what was made or touched. */
struct bh_a_made {
    const char *id;
};
struct bh_a_token_made {
    const char *id, *token;
};
struct bh_a_applied {
    uint64_t version;
};

extern const struct bh_answer_shape bh_a_status_shape, bh_a_tenants_shape, bh_a_tenant_shape,
    bh_a_quotas_shape, bh_a_doctor_shape, bh_a_gpus_shape, bh_a_gpu_shape, bh_a_leases_shape,
    bh_a_lease_detail_shape, bh_a_jobs_shape, bh_a_job_detail_shape, bh_a_why_shape, bh_a_policy_shape,
    bh_a_diff_shape, bh_a_usage_shape, bh_a_usage_records_shape, bh_a_records_shape, bh_a_tokens_shape,
    bh_a_made_shape, bh_a_token_made_shape, bh_a_applied_shape;

#endif
