/* SPDX-License-Identifier: Apache-2.0 */
/* state_lease_read.c - leases as they are written down: one, many, what they were given, how they came there. */
#include "store/state_inside.h"
#include "store/state_lease.h"

#include <inttypes.h>

#define LEASE_COLUMNS                                                                                        \
    "SELECT id, job, tenant, user, pool, domain, mechanism, stack, tier, uid, gid, until_ms, detail, state," \
    " paused, created_ms, state_ms, cause, why FROM leases WHERE "

uint32_t bh_store_lease_live(void)
{
    uint32_t live = 0;
    for (unsigned i = 0; i < BH_LEASE_STATES; i++) {
        if (!bh_lease_is_terminal((enum bh_lease_state)i))
            live |= 1u << i;
    }
    return live;
}

static int read_lease(struct bh_sql *q, struct bh_arena *arena, struct bh_store_lease *ret,
                      struct bh_err *err)
{
    const char *word = bh_sql_col_text(q, 13, arena);
    const int state = bh_lease_state_find(word);
    if (state < 0)
        return bh_fail(err, BH_REFUSED, "the store says '%s', which is no state of a lease", word);
    *ret = (struct bh_store_lease){.id = bh_sql_col_uint(q, 0),
                                   .job = bh_sql_col_uint(q, 1),
                                   .tenant = bh_sql_col_text(q, 2, arena),
                                   .user = bh_sql_col_text(q, 3, arena),
                                   .pool = bh_sql_col_text(q, 4, arena),
                                   .domain = bh_sql_col_text(q, 5, arena),
                                   .stack = bh_sql_col_text(q, 7, arena),
                                   .uid = (uint32_t)bh_sql_col_uint(q, 9),
                                   .gid = (uint32_t)bh_sql_col_uint(q, 10),
                                   .until_ms = bh_sql_col_uint(q, 11),
                                   .detail = bh_sql_col_text(q, 12, arena),
                                   .state = (enum bh_lease_state)state,
                                   .paused = bh_sql_col_int(q, 14) != 0,
                                   .created_ms = bh_sql_col_uint(q, 15),
                                   .state_ms = bh_sql_col_uint(q, 16),
                                   .cause = bh_sql_col_text(q, 17, arena),
                                   .why = bh_sql_col_text(q, 18, arena)};
    const int rc =
        bh_state_value(&bh_words_mechanism, bh_sql_col_text(q, 6, arena), "mechanism", &ret->mechanism, err);
    return rc < 0 ? rc
                  : bh_state_value(&bh_words_tier, bh_sql_col_text(q, 8, arena), "tier", &ret->tier, err);
}

int bh_store_lease_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_lease *ret,
                       struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, LEASE_COLUMNS "id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    rc = bh_state_first(&q, err, "lease L%" PRIu64, id);
    if (rc < 0)
        return rc;
    rc = read_lease(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

/* As state_job.c has it: the words of LIVE are those of the indexes. */
#define LIVE " AND state NOT IN ('refused', 'released')"
#define OF   " AND tenant = ?3"
#define JOB  " AND job = ?4"
#define REST " AND instr(?5, ' ' || state || ' ')"
#define BOTH "(?3 IS NULL OR tenant = ?3)"
#define UP   " ORDER BY id LIMIT ?2"
#define DOWN " ORDER BY id DESC LIMIT ?2"

enum which { ALL, ALL_LIVE, TENANT, TENANT_LIVE, OF_JOB, WHICH };

#define VARIANTS(head, tail)                        \
    {                                               \
        [ALL] = head REST tail,                     \
        [ALL_LIVE] = head LIVE REST tail,           \
        [TENANT] = head OF REST tail,               \
        [TENANT_LIVE] = head OF LIVE REST tail,     \
        [OF_JOB] = head JOB " AND " BOTH REST tail, \
    }
static const char *const lists[2][WHICH] = {VARIANTS(LEASE_COLUMNS "id > ?1", UP),
                                            VARIANTS(LEASE_COLUMNS "id < ?1", DOWN)};
/* Of a job they are few; the others the schema has counted. */
#define COUNTED "SELECT coalesce(sum(n), 0) FROM lease_counts WHERE true"
static const char *const counts[WHICH] = {
    [ALL] = COUNTED REST,
    [ALL_LIVE] = COUNTED REST,
    [TENANT] = COUNTED OF REST,
    [TENANT_LIVE] = COUNTED OF REST,
    [OF_JOB] = "SELECT count(*) FROM leases WHERE true" JOB " AND " BOTH REST,
};

static const struct bh_store_lease_filter any = {0};

static enum which which(const struct bh_store_lease_filter *f)
{
    const bool live = f->states && !(f->states & ~bh_store_lease_live());
    if (f->job)
        return OF_JOB;
    if (f->tenant)
        return live ? TENANT_LIVE : TENANT;
    return live ? ALL_LIVE : ALL;
}

static void bind_filter(struct bh_sql *q, const struct bh_store_lease_filter *f, struct bh_buf *mask)
{
    for (unsigned i = 0; i < BH_LEASE_STATES; i++) {
        if (!f->states || f->states >> i & 1)
            bh_buf_printf(mask, " %s ", bh_lease_state_str((enum bh_lease_state)i));
    }
    if (f->tenant || f->job)
        bh_sql_text(q, 3, f->tenant);
    if (f->job)
        bh_sql_uint(q, 4, f->job);
    bh_sql_text(q, 5, bh_buf_text(mask));
}

int bh_store_leases_list(struct bh_store *s, struct bh_arena *arena,
                         const struct bh_store_lease_filter *filter, const struct bh_store_page *page,
                         bh_store_leases *ret, struct bh_err *err)
{
    const struct bh_store_lease_filter *f = filter ? filter : &any;
    struct bh_buf mask;
    struct bh_sql q;
    int rc = bh_sql_get(s, lists[page && page->newest][which(f)], &q, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&mask, 512);
    bh_state_page(&q, 1, 2, page);
    bind_filter(&q, f, &mask);
    bh_state_rows(&q, arena, ret, read_lease, rc, err);
    bh_buf_fini(&mask);
    return rc;
}

int bh_store_leases_count(struct bh_store *s, const struct bh_store_lease_filter *filter, uint64_t *ret,
                          struct bh_err *err)
{
    const struct bh_store_lease_filter *f = filter ? filter : &any;
    struct bh_buf mask;
    struct bh_sql q;
    int rc = bh_sql_get(s, counts[which(f)], &q, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&mask, 512);
    bind_filter(&q, f, &mask);
    rc = bh_sql_step(&q, err);
    if (rc > 0) {
        *ret = bh_sql_col_uint(&q, 0);
        bh_sql_done(&q);
        rc = 0;
    }
    bh_buf_fini(&mask);
    return rc;
}

/* ---- what it was given, how it came there ---- */

static int read_grant(struct bh_sql *q, struct bh_arena *arena, struct bh_store_grant *ret,
                      struct bh_err *err)
{
    ret->id = bh_sql_col_uint(q, 0);
    ret->lease = bh_sql_col_uint(q, 5);
    ret->milli = (uint32_t)bh_sql_col_uint(q, 6);
    ret->mib = (uint32_t)bh_sql_col_uint(q, 7);
    ret->proved = bh_sql_col_uint(q, 8);
    return bh_state_col_name(q, 1, arena, &ret->slice, err);
}

int bh_store_lease_grants(struct bh_store *s, struct bh_arena *arena, uint64_t id, bh_store_grants *ret,
                          struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s,
        "SELECT id, gpu, kind, key, base, lease, milli, mib, proved FROM grants WHERE lease = ?1 ORDER BY id",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bh_state_rows(&q, arena, ret, read_grant, rc, err);
    return rc;
}

static int read_past(struct bh_sql *q, struct bh_arena *arena, struct bh_store_lease_step *ret,
                     struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_lease_step){.id = bh_sql_col_uint(q, 0),
                                        .lease = bh_sql_col_uint(q, 1),
                                        .from = bh_sql_col_text(q, 2, arena),
                                        .to = bh_sql_col_text(q, 3, arena),
                                        .cause = bh_sql_col_text(q, 4, arena),
                                        .at_ms = bh_sql_col_uint(q, 5),
                                        .why = bh_sql_col_text(q, 6, arena)};
    return 0;
}

#define PAST "SELECT id, lease, old, new, cause, at_ms, why FROM lease_history WHERE lease = ?3 AND "

int bh_store_lease_history(struct bh_store *s, struct bh_arena *arena, uint64_t id,
                           const struct bh_store_page *page, bh_store_lease_steps *ret, struct bh_err *err)
{
    static const char *const texts[2] = {PAST "id > ?1" UP, PAST "id < ?1" DOWN};
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    bh_sql_uint(&q, 3, id);
    bh_state_rows(&q, arena, ret, read_past, rc, err);
    return rc;
}

int bh_store_lease_facts(struct bh_store *s, uint64_t id, struct bh_lease_facts *ret, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "SELECT state, (SELECT count(*) FROM grants WHERE lease = ?1),"
                        " (SELECT count(*) FROM slices WHERE lease = ?1 AND state = 'owned'),"
                        " (SELECT count(*) FROM slices WHERE lease = ?1 AND state = 'dirty'),"
                        " (SELECT count(*) FROM slices WHERE lease = ?1 AND state = 'quarantined'),"
                        " (SELECT count(*) FROM grants WHERE lease = ?1 AND proved IS NOT NULL),"
                        " (SELECT count(*) FROM usage WHERE lease = ?1 AND to_ms IS NULL)"
                        " FROM leases WHERE id = ?1",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    rc = bh_state_first(&q, err, "lease L%" PRIu64, id);
    if (rc < 0)
        return rc;
    const int state = bh_lease_state_find(bh_sql_col_text(&q, 0, &arena));
    bh_arena_fini(&arena);
    *ret = (struct bh_lease_facts){.state = (enum bh_lease_state)state,
                                   .granted = (uint32_t)bh_sql_col_uint(&q, 1),
                                   .owned = (uint32_t)bh_sql_col_uint(&q, 2),
                                   .dirty = (uint32_t)bh_sql_col_uint(&q, 3),
                                   .quarantined = (uint32_t)bh_sql_col_uint(&q, 4),
                                   .proved = (uint32_t)bh_sql_col_uint(&q, 5),
                                   .usage_open = (uint32_t)bh_sql_col_uint(&q, 6)};
    bh_sql_done(&q);
    return state < 0 ? bh_fail(err, BH_REFUSED, "lease L%" PRIu64 " is in no state that there is", id) : 0;
}
