/* SPDX-License-Identifier: Apache-2.0 */
/* filter_fixture.h - classic BPF, run by hand: what the kernel would make of a filter. */
#ifndef BH_HOST_FILTER_FIXTURE_H
#define BH_HOST_FILTER_FIXTURE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BAD_PROGRAM = 0x12345678 };

/* Classic BPF, as much of it as a filter may have; anything else, or running off the end, is BAD_PROGRAM. */
static inline uint32_t interpret(const struct sock_filter *p, size_t n, const struct seccomp_data *d)
{
    uint32_t a = 0;
    for (size_t pc = 0; pc < n; pc++) {
        const uint32_t k = p[pc].k;
        bool yes = false;
        switch (p[pc].code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (k % 4 || k + 4 > sizeof(*d))
                return BAD_PROGRAM;
            memcpy(&a, (const char *)d + k, sizeof(a));
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= k;
            continue;
        case BPF_RET | BPF_K:
            return k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & k) != 0;
            break;
        default:
            return BAD_PROGRAM;
        }
        pc += yes ? p[pc].jt : p[pc].jf;
    }
    return BAD_PROGRAM;
}

#endif
