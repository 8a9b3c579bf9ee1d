/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - names of GPUs and MIG profiles to facts, and which instances can stand together.
 *
 * Placement is a search over masks of memory slices. Every instance takes at least one compute
 * slice, so a model with c of them never holds more than c instances and one instance more is
 * already a proof: no search looks at more than c + 1 of what was asked.
 */
#include "core/model/catalog.h"

#include "base/str.h"
#include "core/model/tables.h"

#include <string.h>

enum { NAME_MAX_BYTES = 80, PROFILE_GB_OFF_MAX = 3, PROFILE_GB_OFF_PART = 20, TRIM_CANDIDATES_MAX = 64 };

/* ---- models ---- */

struct folded_name {
    char s[NAME_MAX_BYTES];
    size_t n;
};

/* Takes the word off the front when it stands there whole. */
static void drop_first_word(struct folded_name *f, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(f->s, word, n) != 0 || (f->s[n] != ' ' && f->s[n] != '\0'))
        return;
    n += f->s[n] == ' ';
    memmove(f->s, f->s + n, f->n - n + 1);
    f->n -= n;
}

/*
 * As the table's names are folded: lower case, one space for a run of spaces, dashes and underscores.
 * Node labels carry the product's name followed by how it is shared (`-SHARED`, `-MIG-1g.10gb`), which is
 * not part of it. False: too long to be any name.
 */
static bool fold_name(const char *name, struct folded_name *ret)
{
    char *sharing;

    ret->n = 0;
    for (; *name; name++) {
        bool gap = *name == ' ' || *name == '-' || *name == '_';

        if (gap && (ret->n == 0 || ret->s[ret->n - 1] == ' '))
            continue;
        if (ret->n + 1 == sizeof(ret->s))
            return false;
        ret->s[ret->n++] = gap ? ' ' : bh_to_lower(*name);
    }
    if (ret->n > 0 && ret->s[ret->n - 1] == ' ')
        ret->n--;
    ret->s[ret->n] = '\0';
    drop_first_word(ret, "nvidia");
    drop_first_word(ret, "tesla");
    if (bh_str_ends(ret->s, " shared"))
        ret->s[ret->n -= strlen(" shared")] = '\0';
    sharing = strstr(ret->s, " mig ");
    if (sharing) {
        *sharing = '\0';
        ret->n = (size_t)(sharing - ret->s);
    }
    return ret->n > 0;
}

/*
 * Is it the start of `whole`, ending where a word or the number in it ends? `h100` starts `h100 80gb sxm` and
 * so does `h100 80`; `h20` does not start `h200`, which is another part.
 */
static bool starts_name(const struct folded_name *f, const char *whole)
{
    char next;

    if (strncmp(f->s, whole, f->n) != 0)
        return false;
    next = whole[f->n];
    return next == '\0' || next == ' ' || (bh_is_digit(f->s[f->n - 1]) && !bh_is_digit(next));
}

static const struct bh_model_name *find_exact(const struct folded_name *f)
{
    for (size_t i = 0; i < bh_model_name_count; i++)
        if (strcmp(f->s, bh_model_names[i].folded) == 0)
            return &bh_model_names[i];
    return NULL;
}

size_t bh_catalog_count(void)
{
    return bh_gpu_model_count;
}

const struct bh_gpu_model *bh_catalog_at(size_t i)
{
    return &bh_gpu_models[i];
}

const struct bh_gpu_model *bh_catalog_by_device(uint16_t device)
{
    for (size_t i = 0; i < bh_model_device_count; i++)
        if (bh_model_devices[i].device == device)
            return &bh_gpu_models[bh_model_devices[i].model];
    return NULL;
}

bool bh_model_has_devices(const struct bh_gpu_model *m)
{
    for (size_t i = 0; i < bh_model_device_count; i++)
        if (&bh_gpu_models[bh_model_devices[i].model] == m)
            return true;
    return false;
}

const struct bh_gpu_model *bh_catalog_find(const char *name)
{
    const struct bh_model_name *exact;
    struct folded_name f = {.n = 0};

    if (!fold_name(name, &f))
        return NULL;
    exact = find_exact(&f);
    if (exact)
        return &bh_gpu_models[exact->model];
    for (size_t i = 0; i < bh_model_name_count; i++)
        if (starts_name(&f, bh_model_names[i].folded))
            return &bh_gpu_models[bh_model_names[i].model];
    return NULL;
}

bool bh_catalog_matches(const char *name, const struct bh_gpu_model *model)
{
    const struct bh_model_name *exact;
    struct folded_name f = {.n = 0};

    if (!fold_name(name, &f))
        return false;
    exact = find_exact(&f);
    if (exact) /* `L40` names a part of its own: it does not also mean the L40S */
        return &bh_gpu_models[exact->model] == model;
    for (size_t i = 0; i < bh_model_name_count; i++)
        if (&bh_gpu_models[bh_model_names[i].model] == model && starts_name(&f, bh_model_names[i].folded))
            return true;
    return false;
}

bool bh_model_has_mig(const struct bh_gpu_model *m)
{
    return m->memory_slices != 0;
}

/* ---- profiles ---- */

struct profile_name {
    uint32_t compute, gb;
    uint8_t media; /* enum bh_mig_media */
    bool gfx;
};

/* A number of at most four digits; moves *at past it. */
static bool take_number(const char **at, uint32_t *ret)
{
    const char *p = *at;
    uint32_t v = 0;

    while (bh_is_digit(*p) && p - *at < 4)
        v = v * 10 + (uint32_t)(*p++ - '0');
    if (p == *at)
        return false;
    *at = p;
    *ret = v;
    return true;
}

/* `word` at *at, letter case ignored; moves past it. */
static bool take_word(const char **at, const char *word)
{
    const char *p = *at;

    for (; *word; word++, p++)
        if (bh_to_lower(*p) != *word)
            return false;
    *at = p;
    return true;
}

/* What follows the size: `+me`, `+me.all`, `-me`, `+gfx`; in a resource name the `+` is a `.`. */
static bool take_attribute(const char **at, struct profile_name *n)
{
    if (n->media == BH_MEDIA_PLAIN && (take_word(at, "+me.all") || take_word(at, ".me.all")))
        n->media = BH_MEDIA_ME_ALL;
    else if (n->media == BH_MEDIA_PLAIN && (take_word(at, "+me") || take_word(at, ".me")))
        n->media = BH_MEDIA_ME;
    else if (n->media == BH_MEDIA_PLAIN && take_word(at, "-me"))
        n->media = BH_MEDIA_NO_ME;
    else if (!n->gfx && (take_word(at, "+gfx") || take_word(at, ".gfx")))
        n->gfx = true;
    else
        return false;
    return true;
}

/* `[Nc.]Ng.Ngb[attribute...]`, all of it. A compute instance is no larger than the instance it is cut from. */
static bool parse_profile(const char *name, struct profile_name *ret)
{
    struct profile_name n = {.media = BH_MEDIA_PLAIN};
    const char *at = name, *p;
    uint32_t compute_instance = 1;

    p = at;
    if (take_number(&p, &compute_instance) && take_word(&p, "c."))
        at = p;
    else
        compute_instance = 1;
    if (!take_number(&at, &n.compute) || !take_word(&at, "g.") || !take_number(&at, &n.gb) ||
        !take_word(&at, "gb"))
        return false;
    while (*at)
        if (!take_attribute(&at, &n))
            return false;
    *ret = n;
    return compute_instance >= 1 && compute_instance <= n.compute;
}

const struct bh_mig_profile *bh_mig_find(const struct bh_gpu_model *m, const char *name)
{
    const struct bh_mig_profile *best = NULL;
    struct profile_name want, have;
    uint32_t best_off = PROFILE_GB_OFF_MAX + 1;

    if (!parse_profile(name, &want))
        return NULL;
    for (size_t i = 0; i < m->n_profiles; i++) {
        const struct bh_mig_profile *p = &m->profiles[i];
        uint32_t off;

        if (p->compute_slices != want.compute || p->media != want.media || p->gfx != want.gfx ||
            !parse_profile(p->name, &have))
            continue;
        off = have.gb > want.gb ? have.gb - want.gb : want.gb - have.gb;
        if (off < best_off && off * PROFILE_GB_OFF_PART <= have.gb) {
            best = p;
            best_off = off;
        }
    }
    return best;
}

/* Without a list only the plain profiles count: the others change what else fits on the GPU, so they must be named. */
static bool is_allowed(const struct bh_gpu_model *m, const struct bh_mig_profile *p,
                       const char *const *allowed, size_t n_allowed)
{
    if (n_allowed == 0)
        return p->media == BH_MEDIA_PLAIN && !p->gfx;
    for (size_t i = 0; i < n_allowed; i++)
        if (bh_mig_find(m, allowed[i]) == p)
            return true;
    return false;
}

struct bh_mig_fit bh_mig_smallest(const struct bh_gpu_model *m, uint64_t need_mib, const char *const *allowed,
                                  size_t n_allowed)
{
    struct bh_mig_fit fit = {NULL, 0};

    for (size_t i = 0; i < m->n_profiles; i++) {
        const struct bh_mig_profile *p = &m->profiles[i], *best = fit.profile;

        if (p->memory_mib == 0 || p->memory_mib < need_mib || !is_allowed(m, p, allowed, n_allowed))
            continue;
        if (!best || p->memory_mib < best->memory_mib ||
            (p->memory_mib == best->memory_mib && p->compute_slices < best->compute_slices)) {
            fit.profile = p;
            fit.waste_mib = p->memory_mib - (uint32_t)need_mib;
        }
    }
    return fit;
}

/* ---- layouts ---- */

static uint16_t slices_at(const struct bh_mig_profile *p, unsigned start)
{
    return (uint16_t)(((1U << p->placement_size) - 1U) << start);
}

static unsigned count_slices(uint16_t slices)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BH_MIG_SLICES_MAX; i++)
        n += (unsigned)slices >> i & 1U;
    return n;
}

/* Is this one of the instance's own placements? */
static bool may_start(const struct bh_mig_instance *w, size_t start_index)
{
    return w->start < 0 || w->profile->starts[start_index] == (uint8_t)w->start;
}

/* A profile of another model, or none at all, has no place on this one. */
static bool has_placement(const struct bh_gpu_model *m, const struct bh_mig_instance *w)
{
    bool of_model = false, placed = false;

    if (!w->profile)
        return false;
    for (size_t i = 0; i < m->n_profiles; i++)
        of_model = of_model || &m->profiles[i] == w->profile;
    for (size_t s = 0; s < w->profile->n_starts; s++)
        placed = placed || may_start(w, s);
    return of_model && placed;
}

static bool media_clash(const struct bh_mig_profile *a, const struct bh_mig_profile *b)
{
    if (a->media == BH_MEDIA_ME_ALL)
        return b->media != BH_MEDIA_NO_ME;
    if (b->media == BH_MEDIA_ME_ALL)
        return a->media != BH_MEDIA_NO_ME;
    return a->media == BH_MEDIA_ME && b->media == BH_MEDIA_ME;
}

/* The least that `w` takes of what is occupied, over its placements; 0: it fits beside. */
static uint16_t least_overlap(const struct bh_mig_instance *w, uint16_t occupied)
{
    uint16_t least = UINT16_MAX;

    for (size_t s = 0; s < w->profile->n_starts; s++) {
        uint16_t both = slices_at(w->profile, w->profile->starts[s]) & occupied;

        if (may_start(w, s) && count_slices(both) < count_slices(least))
            least = both;
    }
    return least;
}

/* The least that two instances take from each other, over the placements of both. */
static uint16_t pair_overlap(const struct bh_mig_instance *a, const struct bh_mig_instance *b)
{
    uint16_t least = UINT16_MAX;

    for (size_t s = 0; s < a->profile->n_starts; s++) {
        uint16_t both = least_overlap(b, slices_at(a->profile, a->profile->starts[s]));

        if (may_start(a, s) && count_slices(both) < count_slices(least))
            least = both;
    }
    return least;
}

/* What no placement can change: compute slices, and how many the driver makes of one profile. */
static bool within_counts(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n)
{
    unsigned compute = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned same = 0;

        compute += want[i].profile->compute_slices;
        for (size_t j = 0; j <= i; j++)
            same += want[j].profile == want[i].profile;
        if (compute > m->compute_slices || same > want[i].profile->max_instances)
            return false;
    }
    return true;
}

/*
 * Place want[i..n) beside what is occupied. Instances that are alike and may stand anywhere take rising starts,
 * so that no arrangement is tried twice under another numbering. Depth: at most BH_MIG_INSTANCES_MAX.
 */
static bool place(const struct bh_mig_instance *want, size_t n, size_t i, uint16_t occupied, uint8_t *starts)
{
    int after = -1;

    if (i == n)
        return true;
    for (size_t j = 0; j < i; j++)
        if (want[j].profile == want[i].profile && want[j].start < 0 && want[i].start < 0)
            after = starts[j];
    for (size_t s = 0; s < want[i].profile->n_starts; s++) {
        uint8_t start = want[i].profile->starts[s];
        uint16_t mine = slices_at(want[i].profile, start);

        if (start <= after || !may_start(&want[i], s) || (mine & occupied))
            continue;
        starts[i] = start;
        if (place(want, n, i + 1, occupied | mine, starts))
            return true;
    }
    return false;
}

/* Each instance has a placement and no two clash in their media engines, but do all find room at once? */
static bool all_placed(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                       uint8_t *starts)
{
    return n <= BH_MIG_INSTANCES_MAX && within_counts(m, want, n) && place(want, n, 0, 0, starts);
}

/* The first instance that is impossible alone, or the first pair that is impossible together. */
static bool find_clash(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                       struct bh_mig_conflict *ret)
{
    for (size_t b = 0; b < n; b++) {
        if (!has_placement(m, &want[b])) {
            *ret = (struct bh_mig_conflict){b, b, 0, "start"};
            return true;
        }
        for (size_t a = 0; a < b; a++) {
            bool media = media_clash(want[a].profile, want[b].profile);
            uint16_t slices = media ? 0 : pair_overlap(&want[a], &want[b]);

            if (media || slices) {
                *ret = (struct bh_mig_conflict){a, b, slices, media ? "media" : "overlap"};
                return true;
            }
        }
    }
    return false;
}

/* Every pair fits but not the whole: name the first that finds no room beside those before it, and what it takes. */
static struct bh_mig_conflict find_full(const struct bh_gpu_model *m, const struct bh_mig_instance *want,
                                        size_t n)
{
    uint8_t starts[BH_MIG_INSTANCES_MAX] = {0};
    struct bh_mig_conflict c = {.reason = "full"};
    uint16_t occupied = 0;
    size_t fit = 0;

    /* All n do not fit. The arrangement of the longest beginning that does stays in `starts`. */
    for (uint8_t trial[BH_MIG_INSTANCES_MAX]; fit + 1 < n && all_placed(m, want, fit + 1, trial); fit++)
        memcpy(starts, trial, sizeof(starts[0]) * (fit + 1));
    for (size_t i = 0; i < fit; i++)
        occupied |= slices_at(want[i].profile, starts[i]);
    c.a = c.b = fit;
    c.slices = least_overlap(&want[fit], occupied);
    for (size_t i = fit; i-- > 0;)
        if (slices_at(want[i].profile, starts[i]) & c.slices)
            c.a = i;
    return c;
}

bool bh_mig_layout_fits(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                        uint8_t *ret_starts, struct bh_mig_conflict *ret_conflict)
{
    size_t looked_at = n <= m->compute_slices ? n : (size_t)m->compute_slices + 1;
    uint8_t starts[BH_MIG_INSTANCES_MAX];
    struct bh_mig_conflict c;

    if (!find_clash(m, want, looked_at, &c)) {
        if (all_placed(m, want, looked_at, starts)) {
            if (ret_starts && n > 0)
                memcpy(ret_starts, starts, n);
            return true;
        }
        c = find_full(m, want, looked_at);
    }
    if (ret_conflict)
        *ret_conflict = c;
    return false;
}

/* ---- the largest part of a layout that fits ---- */

struct trim {
    const struct bh_gpu_model *m;
    const struct bh_mig_instance *want;
    size_t n, index[TRIM_CANDIDATES_MAX]; /* of want: those that could be of use */
    struct bh_mig_instance kept[BH_MIG_INSTANCES_MAX];
    size_t n_kept, n_best;
    uint64_t keep, best; /* bit i: index[i] stays */
};

static bool alike(const struct bh_mig_instance *a, const struct bh_mig_instance *b)
{
    return a->profile == b->profile && a->start == b->start;
}

/* Past the number the driver makes of one profile, more of the same add nothing. */
static void gather_candidates(struct trim *t, size_t n_want)
{
    t->n = 0;
    for (size_t i = 0; i < n_want && t->n < TRIM_CANDIDATES_MAX; i++) {
        unsigned before = 0;

        if (!has_placement(t->m, &t->want[i]))
            continue;
        for (size_t j = 0; j < t->n; j++)
            before += alike(&t->want[t->index[j]], &t->want[i]);
        if (before < t->want[i].profile->max_instances)
            t->index[t->n++] = i;
    }
}

/* Keep first, so that of equally many the earlier ones win; leaving one out leaves out all later ones like it. */
static void trim_from(struct trim *t, size_t i, uint64_t left_out)
{
    const struct bh_mig_instance *w;

    if (t->n_kept > t->n_best) {
        t->n_best = t->n_kept;
        t->best = t->keep;
    }
    while (i < t->n && left_out >> i & 1)
        i++;
    if (i == t->n || t->n_kept + (t->n - i) <= t->n_best || t->n_best == t->m->compute_slices)
        return;
    w = &t->want[t->index[i]];
    if (t->n_kept < BH_MIG_INSTANCES_MAX) {
        t->kept[t->n_kept] = *w;
        if (bh_mig_layout_fits(t->m, t->kept, t->n_kept + 1, NULL, NULL)) {
            t->n_kept++;
            t->keep |= UINT64_C(1) << i;
            trim_from(t, i + 1, left_out);
            t->keep &= ~(UINT64_C(1) << i);
            t->n_kept--;
        }
    }
    for (size_t j = i; j < t->n; j++)
        if (alike(w, &t->want[t->index[j]]))
            left_out |= UINT64_C(1) << j;
    trim_from(t, i + 1, left_out);
}

size_t bh_mig_layout_trim(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                          bool *keep)
{
    struct trim t = {.m = m, .want = want};

    gather_candidates(&t, n);
    trim_from(&t, 0, 0);
    memset(keep, 0, n * sizeof(*keep));
    for (size_t i = 0; i < t.n; i++)
        keep[t.index[i]] = t.best >> i & 1;
    return t.n_best;
}
