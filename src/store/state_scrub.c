/* SPDX-License-Identifier: Apache-2.0 */
/* state_scrub.c - verdicts on slices that somebody left; a clean one frees its slice, in the same transaction. */
#include "store/state_inside.h"
#include "store/state_slice.h"

static const char *const verdicts[] = {
    [BH_SCRUB_CLEAN] = "clean", [BH_SCRUB_FOUND] = "found", [BH_SCRUB_UNKNOWN] = "unknown"};
const struct bh_words bh_words_scrub_verdict = {verdicts, BH_COUNT_OF(verdicts)};

const char *bh_scrub_verdict_str(enum bh_scrub_verdict v)
{
    return verdicts[v];
}

static int insert_verdict(struct bh_store *s, const struct bh_store_scrub *v, uint64_t *ret_id,
                          struct bh_err *err)
{
    const char *word;
    struct bh_sql q;
    int rc = bh_state_word(&bh_words_scrub_verdict, v->verdict, "verdict", &word, err);
    if (rc == 0)
        rc = bh_sql_get(s,
                        "INSERT INTO scrubs(gpu, kind, key, base, lease, verdict, method, probed_bytes,"
                        " total_bytes, words, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, &v->slice);
    if (v->lease)
        bh_sql_uint(&q, 5, v->lease);
    else
        bh_sql_null(&q, 5);
    bh_sql_text(&q, 6, word);
    bh_sql_text(&q, 7, bh_text_or_none(v->method));
    bh_sql_uint(&q, 8, v->probed_bytes);
    bh_sql_uint(&q, 9, v->total_bytes);
    bh_sql_text(&q, 10, bh_text_or_none(v->words));
    bh_sql_uint(&q, 11, v->at_ms);
    rc = bh_sql_run(&q, NULL, err);
    if (rc == 0)
        *ret_id = (uint64_t)bh_sql_last_id(&q);
    return rc;
}

static int prove(struct bh_store *s, uint64_t grant, uint64_t verdict, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "UPDATE grants SET proved = ?2 WHERE id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, grant);
    bh_sql_uint(&q, 2, verdict);
    return bh_sql_run(&q, NULL, err);
}

/* A share that nobody has is no slice any more. */
static int make_free(struct bh_store *s, const struct bh_slice_name *name, uint64_t at_ms, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "UPDATE slices SET state = 'free', lease = NULL, grant_id = NULL, since_ms = ?5"
                        " WHERE gpu = ?1 AND kind = ?2 AND key = ?3 AND base = ?4",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    bh_sql_uint(&q, 5, at_ms);
    rc = bh_sql_run(&q, NULL, err);
    if (rc < 0 || name->kind != BH_SLICE_SHARE)
        return rc;
    rc = bh_sql_get(s, "DELETE FROM slices WHERE gpu = ?1 AND kind = ?2 AND key = ?3 AND base = ?4", &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    return bh_sql_run(&q, NULL, err);
}

int bh_store_scrub_add(struct bh_store *s, const struct bh_store_scrub *scrub, uint64_t *ret_id,
                       struct bh_err *err)
{
    struct bh_slice_text t;
    uint64_t id = 0, grant = 0;
    int rc = bh_store_begin(s, err);
    if (rc < 0)
        return rc;
    rc = insert_verdict(s, scrub, &id, err);
    if (rc == 0 && scrub->verdict == BH_SCRUB_CLEAN) {
        rc = bh_slice_grant(s, &scrub->slice, &grant, err);
        /* A tenant that is parking or draining pays for a slice until it is proved clean. */
        if (rc == 0 && grant)
            rc = bh_usage_close(s, scrub->lease, grant, scrub->at_ms, err);
        if (rc == 0 && grant)
            rc = prove(s, grant, id, err);
        if (rc == 0)
            rc = make_free(s, &scrub->slice, scrub->at_ms, err);
    }
    if (rc < 0)
        (void)bh_wrap(err, rc, "verdict on %s", bh_slice_format(&scrub->slice, &t));
    rc = bh_state_end(s, rc, err);
    if (rc == 0 && ret_id)
        *ret_id = id;
    return rc;
}

#define SCRUB_COLUMNS                                                                                  \
    "SELECT id, gpu, kind, key, base, lease, verdict, method, probed_bytes, total_bytes, words, at_ms" \
    " FROM scrubs WHERE "

static int read_scrub(struct bh_sql *q, struct bh_arena *arena, struct bh_store_scrub *ret,
                      struct bh_err *err)
{
    uint8_t verdict = 0;
    struct bh_slice_name name = {0};
    int rc = bh_state_col_name(q, 1, arena, &name, err);
    if (rc == 0)
        rc = bh_state_value(&bh_words_scrub_verdict, bh_sql_col_text(q, 6, arena), "verdict", &verdict, err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_scrub){.id = bh_sql_col_uint(q, 0),
                                   .lease = bh_sql_col_uint(q, 5),
                                   .slice = name,
                                   .verdict = (enum bh_scrub_verdict)verdict,
                                   .method = bh_sql_col_text(q, 7, arena),
                                   .probed_bytes = bh_sql_col_uint(q, 8),
                                   .total_bytes = bh_sql_col_uint(q, 9),
                                   .words = bh_sql_col_text(q, 10, arena),
                                   .at_ms = bh_sql_col_uint(q, 11)};
    return 0;
}

int bh_store_scrubs_list(struct bh_store *s, struct bh_arena *arena, uint64_t lease,
                         const struct bh_store_page *page, bh_store_scrubs *ret, struct bh_err *err)
{
    static const char *const texts[2][2] = {
        {SCRUB_COLUMNS "id > ?1 ORDER BY id LIMIT ?2", SCRUB_COLUMNS "id < ?1 ORDER BY id DESC LIMIT ?2"},
        {SCRUB_COLUMNS "lease = ?3 AND id > ?1 ORDER BY id LIMIT ?2",
         SCRUB_COLUMNS "lease = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2"}};
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[lease != 0][page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    if (lease)
        bh_sql_uint(&q, 3, lease);
    bh_state_rows(&q, arena, ret, read_scrub, rc, err);
    return rc;
}
