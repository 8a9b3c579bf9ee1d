/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/starter.h"

#include "base/str.h"
#include "base/test.h"
#include "core/model/vocab.h"

enum { TEXT_MAX = 1 << 16 };

/* Writes into *b anew; the text, or NULL when the answers were refused. */
static const char *write_text(struct bh_buf *b, const struct bh_starter *s)
{
    bh_buf_fini(b);
    bh_buf_init(b, TEXT_MAX);
    return bh_starter_write(s, b, NULL) == BH_OK ? bh_buf_text(b) : NULL;
}

static struct bh_starter answers(void)
{
    return (struct bh_starter){.who = BH_STARTER_TEAMS,
                               .work = 1u << BH_STARTER_RESEARCH,
                               .model_name = "H200",
                               .nodes = 4,
                               .gpus_per_node = 8};
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
        n++;
    return n;
}

TEST(every_combination_is_written_and_is_the_same_twice)
{
    static const char *const models[] = {
        "H200", "H100", "L40S", "A30", "RTX-PRO-6000", "B300", "Something New 9000"};
    static const uint32_t sizes[][2] = {{1, 1}, {1, 8}, {2, 1}, {3, 2}, {40, 8}, {1200, 4}};
    struct bh_buf a, b;
    bh_buf_init(&a, TEXT_MAX);
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    for (uint32_t work = 1; work < 1u << BH_N_STARTER_WORK; work++) {
        for (size_t i = 0; i < 3 * 3 * 7 * 6 * 2; i++) {
            s.work = work;
            s.who = (uint8_t)(i % 3);
            s.promise = (uint8_t)(i / 3 % 3);
            s.model_name = models[i / 9 % 7];
            s.nodes = sizes[i / 63 % 6][0];
            s.gpus_per_node = sizes[i / 63 % 6][1];
            s.regimes = i / 378 ? 1u << BH_REGIME_HIPAA | 1u << BH_REGIME_PCI : 0;
            const char *text = write_text(&a, &s);
            CHECK(text != NULL);
            CHECK_STR(text, write_text(&b, &s));
            /* A promise that turns cannot keep is never put on them. */
            CHECK(!(strstr(text, "kind: hard") && !strstr(text, "mechanism: whole") &&
                    !strstr(text, "mechanism: mig")));
            CHECK_EQ(count(text, "  - name: ") >= 2, true);
            CHECK_EQ(count(text, "kind: hard") > 0, s.promise == BH_STARTER_HARD_SLO);
            CHECK_EQ(count(text, "trust: external"), s.who == BH_STARTER_CUSTOMERS ? 2 : 0);
            CHECK_EQ(count(text, "tier: vm") > 0, s.who != BH_STARTER_TEAMS || s.regimes != 0);
        }
    }
    bh_buf_fini(&a);
    bh_buf_fini(&b);
}

TEST(teams_share_by_fractions_and_say_so)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    const char *text = write_text(&b, &s);
    CHECK(strstr(text, "mechanism: fractional") != NULL);
    CHECK(strstr(text, "backing: gate") != NULL);
    CHECK(strstr(text, "underContention") != NULL);
    CHECK(strstr(text, "nodes: \"gpu-[01-04]\"") != NULL);
    CHECK(strstr(text, "slo: {kind: none}") != NULL);
    CHECK(strstr(text, "NOT YET POSSIBLE") == NULL);
    bh_buf_fini(&b);
}

TEST(customers_get_slices_in_virtual_machines)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    s.who = BH_STARTER_CUSTOMERS;
    s.work = 1u << BH_STARTER_SERVING | 1u << BH_STARTER_RESEARCH;
    s.promise = BH_STARTER_HARD_SLO;
    const char *text = write_text(&b, &s);
    CHECK(strstr(text, "mechanism: mig-vgpu") != NULL);
    CHECK(strstr(text, "layout: {1g.18gb: 7}") != NULL);
    CHECK(strstr(text, "tenants: [customer-a, customer-b]") != NULL);
    CHECK(strstr(text, "{subject: \"group:customer-a\", role: tenant-admin, tenant: customer-a}") != NULL);
    CHECK(strstr(text, "{subject: \"group:customer-b\", role: tenant-admin, tenant: customer-b}") != NULL);
    /* ... on nodes that the team's containers do not touch. */
    CHECK(strstr(text, "nodes: \"gpu-[01-02]\"") != NULL);
    CHECK(strstr(text, "nodes: \"gpu-[03-04]\"") != NULL);
    s.model_name = "L40S"; /* no MIG: whole GPUs, or nothing to promise */
    text = write_text(&b, &s);
    CHECK(strstr(text, "mechanism: mig") == NULL);
    CHECK(strstr(text, "mechanism: whole") != NULL);
    s.model_name = "RTX-PRO-6000";
    CHECK(strstr(write_text(&b, &s), "layout: {1g.24gb+gfx: 4}") != NULL);
    bh_buf_fini(&b);
}

TEST(one_node_is_split_by_gpu_among_teams)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    s.work = 15;
    s.nodes = 1;
    const char *text = write_text(&b, &s);
    CHECK(strstr(text, "gpus: [0, 1]}") != NULL);
    CHECK(strstr(text, "gpus: [6, 7]}") != NULL);
    CHECK(strstr(text, "NOT YET POSSIBLE") == NULL);
    bh_buf_fini(&b);
}

TEST(too_little_hardware_is_said)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    s.work = 15;
    s.nodes = 1;
    s.gpus_per_node = 1;
    const char *text = write_text(&b, &s);
    CHECK(strstr(text, "NOT YET POSSIBLE as it stands: this takes 4 nodes and there are 1.") != NULL);
    CHECK(strstr(text, "Missing: gpu-[02-04].") != NULL);
    /* Strangers never share a node, however many GPUs it has. */
    s.who = BH_STARTER_PARTNERS;
    s.gpus_per_node = 8;
    CHECK(strstr(write_text(&b, &s), "this takes 2 nodes") != NULL);
    /* Whole GPUs for two customers are two GPUs. */
    s.who = BH_STARTER_CUSTOMERS;
    s.work = 1u << BH_STARTER_TRAINING;
    s.gpus_per_node = 1;
    CHECK(strstr(write_text(&b, &s), "this takes 2 nodes") != NULL);
    bh_buf_fini(&b);
}

TEST(regimes_raise_the_retention)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    struct bh_starter s = answers();
    CHECK(strstr(write_text(&b, &s), "retention: 400d") != NULL);
    s.regimes = 1u << BH_REGIME_FEDRAMP;
    CHECK(strstr(write_text(&b, &s), "retention: 915d") != NULL);
    s.regimes |= 1u << BH_REGIME_HIPAA;
    const char *text = write_text(&b, &s);
    CHECK(strstr(text, "retention: 2192d") != NULL);
    CHECK(strstr(text, "regulated: [hipaa, fedramp]") != NULL);
    CHECK(strstr(text, "class: guaranteed") != NULL);
    CHECK(strstr(text, "{name: guaranteed, mechanism: [mig-vgpu], quota: hard, tier: [vm]}") != NULL);
    bh_buf_fini(&b);
}

/* The slices that are written must stand together on the model they are written for. */
TEST(layouts_fit_every_model)
{
    struct bh_buf b;
    bh_buf_init(&b, TEXT_MAX);
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        const struct bh_gpu_model *m = bh_catalog_at(i);
        for (int outside = 0; outside < 2; outside++) {
            struct bh_starter s = answers();
            s.work = 1u << BH_STARTER_SERVING;
            s.who = outside ? BH_STARTER_CUSTOMERS : BH_STARTER_TEAMS;
            s.model_name = m->name;
            const char *at = strstr(write_text(&b, &s), "layout: {");
            CHECK_EQ(at != NULL, bh_model_has_mig(m));
            if (!at)
                continue;
            char name[32];
            size_t n = strcspn(at + 9, ":");
            CHECK(n < sizeof(name));
            memcpy(name, at + 9, n);
            name[n] = '\0';
            const struct bh_mig_profile *p = bh_mig_find(m, name);
            CHECK(p != NULL);
            struct bh_mig_instance want[BH_MIG_INSTANCES_MAX];
            for (size_t k = 0; k < p->max_instances; k++)
                want[k] = (struct bh_mig_instance){p, -1};
            CHECK(bh_mig_layout_fits(m, want, p->max_instances, NULL, NULL));
        }
    }
    bh_buf_fini(&b);
}

TEST(answers_that_are_none_are_refused)
{
    struct bh_buf b;
    struct bh_err err;
    bh_buf_init(&b, TEXT_MAX);
    static const char *const bad_names[] = {
        "",
        "H200\"}\n evil: 1",
        "a: b",
        "#",
        " H200",
        "-x",
        "H{200",
        "\x01",
        "a-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on"};
    for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
        struct bh_starter s = answers();
        s.model_name = bad_names[i];
        CHECK_EQ(bh_starter_write(&s, &b, &err), BH_INVALID);
    }
    struct bh_starter bad[8];
    for (size_t i = 0; i < 8; i++)
        bad[i] = answers();
    bad[0].work = 0;
    bad[1].work = 16;
    bad[2].who = 3;
    bad[3].promise = 3;
    bad[4].nodes = 0;
    bad[5].gpus_per_node = BH_STARTER_GPUS_MAX + 1;
    bad[6].regimes = 1u << BH_N_regime;
    bad[7].model_name = NULL;
    for (size_t i = 0; i < 8; i++)
        CHECK_EQ(bh_starter_write(&bad[i], &b, &err), BH_INVALID);
    CHECK_STR(bh_buf_text(&b), "");
    bh_buf_fini(&b);
}

TEST(a_text_that_does_not_fit_is_an_error)
{
    struct bh_buf b;
    struct bh_err err;
    struct bh_starter s = answers();
    bh_buf_init(&b, 200);
    CHECK_EQ(bh_starter_write(&s, &b, &err), BH_TOO_LARGE);
    bh_buf_fini(&b);
}

TEST_MAIN
