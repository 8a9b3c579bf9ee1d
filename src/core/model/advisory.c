/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advisory.c - versions, and what is known to be open against one.
 *
 * A component either has one line of versions or branches that are fixed apart. For the
 * second kind the newest bulletin decides which branches live: what it leaves out gets no
 * more fixes, even where no advisory is open against the version at hand.
 */
#include "core/model/advisory.h"

#include "base/str.h"
#include "core/model/tables.h"

#include <string.h>

enum { VERSION_MAX_BYTES = 64, EXACT_FIELDS = 3 };

/* ---- versions ---- */

/* The number at *at; false when there is none or it does not fit. Moves past it. */
static bool take_field(const char **at, uint32_t *ret)
{
    const char *p = *at;
    uint64_t v = 0;

    for (; bh_is_digit(*p); p++) {
        v = v * 10 + (uint64_t)(*p - '0');
        if (v > UINT32_MAX)
            return false;
    }
    if (p == *at)
        return false;
    *at = p;
    *ret = (uint32_t)v;
    return true;
}

static bool is_suffix_char(char c)
{
    return bh_is_digit(c) || bh_is_alpha(c) || (c && strchr(".-+~_", c));
}

/*
 * What follows the dotted numbers: nothing, a packager's revision or build, or a pre-release. A pre-release may
 * itself be packaged (`~rc.2-1`), and the packager's numbers say nothing about which of them it is.
 */
static bool take_suffix(const char *at, struct bh_version *v)
{
    bool packaged = *at == '+' || (*at == '-' && bh_is_digit(at[1]));

    if (*at == '\0')
        return true;
    if ((*at != '-' && *at != '~' && *at != '+') || at[1] == '\0')
        return false;
    v->prerelease = !packaged;
    for (at++; *at;) {
        packaged = packaged || *at == '+' || (*at == '-' && bh_is_digit(at[1]));
        if (!packaged && bh_is_digit(*at)) {
            if (!take_field(&at, &v->pre_number))
                return false;
        } else if (is_suffix_char(*at)) {
            at++;
        } else {
            return false;
        }
    }
    return true;
}

int bh_version_parse(const char *s, struct bh_version *ret, struct bh_err *err)
{
    struct bh_version v = {.n = 0};
    const char *at = s;

    if (strnlen(s, VERSION_MAX_BYTES + 1) > VERSION_MAX_BYTES)
        return bh_fail(err, BH_INVALID, "a version has at most %d characters", VERSION_MAX_BYTES);
    if (*at == 'v' || *at == 'V')
        at++;
    for (bool more = true; more; more = *at == '.') {
        at += v.n > 0; /* the dot */
        if (v.n == BH_VERSION_FIELDS || !take_field(&at, &v.field[v.n]))
            return bh_fail(err, BH_INVALID, "'%s' is not a version: need dotted numbers such as 580.159.03",
                           s);
        v.n++;
    }
    if (!take_suffix(at, &v))
        return bh_fail(err, BH_INVALID, "'%s' is not a version: cannot read '%s'", s, at);
    *ret = v;
    return 0;
}

static int order(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int bh_version_compare(const struct bh_version *a, const struct bh_version *b)
{
    for (size_t i = 0; i < BH_VERSION_FIELDS; i++)
        if (a->field[i] != b->field[i])
            return order(a->field[i], b->field[i]);
    if (a->prerelease != b->prerelease)
        return a->prerelease ? -1 : 1;
    return order(a->pre_number, b->pre_number);
}

bool bh_version_accepts(const char *accepted, const char *version)
{
    struct bh_version a = {.n = 0}, v = {.n = 0};

    if (bh_version_parse(accepted, &a, NULL) != 0 || bh_version_parse(version, &v, NULL) != 0)
        return false;
    if (a.n >= EXACT_FIELDS || a.prerelease)
        return bh_version_compare(&a, &v) == 0;
    return memcmp(a.field, v.field, a.n * sizeof(a.field[0])) == 0;
}

/* ---- advisories ---- */

size_t bh_advisory_count(void)
{
    return bh_advisory_row_count;
}

const struct bh_advisory *bh_advisory_at(size_t i)
{
    return &bh_advisory_rows[i].advisory;
}

/* The rows of one component that count on a day. */
struct view {
    const struct bh_advisory_row *at;
    size_t n;
    int32_t day;
};

static bool is_out(const struct view *v, size_t i)
{
    return v->at[i].advisory.published_day <= v->day;
}

static struct view find_rows(const char *component, int32_t day)
{
    for (size_t i = 0; i < bh_advisory_group_count; i++) {
        const struct bh_advisory_group *g = &bh_advisory_groups[i];

        if (!g->platform_bound && strcmp(g->component, component) == 0)
            return (struct view){&bh_advisory_rows[g->first], g->n, day};
    }
    return (struct view){NULL, 0, day};
}

/* The newest bulletin that names the component; NULL: none yet. */
static const struct bh_advisory *newest_bulletin(const struct view *v)
{
    const struct bh_advisory *newest = NULL;

    for (size_t i = 0; i < v->n; i++) {
        const struct bh_advisory *a = &v->at[i].advisory;

        if (is_out(v, i) && (!newest || a->published_day > newest->published_day ||
                             (a->published_day == newest->published_day && a->bulletin > newest->bulletin)))
            newest = a;
    }
    return newest;
}

static bool has_ended(uint32_t branch, int32_t day)
{
    for (size_t i = 0; i < bh_driver_branch_count; i++)
        if (bh_driver_branches[i].branch == branch)
            return bh_driver_branches[i].last_day != 0 && bh_driver_branches[i].last_day < day;
    return false;
}

/* What the bulletins say about one branch. */
struct branch_state {
    bool listed, alive; /* ever; in the newest bulletin */
    uint32_t newest;    /* the highest branch of the newest bulletin */
    uint32_t next;      /* the branch to move to when this one is not alive; 0: none */
};

static struct branch_state look_at_branch(const struct view *v, uint32_t branch)
{
    const struct bh_advisory *newest = newest_bulletin(v);
    struct branch_state s = {.listed = false};

    for (size_t i = 0; i < v->n; i++) {
        uint32_t b = v->at[i].branch;

        s.listed = s.listed || (is_out(v, i) && b == branch);
        if (!newest || v->at[i].advisory.bulletin != newest->bulletin)
            continue;
        s.alive = s.alive || b == branch;
        s.newest = b > s.newest ? b : s.newest;
        /* Rows stand in the order of their branches: the first above this one is the nearest. */
        if (b > branch && !s.next && !has_ended(b, v->day))
            s.next = b;
    }
    if (!s.next && s.newest > branch) /* all have ended: the last to do so */
        s.next = s.newest;
    return s;
}

/* The lowest version of a branch (0: the one line) with all its fixes, or NULL. */
static const char *all_fixes(const struct view *v, uint32_t branch)
{
    const struct bh_advisory_row *last = NULL;

    for (size_t i = 0; i < v->n; i++)
        if (is_out(v, i) && v->at[i].branch == branch &&
            (!last || bh_version_compare(&v->at[i].fixed, &last->fixed) > 0))
            last = &v->at[i];
    return last ? last->advisory.fixed : NULL;
}

static void add_open(struct bh_exposure *e, const struct bh_advisory *a)
{
    e->n_open++;
    /* Rows of a branch stand in the order of their days, so of equal scores the newest is named. */
    if (!e->worst || a->cvss_tenths >= e->worst->cvss_tenths)
        e->worst = a;
    if (!e->oldest || a->published_day < e->oldest->published_day)
        e->oldest = a;
}

int bh_advisory_check(const char *component, const char *version, int32_t day, struct bh_exposure *ret,
                      struct bh_err *err)
{
    struct view v = find_rows(component, day);
    struct bh_exposure e = {.n_open = 0};
    bool branched = v.n > 0 && v.at[0].branch != 0;
    struct bh_version at = {.n = 0};
    uint32_t branch;
    int rc = bh_version_parse(version, &at, err);

    if (rc != 0)
        return bh_wrap(err, rc, "%s", component);
    branch = branched ? at.field[0] : 0;
    for (size_t i = 0; i < v.n; i++)
        if (is_out(&v, i) && v.at[i].branch == branch && bh_version_compare(&at, &v.at[i].fixed) < 0)
            add_open(&e, &v.at[i].advisory);
    if (branched) {
        struct branch_state s = look_at_branch(&v, branch);

        /* Never listed and above all that is: newer than the bulletins, of which they can say nothing. */
        e.unpatched_branch = !s.alive && (s.listed || branch < s.newest);
        e.fix_version = s.alive || s.next ? all_fixes(&v, s.alive ? branch : s.next) : NULL;
    } else {
        e.fix_version = all_fixes(&v, 0);
    }
    *ret = e;
    return 0;
}
