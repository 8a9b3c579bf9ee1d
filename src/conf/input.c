/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/input.h"

#include "base/str.h"
#include "conf/detect.h"
#include "conf/file.h"
#include "conf/read.h"

#define FILE_MAX ((size_t)64 << 20)

/* The text of a file and its tree: kept until everything is read, for Kubernetes looks back. */
struct loaded {
    char *text;
    size_t n;
    struct bh_tree tree;
    uint32_t file;
};

struct loader {
    struct bh_input *in;
    struct bh_kube *kube;
    struct bh_slurm *slurm;
    struct bh_unit *kube_unit, *slurm_unit;
    size_t n_kube;
    bool fleet_broken; /* nothing is looked up in it: what it lacks is its mistakes' fault */
    BH_VEC(struct loaded *) kept;
    BH_VEC(bool) listed; /* per file: it was found in a folder, nobody named it */
};

void bh_input_fini(struct bh_input *in)
{
    for (size_t i = 0; i < in->units.n; i++)
        bh_policy_fini(&in->units.at[i]->policy);
    bh_vec_fini(&in->units);
    bh_vec_fini(&in->files);
    bh_fleet_fini(&in->fleet);
    bh_diags_fini(&in->diags);
    bh_arena_fini(&in->arena);
    *in = (struct bh_input){0};
}

static void loaded_free(struct loaded *f)
{
    bh_tree_fini(&f->tree);
    free(f->text);
    free(f);
}

static void loaded_freep(struct loaded **f)
{
    if (*f)
        loaded_free(*f);
}

static struct bh_unit *unit_add(struct loader *l, enum bh_source source, uint32_t file)
{
    struct bh_unit *u = bh_arena_alloc(&l->in->arena, sizeof(*u));
    bh_policy_init(&u->policy, source);
    u->file = file;
    *bh_vec_push(&l->in->units) = u;
    return u;
}

/* ---- one file ---- */

static void take_policy(struct loader *l, struct loaded *f)
{
    struct bh_unit *u = unit_add(l, BH_SOURCE_POLICY, f->file);
    u->label = l->in->files.at[f->file];
    bh_policy_read(&u->policy, &f->tree, f->file, &l->in->diags);
}

static void take_fleet(struct loader *l, struct loaded *f)
{
    struct bh_input *in = l->in;
    if (in->has_fleet) {
        bh_diag_error(&in->diags, (struct bh_pos){f->file, 1, 1},
                      "a second fleet file; one fleet is judged at a time");
        return;
    }
    size_t before = in->diags.n_errors;
    in->has_fleet = true;
    in->fleet_file = f->file;
    bh_fleet_read(&in->fleet, &f->tree, f->file, &in->diags);
    l->fleet_broken = in->diags.n_errors > before;
}

static void take_kubernetes(struct loader *l, struct loaded *f)
{
    if (!l->kube) {
        l->kube_unit = unit_add(l, BH_SOURCE_KUBERNETES, f->file);
        l->kube = bh_kube_new(&l->kube_unit->policy, &l->in->diags);
    }
    l->n_kube++;
    bh_kube_add(l->kube, &f->tree, f->file);
    bh_kube_name(l->kube, f->file, l->in->files.at[f->file]);
}

static void take_slurm(struct loader *l, struct loaded *f)
{
    if (!l->slurm) {
        l->slurm_unit = unit_add(l, BH_SOURCE_SLURM, f->file);
        l->slurm_unit->label = "Slurm configuration";
        l->slurm = bh_slurm_new(&l->slurm_unit->policy, &l->in->diags);
    }
    bh_slurm_add(l->slurm, f->text, f->n, f->file);
}

/* A file that was asked for must mean something; one that merely lies in a folder need not. */
static void take_unknown(struct loader *l, const struct loaded *f, bool asked_for)
{
    static const char what[] =
        "neither a policy or fleet file (`bulkhead: 1`), nor Kubernetes manifests (`apiVersion` "
        "and `kind`), a device-plugin or mig-parted configuration, slurm.conf, gres.conf or "
        "cgroup.conf";
    struct bh_pos pos = {f->file, 1, 1};
    const char *empty = f->tree.docs.n || f->n > 0 ? "" : "an empty file: ";
    if (asked_for)
        bh_diag_error(&l->in->diags, pos, "%s%s", empty, what);
    else
        bh_diag_note(&l->in->diags, pos, "passed over: %s%s", empty, what);
}

static void say_unparsed(struct loader *l, const struct loaded *f, const struct bh_tree_error *why,
                         bool asked_for)
{
    struct bh_pos pos = {f->file, why->line, why->column};
    if (memmem(f->text, f->n, "{{", 2))
        bh_diag_error(&l->in->diags, pos, "this looks like a Helm template; run `helm template` first");
    else if (!asked_for && bh_str_ends(l->in->files.at[f->file], ".conf"))
        take_unknown(l, f, false); /* every program calls its configuration so */
    else
        bh_diag_error(&l->in->diags, pos, "%s", why->message);
}

/* What the file is; an error that keeps it from being read is said here. */
static bool look_at(struct loader *l, struct loaded *f, bool asked_for, enum bh_file_kind *ret)
{
    struct bh_tree_error why;
    bool yaml = bh_tree_parse(&f->tree, f->text, f->n, &why) == 0;
    bool map = yaml && f->tree.docs.n && f->tree.docs.at[0]->kind == BH_NODE_MAP;
    *ret = yaml ? bh_detect_tree(&f->tree) : BH_FILE_UNKNOWN;
    if (!map && *ret == BH_FILE_UNKNOWN && bh_detect_slurm(f->text, f->n)) {
        *ret = BH_FILE_SLURM;
        return true;
    }
    if (!yaml)
        say_unparsed(l, f, &why, asked_for);
    return yaml;
}

static uint32_t file_add(struct loader *l, const char *path, bool asked_for)
{
    *bh_vec_push(&l->in->files) = bh_arena_str(&l->in->arena, path);
    *bh_vec_push(&l->listed) = !asked_for;
    return (uint32_t)(l->in->files.n - 1);
}

static int load_text(struct loader *l, const char *path, bool asked_for, struct loaded **ret,
                     struct bh_err *err)
{
    BH_AUTO(loaded_freep) struct loaded *f = bh_alloc(1, sizeof(*f));
    int rc = bh_file_read(path, FILE_MAX, &f->text, &f->n, err);
    if (rc < 0)
        return rc;
    f->file = file_add(l, path, asked_for);
    *ret = bh_steal(&f);
    return BH_OK;
}

static int load_file(struct loader *l, const char *path, bool asked_for, struct bh_err *err)
{
    BH_AUTO(loaded_freep) struct loaded *f = NULL;
    enum bh_file_kind kind;
    int rc = load_text(l, path, asked_for, &f, err);
    if (rc < 0 || !look_at(l, f, asked_for, &kind))
        return rc;
    switch (kind) {
    case BH_FILE_POLICY:
        take_policy(l, f);
        break;
    case BH_FILE_FLEET:
        take_fleet(l, f);
        break;
    case BH_FILE_KUBERNETES:
        take_kubernetes(l, f);
        *bh_vec_push(&l->kept) = bh_steal(&f);
        break;
    case BH_FILE_SLURM:
        take_slurm(l, f);
        *bh_vec_push(&l->kept) = bh_steal(&f);
        break;
    case BH_FILE_UNKNOWN:
        take_unknown(l, f, asked_for);
        break;
    }
    return BH_OK;
}

/* ---- all of them ---- */

/* One that cannot be read (no permission, too large) is a mistake of the folder's, like one that does not parse. */
static void load_listed(struct loader *l, const struct bh_listed *f)
{
    struct bh_err err;
    struct bh_pos pos = {0};
    if (f->odd) {
        pos.file = file_add(l, f->path, false);
        bh_diag_note(&l->in->diags, pos, "passed over: %s", f->odd);
    } else if (load_file(l, f->path, false, &err) < 0) {
        pos.file = file_add(l, f->path, false);
        bh_diag_error(&l->in->diags, pos, "%s", err.msg);
    }
}

static int load_folder(struct loader *l, const char *folder, struct bh_err *err)
{
    bh_listed_vec paths = {0};
    int rc = bh_file_list(&l->in->arena, folder, &paths, err);
    if (rc == BH_OK && paths.n == 0)
        rc = bh_fail(err, BH_NOT_FOUND, "no .yaml, .yml, .json or .conf file below '%.300s'", folder);
    for (size_t i = 0; rc == BH_OK && i < paths.n; i++)
        load_listed(l, &paths.at[i]);
    bh_vec_fini(&paths);
    return rc;
}

/* What --fleet names is a fleet by that: a file that lacks its first line is told so. */
static int load_fleet(struct loader *l, const char *path, struct bh_err *err)
{
    BH_AUTO(loaded_freep) struct loaded *f = NULL;
    enum bh_file_kind kind;
    int rc = load_text(l, path, true, &f, err);
    if (rc < 0 || !look_at(l, f, true, &kind))
        return rc;
    bool fleet = kind == BH_FILE_FLEET ||
                 (kind == BH_FILE_UNKNOWN && f->tree.docs.n && bh_node_get(f->tree.docs.at[0], "nodes"));
    if (fleet)
        take_fleet(l, f);
    else
        bh_diag_error(&l->in->diags, (struct bh_pos){f->file, 1, 1},
                      "not a fleet file: it begins with `bulkhead: 1` and lists `nodes`");
    return BH_OK;
}

static int load_all(struct loader *l, const char *const *paths, size_t n, const char *fleet_path,
                    struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < n; i++)
        rc = bh_file_is_folder(paths[i]) ? load_folder(l, paths[i], err) : load_file(l, paths[i], true, err);
    if (rc == BH_OK && fleet_path)
        rc = load_fleet(l, fleet_path, err);
    return rc;
}

static void finish(struct loader *l)
{
    if (l->kube) {
        bh_kube_finish(l->kube);
        l->kube_unit->label = bh_arena_printf(&l->in->arena, "Kubernetes manifests (%zu file%s)", l->n_kube,
                                              l->n_kube == 1 ? "" : "s");
    }
    if (l->slurm)
        bh_slurm_finish(l->slurm);
}

/* A node that the fleet file leaves out may exist all the same; any other name must be declared. */
static void say_unresolved(struct bh_diags *d, const struct bh_unresolved *u)
{
    if (strcmp(u->what, "node") == 0)
        bh_diag_note_once(d, u->pos, "node `%.120s` is not in the fleet file", u->name);
    else if (strcmp(u->what, "parent") == 0)
        bh_diag_error(d, u->pos, "parent `%.63s` leads back to the tenant itself", u->name);
    else if (strcmp(u->what, "match") == 0)
        bh_diag_error(d, u->pos, "`%.120s` and the pools around it name more GPUs than the fleet could have",
                      u->name);
    else if (u->nearest)
        bh_diag_error(d, u->pos, "there is no %s `%.63s`; did you mean `%.63s`?", u->what, u->name,
                      u->nearest);
    else
        bh_diag_error(d, u->pos, "there is no %s `%.63s`", u->what, u->name);
}

static void link_one(struct bh_policy *p, const struct bh_fleet *fleet, struct bh_diags *d)
{
    bh_unresolved_vec problems = {0};
    bh_policy_link(p, fleet, &problems);
    for (size_t k = 0; k < problems.n; k++)
        say_unresolved(d, &problems.at[k]);
    bh_vec_fini(&problems);
}

static void link_all(struct loader *l)
{
    struct bh_input *in = l->in;
    const struct bh_fleet *fleet = in->has_fleet && !l->fleet_broken ? &in->fleet : NULL;
    for (size_t i = 0; i < in->units.n; i++)
        link_one(&in->units.at[i]->policy, fleet, &in->diags);
}

void bh_policy_load_text(struct bh_policy *ret, const char *text, size_t n, const struct bh_fleet *fleet,
                         struct bh_diags *d)
{
    struct bh_tree tree = {0};
    struct bh_tree_error why;
    bh_policy_init(ret, BH_SOURCE_POLICY);
    if (bh_tree_parse(&tree, text, n, &why) < 0) {
        bh_diag_error(d, (struct bh_pos){.line = why.line, .column = why.column}, "%s", why.message);
        return;
    }
    if (bh_detect_tree(&tree) == BH_FILE_POLICY)
        bh_policy_read(ret, &tree, 0, d);
    else
        bh_diag_error(d, (struct bh_pos){.line = 1, .column = 1},
                      "this is no policy: one begins with `bulkhead: 1` and has `tenants`");
    bh_tree_fini(&tree);
    if (d->n_errors == 0)
        link_one(ret, fleet, d);
}

/* ---- what a mistake in a folder spoils ---- */

static void unit_drop(struct bh_input *in, size_t index)
{
    bh_policy_fini(&in->units.at[index]->policy);
    for (size_t i = index + 1; i < in->units.n; i++)
        in->units.at[i - 1] = in->units.at[i];
    in->units.n--;
}

/* A policy with mistakes is not judged at all; of a cluster, what was understood is. */
static void set_aside(struct loader *l)
{
    struct bh_input *in = l->in;
    BH_AUTOFREE bool *wrong = bh_alloc(in->files.n, sizeof(*wrong));
    for (size_t i = 0; i < in->diags.at.n; i++) {
        const struct bh_diag *d = &in->diags.at.at[i];
        if (!d->is_error || d->pos.file >= in->files.n || !l->listed.at[d->pos.file])
            continue;
        wrong[d->pos.file] = true;
        in->n_set_aside++;
    }
    for (size_t i = in->units.n; i-- > 0;)
        if (in->units.at[i]->policy.source == BH_SOURCE_POLICY && wrong[in->units.at[i]->file])
            unit_drop(in, i);
    if (in->has_fleet && wrong[in->fleet_file]) {
        bh_fleet_fini(&in->fleet);
        in->has_fleet = false;
    }
}

int bh_input_load(struct bh_input *in, const char *const *paths, size_t n, const char *fleet_path,
                  struct bh_err *err)
{
    struct loader l = {.in = in};
    *in = (struct bh_input){0};
    int rc = load_all(&l, paths, n, fleet_path, err);
    if (rc == BH_OK) {
        finish(&l);
        link_all(&l);
        set_aside(&l);
        bh_diags_sort(&in->diags);
    }
    bh_kube_free(l.kube);
    bh_slurm_free(l.slurm);
    for (size_t i = 0; i < l.kept.n; i++)
        loaded_free(l.kept.at[i]);
    bh_vec_fini(&l.kept);
    bh_vec_fini(&l.listed);
    if (rc < 0)
        bh_input_fini(in);
    return rc;
}
