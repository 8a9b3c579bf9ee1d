/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/hook.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"

static struct bh_err err;

static int options(struct bh_hook *ret, int n, const char *const *words)
{
    char *argv[16];
    for (int i = 0; i < n; i++)
        memcpy(&argv[i], &words[i], sizeof(argv[i]));
    return bh_hook_options(n, argv, ret, &err);
}
#define OPTIONS(ret, ...)                                                            \
    options(ret, (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), \
            (const char *const[]){__VA_ARGS__})

TEST(options_of_the_hook)
{
    struct bh_hook h;
    CHECK_EQ(OPTIONS(&h, "--lease", "17", "--profile", "/p"), BH_OK);
    CHECK(h.lease == 17 && !h.net.tenant);
    CHECK_EQ(OPTIONS(&h, "--lease", "17", "--network", "acme", "--rate", "9", "--peers", "--outside"), BH_OK);
    CHECK(h.net.lease == 17 && h.net.bits_per_s == 9 && h.net.may_peer && h.net.may_go_outside && !h.profile);
    CHECK_EQ(OPTIONS(&h, "--lease", "17"), BH_USAGE);
    CHECK_EQ(OPTIONS(&h, "--profile", "/p"), BH_USAGE);
    CHECK_EQ(OPTIONS(&h, "--lease", "17", "--profile", "p"), BH_USAGE);
    CHECK_EQ(OPTIONS(&h, "--lease", "17", "--network", "a/b"), BH_USAGE);
    CHECK_EQ(OPTIONS(&h, "--lease"), BH_USAGE);
    CHECK_EQ(OPTIONS(&h, "--lease", "17", "--profile", "/p", "--unheard-of"), BH_USAGE);
    CHECK(OPTIONS(&h, "--lease", "x", "--profile", "/p") < 0);
}

static char at[BH_SCRATCH_PATH], profile[BH_SCRATCH_PATH + 16];

static int judge(const char *config)
{
    const struct bh_hook h = {.lease = 17, .profile = profile};
    return bh_scratch_put(at, "config.json", config) ? bh_hook_judge(&h, at, &err) : BH_SYSTEM;
}

#define PROFILE "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"listenerPath\":\"/s\"}"

TEST(verdicts)
{
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(profile, sizeof(profile), "%s/p", at);
    CHECK_EQ(judge("{\"linux\":{\"seccomp\":" PROFILE "}}"), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "has it ended?"));
    CHECK(bh_scratch_put(at, "p", PROFILE "\n"));
    CHECK_EQ(judge("{\"linux\":{\"seccomp\":" PROFILE "}}"), BH_OK);
    CHECK_EQ(judge("{\"linux\":{}}"), BH_REFUSED);
    CHECK(strstr(err.msg, "no seccomp profile") && strstr(err.msg, profile));
    CHECK_EQ(judge("{\"linux\":{\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\"}}}"), BH_REFUSED);
    CHECK(strstr(err.msg, "it lacks 'listenerPath /s'") && strstr(err.msg, profile));
    CHECK_EQ(
        judge(
            "{\"process\":{\"capabilities\":{\"bounding\":[\"CAP_SYS_ADMIN\"]}},\"linux\":{\"seccomp\":" PROFILE
            "}}"),
        BH_REFUSED);
    CHECK_EQ(
        judge(
            "{\"linux\":{\"resources\":{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]},\"seccomp\":" PROFILE
            "}}"),
        BH_REFUSED);
    CHECK_EQ(judge("{\"linux\":"), BH_INVALID);
    bh_scratch_remove(at);
}

static int run_on(const char *state)
{
    const struct bh_hook h = {.lease = 17, .profile = profile};
    FILE *f = tmpfile();
    int rc = BH_SYSTEM;
    if (f && fputs(state, f) >= 0 && fflush(f) == 0 && lseek(fileno(f), 0, SEEK_SET) == 0)
        rc = bh_hook_run(&h, fileno(f), &err);
    if (f)
        (void)fclose(f);
    return rc;
}

TEST(a_state_on_standard_input)
{
    char state[BH_SCRATCH_PATH + 64];
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(profile, sizeof(profile), "%s/p", at);
    CHECK(bh_scratch_put(at, "p", PROFILE) &&
          bh_scratch_put(at, "config.json", "{\"linux\":{\"seccomp\":" PROFILE "}}"));
    (void)snprintf(state, sizeof(state), "{\"id\":\"web\",\"bundle\":\"%s\",\"pid\":1}", at);
    CHECK_EQ(run_on(state), BH_OK);
    CHECK(bh_scratch_put(at, "config.json", "{\"linux\":{}}"));
    CHECK_EQ(run_on(state), BH_REFUSED);
    CHECK(strstr(err.msg, "container web of lease L17 is not started: ") && !strchr(err.msg, '\n'));
    CHECK_EQ(run_on(""), BH_INVALID);
    CHECK_EQ(run_on("{\"id\":\"web\",\"bundle\":\"/no-such-bundle\"}"), BH_NOT_FOUND);
    char *big = calloc(1, (1 << 20) + 100);
    CHECK(big);
    memset(big, ' ', (1 << 20) + 50);
    CHECK_EQ(run_on(big), BH_TOO_LARGE);
    CHECK(strstr(err.msg, "container ? of lease L17"));
    free(big);
    bh_scratch_remove(at);
}

TEST_MAIN
