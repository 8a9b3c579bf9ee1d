/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - what cannot work as a share is refused before anything is started; what came of it, in words. */
#include "cli/share.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/paint.h"
#include "core/govern/govern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PPM_OF_PERMILLE = 1000 };

static int read_weight(const char *text, uint32_t *ret, struct bh_err *err)
{
    uint64_t v;
    if (bh_uint_parse(text, BH_SHARE_WEIGHT_MAX, &v, NULL) < 0 || v == 0)
        return bh_fail(
            err, BH_INVALID,
            "--share: a whole number from 1 to %d, which weighs it against the shares of others, not "
            "'%.40s'",
            BH_SHARE_WEIGHT_MAX, text);
    *ret = (uint32_t)v;
    return BH_OK;
}

static bool is_part(const char *text, uint32_t *ret_permille)
{
    uint32_t ppm;
    if (bh_share_parse(text, &ppm, NULL) < 0 || ppm == 0 || ppm % PPM_OF_PERMILLE)
        return false;
    *ret_permille = ppm / PPM_OF_PERMILLE;
    return true;
}

/* The policy takes 0.25 for 25%. Here 1 would be all of it where 1% was meant, and a cap that caps nothing shows too late. */
static int fail_bare(const char *text, struct bh_err *err)
{
    struct bh_share_text whole;
    char percent[48];
    uint32_t permille;
    (void)snprintf(percent, sizeof(percent), "%.40s%%", text);
    const bool is_percent = is_part(percent, &permille);
    const bool is_fraction = is_part(text, &permille) && permille < 1000;
    if (is_fraction)
        return bh_fail(err, BH_INVALID, "a part of a GPU's time has a %% sign: %s%s%s, not '%.40s'",
                       bh_share_permille((int32_t)permille, false, &whole), is_percent ? " or " : "",
                       is_percent ? percent : "", text);
    return bh_fail(err, BH_INVALID, "a part of a GPU's time has a %% sign: %s, not '%.40s'",
                   is_percent ? percent : "25%", text);
}

int bh_share_part(const char *text, uint32_t *ret_permille, struct bh_err *err)
{
    const size_t n = strlen(text);
    if (!n || text[n - 1] != '%')
        return fail_bare(text, err);
    return is_part(text, ret_permille)
               ? BH_OK
               : bh_fail(err, BH_INVALID,
                         "a part of each GPU's time from 0.1%% to 100%%, at most one decimal, not '%.40s'",
                         text);
}

static int read_part(const char *option, const char *text, uint32_t *ret, struct bh_err *err)
{
    *ret = 0;
    return text && bh_share_part(text, ret, err) < 0 ? bh_wrap(err, BH_INVALID, "%s", option) : BH_OK;
}

/* Numbers are leases, and with an l before them leases of the daemon's. */
static int read_name(const char *text, char ret[BH_GOVERN_NAME], struct bh_err *err)
{
    uint64_t number;
    if (!bh_name_valid(text) || bh_uint_parse(text + (*text == 'l'), UINT64_MAX, &number, NULL) == BH_OK)
        return bh_fail(err, BH_INVALID,
                       "--name: up to 63 lower-case letters, digits and '-', and not a number alone or after "
                       "an l, not '%.80s'",
                       text);
    memcpy(ret, text, strlen(text) + 1);
    return BH_OK;
}

/* Something to know it by in a list: no promise, and not always a name that can be given back. */
static void name_after(const char *command, char ret[BH_GOVERN_NAME])
{
    const char *slash = strrchr(command, '/'), *from = slash ? slash + 1 : command;
    size_t n = 0;
    for (; from[n] && n + 1 < BH_GOVERN_NAME; n++)
        ret[n] = from[n] > ' ' && from[n] < 0x7f ? from[n] : '?';
    ret[n] = '\0';
}

int bh_share_read(const struct bh_share_words *w, struct bh_lease_share *ret, struct bh_err *err)
{
    *ret = (struct bh_lease_share){0};
    if (!w->share && !w->cap && !w->floor && !w->latency)
        return w->name ? bh_fail(err, BH_USAGE,
                                 "--name has no meaning without --share, --cap, --floor or --latency")
                       : BH_OK;
    ret->weight = BH_SHARE_WEIGHT;
    ret->latency = w->latency != NULL;
    int rc = w->share ? read_weight(w->share, &ret->weight, err) : BH_OK;
    if (rc == BH_OK)
        rc = read_part("--cap", w->cap, &ret->cap_permille, err);
    if (rc == BH_OK)
        rc = read_part("--floor", w->floor, &ret->floor_permille, err);
    if (rc == BH_OK && ret->cap_permille && ret->floor_permille > ret->cap_permille)
        rc =
            bh_fail(err, BH_INVALID, "--floor %.40s is more than --cap %.40s lets it have", w->floor, w->cap);
    if (rc == BH_OK && w->name)
        rc = read_name(w->name, ret->name, err);
    else if (rc == BH_OK)
        name_after(w->command, ret->name);
    return rc;
}

/* ---- showing ---- */

const char *bh_share_permille(int32_t permille, bool sign, struct bh_share_text *ret)
{
    const uint32_t v = permille < 0 ? 0u - (uint32_t)permille : (uint32_t)permille;
    (void)snprintf(ret->s, sizeof(ret->s), "%s%u.%u%%",
                   permille < 0 ? "-"
                   : sign && v  ? "+"
                                : "",
                   v / 10 % 1000000, v % 10);
    return ret->s;
}

const char *bh_share_state(uint32_t state)
{
    static const char *const words[] = {[BH_GOVERN_SHOWN_RUNS] = "runs",
                                        [BH_GOVERN_SHOWN_IDLE] = "idle",
                                        [BH_GOVERN_SHOWN_TURN] = "waits its turn",
                                        [BH_GOVERN_SHOWN_PAUSED] = "paused",
                                        [BH_GOVERN_SHOWN_SUSPENDED] = "suspended"};
    return state < BH_COUNT_OF(words) ? words[state] : "?";
}

const char *bh_share_mode(uint32_t mode)
{
    static const char *const words[BH_GOVERN_MODES] = {[BH_GOVERN_FREE] = "free",
                                                       [BH_GOVERN_SLICES] = "slices",
                                                       [BH_GOVERN_TURNS] = "turns",
                                                       [BH_GOVERN_BESIDE_LATENCY] = "latency"};
    return mode < BH_COUNT_OF(words) ? words[mode] : "?";
}

static void write_uses(struct bh_json *j, const struct bh_govern_row *r)
{
    const struct {
        const char *key;
        uint32_t permille;
    } uses[] = {{"multiprocessorsPermille", r->sm_permille},
                {"memoryBandwidthPermille", r->dram_permille},
                {"pciePermille", r->pcie_permille},
                {"powerPermille", r->power_permille},
                {"clocksLoweredPermille", r->lowered_permille}};
    bh_json_key(j, "uses");
    bh_json_open(j, '{');
    for (size_t i = 0; i < BH_COUNT_OF(uses); i++)
        if (uses[i].permille == UINT32_MAX)
            bh_json_key_str(j, uses[i].key, NULL);
        else
            bh_json_key_u64(j, uses[i].key, uses[i].permille);
    bh_json_close(j, '}');
}

static void key_or_null(struct bh_json *j, const char *key, uint64_t v, uint64_t none)
{
    if (v == none)
        bh_json_key_str(j, key, NULL);
    else
        bh_json_key_u64(j, key, v);
}

bool bh_share_says(const struct bh_govern_row *r)
{
    return r->own_rate_milli != UINT64_MAX || r->own_p50_us != UINT32_MAX || r->own_garbage > 0;
}

/* By its own word: nothing checks it. */
static void write_own(struct bh_json *j, const struct bh_govern_row *r)
{
    bh_json_key(j, "own");
    bh_json_open(j, '{');
    key_or_null(j, "rateMilliPerSecond", r->own_rate_milli, UINT64_MAX);
    key_or_null(j, "p50Micros", r->own_p50_us, UINT32_MAX);
    key_or_null(j, "p99Micros", r->own_p99_us, UINT32_MAX);
    bh_json_key_u64(j, "linesIgnored", r->own_garbage);
    bh_json_close(j, '}');
}

void bh_share_own_text(struct bh_buf *out, const struct bh_govern_row *r)
{
    const char *between = ": ";
    bh_buf_printf(out, "lease %" PRIu64, r->lease);
    if (*r->name) {
        bh_buf_str(out, " (");
        bh_text_add(out, r->name);
        bh_buf_str(out, ")");
    }
    if (r->own_rate_milli != UINT64_MAX) {
        bh_buf_printf(out, "%sown rate %" PRIu64 ".%03" PRIu64 " a second", between, r->own_rate_milli / 1000,
                      r->own_rate_milli % 1000);
        between = ", ";
    }
    if (r->own_p50_us != UINT32_MAX) {
        bh_buf_printf(out, "%sown p50 %" PRIu32 " us, own p99 %" PRIu32 " us", between, r->own_p50_us,
                      r->own_p99_us);
        between = ", ";
    }
    if (r->own_garbage)
        bh_buf_printf(out, "%s%" PRIu64 " of its lines not understood, and ignored", between, r->own_garbage);
    bh_buf_str(out, "\n");
}

void bh_share_pids(const struct bh_govern_row *r, char *ret, size_t size)
{
    enum { NEXT_MAX = sizeof(",4294967295,...") };
    size_t n = 0;
    uint32_t i = 0;
    (void)snprintf(ret, size, "%" PRIu32, r->root_pid);
    for (; i < r->n_pids && i < BH_COUNT_OF(r->pids) && n + NEXT_MAX <= size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%" PRIu32, i ? "," : "", r->pids[i]);
    if (i && i < r->n_pids)
        (void)snprintf(ret + n, size - n, ",...");
}

void bh_share_floors_text(struct bh_buf *out, const struct bh_govern_row *at, size_t n)
{
    struct bh_share_text sum_text;
    for (size_t i = 0, end; i < n; i = end) {
        int32_t sum = 0;
        bool bare = false;
        /* Who is off the card has no part in dividing it. */
        for (end = i; end < n && at[end].gpu == at[i].gpu; end++) {
            if (at[end].state == BH_GOVERN_SHOWN_PAUSED || at[end].state == BH_GOVERN_SHOWN_SUSPENDED)
                continue;
            sum += (int32_t)at[end].floor_permille;
            bare = bare || !at[end].floor_permille;
        }
        if (at[i].gpu == UINT32_MAX || sum < 1000 || (sum == 1000 && !bare))
            continue;
        bh_buf_printf(out,
                      "GPU %" PRIu32 ": the floors come to %s of it; while all of them have work%s%s%s\n",
                      at[i].gpu, bh_share_permille(sum, false, &sum_text),
                      sum > 1000 ? " each is cut in proportion" : "", sum > 1000 && bare ? ", and" : "",
                      bare ? " who has none gets next to nothing" : "");
    }
}

void bh_share_row_json(struct bh_json *j, const struct bh_govern_row *r)
{
    const bool placed = r->gpu != UINT32_MAX;
    bh_json_key_u64(j, "lease", r->lease);
    bh_json_key_str(j, "name", *r->name ? r->name : NULL);
    if (placed)
        bh_json_key_u64(j, "gpu", r->gpu);
    else
        bh_json_key_str(j, "gpu", NULL);
    bh_json_key_u64(j, "uid", r->uid);
    bh_json_key_u64(j, "pid", r->root_pid);
    bh_json_key(j, "pids");
    bh_json_open_flat(j, '[');
    for (uint32_t i = 0; i < r->n_pids && i < BH_COUNT_OF(r->pids); i++)
        bh_json_u64(j, r->pids[i]);
    bh_json_close(j, ']');
    bh_json_key_u64(j, "processes", r->n_pids);
    bh_json_key_str(j, "state", bh_share_state(r->state));
    bh_json_key_str(j, "mode", bh_share_mode(r->mode));
    bh_json_key_u64(j, "weight", r->weight);
    bh_json_key_u64(j, "capPermille", r->cap_permille);
    bh_json_key_u64(j, "floorPermille", r->floor_permille);
    bh_json_key_bool(j, "latency", r->latency != 0);
    bh_json_key_u64(j, "targetPermille", r->target_permille);
    bh_json_key_u64(j, "deliveredPermille", r->delivered_permille);
    bh_json_key_u64(j, "heldPermille", r->held_permille);
    bh_json_key_i64(j, "errorPermille", r->error_permille);
    bh_json_key_bool(j, "seen", r->seen != 0);
    bh_json_key_u64(j, "sliceMicros", r->slice_us);
    bh_json_key_u64(j, "level", r->level);
    bh_json_key_u64(j, "corrections", r->corrections);
    bh_json_key_u64(j, "tampered", r->tampered);
    bh_json_key_u64(j, "pauses", r->pauses);
    bh_json_key_u64(j, "busyNanos", r->busy_ns);
    write_uses(j, r);
    write_own(j, r);
}
