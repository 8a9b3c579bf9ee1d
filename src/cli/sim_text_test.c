/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim_text.h"

#include "base/test.h"

#include <unistd.h>

static struct bh_sim_place place(const char *name, bool runs)
{
    struct bh_sim_place p = {.uid = 4200000000,
                             .runs = runs,
                             .seed = 7,
                             .gpus = 8,
                             .pid = 123,
                             .started_s = UINT64_C(1780315200) + 3661,
                             .scene = "h100x8"};
    (void)snprintf(p.name, sizeof(p.name), "%s", name);
    (void)snprintf(p.folder, sizeof(p.folder), "/run/sim/%s", name);
    return p;
}

TEST(since_when)
{
    char s[BH_SINCE_MAX];
    CHECK_STR(bh_sim_since(1780315200 + 3661, s), "2026-06-01T13:01:01Z");
    CHECK_STR(bh_sim_since(1, s), "1970-01-01T00:00:01Z");
    CHECK_STR(bh_sim_since(0, s), "-");
    CHECK_STR(bh_sim_since(UINT64_MAX, s), "-");
}

TEST(whose)
{
    char s[64];
    CHECK_STR(bh_sim_owner(0, s, sizeof(s)), "root");
    CHECK_STR(bh_sim_owner(4200000000, s, sizeof(s)), "4200000000");
}

TEST(a_list_names_owner_state_and_time)
{
    struct bh_cli cli = {0};
    bh_sim_places all = {0};
    bh_buf_init(&cli.out, 1 << 16);
    bh_buf_init(&cli.hint, 1 << 16);
    *bh_vec_push(&all) = place("lab", true);
    *bh_vec_push(&all) = place("another", false);
    bh_sim_list_text(&cli, &all);
    CHECK_STR(bh_buf_text(&cli.out),
              "2 simulated nodes\n"
              "NAME     SCENE   GPUS  SEED  STATE    OWNER       SINCE                 FOLDER\n"
              "lab      h100x8  8     7     running  4200000000  2026-06-01T13:01:01Z  /run/sim/lab\n"
              "another  h100x8  8     7     died     4200000000  2026-06-01T13:01:01Z  /run/sim/another\n");
    CHECK_STR(bh_buf_text(&cli.hint),
              "next: bulkhead sim stop another   removes what 'another' left when it died\n");
    bh_vec_fini(&all);
    bh_buf_fini(&cli.out);
    bh_buf_fini(&cli.hint);
}

TEST(an_empty_list_says_what_to_do)
{
    struct bh_cli cli = {0};
    bh_sim_places all = {0};
    bh_buf_init(&cli.out, 1 << 16);
    bh_buf_init(&cli.hint, 1 << 16);
    bh_sim_list_text(&cli, &all);
    CHECK_STR(bh_buf_text(&cli.out), "no simulated nodes\n");
    CHECK_STR(bh_buf_text(&cli.hint), "next: bulkhead sim start\n");
    bh_buf_fini(&cli.out);
    bh_buf_fini(&cli.hint);
}

TEST(a_scene_from_a_file_cannot_reach_the_terminal)
{
    struct bh_cli cli = {0};
    bh_sim_places all = {0};
    struct bh_sim_place p = place("lab", true);
    (void)snprintf(p.scene, sizeof(p.scene), "a\033[31mb");
    bh_buf_init(&cli.out, 1 << 16);
    bh_buf_init(&cli.hint, 1 << 16);
    *bh_vec_push(&all) = p;
    bh_sim_list_text(&cli, &all);
    CHECK(strchr(bh_buf_text(&cli.out), '\033') == NULL);
    CHECK(strstr(bh_buf_text(&cli.out), "a\\x1b[31mb") != NULL);
    bh_vec_fini(&all);
    bh_buf_fini(&cli.out);
    bh_buf_fini(&cli.hint);
}

TEST(a_list_for_programs)
{
    struct bh_buf out;
    bh_sim_places all = {0};
    bh_buf_init(&out, 1 << 16);
    *bh_vec_push(&all) = place("lab", false);
    bh_sim_list_json(&out, &all);
    CHECK(strstr(bh_buf_text(&out), "\"simulated\": true") != NULL);
    CHECK(strstr(bh_buf_text(&out), "\"state\": \"died\"") != NULL);
    CHECK(strstr(bh_buf_text(&out), "\"since\": \"2026-06-01T13:01:01Z\"") != NULL);
    bh_vec_fini(&all);
    bh_buf_fini(&out);
}

TEST(the_environment_is_quoted_for_a_shell)
{
    struct bh_buf out;
    struct bh_sim_place p = place("lab", true);
    bh_buf_init(&out, 1 << 16);
    bh_sim_env_text(&out, &p, NULL);
    CHECK_STR(bh_buf_text(&out), "# simulated node lab; for a shell: eval \"$(bulkhead sim env lab)\"\n"
                                 "export BULKHEAD_SIM=/run/sim/lab "
                                 "BULKHEAD_NVML=/run/sim/lab/lib/libnvidia-ml.so.1 "
                                 "BULKHEAD_SYSROOT=/run/sim/lab/sysroot LD_LIBRARY_PATH=/run/sim/lab/lib\n");
    bh_buf_fini(&out);
    bh_buf_init(&out, 1 << 16);
    (void)snprintf(p.folder, sizeof(p.folder), "/a b/$(x)/lab");
    bh_sim_env_text(&out, &p, "/opt/lib");
    CHECK(strstr(bh_buf_text(&out), "BULKHEAD_SIM='/a b/$(x)/lab' ") != NULL);
    CHECK(strstr(bh_buf_text(&out), "LD_LIBRARY_PATH='/a b/$(x)/lab/lib:/opt/lib'\n") != NULL);
    bh_buf_fini(&out);
}

TEST_MAIN
