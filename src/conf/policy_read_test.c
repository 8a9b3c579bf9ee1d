/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "conf/read_fixture.h"

#include <stdio.h>

static struct bh_read_fixture f;

static const char *said(const char *text)
{
    return bh_read_fixture_read(&f, text, strlen(text), false);
}

/* What follows begins on line 3. */
#define TENANT "bulkhead: 1\ntenants:\n"
#define POOL   "bulkhead: 1\npools:\n"

#define CHECK_POS(p, line_, column_)   \
    do {                               \
        CHECK_EQ((p).line, line_);     \
        CHECK_EQ((p).column, column_); \
    } while (0)

static char *slurp(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = bh_alloc(1 << 16, 1);
    if (in) {
        size_t n = fread(text, 1, (1 << 16) - 1, in);
        text[n] = '\0';
        fclose(in);
    }
    return text;
}

static const char *const corpus = BH_CORPUS "/full.yaml";

TEST(the_whole_language)
{
    BH_AUTOFREE char *text = slurp(corpus);
    CHECK_STR(
        said(text),
        "43:14: note: `backing` of pool 'serving' is passed over: it speaks for fractional, not for mig-vgpu\n"
        "49:15: note: `replicas` of pool 'serving' is passed over: it speaks for timeslice, not for mig-vgpu\n");
    CHECK_EQ(f.policy.tenants.n, 2);
    CHECK_EQ(f.policy.pools.n, 1);
    CHECK_EQ(f.policy.fabrics.n, 1);
    CHECK_EQ(f.policy.workloads.n, 1);
    CHECK_EQ(f.policy.classes.n, 1);
    CHECK_EQ(f.policy.roles.n, 2);
    CHECK_EQ(f.policy.waivers.n, 1);
}

TEST(a_tenant_in_full)
{
    BH_AUTOFREE char *text = slurp(corpus);
    (void)said(text);
    CHECK_EQ(f.policy.tenants.n, 2);
    const struct bh_tenant *t = &f.policy.tenants.at[0];
    CHECK_POS(t->pos, 4, 5);
    CHECK_STR(t->name, "acme");
    CHECK_EQ(t->trust, BH_TRUST_EXTERNAL);
    CHECK_STR(t->domain, "acme");
    CHECK_STR(t->parent, "customers");
    CHECK_POS(t->parent_pos, 7, 5);
    CHECK_STR(t->class_name, "serving");
    CHECK_POS(t->class_pos, 8, 5);
    CHECK(!t->operator_untrusted);
    CHECK_EQ(t->regimes, 1u << BH_REGIME_HIPAA | 1u << BH_REGIME_PCI);
    CHECK_EQ(t->drivers.n, 1);
    CHECK_STR(t->drivers.at[0].s, "580");
    CHECK_POS(t->drivers.at[0].pos, 11, 15);
    CHECK_STR(t->site, "eu-de-1");
    CHECK_STR(t->cost_center, "cc-1042");
    CHECK_POS(t->quota.pos, 14, 5);
    CHECK(t->quota.has_model && t->quota.has_gpus && t->quota.has_max && !t->quota.borrow);
    CHECK_EQ(t->quota.model, BH_QUOTA_HARD);
    CHECK_EQ(t->quota.gpus_milli, 4000);
    CHECK_EQ(t->quota.memory_bytes, 320 * BH_GIB);
    CHECK_EQ(t->quota.max_milli, 8000);
    CHECK_EQ(t->quota.weight, 100);
    CHECK_EQ(t->quota.resources.n, 1);
    CHECK_STR(t->quota.resources.at[0].resource, "nvidia.com/mig-1g.18gb");
    CHECK_EQ(t->quota.resources.at[0].milli, 7000);
    CHECK_EQ(t->quota.stated.n, 0);
    CHECK_EQ(t->slo.kind, BH_SLO_HARD);
    CHECK_STR(t->slo.metric, "p99");
    CHECK_STR(t->slo.target, "50ms");
    CHECK_POS(t->slo.pos, 22, 5);
    CHECK(t->share.has_target);
    CHECK_EQ(t->share.target_ppm, 250000);
    CHECK_STR(t->share.under_contention, "proportional to weight");
    CHECK_EQ(t->priority.ceiling, BH_PRIORITY_HIGH);
    CHECK(t->priority.has_budget);
    CHECK_EQ(t->priority.budget_ms, UINT64_C(200) * 3600 * 1000);
    CHECK_EQ(t->network.policy, BH_NET_DEFAULT_DENY);
    CHECK_EQ(t->network.rdma, BH_RDMA_NONE);
    CHECK_EQ(t->storage.quota_bytes, 2048 * BH_GIB);
    CHECK_STR(t->images.at[0].s, "registry.example/acme/*");
}

TEST(a_pool_in_full)
{
    BH_AUTOFREE char *text = slurp(corpus);
    (void)said(text);
    CHECK_EQ(f.policy.pools.n, 1);
    const struct bh_pool *p = &f.policy.pools.at[0];
    CHECK_POS(p->pos, 40, 5);
    CHECK_STR(p->match.model.s, "H200");
    CHECK_POS(p->match.pos, 41, 5);
    CHECK_POS(p->match.model.pos, 41, 20);
    CHECK_STR(p->match.nodes.at[0].s, "gpu-[01-04]");
    CHECK_EQ(p->match.gpus.n, 2);
    CHECK_EQ(p->match.gpus.at[1], 1);
    CHECK_STR(p->match.fabric.s, "A");
    CHECK_EQ(p->mechanism, BH_MECH_MIG_VGPU);
    CHECK_POS(p->mechanism_pos, 42, 5);
    CHECK_EQ(p->backing, BH_MECH_GATE);
    CHECK_EQ(p->strategy, BH_STRATEGY_SINGLE);
    CHECK_STR(p->profiles.at[0].s, "1g.18gb");
    CHECK_STR(p->layout.at[0].profile, "1g.18gb");
    CHECK_EQ(p->layout.at[0].count, 7);
    CHECK_POS(p->layout_pos, 46, 5);
    CHECK_POS(p->layout.at[0].pos, 46, 14);
    CHECK_EQ(p->tier, BH_TIER_VM);
    CHECK_POS(p->tier_pos, 47, 5);
    CHECK_EQ(p->tenant_names.n, 2);
    CHECK_POS(p->tenant_names.at[1].pos, 48, 21);
    CHECK_EQ(p->replicas, 4);
    CHECK_EQ(p->cap_memory_bytes, 20 * BH_GIB);
    CHECK_EQ(p->cap_compute_ppm, 250000);
    CHECK_POS(p->caps_pos, 50, 5);
    CHECK(!p->oversubscribe);
    CHECK_STR(p->resource, "nvidia.com/gpu.shared");
    CHECK_POS(p->resource_pos, 52, 5);
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_YES);
    CHECK_POS(p->fail_pos, 53, 5);
    CHECK_EQ(p->pace, BH_PACE_BURSTY);
    CHECK_STR(p->drivers.at[0].s, "580.159.03");
    CHECK_EQ(p->claims, 1u << BH_CLAIM_PERFORMANCE);
    CHECK_STR(p->description, "free text shown to tenants");
    CHECK_POS(p->description_pos, 57, 5);
}

TEST(the_rest_in_full)
{
    BH_AUTOFREE char *text = slurp(corpus);
    (void)said(text);
    CHECK_EQ(f.policy.workloads.n, 1);
    const struct bh_fabric *fab = &f.policy.fabrics.at[0];
    CHECK_STR(fab->name, "A");
    CHECK_EQ(fab->mode, BH_FABRIC_PARTITIONED);
    CHECK_STR(fab->gpus.at[0].s, "gpu-01:0-3");
    CHECK_STR(fab->tenant.s, "acme");
    const struct bh_workload *w = &f.policy.workloads.at[0];
    CHECK_STR(w->name, "train-70b");
    CHECK_STR(w->tenant_name.s, "acme");
    CHECK_STR(w->pool_name.s, "serving");
    CHECK_EQ(w->gpus_milli, 8000);
    CHECK(w->gang && w->needs_nvlink && !w->allow_span && !w->privileged && !w->host_pid);
    CHECK_EQ(w->checkpointable, BH_FACT_YES);
    CHECK_EQ(w->pace, BH_PACE_LONG);
    CHECK(w->has_priority && w->has_deadline);
    CHECK_EQ(w->priority, BH_PRIORITY_HIGH);
    CHECK_EQ(w->deadline_s, INT64_C(1796083200));
    CHECK_STR(w->image.s, "registry.example/acme/train:1");
    CHECK_STR(w->mounts.at[0].s, "/data/acme");
    CHECK_STR(w->devices.at[0].s, "/dev/nvidia0");
    CHECK_EQ(w->assigned.n, 2);
    CHECK_STR(w->assigned.at[1].node, "gpu-01");
    CHECK_EQ(w->assigned.at[1].index, 5);
    CHECK_STR(w->env.at[0].key, "CUDA_MEMSET_ON_ALLOC");
    CHECK_STR(w->env.at[0].value, "1");
    const struct bh_class *c = &f.policy.classes.at[0];
    CHECK_EQ(c->mechanisms, 1u << BH_MECH_MIG | 1u << BH_MECH_WHOLE);
    CHECK_EQ(c->quotas, 1u << BH_QUOTA_HARD);
    CHECK_EQ(c->tiers, 1u << BH_TIER_VM | 1u << BH_TIER_CVM);
    CHECK_EQ(c->slos, 1u << BH_SLO_HARD);
    CHECK_EQ(f.policy.prices.gpu_hour_micro, 2500000);
    CHECK_EQ(f.policy.prices.memory_gib_hour_micro, 20000);
    CHECK_EQ(f.policy.prices.borrowed_ppm, 600000);
    CHECK_STR(f.policy.prices.currency, "EUR");
    CHECK_STR(f.policy.roles.at[1].subject, "user:ada@example.org");
    CHECK_EQ(f.policy.roles.at[1].role, BH_ROLE_TENANT_ADMIN);
    CHECK_STR(f.policy.roles.at[1].tenant.s, "acme");
    CHECK(f.policy.audit.enabled);
    CHECK_EQ(f.policy.audit.retention_ms, UINT64_C(365) * 86400000);
    CHECK_STR(f.policy.waivers.at[0].rule, "BH-056");
    CHECK(f.policy.waivers.at[0].has_expiry);
    struct bh_unit_text date;
    CHECK_STR(bh_date_format(f.policy.waivers.at[0].expires_day, &date), "2026-12-31");
}

TEST(defaults_and_short_forms)
{
    CHECK_STR(
        said(
            "bulkhead: 1\n"
            "tenants:\n"
            "  - {name: a, site: ~, quota: {model: hard}, slo: null, drivers: 580, costCenter: ''}\n"
            "pools:\n"
            "  - {name: p, mechanism: whole, match: {nodes: [\"n-[1-2]\", m], gpus: 3}, tenants: a, backing: null}\n"
            "workloads:\n"
            "  - {name: w, tenant: a, assigned: \"n-1:0-3\", env: {A: 1, B: true, C: ~, D: 1.5}}\n"
            "classes: [{name: c, mechanism: mig, tier: vm, quota: hard, slo: soft}]\n"),
        "");
    const struct bh_tenant *t = &f.policy.tenants.at[0];
    CHECK_EQ(t->trust, BH_TRUST_INTERNAL);
    CHECK_EQ(t->slo.kind, BH_SLO_NONE);
    CHECK_EQ(t->slo.pos.line, 0);
    CHECK_EQ(t->priority.ceiling, BH_PRIORITY_NORMAL);
    CHECK(t->site == NULL && t->cost_center == NULL && t->idle.sleep_after_ms == 0);
    CHECK(t->quota.has_model && !t->quota.has_gpus && !t->quota.has_max);
    CHECK_EQ(t->quota.weight, 100);
    CHECK_STR(t->drivers.at[0].s, "580");
    CHECK_EQ(t->network.policy, BH_NET_UNSET);
    const struct bh_pool *p = &f.policy.pools.at[0];
    CHECK_EQ(p->match.nodes.n, 2);
    CHECK_EQ(p->match.gpus.at[0], 3);
    CHECK_STR(p->tenant_names.at[0].s, "a");
    CHECK_EQ(p->tier, BH_TIER_CONTAINER);
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_UNKNOWN);
    const struct bh_workload *w = &f.policy.workloads.at[0];
    CHECK_EQ(w->assigned.n, 4);
    CHECK_EQ(w->assigned.at[3].index, 3);
    CHECK(!w->gang);
    CHECK_EQ(w->gang_pos.line, 0);
    CHECK_EQ(w->checkpointable, BH_FACT_UNKNOWN);
    CHECK_STR(w->env.at[1].value, "true");
    CHECK_STR(w->env.at[2].value, "~");
    CHECK_EQ(f.policy.classes.at[0].slos, 1u << BH_SLO_SOFT);
    CHECK(f.policy.audit.enabled);
    CHECK_EQ(f.policy.prices.pos.line, 0);
}

TEST(the_version_is_required)
{
    CHECK_STR(said("tenants: []\n"), "1:1: `bulkhead: 1` is required: the version of the language\n");
    CHECK_STR(
        said("bulkhead: 2\n"),
        "1:11: `bulkhead` needs the version of the language, and 1 is the only one supported; found '2'\n");
    CHECK_STR(said("bulkhead:\n"), "1:1: `bulkhead: 1` is required: the version of the language\n");
    CHECK_STR(said(""), "1:1: the file is empty; a policy begins with `bulkhead: 1`\n");
    CHECK_STR(said("- a\n"), "1:1: a policy is a map that begins with `bulkhead: 1`; found a list\n");
    CHECK_STR(said("bulkhead: 1\n---\nbulkhead: 1\n"),
              "3:1: a policy is one document; a second one begins here\n");
    CHECK_STR(said("\xef\xbb\xbf"
                   "bulkhead: 1\r\ntenants:\r\n  - name: a\r\n"),
              "");
    CHECK_POS(f.policy.tenants.at[0].pos, 3, 5);
}

TEST(unknown_keys_and_words)
{
    CHECK_STR(said("bulkhead: 1\ntenats: []\n"), "2:1: `tenats` is unknown here; did you mean `tenants`?\n");
    CHECK_STR(
        said("bulkhead: 1\nzzz: []\n"),
        "2:1: `zzz` is unknown here; known are `bulkhead`, `tenants`, `pools`, `fabric`, `workloads`, `classes`, "
        "`prices`, `roles`, `audit`, `waivers`\n");
    CHECK_STR(said(TENANT "  - name: a\n    quota: {gpu: 1}\n"),
              "4:13: `gpu` is unknown here; did you mean `gpus`?\n");
    CHECK_STR(said(TENANT "  - name: a\n    <<: {trust: external}\n"),
              "4:5: `<<` is unknown here: maps are not merged, write their keys out\n");
    CHECK_STR(
        said(TENANT "  - {name: a, trust: extrenal}\n"),
        "3:22: `trust` of tenant 'a' needs one of internal, partner, external; found 'extrenal'; did you mean "
        "external?\n");
    CHECK_STR(said(TENANT "  - {name: a, trust: [internal]}\n"),
              "3:22: `trust` of tenant 'a' needs one of internal, partner, external; found a list\n");
    CHECK_STR(
        said(POOL "  - {name: a, mechanism: gate}\n"),
        "3:26: `mechanism` of pool 'a' needs one of whole, mig, mps, timeslice, vgpu, mig-vgpu, fractional; found "
        "'gate'\n");
    CHECK_STR(said(POOL "  - {name: a, mechanism: fractional, backing: vgpu}\n"),
              "3:47: `backing` of pool 'a' needs one of mig, mps, timeslice, gate; found 'vgpu'\n");
    CHECK_STR(
        said(POOL "  - {name: a, mechanism: unset, duration: unset}\n"),
        "3:26: `mechanism` of pool 'a' needs one of whole, mig, mps, timeslice, vgpu, mig-vgpu, fractional; found "
        "'unset'\n"
        "3:43: `duration` of pool 'a' needs one of long, bursty; found 'unset'\n");
    CHECK_STR(
        said(TENANT "  - {name: a, network: {rdma: unset}, regulated: [hipaa, gdpr]}\n"),
        "3:31: `rdma` of `network` of tenant 'a' needs one of none, partitioned, open; found 'unset'\n"
        "3:58: `regulated` of tenant 'a' needs one of hipaa, fedramp, soc2, pci, iso27001; found 'gdpr'\n");
}

TEST(values_of_the_wrong_kind)
{
    static const struct {
        const char *text, *said;
    } table[] = {
        {POOL "  - {name: dev, mechanism: timeslice, replicas: [4]}\n",
         "3:49: `replicas` of pool 'dev' needs a whole number from 1 to 64000; found a list\n"},
        {POOL "  - {name: dev, mechanism: timeslice, replicas: 0}\n",
         "3:49: `replicas` of pool 'dev' needs a whole number from 1 to 64000; found '0'\n"},
        {POOL "  - {name: dev, mechanism: timeslice, replicas: 2.5}\n",
         "3:49: `replicas` of pool 'dev' needs a whole number from 1 to 64000; found '2.5'\n"},
        {POOL "  - {name: dev, mechanism: mps, oversubscribe: \"true\"}\n",
         "3:48: `oversubscribe` of pool 'dev' needs true or false; found the text 'true'\n"},
        {POOL "  - {name: dev, mechanism: mps, caps: {memory: 20, compute: 125%}}\n",
         "3:48: `memory` of `caps` of pool 'dev': '20' is not a size; write it like 20GiB (MiB, GiB, TiB, MB, GB, TB)\n"
         "3:61: `compute` of `caps` of pool 'dev': share '125%' is more than 100%\n"},
        {POOL "  - {name: dev, mechanism: mps, caps: {memory: 0GiB, compute: 0%}}\n",
         "3:48: `memory` of `caps` of pool 'dev' needs a size from 1 MiB to 1024 TiB; found '0GiB'\n"
         "3:63: `compute` of `caps` of pool 'dev' needs a share above 0%; found '0%'\n"},
        {POOL "  - {name: dev, mechanism: mps, caps: 20GiB}\n",
         "3:39: `caps` of pool 'dev' needs a map of settings; found '20GiB'\n"},
        {POOL "  - {name: dev, mechanism: mig, layout: [1g.18gb]}\n",
         "3:41: `layout` of pool 'dev' needs a map from profiles to how many of each; found a list\n"},
        {POOL "  - {name: dev, mechanism: mig, layout: {1g.18gb: 900}}\n",
         "3:51: `1g.18gb` of `layout` of pool 'dev' needs a whole number from 1 to 64; found '900'\n"},
        {POOL "  - {name: dev, mechanism: mig, match: {gpus: [0, x], nodes: \"gpu-[4-1]\"}}\n",
         "3:51: `gpus` of `match` of pool 'dev' needs a whole number from 0 to 1023; found 'x'\n"
         "3:62: `nodes` of `match` of pool 'dev': 'gpu-[4-1]': a range runs backwards\n"},
        {POOL "  - {name: dev, mechanism: mig, tenants: [a, {b: c}, ~]}\n",
         "3:46: `tenants` of pool 'dev' needs a text, or a list of texts; found a map\n"
         "3:54: `tenants` of pool 'dev' needs a text, or a list of texts; found nothing\n"},
        {POOL "  - dev\n", "3:5: `pools` needs each pool to be a map; found 'dev'\n"},
        {"bulkhead: 1\npools: {name: dev}\n", "2:8: `pools` needs a list, each pool a map; found a map\n"},
        {TENANT "  - {name: a, quota: {gpus: many, memory: [1], weight: -1, max: 1.2345}}\n",
         "3:29: `gpus` of `quota` of tenant 'a': 'many' is not a count; write it like 4 or 0.5 (at most three decimals)\n"
         "3:43: `memory` of `quota` of tenant 'a' needs a size like 20GiB; found a list\n"
         "3:56: `weight` of `quota` of tenant 'a' needs a whole number from 0 to 1000000; found '-1'\n"
         "3:65: `max` of `quota` of tenant 'a': '1.2345' is not a count; write it like 4 or 0.5 (at most three decimals)\n"},
        {TENANT "  - {name: a, quota: {gpus: 4, max: 2}}\n",
         "3:37: `max` of `quota` of tenant 'a' is 2, below the 4 it is guaranteed\n"},
        {TENANT "  - {name: a, quota: {gpus: 99999999999}}\n",
         "3:29: `gpus` of `quota` of tenant 'a' needs a count from 0 to 10000000; found '99999999999'\n"},
        {TENANT "  - {name: a, quota: {resources: {nvidia.com/gpu: lots}}}\n",
         "3:51: `nvidia.com/gpu` of `resources` of `quota` of tenant 'a' needs a count like 4 or 0.5; found 'lots'\n"},
        {TENANT "  - {name: a, priority: {budget: 5x}, storage: {quota: big}}\n",
         "3:34: `budget` of `priority` of tenant 'a': '5x' is not a duration; write it like 50ms, 2s, 10m, 4h or 7d\n"
         "3:56: `quota` of `storage` of tenant 'a': 'big' is not a size; write it like 20GiB (MiB, GiB, TiB, MB, GB, "
         "TB)\n"},
        {"bulkhead: 1\nprices: {gpuHour: cheap}\n",
         "2:19: `gpuHour` of `prices`: 'cheap' is not a price; write it like 2.50\n"},
        {"bulkhead: 1\nwaivers: [{rule: BH-001, expires: soon}]\n",
         "2:35: `expires` of the waiver on line 2: 'soon' is not a date; write it like 2026-12-31 or "
         "2026-12-31T23:59:59Z\n"},
        {"bulkhead: 1\nworkloads: [{name: w, tenant: a, deadline: [1], assigned: gpu-01, env: 5}]\n",
         "2:44: `deadline` of workload 'w' needs an instant like 2026-12-31T23:59:59Z; found a list\n"
         "2:59: `assigned` of workload 'w': 'gpu-01': no GPU is named; write it like gpu-01:0 or gpu-01:0-3\n"
         "2:72: `env` of workload 'w' needs a map from variables to values; found '5'\n"},
        {"bulkhead: 1\nworkloads: [{name: w, tenant: a, assigned: \"n:0-9999999\"}]\n",
         "2:44: `assigned` of workload 'w': 'n:0-9999999' names 10000000 GPUs, more than 1048576\n"},
        {"bulkhead: 1\nfabric: [{name: \"A B\", gpus: [\"x:[\"]}]\n",
         "2:17: `name` of fabric 'A B' needs a name of letters, digits, `.`, `_` and `-`; found the text 'A B'\n"
         "2:31: `gpus` of fabric 'A B': 'x:[': a number or a range like 1-4 is needed\n"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        CHECK_STR(said(table[i].text), table[i].said);
}

TEST(what_is_required)
{
    CHECK_STR(said(TENANT "  - trust: external\n"), "3:5: `name` of the tenant on line 3 is required\n");
    CHECK_STR(said(TENANT "  - name: ~\n"), "3:5: `name` of the tenant on line 3 is required\n");
    CHECK_STR(said(POOL "  - name: p\n"), "3:5: `mechanism` of pool 'p' is required\n");
    CHECK_STR(said(TENANT "  - name: a\n    slo: {metric: p99}\n"),
              "4:10: `kind` of `slo` of tenant 'a' is required\n");
    CHECK_STR(said("bulkhead: 1\nworkloads: [{name: w}]\nwaivers: [{scope: x}]\nroles: [{}]\n"),
              "2:13: `tenant` of workload 'w' is required\n"
              "3:11: `rule` of the waiver on line 3 is required\n"
              "4:9: `subject` of the role on line 4 is required\n"
              "4:9: `role` of the role on line 4 is required\n");
}

TEST(names)
{
    CHECK_STR(
        said(TENANT "  - name: Acme\n  - name: ''\n  - name: a-\n"),
        "3:11: `name` of tenant 'Acme' needs a name of at most 63 lower-case letters, digits and inner dashes; "
        "found 'Acme'\n"
        "4:11: `name` of the tenant on line 4 needs a name of at most 63 lower-case letters, digits and inner "
        "dashes; found the text ''\n"
        "5:11: `name` of tenant 'a-' needs a name of at most 63 lower-case letters, digits and inner dashes; "
        "found 'a-'\n");
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants: [{name: a}, {name: b}]\n"
                   "pools: [{name: a, mechanism: mig}]\n"
                   "fabric: [{name: a}]\n"
                   "workloads: [{name: a, tenant: a}]\n"
                   "classes: [{name: a}]\n"),
              "");
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants:\n  - name: a\n  - trust: external\n    name: a\n"
                   "pools:\n  - {name: p, mechanism: mig}\n  - {name: p, mechanism: mig}\n"
                   "fabric: [{name: F}, {name: F}]\n"
                   "workloads: [{name: w, tenant: a}, {name: w, tenant: a}]\n"
                   "classes: [{name: c}, {name: c}]\n"),
              "5:11: tenant 'a' is declared twice: on line 3 and on line 5\n"
              "8:12: pool 'p' is declared twice: on line 7 and on line 8\n"
              "9:28: fabric 'F' is declared twice: on line 9 and on line 9\n"
              "10:42: workload 'w' is declared twice: on line 10 and on line 10\n"
              "11:29: class 'c' is declared twice: on line 11 and on line 11\n");
}

TEST(all_errors_at_once)
{
    const char *all = said("bulkhead: 1\n"
                           "tenants:\n"
                           "  - name: a\n"
                           "    trust: foe\n"
                           "    quotta: {}\n"
                           "  - name: a\n"
                           "pools:\n"
                           "  - mechanism: 7\n"
                           "    replicas: x\n"
                           "colours: 5\n");
    CHECK_EQ(f.diags.n_errors, 7);
    static const char *const starts[] = {
        "4:12: ", "\n5:5: ", "\n6:11: ", "\n8:16: ", "\n9:15: ", "\n8:5: ", "\n10:1: "};
    for (size_t i = 0; i < BH_COUNT_OF(starts); i++)
        CHECK(strstr(all, starts[i]));
}

TEST(errors_are_cut_at_a_thousand)
{
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    bh_buf_str(&b, "bulkhead: 1\nprices:\n");
    for (int i = 0; i < 1500; i++)
        bh_buf_printf(&b, "  zz%dzz: 1\n", i);
    (void)said(bh_buf_text(&b));
    CHECK_EQ(f.diags.n_errors, 1000);
    CHECK(f.diags.cut);
    bh_buf_fini(&b);
    /* and the reading stops: what costs three bytes to write may not cost a tenant each */
    bh_buf_init(&b, 1 << 20);
    bh_buf_str(&b, "bulkhead: 1\ntenants: [");
    for (int i = 0; i < 100000; i++)
        bh_buf_str(&b, "{},");
    bh_buf_str(&b, "]\n");
    (void)said(bh_buf_text(&b));
    CHECK_EQ(f.diags.n_errors, 1000);
    CHECK_EQ(f.policy.tenants.n, 1000);
    bh_buf_fini(&b);
}

TEST(unknown_models_are_noted)
{
    CHECK_STR(said(POOL "  - {name: a, mechanism: mig, match: {model: X9000}}\n"
                        "  - {name: b, mechanism: mig, match: {model: X9000}}\n"
                        "  - {name: c, mechanism: mig, match: {model: H100}}\n"),
              "3:46: note: `X9000` is not in the GPU catalogue; nothing is assumed about its partitions\n");
}

TEST(what_comments_claim)
{
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants:\n"
                   "  - name: a\n"
                   "    # This team is limited\n"
                   "    # to five GPUs.\n"
                   "    quota:\n"
                   "      gpus: 1   # at most 3 GPUs\n"
                   "      memory: 80GiB # max 80GiB\n"
                   "    # up to 9 GPUs, says nobody\n"
                   "    slo: {kind: none}  # 8 GPUs\n"
                   "  # seven GPUs\n"
                   "  - {name: b, quota: {gpus: 7}} # seven GPUs\n"
                   "  - {name: c, quota: {gpus: 2}}\n"),
              "");
    const struct bh_quota *a = &f.policy.tenants.at[0].quota, *b = &f.policy.tenants.at[1].quota;
    CHECK_EQ(a->stated.n, 2);
    CHECK_EQ(a->stated.at[0].milli, 5000);
    CHECK_STR(a->stated.at[0].words, "to five GPUs.");
    CHECK_POS(a->stated.at[0].pos, 5, 5);
    CHECK_EQ(a->stated.at[1].milli, 3000);
    CHECK_POS(a->stated.at[1].pos, 7, 17);
    CHECK_EQ(b->stated.n, 2);
    CHECK_EQ(b->stated.at[0].milli, 7000);
    CHECK_POS(b->stated.at[0].pos, 11, 3);
    CHECK_EQ(f.policy.tenants.at[2].quota.stated.n, 0);
}

TEST(each_line_is_looked_at_once)
{
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants: [{name: a, quota: &q {gpus: 1}}, {name: b, quota: {gpus: 2}}] # 3 GPUs\n"
                   "workloads: []\n"),
              "");
    CHECK_EQ(f.policy.tenants.at[0].quota.stated.n, 1);
    CHECK_EQ(f.policy.tenants.at[1].quota.stated.n, 0);
    /* a long comment is kept short, and not cut inside a character */
    struct bh_buf b;
    bh_buf_init(&b, 1 << 16);
    bh_buf_str(&b, TENANT "  - {name: a, quota: {gpus: 1}} # 3 GPUs ");
    for (int i = 0; i < 400; i++)
        bh_buf_str(&b, "\xe2\x82\xac");
    (void)said(bh_buf_text(&b));
    CHECK_EQ(f.policy.tenants.at[0].quota.stated.n, 1);
    CHECK_EQ(strlen(f.policy.tenants.at[0].quota.stated.at[0].words), 199);
    bh_buf_fini(&b);
}

TEST(aliases_may_be_used)
{
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants:\n"
                   "  - {name: a, quota: &q {gpus: 4, memory: 1GiB}}\n"
                   "  - {name: b, quota: *q}\n"),
              "");
    CHECK_EQ(f.policy.tenants.at[1].quota.gpus_milli, 4000);
    CHECK_POS(f.policy.tenants.at[1].quota.pos, 4, 15);
}

TEST(memory_goes_back)
{
    bh_read_fixture_fini(&f);
    CHECK(f.policy.arena.head == NULL);
}

TEST(bandwidth_of_a_tenant_and_of_its_class)
{
    CHECK_STR(said("bulkhead: 1\n"
                   "tenants:\n"
                   "  - {name: a, class: bulk, quota: {model: hard}, bandwidth: {disk: 2GiB}}\n"
                   "  - {name: b, class: batch, quota: {model: hard}}\n"
                   "classes: [{name: bulk, bandwidth: {network: 3GiB, disk: 1GiB}}]\n"),
              "");
    const struct bh_bandwidth a = f.policy.tenants.at[0].bandwidth, b = f.policy.tenants.at[1].bandwidth;
    CHECK(a.network == 0 && a.disk == 2 * BH_GIB && a.pos.line == 3);
    CHECK(b.network == 0 && b.disk == 0 && b.pos.line == 0);
    const struct bh_bandwidth c = f.policy.classes.at[0].bandwidth;
    CHECK(c.network == 3 * BH_GIB && c.disk == BH_GIB && c.pos.line == 5);
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, bandwidth: {disk: 1KiB}}\n"));
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, bandwidth: {disc: 1GiB}}\n"));
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, bandwidth: 1GiB}\n"));
}

TEST(when_the_idle_sleep)
{
    CHECK_STR(said("bulkhead: 1\ntenants:\n  - {name: a, quota: {model: hard}, idle: {sleepAfter: 30m}}\n"),
              "");
    CHECK_EQ(f.policy.tenants.at[0].idle.sleep_after_ms, 1800000);
    CHECK_EQ(f.policy.tenants.at[0].idle.pos.line, 3);
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, idle: {sleepAfter: 10ms}}\n"));
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, idle: {sleepAfter: 400d}}\n"));
    CHECK(*said("bulkhead: 1\ntenants:\n  - {name: a, idle: {sleep: 1h}}\n"));
}

TEST_MAIN
