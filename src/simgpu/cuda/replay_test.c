/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_test.c - recordings of programs that cannot run here, asked of simulated silicon call by call.
 *
 * PyTorch and nvidia-smi were recorded on a real card. Their calls are made again and what the resource
 * manager answered is compared with what the driver answered. What differs is written down below; anything else fails.
 */
#include "base/sysfile.h"
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"

static struct bh_recording read_recording(const char *path)
{
    struct bh_recording r = {0};
    struct bh_err err = {0};
    char *text = NULL;
    size_t n = 0;
    int rc = bh_sysfile_read(path, BH_RECORDING_BYTES_MAX, &text, &n, &err);
    if (rc < 0 || bh_recording_parse(path, text, n, &r, &err) < 0) {
        printf("# %s\n", err.msg);
        abort();
    }
    free(text);
    return r;
}

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

/*
 * The next call of a list that counts repetitions. Not compared: marks, closes, and the opening of capability nodes,
 * which are files of the machine and not of this driver.
 */
static const struct bh_call *next(const struct bh_recording *r, size_t *at, uint32_t *done)
{
    for (; *at < r->calls.n; (*at)++, *done = 0) {
        const struct bh_call *c = &r->calls.at[*at];
        bool compared = c->kind > BH_CALL_PROCESS && c->kind != BH_CALL_CLOSE &&
                        !(c->kind == BH_CALL_OPEN && c->file == BH_FILE_CAP);
        if (compared && *done < (c->times ? c->times : 1)) {
            (*done)++;
            return c;
        }
    }
    return NULL;
}

struct known {
    uint32_t kind, what, recorded, answered; /* statuses */
    size_t times;
};

/* A difference that is let be, counted: it must be there as often as it says. */
static bool is_known(const struct bh_call *a, const struct bh_call *b, const struct known *known,
                     size_t *seen)
{
    for (size_t i = 0; known[i].times; i++)
        if (a->kind == known[i].kind && a->what == known[i].what && a->status == known[i].recorded &&
            b->status == known[i].answered) {
            seen[i]++;
            return true;
        }
    return false;
}

static bool same_but_status(const struct bh_call *a, const struct bh_call *b)
{
    return a->kind == b->kind && a->file == b->file && a->gpu == b->gpu && a->number == b->number &&
           a->bytes == b->bytes && a->what == b->what && a->params == b->params && a->flags == b->flags &&
           a->size == b->size && a->attr == b->attr && a->attr2 == b->attr2 && a->mflags == b->mflags &&
           a->error == b->error;
}

static void tell(const char *name, size_t i, const struct bh_call *a, const struct bh_call *b)
{
    struct bh_buf text;
    bh_buf_init(&text, 4096);
    bh_call_write(&text, a);
    bh_buf_str(&text, " | ");
    if (b)
        bh_call_write(&text, b);
    printf("# %s: call %zu: %s\n", name, i, bh_buf_text(&text));
    bh_buf_fini(&text);
}

static bool replays(const char *name, size_t at_least, const struct known *known)
{
    char path[512];
    (void)snprintf(path, sizeof(path), BH_RECORDINGS "/%s", name);
    struct bh_recording r = read_recording(path), j = played(&r);
    size_t i = 0, k = 0, n = 0, bad = 0, seen[8] = {0};
    uint32_t di = 0, dk = 0;
    for (const struct bh_call *a = next(&r, &i, &di); a; a = next(&r, &i, &di), n++) {
        const struct bh_call *b = next(&j, &k, &dk);
        if (b && same_but_status(a, b) && (a->status == b->status || is_known(a, b, known, seen)))
            continue;
        if (bad++ < 5)
            tell(name, n, a, b);
        if (!b)
            break;
    }
    if (next(&j, &k, &dk) && bad++ == 0)
        printf("# %s: asked for more than was recorded\n", name);
    for (size_t x = 0; known[x].times; x++)
        if (seen[x] != known[x].times && ++bad)
            printf("# %s: known difference %zu seen %zu times\n", name, x, seen[x]);
    bh_recording_fini(&r);
    bh_recording_fini(&j);
    if (n < at_least)
        printf("# %s: only %zu calls\n", name, n);
    return bad == 0 && n >= at_least;
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
