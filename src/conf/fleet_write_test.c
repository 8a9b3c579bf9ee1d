/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/fleet_write.h"

#include "base/choice.h"
#include "conf/read_fixture.h"

static struct bh_read_fixture f;

static const char full[] = "# made by hand\n"
                           "bulkhead: 1\n"
                           "nodes:\n"
                           "  - name: gpu-01\n"
                           "    # acs is not known: no root\n"
                           "    kernel: k-7\n"
                           "    driver: 580.159.03\n"
                           "    toolkit: \"1.17.8~rc.1\"\n"
                           "    iommu: true\n"
                           "    secureBoot: false\n"
                           "    params:\n"
                           "      RmProfilingAdminOnly: 1\n"
                           "      RegistryDwords: \"A=1;B=\\\"2\\\\\"\n"
                           "    labels:\n"
                           "      \"nvidia.com/gpu.clique: x\": \"true\"\n"
                           "    gpus:\n"
                           "      - {index: 0, uuid: GPU-1, model: H200, numa: 1, fabric: \"a b\", "
                           "mig: {enabled: true, instances: [1g.18gb@0, 1g.18gb+me]}}\n"
                           "      - {index: 1, model: \"NVIDIA X, {1}\", mig: {enabled: false}}\n"
                           "  - name: empty\n"
                           "    gpus: []\n";

static const char *written(const bh_remarks *head, const bh_remarks *nodes)
{
    static struct bh_buf b;
    bh_buf_fini(&b);
    bh_buf_init(&b, 1u << 20);
    bh_fleet_write(&b, &f.fleet, head, nodes);
    return bh_buf_text(&b);
}

static const char *said(const char *text)
{
    return bh_read_fixture_read(&f, text, strlen(text), true);
}

TEST(what_was_read_is_written_the_same)
{
    const char *head = "made by hand", *first = "acs is not known: no root";
    bh_remarks remarks = {&head, 1, 1}, nodes[2] = {{&first, 1, 1}, {0}};
    (void)said(full); /* a note about the unknown model */
    CHECK_EQ(f.fleet.nodes.n, 2);
    CHECK_STR(written(&remarks, nodes), full);
}

TEST(no_node_and_no_remark)
{
    CHECK_STR(said("bulkhead: 1\nnodes: []\n"), "");
    CHECK_STR(written(NULL, NULL), "bulkhead: 1\nnodes: []\n");
}

/* Whatever a driver says, the file can be read, and holds the text where YAML can hold it. */
TEST(any_text_survives)
{
    static const char alphabet[] = "aZ09 ._-+/@:#,{}[]\"'\\&*!|>%`~\t\n\x01\x7f\xc3\xa9\xff\xed\xa0";
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint8_t bytes[32];
        char text[24] = {0}, remark[24] = {0};
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        bool printable = true;
        size_t n = 1 + bh_choose(&c, 20);
        for (size_t i = 0; i < n; i++) {
            text[i] = remark[i] = alphabet[bh_choose(&c, sizeof(alphabet) - 1)];
            printable = printable && text[i] >= 0x20 && text[i] < 0x7f;
        }
        struct bh_keyed pair = {.key = "k", .value = text};
        struct bh_gpu gpu = {.model_name = text, .uuid = text, .fabric = text, .numa = -1};
        struct bh_fleet_node node = {.name = "n", .kernel = "n", .driver = text};
        const char *line = remark;
        bh_remarks remarks = {&line, 1, 1};
        node.params.at = &pair;
        node.params.n = 1;
        node.gpus.at = &gpu;
        node.gpus.n = 1;
        struct bh_fleet fleet = {0};
        fleet.nodes.at = &node;
        fleet.nodes.n = 1;
        struct bh_buf b;
        bh_buf_init(&b, 1u << 16);
        bh_fleet_write(&b, &fleet, &remarks, &remarks);
        (void)said(bh_buf_text(&b));
        if (f.fleet.nodes.n != 1 || f.fleet.nodes.at[0].gpus.n != 1)
            printf("# seed %" PRIu64 ":\n%s\n", seed, bh_buf_text(&b));
        CHECK(f.fleet.nodes.n == 1 && f.fleet.nodes.at[0].gpus.n == 1);
        if (printable) {
            CHECK_STR(f.fleet.nodes.at[0].driver, text);
            CHECK_STR(f.fleet.nodes.at[0].gpus.at[0].model_name, text);
        }
        bh_buf_fini(&b);
    }
}

TEST(memory_goes_back)
{
    bh_read_fixture_fini(&f);
    CHECK(f.fleet.arena.head == NULL);
}

TEST_MAIN
