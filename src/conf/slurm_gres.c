/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_gres.c - what devices there are: gres.conf lines, and the Gres of each NodeName.
 *
 * The two are written by hand in two places and must agree: a GPU without a device file is
 * dropped by the node, and a node that finds fewer devices than slurm.conf promises is
 * taken out of service. Both are said as notes, with both lines.
 */
#include "conf/slurm_cluster.h"

#include "base/str.h"
#include "base/units.h"

enum {
    COUNT_MAX = 1 << 20,
    PATTERN_MAX = 1 << 16, /* node names of one pattern */
    NAMES_MAX = 1 << 18,   /* node names expanded in all */
};

/* ---- words ---- */

/* `4`, `2K`: how Slurm writes a count. 0: it is none. */
static uint64_t count_of(const char *s, size_t n)
{
    static const char suffixes[] = "kmg";
    char digits[24];
    uint64_t v;
    unsigned shift = 0;
    if (n > 1 && !bh_is_digit(s[n - 1])) {
        const char *suffix = strchr(suffixes, bh_to_lower(s[n - 1]));
        if (!suffix || !*suffix)
            return 0;
        shift = 10 * (unsigned)(suffix - suffixes + 1);
        n--;
    }
    if (n == 0 || n >= sizeof(digits))
        return 0;
    memcpy(digits, s, n);
    digits[n] = '\0';
    return bh_uint_parse(digits, COUNT_MAX, &v, NULL) == 0 && (v << shift) <= COUNT_MAX ? v << shift : 0;
}

/* The numbers in `[0-3,7]`, from behind the bracket; *end is left behind the closing one. 0: malformed. */
static uint64_t count_range(const char *p, const char **end)
{
    uint64_t total = 0;
    while (*p && *p != ']') {
        size_t n = strspn(p, "0123456789"), m = 0;
        uint64_t lo, hi;
        char a[12] = "", b[12] = "";
        if (n == 0 || n >= sizeof(a))
            return 0;
        memcpy(a, p, n);
        p += n;
        if (*p == '-') {
            m = strspn(++p, "0123456789");
            if (m == 0 || m >= sizeof(b))
                return 0;
            memcpy(b, p, m);
            p += m;
        }
        if (bh_uint_parse(a, COUNT_MAX, &lo, NULL) < 0 ||
            bh_uint_parse(m ? b : a, COUNT_MAX, &hi, NULL) < 0 || hi < lo)
            return 0;
        total += hi - lo + 1;
        p += *p == ',';
    }
    *end = p + (*p == ']');
    return *p == ']' && total <= COUNT_MAX ? total : 0;
}

/* How many files `/dev/nvidia[0-3],/dev/nvidia7` are. 0: it cannot be told. */
static uint64_t count_files(const char *p)
{
    uint64_t total = 0, piece = 1;
    if (!*p)
        return 0;
    for (;;) {
        p += strcspn(p, ",[");
        if (*p == '[') {
            uint64_t n = count_range(p + 1, &p);
            if (n == 0 || n > COUNT_MAX / piece)
                return 0;
            piece *= n;
            continue;
        }
        total += piece;
        piece = 1;
        if (!*p || total > COUNT_MAX)
            return total <= COUNT_MAX ? total : 0;
        p++;
    }
}

/* `3g.20gb`, `a100_3g.20gb`: the profile begins where this returns. NULL: no MIG slice. */
static const char *profile_in(const char *type)
{
    for (const char *p = type; p; p = strpbrk(p, "_-"), p = p ? p + 1 : NULL) {
        const char *q = p + strspn(p, "0123456789");
        if (q == p || q[0] != 'g' || q[1] != '.')
            continue;
        size_t n = strspn(q + 2, "0123456789");
        if (n && bh_to_lower(q[2 + n]) == 'g' && bh_to_lower(q[3 + n]) == 'b')
            return p;
    }
    return NULL;
}

static void set_type(struct bh_slurm *s, struct bh_slurm_gres *g, const char *type)
{
    const char *profile = profile_in(type);
    g->type = type;
    if (!profile || strcmp(g->name, "gpu") != 0)
        return;
    g->mig = true;
    g->profile = profile;
    if (profile > type + 1) {
        const char *model = bh_arena_strn(&s->arena, type, (size_t)(profile - type - 1));
        g->model = bh_catalog_find(model) ? model : NULL;
    }
}

static const char *lower(struct bh_slurm *s, const char *text, size_t n)
{
    char *kept = bh_arena_strn(&s->arena, text, n);
    for (char *p = kept; *p; p++)
        *p = bh_to_lower(*p);
    return kept;
}

static bool is_known(const char *name)
{
    return strcmp(name, "gpu") == 0 || strcmp(name, "shard") == 0 || strcmp(name, "mps") == 0;
}

static bool keep_known(struct bh_slurm *s, const struct bh_slurm_gres *g)
{
    if (is_known(g->name))
        return true;
    bh_diag_note_once(s->d, g->pos, "GRES `%.60s` is not understood and is passed over", g->name);
    return false;
}

/* ---- gres.conf ---- */

static bool detects(const struct bh_slurm_pair *p)
{
    return p && !bh_str_eq_nocase(p->value, "off") && !bh_str_eq_nocase(p->value, "none");
}

static void read_line(struct bh_slurm *s, const struct bh_slurm_record *r, const struct bh_slurm_pair *name)
{
    const struct bh_slurm_pair *type = bh_slurm_get(s, r, "type"), *nodes = bh_slurm_get(s, r, "nodename");
    const struct bh_slurm_pair *file = bh_slurm_get(s, r, "file"),
                               *many = bh_slurm_get(s, r, "multiplefiles");
    const struct bh_slurm_pair *count = bh_slurm_get(s, r, "count");
    struct bh_slurm_gres g = {.name = lower(s, name->value, strlen(name->value)),
                              .pos = s->pairs.at[r->first].pos};

    if (type && *type->value)
        set_type(s, &g, lower(s, type->value, strlen(type->value)));
    g.nodes = nodes ? nodes->value : NULL;
    if (!keep_known(s, &g))
        return;
    if (many) {
        g.files = 1; /* all of them are one device */
        g.mig = g.mig || strstr(many->value, "nvidia-caps");
    } else if (file) {
        g.files = count_files(file->value);
        if (!g.files)
            bh_diag_error(s->d, file->pos, "the device files `%.100s` cannot be read", file->value);
    }
    if (count) {
        g.count = count_of(count->value, strlen(count->value));
        if (!g.count)
            bh_diag_error(s->d, count->pos, "Count must be a whole number, not `%.40s`", count->value);
    } else {
        g.count = g.files;
    }
    *bh_vec_push(&s->lines) = g;
}

/* ---- NodeName ... Gres ---- */

/* One part of a Gres: `gpu:a100:4(S:0-1)`. */
static void read_part(struct bh_slurm *s, const struct bh_slurm_pair *gres, const char *nodes, const char *at,
                      size_t n)
{
    struct bh_slurm_gres g = {.nodes = nodes, .pos = gres->pos, .count = 1};
    size_t len = strcspn(at, ":(,");
    if (n == 0)
        return;
    g.name = lower(s, at, len < n ? len : n);
    while (len < n && at[len] == ':') {
        const char *word = at + len + 1;
        size_t left = n - len - 1, m = strcspn(word, ":(,");
        m = m < left ? m : left;
        len += 1 + m;
        uint64_t count = count_of(word, m);
        if (count)
            g.count = count;
        else if (m > 0 && (m != strlen("no_consume") || strncmp(word, "no_consume", m) != 0))
            set_type(s, &g, lower(s, word, m));
    }
    if (keep_known(s, &g))
        *bh_vec_push(&s->nodes) = g;
}

static void read_node(struct bh_slurm *s, const struct bh_slurm_pair *gres, const char *nodes)
{
    for (const char *p = gres->value; *p;) {
        size_t n = 0, depth = 0;
        for (; p[n] && (depth || p[n] != ','); n++)
            depth += p[n] == '(' ? 1 : p[n] == ')' && depth ? (size_t)-1 : 0;
        read_part(s, gres, nodes, p, n);
        p += n + (p[n] == ',');
    }
}

void bh_slurm_read_gres(struct bh_slurm *s)
{
    const struct bh_slurm_pair *by_default = NULL;
    for (size_t i = 0; i < s->records.n; i++) {
        const struct bh_slurm_record *r = &s->records.at[i];
        const struct bh_slurm_pair *name = bh_slurm_get(s, r, "name"), *node = bh_slurm_get(s, r, "nodename");
        const struct bh_slurm_pair *gres = bh_slurm_get(s, r, "gres");
        s->detects = s->detects || detects(bh_slurm_get(s, r, "autodetect"));
        if (name) {
            read_line(s, r, name);
        } else if (node && bh_str_eq_nocase(node->value, "DEFAULT")) {
            by_default = gres ? gres : by_default;
        } else if (node && (gres || by_default) && !bh_slurm_get(s, r, "autodetect")) {
            read_node(s, gres ? gres : by_default, node->value);
        }
    }
}

/* ---- do they agree? ---- */

struct sum {
    uint64_t files;
    struct bh_pos pos; /* of the first line that counts */
};

struct counting {
    struct bh_slurm *s;
    struct bh_map by_key; /* `node gpu`, `node gpu:a100`; an empty node: everywhere */
    BH_VEC(struct sum) sums;
    const struct bh_slurm_gres *g; /* at hand */
    size_t names_left;
    bool said;
};

static const char *key_of(struct counting *c, const char *node, const char *type)
{
    if (type)
        return bh_arena_printf(&c->s->arena, "%s %s:%s", node, c->g->name, type);
    return bh_arena_printf(&c->s->arena, "%s %s", node, c->g->name);
}

static void add_sum(struct counting *c, const char *key)
{
    uint32_t i = bh_map_add(&c->by_key, key, (uint32_t)c->sums.n);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)c->sums.n;
        *bh_vec_push(&c->sums) = (struct sum){.pos = c->g->pos};
    }
    c->sums.at[i].files += c->g->files;
}

static void count_node(void *ctx, const char *node)
{
    struct counting *c = ctx;
    c->names_left -= c->names_left > 0;
    add_sum(c, key_of(c, node, NULL));
    if (c->g->type)
        add_sum(c, key_of(c, node, c->g->type));
}

static struct sum find_sum(struct counting *c, const char *node)
{
    const char *const nodes[] = {node, ""};
    struct sum total = {0};
    for (size_t i = 0; i < 2; i++) {
        uint32_t at = bh_map_find(&c->by_key, key_of(c, nodes[i], c->g->type));
        if (at == BH_MAP_NONE)
            continue;
        total.files += c->sums.at[at].files;
        if (!total.pos.line)
            total.pos = c->sums.at[at].pos;
    }
    return total;
}

static void check_node(void *ctx, const char *node)
{
    struct counting *c = ctx;
    c->names_left -= c->names_left > 0;
    if (c->said)
        return;
    struct sum total = find_sum(c, node);
    if (!total.pos.line) {
        c->said = true;
        bh_diag_note(c->s->d, c->g->pos, "no line of gres.conf gives node `%.60s` the device files of its %s",
                     node, c->g->name);
    } else if (total.files != c->g->count) {
        c->said = true;
        bh_diag_note(
            c->s->d, c->g->pos,
            "node `%.60s` has %llu of %s here (line %u) but %llu by gres.conf (line %u); it will be INVAL",
            node, (unsigned long long)c->g->count, c->g->name, c->g->pos.line,
            (unsigned long long)total.files, total.pos.line);
    }
}

static void each_node(struct counting *c, bh_node_name_fn fn)
{
    size_t max = c->names_left < PATTERN_MAX ? c->names_left : PATTERN_MAX;
    if (bh_nodes_expand(c->g->nodes, max, fn, c, NULL) < 0)
        bh_diag_note_once(c->s->d, c->g->pos,
                          "the node names `%.60s` are not followed; their devices are not compared",
                          c->g->nodes);
}

/* Only GPUs are files; shards and MPS shares are counted on top of them. */
void bh_slurm_check_counts(struct bh_slurm *s)
{
    struct counting c = {.s = s, .names_left = NAMES_MAX};
    for (size_t i = 0; i < s->lines.n; i++) {
        c.g = &s->lines.at[i];
        if (strcmp(c.g->name, "gpu") != 0)
            continue;
        if (!c.g->files && !s->detects)
            bh_diag_note(s->d, c.g->pos, "a GPU without File (and no AutoDetect) is dropped by the node");
        if (c.g->nodes)
            each_node(&c, count_node);
        else
            count_node(&c, "");
    }
    for (size_t i = 0; i < s->nodes.n && s->lines.n && !s->detects; i++) {
        c.g = &s->nodes.at[i];
        c.said = false;
        if (strcmp(c.g->name, "gpu") == 0)
            each_node(&c, check_node);
    }
    bh_vec_fini(&c.sums);
    bh_map_fini(&c.by_key);
}
