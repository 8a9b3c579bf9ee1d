/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/bundle.h"

#include "base/scratch.h"
#include "base/test.h"

TEST(files_of_a_bundle)
{
    char at[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 32];
    struct bh_err err = {0};
    char *text = NULL;
    size_t n = 0;
    mode_t mode = 0;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    CHECK_EQ(bh_oci_read_config(at, &text, &n, &mode, &err), BH_NOT_FOUND);
    CHECK(bh_scratch_put(at, "config.json", "{}\n"));
    (void)snprintf(path, sizeof(path), "%s/config.json", at);
    CHECK(chmod(path, 0640) == 0);
    CHECK_EQ(bh_oci_read_config(at, &text, &n, &mode, &err), BH_OK);
    CHECK(n == 3 && mode == 0640);
    CHECK_STR(text, "{}\n");
    free(text);
    CHECK_EQ(bh_oci_read_file(path, 2, &text, &n, &err), BH_TOO_LARGE);
    CHECK_EQ(bh_oci_read_file(at, 100, &text, &n, &err), BH_INVALID); /* a folder */
    (void)snprintf(path, sizeof(path), "%s/pipe", at);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_EQ(bh_oci_read_file(path, 100, &text, &n, &err), BH_INVALID); /* and nobody waits */
    bh_scratch_remove(at);
}

TEST_MAIN
