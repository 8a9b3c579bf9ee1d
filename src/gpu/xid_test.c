/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/xid.h"

#include "base/mem.h"
#include "base/test.h"

static const uint32_t numbers[] = {
#define XID(number, fault, action, words) number,
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

TEST_MAIN
