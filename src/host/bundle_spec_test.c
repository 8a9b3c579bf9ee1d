/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_spec.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_err err;

static int state(const char *text, struct bh_spec_state *ret)
{
    return bh_spec_read_state(text, strlen(text), ret, &err);
}

TEST(a_state)
{
    struct bh_spec_state s;
    CHECK_EQ(state("{\"ociVersion\":\"1.0.2\",\"id\":\"web\",\"status\":\"creating\",\"pid\":4711,"
                   "\"bundle\":\"/b\",\"annotations\":{\"a\":\"b\"}}",
                   &s),
             BH_OK);
    CHECK(s.pid == 4711);
    CHECK_STR(s.id, "web");
    CHECK_STR(s.bundle, "/b");
    CHECK_EQ(state("{\"id\":\"web\",\"bundle\":\"/b\"}", &s), BH_OK);
    CHECK_EQ(s.pid, 0);
    const char *const bad[] = {"",
                               "[]",
                               "{}",
                               "{\"id\":\"web\"}",
                               "{\"id\":\"web\",\"bundle\":\"b\"}",
                               "{\"bundle\":\"/b\"}",
                               "{\"id\":\"w\",\"bundle\":\"/b\",\"pid\":-1}",
                               "{\"id\":\"w\",\"bundle\":\"/b\",\"pid\":\"1\"}",
                               "{\"id\":\"w\",\"bundle\":\"/b\",\"pid\":99999999999}",
                               "{\"id\":\"w\",\"bundle\":\"/b\",\"Bundle\":\"/c\"}",
                               "{\"id\":\"w\",\"bundle\":\"/b\"} x",
                               "{\"id\":\"w\",\"bundle\":\"/a\\u0000b\"}"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK_EQ(state(bad[i], &s), BH_INVALID);
}

static int read_spec(const char *text, struct bh_spec *ret)
{
    return bh_spec_read(text, strlen(text), ret, &err);
}

#define HOOK(lease, profile)                                                    \
    "{\"path\":\"/x\",\"args\":[\"bulkhead-oci\",\"hook\",\"--lease\",\"" lease \
    "\",\"--profile\",\"" profile "\"]}"

TEST(what_matters_of_a_config)
{
    struct bh_spec s;
    CHECK_EQ(read_spec("{\"linux\":{\"seccomp\": {\"a\":1} }}", &s), BH_OK);
    CHECK_EQ(s.seccomp.to - s.seccomp.from, 7);
    CHECK(!s.has_sys_admin && !s.allows_all_devices && !*s.profile);
    CHECK_EQ(
        read_spec("{\"process\":{\"capabilities\":{\"bounding\":[\"CAP_KILL\",\"CAP_SYS_ADMIN\"]}}}", &s),
        BH_OK);
    CHECK(s.has_sys_admin && s.linux_at == 0);
    CHECK_EQ(
        read_spec(
            "{\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"access\":\"m\"},"
            "{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":0,\"access\":\"rw\"}]}}}",
            &s),
        BH_OK);
    CHECK(!s.allows_all_devices);
    const char *const all[] = {"{\"allow\":true,\"access\":\"rwm\"}",
                               "{\"allow\":true,\"type\":\"c\",\"major\":-1,\"access\":\"rw\"}",
                               "{\"allow\":true,\"type\":\"a\",\"major\":null}"};
    for (size_t i = 0; i < BH_COUNT_OF(all); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "{\"linux\":{\"resources\":{\"devices\":[%s]}}}", all[i]);
        CHECK_EQ(read_spec(text, &s), BH_OK);
        CHECK(s.allows_all_devices);
    }
}

TEST(the_profile_of_a_lease)
{
    struct bh_spec s;
    CHECK_EQ(
        read_spec(
            "{\"hooks\":{\"createRuntime\":[{\"path\":\"/other\",\"args\":[\"other\",\"hook\",\"--profile\",\"/x\"]}," HOOK(
                "17", "/p17") "]}}",
            &s),
        BH_OK);
    CHECK_STR(s.profile, "/p17");
    CHECK_EQ(read_spec("{\"hooks\":{\"createRuntime\":[" HOOK("17", "/p17") "," HOOK("17", "/p17") "]}}", &s),
             BH_OK);
    CHECK_EQ(read_spec("{\"hooks\":{\"createRuntime\":[" HOOK("17", "/p17") "," HOOK("18", "/p18") "]}}", &s),
             BH_INVALID);
    CHECK(strstr(err.msg, "two leases"));
    CHECK_EQ(read_spec("{\"hooks\":{\"poststop\":[" HOOK("17", "/p17") "]}}", &s), BH_OK);
    CHECK_STR(s.profile, "");
}

TEST(what_cannot_be_trusted)
{
    struct bh_spec s;
    const char *const bad[] = {"",
                               "[]",
                               "{",
                               "{\"linux\":{}, \"linux\":{\"seccomp\":{}}}",
                               "{\"Linux\":{}}",
                               "{\"linux\":{\"Seccomp\":{}}}",
                               "{\"linux\":{\"\\u017feccomp\":{}}}",
                               "{\"linux\":{}} {}"};
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK_EQ(read_spec(bad[i], &s), BH_INVALID);
}

static bool put(const char *text, const char *profile, const char *want)
{
    struct bh_spec s;
    struct bh_buf out;
    bh_buf_init(&out, 4096);
    const bool ok = read_spec(text, &s) == BH_OK &&
                    bh_spec_put_seccomp(text, strlen(text), &s, profile, &out, &err) == BH_OK &&
                    strcmp(bh_buf_text(&out), want) == 0;
    if (!ok)
        printf("# got %s\n", bh_buf_text(&out));
    bh_buf_fini(&out);
    return ok;
}

TEST(a_profile_is_put_in)
{
    struct bh_spec s;
    struct bh_buf out;
    CHECK(put("{\"linux\":{\"a\":1}}", "{\"p\":2}\n", "{\"linux\":{\"seccomp\": {\"p\":2}, \"a\":1}}"));
    CHECK(put("{\"linux\":{ }}", "{}", "{\"linux\":{\"seccomp\": {} }}"));
    CHECK(put("{\"linux\":{\"a\":1,\"seccomp\": {\"old\":[1]} ,\"b\":2}}", "{\"p\":2}",
              "{\"linux\":{\"a\":1,\"seccomp\": {\"p\":2} ,\"b\":2}}"));
    CHECK(put("{\"linux\":{\"seccomp\":null}}", "{}", "{\"linux\":{\"seccomp\":{}}}"));
    CHECK_EQ(read_spec("{}", &s), BH_OK);
    bh_buf_init(&out, 4096);
    CHECK_EQ(bh_spec_put_seccomp("{}", 2, &s, "{}", &out, &err), BH_INVALID);
    bh_buf_fini(&out);
}

TEST_MAIN
