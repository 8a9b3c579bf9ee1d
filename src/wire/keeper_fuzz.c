/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_fuzz.c - any bytes as a spec and as an end record: refused, or a spec that says the same when it is written again. */
#include "wire/keeper.h"

#include "base/mem.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_arena arena = {0};
    struct bh_keeper_spec spec, again;
    struct bh_keeper_end end;
    struct bh_buf one, two;
    bh_buf_init(&one, 8 * (size_t)BH_KEEPER_SPEC_MAX);
    bh_buf_init(&two, 8 * (size_t)BH_KEEPER_SPEC_MAX);
    if (bh_keeper_spec_read((const char *)data, size, &arena, &spec, NULL) == BH_OK &&
        bh_keeper_spec_write(&spec, &one, NULL) == BH_OK) {
        if (one.n <= BH_KEEPER_SPEC_MAX &&
            (bh_keeper_spec_read(bh_buf_text(&one), one.n, &arena, &again, NULL) < 0 ||
             bh_keeper_spec_write(&again, &two, NULL) < 0 || one.n != two.n ||
             memcmp(one.at, two.at, one.n) != 0))
            abort();
    }
    if (bh_keeper_end_read((const char *)data, size, &end, NULL) == BH_OK && end.lease == 0)
        abort();
    bh_buf_fini(&one);
    bh_buf_fini(&two);
    bh_arena_fini(&arena);
    return 0;
}
