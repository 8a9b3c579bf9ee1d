/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_words.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"
#include "core/model/policy.h"

static struct bh_buf body;
static struct bh_err err;
static const char *const command[] = {"train", "a \"b\""};

static int make(struct bh_job_words w, char *const *env)
{
    bh_buf_fini(&body);
    bh_buf_init(&body, 1 << 16);
    w.argv = w.argv ? w.argv : command;
    w.n_argv = w.n_argv ? w.n_argv : 2;
    return bh_job_words_json(&w, env, "/here", &body, &err);
}

static bool says(const char *part)
{
    return strstr(bh_buf_text(&body), part) != NULL;
}

TEST(the_least)
{
    CHECK_EQ(make((struct bh_job_words){.tenant = "red"}, NULL), 0);
    CHECK_STR(
        bh_buf_text(&body),
        "{\n  \"tenant\": \"red\",\n  \"cwd\": \"/here\",\n  \"gpus\": 1,\n  \"argv\": [\n    \"train\",\n"
        "    \"a \\\"b\\\"\"\n  ],\n  \"env\": []\n}\n");
    CHECK_EQ(make((struct bh_job_words){0}, NULL), BH_USAGE);
    CHECK(strstr(err.msg, "--tenant"));
}

TEST(amounts)
{
    static const struct {
        struct bh_job_words words;
        const char *has; /* NULL: it is refused */
    } cases[] = {
        {{.gpus = "2"}, "\"gpus\": 2"},
        {{.gpus = "0.5"}, "\"milli\": 500"},
        {{.gpus = "2", .cap = "25%"}, "\"milli\": 250"},
        {{.cap = "25%"}, "\"gpus\": 1,\n  \"milli\": 250"},
        {{.memory = "20GiB"}, "\"memory_mib\": 20480"},
        {{.duration = "2h"}, "\"duration_ms\": 7200000"},
        {{.gpus = "0"}, NULL},
        {{.gpus = "1.5"}, NULL},
        {{.gpus = "5000"}, NULL},
        {{.gpus = "x"}, NULL},
        {{.gpus = "0.5", .cap = "25%"}, NULL},
        {{.cap = "0.01%"}, NULL},
        {{.cap = "200%"}, NULL},
        {{.cap = "1"}, NULL},
        {{.cap = "0.25"}, NULL},
        {{.memory = "20"}, NULL},
        {{.memory = "1KiB"}, NULL},
        {{.duration = "soon"}, NULL},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_job_words w = cases[i].words;
        w.tenant = "red";
        const int rc = make(w, NULL);
        CHECK_EQ(rc, cases[i].has ? BH_OK : BH_USAGE);
        if (cases[i].has && !says(cases[i].has))
            CHECK_STR(bh_buf_text(&body), cases[i].has);
    }
}

TEST(words_and_flags)
{
    CHECK_EQ(make((struct bh_job_words){.tenant = "red",
                                        .pool = "p",
                                        .name = "n",
                                        .tier = "container",
                                        .priority = "high",
                                        .profile = "1g.10gb",
                                        .image = "/img",
                                        .can = "requeue,pause",
                                        .firm = true,
                                        .dry_run = true},
                  NULL),
             0);
    CHECK(says("\"pool\": \"p\"") && says("\"name\": \"n\"") && says("\"tier\": \"container\"") &&
          says("\"priority\": \"high\"") && says("\"profile\": \"1g.10gb\"") && says("\"image\": \"/img\""));
    CHECK(says("\"firm\": true") && says("\"dry_run\": true") && says("\"can_pause\": true") &&
          says("\"can_requeue\": true") && !says("can_suspend"));
}

TEST(the_environment_but_for_what_the_lease_says)
{
    char home[] = "HOME=/h", cuda[] = "CUDA_VISIBLE_DEVICES=7", run[] = "BULKHEAD_RUN_DIR=/r",
         bad[] = "X=\xff", odd[] = "noequals", none[] = "=x", path[] = "PATH=/bin", level[] = "SHLVL=2",
         empty[] = "E=";
    char *const env[] = {home, cuda, run, bad, odd, none, path, level, empty, NULL};
    CHECK_EQ(make((struct bh_job_words){.tenant = "red"}, env), 0);
    CHECK(says("\"env\": [\n    \"HOME=/h\",\n    \"PATH=/bin\",\n    \"E=\"\n  ]"));
    CHECK_EQ(make((struct bh_job_words){.tenant = "red", .env = "PATH,CUDA_VISIBLE_DEVICES"}, env), 0);
    CHECK(says("\"env\": [\n    \"CUDA_VISIBLE_DEVICES=7\",\n    \"PATH=/bin\"\n  ]"));
    CHECK_EQ(make((struct bh_job_words){.tenant = "red", .env = ""}, env), 0);
    CHECK(says("\"env\": []"));
}

TEST(what_is_too_much_or_no_text)
{
    static const char *const bad[] = {"train", "\xff"};
    char one[] = "A=1", *many[1100];
    CHECK_EQ(make((struct bh_job_words){.tenant = "red", .argv = bad, .n_argv = 2}, NULL), BH_USAGE);
    for (size_t i = 0; i + 1 < BH_COUNT_OF(many); i++)
        many[i] = one;
    many[BH_COUNT_OF(many) - 1] = NULL;
    CHECK_EQ(make((struct bh_job_words){.tenant = "red"}, many), BH_TOO_LARGE);
    char *large = bh_alloc(1, 70000);
    memset(large, 'x', 69999);
    const char *const argv[] = {large};
    const int rc = make((struct bh_job_words){.tenant = "red", .argv = argv, .n_argv = 1}, NULL);
    free(large);
    CHECK_EQ(rc, BH_TOO_LARGE);
}

static bool same_words(const char *const *list, const struct bh_words *words)
{
    size_t n = 0;
    for (; list[n]; n++)
        if (n >= words->n || !bh_str_eq(list[n], words->text[n]))
            return false;
    return n == words->n;
}

TEST(the_words_are_the_policys)
{
    CHECK(same_words(bh_job_tiers, &bh_words_tier));
    CHECK(same_words(bh_job_priorities, &bh_words_priority));
    bh_buf_fini(&body);
}

TEST_MAIN
