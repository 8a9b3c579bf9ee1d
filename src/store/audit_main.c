/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_main.c - bulkhead-audit: verify, export and show an audit log without its daemon.
 *
 * A program of its own, which `bulkhead audit` becomes: the command is carried to machines without SQLite and GnuTLS. It
 * only reads, also beside a living daemon. Words and options are checked by the command (src/cli/cmd_audit.c).
 */
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "store/audit_db.h"
#include "store/audit_export.h"
#include "store/audit_show.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FOUND = 1, FINDINGS_SHOWN = 100, FILE_BYTES = 65536 };

struct asked {
    const char *word, *path;
    const char *key, *checkpoint, *from; /* files */
    struct bh_audit_filter filter;
    bool json;
};

/* ---- files ---- */

static int read_small(const char *path, char **ret, size_t *ret_n, struct bh_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return bh_fail(err,
                       errno == ENOENT   ? BH_NOT_FOUND
                       : errno == EACCES ? BH_DENIED
                                         : BH_SYSTEM,
                       "'%.200s': %s", path, strerrordesc_np(errno));
    char *text = bh_alloc(FILE_BYTES + 1, 1);
    const size_t n = fread(text, 1, FILE_BYTES, f);
    const bool bad = ferror(f);
    (void)fclose(f);
    if (bad) {
        free(text);
        return bh_fail(err, BH_SYSTEM, "'%.200s' cannot be read", path);
    }
    *ret = text;
    *ret_n = n;
    return BH_OK;
}

static int put(const char *text, size_t n, struct bh_err *err)
{
    return fwrite(text, 1, n, stdout) == n
               ? BH_OK
               : bh_fail(err, BH_SYSTEM, "standard output: %s", strerrordesc_np(errno));
}

/* The next line without its newline: 1, 0 at the end, or a failure. */
static int next_line(FILE *f, char *buf, size_t *ret_n, struct bh_err *err)
{
    size_t n = 0;
    for (int c; (c = getc_unlocked(f)) != EOF;) {
        if (c == '\n') {
            *ret_n = n;
            return 1;
        }
        if (n == BH_AUDIT_LINE_MAX)
            return bh_fail(err, BH_TOO_LARGE, "a line of the export has more than %d bytes",
                           BH_AUDIT_LINE_MAX);
        buf[n++] = (char)c;
    }
    if (ferror(f))
        return bh_fail(err, BH_SYSTEM, "the export cannot be read");
    *ret_n = n;
    return n > 0; /* a last line that does not end */
}

static bool is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof(magic)];
    FILE *f = fopen(path, "rbe");
    const bool is =
        f && fread(head, 1, sizeof(head), f) == sizeof(head) && memcmp(head, magic, sizeof(head)) == 0;
    if (f)
        (void)fclose(f);
    return is;
}

typedef int (*row_fn)(void *arg, const struct bh_audit_row *row, struct bh_err *err);

/* An export through a verifier; each record also to `row`. */
static int read_export(const char *path, struct bh_audit_verifier *v, row_fn row, void *arg,
                       struct bh_err *err)
{
    struct bh_audit_import im = {.v = v, .row = row, .arg = arg};
    const bool is_stdin = bh_str_eq(path, "-");
    FILE *f = is_stdin ? stdin : fopen(path, "rbe");
    if (!f)
        return bh_fail(err,
                       errno == ENOENT   ? BH_NOT_FOUND
                       : errno == EACCES ? BH_DENIED
                                         : BH_SYSTEM,
                       "'%.200s': %s", path, strerrordesc_np(errno));
    BH_AUTOFREE char *buf = bh_alloc(BH_AUDIT_LINE_MAX, 1);
    size_t n = 0;
    int rc;
    while ((rc = next_line(f, buf, &n, err)) > 0) {
        rc = bh_audit_import_line(&im, buf, n, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = bh_audit_import_end(&im, err);
    bh_audit_import_fini(&im);
    if (!is_stdin)
        (void)fclose(f);
    return rc < 0 ? bh_wrap(err, rc, "'%.200s'", path) : BH_OK;
}

static int open_store(const char *path, struct bh_store **ret, struct bh_err *err)
{
    const struct bh_store_options o = {.mode = BH_STORE_READ};
    return bh_store_open(path, &o, ret, err);
}

/* ---- verify ---- */

struct report {
    const struct asked *asked;
    BH_VEC(struct bh_audit_finding) found;
};

static void keep_finding(void *arg, const struct bh_audit_finding *f)
{
    struct report *r = arg;
    if (r->found.n < FINDINGS_SHOWN)
        *bh_vec_push(&r->found) = *f;
}

/* What a log that holds still does not show, in words; NULL: nothing more. */
static const char *not_shown(const struct asked *a, size_t i)
{
    static const char no_key[] =
        "whose log it is: the key is the one that the log itself names; give --key with one from elsewhere";
    static const char no_checkpoint[] =
        "a log cut back to an older checkpoint, or written anew by whoever has its key: give --checkpoint with one kept elsewhere";
    static const char tail[] = "records cut off behind the newest checkpoint that anyone has";
    const char *const all[] = {a->key ? NULL : no_key, a->checkpoint ? NULL : no_checkpoint, tail};
    size_t at = 0;
    for (size_t k = 0; k < BH_COUNT_OF(all); k++)
        if (all[k] && at++ == i)
            return all[k];
    return NULL;
}

static void verdict_text(const struct report *r, const struct bh_audit_verifier *v, struct bh_buf *out)
{
    const uint64_t last = v->records ? v->first + v->records - 1 : 0;
    char key[BH_KEY_TEXT_MAX];
    bh_buf_printf(out, "log          %s\n", v->origin[0] ? v->origin : "(unreadable)");
    bh_buf_printf(out, "records      %" PRIu64, v->records);
    if (v->cut.n)
        bh_buf_printf(out, "; 1 to %" PRIu64 " were dropped by retention", v->cut.n);
    bh_buf_printf(out,
                  "\ncheckpoints  %" PRIu64 ", the last one that holds covers records up to %" PRIu64 "\n",
                  v->checkpoints, v->signed_size);
    if (v->keys)
        bh_buf_printf(out, "key          %s%s\n", bh_audit_key_format(&v->key, key),
                      v->trusted_seen ? " (as given)" : "");
    if (v->saved_note)
        bh_buf_printf(out, "kept         checkpoint of %" PRIu64 " records: %s\n", v->saved_size,
                      v->saved_held ? "this log goes on from it"
                                    : "this log is not the one it was made from");
    if (v->findings == 0 && last > v->signed_size)
        bh_buf_printf(out,
                      "tail         %" PRIu64 " records behind the last checkpoint are chained, not signed\n",
                      last - v->signed_size);
    if (v->backwards)
        bh_buf_printf(out, "clock        set back before %" PRIu64 " records\n", v->backwards);
    for (size_t i = 0; i < r->found.n; i++) {
        const struct bh_audit_finding *f = &r->found.at[i];
        if (f->seq)
            bh_buf_printf(out, "WRONG        record %" PRIu64 ": %s: %s\n", f->seq, bh_audit_wrongs[f->wrong],
                          f->text);
        else
            bh_buf_printf(out, "WRONG        %s: %s\n", bh_audit_wrongs[f->wrong], f->text);
    }
    if (v->findings > r->found.n)
        bh_buf_printf(out, "WRONG        and %" PRIu64 " more\n", v->findings - r->found.n);
    for (size_t i = 0; v->findings == 0 && not_shown(r->asked, i); i++)
        bh_buf_printf(out, "not shown    %s\n", not_shown(r->asked, i));
    bh_buf_str(out, v->findings ? "the log does not hold\n" : "the log holds\n");
}

static void verdict_json(const struct report *r, const struct bh_audit_verifier *v, struct bh_buf *out)
{
    struct bh_json j;
    char key[BH_KEY_TEXT_MAX];
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "holds", v->findings == 0);
    bh_json_key_str(&j, "origin", v->origin);
    bh_json_key_u64(&j, "records", v->records);
    bh_json_key_u64(&j, "dropped", v->cut.n);
    bh_json_key_u64(&j, "checkpoints", v->checkpoints);
    bh_json_key_u64(&j, "signed", v->signed_size);
    bh_json_key_str(&j, "key", v->keys ? bh_audit_key_format(&v->key, key) : NULL);
    bh_json_key_bool(&j, "keyGiven", v->trusted != NULL);
    if (v->saved_note) {
        bh_json_key_u64(&j, "keptCheckpoint", v->saved_size);
        bh_json_key_bool(&j, "keptCheckpointHolds", v->saved_held);
    }
    bh_json_key_u64(&j, "clockSetBack", v->backwards);
    bh_json_key_u64(&j, "wrong", v->findings);
    bh_json_key(&j, "findings");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < r->found.n; i++) {
        bh_json_open_flat(&j, '{');
        bh_json_key_u64(&j, "record", r->found.at[i].seq);
        bh_json_key_str(&j, "wrong", bh_audit_wrongs[r->found.at[i].wrong]);
        bh_json_key_str(&j, "text", r->found.at[i].text);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_key(&j, "notShown");
    bh_json_open(&j, '[');
    for (size_t i = 0; v->findings == 0 && not_shown(r->asked, i); i++)
        bh_json_str(&j, not_shown(r->asked, i));
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}

static int verify_path(const struct asked *a, struct bh_audit_verifier *v, struct bh_err *err)
{
    struct bh_store *s = NULL;
    if (!is_database(a->path))
        return read_export(a->path, v, NULL, NULL, err);
    int rc = open_store(a->path, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_db_verify(s, v, err);
    bh_store_close(s);
    return rc;
}

static int do_verify(const struct asked *a, int *ret_status, struct bh_err *err)
{
    struct report r = {.asked = a};
    struct bh_audit_verifier v = {.found = keep_finding, .arg = &r};
    struct bh_audit_key key;
    BH_AUTOFREE char *key_text = NULL;
    BH_AUTOFREE char *note = NULL;
    size_t n;
    int rc = BH_OK;
    if (a->key) {
        rc = read_small(a->key, &key_text, &n, err);
        if (rc == BH_OK)
            rc = bh_audit_key_parse(key_text, n, &key, err);
        v.trusted = &key;
    }
    if (rc == BH_OK && a->checkpoint) {
        rc = read_small(a->checkpoint, &note, &v.n_saved_note, err);
        v.saved_note = note;
    }
    if (rc == BH_OK)
        rc = verify_path(a, &v, err);
    if (rc == BH_OK) {
        struct bh_buf out;
        bh_buf_init(&out, 1 << 20);
        (a->json ? verdict_json : verdict_text)(&r, &v, &out);
        rc = put(out.at, out.n, err);
        bh_buf_fini(&out);
        *ret_status = v.findings ? FOUND : 0;
    }
    bh_audit_verify_fini(&v);
    bh_vec_fini(&r.found);
    return rc;
}

/* ---- export, checkpoint, key ---- */

static int put_line(void *arg, const char *text, size_t n, struct bh_err *err)
{
    (void)arg;
    return put(text, n, err);
}

static int do_export(const struct asked *a, int *ret_status, struct bh_err *err)
{
    struct bh_audit_export_options o = {.tenant = a->filter.tenant};
    struct bh_audit_exported done;
    struct bh_store *s = NULL;
    BH_AUTOFREE char *note = NULL;
    int rc = a->from ? read_small(a->from, &note, &o.n_from_note, err) : BH_OK;
    (void)ret_status;
    o.from_note = note;
    if (rc == BH_OK)
        rc = open_store(a->path, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_export(s, &o, put_line, NULL, &done, err);
    if (rc == BH_OK)
        (void)fprintf(stderr, "%" PRIu64 " records of a log of %" PRIu64 "%s\n", done.records, done.size,
                      !done.unsigned_tail ? ""
                      : o.tenant          ? "; newer ones are not signed yet and were left out"
                                          : "; the newest are not signed yet");
    bh_store_close(s);
    return rc;
}

static int do_checkpoint(const struct asked *a, int *ret_status, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store *s = NULL;
    uint64_t size;
    const char *note;
    (void)ret_status;
    int rc = open_store(a->path, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_checkpoint_find(s, UINT64_MAX, true, &arena, &size, &note, err);
    if (rc == BH_OK)
        rc = put(note, strlen(note), err);
    bh_store_close(s);
    bh_arena_fini(&arena);
    return rc;
}

static int do_key(const struct asked *a, int *ret_status, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store *s = NULL;
    struct bh_audit_record r;
    (void)ret_status;
    int rc = open_store(a->path, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_key_row(s, UINT64_MAX, &arena, &r, err);
    if (rc == BH_OK)
        rc = printf("%s\n", r.is.after ? r.is.after : "") < 0 ? bh_fail(err, BH_SYSTEM, "standard output")
                                                              : BH_OK;
    bh_store_close(s);
    bh_arena_fini(&arena);
    return rc;
}

/* ---- show ---- */

struct showing {
    const struct asked *asked;
    struct bh_buf out;
    uint64_t n, odd;
};

static int show_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct showing *w = arg;
    struct bh_arena arena = {0};
    struct bh_audit_record r;
    int rc = BH_OK;
    if (bh_audit_decode(row->body, row->n_body, &arena, &r, NULL) < 0) {
        w->odd++; /* told at the end: the others are still worth seeing */
    } else if (bh_audit_matches(&w->asked->filter, &r)) {
        w->out.n = 0;
        if (w->asked->json) {
            bh_buf_str(&w->out, w->n ? ",\n    " : "\n    ");
            bh_buf_add(&w->out, row->body, row->n_body);
        } else {
            bh_audit_line_add(&w->out, &r);
        }
        w->n++;
        rc = put(w->out.at, w->out.n, err);
    }
    bh_arena_fini(&arena);
    return rc;
}

static int show_path(const struct asked *a, struct showing *w, struct bh_err *err)
{
    struct bh_store *s = NULL;
    struct bh_audit_verifier v = {0};
    int rc;
    if (!is_database(a->path)) {
        rc = read_export(a->path, &v, show_row, w, err);
        bh_audit_verify_fini(&v);
        return rc;
    }
    const struct bh_audit_reader reader = {.arg = w, .row = show_row};
    rc = open_store(a->path, &s, err);
    if (rc == BH_OK)
        rc = bh_audit_db_read(s, &reader,
                              err); /* row by row: an index could have been made to leave some out */
    bh_store_close(s);
    return rc;
}

static int do_show(const struct asked *a, int *ret_status, struct bh_err *err)
{
    static const char head[] = "{\n  \"version\": 1,\n  \"records\": [", tail[] = "\n  ]\n}\n";
    struct showing w = {.asked = a};
    bh_buf_init(&w.out, BH_AUDIT_LINE_MAX * 2);
    int rc = a->json ? put(head, sizeof(head) - 1, err) : BH_OK;
    if (rc == BH_OK)
        rc = show_path(a, &w, err);
    if (rc == BH_OK && a->json)
        rc = put(tail, sizeof(tail) - 1, err);
    bh_buf_fini(&w.out);
    if (rc == BH_OK && w.odd) {
        (void)fprintf(stderr, "%" PRIu64 " rows are no records; see bulkhead audit verify\n", w.odd);
        *ret_status = FOUND;
    }
    return rc;
}

/* ---- what was asked ---- */

static const struct {
    const char *word;
    int (*act)(const struct asked *a, int *ret_status, struct bh_err *err);
} words[] = {{"verify", do_verify},
             {"export", do_export},
             {"show", do_show},
             {"checkpoint", do_checkpoint},
             {"key", do_key}};

/* An instant, or how long ago. */
static int parse_since(const char *s, int64_t *ret_ms, struct bh_err *err)
{
    int64_t seconds;
    uint64_t ago;
    struct timespec now;
    if (bh_instant_parse(s, &seconds, NULL) == BH_OK) {
        *ret_ms = seconds * 1000;
        return BH_OK;
    }
    if (bh_duration_parse(s, &ago, NULL) < 0 || ago > INT64_MAX / 2)
        return bh_fail(
            err, BH_USAGE,
            "--since needs an instant such as 2026-08-01T12:00:00Z, or how long ago such as 2h, not '%.40s'",
            s);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret_ms = (int64_t)now.tv_sec * 1000 - (int64_t)ago;
    return BH_OK;
}

static int parse(int argc, char **argv, struct asked *a, struct bh_err *err)
{
    enum { KEY, CHECKPOINT, FROM, TENANT, EVENT, ACTOR, SINCE, OUTPUT };
    static const struct option options[] = {{"key", required_argument, NULL, KEY},
                                            {"checkpoint", required_argument, NULL, CHECKPOINT},
                                            {"from", required_argument, NULL, FROM},
                                            {"tenant", required_argument, NULL, TENANT},
                                            {"event", required_argument, NULL, EVENT},
                                            {"actor", required_argument, NULL, ACTOR},
                                            {"since", required_argument, NULL, SINCE},
                                            {"output", required_argument, NULL, OUTPUT},
                                            {NULL, 0, NULL, 0}};
    int rc = BH_OK;
    opterr = 0;
    for (int c; rc == BH_OK && (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case KEY:
            a->key = optarg;
            break;
        case CHECKPOINT:
            a->checkpoint = optarg;
            break;
        case FROM:
            a->from = optarg;
            break;
        case TENANT:
            a->filter.tenant = optarg;
            break;
        case EVENT:
            a->filter.event = optarg;
            break;
        case ACTOR:
            a->filter.actor = optarg;
            break;
        case SINCE:
            rc = parse_since(optarg, &a->filter.since_ms, err);
            break;
        case OUTPUT:
            a->json = bh_str_eq(optarg, "json");
            break;
        default:
            rc = bh_fail(err, BH_USAGE, "bulkhead-audit is started by bulkhead audit, not by hand");
            break;
        }
    if (rc == BH_OK && argc - optind != 2)
        rc = bh_fail(err, BH_USAGE, "bulkhead-audit is started by bulkhead audit, not by hand");
    if (rc == BH_OK) {
        a->word = argv[optind];
        a->path = argv[optind + 1];
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct asked a = {0};
    struct bh_err err;
    int status = 0;
    int rc = parse(argc, argv, &a, &err);
    if (rc == BH_OK) {
        size_t i = 0;
        while (i < BH_COUNT_OF(words) && !bh_str_eq(words[i].word, a.word))
            i++;
        rc = i < BH_COUNT_OF(words) ? words[i].act(&a, &status, &err)
                                    : bh_fail(&err, BH_USAGE, "bulkhead-audit does not know '%.40s'", a.word);
    }
    if (fflush(stdout) != 0 && rc == BH_OK)
        rc = bh_fail(&err, BH_SYSTEM, "standard output: %s", strerrordesc_np(errno));
    if (rc < 0) {
        (void)fprintf(stderr, "bulkhead audit: %s\n", err.msg);
        return bh_code_exit(rc);
    }
    return status;
}
