/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/synth.h"

#include "base/test.h"
#include "replay/chronus.h"
#include "replay/rng.h"

TEST(draws_are_even_and_repeat)
{
    struct bh_rng a = {7}, b = {7};
    uint32_t count[5] = {0}, order[50];
    for (int i = 0; i < 10000; i++) {
        const uint32_t v = bh_rng_below(&a, 5);
        CHECK_EQ(v, bh_rng_below(&b, 5));
        count[v]++;
    }
    for (int i = 0; i < 5; i++)
        CHECK(count[i] > 1800 && count[i] < 2200);
    for (uint32_t i = 0; i < 50; i++)
        order[i] = i;
    bh_rng_shuffle(&a, order, 50);
    uint64_t seen = 0, moved = 0;
    for (uint32_t i = 0; i < 50; i++) {
        seen |= UINT64_C(1) << order[i];
        moved += order[i] != i;
    }
    CHECK_EQ(seen, (UINT64_C(1) << 50) - 1);
    CHECK(moved > 40);
}

TEST(words)
{
    struct bh_synth y;
    struct bh_err err;
    CHECK_EQ(bh_synth_parse("openb", &y, &err), BH_OK);
    CHECK_EQ(y.nodes, 200);
    CHECK_EQ(bh_synth_parse("openb,nodes=12,seed=9,spec=33,pods=40", &y, &err), BH_OK);
    CHECK_EQ(y.nodes, 12);
    CHECK_EQ(y.seed, 9);
    CHECK_EQ(y.spec, 33);
    CHECK_EQ(y.pods, 40);
    CHECK_EQ(bh_synth_parse("gavel,jobs=5,tenants=2,gpus=8,load=50", &y, &err), BH_OK);
    CHECK_EQ(y.shape, BH_SYNTH_GAVEL);
    CHECK_EQ(y.load, 50);
}

TEST(wrong_words)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"opemb", "'opemb' is no shape; there are openb, chronus and gavel"},
        {"openb,node=3", "'node' is unknown to openb; did you mean 'nodes'?"},
        {"openb,load=3", "'load' is unknown to openb, which takes nodes, pods, spec, seed"},
        {"openb,nodes", "'nodes' needs a value, as in nodes=200"},
        {"openb,nodes=0", "nodes needs a whole number from 1 to 262144, is '0'"},
        {"chronus,load=x", "load needs a whole number from 1 to 1000, is 'x'"},
        {"openb,", "'' needs a value, as in nodes=200"},
        {"openb,seed=x", "seed needs a whole number, is 'x'"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_synth y;
        struct bh_err err;
        CHECK_EQ(bh_synth_parse(cases[i].text, &y, &err), BH_USAGE);
        CHECK_STR(err.msg, cases[i].message);
    }
}

TEST(a_fleet_and_its_work)
{
    struct bh_openb o BH_AUTO(bh_openb_fini), again BH_AUTO(bh_openb_fini);
    struct bh_buf a BH_AUTO(bh_buf_fini), b BH_AUTO(bh_buf_fini);
    const struct bh_synth y = {.shape = BH_SYNTH_OPENB, .seed = 3, .nodes = 50, .spec = 50};
    bh_buf_init(&a, 1 << 20);
    bh_buf_init(&b, 1 << 20);
    bh_synth_openb(&y, &o);
    bh_synth_openb(&y, &again);
    CHECK_EQ(o.nodes.n, 50);
    const uint64_t all = bh_openb_gpus(&o) * 1000, asked = bh_openb_demand_milli(&o);
    CHECK(asked >= all && asked <= all + 8000);
    size_t picky = 0, gpu = 0;
    for (size_t i = 0; i < o.pods.n; i++) {
        gpu += o.pods.at[i].n_gpus > 0;
        picky += o.pods.at[i].models != 0;
    }
    CHECK(picky * 10 > gpu * 4 && picky * 10 < gpu * 6);
    bh_openb_write_pods(&o, &a);
    bh_openb_write_pods(&again, &b);
    CHECK_STR(bh_buf_text(&a), bh_buf_text(&b));
}

TEST(what_is_drawn_can_be_read)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini), again BH_AUTO(bh_jobs_fini);
    struct bh_buf text BH_AUTO(bh_buf_fini);
    struct bh_err err;
    again = (struct bh_jobs){0};
    bh_buf_init(&text, 1 << 20);
    bh_synth_jobs(
        &(struct bh_synth){
            .shape = BH_SYNTH_CHRONUS, .seed = 5, .jobs = 700, .tenants = 4, .gpus = 32, .load = 90},
        &j);
    bh_chronus_write(&j, &text);
    CHECK_EQ(bh_jobs_read(&again, BH_JOBS_CHRONUS, "c", bh_buf_text(&text), text.n, &err), BH_OK);
    CHECK_EQ(again.at.n, 700);
    for (size_t i = 0; i < 700; i++) {
        const struct bh_job *a = &j.at.at[i], *b = &again.at.at[i];
        CHECK_STR(j.tenants.at[a->tenant], again.tenants.at[b->tenant]);
        CHECK_EQ(a->gpus, b->gpus);
        CHECK_EQ(a->submit_s, b->submit_s);
        CHECK_EQ(a->duration_s, b->duration_s);
        CHECK(a->deadline_s == b->deadline_s);
        CHECK(a->deadline_s == BH_JOB_NO_DEADLINE || a->deadline_s >= a->submit_s + a->duration_s);
    }
}

TEST(the_load_is_as_asked)
{
    struct bh_jobs j BH_AUTO(bh_jobs_fini);
    uint64_t work = 0;
    bh_synth_jobs(
        &(struct bh_synth){
            .shape = BH_SYNTH_GAVEL, .seed = 1, .jobs = 5000, .tenants = 15, .gpus = 64, .load = 120},
        &j);
    for (size_t i = 0; i < j.at.n; i++)
        work += j.at.at[i].duration_s * j.at.at[i].gpus;
    const uint64_t window = j.at.at[j.at.n - 1].submit_s - j.at.at[0].submit_s;
    CHECK(window > 0);
    const uint64_t percent = work * 100 / (window * 64);
    CHECK(percent >= 119 && percent <= 122);
}

TEST_MAIN
