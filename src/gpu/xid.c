/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/xid.h"

#include "base/mem.h"

static const struct bh_xid xids[] = {
#define XID(number, fault, action, words) {number, BH_XID_##fault, BH_XID_##action, words},
#include "gpu/xids.def"
#undef XID
};

const struct bh_xid *bh_xid_find(uint64_t number)
{
    for (size_t i = 0; i < BH_COUNT_OF(xids); i++)
        if (xids[i].number == number)
            return &xids[i];
    return NULL;
}

const char *bh_xid_fault_words(const struct bh_xid *x)
{
    static const char *const words[] = {[BH_XID_APPLICATION] = "the application's fault",
                                        [BH_XID_HARDWARE] = "the hardware's fault",
                                        [BH_XID_DRIVER] = "the driver's fault"};
    return words[x->fault];
}

const char *bh_xid_action_words(const struct bh_xid *x)
{
    static const char *const words[] = {[BH_XID_RESTART] = "restart the tenant's work",
                                        [BH_XID_WATCH] = "watch it",
                                        [BH_XID_DRAIN] = "drain the GPU and reset it",
                                        [BH_XID_REBOOT] = "drain and reboot the node",
                                        [BH_XID_REPLACE] = "drain the GPU and replace the card"};
    return words[x->action];
}
