/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_test.c - a spec and an end record that were written are read as they were, and what makes no sense is refused. */
#include "wire/keeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

#include <stdio.h>

static const char *const argv[] = {"sh", "-c", "echo \"\xc3\xa4\"\n", NULL};
static const char *const env[] = {"PATH=/bin", "EMPTY=", "TWO=a=b", NULL};
static const struct bh_keeper_device devices[] = {{195, 0}, {195, 255}, {235, UINT32_MAX}};
static const uint32_t groups[] = {7, 4294967295u};

static struct bh_keeper_spec good(void)
{
    return (struct bh_keeper_spec){
        .lease = 17,
        .run_dir = "/run/bulkhead/leases",
        .cgroup = "bulkhead/L17",
        .grace_ms = 5000,
        .output_bytes = 1 << 20,
        .attach = true,
        .gate = true,
        .cap_bytes = UINT64_C(10) << 30,
        .tick_ms = 20,
        .view = BH_VIEW_PRIVATE,
        .rdma = true,
        .share = {.weight = 100, .cap_permille = 500, .floor_permille = 100, .latency = 1, .name = "acme"},
        .uid = 1000,
        .gid = 1001,
        .groups = groups,
        .n_groups = 2,
        .cwd = "/srv",
        .argv = argv,
        .env = env,
        .limits = {.memory_bytes = 1 << 30,
                   .pids = 99,
                   .cpu_milli = 1500,
                   .disk_bytes_per_s = 70000,
                   .cpus = "0-3",
                   .nodes = "0",
                   .devices_held = true,
                   .devices = devices,
                   .n_devices = 3},
    };
}

static const char *const runtime[] = {"runc", "--root", "/run/x", NULL};
static struct bh_keeper_spec container(void)
{
    return (struct bh_keeper_spec){.lease = 18,
                                   .tier = BH_KEEPER_CONTAINER,
                                   .run_dir = "/run/bulkhead/leases",
                                   .cgroup = "bulkhead/L18",
                                   .gate = true,
                                   .cap_bytes = 1,
                                   .runtime = runtime,
                                   .bundle = "/var/lib/b",
                                   .container = "L18",
                                   .listener = "/run/l.sock",
                                   .share = {.weight = 100, .name = "L18"},
                                   .probe = "/run/probes/L18"};
}

static struct bh_keeper_spec external(void)
{
    return (struct bh_keeper_spec){.lease = 19,
                                   .tier = BH_KEEPER_EXTERNAL,
                                   .run_dir = "/run/bulkhead/leases",
                                   .cgroup = "bulkhead/L19",
                                   .gate = true,
                                   .cap_bytes = 1,
                                   .listener = "/run/l.sock",
                                   .limits = {.memory_bytes = 5, .devices_held = true}};
}

static int there_and_back(const struct bh_keeper_spec *s, struct bh_arena *arena, struct bh_keeper_spec *ret,
                          struct bh_buf *text)
{
    struct bh_err err = {0};
    bh_buf_init(text, BH_KEEPER_SPEC_MAX);
    int rc = bh_keeper_spec_write(s, text, &err);
    if (rc == BH_OK)
        rc = bh_keeper_spec_read(bh_buf_text(text), text->n, arena, ret, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    return rc;
}

static bool same_list(const char *const *a, const char *const *b)
{
    for (; *a && *b; a++, b++)
        if (!bh_str_eq(*a, *b))
            return false;
    return !*a && !*b;
}

TEST(a_process_there_and_back)
{
    const struct bh_keeper_spec s = good();
    struct bh_keeper_spec r;
    struct bh_arena arena = {0};
    struct bh_buf text, again;
    CHECK_EQ(there_and_back(&s, &arena, &r, &text), BH_OK);
    CHECK_EQ(r.lease, 17);
    CHECK_EQ(r.tier, BH_KEEPER_PROCESS);
    CHECK(same_list(r.argv, argv) && same_list(r.env, env));
    CHECK_EQ(r.limits.n_devices, 3);
    CHECK_EQ(r.limits.devices[2].minor, UINT32_MAX);
    CHECK_EQ(r.groups[1], 4294967295u);
    CHECK_STR(r.share.name, "acme");
    CHECK(r.gate && r.attach && r.limits.devices_held);
    CHECK_EQ(r.view, BH_VIEW_PRIVATE);
    CHECK(r.rdma);
    /* Everything else, as its text. */
    CHECK_EQ(there_and_back(&r, &arena, &r, &again), BH_OK);
    CHECK_STR(bh_buf_text(&again), bh_buf_text(&text));
    bh_buf_fini(&text);
    bh_buf_fini(&again);
    bh_arena_fini(&arena);
}

TEST(a_container_there_and_back)
{
    const struct bh_keeper_spec s = container();
    struct bh_keeper_spec r;
    struct bh_arena arena = {0};
    struct bh_buf text;
    CHECK_EQ(there_and_back(&s, &arena, &r, &text), BH_OK);
    CHECK_EQ(r.tier, BH_KEEPER_CONTAINER);
    CHECK(same_list(r.runtime, runtime));
    CHECK_STR(r.bundle, "/var/lib/b");
    CHECK_STR(r.container, "L18");
    CHECK_STR(r.listener, "/run/l.sock");
    CHECK_STR(r.probe, "/run/probes/L18");
    bh_buf_fini(&text);
    bh_arena_fini(&arena);
}

static bool is_refused(struct bh_keeper_spec s)
{
    struct bh_buf text;
    bh_buf_init(&text, BH_KEEPER_SPEC_MAX);
    const int rc = bh_keeper_spec_write(&s, &text, NULL);
    bh_buf_fini(&text);
    return rc == BH_INVALID;
}
#define REFUSED(from, ...)                \
    do {                                  \
        struct bh_keeper_spec s = from(); \
        __VA_ARGS__;                      \
        CHECK(is_refused(s));             \
    } while (0)

TEST(what_makes_no_sense_is_not_written)
{
    static const char *const nothing[] = {NULL}, *const bad_env[] = {"A=1", "B", NULL},
                             *const no_name[] = {"=1", NULL}, *const latin[] = {"\xe4", NULL};
    REFUSED(good, s.lease = 0);
    REFUSED(good, s.run_dir = "run");
    REFUSED(good, s.cgroup = NULL);
    REFUSED(good, s.argv = nothing);
    REFUSED(good, s.argv = NULL);
    REFUSED(good, s.cwd = "srv");
    REFUSED(good, s.env = bad_env);
    REFUSED(good, s.env = no_name);
    REFUSED(good, s.argv = latin);
    REFUSED(good, s.user = "acme");
    REFUSED(good, s.gate = false);
    REFUSED(good, s.bundle = "/b");
    REFUSED(good, s.probe = "/run/probes/L17");
    REFUSED(good, s.view = BH_VIEW_PRIVATE + 1);
    REFUSED(external, s.gate = false);
    REFUSED(external, s.listener = "l");
    REFUSED(external, s.probe = "/run/probes/L19"); /* without a share */
    REFUSED(external, s.runtime = runtime);
    REFUSED(external, s.argv = argv);
    REFUSED(external, s.attach = true);
    REFUSED(container, s.bundle = "b");
    REFUSED(container, s.runtime = nothing);
    REFUSED(container, s.container = "-v");
    REFUSED(container, s.listener = NULL);
    REFUSED(container, s.probe = "probes/L18");
    REFUSED(container, s.share.weight = 0);
    REFUSED(container, s.argv = argv);
    REFUSED(container, s.limits.pids = 1);
    REFUSED(container, s.limits.disk_bytes_per_s = 1);
    struct bh_keeper_spec none = container();
    none.gate = false;
    none.cap_bytes = 0;
    none.share.weight = 0;
    none.listener = NULL;
    none.probe = NULL;
    CHECK(!is_refused(none));
}

TEST(what_is_not_known_is_not_read)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"lease\": 1, \"lease\": 1}",
        "{\"lease\": 1, \"what\": 1}",
        "{\"version\": 2}",
        "{\"uid\": 4294967296}",
        "{\"gate\": 1}",
        "{\"tier\": \"vm\"}",
        "{\"argv\": [1]}",
        "{\"limits\": {\"devices\": [1]}}",
        "{\"limits\": {\"version\": 1}}",
        "{\"share\": {\"name\": \"0123456789012345678901234567890123456789012345678901234567890123\"}}",
        "{\"lease\": 1, \"version\": 1} x",
        "{\"lease\": 1, \"runDir\": \"/r\", \"cgroup\": \"c\", \"argv\": [\"a\"]}", /* no version */
    };
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++) {
        struct bh_arena arena = {0};
        struct bh_keeper_spec r;
        CHECK_EQ(bh_keeper_spec_read(texts[i], strlen(texts[i]), &arena, &r, NULL), BH_INVALID);
        bh_arena_fini(&arena);
    }
}

TEST(too_long)
{
    struct bh_keeper_spec s = good(), r;
    struct bh_arena arena = {0};
    struct bh_buf text;
    BH_AUTOFREE char *word = bh_alloc(1, BH_KEEPER_SPEC_MAX + 1);
    memset(word, ' ', BH_KEEPER_SPEC_MAX);
    const char *const long_argv[] = {word, NULL};
    s.argv = long_argv;
    bh_buf_init(&text, BH_KEEPER_SPEC_MAX);
    CHECK_EQ(bh_keeper_spec_write(&s, &text, NULL), BH_TOO_LARGE);
    bh_buf_fini(&text);
    CHECK_EQ(bh_keeper_spec_read(word, BH_KEEPER_SPEC_MAX + 1, &arena, &r, NULL), BH_TOO_LARGE);
    bh_arena_fini(&arena);
}

TEST(an_end_there_and_back)
{
    const struct bh_keeper_end e = {.lease = 5,
                                    .how = BH_KEEPER_NOT_BEGUN,
                                    .status = 127,
                                    .signal = 9,
                                    .code = BH_NOT_FOUND,
                                    .stopped = true,
                                    .started_ms = 1,
                                    .ended_ms = 1764000000000,
                                    .counted = true,
                                    .peak_bytes = UINT64_MAX,
                                    .refused = 2,
                                    .denied = 3,
                                    .killed = 4,
                                    .out_of_memory = 5,
                                    .output_lost_bytes = 6,
                                    .why = "'nothing': no such file"};
    struct bh_keeper_end r;
    struct bh_buf text;
    bh_buf_init(&text, 1 << 16);
    bh_keeper_end_write(&e, &text);
    CHECK_EQ(bh_keeper_end_read(bh_buf_text(&text), text.n, &r, NULL), BH_OK);
    CHECK_EQ(r.how, e.how);
    CHECK_EQ(r.status, e.status);
    CHECK_EQ(r.signal, e.signal);
    CHECK_EQ(r.code, e.code);
    CHECK(r.stopped && r.counted);
    CHECK_EQ(r.ended_ms, e.ended_ms);
    CHECK_EQ(r.peak_bytes, e.peak_bytes);
    CHECK(r.started_ms == 1 && r.refused == 2 && r.denied == 3 && r.killed == 4 && r.out_of_memory == 5 &&
          r.output_lost_bytes == 6);
    CHECK_STR(r.why, e.why);
    for (size_t n = 0; n + 1 < text.n; n++) /* without the newline it is whole */
        CHECK_EQ(bh_keeper_end_read(bh_buf_text(&text), n, &r, NULL), BH_INVALID);
    bh_buf_fini(&text);
}

TEST_MAIN
