/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

static int call(struct bh_sim_rm *rm, const struct fx_tenant *t, uint32_t number, void *arg, size_t n)
{
    return bh_sim_rm_ioctl(rm, t->file, t->who, RM_IOC(number, n), arg, n, NULL, 0);
}

TEST(numbers_and_sizes_that_are_unknown_are_refused)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint8_t arg[64] = {0};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(call(rm, &t, RM_XFER_CMD, arg, 16), -EINVAL);
    CHECK_EQ(call(rm, &t, RM_FREE, arg, 12), -EINVAL);
    CHECK_EQ(call(rm, &t, 0x01, arg, 16), -EINVAL);
    /* the command says one size and another came */
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_FREE, 16), arg, 12, NULL, 0), -EINVAL);
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_FREE, 16), NULL, 16, NULL, 0), -EINVAL);
    /* the type byte is not looked at */
    struct rm_free f = {.client = t.client, .object = t.subdevice, .status = 9};
    CHECK_EQ(bh_sim_rm_ioctl(rm, t.file, t.who, (RM_IOC(RM_FREE, 16) & ~0xff00u) | 0x5500, &f, 16, NULL, 0),
             0);
    CHECK_EQ(f.status, RM_OK);
    bh_sim_rm_free(rm);
}

TEST(the_version_is_compared)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    struct {
        uint32_t what, reply;
        char text[64];
    } v = {.text = "580.159.04"};
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(call(rm, &t, RM_CHECK_VERSION, &v, sizeof(v)), 0);
    CHECK_EQ(v.reply, 1);
    memcpy(v.text, "535.0", 6);
    CHECK_EQ(call(rm, &t, RM_CHECK_VERSION, &v, sizeof(v)), -EINVAL);
    CHECK_EQ(v.reply, 0);
    CHECK_STR(v.text, "580.159.04");
    v.what = '2'; /* only asks */
    memset(v.text, 'x', sizeof(v.text));
    CHECK_EQ(call(rm, &t, RM_CHECK_VERSION, &v, sizeof(v)), 0);
    CHECK_STR(v.text, "580.159.04");
    bh_sim_rm_free(rm);
}

TEST(cards_are_listed_as_far_as_there_is_room)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 3);
    struct fx_tenant t;
    uint8_t cards[72 * 2 + 10];
    uint32_t minor;
    memset(cards, 0xee, sizeof(cards));
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(call(rm, &t, RM_CARD_INFO, cards, sizeof(cards)), 0);
    memcpy(&minor, cards + 72 + 56, sizeof(minor));
    CHECK(cards[0] == 1 && cards[72] == 1 && minor == 1);
    CHECK(cards[72 + 8] == 0x19 && cards[144] == 0);
    CHECK_STR((char *)cards + 72 + 60, "nvidia1");
    bh_sim_rm_free(rm);
}

TEST(mappings_name_what_is_there)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = BH_MIB;
    uint32_t memory = 0;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    struct rm_map_memory m = {
        .client = t.client, .device = t.device, .memory = memory, .length = bytes, .status = 9};
    CHECK_EQ(call(rm, &t, RM_MAP_MEMORY, &m, sizeof(m)), 0);
    CHECK_EQ(m.status, RM_OK);
    m.offset = 1;
    CHECK_EQ(call(rm, &t, RM_MAP_MEMORY, &m, sizeof(m)), 0);
    CHECK_EQ(m.status, RM_INVALID_LIMIT);
    m.memory = 0xbad;
    CHECK_EQ(call(rm, &t, RM_MAP_MEMORY, &m, sizeof(m)), 0);
    CHECK_EQ(m.status, RM_OBJECT_NOT_FOUND);
    uint32_t dma[16] = {t.client, t.device, 0, memory}, back[8] = {t.client, t.device, memory},
             event[4] = {0xbad};
    dma[14] = back[6] = 9;
    CHECK_EQ(call(rm, &t, RM_MAP_MEMORY_DMA, dma, sizeof(dma)), 0);
    CHECK_EQ(dma[14], RM_OK);
    CHECK_EQ(call(rm, &t, RM_UNMAP_MEMORY, back, sizeof(back)), 0);
    CHECK_EQ(back[6], RM_OK);
    CHECK_EQ(call(rm, &t, RM_ALLOC_OS_EVENT, event, sizeof(event)), 0);
    CHECK_EQ(event[3], RM_INVALID_CLIENT);
    uint32_t fd = 5, waited[2] = {9, 9};
    uint64_t block = 0;
    CHECK_EQ(call(rm, &t, RM_WAIT_OPEN_COMPLETE, waited, sizeof(waited)), 0);
    CHECK(waited[0] == 0 && waited[1] == 0);
    CHECK_EQ(call(rm, &t, RM_SYS_PARAMS, &block, sizeof(block)), 0);
    CHECK_EQ(block, 128 * BH_MIB);
    CHECK_EQ(call(rm, &t, RM_REGISTER_FD, &fd, sizeof(fd)), 0);
    bh_sim_rm_free(rm);
}

TEST_MAIN
