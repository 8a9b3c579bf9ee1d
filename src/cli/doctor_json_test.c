/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_fixture.h"

static struct bh_doctor_fixture x;
static struct bh_buf out;

static const char *shown(void)
{
    struct bh_doctor d = {0};
    bh_buf_fini(&out);
    bh_buf_init(&out, 1u << 20);
    bh_doctor_judge(&d, &x.facts);
    bh_doctor_json(&out, &d);
    bh_doctor_fini(&d);
    return bh_buf_text(&out);
}

TEST(every_check_is_there)
{
    bh_doctor_fixture_init(&x);
    const char *text = shown();
    size_t n = 0;
    for (const struct bh_doctor_layer *l = bh_doctor_layers; l->name; l++)
        for (const struct bh_check *c = l->checks; c->id; c++, n++) {
            char key[80];
            (void)snprintf(key, sizeof(key), "\"id\": \"%s\"", c->id);
            CHECK(strstr(text, key) != NULL);
        }
    CHECK(strstr(text, "{\"mode\": \"whole\", \"can\": \"yes\", \"check\": null, \"because\": null}") !=
          NULL);
    CHECK(strstr(text, "\"simulated\": false") && strstr(text, "\"root\": null") &&
          strstr(text, "\"live\": true"));
    char counts[80];
    (void)snprintf(counts, sizeof(counts), "{\"ok\": %zu, \"note\": 0, \"attention\": 0",
                   n - 1); /* all but AMD's */
    ;
    CHECK(strstr(text, counts) != NULL);
    CHECK(!strstr(text, "\"mend\": \""));
}

TEST(a_fault_carries_all_that_is_known_of_it)
{
    x.platform.iommu = (struct bh_platform_fact){BH_KNOWN_NO, "the kernel has no IOMMU groups"};
    x.gpus.simulated = true;
    x.probes.skipped = "not asked";
    const char *text = shown();
    CHECK(strstr(text, "\"state\": \"note\",\n      \"seen\": \"the kernel has no IOMMU groups\",\n"
                       "      \"live\": false,\n      \"rules\": [\"BH-057\", \"BH-001\"],\n"
                       "      \"takes\": [\"vm\", \"cvm\"],\n      \"why\": \"Without it") != NULL);
    CHECK(strstr(
        text,
        "{\"mode\": \"vm\", \"can\": \"no\", \"check\": \"virtual.iommu\", \"because\": \"no IOMMU\"}"));
    CHECK(strstr(text, "{\"mode\": \"gate\", \"can\": \"unknown\", \"check\": \"kernel.rights\", "
                       "\"because\": \"not asked\"}"));
    CHECK(strstr(text, "\"state\": \"not-applicable\"") && strstr(text, "\"simulated\": true"));
    x.facts.gpus = NULL;
    CHECK(strstr(shown(), "\"simulated\": false") != NULL);
    x.facts.stand_in = "a stand-in";
    CHECK(strstr(shown(), "\"simulated\": true") != NULL);
    bh_buf_fini(&out);
    bh_doctor_fixture_fini(&x);
}

TEST_MAIN
