/* SPDX-License-Identifier: Apache-2.0 */
/* check_state.c - opens a node's state beside its daemon and says what of it is not as it must be. */
#include "store/state.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    const struct bh_store_options options = {.mode = BH_STORE_READ};
    struct bh_store *store = NULL;
    struct bh_err err = {0};
    struct bh_buf words;
    uint32_t broken = 0;
    if (argc != 2)
        return 2;
    bh_buf_init(&words, 1 << 20);
    int rc = bh_store_open(argv[1], &options, &store, &err);
    if (rc == BH_OK)
        rc = bh_store_check(store, &words, &broken, &err);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    if (words.n)
        (void)fwrite(words.at, 1, words.n, stdout);
    bh_store_close(store);
    bh_buf_fini(&words);
    return rc < 0 || broken ? 1 : 0;
}
