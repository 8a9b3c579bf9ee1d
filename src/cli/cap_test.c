/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cap.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"
#include "base/units.h"
#include "wire/lease.h"

#include <sys/stat.h>
#include <unistd.h>

TEST(sizes)
{
    static const struct {
        const char *word;
        int code;
        const char *says;
    } cases[] = {
        {NULL, BH_USAGE, "adopt needs --memory SIZE"},
        {"10", BH_INVALID, "--memory"},
        {"-1GiB", BH_INVALID, "--memory"},
        {"599MiB", BH_INVALID, "give it 600MiB or more"},
    };
    uint64_t bytes;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        CHECK_EQ(bh_cap_read("adopt", cases[i].word, &bytes, &err), cases[i].code);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
    }
    CHECK_EQ(bh_cap_read("adopt", "600MiB", &bytes, &err), 0);
    CHECK_EQ(bytes, 600 * BH_MIB);
}

TEST(ticks)
{
    uint32_t ms = 9;
    struct bh_err err;
    CHECK_EQ(bh_cap_read_tick(NULL, &ms, &err), 0);
    CHECK_EQ(ms, 0);
    CHECK_EQ(bh_cap_read_tick("10000", &ms, &err), 0);
    CHECK_EQ(ms, 10000);
    CHECK_EQ(bh_cap_read_tick("0", &ms, &err), BH_INVALID);
    CHECK(strstr(err.msg, "from 1 to 10000, not '0'") != NULL);
    CHECK_EQ(bh_cap_read_tick("10001", &ms, &err), BH_INVALID);
    CHECK_EQ(bh_cap_read_tick("x", &ms, &err), BH_INVALID);
}

TEST(views)
{
    CHECK_EQ(bh_cap_read_view(NULL), BH_VIEW_SLICE);
    CHECK_EQ(bh_cap_read_view("card"), BH_VIEW_CARD);
    CHECK_EQ(bh_cap_read_view("slice"), BH_VIEW_SLICE);
    CHECK_EQ(bh_cap_read_view("private"), BH_VIEW_PRIVATE);
    CHECK(bh_cap_views[BH_VIEW_PRIVATE + 1] == NULL);
}

/* A machine with one card of this name, below a folder of its own. */
static bool machine_with(char folder[BH_SCRATCH_PATH], const char *model)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "Model: \t\t %s\n", model);
    return bh_scratch_root(folder, BH_SCRATCH_PATH, "cap") &&
           bh_scratch_put(folder, "proc/driver/nvidia/gpus/0000:01:00.0/information", text);
}

TEST(cards)
{
    char folder[BH_SCRATCH_PATH];
    struct bh_err err;
    CHECK(machine_with(folder, "NVIDIA H200"));
    CHECK_EQ(bh_cap_check_cards(141 * BH_GIB, &err), 0);
    CHECK_EQ(bh_cap_check_cards(200 * BH_GIB, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "200 GiB") && strstr(err.msg, "H200") && strstr(err.msg, "141 GiB"));
    CHECK(bh_scratch_remove(folder));
    CHECK(machine_with(folder, "a card from the future"));
    CHECK_EQ(bh_cap_check_cards(2000 * BH_GIB, &err), 0);
    CHECK(bh_scratch_remove(folder) && unsetenv("BULKHEAD_SYSROOT") == 0);
}

TEST_MAIN
