/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_spec.h - somebody else's config.json, and the state that a runtime tells its hooks: only what we must know of them.
 *
 * Go's JSON takes a key in any case, and the last of two; C's takes it as it is written. A text that the two
 * would read differently is refused, so that what is judged here is what the runtime does.
 */
#ifndef BH_HOST_BUNDLE_SPEC_H
#define BH_HOST_BUNDLE_SPEC_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_SPEC_MAX = 16 << 20, /* of a config.json */
    BH_SPEC_STATE_MAX = 1 << 20,
    BH_SPEC_TEXT_MAX = 4096,
};

struct bh_spec_state {
    uint32_t pid; /* 0: not said */
    char id[256];
    char bundle[BH_SPEC_TEXT_MAX];
};
int bh_spec_read_state(const char *text, size_t n, struct bh_spec_state *ret, struct bh_err *err) BH_MUST_USE;

/* A part of a text, by offsets; from == to: there is none. */
struct bh_spec_part {
    size_t from, to;
};
/* What of a config.json matters to a lease. */
struct bh_spec {
    struct bh_spec_part seccomp; /* the value of linux.seccomp, or of nothing */
    size_t linux_at;             /* right behind the brace that opens `linux`; 0: there is no such object */
    bool linux_is_empty;
    bool allows_all_devices; /* as privileged containers do */
    bool has_sys_admin;      /* in any of its sets of capabilities */
    /* The path of the lease's profile, as the hook of its CDI file names it; "": no lease. */
    char profile[BH_SPEC_TEXT_MAX];
};
int bh_spec_read(const char *text, size_t n, struct bh_spec *ret, struct bh_err *err) BH_MUST_USE;
/* The same text with `profile` (a JSON value) as linux.seccomp. */
int bh_spec_put_seccomp(const char *text, size_t n, const struct bh_spec *spec, const char *profile,
                        struct bh_buf *out, struct bh_err *err) BH_MUST_USE;
/*
 * Do two seccomp objects say the same? Order of keys and of rules, blanks, and lists that are empty or absent do not matter;
 * everything else does. BH_REFUSED says what differs.
 */
int bh_spec_same_seccomp(const char *want, size_t n_want, const char *have, size_t n_have,
                         struct bh_err *err) BH_MUST_USE;

#endif
