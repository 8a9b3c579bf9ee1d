/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/events.h"

#include "gpu/nvml_fixture.h"

static bool open_scene(const char *scene, struct bh_gpu_events **ret, struct bh_err *err, int *rc)
{
    char path[BH_SYSPATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s.so", BH_STANDINS, scene);
    *ret = NULL;
    return setenv("BULKHEAD_NVML", path, 1) == 0 && (*rc = bh_gpu_events_open(ret, err), true);
}

TEST(events_become_sentences)
{
    static const struct {
        uint32_t gpu, gi;
        uint8_t kind, reach;
        const char *text;
    } want[] = {
        {3, BH_NO_ID, BH_GPU_EVENT_XID, BH_REACH_ALL,
         "GPU 3: Xid 79: the GPU fell off the bus; when it comes back so, replace it: the hardware's fault; drain and "
         "reboot the node"},
        {0, 7, BH_GPU_EVENT_XID, BH_REACH_LEASE,
         "GPU 0, instance 7.0: Xid 13: a kernel did something it may not, such as an access out of bounds: the "
         "application's fault; restart the tenant's work"},
        {1, 7, BH_GPU_EVENT_XID, BH_REACH_CARD,
         "GPU 1, instance 7: Xid 9999: not a common one; look it up before the GPU is given on"},
        {4, BH_NO_ID, BH_GPU_EVENT_ECC, BH_REACH_ALL,
         "GPU 4: memory error that ECC could not correct: the hardware's fault; drain the GPU and reset it"},
        {0, BH_NO_ID, BH_GPU_EVENT_OTHER, BH_REACH_NOTE, "GPU 0: event 0x10 of the driver, datum 5"},
        {BH_NO_ID, BH_NO_ID, BH_GPU_EVENT_XID, BH_REACH_LEASE,
         "a GPU that is not known here: Xid 31: a kernel touched an address that is not mapped: the application's "
         "fault; restart the tenant's work"},
    };
    struct bh_gpu_events *e;
    struct bh_gpu_event ev;
    struct bh_err err;
    int rc = 0;
    CHECK(open_scene("h100x8", &e, &err, &rc));
    CHECK_EQ(rc, BH_OK);
    for (size_t i = 0; i < BH_COUNT_OF(want); i++) {
        CHECK_EQ(bh_gpu_events_wait(e, 0, &ev, &err), 1);
        CHECK(ev.gpu == want[i].gpu && ev.gi == want[i].gi && ev.kind == want[i].kind &&
              ev.reach == want[i].reach);
        CHECK_STR(ev.text, want[i].text);
    }
    CHECK_STR(ev.uuid, "");
    CHECK(ev.xid && ev.xid->number == 31);
    CHECK_EQ(bh_gpu_events_wait(e, 0, &ev, &err), 0);
    CHECK_EQ(bh_gpu_events_wait(e, 0, &ev, &err), 1);
    CHECK(ev.kind == BH_GPU_EVENT_LOST && ev.gpu == BH_NO_ID);
    CHECK_EQ(bh_gpu_events_wait(e, 0, &ev, &err), BH_SYSTEM);
    CHECK_STR(err.msg, "waiting for the driver's health events failed with error 1");
    bh_gpu_events_close(e);
}

TEST(what_is_not_watched_is_said)
{
    struct bh_gpu_events *e;
    const char *const *gaps;
    struct bh_gpu_event ev;
    struct bh_err err;
    int rc = 0;
    CHECK(open_scene("h100x8", &e, &err, &rc));
    CHECK_EQ(rc, BH_OK);
    CHECK_EQ(bh_gpu_events_gaps(e, &gaps), 2);
    CHECK_STR(gaps[0], "GPU 6: no word of errors (Xid): not supported by this GPU");
    CHECK_STR(gaps[1], "GPU 7: no word of its health: not supported by this GPU");
    CHECK_EQ(bh_gpu_events_wait(e, 0, &ev, &err), 1);
    CHECK_STR(ev.uuid, "GPU-00000000-0000-4000-8000-000000000003");
    bh_gpu_events_close(e);
}

TEST(drivers_without_events_give_one_sentence)
{
    static const struct {
        const char *scene, *words;
        int rc;
    } table[] = {
        {"noevents", "reports no health events: it lacks nvmlEventSetCreate", BH_NOT_FOUND},
        {"missing", "no NVIDIA driver library on this machine", BH_NOT_FOUND},
        {"none", "no GPU reports health events: there is no GPU", BH_NOT_FOUND},
        {"denied", "the driver's health events cannot be had: not permitted; try as root", BH_DENIED},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        struct bh_gpu_events *e;
        struct bh_err err;
        int rc = 0;
        CHECK(open_scene(table[i].scene, &e, &err, &rc));
        CHECK_EQ(rc, table[i].rc);
        CHECK(!e && strstr(err.msg, table[i].words) && !strchr(err.msg, '\n'));
    }
    bh_gpu_events_close(NULL);
}

TEST_MAIN
