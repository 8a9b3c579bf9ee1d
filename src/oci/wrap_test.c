/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/wrap.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

static struct bh_err err;

static const char *bundle(int n, const char *const *words)
{
    char *argv[16];
    for (int i = 0; i < n; i++)
        memcpy(&argv[i], &words[i], sizeof(argv[i]));
    return bh_wrap_bundle(n, argv);
}
#define BUNDLE(...)                                                                 \
    bundle((int)(sizeof((const char *const[]){"x", __VA_ARGS__}) / sizeof(char *)), \
           (const char *const[]){"x", __VA_ARGS__})

TEST(which_bundle)
{
    CHECK_STR(BUNDLE("create", "--bundle", "/b", "--pid-file", "/p", "id"), "/b");
    CHECK_STR(BUNDLE("--log", "run", "--systemd-cgroup", "--root=/r", "create", "-b", "/b", "id"), "/b");
    CHECK_STR(BUNDLE("--debug", "run", "--bundle=/b", "id"), "/b");
    CHECK_STR(BUNDLE("run", "id"), ".");
    CHECK(!BUNDLE("--root", "create", "state", "id"));
    CHECK(!BUNDLE("delete", "create"));
    CHECK(!BUNDLE("--version"));
    CHECK(!BUNDLE("--log"));
    CHECK(!bundle(1, (const char *const[]){"x"}));
}

#define HOOKS(profile)                                                                                                                 \
    "\"hooks\":{\"createRuntime\":[{\"path\":\"/x\",\"args\":[\"bulkhead-oci\",\"hook\",\"--lease\",\"17\",\"--profile\",\"%s" profile \
    "\"]}]}"

TEST(the_profile_is_added)
{
    char at[BH_SCRATCH_PATH], config[BH_SCRATCH_PATH * 2], path[BH_SCRATCH_PATH + 16];
    struct stat st;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(path, sizeof(path), "%s/config.json", at);
    /* without a lease nothing is touched */
    CHECK(bh_scratch_put(at, "config.json", "{\"linux\": {} }"));
    CHECK_EQ(bh_wrap_bundle_patch(at, &err), BH_OK);
    char *text = bh_scratch_get(at, "config.json");
    CHECK_STR(text, "{\"linux\": {} }");
    free(text);
    (void)snprintf(config, sizeof(config), "{\"linux\":{}," HOOKS("/p") "}", at);
    CHECK(bh_scratch_put(at, "config.json", config) && chmod(path, 0640) == 0);
    CHECK_EQ(bh_wrap_bundle_patch(at, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "has it ended?"));
    CHECK(bh_scratch_put(at, "p", "{\"listenerPath\":\"/s\"}\n"));
    CHECK_EQ(bh_wrap_bundle_patch(at, &err), BH_OK);
    CHECK_EQ(bh_wrap_bundle_patch(at, &err), BH_OK); /* again is the same */
    text = bh_scratch_get(at, "config.json");
    CHECK(text && strstr(text, "{\"linux\":{\"seccomp\": {\"listenerPath\":\"/s\"}},") == text);
    free(text);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    /* a profile that is none spoils nothing */
    const char *const bad[] = {"", "{", "x", "{}, \"process\": {}"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        CHECK(bh_scratch_put(at, "p", bad[i]));
        CHECK_EQ(bh_wrap_bundle_patch(at, &err), BH_INVALID);
        text = bh_scratch_get(at, "config.json");
        CHECK(text && strstr(text, "listenerPath"));
        free(text);
    }
    CHECK_EQ(bh_wrap_bundle_patch("/no-such-bundle", &err), BH_NOT_FOUND);
    bh_scratch_remove(at);
}

TEST(a_runtime_that_is_not_there)
{
    char name[] = "x";
    char *argv[] = {name, NULL};
    CHECK_EQ(bh_wrap_become("/no-such-runtime", argv, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "/no-such-runtime"));
    CHECK(setenv("PATH", "/no-such-folder", 1) == 0);
    CHECK_EQ(bh_wrap_become(NULL, argv, &err), BH_NOT_FOUND);
}

TEST_MAIN
