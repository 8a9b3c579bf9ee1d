/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvml.h"

#include "base/test.h"

static struct bh_nvml_heard heard;
static char path[] = "lib.so";
static struct bh_nvml lib = {.path = path, .heard = &heard};

static int fill(size_t bytes, int status, struct nvml_memory *out)
{
    struct bh_nvml_room room;
    heard = (struct bh_nvml_heard){0};
    memset(bh_nvml_room_fill(&room), 7, bytes);
    return bh_nvml_room_take(&lib, "nvmlThis", status, &room, out, sizeof(*out),
                             offsetof(struct nvml_memory, used));
}

TEST(what_was_written_is_taken)
{
    struct nvml_memory m;
    CHECK_EQ(fill(24, NVML_OK, &m), NVML_OK);
    CHECK(m.used == UINT64_C(0x0707070707070707) && !heard.misfit.call);
    CHECK_EQ(fill(24, NVML_NO_PERMISSION, &m), NVML_NO_PERMISSION);
    CHECK(m.total == 0 && m.used == 0 && !heard.misfit.call);
    CHECK_EQ(fill(0, NVML_NOT_SUPPORTED, &m), NVML_NOT_SUPPORTED);
    CHECK(!heard.misfit.call);
    CHECK_EQ(bh_nvml_fits(&lib, NULL), BH_OK);
}

TEST(too_much_and_too_little_are_seen)
{
    struct nvml_memory m;
    struct bh_err err;
    CHECK_EQ(fill(25, NVML_OK, &m), NVML_UNKNOWN);
    CHECK(heard.misfit.call && !heard.misfit.is_short && m.total == 0);
    CHECK_EQ(bh_nvml_fits(&lib, &err), BH_CONFLICT);
    CHECK_STR(err.msg,
              "the NVIDIA library lib.so has another interface than it should: nvmlThis writes more than 24 "
              "bytes; install the library of the loaded driver");
    CHECK_EQ(fill(32, NVML_NOT_SUPPORTED, &m), NVML_UNKNOWN); /* even while it refuses */
    CHECK_EQ(fill(16, NVML_OK, &m), NVML_UNKNOWN);
    CHECK(heard.misfit.call && heard.misfit.is_short);
    CHECK_EQ(bh_nvml_fits(&lib, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "writes less than 24 bytes"));
}

TEST_MAIN
