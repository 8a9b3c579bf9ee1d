/* SPDX-License-Identifier: Apache-2.0 */
/* state_policy.c - versions of the policy: added, never changed. */
#include "store/state_policy.h"

#include "store/state_inside.h"

#include <inttypes.h>
#include <string.h>

static int add_version(struct bh_store *s, const struct bh_store_policy *p, uint64_t *ret_id,
                       struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "UPDATE policies SET active = 0 WHERE active = 1", &q, err);
    if (rc == 0)
        rc = bh_sql_run(&q, NULL, err);
    if (rc == 0)
        rc = bh_sql_get(
            s, "INSERT INTO policies(text, sha256, who, why, at_ms, active) VALUES (?1, ?2, ?3, ?4, ?5, 1)",
            &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, p->text);
    bh_sql_blob(&q, 2, p->sha256, sizeof(p->sha256));
    bh_sql_text(&q, 3, bh_text_or_none(p->who));
    bh_sql_text(&q, 4, bh_text_or_none(p->why));
    bh_sql_uint(&q, 5, p->at_ms);
    rc = bh_sql_run(&q, NULL, err);
    if (rc == 0)
        *ret_id = (uint64_t)bh_sql_last_id(&q);
    return rc;
}

int bh_store_policy_apply(struct bh_store *s, const struct bh_store_policy *policy, uint64_t *ret_id,
                          struct bh_err *err)
{
    uint64_t id = 0;
    int rc = bh_store_begin(s, err);
    if (rc < 0)
        return rc;
    rc = bh_state_end(s, add_version(s, policy, &id, err), err);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

#define POLICY_COLUMNS(text) \
    "SELECT id, " text ", length(CAST(text AS BLOB)), sha256, who, why, at_ms, active FROM policies WHERE "

static int read_policy(struct bh_sql *q, struct bh_arena *arena, struct bh_store_policy *ret,
                       struct bh_err *err)
{
    size_t n;
    const void *digest = bh_sql_col_blob(q, 3, arena, &n);
    if (n != sizeof(ret->sha256))
        return bh_fail(err, BH_REFUSED, "the digest of a policy has %zu bytes", n);
    *ret = (struct bh_store_policy){.id = bh_sql_col_uint(q, 0),
                                    .text = bh_sql_col_text(q, 1, arena),
                                    .n = (size_t)bh_sql_col_uint(q, 2),
                                    .who = bh_sql_col_text(q, 4, arena),
                                    .why = bh_sql_col_text(q, 5, arena),
                                    .at_ms = bh_sql_col_uint(q, 6),
                                    .active = bh_sql_col_int(q, 7) != 0};
    memcpy(ret->sha256, digest, sizeof(ret->sha256));
    return 0;
}

int bh_store_policy_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_policy *ret,
                        struct bh_err *err)
{
    static const char in_force[] = POLICY_COLUMNS("text") "active = 1";
    static const char by_id[] = POLICY_COLUMNS("text") "id = ?1";
    struct bh_sql q;
    int rc = bh_sql_get(s, id ? by_id : in_force, &q, err);
    if (rc < 0)
        return rc;
    if (id)
        bh_sql_uint(&q, 1, id);
    rc = id ? bh_state_first(&q, err, "policy version %" PRIu64, id)
            : bh_state_first(&q, err, "policy in force");
    if (rc < 0)
        return rc;
    rc = read_policy(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

int bh_store_policies_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_page *page,
                           bh_store_policies *ret, struct bh_err *err)
{
    static const char *const texts[2] = {POLICY_COLUMNS("NULL") "id > ?1 ORDER BY id LIMIT ?2",
                                         POLICY_COLUMNS("NULL") "id < ?1 ORDER BY id DESC LIMIT ?2"};
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    bh_state_rows(&q, arena, ret, read_policy, rc, err);
    return rc;
}
