/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - what can go wrong on request, said in words.
 *
 * A sentence is compared word by word with a list of patterns: `#` stands for a number, `%` for a status in hexadecimal,
 * `@` for a word. What was broken stays so until `mend`, which also undoes what the faults left behind; a card that was
 * dead from the start stays dead, and channels that were there when their card was lost never come back.
 */
#include "base/str.h"
#include "base/units.h"
#include "simgpu/rm/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { WORDS_MAX = 8, WORD_BYTES = 64, XID_DOUBLE_BIT = 48, XID_OFF_THE_BUS = 79, SLOW_MAX_MS = 60000 };

void bh_simrm_event(struct bh_sim_rm *rm, uint32_t gpu, enum bh_sim_event_kind kind, uint64_t data)
{
    struct bh_sim_event *e = &rm->events[rm->n_events++ % SIM_EVENTS];
    *e = (struct bh_sim_event){.seq = rm->n_events,
                               .now_ns = rm->now_ns,
                               .data = data,
                               .gpu = gpu,
                               .kind = kind,
                               .gi = SIM_NONE,
                               .ci = SIM_NONE};
}

size_t bh_sim_rm_events(struct bh_sim_rm *rm, uint64_t after, struct bh_sim_event *ret, size_t max)
{
    uint64_t oldest = rm->n_events > SIM_EVENTS ? rm->n_events - SIM_EVENTS : 0;
    size_t n = 0;
    for (uint64_t i = after > oldest ? after : oldest; i < rm->n_events && n < max; i++)
        ret[n++] = rm->events[i % SIM_EVENTS];
    return n;
}

uint32_t bh_simrm_fault(struct bh_sim_rm *rm)
{
    rm->n_calls++;
    return rm->fail_every && rm->n_calls % rm->fail_every == 0 ? rm->fail_status : RM_OK;
}

bool bh_simrm_fault_memory(struct bh_sim_rm *rm)
{
    rm->n_allocations++;
    return rm->node.fail_every && rm->n_allocations % rm->node.fail_every == 0;
}

bool bh_simrm_channel_dead(const struct bh_sim_rm *rm, const struct sim_object *channel)
{
    const struct sim_gpu *g = &rm->gpus[channel->gpu];
    return g->lost || channel->lost_at != g->times_lost;
}

uint32_t bh_sim_rm_delay_ms(const struct bh_sim_rm *rm)
{
    return rm->slow_ms > rm->node.slow_ms ? rm->slow_ms : rm->node.slow_ms;
}

bool bh_sim_rm_scrubs(const struct bh_sim_rm *rm)
{
    return !rm->scrub_off;
}

/* --- what can be said --- */

struct said {
    bool of_gpu;
    uint32_t gpu;
    uint64_t n[WORDS_MAX]; /* numbers, in order, the GPU's left out */
    const char *word;      /* the last @ */
};

static void lose(struct bh_sim_rm *rm, uint32_t gpu)
{
    struct sim_gpu *g = &rm->gpus[gpu];
    if (g->lost)
        return;
    g->lost = true;
    g->times_lost++;
    bh_simrm_event(rm, gpu, BH_SIM_EVENT_XID, XID_OFF_THE_BUS);
    for (size_t i = 0; i < rm->objects.n; i++) {
        struct sim_object *o = rm->objects.at[i];
        if (o && o->gpu == gpu && o->class->kind == SIM_CHANNEL && o->place)
            bh_sim_channel_enable(o->place->sched, o->channel, false);
    }
}

static int say_lost(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    (void)err;
    lose(rm, s->gpu);
    return BH_OK;
}

static int say_xid(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    (void)err;
    if (s->n[0] == XID_OFF_THE_BUS)
        lose(rm, s->gpu);
    else
        bh_simrm_event(rm, s->gpu, BH_SIM_EVENT_XID, s->n[0]);
    return BH_OK;
}

/* Errors that could not be corrected: counted, reported, and rows to be remapped at the next reset. */
static int say_ecc(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    struct sim_gpu *g = &rm->gpus[s->gpu];
    if (s->n[0] == 0)
        return bh_fail(err, BH_INVALID, "no errors are no fault: give a number from 1 on");
    g->ecc_uncorrected += s->n[0];
    g->remapped_rows += (uint32_t)s->n[0];
    g->remap_pending = 1;
    bh_simrm_event(rm, s->gpu, BH_SIM_EVENT_ECC, s->n[0]);
    bh_simrm_event(rm, s->gpu, BH_SIM_EVENT_XID, XID_DOUBLE_BIT);
    return BH_OK;
}

static int say_throttle(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    static const struct {
        const char *word;
        uint32_t bits;
    } WHY[] = {{"power", 0x4}, {"hardware", 0x8}, {"hot", 0x20}, {"brake", 0x80}};
    for (size_t i = 0; i < BH_COUNT_OF(WHY); i++) {
        if (!bh_str_eq(s->word, WHY[i].word))
            continue;
        rm->gpus[s->gpu].throttle |= WHY[i].bits;
        return BH_OK;
    }
    return bh_fail(err, BH_INVALID,
                   "no reason to throttle is called '%s'; there are power, hardware, hot, brake", s->word);
}

static int say_hot(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    enum { MOST_C = 150 };
    if (s->n[0] == 0 || s->n[0] > MOST_C)
        return bh_fail(err, BH_INVALID, "a card has 1 to %d degrees, not %" PRIu64, MOST_C, s->n[0]);
    rm->gpus[s->gpu].hot_c = (uint32_t)s->n[0];
    return BH_OK;
}

static int link_set(struct bh_sim_rm *rm, const struct said *s, bool down, struct bh_err *err)
{
    uint32_t links = rm->node.gpus[s->gpu].links;
    if (s->n[0] >= links)
        return bh_fail(err, BH_NOT_FOUND, "GPU %u has %u links, counted from 0", s->gpu, links);
    uint32_t bit = UINT32_C(1) << s->n[0], *bits = &rm->gpus[s->gpu].links_down;
    *bits = down ? *bits | bit : *bits & ~bit;
    return BH_OK;
}

static int say_link_down(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    return link_set(rm, s, true, err);
}

static int say_link_up(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    return link_set(rm, s, false, err);
}

static int say_calls_fail(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    if (s->n[0] == 0 || s->n[0] > UINT16_MAX || s->n[1] == 0)
        return bh_fail(err, BH_INVALID, "a call fails with a status from 1 to ffff, every 1 or more calls");
    rm->fail_status = (uint32_t)s->n[0];
    rm->fail_every = (uint32_t)s->n[1];
    rm->n_calls = 0;
    return BH_OK;
}

static int say_calls_slow(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    if (s->n[0] > SLOW_MAX_MS)
        return bh_fail(err, BH_INVALID, "a call waits %d ms at most", SLOW_MAX_MS);
    rm->slow_ms = (uint32_t)s->n[0];
    return BH_OK;
}

static int say_scrub_off(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    (void)s;
    (void)err;
    rm->scrub_off = true;
    return BH_OK;
}

/* The manager does not know the library's functions, only how they are called. */
static bool is_function(const char *name)
{
    size_t n = strlen("nvml");
    if (name[0] == '*')
        return name[1] == '\0';
    if (!bh_str_starts(name, "nvml") || !(name[n] >= 'A' && name[n] <= 'Z'))
        return false;
    while (bh_is_alpha(name[n]) || bh_is_digit(name[n]) || name[n] == '_')
        n++;
    return name[n] == '\0';
}

static int library_fail(struct bh_sim_rm *rm, uint64_t status, const char *call, struct bh_err *err)
{
    if (status == 0 || status > 999)
        return bh_fail(err, BH_INVALID, "the library fails with a status from 1 to 999");
    if (!is_function(call))
        return bh_fail(
            err, BH_INVALID,
            "'%s' is no function of the library; they are called as nvmlDeviceGetName is, or * for all",
            call);
    rm->library_status = (uint32_t)status;
    (void)snprintf(rm->library_call, sizeof(rm->library_call), "%s", call);
    return BH_OK;
}

static int say_library(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    return library_fail(rm, s->n[0], s->word, err);
}

static int say_library_all(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    return library_fail(rm, s->n[0], "*", err);
}

static int say_driver(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    size_t n = strlen(s->word);
    if (strspn(s->word, "0123456789.") != n || !bh_is_digit(s->word[0]) || n >= sizeof(rm->driver) - 3)
        return bh_fail(err, BH_INVALID, "'%s' is no version of a driver, as 535.104.05 is one", s->word);
    memset(rm->driver, 0, sizeof(rm->driver));
    memcpy(rm->driver, s->word, n);
    return BH_OK;
}

static int say_mend(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err)
{
    (void)s;
    (void)err;
    for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
        struct sim_gpu *p = &rm->gpus[g];
        p->lost = rm->node.gpus[g].dead;
        p->hot_c = p->throttle = p->links_down = p->remapped_rows = p->remap_pending = 0;
        p->ecc_uncorrected = 0;
    }
    rm->scrub_off = false;
    bh_simrm_scrub(rm);
    rm->slow_ms = rm->fail_status = rm->fail_every = rm->library_status = 0;
    memset(rm->library_call, 0, sizeof(rm->library_call));
    memcpy(rm->driver, rm->node.driver, sizeof(rm->driver));
    return BH_OK;
}

static const struct {
    const char *pattern;
    int (*say)(struct bh_sim_rm *rm, const struct said *s, struct bh_err *err);
} SENTENCES[] = {
    {"gpu # lost", say_lost},
    {"gpu # xid #", say_xid},
    {"gpu # ecc #", say_ecc},
    {"gpu # throttle @", say_throttle},
    {"gpu # hot #", say_hot},
    {"gpu # link # down", say_link_down},
    {"gpu # link # up", say_link_up},
    {"calls fail % every #", say_calls_fail},
    {"calls slow #", say_calls_slow},
    {"scrub off", say_scrub_off},
    {"library fail #", say_library_all},
    {"library fail # in @", say_library},
    {"driver @", say_driver},
    {"mend", say_mend},
};

/* --- reading --- */

struct words {
    char at[WORDS_MAX][WORD_BYTES];
    size_t n;
};

static bool split(struct words *w, const char *text)
{
    for (w->n = 0;;) {
        while (bh_is_space(*text))
            text++;
        size_t n = 0;
        while (text[n] && !bh_is_space(text[n]))
            n++;
        if (n == 0)
            return true;
        if (w->n == WORDS_MAX || n >= WORD_BYTES)
            return false;
        memcpy(w->at[w->n], text, n);
        w->at[w->n++][n] = '\0';
        text += n;
    }
}

static bool hex(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    s += bh_str_starts(s, "0x") ? 2 : 0;
    size_t n = strspn(s, "0123456789abcdefABCDEF");
    if (n == 0 || n > 8 || s[n])
        return false;
    for (; *s; s++) {
        char c = bh_to_lower(*s);
        v = v << 4 | (uint64_t)(bh_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    *ret = v;
    return true;
}

static bool matches(const char *pattern, const struct words *w, struct said *s)
{
    struct words p;
    size_t numbers = 0;
    if (!split(&p, pattern) || p.n != w->n)
        return false;
    *s = (struct said){.of_gpu = bh_str_eq(p.at[0], "gpu")};
    for (size_t i = 0; i < p.n; i++) {
        const char *word = w->at[i];
        uint64_t v = 0;
        switch (p.at[i][0]) {
        case '@':
            s->word = word;
            break;
        case '%':
            if (!hex(word, &s->n[numbers++]))
                return false;
            break;
        case '#':
            if (bh_uint_parse(word, UINT32_MAX, &v, NULL) < 0)
                return false;
            if (s->of_gpu && i == 1)
                s->gpu = (uint32_t)v;
            else
                s->n[numbers++] = v;
            break;
        default:
            if (!bh_str_eq(p.at[i], word))
                return false;
        }
    }
    return true;
}

int bh_sim_rm_break(struct bh_sim_rm *rm, const char *words, struct bh_err *err)
{
    struct words w;
    struct said s;
    bool whole = split(&w, words);
    for (size_t i = 0; whole && i < BH_COUNT_OF(SENTENCES); i++) {
        if (!matches(SENTENCES[i].pattern, &w, &s))
            continue;
        if (s.of_gpu && s.gpu >= rm->node.n_gpus)
            return bh_fail(err, BH_NOT_FOUND, "there is no GPU %u: this node has %u, counted from 0", s.gpu,
                           rm->node.n_gpus);
        return SENTENCES[i].say(rm, &s, err);
    }
    char all[sizeof(err->msg)];
    size_t n = 0;
    for (size_t i = 0; i < BH_COUNT_OF(SENTENCES) && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", SENTENCES[i].pattern);
    return bh_fail(err, BH_INVALID,
                   "'%.60s' is not understood; these are (# a number, %% a status, @ a word): %s", words,
                   all);
}
