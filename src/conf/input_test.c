/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/input.h"

#include "base/buf.h"
#include "base/test.h"
#include "conf/file_fixture.h"

#include <sys/stat.h>

static struct bh_file_fixture fx;
static struct bh_input in;
static struct bh_err err;
static struct bh_buf talk;

/* Load up to four names below the fixture's folder; fleet NULL: none is named. */
static int load(const char *a, const char *b, const char *fleet)
{
    char paths[3][512];
    const char *at[2];
    size_t n = 0;
    const char *const names[] = {a, b, fleet};
    for (size_t i = 0; i < 3; i++)
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", fx.root, names[i] ? names[i] : "");
    if (a)
        at[n++] = paths[0];
    if (b)
        at[n++] = paths[1];
    bh_input_fini(&in);
    return bh_input_load(&in, at, n, fleet ? paths[2] : NULL, &err);
}

/* `a.yaml:2:3: message`, notes with `note: `. */
static const char *said(void)
{
    bh_buf_fini(&talk);
    bh_buf_init(&talk, 1 << 16);
    for (size_t i = 0; i < in.diags.at.n; i++) {
        const struct bh_diag *d = &in.diags.at.at[i];
        bh_buf_printf(&talk, "%s:%u:%u: %s%s\n", in.files.at[d->pos.file] + strlen(fx.root) + 1, d->pos.line,
                      d->pos.column, d->is_error ? "" : "note: ", d->message);
    }
    return bh_buf_text(&talk);
}

#define POLICY \
    "bulkhead: 1\ntenants: [{name: a}]\npools: [{name: p, mechanism: whole, tenants: [a], match: {nodes: gpu-01}}]\n"
#define FLEET "bulkhead: 1\nnodes: [{name: gpu-01, gpus: [{index: 0, model: H200}]}]\n"
#define POD \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: team}\nspec: {containers: [{name: c}]}\n"
#define SLURM "ClusterName=lab\nGresTypes=gpu\nNodeName=n1 Gres=gpu:h100:8\n"

TEST(a_policy_and_a_fleet)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "p.yaml", POLICY);
    bh_file_fixture_put(&fx, "f.yaml", FLEET);
    CHECK_EQ(load("p.yaml", NULL, "f.yaml"), 0);
    CHECK_STR(said(), "");
    CHECK_EQ(in.units.n, 1);
    CHECK(in.has_fleet);
    CHECK_EQ(in.fleet.nodes.n, 1);
    CHECK_EQ(in.files.n, 2);
    const struct bh_unit *u = in.units.at[0];
    CHECK_STR(u->label + strlen(fx.root), "/p.yaml");
    CHECK_EQ(u->policy.source, BH_SOURCE_POLICY);
    CHECK_EQ(u->policy.pools.at[0].tenants.n, 1); /* linked */
    CHECK_EQ(u->policy.pools.at[0].gpus.n, 1);
    CHECK_EQ(load("f.yaml", "p.yaml", NULL), 0);
    CHECK(in.has_fleet);
    CHECK_EQ(in.units.at[0]->file, 1);
    CHECK_EQ(in.units.at[0]->policy.pools.at[0].pos.file, 1);
    CHECK_EQ(load("f.yaml", "p.yaml", "f.yaml"), 0);
    CHECK_STR(said(), "f.yaml:1:1: a second fleet file; one fleet is judged at a time\n");
    bh_file_fixture_fini(&fx);
}

TEST(each_policy_stands_alone_and_clusters_together)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "all/1.yaml", POD);
    bh_file_fixture_put(&fx, "all/2.yaml", POLICY);
    bh_file_fixture_put(&fx, "all/3.yml", "# again\n" POD);
    bh_file_fixture_put(&fx, "all/4.conf", SLURM);
    bh_file_fixture_put(&fx, "all/5.conf", "Name=gpu Type=h100 File=/dev/nvidia[0-7]\n");
    bh_file_fixture_put(&fx, "all/6.yaml", POLICY);
    bh_file_fixture_put(&fx, "all/7.json", "{\"version\": \"v1\", \"flags\": {\"migStrategy\": \"none\"}}");
    CHECK_EQ(load("all", NULL, NULL), 0);
    CHECK_EQ(in.diags.n_errors, 0);
    CHECK_EQ(in.files.n, 7);
    CHECK_EQ(in.units.n, 4);
    CHECK_STR(in.units.at[0]->label, "Kubernetes manifests (3 files)");
    CHECK_EQ(in.units.at[0]->policy.source, BH_SOURCE_KUBERNETES);
    CHECK_EQ(in.units.at[1]->policy.source, BH_SOURCE_POLICY);
    CHECK_STR(in.units.at[2]->label, "Slurm configuration");
    CHECK_EQ(in.units.at[2]->file, 3);
    CHECK_EQ(in.units.at[3]->file, 5);
    CHECK(!in.has_fleet);
    bh_file_fixture_fini(&fx);
}

TEST(what_is_not_understood)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "d/odd.yaml", "colour: red\n");
    bh_file_fixture_put(&fx, "d/p.yaml", POLICY);
    bh_file_fixture_put(&fx, "empty.yaml", "");
    bh_file_fixture_put(&fx, "e/readme.md", "");
    CHECK_EQ(load("d/odd.yaml", "empty.yaml", NULL), 0);
    CHECK_EQ(in.diags.n_errors, 2);
    CHECK(strstr(said(), "d/odd.yaml:1:1: neither a policy or fleet file"));
    CHECK(strstr(said(), "empty.yaml:1:1: an empty file: neither a policy"));
    CHECK_EQ(load("d", NULL, NULL), 0);
    CHECK_EQ(in.diags.n_errors, 0);
    CHECK_EQ(in.units.n, 1);
    CHECK(strstr(said(), "d/odd.yaml:1:1: note: passed over: neither"));
    CHECK_EQ(load("e", NULL, NULL), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "no .yaml, .yml, .json or .conf file below"));
    CHECK_EQ(load("missing.yaml", NULL, NULL), BH_NOT_FOUND);
    CHECK_EQ(in.files.n, 0);
    CHECK_EQ(load(NULL, NULL, NULL), 0);
    CHECK_EQ(in.units.n, 0);
    bh_file_fixture_fini(&fx);
}

TEST(mistakes_of_all_files_at_once)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "1.yaml", "a: [1\n");
    bh_file_fixture_put(&fx, "2.yaml", "tenants: [{name: a, clas: x}]\n");
    CHECK_EQ(load("1.yaml", "2.yaml", "2.yaml"), 0);
    CHECK_STR(said(), "1.yaml:2:1: a `,` or the closing `]` was expected here (the list begins on line 1)\n"
                      "2.yaml:1:1: `bulkhead: 1` is required: the version of the language\n"
                      "2.yaml:1:21: `clas` is unknown here; did you mean `class`?\n"
                      "2.yaml:1:1: not a fleet file: it begins with `bulkhead: 1` and lists `nodes`\n");
    bh_file_fixture_put(&fx, "f.yaml", "nodes: []\n");
    bh_file_fixture_put(&fx, "p.yaml", POLICY);
    CHECK_EQ(load("p.yaml", NULL, "f.yaml"), 0);
    CHECK_STR(said(), "f.yaml:1:1: `bulkhead: 1` is required: the version of the language\n");
    bh_file_fixture_fini(&fx);
}

TEST(a_folder_is_judged_despite_a_broken_file)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "d/app.conf", "[a]\nx=1\n");
    bh_file_fixture_put(&fx, "d/bad.yaml", "a: [1\n");
    bh_file_fixture_put(&fx, "d/chart/quota.yaml",
                        "kind: ResourceQuota\nmetadata:\n  name: {{ .Release.Name }}-gpu\n");
    bh_file_fixture_put(&fx, "d/fleet.yaml", "bulkhead: 1\nnodes: [{nmae: x}]\n");
    bh_file_fixture_put(&fx, "d/pod.yaml", POD);
    bh_file_fixture_put(&fx, "d/policy.yaml", "bulkhead: 1\ntenants: [{name: a, parent: a}]\n");
    CHECK_EQ(symlink("nowhere", bh_file_fixture_path(&fx, "d/gone.yaml")), 0);
    CHECK_EQ(mkfifo(bh_file_fixture_path(&fx, "d/pipe.yaml"), 0600), 0);
    CHECK_EQ(load("d", NULL, NULL), 0);
    CHECK(strstr(said(), "d/app.conf:1:1: note: passed over: neither"));
    CHECK(strstr(said(), "d/bad.yaml:2:1: a `,`"));
    CHECK(strstr(said(), "d/chart/quota.yaml:3:"));
    CHECK(strstr(said(), ": this looks like a Helm template; run `helm template` first\n"));
    CHECK(strstr(said(), "d/gone.yaml:0:0: note: passed over: a link to nowhere\n"));
    CHECK(strstr(said(), "d/pipe.yaml:0:0: note: passed over: no regular file\n"));
    CHECK(strstr(said(), "leads back"));
    CHECK_EQ(in.units.n, 1);
    CHECK_EQ(in.units.at[0]->policy.source, BH_SOURCE_KUBERNETES);
    CHECK(!in.has_fleet);
    CHECK(in.diags.n_errors >= 4);
    CHECK_EQ(in.n_set_aside, in.diags.n_errors);
    /* the same files, named one by one */
    CHECK_EQ(load("d/bad.yaml", "d/pod.yaml", NULL), 0);
    CHECK_EQ(in.n_set_aside, 0);
    CHECK_EQ(in.diags.n_errors, 1);
    CHECK_EQ(load("d/app.conf", "d", NULL), 0);
    CHECK_EQ(in.diags.n_errors, in.n_set_aside + 1);
    bh_file_fixture_fini(&fx);
}

TEST(names_that_nothing_bears)
{
    bh_file_fixture_init(&fx);
    bh_file_fixture_put(&fx, "f.yaml", FLEET);
    bh_file_fixture_put(
        &fx, "p.yaml",
        "bulkhead: 1\n"
        "tenants:\n"
        "  - {name: acme, class: nonesuch}\n"
        "  - {name: ring-a, parent: ring-b}\n"
        "  - {name: ring-b, parent: ring-a}\n"
        "  - {name: free, parent: customers}\n"
        "pools:\n"
        "  - {name: dev, mechanism: whole, tenants: [acmee], match: {nodes: [gpu-01, gpu-09]}}\n"
        "workloads:\n"
        "  - {name: w, tenant: acme, pool: deve, assigned: \"gpu-09:0\"}\n");
    CHECK_EQ(load("p.yaml", NULL, "f.yaml"), 0);
    const char *all = said();
    CHECK(strstr(all, "p.yaml:8:45: there is no tenant `acmee`; did you mean `acme`?\n"));
    CHECK(strstr(all, "p.yaml:10:35: there is no pool `deve`; did you mean `dev`?\n"));
    CHECK(strstr(all, "p.yaml:3:18: there is no class `nonesuch`\n"));
    CHECK(strstr(all, "p.yaml:4:20: parent `ring-b` leads back to the tenant itself\n"));
    CHECK(strstr(all, "note: node `gpu-09` is not in the fleet file\n"));
    CHECK_EQ(in.diags.n_errors, 4);
    bh_file_fixture_fini(&fx);
}

TEST(a_policy_that_is_no_file)
{
    static const char good[] = "bulkhead: 1\ntenants:\n  - {name: acme}\n";
    static const char bad[] = "bulkhead: 1\ntenats:\n  - {name: acme}\n";
    static const char other[] = "kind: Pod\n";
    static const char broken[] = "a: [1\n";
    const char *texts[] = {good, bad, other, broken};
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++) {
        struct bh_diags d = {0};
        struct bh_policy p;
        bh_policy_load_text(&p, texts[i], strlen(texts[i]), NULL, &d);
        CHECK_EQ(d.n_errors > 0, i > 0);
        CHECK_EQ(p.tenants.n, i == 0);
        bh_policy_fini(&p);
        bh_diags_fini(&d);
    }
}

TEST(memory_goes_back)
{
    bh_input_fini(&in);
    bh_buf_fini(&talk);
    CHECK(in.arena.head == NULL);
}

TEST_MAIN
