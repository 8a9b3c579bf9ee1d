/* SPDX-License-Identifier: Apache-2.0 */
/* console_test.c - the table that tools/embed wrote: what is found in it, and that it stays small. */
#include "api/console.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

#include <string.h>

enum { BYTES_MAX = 100 * 1000 }; /* of all files together, as they are sent */

TEST(the_page_is_at_the_root)
{
    const struct bh_console_file *f = bh_console_find("GET", "/");
    CHECK(f != NULL);
    CHECK_STR(f->type, "text/html; charset=utf-8");
    CHECK(f == bh_console_find("HEAD", "/"));
    CHECK(bh_console_find("GET", "/console/main.js") != NULL);
    CHECK(bh_console_find("GET", "/console/style.css") != NULL);
}

TEST(nothing_else_is_found)
{
    static const char *const paths[] = {"",
                                        "/console",
                                        "/console/",
                                        "/console/../etc/passwd",
                                        "/index.html",
                                        "/console/index.html",
                                        "/console/meson.build",
                                        "/v1/status"};
    for (size_t i = 0; i < BH_COUNT_OF(paths); i++)
        CHECK(bh_console_find("GET", paths[i]) == NULL);
    CHECK(bh_console_find("POST", "/") == NULL);
    CHECK(bh_console_find("DELETE", "/console/main.js") == NULL);
}

TEST(files_are_compressed_and_small)
{
    size_t bytes = 0;
    for (size_t i = 0; i < bh_console_file_count; i++) {
        const struct bh_console_file *f = &bh_console_files[i];
        CHECK(f->n > 20 && f->at[0] == 0x1f && f->at[1] == 0x8b);
        CHECK_EQ(memcmp(f->at + 4, "\0\0\0\0", 4), 0); /* no time in it: the same every time it is built */
        CHECK(bh_str_starts(f->etag, "\"") && bh_str_ends(f->etag, "\""));
        CHECK_EQ(strlen(f->etag), 34);
        bytes += f->n;
    }
    CHECK(bytes < BYTES_MAX);
}

TEST_MAIN
