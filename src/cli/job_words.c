/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_words.c - reads what somebody asks for.
 *
 * A job takes the caller's environment along, as a command of the shell would, but for what says where this machine's GPUs or
 * this daemon are: that is for the lease to say.
 */
#include "cli/job_words.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/share.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { ENV_MAX = 1024, GPUS_MAX = 4096, BODY_MAX = 2 << 20 }; /* as the API has them */

const char *const bh_job_tiers[] = {"process", "container", "sandbox", "vm", "cvm", NULL};
const char *const bh_job_priorities[] = {"low", "normal", "high", "critical", NULL};
const char *const bh_job_cans[] = {"pause", "suspend", "requeue", NULL};

static bool is_utf8(const char *s)
{
    for (size_t n; *s; s += n)
        if (!(n = bh_utf8_len((const unsigned char *)s)))
            return false;
    return true;
}

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = list; s; s = strchr(s, ','), s = s ? s + 1 : NULL)
        if (strncmp(s, word, n) == 0 && (s[n] == ',' || s[n] == '\0'))
            return true;
    return false;
}

/* ---- the environment ---- */

static bool is_taken(const char *variable, const char *wanted)
{
    static const char *const not[] = {"CUDA_VISIBLE_DEVICES=",
                                      "NVIDIA_VISIBLE_DEVICES=",
                                      "BULKHEAD_",
                                      "CUDA_MPS_",
                                      "SHLVL=",
                                      "OLDPWD=",
                                      "_="};
    char name[256];
    const size_t n = strcspn(variable, "=");
    if (!n || variable[n] != '=' || !is_utf8(variable))
        return false;
    if (wanted) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)(n < 255 ? n : 255), variable);
        return has_word(wanted, name);
    }
    for (size_t i = 0; i < BH_COUNT_OF(not); i++)
        if (bh_str_starts(variable, not[i]))
            return false;
    return true;
}

static int write_env(struct bh_json *j, char *const *env, const char *wanted, struct bh_err *err)
{
    size_t n = 0;
    bh_json_key(j, "env");
    bh_json_open(j, '[');
    for (size_t i = 0; env && env[i]; i++)
        if (is_taken(env[i], wanted)) {
            bh_json_str(j, env[i]);
            n++;
        }
    bh_json_close(j, ']');
    return n <= ENV_MAX ? BH_OK
                        : bh_fail(err, BH_TOO_LARGE,
                                  "the environment has %zu variables, and a job takes %d; --env names those "
                                  "it needs",
                                  n, ENV_MAX);
}

/* ---- amounts ---- */

static int write_gpus(struct bh_json *j, const struct bh_job_words *w, struct bh_err *err)
{
    uint64_t milli = 1000;
    uint32_t permille = 1000;
    const int rc = w->gpus ? bh_count_parse(w->gpus, &milli, err) : BH_OK;
    if (rc < 0)
        return bh_wrap(err, BH_USAGE, "--gpus");
    if (!milli || milli > (uint64_t)GPUS_MAX * 1000 || (milli > 1000 && milli % 1000))
        return bh_fail(err, BH_USAGE, "--gpus: '%.40s' is neither a number of GPUs nor a part of one",
                       w->gpus);
    if (w->cap && milli < 1000)
        return bh_fail(err, BH_USAGE, "--cap: --gpus %.40s is a part of a GPU already", w->gpus);
    if (w->cap && bh_share_part(w->cap, &permille, err) < 0)
        return bh_wrap(err, BH_USAGE, "--cap");
    if (milli >= 1000)
        bh_json_key_u64(j, "gpus", milli / 1000);
    if (milli < 1000 || w->cap)
        bh_json_key_u64(j, "milli", milli < 1000 ? milli : permille);
    return BH_OK;
}

static int write_memory(struct bh_json *j, const char *memory, struct bh_err *err)
{
    uint64_t bytes;
    if (!memory)
        return BH_OK;
    if (bh_size_parse(memory, &bytes, err) < 0)
        return bh_wrap(err, BH_USAGE, "--memory");
    if (bytes < BH_MIB)
        return bh_fail(err, BH_USAGE, "--memory: '%.40s' is less than 1MiB", memory);
    bh_json_key_u64(j, "memory_mib", bytes / BH_MIB);
    return BH_OK;
}

static int write_duration(struct bh_json *j, const char *duration, struct bh_err *err)
{
    uint64_t ms;
    if (!duration)
        return BH_OK;
    if (bh_duration_parse(duration, &ms, err) < 0)
        return bh_wrap(err, BH_USAGE, "--duration");
    bh_json_key_u64(j, "duration_ms", ms);
    return BH_OK;
}

/* ---- all of it ---- */

static int write_argv(struct bh_json *j, const struct bh_job_words *w, struct bh_err *err)
{
    bh_json_key(j, "argv");
    bh_json_open(j, '[');
    for (size_t i = 0; i < w->n_argv; i++) {
        if (!is_utf8(w->argv[i]))
            return bh_fail(err, BH_USAGE, "word %zu of the command is not UTF-8", i + 1);
        bh_json_str(j, w->argv[i]);
    }
    bh_json_close(j, ']');
    return BH_OK;
}

static void write_words(struct bh_json *j, const struct bh_job_words *w, const char *cwd)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"tenant", w->tenant}, {"pool", w->pool},      {"name", w->name},
                 {"tier", w->tier},     {"cwd", cwd},           {"priority", w->priority},
                 {"image", w->image},   {"profile", w->profile}};
    const struct {
        const char *key;
        bool value;
    } flags[] = {{"firm", w->firm},
                 {"dry_run", w->dry_run},
                 {"can_pause", w->can && has_word(w->can, "pause")},
                 {"can_suspend", w->can && has_word(w->can, "suspend")},
                 {"can_requeue", w->can && has_word(w->can, "requeue")}};
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++)
        if (texts[i].value)
            bh_json_key_str(j, texts[i].key, texts[i].value);
    for (size_t i = 0; i < BH_COUNT_OF(flags); i++)
        if (flags[i].value)
            bh_json_key_bool(j, flags[i].key, true);
}

int bh_job_words_json(const struct bh_job_words *w, char *const *env, const char *cwd, struct bh_buf *ret,
                      struct bh_err *err)
{
    struct bh_json j;
    int rc;
    if (!w->tenant)
        return bh_fail(err, BH_USAGE, "whose job is it? --tenant NAME; bulkhead tenants lists them");
    bh_json_init(&j, ret);
    bh_json_open(&j, '{');
    write_words(&j, w, cwd);
    if ((rc = write_gpus(&j, w, err)) < 0 || (rc = write_memory(&j, w->memory, err)) < 0 ||
        (rc = write_duration(&j, w->duration, err)) < 0 || (rc = write_argv(&j, w, err)) < 0 ||
        (rc = write_env(&j, env, w->env, err)) < 0)
        return rc;
    bh_json_close(&j, '}');
    return ret->full ? bh_fail(err, BH_TOO_LARGE,
                               "the command and its environment are too large; --env names "
                               "the variables it needs")
                     : BH_OK;
}

int bh_job_submit(struct bh_remote *r, const struct bh_job_words *w, char ret[BH_REMOTE_ID_MAX],
                  struct bh_err *err)
{
    char cwd[PATH_MAX], key[40];
    uint64_t random[2];
    struct bh_a_made made;
    struct bh_buf body;
    /* A key that others may say too would hand out another's job. */
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return bh_fail(err, BH_SYSTEM, "no random numbers are to be had");
    (void)snprintf(key, sizeof(key), "cli-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    bh_buf_init(&body, BODY_MAX);
    int rc = bh_job_words_json(w, environ, getcwd(cwd, sizeof(cwd)), &body, err);
    if (rc == BH_OK)
        rc = bh_remote_ask_once(r, "POST", "/v1/jobs", bh_buf_text(&body), key, err);
    bh_buf_fini(&body);
    if (rc == BH_OK)
        rc = bh_remote_read(r, &bh_a_made_shape, &made, err);
    if (rc != BH_OK)
        return rc;
    ret[0] = '\0';
    if (!w->dry_run && (!made.id || !bh_remote_id(made.id, 'J', ret)))
        return bh_fail(err, BH_SYSTEM, "the daemon's answer is not understood: no job's id");
    return BH_OK;
}
