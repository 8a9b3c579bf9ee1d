/* SPDX-License-Identifier: Apache-2.0 */
/* state_job.c - jobs: added, stepped, listed by the thousand. */
#include "store/state_job.h"

#include "store/state_inside.h"

#include <inttypes.h>
#include <string.h>

enum { STRINGS_MAX = 4 << 20 }; /* argv or env; the kernel takes no more than that either */

static const char *const states[] = {
    [BH_JOB_WAITING] = "waiting", [BH_JOB_RUNNING] = "running", [BH_JOB_ENDED] = "ended"};
static const char *const ends[] = {
    [BH_JOB_END_NONE] = "",           [BH_JOB_END_EXITED] = "exited",       [BH_JOB_END_KILLED] = "killed",
    [BH_JOB_END_REFUSED] = "refused", [BH_JOB_END_CANCELLED] = "cancelled", [BH_JOB_END_FAILED] = "failed",
    [BH_JOB_END_LOST] = "lost"};
const struct bh_words bh_words_job_state = {states, BH_COUNT_OF(states)};
const struct bh_words bh_words_job_end = {ends, BH_COUNT_OF(ends)};

const char *bh_job_state_str(enum bh_job_state s)
{
    return states[s];
}

const char *bh_job_end_str(enum bh_job_end e)
{
    return ends[e];
}

int bh_job_state_find(const char *word)
{
    return bh_words_find(&bh_words_job_state, word);
}

/* ---- argv and env: strings with their NULs, one behind the other ---- */

static void pack(struct bh_buf *b, const char *const *strings)
{
    for (; strings && *strings; strings++)
        bh_buf_add(b, *strings, strlen(*strings) + 1);
}

static const char *const *unpack(const char *at, size_t n, struct bh_arena *arena)
{
    size_t count = 0, k = 0;
    for (size_t i = 0; i < n; i++)
        count += at[i] == '\0';
    const char **list = bh_arena_alloc(arena, (count + 1) * sizeof(*list));
    for (size_t i = 0; k < count; i += strlen(at + i) + 1)
        list[k++] = at + i;
    return list;
}

/* ---- writing ---- */

static int insert_job(struct bh_store *s, const struct bh_store_job *j, const struct bh_buf *argv,
                      const struct bh_buf *env, uint64_t *ret_id, struct bh_err *err)
{
    const char *tier, *priority;
    struct bh_sql q;
    int rc = bh_state_word(&bh_words_tier, j->tier, "tier", &tier, err);
    if (rc == 0)
        rc = bh_state_word(&bh_words_priority, j->priority, "priority", &priority, err);
    if (rc == 0)
        rc = bh_sql_get(
            s,
            "INSERT INTO jobs(tenant, user, pool, name, uid, gid, gpus, milli, memory_mib, profile, tier,"
            " priority, can, firm, place, duration_ms, deadline_ms, cwd, image, submit_ms, argv, env,"
            " state, state_ms, ending, status, signal, why)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,"
            " ?20, ?21, ?22, 'waiting', ?20, '', 0, 0, '')",
            &q, err);
    if (rc != 0)
        return rc;
    bh_sql_text(&q, 1, j->tenant);
    bh_sql_text(&q, 2, bh_text_or_none(j->user));
    bh_sql_text(&q, 3, bh_text_or_none(j->pool));
    bh_sql_text(&q, 4, bh_text_or_none(j->name));
    bh_sql_uint(&q, 5, j->uid);
    bh_sql_uint(&q, 6, j->gid);
    bh_sql_uint(&q, 7, j->gpus);
    bh_sql_uint(&q, 8, j->milli);
    bh_sql_uint(&q, 9, j->memory_mib);
    bh_sql_text(&q, 10, bh_text_or_none(j->profile));
    bh_sql_text(&q, 11, tier);
    bh_sql_text(&q, 12, priority);
    bh_sql_uint(&q, 13, j->can);
    bh_sql_int(&q, 14, j->firm);
    bh_sql_int(&q, 15, j->order);
    bh_sql_uint(&q, 16, j->duration_ms);
    bh_sql_uint(&q, 17, j->deadline_ms);
    bh_sql_text(&q, 18, bh_text_or_none(j->cwd));
    bh_sql_text(&q, 19, bh_text_or_none(j->image));
    bh_sql_uint(&q, 20, j->submit_ms);
    bh_sql_blob(&q, 21, argv->at, argv->n);
    bh_sql_blob(&q, 22, env->at, env->n);
    rc = bh_sql_run(&q, NULL, err);
    if (rc == 0)
        *ret_id = (uint64_t)bh_sql_last_id(&q);
    return rc;
}

int bh_store_job_add(struct bh_store *s, const struct bh_store_job *job, uint64_t *ret_id, struct bh_err *err)
{
    struct bh_buf argv, env;
    int rc;
    bh_buf_init(&argv, STRINGS_MAX);
    bh_buf_init(&env, STRINGS_MAX);
    pack(&argv, job->argv);
    pack(&env, job->env);
    if (argv.full || env.full)
        rc = bh_fail(err, BH_TOO_LARGE, "the command and its environment are over %d MiB", STRINGS_MAX >> 20);
    else
        rc = insert_job(s, job, &argv, &env, ret_id, err);
    bh_buf_fini(&argv);
    bh_buf_fini(&env);
    return rc;
}

/* Why a compare-and-set changed nothing. */
static int not_so(struct bh_store *s, uint64_t id, const char *wanted, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT state FROM jobs WHERE id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    rc = bh_state_first(&q, err, "job J%" PRIu64, id);
    if (rc == 0) {
        rc = bh_fail(err, BH_CONFLICT, "job J%" PRIu64 " is %s, not %s", id, bh_sql_col_text(&q, 0, &arena),
                     wanted);
        bh_sql_done(&q);
    }
    bh_arena_fini(&arena);
    return rc;
}

int bh_store_job_step(struct bh_store *s, uint64_t id, enum bh_job_state from, enum bh_job_state to,
                      uint64_t at_ms, const char *why, struct bh_err *err)
{
    struct bh_sql q;
    uint64_t changed = 0;
    if ((unsigned)from >= BH_JOB_ENDED || (unsigned)to >= BH_JOB_ENDED)
        return bh_fail(err, BH_INVALID, "a job steps between waiting and running");
    int rc = bh_sql_get(s, "UPDATE jobs SET state = ?3, state_ms = ?4, why = ?5 WHERE id = ?1 AND state = ?2",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bh_sql_text(&q, 2, states[from]);
    bh_sql_text(&q, 3, states[to]);
    bh_sql_uint(&q, 4, at_ms);
    bh_sql_text(&q, 5, bh_text_or_none(why));
    rc = bh_sql_run(&q, &changed, err);
    return rc == 0 && !changed ? not_so(s, id, states[from], err) : rc;
}

int bh_store_job_end(struct bh_store *s, uint64_t id, enum bh_job_end end, int32_t status, int32_t signal,
                     uint64_t at_ms, const char *why, struct bh_err *err)
{
    struct bh_sql q;
    uint64_t changed = 0;
    if ((unsigned)end >= BH_JOB_ENDS || end == BH_JOB_END_NONE)
        return bh_fail(err, BH_INVALID, "%d is no end of a job", (int)end);
    int rc = bh_sql_get(s,
                        "UPDATE jobs SET state = 'ended', ending = ?2, status = ?3, signal = ?4,"
                        " state_ms = ?5, why = ?6 WHERE id = ?1 AND state <> 'ended'",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bh_sql_text(&q, 2, ends[end]);
    bh_sql_int(&q, 3, status);
    bh_sql_int(&q, 4, signal);
    bh_sql_uint(&q, 5, at_ms);
    bh_sql_text(&q, 6, bh_text_or_none(why));
    rc = bh_sql_run(&q, &changed, err);
    return rc == 0 && !changed ? not_so(s, id, "waiting or running", err) : rc;
}

/* ---- reading ---- */

#define JOB_COLUMNS                                                                                         \
    "SELECT id, tenant, user, pool, name, uid, gid, gpus, milli, memory_mib, profile, tier, priority, can," \
    " firm, place, duration_ms, deadline_ms, cwd, image, submit_ms, state, state_ms, ending, status,"       \
    " signal, why, iif(?3, x'', argv), iif(?3, x'', env) FROM jobs WHERE "

static int read_words(struct bh_sql *q, struct bh_arena *arena, struct bh_store_job *ret, struct bh_err *err)
{
    uint8_t state = 0, end = 0;
    int rc = bh_state_value(&bh_words_tier, bh_sql_col_text(q, 11, arena), "tier", &ret->tier, err);
    if (rc == 0)
        rc = bh_state_value(&bh_words_priority, bh_sql_col_text(q, 12, arena), "priority", &ret->priority,
                            err);
    if (rc == 0)
        rc =
            bh_state_value(&bh_words_job_state, bh_sql_col_text(q, 21, arena), "state of a job", &state, err);
    if (rc == 0)
        rc = bh_state_value(&bh_words_job_end, bh_sql_col_text(q, 23, arena), "end of a job", &end, err);
    ret->state = (enum bh_job_state)state;
    ret->end = (enum bh_job_end)end;
    return rc;
}

static int read_job(struct bh_sql *q, struct bh_arena *arena, struct bh_store_job *ret, struct bh_err *err)
{
    size_t n_argv, n_env;
    const char *argv = bh_sql_col_blob(q, 27, arena, &n_argv), *env = bh_sql_col_blob(q, 28, arena, &n_env);
    *ret = (struct bh_store_job){.id = bh_sql_col_uint(q, 0),
                                 .tenant = bh_sql_col_text(q, 1, arena),
                                 .user = bh_sql_col_text(q, 2, arena),
                                 .pool = bh_sql_col_text(q, 3, arena),
                                 .name = bh_sql_col_text(q, 4, arena),
                                 .uid = (uint32_t)bh_sql_col_uint(q, 5),
                                 .gid = (uint32_t)bh_sql_col_uint(q, 6),
                                 .gpus = (uint32_t)bh_sql_col_uint(q, 7),
                                 .milli = (uint32_t)bh_sql_col_uint(q, 8),
                                 .memory_mib = (uint32_t)bh_sql_col_uint(q, 9),
                                 .profile = bh_sql_col_text(q, 10, arena),
                                 .can = (uint8_t)bh_sql_col_uint(q, 13),
                                 .firm = bh_sql_col_int(q, 14) != 0,
                                 .order = (int32_t)bh_sql_col_int(q, 15),
                                 .duration_ms = bh_sql_col_uint(q, 16),
                                 .deadline_ms = bh_sql_col_uint(q, 17),
                                 .cwd = bh_sql_col_text(q, 18, arena),
                                 .image = bh_sql_col_text(q, 19, arena),
                                 .submit_ms = bh_sql_col_uint(q, 20),
                                 .state_ms = bh_sql_col_uint(q, 22),
                                 .status = (int32_t)bh_sql_col_int(q, 24),
                                 .signal = (int32_t)bh_sql_col_int(q, 25),
                                 .why = bh_sql_col_text(q, 26, arena),
                                 .argv = unpack(argv, n_argv, arena),
                                 .env = unpack(env, n_env, arena)};
    return read_words(q, arena, ret, err);
}

int bh_store_job_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_job *ret,
                     struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, JOB_COLUMNS "id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bh_sql_int(&q, 3, 0);
    rc = bh_state_first(&q, err, "job J%" PRIu64, id);
    if (rc < 0)
        return rc;
    rc = read_job(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

/* The index must be there for the words as they stand: one of all, one of a tenant; each also of what has not ended. */
#define LIVE " AND state <> 'ended'"
#define OF   " AND tenant = ?4"
#define REST " AND (?5 IS NULL OR user = ?5) AND instr(?6, ' ' || state || ' ')"
#define UP   " ORDER BY id LIMIT ?2"
#define DOWN " ORDER BY id DESC LIMIT ?2"

static const char *const lists[2][2][2] =
    {/* newest, of a tenant, live */
     {{JOB_COLUMNS "id > ?1" REST UP, JOB_COLUMNS "id > ?1" LIVE REST UP},
      {JOB_COLUMNS "id > ?1" OF REST UP, JOB_COLUMNS "id > ?1" OF LIVE REST UP}},
     {{JOB_COLUMNS "id < ?1" REST DOWN, JOB_COLUMNS "id < ?1" LIVE REST DOWN},
      {JOB_COLUMNS "id < ?1" OF REST DOWN, JOB_COLUMNS "id < ?1" OF LIVE REST DOWN}}};
#define COUNT "SELECT count(*) FROM jobs WHERE true"
static const char *const counts[2][2] = {{COUNT REST, COUNT LIVE REST}, {COUNT OF REST, COUNT OF LIVE REST}};
/* Whoever they are of, the schema has counted them. */
#define COUNTED \
    "SELECT coalesce(sum(n), 0) FROM job_counts WHERE ?5 IS NULL AND instr(?6, ' ' || state || ' ')"
static const char *const counted[2] = {COUNTED, COUNTED OF};

static const struct bh_store_job_filter any = {0};

static void bind_filter(struct bh_sql *q, const struct bh_store_job_filter *f, struct bh_buf *mask)
{
    bh_state_mask(&bh_words_job_state, f->states, mask);
    if (f->tenant)
        bh_sql_text(q, 4, f->tenant);
    bh_sql_text(q, 5, f->user);
    bh_sql_text(q, 6, bh_buf_text(mask));
}

static bool only_live(const struct bh_store_job_filter *f)
{
    return f->states && !(f->states & 1u << BH_JOB_ENDED);
}

int bh_store_jobs_list(struct bh_store *s, struct bh_arena *arena, const struct bh_store_job_filter *filter,
                       const struct bh_store_page *page, bh_store_jobs *ret, struct bh_err *err)
{
    const struct bh_store_job_filter *f = filter ? filter : &any;
    struct bh_buf mask;
    struct bh_sql q;
    int rc = bh_sql_get(s, lists[page && page->newest][f->tenant != NULL][only_live(f)], &q, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&mask, 256);
    bh_state_page(&q, 1, 2, page);
    bh_sql_int(&q, 3, f->brief);
    bind_filter(&q, f, &mask);
    bh_state_rows(&q, arena, ret, read_job, rc, err);
    bh_buf_fini(&mask);
    return rc;
}

int bh_store_jobs_count(struct bh_store *s, const struct bh_store_job_filter *filter, uint64_t *ret,
                        struct bh_err *err)
{
    const struct bh_store_job_filter *f = filter ? filter : &any;
    struct bh_buf mask;
    struct bh_sql q;
    int rc = bh_sql_get(s, f->user ? counts[f->tenant != NULL][only_live(f)] : counted[f->tenant != NULL], &q,
                        err);
    if (rc < 0)
        return rc;
    bh_buf_init(&mask, 256);
    bind_filter(&q, f, &mask);
    rc = bh_sql_step(&q, err);
    if (rc > 0) {
        *ret = bh_sql_col_uint(&q, 0);
        bh_sql_done(&q);
        rc = 0;
    }
    bh_buf_fini(&mask);
    return rc;
}
