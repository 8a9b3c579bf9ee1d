/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - two recordings side by side.
 *
 * In each section the calls that both have in common are found (Myers' greedy algorithm). What is left over
 * on either side is paired by topic: a pair says which fields changed, what has no partner was added or is
 * gone.
 */
#include "record/compare.h"

#include "base/map.h"
#include "gpu/abi/rm.h"

#include <inttypes.h>

/* Past this many differences in one section only counts are compared: the memory grows with the square. */
enum { EDITS_MAX = 1024 };
/* Equal changes are put together at the latest when there are this many. */
enum { CHANGES_MERGE = 1 << 16 };
/* Among more calls of one topic than this (old times new) those that only moved are not looked for. */
enum { PAIRS_MAX = 1 << 16 };

struct section {
    const char *key, *name; /* a second one of the same name is `name (2)` */
    size_t first, n;
};
struct side {
    struct bh_call *calls; /* without marks and processes, objects replaced by their classes */
    size_t *source;        /* where each stands in the recording */
    size_t n;
    BH_VEC(struct section) sections;
    BH_VEC(uint32_t) seen;   /* how often each name of a mark was seen */
    struct bh_map by_name;   /* of a mark's name to `seen`, of a section's key to `sections` */
    struct bh_topic *topics; /* all that occur, sorted */
    size_t n_topics;
};
struct comparer {
    struct bh_comparison *out;
    const struct bh_recording *rec[2];
    struct side side[2]; /* old, new */
    uint32_t section;    /* which one is looked at */
};

/* --- one recording, made comparable --- */

static int cmp_topics(const void *a, const void *b)
{
    return bh_topic_cmp(a, b);
}
static bool has_topic(const struct side *s, const struct bh_topic *t)
{
    return bsearch(t, s->topics, s->n_topics, sizeof(*t), cmp_topics) != NULL;
}

/* classes[number]: class of that object, plus one. */
static uint32_t class_of(const uint32_t *classes, size_t n, uint32_t object)
{
    return object < n ? classes[object] : 0;
}

static bool makes_object(const struct bh_call *call)
{
    return call->kind == BH_CALL_ALLOC || call->kind == BH_CALL_DUP || call->kind == BH_CALL_MEMORY ||
           (call->kind == BH_CALL_HEAP && call->memory);
}

static struct bh_call comparable(uint32_t *classes, size_t n, const struct bh_call *call)
{
    struct bh_call c = *call;
    c.parent = class_of(classes, n, call->parent);
    c.source = class_of(classes, n, call->source);
    c.object = class_of(classes, n, call->object);
    if (makes_object(call)) {
        uint32_t class = (call->kind == BH_CALL_HEAP ? RM_CLASS_MEMORY_LOCAL : call->what) + 1;
        c.object = call->object ? class : 0;
        if (call->object && call->object < n)
            classes[call->object] = class;
    }
    return c;
}

/* A second section of the same name has a key and a name of its own. No mark can hold the key's line feed. */
static void open_section(struct side *s, struct bh_arena *arena, const char *name)
{
    uint32_t i = bh_map_find(&s->by_name, name);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)s->seen.n;
        *bh_vec_push(&s->seen) = 0;
        bh_map_add(&s->by_name, bh_arena_str(arena, name), i);
    }
    uint32_t nth = ++s->seen.at[i];
    char *key = bh_arena_printf(arena, "%s\n%" PRIu32, name, nth);
    bh_map_add(&s->by_name, key, (uint32_t)s->sections.n);
    *bh_vec_push(&s->sections) = (struct section){
        .key = key,
        .name = nth > 1 ? bh_arena_printf(arena, "%s (%" PRIu32 ")", name, nth) : bh_arena_str(arena, name),
        .first = s->n,
    };
}

static void load(struct side *s, struct bh_arena *arena, const struct bh_recording *r)
{
    size_t n = r->calls.n + 1;
    uint32_t *classes = bh_alloc(n, sizeof(*classes));
    s->calls = bh_alloc(n, sizeof(*s->calls));
    s->source = bh_alloc(n, sizeof(*s->source));
    s->topics = bh_alloc(n, sizeof(*s->topics));
    open_section(s, arena, "(before the first mark)");
    for (size_t i = 0; i < r->calls.n; i++) {
        const struct bh_call *call = &r->calls.at[i];
        if (call->kind == BH_CALL_MARK)
            open_section(s, arena, call->text);
        if (!bh_call_has_topic(call))
            continue;
        s->source[s->n] = i;
        s->topics[s->n] = bh_topic_of(call);
        s->calls[s->n++] = comparable(classes, n, call);
        s->sections.at[s->sections.n - 1].n++;
    }
    s->n_topics = s->n;
    qsort(s->topics, s->n_topics, sizeof(*s->topics), cmp_topics);
    free(classes);
}

static void unload(struct side *s)
{
    free(s->calls);
    free(s->source);
    free(s->topics);
    bh_vec_fini(&s->sections);
    bh_vec_fini(&s->seen);
    bh_map_fini(&s->by_name);
}

/* --- what two sections have in common --- */

struct span {
    const struct bh_call *at;
    size_t n;
    bool *kept; /* of each call: the other side has it too */
};

/* Row d of the algorithm's table holds diagonals -d to d. */
static int64_t *row(int64_t *rows, int64_t d)
{
    return rows + d * d + d;
}

/* Which neighbour the furthest path on diagonal k came from. */
static bool came_down(const int64_t *before, int64_t d, int64_t k)
{
    return k == -d || (k != d && before[k - 1] < before[k + 1]);
}

/* Fills row after row until both ends are reached; the number of edits, or -1: more than `max`. */
static int64_t walk(const struct span *a, const struct span *b, int64_t *rows, int64_t max)
{
    int64_t n = (int64_t)a->n, m = (int64_t)b->n;
    for (int64_t d = 0; d <= max; d++) {
        int64_t *now = row(rows, d);
        const int64_t *before = d ? row(rows, d - 1) : NULL;
        for (int64_t k = -d; k <= d; k += 2) {
            int64_t x = !before ? 0 : came_down(before, d, k) ? before[k + 1] : before[k - 1] + 1;
            while (x < n && x - k < m && bh_call_same(&a->at[x], &b->at[x - k]))
                x++;
            now[k] = x;
            if (x == n && x - k == m)
                return d;
        }
    }
    return -1;
}

static void keep(const struct span *a, const struct span *b, int64_t x, int64_t y)
{
    a->kept[x] = b->kept[y] = true;
}

/* From the ends back to the start: every diagonal step is a call that both have. */
static void walk_back(const struct span *a, const struct span *b, int64_t *rows, int64_t d)
{
    int64_t x = (int64_t)a->n, y = (int64_t)b->n;
    for (; d > 0; d--) {
        const int64_t *before = row(rows, d - 1);
        int64_t k = x - y, from = came_down(before, d, k) ? k + 1 : k - 1;
        int64_t to_x = before[from], to_y = to_x - from;
        while (x > to_x && y > to_y)
            keep(a, b, --x, --y);
        x = to_x;
        y = to_y;
    }
    while (x > 0 && y > 0)
        keep(a, b, --x, --y);
}

static void find_common(struct span a, struct span b)
{
    while (a.n && b.n && bh_call_same(a.at, b.at)) {
        *a.kept++ = *b.kept++ = true;
        a.at++, b.at++, a.n--, b.n--;
    }
    while (a.n && b.n && bh_call_same(&a.at[a.n - 1], &b.at[b.n - 1]))
        a.kept[--a.n] = b.kept[--b.n] = true;
    if (!a.n || !b.n)
        return;
    size_t all = a.n + b.n, max = all < EDITS_MAX ? all : EDITS_MAX;
    int64_t *rows = bh_alloc((max + 1) * (max + 1), sizeof(*rows));
    int64_t d = walk(&a, &b, rows, (int64_t)max);
    if (d >= 0)
        walk_back(&a, &b, rows, d);
    free(rows);
}

/* --- changes --- */

enum form { DEC, HEX, BYTES, CLASS, FILE_NAME };
#define FIELD(name, form, member) \
    {name, form, (uint8_t)sizeof(((struct bh_call *)0)->member), (uint16_t)offsetof(struct bh_call, member)}
static const struct {
    const char *name;
    uint8_t form, width; /* enum form */
    uint16_t at;
} FIELDS[] = {
    FIELD("structure", BYTES, bytes),
    FIELD("params", BYTES, params),
    FIELD("flags", HEX, flags),
    FIELD("status", HEX, status),
    FIELD("errno", DEC, error),
    FIELD("size", BYTES, size),
    FIELD("attr", HEX, attr),
    FIELD("attr2", HEX, attr2),
    FIELD("memory flags", HEX, mflags),
    FIELD("memory params", DEC, memory),
    FIELD("object", CLASS, object),
    FIELD("parent", CLASS, parent),
    FIELD("source", CLASS, source),
    FIELD("file", FILE_NAME, file),
    FIELD("GPU", DEC, gpu),
    FIELD("protection", HEX, what),
    FIELD("times", DEC, times),
};

static uint64_t field_get(const struct bh_call *call, size_t field)
{
    const char *at = (const char *)call + FIELDS[field].at;
    uint8_t one;
    uint32_t four;
    uint64_t eight;
    switch (FIELDS[field].width) {
    case sizeof(one):
        memcpy(&one, at, sizeof(one));
        return one;
    case sizeof(four):
        memcpy(&four, at, sizeof(four));
        return four;
    default:
        memcpy(&eight, at, sizeof(eight));
        return eight;
    }
}

/* All but `calls` and the sections. */
static int cmp_changes(const void *pa, const void *pb)
{
    const struct bh_change *a = pa, *b = pb;
    bool named = a->kind == BH_CHANGE_SECTION_GONE || a->kind == BH_CHANGE_SECTION_NEW;
    int topics = bh_topic_cmp(&a->topic, &b->topic);
    if ((a->kind > BH_CHANGE_SECTION_NEW) != (b->kind > BH_CHANGE_SECTION_NEW))
        return a->kind > BH_CHANGE_SECTION_NEW ? 1 : -1;
    if (topics)
        return topics;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->field != b->field)
        return a->field < b->field ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return named ? strcmp(a->section, b->section) : 0;
}

static int cmp_changes_in_order(const void *a, const void *b)
{
    int d = cmp_changes(a, b);
    uint32_t first = ((const struct bh_change *)a)->last, second = ((const struct bh_change *)b)->last;
    return d ? d : first < second ? -1 : first > second;
}

static void merge(struct bh_comparison *c)
{
    size_t kept = 0;
    if (c->changes.n)
        qsort(c->changes.at, c->changes.n, sizeof(*c->changes.at), cmp_changes_in_order);
    for (size_t i = 0; i < c->changes.n; i++) {
        struct bh_change *to = kept ? &c->changes.at[kept - 1] : NULL, *from = &c->changes.at[i];
        if (!to || cmp_changes(to, from) != 0) {
            c->changes.at[kept++] = *from;
            continue;
        }
        to->calls += from->calls;
        to->sections += to->last == from->last ? 0 : from->sections;
        to->last = from->last;
    }
    c->changes.n = kept;
}

static void change(struct comparer *c, const struct section *section, struct bh_change what)
{
    if (c->out->changes.n >= CHANGES_MERGE && c->out->changes.n == c->out->changes.cap)
        merge(c->out);
    what.section = section->name;
    what.sections = 1;
    what.last = c->section;
    *bh_vec_push(&c->out->changes) = what;
}

/* What differs between two calls of one topic; nothing: they only stand elsewhere. */
static void change_fields(struct comparer *c, const struct section *s, const struct bh_call *a,
                          const struct bh_call *b, bool moved)
{
    struct bh_change what = {.topic = bh_topic_of(a), .calls = b->times};
    bool any = false;
    for (size_t i = 0; i < BH_COUNT_OF(FIELDS); i++) {
        what.from = field_get(a, i);
        what.to = field_get(b, i);
        /* `what` is what the topic is, except of a mapping. */
        if (what.from == what.to ||
            (FIELDS[i].at == offsetof(struct bh_call, what) && a->kind != BH_CALL_MAP))
            continue;
        what.kind = BH_CHANGE_FIELD;
        what.field = (uint8_t)i;
        change(c, s, what);
        any = true;
    }
    if (!any && moved) {
        what.kind = BH_CHANGE_ORDER;
        what.from = what.to = 0;
        what.field = 0;
        change(c, s, what);
    }
}

static void change_count(struct comparer *c, const struct section *s, const struct bh_call *call, int side)
{
    struct bh_topic t = bh_topic_of(call);
    bool elsewhere = has_topic(&c->side[!side], &t);
    change(c, s,
           (struct bh_change){
               .kind = side        ? elsewhere ? BH_CHANGE_MORE : BH_CHANGE_TOPIC_NEW
                       : elsewhere ? BH_CHANGE_LESS
                                   : BH_CHANGE_TOPIC_GONE,
               .topic = t,
               .calls = call->times,
           });
}

/* --- what is left over --- */

struct left {
    struct bh_topic topic;
    const struct bh_call *call; /* NULL: it has found its partner */
};

static int cmp_left(const void *pa, const void *pb)
{
    const struct left *a = pa, *b = pb;
    int d = bh_topic_cmp(&a->topic, &b->topic);
    return d ? d : a->call < b->call ? -1 : a->call > b->call;
}

static size_t collect(const struct span *s, struct left *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!s->kept[i])
            ret[n++] = (struct left){bh_topic_of(&s->at[i]), &s->at[i]};
    if (n)
        qsort(ret, n, sizeof(*ret), cmp_left);
    return n;
}

static size_t same_topic(const struct left *l, size_t n)
{
    size_t i = 0;
    while (i < n && bh_topic_cmp(&l[i].topic, &l[0].topic) == 0)
        i++;
    return i;
}

/* The calls of one topic: first those that only moved, then one by one in order. */
static void pair(struct comparer *c, const struct section *s, struct left *a, size_t n, struct left *b,
                 size_t m)
{
    for (size_t i = 0; n * m <= PAIRS_MAX && i < n; i++) {
        size_t j = 0;
        while (j < m && !(b[j].call && bh_call_same(a[i].call, b[j].call)))
            j++;
        if (j < m) {
            change_fields(c, s, a[i].call, b[j].call, true);
            a[i].call = b[j].call = NULL;
        }
    }
    for (size_t i = 0, j = 0; i < n || j < m;) {
        if (i < n && !a[i].call)
            i++;
        else if (j < m && !b[j].call)
            j++;
        else if (i < n && j < m)
            change_fields(c, s, a[i++].call, b[j++].call, true);
        else if (i < n)
            change_count(c, s, a[i++].call, 0);
        else
            change_count(c, s, b[j++].call, 1);
    }
}

static void compare_left(struct comparer *c, const struct section *s, const struct span *a,
                         const struct span *b)
{
    struct left *la = bh_alloc(a->n + 1, sizeof(*la)), *lb = bh_alloc(b->n + 1, sizeof(*lb));
    size_t n = collect(a, la), m = collect(b, lb);
    for (size_t i = 0, j = 0; i < n || j < m;) {
        int d = i == n ? 1 : j == m ? -1 : bh_topic_cmp(&la[i].topic, &lb[j].topic);
        size_t in_a = d <= 0 ? same_topic(la + i, n - i) : 0, in_b = d >= 0 ? same_topic(lb + j, m - j) : 0;
        pair(c, s, la + i, in_a, lb + j, in_b);
        i += in_a;
        j += in_b;
    }
    free(la);
    free(lb);
}

/* Calls that both have may still have been repeated more or less often. */
static void compare_kept(struct comparer *c, const struct section *s, const struct span *a,
                         const struct span *b)
{
    for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
        if (!a->kept[i])
            i++;
        else if (!b->kept[j])
            j++;
        else
            change_fields(c, s, &a->at[i++], &b->at[j++], false);
    }
}

static struct span span_of(const struct side *side, const struct section *s)
{
    return (struct span){side->calls + s->first, s->n, bh_alloc(s->n + 1, sizeof(bool))};
}

static void compare_section(struct comparer *c, const struct section *old, const struct section *new)
{
    struct span a = span_of(&c->side[0], old), b = span_of(&c->side[1], new);
    find_common(a, b);
    compare_kept(c, old, &a, &b);
    compare_left(c, old, &a, &b);
    merge(c->out);
    free(a.kept);
    free(b.kept);
}

static void compare_sections(struct comparer *c)
{
    const struct side *old = &c->side[0], *new = &c->side[1];
    for (size_t i = 0; i < old->sections.n; i++, c->section++) {
        const struct section *s = &old->sections.at[i];
        uint32_t there = bh_map_find(&new->by_name, s->key);
        if (there == BH_MAP_NONE)
            change(c, s, (struct bh_change){.kind = BH_CHANGE_SECTION_GONE, .calls = s->n});
        else
            compare_section(c, s, &new->sections.at[there]);
    }
    for (size_t i = 0; i < new->sections.n; i++, c->section++) {
        const struct section *s = &new->sections.at[i];
        if (bh_map_find(&old->by_name, s->key) == BH_MAP_NONE)
            change(c, s, (struct bh_change){.kind = BH_CHANGE_SECTION_NEW, .calls = s->n});
    }
    merge(c->out);
}

/* Where the shapes agree throughout, calls correspond one to one, and so must the objects. */
static void compare_objects(struct comparer *c)
{
    const struct side *old = &c->side[0], *new = &c->side[1];
    for (size_t i = 0; i < old->sections.n; i++, c->section++) {
        const struct section *s = &old->sections.at[i];
        const struct section *t = &new->sections.at[bh_map_find(&new->by_name, s->key)];
        for (size_t k = 0; k < s->n; k++) {
            const struct bh_call *a = &c->rec[0]->calls.at[old->source[s->first + k]];
            const struct bh_call *b = &c->rec[1]->calls.at[new->source[t->first + k]];
            if (!bh_call_same(a, b))
                change(c, s,
                       (struct bh_change){
                           .kind = BH_CHANGE_OBJECTS, .topic = bh_topic_of(a), .calls = b->times});
        }
    }
    merge(c->out);
}

void bh_recording_compare(const struct bh_recording *old, const struct bh_recording *new,
                          struct bh_comparison *ret)
{
    struct comparer c = {.out = ret, .rec = {old, new}};
    *ret = (struct bh_comparison){0};
    load(&c.side[0], &ret->arena, old);
    load(&c.side[1], &ret->arena, new);
    compare_sections(&c);
    if (!ret->changes.n)
        compare_objects(&c);
    unload(&c.side[0]);
    unload(&c.side[1]);
}

void bh_comparison_fini(struct bh_comparison *c)
{
    bh_vec_fini(&c->changes);
    bh_arena_fini(&c->arena);
}

/* --- for people --- */

static void write_value(struct bh_buf *out, uint8_t field, uint64_t v)
{
    switch (FIELDS[field].form) {
    case HEX:
        bh_buf_printf(out, "%" PRIx64, v);
        break;
    case CLASS:
        if (v)
            bh_buf_printf(out, "class %" PRIx64, v - 1);
        else
            bh_buf_str(out, "none");
        break;
    case FILE_NAME:
        bh_buf_str(out, bh_call_file_name((uint8_t)v));
        break;
    default:
        bh_buf_printf(out, "%" PRIu64, v);
    }
}

static void write_change(struct bh_buf *out, const struct bh_change *c)
{
    static const char *const TEXTS[] = {
        [BH_CHANGE_SECTION_GONE] = "gone",
        [BH_CHANGE_SECTION_NEW] = "new",
        [BH_CHANGE_TOPIC_GONE] = "no longer used",
        [BH_CHANGE_TOPIC_NEW] = "new",
        [BH_CHANGE_LESS] = "used less often",
        [BH_CHANGE_MORE] = "used more often",
        [BH_CHANGE_ORDER] = "made in another place",
        [BH_CHANGE_OBJECTS] = "made on another object of the same class",
    };
    bool section = c->kind <= BH_CHANGE_SECTION_NEW;
    if (section)
        bh_buf_printf(out, "section %s", c->section);
    else
        bh_topic_write(out, &c->topic);
    bh_buf_str(out, ": ");
    if (c->kind == BH_CHANGE_FIELD) {
        bh_buf_printf(out, "%s ", FIELDS[c->field].name);
        write_value(out, c->field, c->from);
        bh_buf_str(out, " -> ");
        write_value(out, c->field, c->to);
        bh_buf_str(out, FIELDS[c->field].form == BYTES ? " bytes" : "");
    } else {
        bh_buf_str(out, TEXTS[c->kind]);
    }
    bh_buf_printf(out, " (%" PRIu64 " call%s", c->calls, c->calls == 1 ? "" : "s");
    if (!section)
        bh_buf_printf(out, " in %s", c->section);
    if (c->sections > 1)
        bh_buf_printf(out, " and %" PRIu32 " more section%s", c->sections - 1, c->sections == 2 ? "" : "s");
    bh_buf_str(out, ")\n");
}

void bh_comparison_write(struct bh_buf *out, const struct bh_comparison *c)
{
    for (size_t i = 0; i < c->changes.n; i++)
        write_change(out, &c->changes.at[i]);
}
