/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of the ledger by itself. */
#include "warden/ledger.h"

#include "base/mem.h"
#include "base/test.h"

#define MIB UINT64_C(1048576)
enum { A = 100, B = 200, DEVICE = 1, PID_A = 10, PID_B = 20, FILE_A = 1000, FILE_B = 2000 };

static void ledger_freep(struct bh_ledger **l)
{
    bh_ledger_free(*l);
}
#define LEDGER BH_AUTO(ledger_freep) struct bh_ledger *

static void tell(struct bh_ledger *l, uint32_t client, uint32_t parent, uint32_t object, uint32_t gpu,
                 uint64_t bytes)
{
    bh_ledger_object(l,
                     &(struct bh_ledger_object){
                         .client = client, .parent = parent, .object = object, .gpu = gpu, .bytes = bytes});
}

static void dup(struct bh_ledger *l, uint32_t client, uint32_t object, uint32_t source_client,
                uint32_t source)
{
    bh_ledger_dup(
        l,
        &(struct bh_ledger_object){
            .client = client, .parent = client, .object = object, .gpu = UINT32_MAX, .bytes = 5 * MIB},
        source_client, source);
}

/* Two processes with a client each, and a device of GPU 0 in both. */
static struct bh_ledger *two_clients(uint64_t cap_bytes)
{
    struct bh_ledger *l = bh_ledger_new(cap_bytes);
    if (!bh_ledger_client(l, PID_A, FILE_A, A) || !bh_ledger_client(l, PID_B, FILE_B, B))
        abort();
    tell(l, A, A, DEVICE, 0, 0);
    tell(l, B, B, DEVICE, 0, 0);
    return l;
}

static uint64_t held(const struct bh_ledger *l)
{
    return bh_ledger_sum(l, 0).held;
}

static uint64_t used(const struct bh_ledger *l)
{
    return bh_ledger_sum(l, 0).used;
}

TEST(a_reservation_is_taken_settled_and_given_back)
{
    LEDGER l = two_clients(10 * MIB);
    CHECK(bh_ledger_reserve(l, 0, 6 * MIB));
    CHECK(!bh_ledger_reserve(l, 0, 5 * MIB)); /* a racing process */
    CHECK(bh_ledger_reserve(l, 1, 5 * MIB));  /* each GPU has its own cap */
    CHECK_EQ(bh_ledger_sum(l, 0).reserved, 6 * MIB);
    bh_ledger_object(l, &(struct bh_ledger_object){.client = A,
                                                   .parent = DEVICE,
                                                   .object = 2,
                                                   .gpu = UINT32_MAX,
                                                   .bytes = 4 * MIB,
                                                   .reserved = 6 * MIB});
    struct bh_ledger_sum s = bh_ledger_sum(l, 0);
    CHECK_EQ(s.held, 4 * MIB);
    CHECK_EQ(s.reserved, 0);
    CHECK_EQ(s.used, 4 * MIB);
    CHECK_EQ(s.peak, 6 * MIB);
    CHECK_EQ(s.refused, 1);
    CHECK(bh_ledger_reserve(l, 0, 6 * MIB)); /* to the byte */
    CHECK(!bh_ledger_reserve(l, 0, 1) && bh_ledger_reserve(l, 0, 0));
    bh_ledger_give_back(l, 0, 6 * MIB);
    CHECK_EQ(used(l), 4 * MIB);
    CHECK_STR(bh_ledger_check(l) ? bh_ledger_check(l) : "", "");
}

TEST(giving_back_more_than_was_taken_stops_at_nothing)
{
    LEDGER l = two_clients(10 * MIB);
    CHECK(bh_ledger_reserve(l, 0, MIB));
    bh_ledger_give_back(l, 0, 3 * MIB);
    bh_ledger_give_back(l, 77, MIB);
    CHECK_EQ(used(l), 0);
}

TEST(a_gpu_that_is_not_known_gets_nothing_and_is_counted_everywhere)
{
    LEDGER l = two_clients(10 * MIB);
    CHECK(!bh_ledger_reserve(l, 32, 1) && !bh_ledger_reserve(l, UINT32_MAX, 1));
    tell(l, A, A, 5, UINT32_MAX, 3 * MIB); /* the client's root has no GPU */
    tell(l, A, A, 6, 99, 2 * MIB);
    bh_ledger_counted(l, 1, 0);
    CHECK_EQ(held(l), 5 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 1).held, 5 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 99).held, 5 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 7).used, 0); /* never seen */
    CHECK(!bh_ledger_reserve(l, 1, 6 * MIB));
    CHECK_EQ(bh_ledger_gpu_of(l, A, 5), UINT32_MAX);
    /* it lay on GPU 0: freeing it must not lower what the driver says of GPU 1 */
    bh_ledger_counted(l, 1, 4 * MIB);
    bh_ledger_drop(l, A, 5);
    CHECK_EQ(bh_ledger_sum(l, 1).used, 4 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 1).held, 2 * MIB);
    CHECK(!bh_ledger_check(l));
}

TEST(an_object_has_the_gpu_of_its_parent)
{
    LEDGER l = two_clients(10 * MIB);
    tell(l, A, A, 3, 4, 0);
    tell(l, A, 3, 7, UINT32_MAX, 0);
    tell(l, A, 7, 8, UINT32_MAX, MIB);
    CHECK_EQ(bh_ledger_gpu_of(l, A, 8), 4);
    CHECK_EQ(bh_ledger_gpu_of(l, A, 9), UINT32_MAX);
    CHECK_EQ(bh_ledger_gpu_of(l, 1, 8), UINT32_MAX);
    CHECK_EQ(bh_ledger_sum(l, 4).held, MIB);
}

TEST(freeing_an_object_frees_what_is_below_it)
{
    LEDGER l = two_clients(1000 * MIB);
    tell(l, A, DEVICE, 2, UINT32_MAX, MIB);
    tell(l, A, 2, 3, UINT32_MAX, 2 * MIB);
    tell(l, A, 3, 4, UINT32_MAX, 4 * MIB);
    tell(l, A, DEVICE, 5, UINT32_MAX, 8 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).objects, 6);
    bh_ledger_drop(l, A, 3);
    CHECK_EQ(held(l), 9 * MIB);
    CHECK_EQ(bh_ledger_gpu_of(l, A, 4), UINT32_MAX);
    bh_ledger_drop(l, A, 3); /* again */
    bh_ledger_drop(l, A, 77);
    bh_ledger_drop(l, 77, 77);
    CHECK_EQ(held(l), 9 * MIB);
    bh_ledger_drop(l, A, A);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(used(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 1);
    CHECK(bh_ledger_client(l, PID_B, FILE_B, A)); /* the name is free */
    CHECK(!bh_ledger_check(l));
}

TEST(a_tree_may_be_as_deep_as_a_tenant_likes)
{
    enum { DEPTH = 300000 };
    LEDGER l = two_clients(UINT64_MAX);
    tell(l, A, DEVICE, 1000, UINT32_MAX, 1);
    for (uint32_t i = 1000; i < 1000 + DEPTH; i++)
        tell(l, A, i, i + 1, UINT32_MAX, 1);
    CHECK_EQ(held(l), DEPTH + 1);
    CHECK(!bh_ledger_check(l));
    bh_ledger_drop(l, A, 1000);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 0).objects, 2);
}

TEST(an_unknown_parent_or_client_is_counted_all_the_same)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, 4711, 2, 0, MIB);
    tell(l, 300, 301, 302, 0, 2 * MIB);
    CHECK_EQ(held(l), 3 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 3);
    CHECK(bh_ledger_client(l, 30, 3000, 300)); /* the news of it came late */
    bh_ledger_process_gone(l, 30);
    CHECK_EQ(held(l), MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 2);
    CHECK(!bh_ledger_check(l));
}

TEST(nothing_is_left_when_nobody_is)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, MIB);
    tell(l, 300, 301, 302, 0, 2 * MIB); /* nobody ever claims this client */
    bh_ledger_process_gone(l, PID_A);
    CHECK_EQ(held(l), 2 * MIB);
    bh_ledger_file_closed(l, FILE_B);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 0).objects + bh_ledger_sum(l, 0).clients, 0);
    CHECK_EQ(used(l), 3 * MIB); /* until the driver says so too */
    bh_ledger_counted(l, 0, 0);
    CHECK_EQ(used(l), 0);
    CHECK(!bh_ledger_check(l));
}

TEST(memory_with_two_names_counts_once_until_the_last_goes)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, 7 * MIB);
    dup(l, B, 20, A, 2);
    dup(l, B, 21, B, 20); /* of a duplicate */
    dup(l, A, 22, B, 21);
    CHECK_EQ(held(l), 7 * MIB);
    CHECK_EQ(bh_ledger_gpu_of(l, B, 21), 0);
    bh_ledger_drop(l, A, 2); /* the first one */
    bh_ledger_process_gone(l, PID_A);
    CHECK_EQ(held(l), 7 * MIB);
    bh_ledger_drop(l, B, 20);
    CHECK_EQ(held(l), 7 * MIB);
    bh_ledger_drop(l, B, 21);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(used(l), 0);
    CHECK(!bh_ledger_check(l));
}

TEST(a_duplicate_of_what_is_not_known)
{
    LEDGER l = two_clients(100 * MIB);
    dup(l, A, 2, 999, 1); /* another lease's: that one pays */
    CHECK_EQ(held(l), 0);
    dup(l, A, 3, 300, 1); /* the name of its own client must not make it ours */
    dup(l, 300, 2, 300, 1);
    CHECK_EQ(held(l), 0);
    dup(l, A, 4, B, 77); /* ours, but never told of */
    CHECK_EQ(held(l), 5 * MIB);
    dup(l, A, 5, B, DEVICE); /* no memory: the size told is all there is to go by */
    CHECK_EQ(held(l), 10 * MIB);
    CHECK(!bh_ledger_check(l));
}

TEST(a_duplicate_told_twice_is_one)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, 7 * MIB);
    dup(l, B, 20, A, 2);
    dup(l, B, 20, A, 2);
    dup(l, A, 2, A, 2); /* onto itself, elsewhere in the tree: one memory still */
    CHECK_EQ(held(l), 7 * MIB);
    bh_ledger_drop(l, B, 20);
    bh_ledger_process_gone(l, PID_A);
    CHECK_EQ(held(l), 0);
    CHECK(!bh_ledger_check(l));
}

TEST(a_name_told_again_keeps_the_larger)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, 4 * MIB);
    tell(l, A, DEVICE, 2, 0, 3 * MIB);
    CHECK_EQ(held(l), 4 * MIB);
    tell(l, A, DEVICE, 2, 0, 6 * MIB);
    CHECK_EQ(held(l), 6 * MIB);
    tell(l, A, DEVICE, 2, 0, 0);
    CHECK_EQ(held(l), 6 * MIB);
    bh_ledger_counted(l, 0, 9 * MIB);
    bh_ledger_drop(l, A, 2); /* 6, or less: the driver's count says nothing about it */
    CHECK_EQ(held(l), 0);
    CHECK_EQ(used(l), 9 * MIB);
    tell(l, A, DEVICE, 3, UINT32_MAX, 0);
    tell(l, A, DEVICE, 3, UINT32_MAX, MIB);
    CHECK_EQ(held(l), MIB);
    CHECK(!bh_ledger_check(l));
}

TEST(a_name_told_again_elsewhere_keeps_both)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, MIB);
    tell(l, A, 2, 3, 0, 2 * MIB);
    tell(l, A, A, 2, 1, 4 * MIB); /* another GPU and parent; the old one's child stays below the old one */
    CHECK_EQ(held(l), 3 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 1).held, 4 * MIB);
    tell(l, A, 3, 3, 0, 8 * MIB); /* its own child: no loop */
    CHECK_EQ(held(l), 11 * MIB);
    tell(l, A, 77, A, 0, 16 * MIB); /* the client's own name */
    CHECK_EQ(held(l), 27 * MIB);
    CHECK(!bh_ledger_check(l));
    bh_ledger_drop(l, A, DEVICE);
    CHECK_EQ(held(l), 16 * MIB);
    tell(l, B, DEVICE, 9, 0, 0);
    tell(l, B, B, 9, 0, 0); /* moved, and nothing is left of the old one */
    CHECK_EQ(bh_ledger_sum(l, 0).objects, 4);
    /* shared memory whose name is used again: both are held */
    tell(l, B, B, 30, 0, MIB);
    dup(l, B, 31, B, 30);
    tell(l, B, B, 30, 0, MIB);
    CHECK_EQ(held(l), 18 * MIB);
    bh_ledger_drop(l, A, A);
    bh_ledger_drop(l, B, B);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 1).held, 0);
    CHECK(!bh_ledger_check(l));
}

TEST(a_client_ends_with_its_file_and_a_process_with_all_of_them)
{
    LEDGER l = two_clients(100 * MIB);
    CHECK(bh_ledger_client(l, PID_A, FILE_A + 1, A + 1));
    CHECK(bh_ledger_client(l, PID_A, FILE_A, A + 2));
    for (uint32_t i = 0; i < 3; i++)
        tell(l, A + i, A + i, 2, 0, MIB << i);
    tell(l, B, DEVICE, 2, 0, 8 * MIB);
    bh_ledger_file_closed(l, FILE_A);
    CHECK_EQ(held(l), 10 * MIB);
    bh_ledger_file_closed(l, FILE_A);
    bh_ledger_file_closed(l, 12345);
    bh_ledger_process_gone(l, PID_A);
    bh_ledger_process_gone(l, PID_A);
    bh_ledger_process_gone(l, 12345);
    CHECK_EQ(held(l), 8 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 1);
    CHECK(!bh_ledger_check(l));
}

TEST(a_handle_that_is_taken_lasts_as_long_as_anybody_claims_it)
{
    LEDGER l = two_clients(100 * MIB);
    CHECK(bh_ledger_client(l, PID_A, FILE_A, A));  /* told twice */
    CHECK(!bh_ledger_client(l, PID_B, FILE_B, A)); /* a lie, or late news of the end of the first */
    tell(l, A, DEVICE, 2, 0, MIB);
    bh_ledger_file_closed(l, FILE_A);
    CHECK_EQ(held(l), MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 2);
    bh_ledger_process_gone(l, PID_B);
    CHECK_EQ(held(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, 0);
    CHECK(!bh_ledger_check(l));
}

TEST(a_file_that_a_fork_kept_keeps_its_clients)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, MIB);
    CHECK(bh_ledger_client(l, PID_A + 1, FILE_A, A));
    bh_ledger_process_gone(l, PID_A);
    CHECK_EQ(held(l), MIB);
    bh_ledger_file_closed(l, FILE_A);
    CHECK_EQ(held(l), 0);
    CHECK(!bh_ledger_check(l));
}

TEST(managed_memory_counts_on_each_gpu_that_was_seen)
{
    LEDGER l = two_clients(10 * MIB);
    tell(l, A, A, 3, 1, 4 * MIB);
    CHECK(!bh_ledger_map(l, PID_A, 7 * MIB)); /* room on GPU 0 only */
    CHECK(bh_ledger_map(l, PID_A, 5 * MIB) && bh_ledger_map(l, PID_B, 0));
    CHECK_EQ(bh_ledger_sum(l, 0).managed, 5 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 1).used, 9 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 1).peak, 9 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 2).managed, 0);
    CHECK(!bh_ledger_reserve(l, 2, 6 * MIB)); /* seen from here on */
    CHECK_EQ(bh_ledger_sum(l, 2).peak, 5 * MIB);
    bh_ledger_unmap(l, PID_B, MIB); /* not this one's */
    bh_ledger_unmap(l, PID_A, 2 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).managed, 3 * MIB);
    bh_ledger_unmap(l, PID_A, 100 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).managed, 0);
    CHECK(bh_ledger_map(l, 99, 2 * MIB)); /* a process without a client */
    bh_ledger_counted(l, 0, 2 * MIB);
    CHECK_EQ(used(l), 4 * MIB); /* the driver's count does not have it */
    CHECK(!bh_ledger_check(l));
    bh_ledger_process_gone(l, 99);
    CHECK_EQ(used(l), 2 * MIB);
    CHECK(!bh_ledger_check(l));
}

TEST(before_any_gpu_is_seen_managed_memory_has_the_cap_of_one)
{
    LEDGER l = bh_ledger_new(10 * MIB);
    CHECK(bh_ledger_map(l, PID_A, 10 * MIB) && !bh_ledger_map(l, PID_A, 1));
    CHECK(!bh_ledger_reserve(l, 0, 1));
    CHECK_EQ(used(l), 10 * MIB);
    CHECK(!bh_ledger_check(l));
}

TEST(what_the_driver_counts_beyond_the_tree_is_overhead)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, 10 * MIB);
    bh_ledger_counted(l, 0, 13 * MIB);
    bh_ledger_counted(l, 40, 13 * MIB); /* no such GPU */
    struct bh_ledger_sum s = bh_ledger_sum(l, 0);
    CHECK_EQ(s.overhead, 3 * MIB);
    CHECK_EQ(s.used, 13 * MIB);
    /* granted between two counts: neither hidden by the overhead nor counted twice */
    tell(l, A, DEVICE, 3, 0, 20 * MIB);
    CHECK_EQ(used(l), 33 * MIB);
    bh_ledger_counted(l, 0, 33 * MIB);
    CHECK_EQ(used(l), 33 * MIB);
    /* freed between two counts: the overhead stays */
    bh_ledger_drop(l, A, 2);
    CHECK_EQ(bh_ledger_sum(l, 0).overhead, 3 * MIB);
    CHECK_EQ(used(l), 23 * MIB);
    bh_ledger_counted(l, 0, 5 * MIB); /* less than is held: what is held counts */
    CHECK_EQ(used(l), 20 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).overhead, 0);
    CHECK(!bh_ledger_reserve(l, 0, 81 * MIB) && bh_ledger_reserve(l, 0, 80 * MIB));
    CHECK(!bh_ledger_check(l));
}

TEST(news_of_an_end_after_a_count_hides_no_overhead)
{
    LEDGER l = two_clients(100 * MIB);
    tell(l, A, DEVICE, 2, 0, 10 * MIB);
    tell(l, B, DEVICE, 2, 0, 20 * MIB);
    bh_ledger_counted(l, 0, 38 * MIB); /* 4 of overhead each */
    /* A is gone in the driver, which is counted before the ledger hears of it. */
    bh_ledger_counted(l, 0, 24 * MIB);
    CHECK_EQ(used(l), 30 * MIB);
    bh_ledger_process_gone(l, PID_A);
    CHECK_EQ(held(l), 20 * MIB);
    CHECK_EQ(used(l), 24 * MIB); /* not 20 */
    CHECK_EQ(bh_ledger_sum(l, 0).overhead, 4 * MIB);
}

TEST(a_grant_in_flight_during_a_count_is_too_high_and_never_too_low)
{
    LEDGER l = two_clients(100 * MIB);
    struct bh_ledger_object o = {
        .client = A, .parent = DEVICE, .object = 2, .bytes = 8 * MIB, .reserved = 8 * MIB};
    bh_ledger_counted(l, 0, 3 * MIB);
    CHECK(bh_ledger_reserve(l, 0, 8 * MIB));
    bh_ledger_counted(l, 0, 11 * MIB); /* the driver has made it, and nobody told the ledger */
    CHECK_EQ(used(l), 19 * MIB);
    bh_ledger_object(l, &o);
    CHECK_EQ(used(l), 19 * MIB);
    bh_ledger_counted(l, 0, 11 * MIB);
    CHECK_EQ(used(l), 11 * MIB);
    CHECK(bh_ledger_reserve(l, 0, 8 * MIB));
    bh_ledger_counted(l, 0, 11 * MIB); /* not made yet */
    o.object = 3;
    bh_ledger_object(l, &o);
    CHECK_EQ(used(l), 19 * MIB);
}

TEST(sizes_saturate)
{
    LEDGER l = two_clients(UINT64_MAX);
    tell(l, A, DEVICE, 2, 0, UINT64_MAX);
    tell(l, A, DEVICE, 3, 0, UINT64_MAX);
    tell(l, A, DEVICE, 4, 0, MIB);
    uint64_t one = bh_ledger_sum(l, 0).held / 2;
    CHECK(one >= UINT64_C(1) << 43);
    bh_ledger_drop(l, A, 2);
    bh_ledger_drop(l, A, 4);
    CHECK_EQ(held(l), UINT64_C(1) << 43); /* the other one is still there */
    bh_ledger_counted(l, 0, UINT64_MAX);
    CHECK(!bh_ledger_reserve(l, 0, 1) && !bh_ledger_map(l, PID_A, 1));
    tell(l, A, DEVICE, 5, 0, MIB);
    CHECK(used(l) == UINT64_MAX);
    CHECK(bh_ledger_map(l, PID_A, 0) && bh_ledger_reserve(l, 1, UINT64_MAX) && !bh_ledger_reserve(l, 1, 1));
    CHECK(!bh_ledger_check(l));
}

TEST(a_full_ledger_refuses_and_still_counts)
{
    enum { MAX = 1 << 20 };
    LEDGER l = two_clients(UINT64_MAX);
    for (uint32_t i = 2; i < MAX; i++)
        tell(l, A, DEVICE, i, UINT32_MAX, 0);
    CHECK_EQ(bh_ledger_sum(l, 0).objects, MAX);
    CHECK(!bh_ledger_reserve(l, 0, 1));
    CHECK_EQ(bh_ledger_sum(l, 0).full, 1);
    tell(l, B, DEVICE, 2, UINT32_MAX, 3 * MIB);
    CHECK_EQ(held(l), 3 * MIB);
    tell(l, 300, 301, 2, 0, MIB); /* no room for its client either */
    CHECK_EQ(held(l), 4 * MIB);
    CHECK_EQ(bh_ledger_sum(l, 0).objects, MAX);
    bh_ledger_drop(l, B, 2); /* never kept: stays counted */
    bh_ledger_drop(l, A, MAX - 1);
    tell(l, A, DEVICE, 2, UINT32_MAX, MIB); /* memory where there was none */
    CHECK(bh_ledger_reserve(l, 0, 1));
    dup(l, B, 3, A, 2);
    dup(l, B, 4, A, 2); /* no room: its first name may go before it does */
    dup(l, B, 5, A, 777777777);
    CHECK_EQ(held(l), 11 * MIB);
    CHECK(!bh_ledger_check(l));
    bh_ledger_process_gone(l, PID_A);
    bh_ledger_process_gone(l, PID_B);
    bh_ledger_counted(l, 0, 0);
    bh_ledger_give_back(l, 0, 1);
    CHECK_EQ(used(l), 0);
    CHECK_EQ(bh_ledger_sum(l, 0).objects, 0);
    CHECK(!bh_ledger_check(l));
}

TEST(there_is_room_for_so_many_clients)
{
    enum { MAX = 1 << 16 };
    LEDGER l = bh_ledger_new(UINT64_MAX);
    for (uint32_t i = 1; i < MAX; i++)
        CHECK(bh_ledger_client(l, i, i, i));
    CHECK(bh_ledger_client(l, 1, MAX, MAX) && !bh_ledger_client(l, 1, MAX, MAX + 1));
    CHECK(!bh_ledger_client(l, 9999999, 1, 1)); /* a claim takes room, too */
    CHECK(!bh_ledger_reserve(l, 0, 1));
    CHECK_EQ(bh_ledger_sum(l, 0).full, 3);
    tell(l, MAX + 1, MAX + 1, 2, 0, MIB);
    CHECK_EQ(held(l), MIB);
    bh_ledger_process_gone(l, 1);
    CHECK_EQ(bh_ledger_sum(l, 0).clients, MAX - 2);
    CHECK(bh_ledger_reserve(l, 0, 1));
    CHECK(bh_ledger_map(l, MAX, 1) && bh_ledger_map(l, MAX + 1, 1)); /* a process takes room, too */
    CHECK(!bh_ledger_map(l, MAX + 2, 1) && !bh_ledger_client(l, MAX + 2, 7, 7777777));
    CHECK(!bh_ledger_check(l));
}

TEST(a_seed_is_for_an_empty_ledger)
{
    LEDGER l = bh_ledger_new(10 * MIB);
    bh_ledger_seed(l, 12345);
    CHECK(bh_ledger_client(l, PID_A, FILE_A, A));
    tell(l, A, A, 2, 0, MIB);
    bh_ledger_seed(l, 54321); /* too late: whoever is in must be found */
    CHECK_EQ(bh_ledger_gpu_of(l, A, 2), 0);
    bh_ledger_drop(l, A, 2);
    CHECK_EQ(held(l), 0);
    bh_ledger_free(NULL);
}

TEST_MAIN
