/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a card's turns and the driver's samples of it (use_book_fixture.h). */
#include "warden/use_book_fixture.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_choice c = {data, size};
    const char *why = play_use(&c);
    if (why) {
        (void)fprintf(stderr, "%s\n", why);
        abort();
    }
    return 0;
}
