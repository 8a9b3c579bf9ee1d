/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_bill.h"

#include "store/state_fixture.h"

/* Red had something twice, and lost it the second time; blue has something still: *ret_blue is its lease. */
static void fill(struct fix *f, uint64_t *ret_blue)
{
    fix_init(f);
    const uint64_t a = fix_active(f, "red", whole(GPU_A), 0, 0);
    f->now += 1000;
    CHECK_EQ(fix_end(f, a), 0);
    CHECK_EQ(fix_verdict(f, a, whole(GPU_A), BH_SCRUB_CLEAN), 0);
    CHECK_EQ(fix_step(f, a, BH_LEASE_SCRUBBING, BH_LEASE_BY_CLEAN), 0);
    const uint64_t b = fix_active(f, "red", whole(GPU_A), 0, 0);
    *ret_blue = fix_active(f, "blue", whole(GPU_B), 0, 0);
    f->now += 1000;
    CHECK_EQ(fix_step(f, b, BH_LEASE_ACTIVE, BH_LEASE_BY_EVICT), 0);
    CHECK_EQ(fix_step(f, b, BH_LEASE_DRAINING, BH_LEASE_BY_EMPTY), 0);
    f->now += 1000;
}

static bool same_bills(const struct bh_store_bill *a, const struct bh_store_bill *b)
{
    bool same = a->from_ms == b->from_ms && a->to_ms == b->to_ms && a->whole_from_ms == b->whole_from_ms &&
                a->cards.n == b->cards.n && fix_same_sums(&a->sums, &b->sums) &&
                fix_same_sums(&a->tally.sums, &b->tally.sums) && a->tally.closed_ms == b->tally.closed_ms &&
                a->tally.steps == b->tally.steps && a->tally.drops == b->tally.drops;
    for (size_t i = 0; same && i < a->cards.n; i++) {
        const struct bh_store_usage_card *x = &a->cards.at[i], *y = &b->cards.at[i];
        same = strcmp(x->gpu, y->gpu) == 0 && x->index == y->index && x->memory_mib == y->memory_mib &&
               x->milli_ms == y->milli_ms && x->stranded_milli_ms == y->stranded_milli_ms &&
               x->stranded_mib_ms == y->stranded_mib_ms;
    }
    return same;
}

/* As the bytes of one process are read by another; out: those bytes. */
static bool goes_through(const struct bh_store_bill *bill, struct bh_buf *out)
{
    struct bh_arena arena = {0};
    struct bh_store_bill back;
    struct bh_err err;
    out->n = 0;
    bh_store_bill_put(out, bill);
    const bool read = bh_store_bill_get(bh_buf_text(out), out->n, &arena, &back, &err) == 0;
    const bool same = read && same_bills(bill, &back);
    if (read)
        bh_store_bill_fini(&back);
    bh_arena_fini(&arena);
    return same;
}

TEST(a_bill_is_what_the_books_say)
{
    struct fix f;
    uint64_t blue;
    struct bh_buf out;
    fill(&f, &blue);
    bh_buf_init(&out, 1 << 20);
    for (unsigned by = 0; by < BH_USAGE_OFS; by++) {
        const struct bh_store_usage_filter when = {.to_ms = f.now}, red = {.tenant = "red", .to_ms = f.now};
        struct bh_store_bill_ask ask = {.to_ms = f.now, .by = by, .all = true, .cards = true};
        struct bh_store_bill all = {0}, one = {0};
        bh_store_usage_sums sums = {0}, of_red = {0};
        bh_store_usage_cards cards = {0};
        CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, by, &sums, &f.err), 0);
        CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &red, by, &of_red, &f.err), 0);
        CHECK_EQ(bh_store_usage_cards_list(f.s, &f.arena, &when, &cards, &f.err), 0);
        CHECK_EQ(bh_store_bill_make(f.s, &f.arena, &ask, NULL, &all, &f.err), 0);
        CHECK(fix_same_sums(&all.sums, &sums) && sums.n == 2 && all.cards.n == 2);
        CHECK_EQ(all.cards.at[0].milli_ms, cards.at[0].milli_ms);
        CHECK(goes_through(&all, &out));
        ask.all = ask.cards = false;
        *bh_vec_push(&ask.tenants) = "red";
        CHECK_EQ(bh_store_bill_make(f.s, &f.arena, &ask, NULL, &one, &f.err), 0);
        CHECK(fix_same_sums(&one.sums, &of_red) && of_red.n == 1 && one.cards.n == 0);
        CHECK(of_red.at[0].lost_milli_ms > 0);
        CHECK(goes_through(&one, &out));
        bh_store_bill_ask_fini(&ask);
        bh_store_bill_fini(&all);
        bh_store_bill_fini(&one);
        bh_vec_fini(&sums);
        bh_vec_fini(&of_red);
        bh_vec_fini(&cards);
    }
    bh_buf_fini(&out);
    fix_fini(&f);
}

TEST(how_much_there_is_to_read)
{
    struct fix f;
    uint64_t blue;
    struct bh_store_bill_ask ask = {.all = true};
    struct bh_store_tally tally = {0};
    bh_store_usage_sums sums = {0};
    uint64_t rows = 99;
    fill(&f, &blue);
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, NULL, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 3);
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, NULL, 1, &rows, &f.err), 0);
    CHECK_EQ(rows, 2); /* one more than may be */
    ask.all = false;
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, NULL, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 0);
    *bh_vec_push(&ask.tenants) = "blue";
    *bh_vec_push(&ask.tenants) = "nobody";
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, NULL, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 1);
    ask.cards = true; /* which are those of all */
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, NULL, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 3);
    /* Of the past, what no tally has yet; of one that is worthless, all. */
    ask.past = true;
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, &tally, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 2);
    CHECK_EQ(bh_store_tally_sum(f.s, &f.arena, &tally, f.now, &sums, &f.err), 0);
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, &tally, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 0);
    bh_store_drops_add(f.s);
    CHECK_EQ(bh_store_bill_rows(f.s, &ask, &tally, 10, &rows, &f.err), 0);
    CHECK_EQ(rows, 2);
    bh_store_tally_fini(&tally);
    bh_store_bill_ask_fini(&ask);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

/* What another process added up of the past is gone on with here. */
TEST(a_tally_from_elsewhere)
{
    struct fix f;
    uint64_t blue;
    struct bh_store *beside = NULL;
    struct bh_store_tally theirs = {0};
    struct bh_store_bill_ask ask = {.all = true, .past = true, .drops = 7};
    struct bh_store_bill made = {0}, back = {0};
    bh_store_usage_sums now = {0}, slow = {0};
    struct bh_buf out;
    const struct bh_store_options o = {.mode = BH_STORE_READ, .no_check = true};
    fill(&f, &blue);
    bh_buf_init(&out, 1 << 20);
    ask.to_ms = f.now;
    CHECK_EQ(bh_store_open(f.at.path, &o, &beside, &f.err), 0);
    CHECK(bh_store_hold(beside));
    /* It is one moment: what is written meanwhile is of a later one. */
    f.now += 10;
    CHECK_EQ(fix_step(&f, blue, BH_LEASE_ACTIVE, BH_LEASE_BY_EVICT), 0);
    CHECK_EQ(bh_store_bill_make(beside, &f.arena, &ask, &theirs, &made, &f.err), 0);
    CHECK_STR(made.sums.at[0].tenant, "blue");
    CHECK_EQ(made.sums.at[0].lost_milli_ms, 0);
    bh_store_close(beside);
    made.tally = theirs;
    made.tally.drops = ask.drops;
    CHECK(goes_through(&made, &out));
    CHECK_EQ(bh_store_bill_get(bh_buf_text(&out), out.n, &f.arena, &back, &f.err), 0);
    CHECK_EQ(back.tally.drops, 7);
    back.tally.drops = bh_store_drops(f.s);
    f.now += 1000;
    const struct bh_store_usage_filter all = {.to_ms = f.now};
    CHECK_EQ(bh_store_tally_sum(f.s, &f.arena, &back.tally, f.now, &now, &f.err), 0);
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &all, BH_USAGE_OF_TENANT, &slow, &f.err), 0);
    CHECK(fix_same_sums(&now, &slow) && now.n == 2 && now.at[0].lost_milli_ms > 0);
    bh_store_bill_fini(&made);
    bh_store_bill_fini(&back);
    bh_vec_fini(&now);
    bh_vec_fini(&slow);
    bh_buf_fini(&out);
    fix_fini(&f);
}

TEST(questions_as_bytes)
{
    struct bh_store_bill_ask ask = {
        .from_ms = 5, .to_ms = UINT64_MAX, .by = BH_USAGE_OF_GPU, .cards = true, .drops = 3};
    struct bh_store_bill_ask back = {0};
    struct bh_arena arena = {0};
    struct bh_buf out;
    struct bh_err err;
    bh_buf_init(&out, 1 << 16);
    *bh_vec_push(&ask.tenants) = "blue";
    *bh_vec_push(&ask.tenants) = "";
    bh_store_bill_ask_put(&out, &ask);
    CHECK_EQ(bh_store_bill_ask_get(bh_buf_text(&out), out.n, &arena, &back, &err), 0);
    CHECK(back.from_ms == 5 && back.to_ms == UINT64_MAX && back.by == BH_USAGE_OF_GPU && back.cards &&
          !back.all && !back.past && back.drops == 3 && back.tenants.n == 2);
    CHECK_STR(back.tenants.at[0], "blue");
    CHECK_STR(back.tenants.at[1], "");
    bh_store_bill_ask_fini(&back);
    for (size_t n = 0; n < out.n; n++)
        CHECK_EQ(bh_store_bill_ask_get(bh_buf_text(&out), n, &arena, &back, &err), BH_INVALID);
    bh_buf_str(&out, "x");
    CHECK_EQ(bh_store_bill_ask_get(bh_buf_text(&out), out.n, &arena, &back, &err), BH_INVALID);
    bh_store_bill_ask_fini(&ask);
    bh_arena_fini(&arena);
    bh_buf_fini(&out);
}

/* What is not whole, or not what was put, is refused or is some bill; never more than there is. */
TEST(bytes_that_are_not_a_bill)
{
    struct fix f;
    uint64_t blue;
    struct bh_store_bill_ask ask = {.all = true, .cards = true};
    struct bh_store_bill bill = {0};
    struct bh_buf out;
    fill(&f, &blue);
    ask.to_ms = f.now;
    bh_buf_init(&out, 1 << 20);
    CHECK_EQ(bh_store_bill_make(f.s, &f.arena, &ask, NULL, &bill, &f.err), 0);
    bh_store_bill_put(&out, &bill);
    for (size_t n = 0; n < out.n; n++) {
        struct bh_store_bill back;
        CHECK_EQ(bh_store_bill_get(bh_buf_text(&out), n, &f.arena, &back, &f.err), BH_INVALID);
    }
    for (size_t at = 0; at < out.n; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct bh_store_bill back;
            out.at[at] = (char)(out.at[at] ^ (1 << bit));
            if (bh_store_bill_get(out.at, out.n, &f.arena, &back, &f.err) == 0)
                bh_store_bill_fini(&back);
            out.at[at] = (char)(out.at[at] ^ (1 << bit));
        }
    CHECK(goes_through(&bill, &out));
    bh_store_bill_fini(&bill);
    bh_buf_fini(&out);
    fix_fini(&f);
}

TEST_MAIN
