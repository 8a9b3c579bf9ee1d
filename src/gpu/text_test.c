/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/text.h"

#include "base/mem.h"
#include "base/test.h"

TEST(text_is_made_fit_for_a_line)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out; /* NULL: nothing is left */
    } table[] = {
        {"NVIDIA H200", 96, "NVIDIA H200"},
        {"  \t Tesla \n", 96, "Tesla"},
        {"", 96, NULL},
        {"   ", 96, NULL},
        {"abcdef", 3, "abc"}, /* no end within the buffer */
        {"a\x1b[31mb\nc\x7f", 96, "a?[31mb?c?"},
        {"gr\xc3\xbc\xc3\x9f", 96, "gr\xc3\xbc\xc3\x9f"},
        {"x\xc3", 96, "x?"}, /* cut in the middle */
        {"\xff\xfe", 96, "??"},
        {"a\xc2\x9b", 96, "a??"},          /* a control of one byte, in UTF-8 */
        {"a\xe2\x80\xae z", 96, "a??? z"}, /* turns the line around */
        {"a\xd8\x9c"
         "b",
         96, "a??b"},                    /* U+061C */
        {"a\xe1\xa0\x8e", 96, "a???"},   /* U+180E */
        {"a\xe2\x81\xa0z", 96, "a???z"}, /* U+2060 */
        {"a\xe2\x81\xa4z", 96, "a???z"}, /* U+2064 */
        {"\xef\xbb\xbf"
         "A30",
         96, "???A30"},                   /* U+FEFF */
        {"\xf3\xa0\x81\x81", 96, "????"}, /* U+E0041 */
        {"\xe2\x82\xac\xf0\x9f\x98\x80", 96, "\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xe2\x82\xac", 2, "??"}, /* the buffer ends within a sign */
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        struct bh_arena a = {0};
        const char *out = bh_gpu_text(&a, table[i].in, table[i].n);
        if (table[i].out)
            CHECK_STR(out, table[i].out);
        else
            CHECK(!out);
        bh_arena_fini(&a);
    }
}

TEST(addresses_that_cannot_be_are_none)
{
    struct bh_arena a = {0};
    CHECK_STR(bh_gpu_pci(&a, 0, 0x18, 0), "0000:18:00.0");
    CHECK_STR(bh_gpu_pci(&a, 0x10000, 0xff, 0x1f), "10000:ff:1f.0");
    CHECK(!bh_gpu_pci(&a, 0, 0x100, 0) && !bh_gpu_pci(&a, 0, 0, 0x20));
    bh_arena_fini(&a);
}

TEST_MAIN
