/* SPDX-License-Identifier: Apache-2.0 */
/* state_history.c - jobs that are long over, and all that hangs on them, from the leaves to the root. */
#include "store/state_history.h"

#include "store/state_inside.h"

#include <string.h>

#define DROPPED_NOTE "history-dropped-before-ms"

/* The same jobs each time: the first of those that are over, until they go themselves. */
#define THEIRS \
    " WHERE lease IN (SELECT id FROM leases WHERE job IN (SELECT job FROM history_over ORDER BY job LIMIT ?1))"

static int drop(struct bh_store *s, const char *text, uint32_t most, uint64_t *ret, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, most);
    return bh_sql_run(&q, ret, err);
}

static int list_leases(struct bh_store *s, uint32_t most, struct bh_store_dropped *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s,
        "SELECT id FROM leases WHERE job IN (SELECT job FROM history_over ORDER BY job LIMIT ?1) ORDER BY id",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, most);
    while ((rc = bh_sql_step(&q, err)) > 0)
        *bh_vec_push(&ret->lease_ids) = bh_sql_col_uint(&q, 0);
    return rc;
}

static int permit(struct bh_store *s, uint64_t before_ms, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "INSERT INTO history_permit(id, before_ms) VALUES (1, ?1)", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, before_ms);
    return bh_sql_run(&q, NULL, err);
}

static int forbid(struct bh_store *s, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "DELETE FROM history_permit", &q, err);
    return rc < 0 ? rc : bh_sql_run(&q, NULL, err);
}

int bh_store_history_whole_from(struct bh_store *s, uint64_t *ret_ms, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    *ret_ms = 0;
    const int rc = bh_store_note_get(s, &arena, DROPPED_NOTE, &note, err);
    if (rc == 0 && note.n == sizeof(*ret_ms))
        memcpy(ret_ms, note.value, sizeof(*ret_ms));
    bh_arena_fini(&arena);
    return rc == BH_NOT_FOUND ? 0 : rc;
}

/* So that a bill of an older time can say that it is not whole. A policy may keep more again later: what went does not come back. */
static int remember(struct bh_store *s, uint64_t before_ms, struct bh_err *err)
{
    uint64_t old_ms;
    const int rc = bh_store_history_whole_from(s, &old_ms, err);
    if (rc < 0 || old_ms >= before_ms)
        return rc;
    return bh_store_note_set(s, DROPPED_NOTE, &before_ms, sizeof(before_ms), err);
}

int bh_store_history_drop(struct bh_store *s, uint64_t before_ms, uint32_t most, struct bh_store_dropped *ret,
                          struct bh_err *err)
{
    /* Each before what it refers to. */
    const struct {
        const char *text;
        uint64_t *n;
    } steps[] = {
        {"DELETE FROM usage" THEIRS, &ret->usages},
        {"DELETE FROM grants" THEIRS, NULL},
        {"DELETE FROM scrubs" THEIRS, NULL},
        {"DELETE FROM lease_history" THEIRS, NULL},
        {"DELETE FROM leases WHERE job IN (SELECT job FROM history_over ORDER BY job LIMIT ?1)",
         &ret->leases},
        {"DELETE FROM jobs WHERE id IN (SELECT job FROM history_over ORDER BY job LIMIT ?1)", &ret->jobs},
    };
    *ret = (struct bh_store_dropped){.jobs = 0};
    bh_store_drops_add(s);
    int rc = permit(s, before_ms, err);
    if (rc == 0)
        rc = list_leases(s, most, ret, err);
    for (size_t i = 0; rc == 0 && i < BH_COUNT_OF(steps); i++)
        rc = drop(s, steps[i].text, most, steps[i].n, err);
    if (rc == 0 && ret->usages)
        rc = remember(s, before_ms, err);
    if (rc == 0)
        rc = forbid(s, err);
    if (rc < 0)
        bh_vec_fini(&ret->lease_ids);
    return rc;
}
