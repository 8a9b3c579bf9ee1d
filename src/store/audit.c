/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - appends, checkpoints, keys and retention: everything that writes to the audit log. */
#include "store/audit.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "store/audit_keyfile.h"
#include "store/audit_rows.h"
#include "store/db_sql.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)

struct bh_audit {
    struct bh_store *store;
    struct bh_audit_secret now; /* signs */
    char key_path[PATH_MAX];
    char host[256], boot_id[64];
    char *component, *version;
    uint32_t checkpoint_records, checkpoint_ms;
    bool excluded[BH_AUDIT_EVENTS];
    int64_t (*clock_ns)(void *arg);
    void *clock_arg;
};

/* ---- one record ---- */

/* After this nothing of the transaction can be committed, whatever its owner does. */
static int doom(struct bh_audit *a, int rc)
{
    (void)sqlite3_exec(bh_store_handle(a->store), "ROLLBACK", NULL, NULL, NULL);
    /* The store notices when it is next asked to begin, and from then on refuses every statement up to the outermost end. */
    return bh_store_begin(a->store, NULL) < 0 ? rc : BH_SYSTEM;
}

static int64_t now_ns(const struct bh_audit *a)
{
    struct timespec t;
    if (a->clock_ns)
        return a->clock_ns(a->clock_arg);
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static uint64_t since_boot_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000 * NS_PER_MS + (uint64_t)t.tv_nsec;
}

/* The next record of a log that ends with h, and where it then ends. signature: NULL, or of a key record. */
static int add_record(struct bh_audit *a, struct bh_audit_head *h, const struct bh_audit_event *e,
                      const char *signature, struct bh_err *err)
{
    const struct bh_audit_record r = {
        .is = *e,
        .seq = h->edge.n + 1,
        .utc_ns = now_ns(a),
        .mono_ns = since_boot_ns(),
        .boot_id = a->boot_id,
        .host = a->host,
        .component = a->component,
        .version = a->version,
        .signature = signature,
        .prev = h->chain,
    };
    struct bh_audit_row row = {.seq = r.seq, .at_ms = r.utc_ns / NS_PER_MS};
    struct bh_buf body, tenant;
    bh_buf_init(&body, BH_AUDIT_BODY_MAX);
    bh_buf_init(&tenant, BH_AUDIT_TEXT_MAX);
    bh_audit_clean(&tenant, e->tenant ? e->tenant : "");
    int rc = bh_audit_encode(&r, &body, err);
    if (rc == BH_OK) {
        row.event = bh_audit_names[e->event];
        row.tenant = tenant.n ? tenant.at : NULL;
        row.body = body.at;
        row.n_body = body.n;
        bh_audit_hash(body.at, body.n, &row.hash);
        rc = bh_audit_row_add(a->store, &row, err);
    }
    if (rc == BH_OK) {
        h->last_ms = row.at_ms;
        bh_audit_chain(&h->chain, &row.hash, &h->chain);
        bh_merkle_add(&h->edge, &row.hash);
        rc = bh_audit_head_save(a->store, h, err);
    }
    bh_buf_fini(&body);
    bh_buf_fini(&tenant);
    return rc;
}

/* ---- checkpoints ---- */

/* The record of the checkpoint, then the checkpoint over it. */
static int add_checkpoint(struct bh_audit *a, struct bh_audit_head *h, const struct bh_audit_secret *by,
                          struct bh_err *err)
{
    char id[24], before[24];
    struct bh_buf note;
    struct bh_hash root;
    (void)snprintf(id, sizeof(id), "%" PRIu64, h->edge.n + 1);
    (void)snprintf(before, sizeof(before), "%" PRIu64, h->signed_size);
    const struct bh_audit_event e = {.event = BH_AUDIT_AUDIT_CHECKPOINT,
                                     .sub = "service:audit",
                                     .object_type = "checkpoint",
                                     .object_id = id,
                                     .before = before};
    int rc = add_record(a, h, &e, NULL, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&note, BH_NOTE_MAX);
    bh_merkle_root(&h->edge, &root);
    bh_checkpoint_text(h->origin, h->edge.n, &root, &note);
    rc = bh_checkpoint_sign(&note, note.n, &by->key, &by->secret, err);
    if (rc == BH_OK)
        rc = bh_audit_checkpoint_add(a->store, h->edge.n, bh_buf_text(&note), err);
    bh_buf_fini(&note);
    if (rc < 0)
        return rc;
    h->signed_size = h->edge.n;
    h->signed_ms = h->last_ms;
    return bh_audit_head_save(a->store, h, err);
}

/* ---- appending ---- */

bool bh_audit_keeps(const struct bh_audit *a, enum bh_audit_kind kind, enum bh_audit_outcome outcome)
{
    return outcome != BH_AUDIT_SUCCESS || kind >= BH_AUDIT_EVENTS || !a->excluded[kind];
}

void bh_audit_set_exclude(struct bh_audit *a, bool enabled, const char *const *classes, size_t n)
{
    for (unsigned k = 0; k < BH_AUDIT_EVENTS; k++) {
        const size_t len = strcspn(bh_audit_names[k], ".");
        bool named = !enabled;
        char class_name[32];
        (void)snprintf(class_name, sizeof(class_name), "%.*s", (int)len, bh_audit_names[k]);
        for (size_t i = 0; i < n; i++)
            named = named || bh_str_eq_nocase(classes[i], class_name);
        a->excluded[k] = named && bh_audit_is_optional((enum bh_audit_kind)k);
    }
}

static int append(struct bh_audit *a, const struct bh_audit_event *e, struct bh_err *err)
{
    struct bh_audit_head h;
    int rc = bh_audit_head_load(a->store, &h, err);
    if (rc == BH_OK)
        rc = add_record(a, &h, e, NULL, err);
    if (rc == BH_OK && h.edge.n - h.signed_size >= a->checkpoint_records)
        rc = add_checkpoint(a, &h, &a->now, err);
    return rc;
}

/* Those that say what the log did to itself. */
static bool is_own(enum bh_audit_kind kind)
{
    return kind >= BH_AUDIT_AUDIT_KEY && kind <= BH_AUDIT_AUDIT_STOP;
}

int bh_audit_append(struct bh_audit *a, const struct bh_audit_event *e, struct bh_err *err)
{
    if (!bh_audit_keeps(a, e->event, e->outcome))
        return BH_OK;
    if (!bh_store_in_transaction(a->store))
        return bh_fail(err, BH_INVALID, "an audit record needs the transaction of what it tells of");
    int rc = is_own(e->event)
                 ? bh_fail(err, BH_INVALID, "'%s' is for the log itself", bh_audit_names[e->event])
                 : append(a, e, err);
    return rc < 0 ? doom(a, bh_wrap(err, rc, "the audit log")) : BH_OK;
}

/* ---- what runs in a transaction of its own, or within the caller's ---- */

typedef int (*work_fn)(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err);

static int in_transaction(struct bh_audit *a, work_fn work, void *arg, struct bh_err *err)
{
    struct bh_audit_head h;
    int rc = bh_store_begin(a->store, err);
    if (rc < 0)
        return rc;
    rc = bh_audit_head_load(a->store, &h, err);
    if (rc == BH_OK)
        rc = work(a, &h, arg, err);
    if (rc == BH_OK)
        return bh_store_commit(a->store, err);
    bh_store_rollback(a->store);
    return bh_wrap(err, rc, "the audit log");
}

static int do_checkpoint(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err)
{
    (void)arg;
    return h->edge.n == h->signed_size ? BH_OK : add_checkpoint(a, h, &a->now, err);
}

int bh_audit_checkpoint(struct bh_audit *a, struct bh_err *err)
{
    return in_transaction(a, do_checkpoint, NULL, err);
}

int bh_audit_tick(struct bh_audit *a, uint64_t *ret_wait_ms, struct bh_err *err)
{
    struct bh_audit_head h;
    *ret_wait_ms = UINT64_MAX;
    int rc = bh_audit_head_load(a->store, &h, err);
    if (rc < 0 || h.edge.n == h.signed_size)
        return rc;
    const int64_t since = now_ns(a) / NS_PER_MS - h.signed_ms;
    /* a clock that was set back must not put it off */
    if (since >= 0 && since < (int64_t)a->checkpoint_ms) {
        *ret_wait_ms = a->checkpoint_ms - (uint64_t)since;
        return BH_OK;
    }
    return bh_audit_checkpoint(a, err);
}

static int do_start(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err)
{
    const struct bh_audit_event *e = arg;
    return add_record(a, h, e, NULL, err);
}

static int do_stop(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err)
{
    int rc = do_start(a, h, arg, err);
    return rc < 0 ? rc : add_checkpoint(a, h, &a->now, err);
}

int bh_audit_stop(struct bh_audit *a, struct bh_err *err)
{
    struct bh_audit_event e = {.event = BH_AUDIT_AUDIT_STOP, .sub = "service:audit"};
    return in_transaction(a, do_stop, &e, err);
}

/* ---- keys ---- */

/* The record that names a key. by: who vouches for it; NULL: nobody can. */
static int add_key_record(struct bh_audit *a, struct bh_audit_head *h, const struct bh_audit_key *key,
                          const struct bh_audit_secret *by, const struct bh_audit_event *who,
                          struct bh_err *err)
{
    char id[16], after[BH_KEY_TEXT_MAX], before[BH_KEY_TEXT_MAX];
    uint8_t signature[BH_SIGNATURE_BYTES];
    struct bh_audit_event e = *who;
    struct bh_buf text, b64;
    int rc = BH_OK;
    (void)snprintf(id, sizeof(id), "%08" PRIx32, key->id);
    e.object_type = "audit-key";
    e.object_id = id;
    e.after = bh_audit_key_format(key, after);
    if (by && !bh_audit_key_eq(&by->key, key))
        e.before = bh_audit_key_format(&by->key, before);
    bh_buf_init(&text, 1024);
    bh_buf_init(&b64, 128);
    bh_audit_key_statement(key, h->edge.n + 1, &h->chain, &text);
    if (by) {
        rc = bh_sign(&by->secret, text.at, text.n, signature, err);
        if (rc == BH_OK)
            bh_base64_add(&b64, signature, sizeof(signature));
    }
    if (rc == BH_OK)
        rc = add_record(a, h, &e, by ? bh_buf_text(&b64) : NULL, err);
    bh_buf_fini(&text);
    bh_buf_fini(&b64);
    return rc;
}

static int make_secret(const char *origin, struct bh_audit_secret *ret, struct bh_err *err)
{
    int rc = bh_sign_key_new(&ret->secret, err);
    return rc < 0 ? rc : bh_audit_key_make(origin, ret->secret.public, &ret->key, err);
}

struct rotation {
    const struct bh_audit_event *who;
    struct bh_audit_secret fresh;
    bool lost; /* the old key cannot sign */
};

static int do_rotate(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err)
{
    struct rotation *r = arg;
    struct bh_audit_event e = *r->who;
    e.event = BH_AUDIT_AUDIT_KEY_CHANGE;
    int rc = add_key_record(a, h, &r->fresh.key, r->lost ? NULL : &a->now, &e, err);
    return rc < 0 ? rc : add_checkpoint(a, h, &r->fresh, err);
}

static int new_path(const struct bh_audit *a, char ret[PATH_MAX], struct bh_err *err)
{
    return snprintf(ret, PATH_MAX, "%s.new", a->key_path) < PATH_MAX
               ? BH_OK
               : bh_fail(err, BH_TOO_LARGE, "the path of the audit key is too long");
}

/* The file of the new key lies beside the old one until the log names it: whenever this is cut off, one of the two fits. */
static int rotate(struct bh_audit *a, const char *origin, struct rotation *r, struct bh_err *err)
{
    char path[PATH_MAX];
    int rc = new_path(a, path, err);
    if (rc == BH_OK)
        rc = make_secret(origin, &r->fresh, err);
    if (rc == BH_OK)
        rc = bh_audit_keyfile_save(path, &r->fresh, err);
    if (rc == BH_OK)
        rc = in_transaction(a, do_rotate, r, err);
    if (rc == BH_OK)
        rc = bh_audit_keyfile_move(path, a->key_path, err);
    if (rc == BH_OK)
        a->now = r->fresh;
    explicit_bzero(&r->fresh, sizeof(r->fresh));
    return rc;
}

int bh_audit_rotate(struct bh_audit *a, const struct bh_audit_event *who, struct bh_err *err)
{
    struct rotation r = {.who = who};
    char origin[BH_NOTE_NAME_MAX];
    if (bh_store_in_transaction(a->store))
        return bh_fail(err, BH_INVALID, "a new audit key needs a transaction of its own");
    (void)snprintf(origin, sizeof(origin), "%s", a->now.key.name);
    return rotate(a, origin, &r, err);
}

const struct bh_audit_key *bh_audit_current_key(const struct bh_audit *a)
{
    return &a->now.key;
}

/* ---- retention ---- */

struct pruning {
    int64_t before_ms;
    const struct bh_audit_event *who;
    uint64_t last, dropped;
    struct bh_audit_head *h;
};

/* Finds the last checkpoint below the first record that must stay. */
static int find_cut(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct pruning *p = arg;
    (void)err;
    if (row->at_ms >= p->before_ms)
        return 1;
    if (bh_str_eq(row->event, bh_audit_names[BH_AUDIT_AUDIT_CHECKPOINT]))
        p->last = row->seq;
    return 0;
}

static int add_to_cut(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct pruning *p = arg;
    if (row->seq != p->h->cut.n + 1)
        return bh_fail(err, BH_REFUSED, "record %" PRIu64 " is missing; nothing is dropped from a broken log",
                       p->h->cut.n + 1);
    bh_merkle_add(&p->h->cut, &row->hash);
    bh_audit_chain(&p->h->cut_chain, &row->hash, &p->h->cut_chain);
    return 0;
}

/* What is dropped must be what was signed: afterwards nobody could tell. */
static int check_cut(struct bh_audit *a, const struct bh_audit_head *h, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_checkpoint c;
    struct bh_hash root;
    uint64_t size;
    const char *note;
    int rc = bh_audit_checkpoint_find(a->store, h->cut.n, true, &arena, &size, &note, err);
    if (rc == BH_OK)
        rc = bh_checkpoint_parse(note, strlen(note), &c, err);
    bh_merkle_root(&h->cut, &root);
    if (rc == BH_OK && (size != h->cut.n || c.size != size || !bh_hash_eq(&c.root, &root)))
        rc = bh_fail(err, BH_REFUSED,
                     "records up to %" PRIu64
                     " are not what was signed; nothing is dropped: see bulkhead audit verify",
                     h->cut.n);
    bh_arena_fini(&arena);
    return rc;
}

static int do_prune(struct bh_audit *a, struct bh_audit_head *h, void *arg, struct bh_err *err)
{
    struct pruning *p = arg;
    struct bh_audit_range range = {.after = h->cut.n, .last = h->edge.n};
    char up_to[24];
    p->h = h;
    int rc = bh_audit_rows(a->store, &range, find_cut, p, err);
    if (rc < 0 || p->last <= h->cut.n)
        return rc < 0 ? rc : BH_OK;
    range.last = p->last;
    rc = bh_audit_rows(a->store, &range, add_to_cut, p, err);
    if (rc == BH_OK)
        rc = check_cut(a, h, err);
    if (rc < 0)
        return rc;
    struct bh_audit_event e = *p->who;
    (void)snprintf(up_to, sizeof(up_to), "%" PRIu64, p->last);
    e.event = BH_AUDIT_AUDIT_PRUNE;
    e.object_type = "audit-records";
    e.object_id = up_to;
    rc = add_record(a, h, &e, NULL, err); /* saves the cut as well */
    return rc < 0 ? rc : bh_audit_rows_drop(a->store, p->last, &p->dropped, err);
}

int bh_audit_prune(struct bh_audit *a, int64_t before_ms, const struct bh_audit_event *who,
                   uint64_t *ret_dropped, struct bh_err *err)
{
    struct pruning p = {.before_ms = before_ms, .who = who};
    int rc = in_transaction(a, do_prune, &p, err);
    if (rc == BH_OK)
        *ret_dropped = p.dropped;
    return rc;
}

/* ---- opening ---- */

/* The key and the log begin together; a key that is there already was left by a start that was cut off. */
static int begin_log(struct bh_audit *a, struct bh_err *err)
{
    const struct bh_audit_event who = {.event = BH_AUDIT_AUDIT_KEY, .sub = "service:audit"};
    struct bh_audit_head h = {.signed_ms = now_ns(a) / NS_PER_MS};
    int rc = bh_audit_keyfile_load(a->key_path, &a->now, err);
    if (rc == BH_NOT_FOUND) {
        uint8_t id[16];
        char origin[64] = "bulkhead.dev/audit/";
        if (getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id))
            return bh_fail(err, BH_SYSTEM, "no randomness for the audit log's name");
        for (size_t i = 0, n = strlen(origin); i < sizeof(id); i++, n += 2)
            (void)snprintf(origin + n, sizeof(origin) - n, "%02x", id[i]);
        rc = make_secret(origin, &a->now, err);
        if (rc == BH_OK)
            rc = bh_audit_keyfile_save(a->key_path, &a->now, err);
    }
    if (rc < 0)
        return rc;
    (void)snprintf(h.origin, sizeof(h.origin), "%s", a->now.key.name);
    rc = bh_store_begin(a->store, err);
    if (rc < 0)
        return rc;
    rc = bh_audit_head_begin(a->store, &h, err);
    if (rc == BH_OK)
        rc = add_key_record(a, &h, &a->now.key, &a->now, &who, err);
    if (rc == BH_OK)
        rc = add_checkpoint(a, &h, &a->now, err);
    if (rc == BH_OK)
        return bh_store_commit(a->store, err);
    bh_store_rollback(a->store);
    return rc;
}

/* The key file must hold the key that the log says; else the one that a rotation left beside it. */
static int find_key(struct bh_audit *a, const char *origin, const struct bh_audit_key *want, bool replace,
                    struct bh_err *err)
{
    char path[PATH_MAX];
    struct bh_audit_secret beside;
    int rc = bh_audit_keyfile_load(a->key_path, &a->now, err);
    if (rc == BH_OK && bh_audit_key_eq(&a->now.key, want))
        return BH_OK;
    if (rc < 0 && rc != BH_NOT_FOUND)
        return rc;
    rc = new_path(a, path, err);
    if (rc < 0)
        return rc;
    rc = bh_audit_keyfile_load(path, &beside, err);
    if (rc == BH_OK && bh_audit_key_eq(&beside.key, want)) {
        a->now = beside;
        return bh_audit_keyfile_move(path, a->key_path, err);
    }
    if (!replace)
        return bh_fail(err, BH_REFUSED,
                       "'%.200s' does not hold the key %08" PRIx32
                       " of this audit log: put it back from a backup, or go on "
                       "with a new key and a mark in the log",
                       a->key_path, want->id);
    const struct bh_audit_event who = {.sub = "service:audit", .reason = "the key before it was lost"};
    struct rotation r = {.who = &who, .lost = true};
    return rotate(a, origin, &r, err);
}

static int go_on(struct bh_audit *a, bool replace_lost_key, struct bh_err *err)
{
    struct bh_audit_head h;
    struct bh_audit_record r;
    struct bh_audit_key want;
    struct bh_arena arena = {0};
    int rc = bh_audit_head_load(a->store, &h, err);
    if (rc == BH_OK)
        rc = bh_audit_key_row(a->store, UINT64_MAX, &arena, &r, err);
    if (rc == BH_OK)
        rc =
            bh_audit_key_parse(r.is.after ? r.is.after : "", r.is.after ? strlen(r.is.after) : 0, &want, err);
    if (rc == BH_OK)
        rc = find_key(a, h.origin, &want, replace_lost_key, err);
    bh_arena_fini(&arena);
    return rc;
}

static int begin_or_go_on(struct bh_audit *a, const struct bh_audit_options *o, struct bh_err *err)
{
    struct bh_audit_head h;
    struct bh_audit_event e = {.event = BH_AUDIT_AUDIT_START, .sub = "service:audit"};
    int rc = bh_audit_head_load(a->store, &h, err);
    if (rc == BH_NOT_FOUND)
        rc = begin_log(a, err);
    else if (rc == BH_OK)
        rc = go_on(a, o->replace_lost_key, err);
    return rc < 0 ? rc : in_transaction(a, do_start, &e, err);
}

static char *copy_text(const char *s)
{
    const size_t n = s ? strlen(s) : 0;
    char *copy = bh_alloc(n + 1, 1);
    if (n)
        memcpy(copy, s, n);
    return copy;
}

int bh_audit_open(struct bh_store *store, const struct bh_audit_options *o, struct bh_audit **ret,
                  struct bh_err *err)
{
    if (bh_store_in_transaction(store))
        return bh_fail(err, BH_INVALID, "the audit log is opened outside of transactions");
    struct bh_audit *a = bh_alloc(1, sizeof(*a));
    a->store = store;
    a->component = copy_text(o->component);
    a->version = copy_text(o->version);
    a->checkpoint_records = o->checkpoint_records ? o->checkpoint_records : BH_AUDIT_CHECKPOINT_RECORDS;
    a->checkpoint_ms = o->checkpoint_ms ? o->checkpoint_ms : BH_AUDIT_CHECKPOINT_MS;
    a->clock_ns = o->clock_ns;
    a->clock_arg = o->clock_arg;
    (void)gethostname(a->host, sizeof(a->host) - 1);
    if (bh_sysfile_line("/proc/sys/kernel/random/boot_id", a->boot_id, sizeof(a->boot_id), NULL) < 0)
        a->boot_id[0] = '\0';
    int rc = snprintf(a->key_path, sizeof(a->key_path), "%s", o->key_path) < (int)sizeof(a->key_path)
                 ? begin_or_go_on(a, o, err)
                 : bh_fail(err, BH_TOO_LARGE, "the path of the audit key is too long");
    if (rc < 0) {
        bh_audit_close(a);
        return rc;
    }
    *ret = a;
    return BH_OK;
}

void bh_audit_close(struct bh_audit *a)
{
    if (!a)
        return;
    explicit_bzero(&a->now, sizeof(a->now));
    free(a->component);
    free(a->version);
    free(a);
}
