/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c - a keeper's spec and end record as JSON.
 *
 * One table says which member is where, for writing and for reading: what one says the other understands. What is 0, false or
 * NULL is left out.
 */
#include "wire/keeper.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum kind { U64, U32, BOOL, TEXT, NAME, WHY, LIST, NUMBERS, DEVICES, WORD, PART };

struct member {
    const char *name;
    enum kind kind;
    size_t off;               /* of the value */
    size_t n_off;             /* NUMBERS, DEVICES: of how many */
    const char *const *words; /* WORD: the names of 0, 1, ... */
    const struct table *part; /* PART */
};
struct table {
    const struct member *at;
    size_t n;
};

static const char *const tiers[] = {"process", "container", "external", NULL};
static const char *const views[] = {"card", "slice", "private", NULL};
static const char *const hows[] = {"exited", "killed", "notBegun", NULL};

#define AT(type, field) offsetof(struct type, field)
static const struct member share_members[] = {
    {.name = "weight", .kind = U32, .off = AT(bh_lease_share, weight)},
    {.name = "capPermille", .kind = U32, .off = AT(bh_lease_share, cap_permille)},
    {.name = "floorPermille", .kind = U32, .off = AT(bh_lease_share, floor_permille)},
    {.name = "latency", .kind = U32, .off = AT(bh_lease_share, latency)},
    {.name = "name", .kind = NAME, .off = AT(bh_lease_share, name)},
};
static const struct table share = {share_members, BH_COUNT_OF(share_members)};

static const struct member limit_members[] = {
    {.name = "memoryBytes", .kind = U64, .off = AT(bh_keeper_limits, memory_bytes)},
    {.name = "pids", .kind = U64, .off = AT(bh_keeper_limits, pids)},
    {.name = "cpuMilli", .kind = U32, .off = AT(bh_keeper_limits, cpu_milli)},
    {.name = "cpus", .kind = TEXT, .off = AT(bh_keeper_limits, cpus)},
    {.name = "nodes", .kind = TEXT, .off = AT(bh_keeper_limits, nodes)},
    {.name = "diskBytesPerS", .kind = U64, .off = AT(bh_keeper_limits, disk_bytes_per_s)},
    {.name = "devicesHeld", .kind = BOOL, .off = AT(bh_keeper_limits, devices_held)},
    {.name = "devices",
     .kind = DEVICES,
     .off = AT(bh_keeper_limits, devices),
     .n_off = AT(bh_keeper_limits, n_devices)},
};
static const struct table limits = {limit_members, BH_COUNT_OF(limit_members)};

static const struct member spec_members[] = {
    {.name = "lease", .kind = U64, .off = AT(bh_keeper_spec, lease)},
    {.name = "tier", .kind = WORD, .off = AT(bh_keeper_spec, tier), .words = tiers},
    {.name = "runDir", .kind = TEXT, .off = AT(bh_keeper_spec, run_dir)},
    {.name = "cgroup", .kind = TEXT, .off = AT(bh_keeper_spec, cgroup)},
    {.name = "graceMs", .kind = U32, .off = AT(bh_keeper_spec, grace_ms)},
    {.name = "outputBytes", .kind = U64, .off = AT(bh_keeper_spec, output_bytes)},
    {.name = "attach", .kind = BOOL, .off = AT(bh_keeper_spec, attach)},
    {.name = "gate", .kind = BOOL, .off = AT(bh_keeper_spec, gate)},
    {.name = "capBytes", .kind = U64, .off = AT(bh_keeper_spec, cap_bytes)},
    {.name = "tickMs", .kind = U32, .off = AT(bh_keeper_spec, tick_ms)},
    {.name = "view", .kind = WORD, .off = AT(bh_keeper_spec, view), .words = views},
    {.name = "rdma", .kind = BOOL, .off = AT(bh_keeper_spec, rdma)},
    {.name = "share", .kind = PART, .off = AT(bh_keeper_spec, share), .part = &share},
    {.name = "uid", .kind = U32, .off = AT(bh_keeper_spec, uid)},
    {.name = "gid", .kind = U32, .off = AT(bh_keeper_spec, gid)},
    {.name = "user", .kind = TEXT, .off = AT(bh_keeper_spec, user)},
    {.name = "groups",
     .kind = NUMBERS,
     .off = AT(bh_keeper_spec, groups),
     .n_off = AT(bh_keeper_spec, n_groups)},
    {.name = "cwd", .kind = TEXT, .off = AT(bh_keeper_spec, cwd)},
    {.name = "argv", .kind = LIST, .off = AT(bh_keeper_spec, argv)},
    {.name = "env", .kind = LIST, .off = AT(bh_keeper_spec, env)},
    {.name = "limits", .kind = PART, .off = AT(bh_keeper_spec, limits), .part = &limits},
    {.name = "runtime", .kind = LIST, .off = AT(bh_keeper_spec, runtime)},
    {.name = "bundle", .kind = TEXT, .off = AT(bh_keeper_spec, bundle)},
    {.name = "container", .kind = TEXT, .off = AT(bh_keeper_spec, container)},
    {.name = "listener", .kind = TEXT, .off = AT(bh_keeper_spec, listener)},
    {.name = "probe", .kind = TEXT, .off = AT(bh_keeper_spec, probe)},
};
static const struct table spec_table = {spec_members, BH_COUNT_OF(spec_members)};

static const struct member end_members[] = {
    {.name = "lease", .kind = U64, .off = AT(bh_keeper_end, lease)},
    {.name = "how", .kind = WORD, .off = AT(bh_keeper_end, how), .words = hows},
    {.name = "status", .kind = U32, .off = AT(bh_keeper_end, status)},
    {.name = "signal", .kind = U32, .off = AT(bh_keeper_end, signal)},
    {.name = "code", .kind = U32, .off = AT(bh_keeper_end, code)}, /* below 0: written as 32 bits */
    {.name = "stopped", .kind = BOOL, .off = AT(bh_keeper_end, stopped)},
    {.name = "startedMs", .kind = U64, .off = AT(bh_keeper_end, started_ms)},
    {.name = "endedMs", .kind = U64, .off = AT(bh_keeper_end, ended_ms)},
    {.name = "counted", .kind = BOOL, .off = AT(bh_keeper_end, counted)},
    {.name = "peakBytes", .kind = U64, .off = AT(bh_keeper_end, peak_bytes)},
    {.name = "refused", .kind = U64, .off = AT(bh_keeper_end, refused)},
    {.name = "denied", .kind = U64, .off = AT(bh_keeper_end, denied)},
    {.name = "killed", .kind = U64, .off = AT(bh_keeper_end, killed)},
    {.name = "outOfMemory", .kind = U64, .off = AT(bh_keeper_end, out_of_memory)},
    {.name = "outputLostBytes", .kind = U64, .off = AT(bh_keeper_end, output_lost_bytes)},
    {.name = "why", .kind = WHY, .off = AT(bh_keeper_end, why)},
};
static const struct table end_table = {end_members, BH_COUNT_OF(end_members)};

/* ---- writing ---- */

static void write_list(struct bh_json *j, const char *name, const char *const *at)
{
    if (!at)
        return;
    bh_json_key(j, name);
    bh_json_open(j, '[');
    for (; *at; at++)
        bh_json_str(j, *at);
    bh_json_close(j, ']');
}

static void write_numbers(struct bh_json *j, const char *name, const uint32_t *at, size_t n)
{
    if (n == 0)
        return;
    bh_json_key(j, name);
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < n; i++)
        bh_json_u64(j, at[i]);
    bh_json_close(j, ']');
}

static void write_text(struct bh_json *j, const char *name, const char *text)
{
    if (text && *text)
        bh_json_key_str(j, name, text);
}

static void write_table(struct bh_json *j, const struct table *t, const void *from);

static void write_member(struct bh_json *j, const struct member *m, const unsigned char *at, const void *from)
{
    const unsigned char *count = (const unsigned char *)from + m->n_off;
    union {
        uint64_t u64;
        uint32_t u32;
        bool flag;
        const char *text;
        const char *const *list;
        const uint32_t *numbers;
        const struct bh_keeper_device *devices;
        size_t n;
    } v = {0}, n = {0};
    switch (m->kind) {
    case U64:
        memcpy(&v.u64, at, sizeof(v.u64));
        if (v.u64)
            bh_json_key_u64(j, m->name, v.u64);
        break;
    case U32:
        memcpy(&v.u32, at, sizeof(v.u32));
        if (v.u32)
            bh_json_key_u64(j, m->name, v.u32);
        break;
    case WORD:
        memcpy(&v.u32, at, sizeof(v.u32));
        bh_json_key_str(j, m->name, m->words[v.u32]);
        break;
    case BOOL:
        memcpy(&v.flag, at, sizeof(v.flag));
        if (v.flag)
            bh_json_key_bool(j, m->name, true);
        break;
    case TEXT:
        memcpy(&v.text, at, sizeof(v.text));
        write_text(j, m->name, v.text);
        break;
    case NAME:
    case WHY:
        write_text(j, m->name, (const char *)at);
        break;
    case LIST:
        memcpy(&v.list, at, sizeof(v.list));
        write_list(j, m->name, v.list);
        break;
    case NUMBERS:
    case DEVICES: /* pairs */
        memcpy(&v.numbers, at, sizeof(v.numbers));
        memcpy(&n.n, count, sizeof(n.n));
        write_numbers(j, m->name, v.numbers, m->kind == DEVICES ? 2 * n.n : n.n);
        break;
    case PART:
        bh_json_key(j, m->name);
        bh_json_open(j, '{');
        write_table(j, m->part, at);
        bh_json_close(j, '}');
        break;
    }
}

static void write_table(struct bh_json *j, const struct table *t, const void *from)
{
    for (size_t i = 0; i < t->n; i++)
        write_member(j, &t->at[i], (const unsigned char *)from + t->at[i].off, from);
}

static void write_all(const struct table *t, const void *from, struct bh_buf *out)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", BH_KEEPER_VERSION);
    write_table(&j, t, from);
    bh_json_close(&j, '}');
}

/* ---- reading ---- */

struct reading {
    struct bh_json_reader r;
    struct bh_arena *arena;
    char *scratch; /* as long as the whole text: no string is longer */
    size_t size;
    char what[200]; /* what is wrong, where the JSON itself is not */
};

static bool wrong(struct reading *g, const char *what, const char *name)
{
    if (!*g->what)
        (void)snprintf(g->what, sizeof(g->what), "%s '%.60s'", what, name);
    return false;
}

static bool read_number(struct reading *g, uint64_t max, uint64_t *ret)
{
    return bh_json_read_u64(&g->r, ret) && (*ret <= max || wrong(g, "a number is too large:", "32 bits"));
}

static const char *read_text(struct reading *g)
{
    return bh_json_read_str(&g->r, g->scratch, g->size) ? bh_arena_str(g->arena, g->scratch) : NULL;
}

static bool read_list(struct reading *g, const char *const **ret)
{
    BH_VEC(const char *) all = {0};
    bool ok = bh_json_read_open(&g->r, '[');
    while (ok && bh_json_read_item(&g->r)) {
        const char *one = read_text(g);
        ok = one && (all.n < BH_KEEPER_LIST_MAX || wrong(g, "too many in a", "list"));
        if (ok)
            *bh_vec_push(&all) = one;
    }
    const char **at = bh_arena_alloc(g->arena, (all.n + 1) * sizeof(*at));
    for (size_t i = 0; i < all.n; i++)
        at[i] = all.at[i];
    bh_vec_fini(&all);
    *ret = at;
    return ok;
}

static bool read_numbers(struct reading *g, bool pairs, const uint32_t **ret, size_t *ret_n)
{
    BH_VEC(uint32_t) all = {0};
    bool ok = bh_json_read_open(&g->r, '[');
    uint64_t v = 0;
    while (ok && bh_json_read_item(&g->r)) {
        ok = read_number(g, UINT32_MAX, &v) &&
             (all.n < 2 * (size_t)BH_KEEPER_LIST_MAX || wrong(g, "too many in a", "list"));
        if (ok)
            *bh_vec_push(&all) = (uint32_t)v;
    }
    if (ok && pairs && all.n % 2)
        ok = wrong(g, "not in pairs:", "devices");
    uint32_t *at = bh_arena_alloc(g->arena, (all.n + 1) * sizeof(*at));
    if (all.n)
        memcpy(at, all.at, all.n * sizeof(*at));
    *ret_n = pairs ? all.n / 2 : all.n;
    bh_vec_fini(&all);
    *ret = at;
    return ok;
}

static bool read_word(struct reading *g, const struct member *m, uint32_t *ret)
{
    if (!bh_json_read_str(&g->r, g->scratch, g->size))
        return false;
    for (*ret = 0; m->words[*ret]; (*ret)++)
        if (bh_str_eq(m->words[*ret], g->scratch))
            return true;
    return wrong(g, "not a word for it:", m->name);
}

static bool read_bool(struct reading *g, bool *ret)
{
    const char kind = bh_json_read_peek(&g->r);
    *ret = kind == 't';
    return kind == 't' || kind == 'f' ? bh_json_read_skip(&g->r) : wrong(g, "neither true nor false:", "");
}

static bool read_table(struct reading *g, const struct table *t, void *ret);

static bool read_member(struct reading *g, const struct member *m, unsigned char *at, void *all)
{
    unsigned char *count = (unsigned char *)all + m->n_off;
    uint64_t number = 0;
    uint32_t small = 0;
    size_t n = 0;
    bool ok, flag = false;
    switch (m->kind) {
    case U64:
        ok = read_number(g, UINT64_MAX, &number);
        memcpy(at, &number, sizeof(number));
        return ok;
    case U32:
        ok = read_number(g, UINT32_MAX, &number);
        small = (uint32_t)number;
        memcpy(at, &small, sizeof(small));
        return ok;
    case WORD:
        ok = read_word(g, m, &small);
        memcpy(at, &small, sizeof(small));
        return ok;
    case BOOL:
        ok = read_bool(g, &flag);
        memcpy(at, &flag, sizeof(flag));
        return ok;
    case TEXT: {
        const char *text = read_text(g);
        memcpy(at, &text, sizeof(text));
        return text;
    }
    case NAME:
        return bh_json_read_str(&g->r, (char *)at, BH_GOVERN_NAME);
    case WHY:
        return bh_json_read_str(&g->r, (char *)at, BH_KEEPER_TEXT);
    case LIST: {
        const char *const *list = NULL;
        ok = read_list(g, &list);
        memcpy(at, &list, sizeof(list));
        return ok;
    }
    case NUMBERS:
    case DEVICES: {
        const uint32_t *numbers = NULL;
        ok = read_numbers(g, m->kind == DEVICES, &numbers, &n);
        memcpy(at, &numbers, sizeof(numbers));
        memcpy(count, &n, sizeof(n));
        return ok;
    }
    case PART:
        return read_table(g, m->part, at);
    }
    return false;
}

static const struct member *find(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (bh_str_eq(t->at[i].name, name))
            return &t->at[i];
    return NULL;
}

/* Each member once, and none that is not known. */
static bool read_table(struct reading *g, const struct table *t, void *ret)
{
    const bool is_top = t == &spec_table || t == &end_table;
    const uint64_t version_bit = UINT64_C(1) << 63;
    char key[32];
    uint64_t seen = 0, version = 0;
    bool ok = bh_json_read_open(&g->r, '{');
    while (ok && bh_json_read_member(&g->r, key, sizeof(key))) {
        const struct member *m = find(t, key);
        const bool is_version = is_top && bh_str_eq(key, "version");
        const uint64_t bit = m ? UINT64_C(1) << (m - t->at) : version_bit;
        if (!m && !is_version)
            ok = wrong(g, "an unknown member", key);
        else if (seen & bit)
            ok = wrong(g, "twice:", key);
        else
            ok = m ? read_member(g, m, (unsigned char *)ret + m->off, ret)
                   : read_number(g, UINT64_MAX, &version) &&
                         (version == BH_KEEPER_VERSION || wrong(g, "not this program's:", key));
        seen |= bit;
    }
    if (ok && is_top && !(seen & version_bit))
        ok = wrong(g, "no", "version");
    return ok && !g->r.wrong && !g->r.is_short;
}

static int read_all(const struct table *t, const char *text, size_t n, struct bh_arena *arena, void *ret,
                    const char *what, struct bh_err *err)
{
    struct reading g = {.arena = arena, .size = n + 1};
    g.scratch = bh_alloc(1, n + 1);
    bh_json_read_init(&g.r, text, n);
    const bool ok = read_table(&g, t, ret) && bh_json_read_end(&g.r);
    free(g.scratch);
    if (ok)
        return BH_OK;
    return bh_fail(err, BH_INVALID, "%s: %s", what,
                   *g.what        ? g.what
                   : g.r.is_short ? "it ends too early"
                   : g.r.wrong    ? g.r.wrong
                                  : "it is not as it should be");
}

/* ---- what makes sense ---- */

static bool is_path(const char *s)
{
    return s && *s == '/';
}

static bool is_variable(const char *s)
{
    return *s != '=' && strchr(s, '=');
}

static const char *wrong_process(const struct bh_keeper_spec *s)
{
    if (!s->argv || !s->argv[0] || !*s->argv[0])
        return "no command (argv)";
    if (s->cwd && !is_path(s->cwd))
        return "cwd is not an absolute path";
    for (const char *const *e = s->env; e && *e; e++)
        if (!is_variable(*e))
            return "a variable of env is not NAME=value";
    if (s->user && s->n_groups)
        return "user and groups: one of them";
    return s->runtime || s->bundle || s->container || s->listener || s->probe
               ? "a container's members in tier process"
               : NULL;
}

static const char *wrong_container(const struct bh_keeper_spec *s)
{
    const struct bh_keeper_limits *l = &s->limits;
    if (!s->runtime || !s->runtime[0] || !is_path(s->bundle) || !s->container || !*s->container)
        return "tier container needs runtime, bundle (an absolute path) and container";
    if (*s->container == '-' || strchr(s->container, '/'))
        return "container is no name";
    if (s->gate ? !is_path(s->listener) : s->listener != NULL)
        return "listener goes with gate, and is an absolute path";
    if (s->argv || s->env || s->cwd || s->user || s->n_groups || l->memory_bytes || l->pids || l->cpu_milli ||
        l->cpus || l->nodes || l->disk_bytes_per_s || l->devices_held)
        return "a container's command, environment and limits are its bundle's";
    return NULL;
}

static const char *wrong_external(const struct bh_keeper_spec *s)
{
    if (!s->gate || !is_path(s->listener))
        return "tier external needs the gate, and its listener (an absolute path)";
    return s->argv || s->env || s->cwd || s->user || s->n_groups || s->attach || s->runtime || s->bundle ||
                   s->container
               ? "what runs in tier external is the engine's to say"
               : NULL;
}

static int check(const struct bh_keeper_spec *s, struct bh_err *err)
{
    const char *what = s->tier == BH_KEEPER_PROCESS     ? wrong_process(s)
                       : s->tier == BH_KEEPER_CONTAINER ? wrong_container(s)
                                                        : wrong_external(s);
    if (s->tier > BH_KEEPER_EXTERNAL || s->view > BH_VIEW_PRIVATE)
        what = "no such tier or view";
    else if (s->lease == 0)
        what = "no lease";
    else if (!is_path(s->run_dir))
        what = "runDir is not an absolute path";
    else if (!s->cgroup || !*s->cgroup)
        what = "no cgroup";
    else if (!s->gate && (s->cap_bytes || s->share.weight || s->view || s->rdma))
        what = "capBytes, view, rdma and share need gate";
    else if (s->probe && (!is_path(s->probe) || !s->share.weight))
        what = "probe goes with share, and is an absolute path";
    return what ? bh_fail(err, BH_INVALID, "the keeper's spec: %s", what) : BH_OK;
}

/* ---- both ---- */

static bool is_utf8(const char *s)
{
    const unsigned char *at = (const unsigned char *)s;
    for (size_t n; at && *at; at += n)
        if ((n = bh_utf8_len(at)) == 0)
            return false;
    return true;
}

static bool all_utf8(const char *const *list)
{
    for (; list && *list; list++)
        if (!is_utf8(*list))
            return false;
    return true;
}

int bh_keeper_spec_write(const struct bh_keeper_spec *spec, struct bh_buf *out, struct bh_err *err)
{
    const char *const texts[] = {spec->run_dir,     spec->cgroup,       spec->user,      spec->cwd,
                                 spec->limits.cpus, spec->limits.nodes, spec->bundle,    spec->container,
                                 spec->listener,    spec->probe,        spec->share.name};
    bool said = all_utf8(spec->argv) && all_utf8(spec->env) && all_utf8(spec->runtime);
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++)
        said = said && is_utf8(texts[i]);
    const int rc = check(spec, err);
    if (rc < 0)
        return rc;
    if (!said)
        return bh_fail(err, BH_INVALID, "the keeper's spec: a command, a variable or a path is not UTF-8");
    write_all(&spec_table, spec, out);
    return out->full ? bh_fail(err, BH_TOO_LARGE, "the keeper's spec is longer than %zu bytes", out->max)
                     : BH_OK;
}

int bh_keeper_spec_read(const char *text, size_t n, struct bh_arena *arena, struct bh_keeper_spec *ret,
                        struct bh_err *err)
{
    *ret = (struct bh_keeper_spec){0};
    if (n > BH_KEEPER_SPEC_MAX)
        return bh_fail(err, BH_TOO_LARGE, "the keeper's spec is longer than %d bytes", BH_KEEPER_SPEC_MAX);
    const int rc = read_all(&spec_table, text, n, arena, ret, "the keeper's spec", err);
    return rc < 0 ? rc : check(ret, err);
}

void bh_keeper_end_write(const struct bh_keeper_end *end, struct bh_buf *out)
{
    write_all(&end_table, end, out);
}

int bh_keeper_end_read(const char *text, size_t n, struct bh_keeper_end *ret, struct bh_err *err)
{
    struct bh_arena none = {0};
    *ret = (struct bh_keeper_end){0};
    const int rc = read_all(&end_table, text, n, &none, ret, "the end record", err);
    bh_arena_fini(&none);
    return rc == BH_OK && ret->lease == 0 ? bh_fail(err, BH_INVALID, "the end record: no lease") : rc;
}
