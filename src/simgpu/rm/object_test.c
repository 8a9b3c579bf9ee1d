/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

TEST(a_client_is_its_files)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t event = 0, second = fx_open(rm, &fx_user), other = fx_open(rm, &fx_other);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_alloc(rm, other, &fx_other, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0),
             RM_INVALID_CLIENT);
    CHECK_EQ(fx_alloc(rm, other, &fx_admin, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0),
             RM_INVALID_CLIENT);
    /* whoever holds the file is accepted, as is another file of the same process */
    CHECK_EQ(fx_alloc(rm, t.file, &fx_admin, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0), RM_OK);
    event = 0;
    CHECK_EQ(fx_alloc(rm, second, &fx_user, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

/* A process is its pid and when it began, and its user; what is not known is nobody's. */
TEST(only_files_of_one_process_are_tied)
{
    static const struct {
        struct bh_sim_caller a, b;
        uint32_t status;
    } pairs[] = {
        {{.pid = 7, .uid = 5, .start = 9}, {.pid = 7, .uid = 5, .start = 9}, RM_OK},
        {{.pid = 0, .uid = 5, .start = 9}, {.pid = 0, .uid = 5, .start = 9}, RM_INVALID_CLIENT},
        {{.pid = 7, .uid = 5}, {.pid = 7, .uid = 5}, RM_INVALID_CLIENT},
        {{.pid = 7, .uid = 5, .start = 9}, {.pid = 7, .uid = 5, .start = 10}, RM_INVALID_CLIENT},
        {{.pid = 7, .uid = 5, .start = 9}, {.pid = 7, .uid = 6, .start = 9}, RM_INVALID_CLIENT},
        {{.pid = 7, .uid = 5, .start = 9}, {.pid = 8, .uid = 5, .start = 9}, RM_INVALID_CLIENT},
    };
    for (size_t i = 0; i < BH_COUNT_OF(pairs); i++) {
        struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
        struct fx_tenant t;
        uint32_t event = 0, other = fx_open(rm, &pairs[i].b);
        CHECK_EQ(fx_tenant(rm, &pairs[i].a, 0, &t), RM_OK);
        CHECK_EQ(fx_alloc(rm, other, &pairs[i].b, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0),
                 pairs[i].status);
        /* whoever presents the file itself may, whoever it is */
        event = 0;
        CHECK_EQ(fx_alloc(rm, t.file, &pairs[i].b, t.client, t.device, &event, RM_CLASS_EVENT, NULL, 0),
                 RM_OK);
        bh_sim_rm_free(rm);
    }
}

TEST(handles_are_chosen_or_given_once)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t a = 0, b = 0x77, again = 0x77, client = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_EVENT, &a), RM_OK);
    CHECK(a != 0 && a != t.device && a != t.subdevice);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_EVENT, &b), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_EVENT, &again), RM_INSERT_DUPLICATE_NAME);
    again = t.client;
    CHECK_EQ(fx_alloc(rm, t.file, t.who, 0, 0, &again, RM_CLASS_CLIENT, NULL, 0), RM_INSERT_DUPLICATE_NAME);
    CHECK_EQ(fx_alloc(rm, t.file, t.who, 0, 0, &client, RM_CLASS_ROOT, NULL, 0), RM_OK);
    CHECK(client != t.client);
    CHECK_EQ(bh_sim_rm_held(rm).clients, 2);
    bh_sim_rm_free(rm);
}

TEST(freeing_an_object_frees_the_tree_below)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint32_t group = 0, channel = 0, compute = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK_EQ(fx_make(rm, &t, channel, 0xcbc0, &compute), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).objects, 6);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, group), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).objects, 3);
    CHECK_EQ(bh_sim_rm_held(rm).channels, 0);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, channel), RM_OK); /* gone already: as on the card */
    CHECK_EQ(bh_sim_rm_held(rm).objects, 3);
    CHECK_EQ(fx_free(rm, t.file, t.who, 0xdead, channel), RM_INVALID_CLIENT);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, t.client), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).clients, 0);
    CHECK_EQ(bh_sim_rm_held(rm).bytes, 0);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

/* Plain objects may hang below each other, so a tenant could ask for any depth. */
TEST(a_tree_has_a_bounded_depth)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    uint32_t parent = t.device, status = RM_OK, made = 0;
    for (; status == RM_OK && made < 100; made++) {
        uint32_t handle = 0;
        status = fx_make(rm, &t, parent, RM_CLASS_EVENT, &handle);
        parent = handle;
    }
    CHECK_EQ(status, RM_INSUFFICIENT_RESOURCES);
    CHECK(made > 4 && made < 100);
    CHECK_EQ(fx_free(rm, t.file, t.who, t.client, t.device), RM_OK);
    CHECK_EQ(bh_sim_rm_held(rm).objects, 1);
    bh_sim_rm_free(rm);
}

TEST(clients_are_limited_and_come_back)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    uint32_t file = fx_open(rm, &fx_user), n = 0, client = 0;
    for (; fx_alloc(rm, file, &fx_user, 0, 0, &client, RM_CLASS_CLIENT, NULL, 0) == RM_OK && n < 100000;
         client = 0)
        n++;
    CHECK_EQ(n, 65536);
    CHECK_EQ(fx_alloc(rm, file, &fx_user, 0, 0, &client, RM_CLASS_CLIENT, NULL, 0),
             RM_INSUFFICIENT_RESOURCES);
    bh_sim_rm_close(rm, file);
    CHECK(fx_nothing_held(rm));
    file = fx_open(rm, &fx_user);
    CHECK_EQ(fx_alloc(rm, file, &fx_user, 0, 0, &client, RM_CLASS_CLIENT, NULL, 0), RM_OK);
    bh_sim_rm_free(rm);
}

TEST_MAIN
