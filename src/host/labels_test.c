/* SPDX-License-Identifier: Apache-2.0 */
#include "host/labels.h"

#include "base/mem.h"
#include "base/test.h"

static const char text[] = "# +expiry-time=2030-01-01T00:00:00Z\n"
                           "nvidia.com/gpu.product=NVIDIA-H200\n"
                           "\n"
                           "  nvidia.com/gpu.count=8  \r\n"
                           "nvidia.com/mig.capable\n"
                           "empty=\n"
                           "=no key\n"
                           "two/slashes/here=1\n"
                           "nvidia.com/-x=1\n"
                           "space in=1\n"
                           "bad=val ue\n"
                           "long=0123456789012345678901234567890123456789012345678901234567890123\n"
                           "last=1";

TEST(labels_and_lines_that_are_none)
{
    static const char *const want[][2] = {{"nvidia.com/gpu.product", "NVIDIA-H200"},
                                          {"nvidia.com/gpu.count", "8"},
                                          {"nvidia.com/mig.capable", "true"},
                                          {"empty", ""},
                                          {"last", "1"}};
    struct bh_span key, value;
    size_t pos = 0, bad = 0;
    for (size_t i = 0; i < BH_COUNT_OF(want); i++) {
        CHECK(bh_labels_next(text, &pos, &key, &value, &bad));
        CHECK(key.n == strlen(want[i][0]) && memcmp(key.at, want[i][0], key.n) == 0);
        CHECK(value.n == strlen(want[i][1]) && memcmp(value.at, want[i][1], value.n) == 0);
    }
    CHECK(!bh_labels_next(text, &pos, &key, &value, &bad));
    CHECK_EQ(bad, 6);
    pos = 0;
    CHECK(!bh_labels_next("", &pos, &key, &value, &bad));
}

TEST_MAIN
