/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_test.c - what a CDI file says. That engines take it is shown with podman, in tests/container/podman.py. */
#include "host/cdi.h"

#include "base/scratch.h"
#include "base/test.h"

static struct bh_err err;

static bool says(const struct bh_cdi *c, const char *text)
{
    struct bh_buf out;
    bh_buf_init(&out, BH_CDI_FILE_MAX);
    const bool ok = bh_cdi_text(c, "/p", &out, &err) == BH_OK && strstr(bh_buf_text(&out), text);
    if (!ok)
        printf("# no %s in %s\n", text, bh_buf_text(&out));
    bh_buf_fini(&out);
    return ok;
}

TEST(a_specification)
{
    struct bh_gear g = {0};
    const struct bh_cdi c = {.lease = 17, .gear = &g, .hook = "/x/bulkhead-oci", .listener = "/s"};
    CHECK_EQ(bh_gear_node(&g, "/dev/null", NULL, true, &err), BH_OK);
    CHECK(says(&c, "\"cdiVersion\": \"0.3.0\"")); /* the oldest that will do */
    CHECK_EQ(bh_gear_node(&g, "/dev/zero", "/dev/nvidia0", false, &err), BH_OK);
    CHECK_EQ(bh_gear_mount(&g, "/etc", "/a", false, &err), BH_OK);
    CHECK_EQ(bh_gear_env(&g, "A", "b", &err), BH_OK);
    CHECK(says(&c, "\"cdiVersion\": \"0.5.0\"") && says(&c, "\"kind\": \"bulkhead.dev/lease\"") &&
          says(&c, "\"name\": \"L17\""));
    CHECK(says(&c, "\"hostPath\": \"/dev/zero\"") && says(&c, "\"permissions\": \"r\"") &&
          says(&c, "\"permissions\": \"rw\""));
    CHECK(says(&c, "\"A=b\"") && says(&c, "\"BULKHEAD_LEASE=L17\"") && says(&c, "\"containerPath\": \"/a\""));
    CHECK(says(&c, "\"hookName\": \"createRuntime\"") &&
          says(&c, "[\"bulkhead-oci\", \"hook\", \"--lease\", \"17\", \"--profile\", \"/p\"]"));
    CHECK_EQ(bh_gear_socket(&g, "/run/probes/L17", BH_GEAR_PROBE, &err), BH_OK);
    CHECK(says(&c, "\"hostPath\": \"/run/probes/L17\"") &&
          says(&c, "\"containerPath\": \"/run/bulkhead/probe\"") &&
          says(&c, "[\"rbind\", \"nosuid\", \"nodev\", \"ro\", \"noexec\"]"));
    const struct bh_cdi held = {
        .lease = 17, .gear = &g, .hook = "/x/bulkhead-oci", .listener = "/s", .cgroup = "bulkhead/L17"};
    CHECK(says(&held, "\"--profile\", \"/p\", \"--cgroup\", \"bulkhead/L17\"]"));
    bh_gear_fini(&g);
}

static void count(void *arg, uint64_t lease)
{
    uint64_t *sum = arg;
    *sum += lease;
}

TEST(the_folder)
{
    char at[BH_SCRATCH_PATH], folder[BH_SCRATCH_PATH + 8];
    struct bh_gear g = {0};
    struct bh_cdi c = {.lease = 17, .gear = &g, .hook = "/x/bulkhead-oci", .listener = "/s"};
    uint64_t sum = 0;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(folder, sizeof(folder), "%s/cdi", at);
    CHECK_EQ(bh_cdi_list(folder, count, &sum, &err), BH_OK);
    CHECK_EQ(bh_cdi_write(folder, &c, &err), BH_OK);
    c.lease = 18;
    CHECK_EQ(bh_cdi_write(folder, &c, &err), BH_OK);
    CHECK(bh_scratch_put(folder, "bulkhead-L.json", "") &&
          bh_scratch_put(folder, "bulkhead-L99999999999999999999999.json", ""));
    CHECK_EQ(bh_cdi_list(folder, count, &sum, &err), BH_OK);
    CHECK_EQ(sum, 35);
    char *profile = bh_scratch_get(folder, "bulkhead-L18.seccomp");
    CHECK(profile && strstr(profile, "\"listenerPath\": \"/s\"") && strstr(profile, "name=L18"));
    free(profile);
    CHECK_EQ(bh_cdi_remove(folder, 17, &err), BH_OK);
    CHECK_EQ(bh_cdi_remove(folder, 17, &err), BH_OK);
    CHECK_EQ(bh_cdi_remove(folder, 18, &err), BH_OK);
    sum = 0;
    CHECK_EQ(bh_cdi_list(folder, count, &sum, &err), BH_OK);
    CHECK_EQ(sum, 0);
    bh_gear_fini(&g);
    bh_scratch_remove(at);
}

TEST(refused)
{
    struct bh_gear g = {0};
    struct bh_cdi c = {.lease = 1, .gear = &g, .hook = "bulkhead-oci", .listener = "/s"};
    struct bh_cdi_paths p;
    char long_folder[600];
    CHECK_EQ(bh_cdi_write("/no-such-folder", &c, &err), BH_INVALID);
    c.hook = "/x";
    CHECK_EQ(bh_cdi_write("relative", &c, &err), BH_INVALID);
    CHECK_EQ(bh_cdi_write("/no-such-folder/cdi", &c, &err), BH_NOT_FOUND);
    c.listener = "/a/../b";
    CHECK_EQ(bh_cdi_write("/no-such-folder", &c, &err), BH_INVALID);
    memset(long_folder, 'x', sizeof(long_folder) - 1);
    long_folder[0] = '/';
    long_folder[sizeof(long_folder) - 1] = '\0';
    CHECK_EQ(bh_cdi_paths(long_folder, 1, &p, &err), BH_TOO_LARGE);
    CHECK_EQ(bh_cdi_paths("/var/run/cdi", UINT64_MAX, &p, &err), BH_OK);
    CHECK_STR(p.profile, "/var/run/cdi/bulkhead-L18446744073709551615.seccomp");
}

TEST_MAIN
