/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_spec.c - a runtime's state, and the few places of a config.json that a lease depends on. */
#include "host/bundle_spec.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/bundle_read.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- the state ---- */

static void state_pid(struct bh_read *r)
{
    struct bh_spec_state *s = r->into;
    char word[16];
    const char *text;
    size_t n;
    uint64_t pid = 0;
    bh_read_raw(r, &text, &n);
    (void)snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), text);
    if (n >= sizeof(word) || bh_uint_parse(word, INT_MAX, &pid, NULL) < 0)
        r->wrong = "its pid is no pid";
    s->pid = (uint32_t)pid;
}
static void state_id(struct bh_read *r)
{
    struct bh_spec_state *s = r->into;
    if (!bh_read_text(r, s->id, sizeof(s->id)))
        r->wrong = "its id is no text of up to 255 bytes";
}
static void state_bundle(struct bh_read *r)
{
    struct bh_spec_state *s = r->into;
    if (!bh_read_text(r, s->bundle, sizeof(s->bundle)))
        r->wrong = "its bundle is no text of up to 4095 bytes";
}

int bh_spec_read_state(const char *text, size_t n, struct bh_spec_state *ret, struct bh_err *err)
{
    static const struct bh_read_member members[] = {
        {"id", state_id}, {"pid", state_pid}, {"bundle", state_bundle}};
    struct bh_read r = {.into = ret};
    *ret = (struct bh_spec_state){0};
    bh_json_read_init(&r.json, text, n);
    if (bh_json_read_peek(&r.json) != '{')
        return bh_fail(err, BH_INVALID, "the container's state is no JSON object");
    bh_read_object(&r, members, BH_COUNT_OF(members), NULL);
    const char *wrong = bh_read_end(&r);
    if (!wrong && !*ret->id)
        wrong = "it has no id";
    if (!wrong && ret->bundle[0] != '/')
        wrong = "it has no absolute path of a bundle";
    return wrong ? bh_fail(err, BH_INVALID, "the container's state cannot be used: %s", wrong) : BH_OK;
}

/* ---- config.json ---- */

/* What is known while it is read. */
struct reading {
    struct bh_spec *ret;
    struct {
        bool allow, has_major, only_mknod;
    } rule;
    struct {
        unsigned n;         /* words so far */
        bool is_ours;       /* its first two are */
        bool takes_profile; /* the next word is the profile's path */
    } hook;
};

static void capability(struct bh_read *r)
{
    struct reading *x = r->into;
    char name[BH_READ_KEY_MAX];
    if (bh_read_text(r, name, sizeof(name)) && bh_str_eq_nocase(name, "CAP_SYS_ADMIN"))
        x->ret->has_sys_admin = true;
}
static void capabilities(struct bh_read *r)
{
    bh_read_list(r, capability);
}
static void process_capabilities(struct bh_read *r)
{
    static const struct bh_read_member sets[] = {
        {"bounding", capabilities},    {"effective", capabilities}, {"permitted", capabilities},
        {"inheritable", capabilities}, {"ambient", capabilities},
    };
    bh_read_object(r, sets, BH_COUNT_OF(sets), NULL);
}
static void process(struct bh_read *r)
{
    static const struct bh_read_member members[] = {{"capabilities", process_capabilities}};
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
}

static void device_allow(struct bh_read *r)
{
    struct reading *x = r->into;
    x->rule.allow = bh_json_read_peek(&r->json) == 't';
    (void)bh_json_read_skip(&r->json);
}
static void device_major(struct bh_read *r)
{
    struct reading *x = r->into;
    const char *text;
    size_t n;
    bh_read_raw(r, &text, &n);
    x->rule.has_major = n > 0 && bh_is_digit(text[0]); /* -1 and null are all of them */
}
static void device_access(struct bh_read *r)
{
    struct reading *x = r->into;
    char access[BH_READ_KEY_MAX];
    x->rule.only_mknod = bh_read_text(r, access, sizeof(access)) && bh_str_eq(access, "m");
}
static void device(struct bh_read *r)
{
    static const struct bh_read_member members[] = {
        {"allow", device_allow}, {"major", device_major}, {"access", device_access}};
    struct reading *x = r->into;
    memset(&x->rule, 0, sizeof(x->rule));
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
    if (x->rule.allow && !x->rule.has_major && !x->rule.only_mknod)
        x->ret->allows_all_devices = true;
}
static void devices(struct bh_read *r)
{
    bh_read_list(r, device);
}
static void resources(struct bh_read *r)
{
    static const struct bh_read_member members[] = {{"devices", devices}};
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
}

static void seccomp(struct bh_read *r)
{
    struct reading *x = r->into;
    const char *text;
    size_t n;
    bh_read_raw(r, &text, &n);
    x->ret->seccomp =
        (struct bh_spec_part){(size_t)(text - r->json.start), (size_t)(text - r->json.start) + n};
}
static void on_linux(struct bh_read *r)
{
    static const struct bh_read_member members[] = {{"seccomp", seccomp}, {"resources", resources}};
    struct reading *x = r->into;
    if (bh_json_read_peek(&r->json) == '{') {
        struct bh_json_reader ahead = r->json;
        x->ret->linux_at = (size_t)(r->json.at - r->json.start) + 1;
        x->ret->linux_is_empty = bh_json_read_open(&ahead, '{') && bh_json_read_peek(&ahead) == '}';
    }
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
}

static void hook_word(struct bh_read *r)
{
    struct reading *x = r->into;
    char word[BH_SPEC_TEXT_MAX];
    const bool is_text = bh_read_text(r, word, sizeof(word));
    const unsigned i = x->hook.n++;
    if (i < 2) {
        x->hook.is_ours = (i == 0 || x->hook.is_ours) && bh_str_eq(word, i == 0 ? "bulkhead-oci" : "hook");
        return;
    }
    if (x->hook.is_ours && x->hook.takes_profile) {
        if (!is_text || (*x->ret->profile && !bh_str_eq(x->ret->profile, word)))
            r->wrong = "it has the devices of two leases, and one container can have one gate";
        else
            memcpy(x->ret->profile, word, strlen(word) + 1);
    }
    x->hook.takes_profile = bh_str_eq(word, "--profile");
}
static void hook_args(struct bh_read *r)
{
    struct reading *x = r->into;
    memset(&x->hook, 0, sizeof(x->hook));
    bh_read_list(r, hook_word);
}
static void hook(struct bh_read *r)
{
    static const struct bh_read_member members[] = {{"args", hook_args}};
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
}
static void hooks_of_runtime(struct bh_read *r)
{
    bh_read_list(r, hook);
}
static void hooks(struct bh_read *r)
{
    static const struct bh_read_member members[] = {{"createRuntime", hooks_of_runtime}};
    bh_read_object(r, members, BH_COUNT_OF(members), NULL);
}

int bh_spec_read(const char *text, size_t n, struct bh_spec *ret, struct bh_err *err)
{
    static const struct bh_read_member members[] = {
        {"process", process}, {"linux", on_linux}, {"hooks", hooks}};
    struct reading x = {.ret = ret};
    struct bh_read r = {.into = &x};
    *ret = (struct bh_spec){0};
    if (n > BH_SPEC_MAX)
        return bh_fail(err, BH_TOO_LARGE, "the container's config.json is longer than %d bytes", BH_SPEC_MAX);
    bh_json_read_init(&r.json, text, n);
    if (bh_json_read_peek(&r.json) != '{')
        return bh_fail(err, BH_INVALID, "the container's config.json is no JSON object");
    bh_read_object(&r, members, BH_COUNT_OF(members), NULL);
    const char *wrong = bh_read_end(&r);
    return wrong ? bh_fail(err, BH_INVALID, "the container's config.json cannot be used: %s", wrong) : BH_OK;
}

/* One object and nothing else: more would become members of what it is put into. */
static bool is_object(const char *text, size_t n)
{
    struct bh_json_reader r;
    bh_json_read_init(&r, text, n);
    return bh_json_read_peek(&r) == '{' && bh_json_read_skip(&r) && bh_json_read_end(&r);
}

int bh_spec_put_seccomp(const char *text, size_t n, const struct bh_spec *spec, const char *profile,
                        struct bh_buf *out, struct bh_err *err)
{
    const bool is_there = spec->seccomp.to > spec->seccomp.from;
    const size_t from = is_there ? spec->seccomp.from : spec->linux_at;
    const size_t to = is_there ? spec->seccomp.to : spec->linux_at;
    if (from == 0)
        return bh_fail(err, BH_INVALID, "the container's config.json has no linux object");
    size_t n_profile = strlen(profile);
    while (n_profile > 0 && bh_is_space(profile[n_profile - 1]))
        n_profile--;
    if (!is_object(profile, n_profile))
        return bh_fail(err, BH_INVALID, "the lease's seccomp profile is no JSON object");
    bh_buf_add(out, text, from);
    if (!is_there)
        bh_buf_str(out, "\"seccomp\": ");
    bh_buf_add(out, profile, n_profile);
    if (!is_there && !spec->linux_is_empty)
        bh_buf_str(out, ", ");
    bh_buf_add(out, text + to, n - to);
    return out->full ? bh_fail(err, BH_TOO_LARGE, "the container's config.json would be too long") : BH_OK;
}
