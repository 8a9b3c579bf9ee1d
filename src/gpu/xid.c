/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/xid.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static const struct bh_xid xids[] = {
#define XID(number, fault, action, reach, words) \
    {number, BH_XID_##fault, BH_XID_##action, BH_REACH_##reach, words},
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

/* ---- the kernel's log ---- */

struct scan {
    const char *at, *end;
};

static bool take_word(struct scan *s, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static int digit_of(char c, int base)
{
    const int v = bh_is_digit(c)         ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : base;
    return v < base ? v : -1;
}

static bool take_number(struct scan *s, int base, uint32_t *ret)
{
    const char *from = s->at;
    uint64_t v = 0;
    for (; s->at < s->end && digit_of(*s->at, base) >= 0; s->at++) {
        v = v * (uint64_t)base + (uint64_t)digit_of(*s->at, base);
        if (v > UINT32_MAX)
            return false;
    }
    *ret = (uint32_t)v;
    return s->at > from;
}

/* Older drivers quote the process: pid='1234'. Only the first is the driver's: its name follows, and that is the tenant's choice. */
static uint32_t take_pid(struct scan *s)
{
    uint32_t pid;
    if (!take_word(s, ", pid="))
        return 0;
    (void)take_word(s, "'");
    return take_number(s, 10, &pid) ? pid : 0;
}

bool bh_xid_line(const char *text, size_t n, struct bh_xid_line *ret)
{
    const char *at = memmem(text, n, "NVRM: Xid (PCI:", strlen("NVRM: Xid (PCI:"));
    struct scan s = {at, text + n};
    *ret = (struct bh_xid_line){0};
    if (!at || (at > text && at[-1] != ';')) /* else it is a part of what somebody else says */
        return false;
    if (!take_word(&s, "NVRM: Xid (PCI:") || !take_number(&s, 16, &ret->domain) || !take_word(&s, ":") ||
        !take_number(&s, 16, &ret->bus) || !take_word(&s, ":") || !take_number(&s, 16, &ret->device))
        return false;
    uint32_t function;
    if (take_word(&s, ".") && !take_number(&s, 16, &function))
        return false;
    if (!take_word(&s, "): ") || !take_number(&s, 10, &ret->number))
        return false;
    ret->pid = take_pid(&s);
    return true;
}
