/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - the tables of what callers send. Amounts are whole numbers with their unit in the name. */
#include "api/shapes.h"

#include "api/handle.h"

enum {
    TEXT_MAX = 256,
    PATH_MAX_BYTES = 4095,
    ARGUMENT_MAX = 65536,
    GPUS_MAX = 4096,
    CHANGES_MAX = 16,
    ORDER_MAX = 1000000,
};
#define TIME_MAX_MS UINT64_C(253402300799999) /* the end of the year 9999 */
#define MEMORY_MAX  UINT64_C(1 << 30)         /* MiB */
#define TTL_MAX_MS  (UINT64_C(366) * 86400 * 1000)
#define POLICY_MAX  (UINT64_C(768) * 1024)

static const char *const job_states[] = {"waiting", "running", "ended"};
static const struct bh_words job_state_words = {job_states, BH_COUNT_OF(job_states)};
static const char *const streams[] = {"out", "err"};
static const struct bh_words stream_words = {streams, BH_COUNT_OF(streams)};
static const char *const usage_bys[] = {"tenant", "user", "gpu"}; /* enum bh_store_usage_by */
static const struct bh_words usage_by_words = {usage_bys, BH_COUNT_OF(usage_bys)};
static const char *const change_kinds[] = {"end-job", "quota", "gpus"};
static const struct bh_words change_words = {change_kinds, BH_COUNT_OF(change_kinds)};

#define SHAPE(var, title, T)                     \
    const struct bh_api_shape bh_shape_##var = { \
        .name = (title), .fields = var##_fields, .n = BH_COUNT_OF(var##_fields), .size = sizeof(T)}

#define LIST_TENANT {BH_API_FIELD("tenant", NAME, struct bh_q_list, tenant), .doc = "only of this tenant"}
#define LIST_LIMIT                                                                \
    {BH_API_FIELD("limit", U64, struct bh_q_list, limit), .max = BH_API_LIST_MAX, \
     .doc = "at most so many; 0 is the default"}
#define LIST_NEWEST {BH_API_FIELD("newest", BOOL, struct bh_q_list, newest), .doc = "the highest id first"}

static const struct bh_api_field jobs_fields[] = {
    LIST_TENANT,
    {BH_API_FIELD("user", TEXT, struct bh_q_list, user), .max = TEXT_MAX, .doc = "only of this user"},
    {BH_API_FIELD("state", WORD, struct bh_q_list, state), .words = &job_state_words,
     .doc = "only in this state"},
    {BH_API_FIELD("live", BOOL, struct bh_q_list, live), .doc = "only those that have not ended"},
    {BH_API_FIELD("after", ID, struct bh_q_list, after), .letter = 'J',
     .doc = "the last id of the page before"},
    LIST_LIMIT,
    LIST_NEWEST,
};
SHAPE(jobs, "JobsQuery", struct bh_q_list);

static const struct bh_api_field leases_fields[] = {
    LIST_TENANT,
    {BH_API_FIELD("state", TEXT, struct bh_q_list, state), .max = 32,
     .doc = "only in this state; `live` is all that may hold something"},
    {BH_API_FIELD("job", ID, struct bh_q_list, job), .letter = 'J', .doc = "only of this job"},
    {BH_API_FIELD("after", ID, struct bh_q_list, after), .letter = 'L',
     .doc = "the last id of the page before"},
    LIST_LIMIT,
    LIST_NEWEST,
};
SHAPE(leases, "LeasesQuery", struct bh_q_list);

static const struct bh_api_field log_fields[] = {
    {BH_API_FIELD("stream", WORD, struct bh_q_log, stream), .words = &stream_words,
     .doc = "out (default) or err"},
    {BH_API_FIELD("offset", U64, struct bh_q_log, offset), .max = INT64_MAX / 2,
     .doc = "the first byte wanted"},
    {BH_API_FIELD("limit", U64, struct bh_q_log, limit), .max = BH_API_LOG_MAX,
     .doc = "at most so many bytes"},
    {BH_API_FIELD("wait_ms", U64, struct bh_q_log, wait_ms), .max = BH_API_WAIT_MAX_MS,
     .doc = "where nothing is there yet, wait so long for it"},
    {BH_API_FIELD("lease", ID, struct bh_q_log, lease), .letter = 'L',
     .doc = "of this attempt; else of the newest"},
};
SHAPE(log, "LogQuery", struct bh_q_log);

#define USAGE_TENANT {BH_API_FIELD("tenant", NAME, struct bh_q_usage, tenant), .doc = "only of this tenant"}
#define USAGE_FROM \
    {BH_API_FIELD("from_ms", U64, struct bh_q_usage, from_ms), .max = TIME_MAX_MS, .doc = "since 1970"}
#define USAGE_TO                                                               \
    {BH_API_FIELD("to_ms", U64, struct bh_q_usage, to_ms), .max = TIME_MAX_MS, \
     .doc = "not included; now if not given, and now at the latest"}

static const struct bh_api_field usage_fields[] = {
    USAGE_TENANT,
    USAGE_FROM,
    USAGE_TO,
    {BH_API_FIELD("by", WORD, struct bh_q_usage, by), .words = &usage_by_words,
     .doc = "rows by tenant and mechanism (default), and by user or gpu besides"},
};
SHAPE(usage, "UsageQuery", struct bh_q_usage);

static const struct bh_api_field records_fields[] = {
    USAGE_TENANT,
    USAGE_FROM,
    USAGE_TO,
    {BH_API_FIELD("after", U64, struct bh_q_usage, after), .max = INT64_MAX,
     .doc = "`next` of the page before, which may have had nothing in it"},
    {BH_API_FIELD("limit", U64, struct bh_q_usage, limit), .max = BH_API_LIST_MAX, .doc = "at most so many"},
};
SHAPE(records, "UsageRecordsQuery", struct bh_q_usage);

static const struct bh_api_field audit_fields[] = {
    {BH_API_FIELD("tenant", NAME, struct bh_q_audit, tenant), .doc = "only of this tenant"},
    {BH_API_FIELD("after", U64, struct bh_q_audit, after), .max = INT64_MAX,
     .doc = "number of the last record of the page before"},
    {BH_API_FIELD("limit", U64, struct bh_q_audit, limit), .max = BH_API_LIST_MAX, .doc = "at most so many"},
    {BH_API_FIELD("newest", BOOL, struct bh_q_audit, newest), .doc = "the newest first"},
    {BH_API_FIELD("bodies", BOOL, struct bh_q_audit, bodies),
     .doc = "each with the text that was hashed, for whoever checks it himself"},
};
SHAPE(audit, "AuditQuery", struct bh_q_audit);

static const struct bh_api_field version_fields[] = {
    {BH_API_FIELD("version", U64, struct bh_q_version, version), .max = INT64_MAX,
     .doc = "of the policy; 0 is the one in force"},
};
SHAPE(version, "PolicyQuery", struct bh_q_version);

static const struct bh_api_field reason_fields[] = {
    {BH_API_FIELD("reason", TEXT, struct bh_b_reason, reason), .max = TEXT_MAX,
     .doc = "why, for the audit log"},
};
SHAPE(reason, "Reason", struct bh_b_reason);

static const struct bh_api_field submit_fields[] = {
    {BH_API_FIELD("tenant", NAME, struct bh_api_submit, tenant), .required = true, .doc = "whose job it is"},
    {BH_API_FIELD("argv", TEXTS, struct bh_api_submit, argv), .required = true, .most = BH_API_ARGS_MAX,
     .max = ARGUMENT_MAX, .doc = "the command and its arguments"},
    {BH_API_FIELD("env", TEXTS, struct bh_api_submit, env), .most = BH_API_ENV_MAX, .max = ARGUMENT_MAX,
     .doc = "NAME=VALUE each"},
    {BH_API_FIELD("cwd", TEXT, struct bh_api_submit, cwd), .max = PATH_MAX_BYTES,
     .doc = "where it runs, absolute"},
    {BH_API_FIELD("image", TEXT, struct bh_api_submit, image), .max = PATH_MAX_BYTES,
     .doc = "root file system of a container; cdi: another engine starts it, with the lease's CDI file"},
    {BH_API_FIELD("name", TEXT, struct bh_api_submit, name), .max = 128, .doc = "for people"},
    {BH_API_FIELD("pool", NAME, struct bh_api_submit, pool), .doc = "whichever fits, if not given"},
    {BH_API_FIELD("profile", TEXT, struct bh_api_submit, profile), .max = 32, .doc = "of MIG"},
    {BH_API_FIELD("tier", WORD, struct bh_api_submit, tier), .words = &bh_words_tier,
     .doc = "the pool's, if not given"},
    {BH_API_FIELD("priority", WORD, struct bh_api_submit, priority), .words = &bh_words_priority,
     .doc = "normal, if not given"},
    {BH_API_FIELD("gpus", U64, struct bh_api_submit, gpus), .max = GPUS_MAX,
     .doc = "slices; one, if not given"},
    {BH_API_FIELD("milli", U64, struct bh_api_submit, milli), .max = 1000,
     .doc = "thousandths of a card's time for each; all of it, if not given"},
    {BH_API_FIELD("memory_mib", U64, struct bh_api_submit, memory_mib), .max = MEMORY_MAX,
     .doc = "for each; what the slice has, if not given"},
    {BH_API_FIELD("duration_ms", U64, struct bh_api_submit, duration_ms), .max = TIME_MAX_MS,
     .doc = "how long it will take at most"},
    {BH_API_FIELD("deadline_ms", U64, struct bh_api_submit, deadline_ms), .max = TIME_MAX_MS,
     .doc = "when it must be over, since 1970"},
    {BH_API_FIELD("order", I64, struct bh_api_submit, order), .max = ORDER_MAX,
     .doc = "among the tenant's own; higher is first"},
    {BH_API_FIELD("can_pause", BOOL, struct bh_api_submit, can_pause), .doc = "it may be halted where it is"},
    {BH_API_FIELD("can_suspend", BOOL, struct bh_api_submit, can_suspend),
     .doc = "it may be moved to host memory"},
    {BH_API_FIELD("can_requeue", BOOL, struct bh_api_submit, can_requeue),
     .doc = "it may be ended and started again"},
    {BH_API_FIELD("firm", BOOL, struct bh_api_submit, firm), .doc = "never interrupted"},
    {BH_API_FIELD("dry_run", BOOL, struct bh_api_submit, dry_run), .doc = "judge it, do not take it"},
};
SHAPE(submit, "Submit", struct bh_api_submit);

static const struct bh_api_field change_fields[] = {
    {BH_API_FIELD("kind", WORD, struct bh_b_change, kind), .required = true, .words = &change_words,
     .doc = "a job ends, a quota is another, there are more GPUs"},
    {BH_API_FIELD("job", ID, struct bh_b_change, job), .letter = 'J', .doc = "of end-job"},
    {BH_API_FIELD("tenant", NAME, struct bh_b_change, tenant), .doc = "of quota"},
    {BH_API_FIELD("gpus_milli", U64, struct bh_b_change, gpus_milli), .max = GPUS_MAX * 1000,
     .doc = "of quota: the new one"},
    {BH_API_FIELD("count", U64, struct bh_b_change, count), .max = GPUS_MAX, .doc = "of gpus: so many more"},
    {BH_API_FIELD("model", TEXT, struct bh_b_change, model), .max = 64,
     .doc = "of gpus: like those there are, if not given"},
};
static SHAPE(change, "Change", struct bh_b_change);

static const struct bh_api_field whatif_fields[] = {
    {BH_API_FIELD("job", ID, struct bh_b_whatif, job), .letter = 'J', .doc = "one that waits"},
    {BH_API_FIELD("submit", ONE, struct bh_b_whatif, submit), .of = &bh_shape_submit,
     .doc = "one that is thought of"},
    {BH_API_FIELD("changes", MANY, struct bh_b_whatif, changes), .most = CHANGES_MAX, .of = &bh_shape_change,
     .doc = "and if this were so"},
};
SHAPE(whatif, "WhatIf", struct bh_b_whatif);

#define POLICY_TEXT                                                                             \
    {BH_API_FIELD("text", TEXT, struct bh_b_policy, text), .required = true, .max = POLICY_MAX, \
     .doc = "the policy (YAML)"}
static const struct bh_api_field policy_fields[] = {POLICY_TEXT};
SHAPE(policy, "PolicyText", struct bh_b_policy);

static const struct bh_api_field apply_fields[] = {
    POLICY_TEXT,
    {BH_API_FIELD("version", U64, struct bh_b_policy, version), .max = INT64_MAX,
     .doc = "in force when it was looked at; refused where another is now"},
    {BH_API_FIELD("reason", TEXT, struct bh_b_policy, reason), .max = TEXT_MAX,
     .doc = "why, for the audit log"},
};
SHAPE(apply, "PolicyApply", struct bh_b_policy);

static const struct bh_api_field token_fields[] = {
    {BH_API_FIELD("subject", TEXT, struct bh_b_token, subject), .max = 128,
     .doc = "user:NAME or service:NAME; the caller, if not given"},
    {BH_API_FIELD("role", WORD, struct bh_b_token, role), .required = true, .words = &bh_words_role,
     .doc = "what it may do"},
    {BH_API_FIELD("tenant", NAME, struct bh_b_token, tenant), .doc = "of a tenant's role"},
    {BH_API_FIELD("ttl_ms", U64, struct bh_b_token, ttl_ms), .max = TTL_MAX_MS,
     .doc = "how long it holds; 90 days, if not given"},
};
SHAPE(token, "TokenNew", struct bh_b_token);

static const struct bh_api_field backup_fields[] = {
    {BH_API_FIELD("name", NAME, struct bh_b_backup, name), .required = true,
     .doc = "of the file below the state's backups"},
};
SHAPE(backup, "BackupNew", struct bh_b_backup);
