/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a state, a config.json or a seccomp profile. The readers end and stay inside them. A config.json that is right
 * and gets a profile is right afterwards, and the profile in it is the one that was put in. A profile is the same as itself.
 */
#include "base/mem.h"
#include "host/bundle_spec.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_put(const char *text, size_t n, const struct bh_spec *spec)
{
    static const char profile[] = "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"/s\"}";
    struct bh_buf out;
    struct bh_spec again;
    bh_buf_init(&out, n + sizeof(profile) + 64);
    if (bh_spec_put_seccomp(text, n, spec, profile, &out, NULL) == BH_OK) {
        if (bh_spec_read(out.at, out.n, &again, NULL) < 0)
            abort();
        if (bh_spec_same_seccomp(profile, sizeof(profile) - 1, out.at + again.seccomp.from,
                                 again.seccomp.to - again.seccomp.from, NULL) < 0)
            abort();
        if (again.has_sys_admin != spec->has_sys_admin ||
            again.allows_all_devices != spec->allows_all_devices)
            abort();
    } else if (spec->linux_at)
        abort();
    bh_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Exactly as long as it is: a reader that looks one byte too far is seen. */
    char *text = bh_alloc(size ? size : 1, 1);
    struct bh_spec_state state;
    struct bh_spec *spec = bh_alloc(1, sizeof(*spec));
    struct bh_err err = {0};
    if (size)
        memcpy(text, data, size);
    if (bh_spec_read_state(text, size, &state, &err) == BH_OK && (state.bundle[0] != '/' || !*state.id))
        abort();
    if (bh_spec_read(text, size, spec, &err) == BH_OK) {
        if (spec->seccomp.from > spec->seccomp.to || spec->seccomp.to > size || spec->linux_at > size)
            abort();
        check_put(text, size, spec);
        const size_t n = spec->seccomp.to - spec->seccomp.from;
        const char *have = text + spec->seccomp.from;
        err = (struct bh_err){0};
        if (n && bh_spec_same_seccomp(have, n, have, n, &err) < 0 && !*err.msg)
            abort();
    }
    free(spec);
    free(text);
    return 0;
}
