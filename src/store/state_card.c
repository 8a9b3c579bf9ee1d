/* SPDX-License-Identifier: Apache-2.0 */
/* state_card.c - the cards of the machine: found, cordoned, sick. The whole card is a slice from the start. */
#include "store/state_inside.h"
#include "store/state_slice.h"

#include <stdlib.h>
#include <string.h>

static const char *const healths[] = {
    [BH_CARD_OK] = "ok", [BH_CARD_SUSPECT] = "suspect", [BH_CARD_BAD] = "bad"};
const struct bh_words bh_words_card_health = {healths, BH_COUNT_OF(healths)};

const char *bh_card_health_str(enum bh_card_health h)
{
    return healths[h];
}

static int put_card(struct bh_store *s, const struct bh_store_card *card, struct bh_err *err)
{
    struct bh_sql q;
    const int rc =
        bh_sql_get(s,
                   "INSERT INTO cards(uuid, model, number, memory_mib, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
                   " ON CONFLICT(uuid) DO UPDATE SET model = excluded.model, number = excluded.number,"
                   " memory_mib = excluded.memory_mib, seen_ms = excluded.seen_ms",
                   &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, card->uuid);
    bh_sql_text(&q, 2, bh_text_or_none(card->model));
    bh_sql_uint(&q, 3, card->index);
    bh_sql_uint(&q, 4, card->memory_mib);
    bh_sql_uint(&q, 5, card->seen_ms);
    return bh_sql_run(&q, NULL, err);
}

/* One that somebody has keeps the size it was given with. */
static int put_whole(struct bh_store *s, const struct bh_store_card *card, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s,
                              "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, since_ms)"
                              " VALUES (?1, 'whole', '', '', 1000, ?2, ?1, 'free', ?3)"
                              " ON CONFLICT(gpu, kind, key) DO UPDATE SET mib = excluded.mib"
                              " WHERE state = 'free' AND mib <> excluded.mib",
                              &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, card->uuid);
    bh_sql_uint(&q, 2, card->memory_mib);
    bh_sql_uint(&q, 3, card->seen_ms);
    return bh_sql_run(&q, NULL, err);
}

int bh_store_card_put(struct bh_store *s, const struct bh_store_card *card, struct bh_err *err)
{
    int rc = bh_store_begin(s, err);
    if (rc < 0)
        return rc;
    rc = put_card(s, card, err);
    if (rc == 0)
        rc = put_whole(s, card, err);
    if (rc < 0)
        (void)bh_wrap(err, rc, "card '%s'", bh_text_or_none(card->uuid));
    return bh_state_end(s, rc, err);
}

int bh_store_card_cordon(struct bh_store *s, const char *uuid, uint64_t at_ms, const char *by,
                         const char *why, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(
        s, "UPDATE cards SET cordoned_ms = ?2, cordon_by = ?3, cordon_why = ?4 WHERE uuid = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, uuid);
    /* 0 says that it is not. */
    bh_sql_uint(&q, 2, at_ms ? at_ms : 1);
    bh_sql_text(&q, 3, bh_text_or_none(by));
    bh_sql_text(&q, 4, bh_text_or_none(why));
    return bh_state_one(&q, err, "card '%s'", uuid);
}

int bh_store_card_uncordon(struct bh_store *s, const char *uuid, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(
        s, "UPDATE cards SET cordoned_ms = 0, cordon_by = '', cordon_why = '' WHERE uuid = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, uuid);
    return bh_state_one(&q, err, "card '%s'", uuid);
}

int bh_store_card_health(struct bh_store *s, const char *uuid, enum bh_card_health health, uint64_t at_ms,
                         const char *why, struct bh_err *err)
{
    const char *word;
    struct bh_sql q;
    int rc = bh_state_word(&bh_words_card_health, health, "health of a card", &word, err);
    if (rc == 0)
        rc = bh_sql_get(s, "UPDATE cards SET health = ?2, health_ms = ?3, health_why = ?4 WHERE uuid = ?1",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, uuid);
    bh_sql_text(&q, 2, word);
    bh_sql_uint(&q, 3, at_ms);
    bh_sql_text(&q, 4, bh_text_or_none(why));
    return bh_state_one(&q, err, "card '%s'", uuid);
}

#define CARD_COLUMNS                                                                                          \
    "SELECT uuid, model, number, memory_mib, seen_ms, cordoned_ms, cordon_by, cordon_why, health, health_ms," \
    " health_why FROM cards"

static int read_card(struct bh_sql *q, struct bh_arena *arena, struct bh_store_card *ret, struct bh_err *err)
{
    uint8_t health = 0;
    const int rc =
        bh_state_value(&bh_words_card_health, bh_sql_col_text(q, 8, arena), "health of a card", &health, err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_card){.uuid = bh_sql_col_text(q, 0, arena),
                                  .model = bh_sql_col_text(q, 1, arena),
                                  .index = (uint32_t)bh_sql_col_uint(q, 2),
                                  .memory_mib = (uint32_t)bh_sql_col_uint(q, 3),
                                  .seen_ms = bh_sql_col_uint(q, 4),
                                  .cordoned_ms = bh_sql_col_uint(q, 5),
                                  .cordon_by = bh_sql_col_text(q, 6, arena),
                                  .cordon_why = bh_sql_col_text(q, 7, arena),
                                  .health = (enum bh_card_health)health,
                                  .health_ms = bh_sql_col_uint(q, 9),
                                  .health_why = bh_sql_col_text(q, 10, arena)};
    return 0;
}

int bh_store_card_get(struct bh_store *s, struct bh_arena *arena, const char *uuid, struct bh_store_card *ret,
                      struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, CARD_COLUMNS " WHERE uuid = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, uuid);
    rc = bh_state_first(&q, err, "card '%s'", uuid);
    if (rc < 0)
        return rc;
    rc = read_card(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const struct bh_store_card *x = a, *y = b;
    return x->index != y->index ? (x->index < y->index ? -1 : 1) : strcmp(x->uuid, y->uuid);
}

int bh_store_cards_list(struct bh_store *s, struct bh_arena *arena, bh_store_cards *ret, struct bh_err *err)
{
    const size_t first = ret->n;
    struct bh_sql q;
    int rc = bh_sql_get(s, CARD_COLUMNS, &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_card, rc, err);
    /* Here and not by SQLite, which copies every row with all its words to do so: this is asked for all the time. */
    if (rc == 0 && ret->n > first)
        qsort(ret->at + first, ret->n - first, sizeof(*ret->at), by_number);
    return rc;
}
