/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_test.c - recordings of programs that cannot run here, asked of simulated silicon call by call.
 *
 * PyTorch and nvidia-smi were recorded on a real card. Their calls are made again and what the resource
 * manager answered is compared with what the driver answered. What differs is written down below; anything else fails.
 */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"
#include "simgpu/cuda/replay_fixture.h"

static void order_journal(uint64_t on)
{
    if (bh_sim_order(&fixture_place, BH_SIM_OP_JOURNAL, on, NULL, 0, 0, NULL) < 0)
        abort();
}

/* What the manager was asked while the recording was played. */
static struct bh_recording played(const struct bh_recording *r)
{
    struct bh_play p = {.gi = UINT32_MAX, .ci = UINT32_MAX};
    char path[256];
    struct bh_sim_gpu_view view;
    if (bh_sim_view(0, &view) < 0)
        abort();
    bh_cu_uuid(view.uuid, p.uuid);
    order_journal(1);
    int rc = bh_play_calls(&p, r, 0, r->calls.n);
    order_journal(0);
    bh_play_fini(&p);
    if (rc)
        printf("# stopped with %d\n", rc);
    (void)snprintf(path, sizeof(path), "%s/journal.rec", fixture_place.folder);
    return read_recording(path);
}

static bool replays(const char *name, size_t at_least, const struct known *known)
{
    char path[512];
    (void)snprintf(path, sizeof(path), BH_RECORDINGS "/%s", name);
    struct bh_recording r = read_recording(path), j = played(&r);
    const bool good = replays_as(name, &r, &j, at_least, known);
    bh_recording_fini(&r);
    bh_recording_fini(&j);
    return good;
}

static const struct known none[] = {{0}};
/* Versions of the board's stored objects: the real card lacks three of those it is asked for, by a name in the params. */
static const struct known inforom[] = {{BH_CALL_CONTROL, 0x2080014b, RM_OBJECT_NOT_FOUND, RM_OK, 3}, {0}};

TEST(nvidia_smi_is_answered_as_on_the_card)
{
    fixture_begin("h200");
    CHECK(replays("smi-memory.rec", 40, none));
    CHECK(replays("smi-list.rec", 40, none));
    CHECK(replays("smi-pmon.rec", 40, none));
    CHECK(replays("smi.rec", 80, inforom));
    CHECK(replays("smi-busy.rec", 80, inforom));
}

TEST(pytorch_is_answered_as_on_the_card)
{
    CHECK(replays("torch.rec", 700, none));
}

TEST_MAIN
