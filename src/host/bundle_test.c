/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_test.c - what config.json says. That it holds is shown with a real runtime, in tests/container/run.py. */
#include "host/bundle.h"

#include "base/str.h"
#include "base/test.h"
#include "host/bundle_spec.h"

static struct bh_err err;
static struct bh_disk disks[] = {{8, 16}, {259, 0}};
static const char *const argv[] = {"python3", "-c", "print('\"')"};

static struct bh_bundle plain(void)
{
    return (struct bh_bundle){.lease = 17, .tenant = "acme", .argv = argv, .n_argv = 3, .first_id = 200000};
}

static int write_it(const struct bh_bundle *b, struct bh_buf *out)
{
    bh_buf_init(out, BH_BUNDLE_MAX);
    return bh_bundle_write(b, out, &err);
}

static bool says(const struct bh_bundle *b, const char *text)
{
    struct bh_buf out;
    const bool ok = write_it(b, &out) == BH_OK && strstr(bh_buf_text(&out), text);
    bh_buf_fini(&out);
    return ok;
}

TEST(the_walls)
{
    struct bh_bundle b = plain();
    const char *const always[] = {
        "\"readonly\": true",
        "\"noNewPrivileges\": true",
        "\"bounding\": []",
        "\"effective\": []",
        "\"permitted\": []",
        "\"inheritable\": []",
        "\"ambient\": []",
        "{\"type\": \"pid\"}",
        "{\"type\": \"network\"}",
        "{\"type\": \"ipc\"}",
        "{\"type\": \"uts\"}",
        "{\"type\": \"mount\"}",
        "{\"type\": \"cgroup\"}",
        "{\"type\": \"user\"}",
        "{\"containerID\": 0, \"hostID\": 200000, \"size\": 65536}",
        "\"cgroupsPath\": \"/bulkhead/L17\"",
        "{\"allow\": false, \"access\": \"rwm\"}",
        "{\"type\": \"RLIMIT_CORE\", \"hard\": 0, \"soft\": 0}",
        "\"/proc/kcore\"",
        "\"/proc/sys\"",
    };
    for (size_t i = 0; i < BH_COUNT_OF(always); i++)
        CHECK(says(&b, always[i]));
    b.cgroup = "other/group";
    CHECK(says(&b, "\"cgroupsPath\": \"/other/group\""));
}

TEST(what_was_asked_for)
{
    struct bh_gear g = {0};
    struct bh_bundle b = plain();
    const struct bh_net net = {.lease = 17, .tenant = "acme", .may_peer = true, .bits_per_s = 1000};
    CHECK_EQ(bh_gear_node(&g, "/dev/null", "/dev/nvidia0", false, &err), BH_OK);
    CHECK_EQ(bh_gear_node(&g, "/dev/zero", "/dev/nvidia-caps/nvidia-cap12", true, &err), BH_OK);
    CHECK_EQ(bh_gear_env(&g, "HOME", "/x", &err), BH_OK);
    b.gear = &g;
    b.net = &net;
    b.hook = "/usr/libexec/bulkhead/bulkhead-oci";
    b.limits = (struct bh_bundle_limits){.memory_bytes = 1 << 30,
                                         .pids = 99,
                                         .cpu_milli = 1500,
                                         .cpus = "0-3",
                                         .mems = "1",
                                         .disk_bytes_per_s = 77,
                                         .disks = {.at = disks, .n = BH_COUNT_OF(disks)}};
    CHECK(says(&b, "{\"allow\": true, \"type\": \"c\", \"major\": 1, \"minor\": 3, \"access\": \"rw\"}"));
    CHECK(says(&b, "{\"allow\": true, \"type\": \"c\", \"major\": 1, \"minor\": 5, \"access\": \"r\"}"));
    CHECK(says(&b, "\"HOME=/x\"") && !says(&b, "\"HOME=/home\""));
    CHECK(says(&b, "\"limit\": 1073741824") && says(&b, "{\"limit\": 99}"));
    CHECK(says(&b, "\"quota\": 150000") && says(&b, "\"cpus\": \"0-3\"") && says(&b, "\"mems\": \"1\""));
    CHECK(says(&b, "{\"major\": 8, \"minor\": 16, \"rate\": 77}") &&
          says(&b, "{\"major\": 259, \"minor\": 0, \"rate\": 77}"));
    CHECK(says(&b, "\"--network\"") && says(&b, "\"--peers\"") && !says(&b, "\"--outside\""));
    CHECK(says(&b, "print('\\\"')"));
    bh_gear_fini(&g);
}

TEST(a_socket_is_shown_alone_and_not_to_be_changed)
{
    struct bh_gear g = {0};
    struct bh_bundle b = plain();
    struct bh_buf out;
    static const char wanted[] = "\"options\": [\"bind\", \"ro\", \"nosuid\", \"nodev\", \"noexec\"]";
    b.gear = &g;
    CHECK(!says(&b, BH_GEAR_PROBE));
    CHECK_EQ(bh_gear_socket(&g, "/run/bulkhead/probes/L17", BH_GEAR_PROBE, &err), BH_OK);
    CHECK_EQ(write_it(&b, &out), BH_OK);
    const char *at = strstr(bh_buf_text(&out), "\"destination\": \"/run/bulkhead/probe\"");
    CHECK(at && strstr(at, "\"source\": \"/run/bulkhead/probes/L17\""));
    const char *options = at ? strstr(at, "\"options\": ") : NULL;
    CHECK(options && bh_str_starts(options, wanted));
    bh_buf_fini(&out);
    bh_gear_fini(&g);
}

TEST(the_gates_profile_is_in_it)
{
    struct bh_bundle b = plain();
    struct bh_buf out;
    struct bh_spec spec;
    /* Without a gate there are the walls. */
    CHECK(says(&b, "seccomp") && says(&b, "\"keyctl\"") && !says(&b, "listener") &&
          !says(&b, "SCMP_ACT_NOTIFY"));
    b.listener = "/run/bulkhead/leases/17.seccomp";
    CHECK_EQ(write_it(&b, &out), BH_OK);
    CHECK_EQ(bh_spec_read(out.at, out.n, &spec, &err), BH_OK);
    CHECK(spec.seccomp.to > spec.seccomp.from && !spec.has_sys_admin && !spec.allows_all_devices);
    CHECK(strstr(out.at, "\"listenerPath\": \"/run/bulkhead/leases/17.seccomp\"") &&
          strstr(out.at, "name=L17"));
    CHECK(strstr(out.at, "SCMP_ACT_NOTIFY") && strstr(out.at, "\"keyctl\"") && strstr(out.at, "\"clone3\""));
    bh_buf_fini(&out);
}

TEST(refused)
{
    static const char bad_utf8[] = "\xff";
    const char *const broken[] = {bad_utf8};
    const char **many = bh_alloc(BH_BUNDLE_ARGS_MAX + 1, sizeof(*many));
    struct bh_net net = {.lease = 18, .tenant = "acme"};
    struct {
        struct bh_bundle b;
        int rc;
    } bad[14];
    for (size_t i = 0; i <= BH_BUNDLE_ARGS_MAX; i++)
        many[i] = "x";
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        bad[i].b = plain();
        bad[i].rc = BH_INVALID;
    }
    bad[0].b.tenant = "a/b";
    bad[1].b.n_argv = 0;
    bad[2].b.argv = many;
    bad[2].b.n_argv = BH_BUNDLE_ARGS_MAX + 1;
    bad[2].rc = BH_TOO_LARGE;
    bad[3].b.argv = broken;
    bad[3].b.n_argv = 1;
    bad[4].b.uid = BH_BUNDLE_IDS;
    bad[5].b.first_id = 1000;
    bad[6].b.first_id = UINT32_MAX - 10;
    bad[7].b.rootfs = "/a/../b";
    bad[8].b.listener = "s";
    bad[9].b.limits.cpus = "0; reboot";
    bad[10].b.limits.mems = "";
    bad[11].b.cwd = "x";
    bad[12].b.net = &net;
    bad[13].b.net = &net;
    bad[13].b.hook = "/x";
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        struct bh_buf out;
        CHECK_EQ(write_it(&bad[i].b, &out), bad[i].rc);
        CHECK(out.n == 0 && *err.msg);
        bh_buf_fini(&out);
    }
    free(many);
}

TEST(too_long)
{
    struct bh_bundle b = plain();
    struct bh_buf out;
    char *word = bh_alloc(BH_BUNDLE_MAX + 1, 1);
    memset(word, 'x', BH_BUNDLE_MAX);
    const char *const one[] = {word};
    b.argv = one;
    b.n_argv = 1;
    CHECK_EQ(write_it(&b, &out), BH_TOO_LARGE);
    bh_buf_fini(&out);
    free(word);
}

TEST_MAIN
