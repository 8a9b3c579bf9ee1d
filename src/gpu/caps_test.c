/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/caps.h"

#include "base/mem.h"
#include "base/test.h"

static const char text[] =
    "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
    "gpu1/gi1/access 147\ngpu1/gi2/access 12x\ngpu1/gi3/access 99999999999999999999\ngpu1/gi4/access";

TEST(listed_minors)
{
    uint32_t v = 0;
    CHECK(bh_caps_find(text, 0, 1, UINT32_MAX, &v) && v == 12);
    CHECK(bh_caps_find(text, 0, 1, 0, &v) && v == 13);
    CHECK(bh_caps_find(text, 1, 1, UINT32_MAX, &v) && v == 147);
    CHECK(!bh_caps_find(text, 0, 2, UINT32_MAX, &v));
    CHECK(!bh_caps_find(text, 1, 2, UINT32_MAX, &v) && !bh_caps_find(text, 1, 3, UINT32_MAX, &v));
    CHECK(!bh_caps_find(text, 1, 4, UINT32_MAX, &v) && !bh_caps_find("", 0, 0, 0, &v));
}

TEST(the_numbering_gives_what_the_list_has)
{
    uint32_t v = 0;
    CHECK(bh_caps_number(0, 0, UINT32_MAX, &v) && v == 3);
    CHECK(bh_caps_number(0, 1, UINT32_MAX, &v) && v == 12);
    CHECK(bh_caps_number(0, 1, 0, &v) && v == 13);
    CHECK(bh_caps_number(1, 1, UINT32_MAX, &v) && v == 147);
    CHECK(bh_caps_number(31, 14, 7, &v) && v == 4322); /* one below fabric-imex-mgmt */
    CHECK(!bh_caps_number(32, 0, 0, &v) && !bh_caps_number(0, 15, 0, &v) && !bh_caps_number(0, 0, 8, &v));
}

TEST_MAIN
