/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle.h - the handlers that the table of routes names, and the structs that their queries and bodies are read into.
 *
 * A handler of something that has a tenant asks bh_api_sees() before it shows it and bh_api_check() before it touches
 * it; what it may not show counts in `others`.
 */
#ifndef BH_API_HANDLE_H
#define BH_API_HANDLE_H

#include "api/inside.h"
#include "store/state_job.h"
#include "store/state_lease.h"

struct bh_q_list {
    const char *tenant, *user, *state;
    uint64_t job, after, limit;
    bool newest, live;
};
struct bh_q_log {
    const char *stream;
    uint64_t offset, limit, wait_ms, lease;
};
struct bh_q_usage {
    const char *tenant, *by;
    uint64_t from_ms, to_ms, after, limit;
};
struct bh_q_audit {
    const char *tenant;
    uint64_t after, limit;
    bool newest, bodies;
};
struct bh_q_version {
    uint64_t version;
};
struct bh_b_reason {
    const char *reason;
};
struct bh_b_policy {
    const char *text, *reason;
    uint64_t version;
};
struct bh_b_change {
    const char *kind, *tenant, *model;
    uint64_t job, gpus_milli, count;
};
struct bh_b_whatif {
    uint64_t job;
    void *submit; /* struct bh_api_submit */
    struct bh_api_objects changes;
};
struct bh_b_token {
    const char *subject, *role, *tenant;
    uint64_t ttl_ms;
};
struct bh_b_backup {
    const char *name;
};

enum { BH_API_LIST_MAX = 1000, BH_API_LOG_MAX = 1 << 20, BH_API_WAIT_MAX_MS = 30000 };

#define BH_HANDLER(name) int name(struct bh_api_core *core, struct bh_api_req *q)
BH_HANDLER(bh_h_openapi);
BH_HANDLER(bh_h_status);
BH_HANDLER(bh_h_tenants);
BH_HANDLER(bh_h_tenant);
BH_HANDLER(bh_h_quota);
BH_HANDLER(bh_h_health);
BH_HANDLER(bh_h_doctor);
BH_HANDLER(bh_h_fleet);
BH_HANDLER(bh_h_gpus);
BH_HANDLER(bh_h_gpu);
BH_HANDLER(bh_h_gpu_order);
BH_HANDLER(bh_h_leases);
BH_HANDLER(bh_h_lease);
BH_HANDLER(bh_h_lease_order);
BH_HANDLER(bh_h_jobs);
BH_HANDLER(bh_h_job);
BH_HANDLER(bh_h_submit);
BH_HANDLER(bh_h_cancel);
BH_HANDLER(bh_h_log);
BH_HANDLER(bh_h_why);
BH_HANDLER(bh_h_whatif);
BH_HANDLER(bh_h_policy);
BH_HANDLER(bh_h_policy_diff);
BH_HANDLER(bh_h_policy_apply);
BH_HANDLER(bh_h_usage);
BH_HANDLER(bh_h_usage_records);
void bh_api_forget_recent(struct bh_api_recent *r);
BH_HANDLER(bh_h_audit);
BH_HANDLER(bh_h_checkpoint);
BH_HANDLER(bh_h_checkpoint_make);
BH_HANDLER(bh_h_rotate);
BH_HANDLER(bh_h_tokens);
BH_HANDLER(bh_h_token_make);
BH_HANDLER(bh_h_token_revoke);
BH_HANDLER(bh_h_backup);
BH_HANDLER(bh_h_events);
BH_HANDLER(bh_h_metrics);

/* ---- shared by some ---- */

/* The job or lease of the path, if the caller may see it: else the words of one that is not there. */
int bh_h_job_get(struct bh_api_core *core, struct bh_api_req *q, struct bh_store_job *ret) BH_MUST_USE;
int bh_h_lease_get(struct bh_api_core *core, struct bh_api_req *q, struct bh_store_lease *ret) BH_MUST_USE;
/* May the caller submit this, and could anybody? Fills in as whom it runs. */
int bh_h_submit_check(struct bh_api_core *core, struct bh_api_req *q, struct bh_api_submit *s) BH_MUST_USE;
int bh_h_lease_json(struct bh_api_req *q, const struct bh_api_core *core, const struct bh_store_lease *l,
                    struct bh_err *err) BH_MUST_USE;
/* What was worked out on why a job waits, as the answer; or the failure. */
int bh_h_why_show(struct bh_api_req *q, int rc, const struct bh_api_why *w, const struct bh_err *err);
/* A bill that was made elsewhere, as the answer; or the failure. And where who asked is gone. */
int bh_h_usage_show(struct bh_api_core *core, struct bh_api_req *q, int rc, struct bh_store_bill *bill,
                    uint64_t took_ms, const struct bh_err *err);
void bh_h_usage_gone(struct bh_api_core *core, struct bh_api_req *q);
/* What a mechanism behind a tier leaves shared, as one text; never empty. */
const char *bh_h_stays_shared(struct bh_arena *arena, uint8_t mechanism, uint8_t tier);

#endif
