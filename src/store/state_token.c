/* SPDX-License-Identifier: Apache-2.0 */
/* state_token.c - tokens by their digest. */
#include "store/state_token.h"

#include "store/state_inside.h"

#include <inttypes.h>
#include <string.h>

int bh_store_token_add(struct bh_store *s, const struct bh_store_token *token, uint64_t *ret_id,
                       struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "INSERT INTO tokens(sha256, subject, role, tenant, created_ms, expires_ms)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_blob(&q, 1, token->sha256, sizeof(token->sha256));
    bh_sql_text(&q, 2, token->subject);
    bh_sql_text(&q, 3, token->role);
    bh_sql_text(&q, 4, bh_text_or_none(token->tenant));
    bh_sql_uint(&q, 5, token->created_ms);
    bh_sql_uint(&q, 6, token->expires_ms);
    rc = bh_sql_run(&q, NULL, err);
    if (rc < 0)
        return bh_wrap(err, rc, "token of '%s'", bh_text_or_none(token->subject));
    *ret_id = (uint64_t)bh_sql_last_id(&q);
    return 0;
}

int bh_store_token_revoke(struct bh_store *s, uint64_t id, uint64_t at_ms, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "UPDATE tokens SET revoked_ms = ?2 WHERE id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    /* 0 says that it is not. */
    bh_sql_uint(&q, 2, at_ms ? at_ms : 1);
    return bh_state_one(&q, err, "token %" PRIu64, id);
}

#define TOKEN_COLUMNS \
    "SELECT id, sha256, subject, role, tenant, created_ms, expires_ms, revoked_ms FROM tokens WHERE "

static int read_token(struct bh_sql *q, struct bh_arena *arena, struct bh_store_token *ret,
                      struct bh_err *err)
{
    size_t n;
    const void *digest = bh_sql_col_blob(q, 1, arena, &n);
    if (n != sizeof(ret->sha256))
        return bh_fail(err, BH_REFUSED, "the digest of a token has %zu bytes", n);
    *ret = (struct bh_store_token){.id = bh_sql_col_uint(q, 0),
                                   .subject = bh_sql_col_text(q, 2, arena),
                                   .role = bh_sql_col_text(q, 3, arena),
                                   .tenant = bh_sql_col_text(q, 4, arena),
                                   .created_ms = bh_sql_col_uint(q, 5),
                                   .expires_ms = bh_sql_col_uint(q, 6),
                                   .revoked_ms = bh_sql_col_uint(q, 7)};
    memcpy(ret->sha256, digest, sizeof(ret->sha256));
    return 0;
}

int bh_store_token_find(struct bh_store *s, struct bh_arena *arena, const uint8_t sha256[BH_STORE_SHA256],
                        uint64_t now_ms, struct bh_store_token *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s, TOKEN_COLUMNS "sha256 = ?1 AND revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > ?2)", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_blob(&q, 1, sha256, BH_STORE_SHA256);
    bh_sql_uint(&q, 2, now_ms);
    rc = bh_sql_step(&q, err);
    if (rc == 0)
        return bh_fail(err, BH_DENIED, "the token is not valid");
    if (rc < 0)
        return rc;
    rc = read_token(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

int bh_store_tokens_live(struct bh_store *s, const char *subject, uint64_t now_ms, uint64_t *ret,
                         struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "SELECT count(*) FROM tokens WHERE subject = ?1 AND revoked_ms = 0"
                        " AND (expires_ms = 0 OR expires_ms > ?2)",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, subject);
    bh_sql_uint(&q, 2, now_ms);
    rc = bh_state_first(&q, err, "the tokens of '%s'", subject);
    if (rc < 0)
        return rc;
    *ret = bh_sql_col_uint(&q, 0);
    bh_sql_done(&q);
    return 0;
}

int bh_store_tokens_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_page *page,
                         bh_store_tokens *ret, struct bh_err *err)
{
    static const char *const texts[2] = {TOKEN_COLUMNS "id > ?1 ORDER BY id LIMIT ?2",
                                         TOKEN_COLUMNS "id < ?1 ORDER BY id DESC LIMIT ?2"};
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    bh_state_rows(&q, arena, ret, read_token, rc, err);
    return rc;
}
