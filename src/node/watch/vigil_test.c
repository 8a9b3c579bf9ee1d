/* SPDX-License-Identifier: Apache-2.0 */
#include "node/watch/vigil.h"

#include "gpu/nvml_fixture.h"

#include <poll.h>

static bool use_scene(const char *scene)
{
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s.so", BH_STANDINS, scene);
    return setenv("BULKHEAD_NVML", path, 1) == 0;
}

/* The next thing that it says, waited for. */
static int next(struct bh_vigil *v, struct bh_vigil_word *ret)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < 100; i++) {
        struct pollfd at = {.fd = v->fd, .events = POLLIN};
        (void)poll(&at, 1, 100);
        rc = bh_vigil_next(v, ret);
    }
    return rc;
}

TEST(gaps_then_events_then_it_is_gone)
{
    static const uint8_t kinds[] = {BH_VIGIL_GAP,   BH_VIGIL_GAP,   BH_VIGIL_EVENT,
                                    BH_VIGIL_EVENT, BH_VIGIL_EVENT, BH_VIGIL_EVENT,
                                    BH_VIGIL_EVENT, BH_VIGIL_EVENT, BH_VIGIL_EVENT};
    struct bh_vigil_word w[BH_COUNT_OF(kinds)], more;
    struct bh_vigil v = {0};
    struct bh_err err;
    CHECK(use_scene("h100x8"));
    CHECK_EQ(bh_vigil_start(&v, &err), BH_OK);
    for (size_t i = 0; i < BH_COUNT_OF(kinds); i++) {
        CHECK_EQ(next(&v, &w[i]), 1);
        CHECK_EQ(w[i].kind, kinds[i]);
    }
    CHECK_STR(w[0].text, "GPU 6: no word of errors (Xid): not supported by this GPU");
    CHECK(w[2].event.gpu == 3 && w[2].event.reach == BH_REACH_ALL);
    CHECK(w[2].event.xid && w[2].event.xid->number == 79);
    CHECK(w[5].event.kind == BH_GPU_EVENT_ECC && !w[5].event.xid);
    CHECK_EQ(w[8].event.kind, BH_GPU_EVENT_LOST);
    CHECK_EQ(next(&v, &more), -1);
    bh_vigil_end(&v);
    CHECK_EQ(v.pid, 0);
}

TEST(a_driver_without_events_says_so)
{
    struct bh_vigil_word w;
    struct bh_vigil v = {0};
    struct bh_err err;
    CHECK(use_scene("noevents"));
    CHECK_EQ(bh_vigil_start(&v, &err), BH_OK);
    CHECK_EQ(next(&v, &w), 1);
    CHECK_EQ(w.kind, BH_VIGIL_FAILED);
    CHECK(strstr(w.text, "reports no health events"));
    CHECK_EQ(next(&v, &w), -1);
}

/* The kernel's log names the process, and comes first. */
TEST(lines_come_before_their_event)
{
    char root[BH_SCRATCH_PATH];
    struct bh_vigil_word w = {0};
    struct bh_vigil v = {0};
    struct bh_err err;
    bool seen = false;
    CHECK(bh_scratch_root(root, sizeof(root), "vigil"));
    bh_nvml_fixture_put("/dev/kmsg", "4,1,1,-;NVRM: Xid (PCI:0000:18:00): 31, pid=11, name=old\n");
    CHECK(use_scene("h100x8"));
    CHECK_EQ(bh_vigil_start(&v, &err), BH_OK);
    CHECK_EQ(next(&v, &w), 1); /* it has opened the log by now: what stood there is no news */
    char path[BH_SYSPATH_MAX];
    CHECK(bh_syspath(path, "/dev/kmsg"));
    FILE *f = fopen(path, "a");
    CHECK(f != NULL);
    if (f) {
        fputs("4,2,2,-;NVRM: Xid (PCI:0000:18:00): 79, pid=4711, name=python\n6,3,3,-;usb\n", f);
        (void)fclose(f);
    }
    while (next(&v, &w) == 1)
        if (w.kind == BH_VIGIL_LINE) {
            CHECK(!seen && w.line.number == 79 && w.line.pid == 4711 && w.line.bus == 0x18);
            seen = true;
        }
    CHECK(seen);
    bh_vigil_end(&v);
    CHECK(bh_scratch_remove(root) && unsetenv("BULKHEAD_SYSROOT") == 0);
}

TEST_MAIN
