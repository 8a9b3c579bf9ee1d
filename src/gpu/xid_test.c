/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/xid.h"

#include "base/mem.h"
#include "base/test.h"

static const uint32_t numbers[] = {
#define XID(number, fault, action, reach, words) number,
#include "gpu/xids.def"
#undef XID
};

TEST(each_number_stands_once_and_in_order)
{
    for (size_t i = 0; i < BH_COUNT_OF(numbers); i++) {
        const struct bh_xid *x = bh_xid_find(numbers[i]);
        CHECK(x && x->number == numbers[i] && *x->words);
        CHECK(bh_xid_fault_words(x) && bh_xid_action_words(x));
        CHECK(i == 0 || numbers[i] > numbers[i - 1]);
    }
}

TEST(whose_fault_and_what_to_do)
{
    const struct bh_xid *x = bh_xid_find(31);
    CHECK_STR(bh_xid_fault_words(x), "the application's fault");
    CHECK_STR(bh_xid_action_words(x), "restart the tenant's work");
    x = bh_xid_find(64);
    CHECK_STR(bh_xid_fault_words(x), "the hardware's fault");
    CHECK_STR(bh_xid_action_words(x), "drain the GPU and replace the card");
    CHECK_STR(bh_xid_fault_words(bh_xid_find(119)), "the driver's fault");
    CHECK_STR(bh_xid_action_words(bh_xid_find(79)), "drain and reboot the node");
    CHECK_STR(bh_xid_action_words(bh_xid_find(92)), "watch it");
    CHECK_STR(bh_xid_action_words(bh_xid_find(95)), "drain the GPU and reset it");
    CHECK(!bh_xid_find(0) && !bh_xid_find(UINT64_C(1) << 40) &&
          !bh_xid_find(UINT64_C(31) | UINT64_C(1) << 32));
}

/* What a tenant's own work did ends that alone; what the silicon did is the card's. */
TEST(whom_it_reaches)
{
    static const struct {
        uint32_t number;
        uint8_t reach;
    } table[] = {
        {13, BH_REACH_LEASE}, {31, BH_REACH_LEASE}, {43, BH_REACH_NOTE}, {45, BH_REACH_NOTE},
        {48, BH_REACH_ALL},   {63, BH_REACH_CARD},  {64, BH_REACH_CARD}, {74, BH_REACH_CARD},
        {79, BH_REACH_ALL},   {92, BH_REACH_NOTE},  {94, BH_REACH_HIT},  {95, BH_REACH_ALL},
        {119, BH_REACH_ALL},  {120, BH_REACH_ALL},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        CHECK_EQ(bh_xid_find(table[i].number)->reach, table[i].reach);
    for (size_t i = 0; i < BH_COUNT_OF(numbers); i++) {
        const struct bh_xid *x = bh_xid_find(numbers[i]);
        CHECK(x->reach != BH_REACH_NONE);
        CHECK(x->fault != BH_XID_APPLICATION || x->reach <= BH_REACH_LEASE);
        CHECK(x->fault != BH_XID_HARDWARE || x->reach != BH_REACH_LEASE);
    }
}

TEST(lines_of_the_kernels_log)
{
    static const struct {
        const char *text;
        bool is;
        uint32_t domain, bus, device, number, pid;
    } table[] = {
        {"4,1234,99,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=python, Ch 00000008", true, 0, 0x18, 0,
         31, 4711},
        {"NVRM: Xid (PCI:0001:af:00.0): 13, pid='52', name=x", true, 1, 0xaf, 0, 13, 52},
        {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", true,
         0, 0x3b, 0, 79, 0},
        {"NVRM: Xid (PCI:0000:3b:00): 48", true, 0, 0x3b, 0, 48, 0},
        {"NVRM: Xid (PCI:0000:3b:00): , pid=1", false, 0, 0, 0, 0, 0},
        {"NVRM: Xid (PCI:0000:3b:00.): 31, pid=1", false, 0, 0, 0, 0, 0},
        {"NVRM: Xid (PCI:99999999999:3b:00): 31", false, 0, 0, 0, 0, 0},
        {"NVRM: Xid (PCI:0000:", false, 0, 0, 0, 0, 0},
        {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=pid=77", true, 0, 0x3b, 0, 79, 0},
        {"4,1,1,-;evil[7]: NVRM: Xid (PCI:0000:3b:00): 31, pid=1", false, 0, 0, 0, 0, 0},
        {"usb 1-1: new device", false, 0, 0, 0, 0, 0},
        {"", false, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        struct bh_xid_line l;
        CHECK_EQ(bh_xid_line(table[i].text, strlen(table[i].text), &l), table[i].is);
        if (table[i].is)
            CHECK(l.domain == table[i].domain && l.bus == table[i].bus && l.device == table[i].device &&
                  l.number == table[i].number && l.pid == table[i].pid);
    }
}

TEST_MAIN
