/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.c - everything the API does, as one table; and what its answers look like, as another.
 *
 * Who is served, what is documented and what is tested for every role all follow this table: a route that is not in it does
 * not exist. Routes of one path stand together.
 */
#include "api/handle.h"
#include "api/shapes.h"

#define OP   BH_ROLE_BIT(OPERATOR)
#define TA   BH_ROLE_BIT(TENANT_ADMIN)
#define TU   BH_ROLE_BIT(TENANT_USER)
#define AU   BH_ROLE_BIT(AUDITOR)
#define VI   BH_ROLE_BIT(VIEWER)
#define ANY  (OP | TA | TU | AU | VI)
#define WORK (OP | TA | TU) /* a user of a tenant: on what is his own */

const struct bh_api_route bh_api_routes[] = {
    {"GET", "/openapi.json", "node", 0, .answer = "Document", .summary = "this document",
     .handle = bh_h_openapi},
    {"GET", "/v1/status", "node", ANY, .answer = "Status",
     .summary = "the node at a glance, and who is asking", .handle = bh_h_status},
    {"GET", "/v1/health", "node", ANY, .answer = "Health", .summary = "one word", .handle = bh_h_health},
    {"GET", "/v1/doctor", "node", OP | AU | VI, true, .answer = "Doctor",
     .summary = "every layer: what is wrong and how to mend it", .handle = bh_h_doctor},
    {"GET", "/v1/fleet", "node", OP | AU | VI, true, .type = "application/yaml",
     .summary = "this node as a fleet file", .handle = bh_h_fleet},
    {"GET", "/metrics", "node", ANY, .type = "text/plain; version=0.0.4; charset=utf-8",
     .summary = "numbers for Prometheus, as OpenMetrics where that is accepted; a tenant's are its own",
     .handle = bh_h_metrics},
    {"GET", "/v1/events", "node", ANY, .type = "text/event-stream",
     .summary = "what changes, as it does (Server-Sent Events)", .handle = bh_h_events},
    {"GET", "/v1/tenants", "tenants", ANY, .answer = "Tenants", .summary = "tenants and what they have",
     .handle = bh_h_tenants},
    {"GET", "/v1/tenants/{name}", "tenants", ANY, .answer = "TenantDetail", .summary = "one tenant",
     .handle = bh_h_tenant},
    {"GET", "/v1/quota", "tenants", ANY, .answer = "Quotas", .summary = "what tenants were promised and have",
     .handle = bh_h_quota},
    {"GET", "/v1/usage", "tenants", ANY, .query = &bh_shape_usage, .answer = "Usage",
     .summary = "who had what, in a time", .handle = bh_h_usage},
    {"GET", "/v1/usage/records", "tenants", ANY, .query = &bh_shape_records, .answer = "UsageRecords",
     .summary = "the intervals of which usage is the sum", .handle = bh_h_usage_records},
    {"GET", "/v1/gpus", "gpus", ANY, .answer = "Gpus", .summary = "cards and their slices",
     .handle = bh_h_gpus},
    {"GET", "/v1/gpus/{id}", "gpus", ANY, .answer = "Gpu", .summary = "one card, by index or uuid",
     .handle = bh_h_gpu},
    {"POST", "/v1/gpus/{id}/cordon", "gpus", OP, true, .body = &bh_shape_reason, .answer = "Done",
     .summary = "give nothing of it away any more", .handle = bh_h_gpu_order},
    {"POST", "/v1/gpus/{id}/uncordon", "gpus", OP, true, .body = &bh_shape_reason, .answer = "Done",
     .summary = "give it away again", .handle = bh_h_gpu_order},
    {"POST", "/v1/gpus/{id}/drain", "gpus", OP, true, .body = &bh_shape_reason, .answer = "Done",
     .summary = "cordon it, and have what runs there leave", .handle = bh_h_gpu_order},
    {"GET", "/v1/leases", "leases", ANY, .query = &bh_shape_leases, .answer = "Leases", .summary = "leases",
     .handle = bh_h_leases},
    {"GET", "/v1/leases/{id}", "leases", ANY, .answer = "LeaseDetail",
     .summary = "one lease, what it was given, and its history", .handle = bh_h_lease},
    {"POST", "/v1/leases/{id}/pause", "leases", WORK, .body = &bh_shape_reason, .answer = "Done",
     .summary = "halt it where it is", .handle = bh_h_lease_order},
    {"POST", "/v1/leases/{id}/resume", "leases", WORK, .body = &bh_shape_reason, .answer = "Done",
     .summary = "let it go on", .handle = bh_h_lease_order},
    {"POST", "/v1/leases/{id}/suspend", "leases", WORK, .body = &bh_shape_reason, .answer = "Done",
     .summary = "move it to host memory", .handle = bh_h_lease_order},
    {"POST", "/v1/leases/{id}/end", "leases", WORK, .body = &bh_shape_reason, .answer = "Done",
     .summary = "end it", .handle = bh_h_lease_order},
    {"GET", "/v1/jobs", "jobs", ANY, .query = &bh_shape_jobs, .answer = "Jobs", .summary = "jobs",
     .handle = bh_h_jobs},
    {"POST", "/v1/jobs", "jobs", WORK, .makes = true, .body = &bh_shape_submit, .answer = "Made",
     .summary = "submit a job; with a header Idempotency-Key it is submitted once however often it is sent",
     .handle = bh_h_submit},
    {"GET", "/v1/jobs/{id}", "jobs", ANY, .answer = "JobDetail", .summary = "one job and its attempts",
     .handle = bh_h_job},
    {"POST", "/v1/jobs/{id}/cancel", "jobs", WORK, .body = &bh_shape_reason, .answer = "Done",
     .summary = "it is wanted no more", .handle = bh_h_cancel},
    {"GET", "/v1/jobs/{id}/logs", "jobs", WORK, .query = &bh_shape_log, .type = "application/octet-stream",
     .summary =
         "what it wrote; headers Bulkhead-Next-Offset and Bulkhead-Ended say how to go on, Bulkhead-Dropped what is no longer there",
     .handle = bh_h_log},
    {"GET", "/v1/jobs/{id}/why", "jobs", ANY, .answer = "Why",
     .summary = "why it waits, and what would start it", .handle = bh_h_why},
    {"POST", "/v1/what-if", "jobs", WORK, .body = &bh_shape_whatif, .answer = "Why",
     .summary = "would it start, if", .handle = bh_h_whatif},
    {"GET", "/v1/policy", "policy", OP | AU | VI, true, .query = &bh_shape_version, .answer = "Policy",
     .summary = "the policy in force, or an earlier one", .handle = bh_h_policy},
    {"POST", "/v1/policy/diff", "policy", OP, true, .body = &bh_shape_policy, .answer = "PolicyDiff",
     .summary = "what it would change, for whom", .handle = bh_h_policy_diff},
    {"POST", "/v1/policy/apply", "policy", OP, true, .body = &bh_shape_apply, .answer = "Applied",
     .summary = "put it in force", .handle = bh_h_policy_apply},
    {"GET", "/v1/audit", "audit", OP | AU | TA, .query = &bh_shape_audit, .answer = "Audit",
     .summary = "records of the audit log", .handle = bh_h_audit},
    {"GET", "/v1/audit/checkpoint", "audit", OP | AU, true, .answer = "Checkpoint",
     .summary = "the newest signed checkpoint", .handle = bh_h_checkpoint},
    {"POST", "/v1/audit/checkpoint", "audit", OP, true, .answer = "CheckpointMade",
     .summary = "sign what there is now", .handle = bh_h_checkpoint_make},
    {"POST", "/v1/audit/rotate", "audit", OP, true, .body = &bh_shape_reason, .answer = "Done",
     .summary = "a new key for the log, vouched for by the one before", .handle = bh_h_rotate},
    {"GET", "/v1/tokens", "tokens", ANY, .answer = "Tokens",
     .summary = "one's own tokens; an operator's are all", .handle = bh_h_tokens},
    {"POST", "/v1/tokens", "tokens", ANY, .makes = true, .body = &bh_shape_token, .answer = "TokenMade",
     .summary = "a new token, shown this once", .handle = bh_h_token_make},
    {"DELETE", "/v1/tokens/{id}", "tokens", ANY, .answer = "Done", .summary = "revoke it",
     .handle = bh_h_token_revoke},
    {"POST", "/v1/backup", "node", OP, true, .body = &bh_shape_backup, .answer = "Done",
     .summary = "a copy of the state, below the state's backups", .handle = bh_h_backup},
};
const size_t bh_api_route_count = BH_COUNT_OF(bh_api_routes);

#define USE "waiting:int running:int leases:int milli:int memory_mib:int"

/* `name:type`; a type is text, int, bool, id, a schema, or a list [..] of one; `?`: or null; `name~`: may be missing. */
const struct bh_api_schema bh_api_schemas[] = {
    {"Document", NULL},
    {"Problem", "error:Error"},
    {"Error", "code:text message:text needed~:text had~:text next~:text"},
    {"Done", "id:text"},
    {"Made", "id:id?"},
    {"Applied", "version:int"},
    {"CheckpointMade", "size:int"},
    {"TokenMade", "id:id token:text"},
    {"Status",
     "node:text version:text driver:text? simulated:bool now_ms:int started_ms:int policy_version:int "
     "health:text gpus:int tenants:[TenantUse] others:Others? you:You"},
    {"You", "principal:text roles:[Grant]"},
    {"Grant", "role:text tenant:text?"},
    {"Others", "tenants:int " USE},
    {"TenantUse", "tenant:text class:text? quota_milli:int? max_milli:int? " USE},
    {"Tenants", "tenants:[TenantUse] others:Others?"},
    {"TenantDetail", "use:TenantUse quota:Quota trust:text domain:text? cost_center:text? pools:[PoolUse]"},
    {"PoolUse", "pool:text mechanism:text tier:text shared:bool stays_shared:text"},
    {"Quota", "tenant:text model:text? guaranteed_milli:int? max_milli:int? weight:int may_borrow:bool "
              "used_milli:int borrowed_milli:int waiting_jobs:int"},
    {"Quotas", "quotas:[Quota]"},
    {"Health", "health:text"},
    {"Doctor", "health:text checks:[DoctorCheck]"},
    {"DoctorCheck", "layer:text state:text sentence:text mend:text?"},
    {"Gpus", "gpus:[Gpu] switches:[Switch] others:int?"},
    {"Switch", "pci:text firmware:text?"},
    {"Gpu",
     "index:int uuid:text? model:text? pci:text? pool:text? state:text reason:text? health:text? layout:text? "
     "vbios:text? gsp:text? inforom:text? "
     "numa:int? fabric:text? memory_mib:int used_mib:int? util_percent:int? temperature_c:int? power_mw:int? "
     "slices:[Slice] "
     "others:GpuOthers?"},
    {"GpuOthers", "slices:int milli:int memory_mib:int"},
    {"Slice",
     "kind:text key:text? state:text milli:int memory_mib:int lease:id? tenant:text? since_ms:int why:text?"},
    {"Leases", "leases:[Lease] next:id? others:int?"},
    {"Lease",
     "id:id job:id tenant:text user:text pool:text? state:text cause:text? why:text? mechanism:text "
     "stack:text? tier:text gpus:[text] milli:int memory_mib:int paused:bool created_ms:int state_ms:int until_ms:int? live:Live?"},
    {"Live", "state:text compute_ppm:int memory_mib:int refused:int"},
    {"LeaseDetail", "lease:Lease stays_shared:text slices:[Granted] history:[Step] scrubs:[Scrub]"},
    {"Granted", "gpu:text kind:text key:text? milli:int memory_mib:int proved_clean:bool"},
    {"Step", "at_ms:int from:text? to:text cause:text? why:text?"},
    {"Scrub", "at_ms:int gpu:text verdict:text method:text? probed_bytes:int total_bytes:int words:text?"},
    {"Jobs", "jobs:[Job] next:id? others:int?"},
    {"Job",
     "id:id tenant:text user:text name:text? pool:text? state:text why:text? end:text? status:int? signal:int? "
     "gpus:int milli:int memory_mib:int profile:text? tier:text priority:text can_pause:bool can_suspend:bool "
     "can_requeue:bool firm:bool order:int duration_ms:int? deadline_ms:int? submit_ms:int state_ms:int"},
    {"JobDetail", "job:Job argv:[text] cwd:text? image:text? leases:[Lease]"},
    {"Why", "tier:text? sentence:text? starts:bool need_milli:int free_milli:int ahead:int until_ms:int? "
            "holders:[Holder] others:WhyOthers remedies:[Remedy]"},
    {"Holder", "job:id tenant:text milli:int end_ms:int?"},
    {"WhyOthers", "jobs:int milli:int"},
    {"Remedy", "kind:text sentence:text tenant:text? touches_others:bool milli:int at_ms:int?"},
    {"Policy", "version:int active:bool sha256:text who:text? why:text? at_ms:int text:text"},
    {"PolicyDiff", "version:int errors:int changes:[PolicyChange] findings:[text]"},
    {"PolicyChange", "tenant:text? what:text before:text? after:text? effect:text?"},
    {"Usage", "from_ms:int to_ms:int complete_from_ms:int? usage:[UsageRow] prices:Prices? cards:[CardUse]"},
    {"UsageRow",
     "tenant:text cost_center:text? user:text? gpu:text? mechanism:text first_ms:int milli_ms:int "
     "mib_ms:int lost_milli_ms:int leases:int"},
    {"Prices", "currency:text? gpu_hour_micro:int memory_gib_hour_micro:int"},
    {"CardUse", "gpu:text index:int memory_mib:int milli_ms:int stranded_milli_ms:int stranded_mib_ms:int"},
    {"UsageRecords", "records:[UsageRecord] next:int?"},
    {"UsageRecord",
     "seq:int tenant:text cost_center:text? user:text job:id lease:id gpu:text kind:text key:text? mechanism:text "
     "milli:int mib:int from_ms:int to_ms:int? lost:bool"},
    {"Audit", "records:[AuditRecord] next:int?"},
    {"AuditRecord",
     "seq:int at_ms:int event:text outcome:text who:text? tenant:text? action:text? object_type:text? "
     "object_id:text? before:text? after:text? reason:text? rules:[text] hash:text body~:text"},
    {"Checkpoint", "size:int note:text"},
    {"Tokens", "tokens:[Token]"},
    {"Token", "id:id subject:text role:text tenant:text? created_ms:int expires_ms:int? revoked_ms:int?"},
};
const size_t bh_api_schema_count = BH_COUNT_OF(bh_api_schemas);
