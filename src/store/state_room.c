/* SPDX-License-Identifier: Apache-2.0 */
/* state_room.c - numbers that the schema keeps as jobs come and end. */
#include "store/state_room.h"

#include "store/state_inside.h"

#include <inttypes.h>

int bh_store_load_get(struct bh_store *s, const char *tenant, const char *user, struct bh_store_load *ret,
                      struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "SELECT coalesce(sum(iif(tenant = ?1 AND user = ?2, waiting, 0)), 0),"
                        " coalesce(sum(iif(tenant = ?1, waiting, 0)), 0), coalesce(sum(waiting), 0),"
                        " coalesce(sum(iif(tenant = ?1, bytes, 0)), 0) FROM job_loads",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, tenant);
    bh_sql_text(&q, 2, user);
    rc = bh_state_first(&q, err, "the load of '%s'", tenant);
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_load){.user_waiting = bh_sql_col_uint(&q, 0),
                                  .tenant_waiting = bh_sql_col_uint(&q, 1),
                                  .waiting = bh_sql_col_uint(&q, 2),
                                  .tenant_bytes = bh_sql_col_uint(&q, 3)};
    bh_sql_done(&q);
    return 0;
}

static int read_remain(struct bh_sql *q, struct bh_arena *arena, struct bh_store_remain *ret,
                       struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_remain){.job = bh_sql_col_uint(q, 0),
                                    .tenant = bh_sql_col_text(q, 1, arena),
                                    .ended_ms = bh_sql_col_uint(q, 2),
                                    .bytes = bh_sql_col_uint(q, 3)};
    return 0;
}

int bh_store_remains_new(struct bh_store *s, struct bh_arena *arena, uint32_t limit, bh_store_remains *ret,
                         struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s, "SELECT job, tenant, ended_ms, 0 FROM job_remains WHERE bytes IS NULL ORDER BY job LIMIT ?1", &q,
        err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, limit);
    bh_state_rows(&q, arena, ret, read_remain, rc, err);
    return rc;
}

int bh_store_remain_measure(struct bh_store *s, uint64_t job, uint64_t output_bytes, struct bh_err *err)
{
    struct bh_sql q;
    const int rc =
        bh_sql_get(s,
                   "UPDATE job_remains SET bytes = ?2 + (SELECT length(argv) + length(env) FROM jobs"
                   " WHERE id = ?1) WHERE job = ?1",
                   &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, job);
    bh_sql_uint(&q, 2, output_bytes);
    return bh_state_one(&q, err, "job J%" PRIu64 " that has ended", job);
}

int bh_store_remains_of_tenants(struct bh_store *s, struct bh_arena *arena, bh_store_remains *ret,
                                struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s,
        "SELECT coalesce((SELECT job FROM job_remains r WHERE r.tenant = t.tenant AND pruned_ms = 0"
        " AND bytes IS NOT NULL ORDER BY ended_ms, job LIMIT 1), 0), tenant,"
        " coalesce((SELECT min(ended_ms) FROM job_remains r WHERE r.tenant = t.tenant AND pruned_ms = 0"
        " AND bytes IS NOT NULL), 0), bytes FROM tenant_remains t",
        &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_remain, rc, err);
    return rc;
}

int bh_store_remains_oldest(struct bh_store *s, struct bh_arena *arena, const char *tenant, uint32_t limit,
                            bh_store_remains *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s,
        "SELECT job, tenant, ended_ms, bytes FROM job_remains r WHERE tenant = ?1 AND pruned_ms = 0"
        " AND bytes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.job = r.job"
        " AND l.state NOT IN ('refused', 'released', 'quarantined'))"
        " ORDER BY ended_ms, job LIMIT ?2",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, tenant);
    bh_sql_uint(&q, 2, limit);
    bh_state_rows(&q, arena, ret, read_remain, rc, err);
    return rc;
}

int bh_store_remain_prune(struct bh_store *s, uint64_t job, uint64_t at_ms, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "UPDATE job_remains SET pruned_ms = ?2 WHERE job = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, job);
    /* 0 says that it was not. */
    bh_sql_uint(&q, 2, at_ms ? at_ms : 1);
    rc = bh_state_one(&q, err, "job J%" PRIu64 " that has ended", job);
    if (rc == 0)
        rc = bh_sql_get(s, "UPDATE jobs SET argv = x'', env = x'' WHERE id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, job);
    return bh_state_one(&q, err, "job J%" PRIu64, job);
}

int bh_store_remain_pruned(struct bh_store *s, uint64_t job, uint64_t *ret_ms, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT pruned_ms FROM job_remains WHERE job = ?1", &q, err);
    *ret_ms = 0;
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, job);
    rc = bh_sql_step(&q, err);
    if (rc <= 0)
        return rc;
    *ret_ms = bh_sql_col_uint(&q, 0);
    bh_sql_done(&q);
    return 0;
}
