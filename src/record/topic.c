/* SPDX-License-Identifier: Apache-2.0 */
/* topic.c - what calls are about, and how often. */
#include "record/topic.h"

#include <inttypes.h>

enum key { NO_KEY, WHAT, NUMBER, FILE_ONLY };
/* By enum bh_call_kind: how a topic is named and which member tells it apart. */
static const struct {
    const char *name;
    uint8_t key; /* enum key */
    bool decimal;
} KINDS[] = {
    [BH_CALL_OPEN] = {"open", FILE_ONLY, false},
    [BH_CALL_CLOSE] = {"close", FILE_ONLY, false},
    [BH_CALL_MAP] = {"map", FILE_ONLY, false},
    [BH_CALL_ESCAPE] = {"escape", NUMBER, false},
    [BH_CALL_ALLOC] = {"class", WHAT, false},
    [BH_CALL_CONTROL] = {"control", WHAT, false},
    [BH_CALL_FREE] = {"free", NO_KEY, false},
    [BH_CALL_DUP] = {"dup of class", WHAT, false},
    [BH_CALL_HEAP] = {"heap function", WHAT, false},
    [BH_CALL_UVM] = {"call", NUMBER, true},
    [BH_CALL_MEMORY] = {"memory of class", WHAT, false},
};

bool bh_call_has_topic(const struct bh_call *call)
{
    return call->kind < BH_COUNT_OF(KINDS) && KINDS[call->kind].name;
}

struct bh_topic bh_topic_of(const struct bh_call *call)
{
    uint8_t key = KINDS[call->kind].key;
    bool by_file = key == FILE_ONLY || call->kind == BH_CALL_UVM;
    return (struct bh_topic){
        .kind = call->kind,
        .file = by_file ? call->file : BH_FILE_CTL,
        .key = key == WHAT     ? call->what
               : key == NUMBER ? call->number
                               : 0,
    };
}

int bh_topic_cmp(const struct bh_topic *a, const struct bh_topic *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->key == b->key ? 0 : a->key < b->key ? -1 : 1;
}

void bh_topic_write(struct bh_buf *out, const struct bh_topic *t)
{
    const char *name = KINDS[t->kind].name;
    if (KINDS[t->kind].key == FILE_ONLY)
        bh_buf_printf(out, "%s %s", name, bh_call_file_name(t->file));
    else if (KINDS[t->kind].key == NO_KEY)
        bh_buf_str(out, name);
    else if (KINDS[t->kind].decimal)
        bh_buf_printf(out, "%s %s %" PRIu32, bh_call_file_name(t->file), name, t->key);
    else
        bh_buf_printf(out, "%s %" PRIx32, name, t->key);
}

/* --- the summary --- */

struct tally {
    struct bh_topic topic;
    uint64_t calls, failed;
};

static int by_topic(const void *a, const void *b)
{
    return bh_topic_cmp(&((const struct tally *)a)->topic, &((const struct tally *)b)->topic);
}

static void summarise(struct bh_buf *out, const char *name, const struct bh_call *calls, size_t n)
{
    struct tally *t = bh_alloc(n + 1, sizeof(*t));
    size_t used = 0, kept = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        if (!bh_call_has_topic(&calls[i]))
            continue;
        bool failed = calls[i].status || calls[i].error;
        t[used++] = (struct tally){bh_topic_of(&calls[i]), calls[i].times, failed ? calls[i].times : 0};
        total += calls[i].times;
    }
    qsort(t, used, sizeof(*t), by_topic);
    for (size_t i = 0; i < used; i++) {
        if (kept && by_topic(&t[kept - 1], &t[i]) == 0) {
            t[kept - 1].calls += t[i].calls;
            t[kept - 1].failed += t[i].failed;
        } else {
            t[kept++] = t[i];
        }
    }
    bh_buf_printf(out, "%s: %" PRIu64 " call%s\n", name, total, total == 1 ? "" : "s");
    for (size_t i = 0; i < kept; i++) {
        bh_buf_printf(out, "%8" PRIu64 "  ", t[i].calls);
        bh_topic_write(out, &t[i].topic);
        if (t[i].failed)
            bh_buf_printf(out, " (%" PRIu64 " failed)", t[i].failed);
        bh_buf_str(out, "\n");
    }
    free(t);
}

bool bh_recording_summary(struct bh_buf *out, const struct bh_recording *r, const char *section)
{
    size_t first, n;
    if (section) {
        bool found = bh_recording_section(r, section, &first, &n);
        if (found)
            summarise(out, section, r->calls.at + first, n);
        return found;
    }
    bh_buf_printf(out, "%s, driver %s: %s\n", r->gpu, r->driver, r->what);
    for (size_t i = 0; i < r->calls.n; i = first + n) {
        bool mark = r->calls.at[i].kind == BH_CALL_MARK;
        first = i + mark;
        for (n = 0; first + n < r->calls.n && r->calls.at[first + n].kind != BH_CALL_MARK;)
            n++;
        summarise(out, mark ? r->calls.at[i].text : "(before the first mark)", r->calls.at + first, n);
    }
    return true;
}
