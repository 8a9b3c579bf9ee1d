/* SPDX-License-Identifier: Apache-2.0 */
/* audit_record.c - one table of fields, in the order of their keys, drives the writing and the reading. */
#include "store/audit_record.h"

#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "core/policy/audit_class.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S   INT64_C(1000000000)
#define SEQ_MAX    ((UINT64_C(1) << 53) - 1)
#define YEAR_10000 INT64_C(253402300800)

const char *const bh_audit_names[BH_AUDIT_EVENTS] = {
#define BH_AUDIT_EVENT(id, name) [BH_AUDIT_##id] = name,
#include "store/audit_events.def"
#undef BH_AUDIT_EVENT
};
const char *const bh_audit_outcomes[BH_AUDIT_OUTCOMES] = {"success", "failure", "denied"};

enum bh_audit_kind bh_audit_kind_find(const char *name)
{
    unsigned k = 0;
    while (k < BH_AUDIT_EVENTS && !bh_str_eq(bh_audit_names[k], name))
        k++;
    return (enum bh_audit_kind)k;
}

bool bh_audit_is_optional(enum bh_audit_kind kind)
{
    char class_name[32];
    const char *name = bh_audit_names[kind];
    (void)snprintf(class_name, sizeof(class_name), "%.*s", (int)strcspn(name, "."), name);
    return bh_audit_class_optional(class_name);
}

/* ---- hashes ---- */

void bh_audit_hash(const char *body, size_t n, struct bh_hash *ret)
{
    uint8_t length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
    bh_hash_of(0, length, sizeof(length), body, n, ret);
}

void bh_audit_chain(const struct bh_hash *prev, const struct bh_hash *hash, struct bh_hash *ret)
{
    struct bh_hash both[2] = {*prev, *hash};
    bh_hash_of(1, both[0].at, BH_HASH_BYTES, both[1].at, BH_HASH_BYTES, ret);
}

/* ---- instants ---- */

bool bh_audit_time_format(int64_t utc_ns, char buf[BH_AUDIT_TIME_MAX])
{
    const int64_t s = utc_ns / NS_PER_S;
    struct bh_unit_text day;
    buf[0] = '\0';
    if (utc_ns < 0 || s >= YEAR_10000)
        return false;
    const unsigned of_day = (unsigned)(s % 86400);
    (void)snprintf(buf, BH_AUDIT_TIME_MAX, "%.10sT%02u:%02u:%02u.%09uZ",
                   bh_date_format((int32_t)(s / 86400), &day), of_day / 3600, of_day / 60 % 60, of_day % 60,
                   (unsigned)(utc_ns % NS_PER_S));
    return true;
}

bool bh_audit_time_parse(const char *s, int64_t *ret_utc_ns)
{
    char whole[24];
    uint64_t ns;
    int64_t seconds;
    const char *dot = strchr(s, '.');
    if (!dot || dot - s != 19 || strlen(dot) != 11 || dot[10] != 'Z')
        return false;
    (void)snprintf(whole, sizeof(whole), "%.19sZ", s);
    char digits[10];
    (void)snprintf(digits, sizeof(digits), "%.9s", dot + 1);
    if (bh_instant_parse(whole, &seconds, NULL) < 0 || bh_uint_parse(digits, 999999999, &ns, NULL) < 0)
        return false;
    if (seconds < 0 || seconds > (INT64_MAX - (int64_t)ns) / NS_PER_S)
        return false;
    *ret_utc_ns = seconds * NS_PER_S + (int64_t)ns;
    return true;
}

/* ---- the table ---- */

enum kind { TEXT, EVENT, OUTCOME, SEQ, UID, TIME, COUNTER, HASH, RULES };

struct field {
    const char *group; /* the object it stands in, or NULL */
    const char *key;
    enum kind kind;
    size_t at;
};
#define AT(member) offsetof(struct bh_audit_record, member)

/* In the order of RFC 8785: a group stands where its own key does. */
static const struct field fields[] = {
    {NULL, "action", TEXT, AT(is.action)},
    {NULL, "after", TEXT, AT(is.after)},
    {NULL, "before", TEXT, AT(is.before)},
    {NULL, "boot", TEXT, AT(boot_id)},
    {NULL, "event", EVENT, AT(is.event)},
    {NULL, "host", TEXT, AT(host)},
    {NULL, "mono", COUNTER, AT(mono_ns)},
    {"object", "id", TEXT, AT(is.object_id)},
    {"object", "type", TEXT, AT(is.object_type)},
    {"origin", "component", TEXT, AT(component)},
    {"origin", "version", TEXT, AT(version)},
    {NULL, "outcome", OUTCOME, AT(is.outcome)},
    {NULL, "policy", TEXT, AT(is.policy_version)},
    {NULL, "prev", HASH, AT(prev)},
    {"principal", "authn", TEXT, AT(is.authn)},
    {"principal", "idp", TEXT, AT(is.idp)},
    {"principal", "session", TEXT, AT(is.session)},
    {"principal", "sub", TEXT, AT(is.sub)},
    {"principal", "uid", UID, AT(is.uid)},
    {NULL, "reason", TEXT, AT(is.reason)},
    {NULL, "request", TEXT, AT(is.request_id)},
    {NULL, "rules", RULES, AT(is.rule_ids)},
    {NULL, "seq", SEQ, AT(seq)},
    {NULL, "signature", TEXT, AT(signature)},
    {NULL, "src", TEXT, AT(is.src_addr)},
    {NULL, "tenant", TEXT, AT(is.tenant)},
    {NULL, "time", TIME, AT(utc_ns)},
};

static const char *text_of(const struct bh_audit_record *r, const struct field *f)
{
    const char *s;
    memcpy(&s, (const char *)r + f->at, sizeof(s));
    return s;
}

static bool is_there(const struct bh_audit_record *r, const struct field *f)
{
    switch (f->kind) {
    case TEXT:
        return text_of(r, f) && *text_of(r, f);
    case UID:
        return r->is.has_uid;
    case RULES:
        return r->is.n_rule_ids > 0;
    default:
        return true;
    }
}

/* ---- writing ---- */

/* How long s is when it is written out as UTF-8, where what is none is replaced. */
static size_t clean_len(const unsigned char *s)
{
    size_t n = 0;
    for (size_t len; *s; s += len ? len : 1, n += len ? len : 3)
        len = bh_utf8_len(s);
    return n;
}

void bh_audit_clean(struct bh_buf *out, const char *text)
{
    static const char ellipsis[] = "\xe2\x80\xa6", unknown[] = "\xef\xbf\xbd";
    const unsigned char *s = (const unsigned char *)text;
    const bool cut = clean_len(s) > BH_AUDIT_TEXT_MAX;
    const size_t room = BH_AUDIT_TEXT_MAX - (cut ? sizeof(ellipsis) - 1 : 0);
    for (size_t used = 0; *s;) {
        const size_t len = bh_utf8_len(s);
        used += len ? len : sizeof(unknown) - 1;
        if (used > room)
            break;
        bh_buf_add(out, len ? (const char *)s : unknown, len ? len : sizeof(unknown) - 1);
        s += len ? len : 1;
    }
    if (cut)
        bh_buf_str(out, ellipsis);
}

/* One byte of clean text as RFC 8785 writes it. */
static void add_byte(struct bh_buf *out, char c)
{
    static const char short_from[] = "\b\t\n\f\r\"\\", short_to[] = "btnfr\"\\";
    const char *at = strchr(short_from, c);
    if (at) {
        const char two[2] = {'\\', short_to[at - short_from]};
        bh_buf_add(out, two, 2);
    } else if ((unsigned char)c < 0x20) {
        bh_buf_printf(out, "\\u%04x", (unsigned)c);
    } else {
        bh_buf_add(out, &c, 1);
    }
}

void bh_audit_quote(struct bh_buf *out, const char *text)
{
    struct bh_buf clean;
    bh_buf_init(&clean, BH_AUDIT_TEXT_MAX);
    bh_audit_clean(&clean, text);
    bh_buf_add(out, "\"", 1);
    for (const char *s = bh_buf_text(&clean); *s; s++)
        add_byte(out, *s);
    bh_buf_add(out, "\"", 1);
    bh_buf_fini(&clean);
}

static void add_value(struct bh_buf *out, const struct bh_audit_record *r, const struct field *f)
{
    char buf[BH_HASH_HEX];
    switch (f->kind) {
    case TEXT:
        bh_audit_quote(out, text_of(r, f));
        break;
    case EVENT:
        bh_audit_quote(out, bh_audit_names[r->is.event]);
        break;
    case OUTCOME:
        bh_audit_quote(out, bh_audit_outcomes[r->is.outcome]);
        break;
    case SEQ:
        bh_buf_printf(out, "%" PRIu64, r->seq);
        break;
    case UID:
        bh_buf_printf(out, "%" PRIu32, r->is.uid);
        break;
    case TIME:
        (void)bh_audit_time_format(r->utc_ns, buf);
        bh_audit_quote(out, buf);
        break;
    case COUNTER:
        bh_buf_printf(out, "\"%" PRIu64 "\"", r->mono_ns);
        break;
    case HASH:
        bh_audit_quote(out, bh_hash_hex(&r->prev, buf));
        break;
    case RULES:
        for (size_t i = 0; i < r->is.n_rule_ids; i++) {
            bh_buf_str(out, i ? "," : "[");
            bh_audit_quote(out, r->is.rule_ids[i]);
        }
        bh_buf_str(out, "]");
        break;
    }
}

int bh_audit_encode(const struct bh_audit_record *r, struct bh_buf *out, struct bh_err *err)
{
    const char *group = NULL;
    bool first = true;
    char time[BH_AUDIT_TIME_MAX];
    if (r->is.event >= BH_AUDIT_EVENTS || r->is.outcome >= BH_AUDIT_OUTCOMES)
        return bh_fail(err, BH_INVALID, "no audit event %u with outcome %u", r->is.event, r->is.outcome);
    if (!bh_audit_time_format(r->utc_ns, time))
        return bh_fail(err, BH_INVALID, "the clock shows no year from 1970 to 9999");
    if (r->seq > SEQ_MAX || r->is.n_rule_ids > BH_AUDIT_RULES_MAX)
        return bh_fail(err, BH_TOO_LARGE, "an audit record needs a number below 2^53 and at most %d rules",
                       BH_AUDIT_RULES_MAX);
    bh_buf_str(out, "{");
    for (const struct field *f = fields; f < fields + BH_COUNT_OF(fields); f++) {
        if (!is_there(r, f))
            continue;
        if (group && !bh_str_eq(group, f->group))
            bh_buf_str(out, "}");
        if (!first)
            bh_buf_str(out, ",");
        if (f->group && !bh_str_eq(group, f->group))
            bh_buf_printf(out, "\"%s\":{", f->group);
        bh_buf_printf(out, "\"%s\":", f->key);
        add_value(out, r, f);
        group = f->group;
        first = false;
    }
    bh_buf_str(out, "}");
    return out->full ? bh_fail(err, BH_TOO_LARGE, "the audit record does not fit in its buffer") : BH_OK;
}

/* ---- reading ---- */

struct reading {
    struct bh_json_reader json;
    struct bh_arena *arena;
    struct bh_audit_record *r;
    char text[BH_AUDIT_TEXT_MAX + 1];
    const char *wrong; /* the key whose value is none of its kind */
};

static bool read_text(struct reading *d)
{
    return bh_json_read_str(&d->json, d->text, sizeof(d->text));
}

static bool read_rules(struct reading *d)
{
    const char **ids = bh_arena_alloc(d->arena, BH_AUDIT_RULES_MAX * sizeof(*ids));
    size_t n = 0;
    if (!bh_json_read_open(&d->json, '['))
        return false;
    while (bh_json_read_item(&d->json)) {
        if (n == BH_AUDIT_RULES_MAX || !read_text(d))
            return false;
        ids[n++] = bh_arena_str(d->arena, d->text);
    }
    d->r->is.rule_ids = ids;
    d->r->is.n_rule_ids = n;
    return true;
}

static bool read_outcome(struct reading *d)
{
    for (unsigned i = 0; i < BH_AUDIT_OUTCOMES; i++)
        if (bh_str_eq(bh_audit_outcomes[i], d->text)) {
            d->r->is.outcome = (enum bh_audit_outcome)i;
            return true;
        }
    return false;
}

static bool read_value(struct reading *d, const struct field *f)
{
    struct bh_audit_record *r = d->r;
    uint64_t v;
    switch (f->kind) {
    case SEQ:
        return bh_json_read_u64(&d->json, &r->seq);
    case UID:
        if (!bh_json_read_u64(&d->json, &v) || v > UINT32_MAX)
            return false;
        r->is.uid = (uint32_t)v;
        return r->is.has_uid = true;
    case RULES:
        return read_rules(d);
    default:
        break;
    }
    if (!read_text(d))
        return false;
    const char *copy;
    switch (f->kind) {
    case EVENT:
        return (r->is.event = bh_audit_kind_find(d->text)) != BH_AUDIT_EVENTS;
    case OUTCOME:
        return read_outcome(d);
    case TIME:
        return bh_audit_time_parse(d->text, &r->utc_ns);
    case COUNTER:
        return bh_uint_parse(d->text, UINT64_MAX, &r->mono_ns, NULL) == BH_OK;
    case HASH:
        return strlen(d->text) == BH_HASH_HEX - 1 && bh_hash_parse(d->text, &r->prev);
    default:
        copy = bh_arena_str(d->arena, d->text);
        memcpy((char *)r + f->at, &copy, sizeof(copy));
        return true;
    }
}

static const struct field *find_field(const char *group, const char *key)
{
    for (const struct field *f = fields; f < fields + BH_COUNT_OF(fields); f++)
        if (bh_str_eq(f->group, group) && bh_str_eq(f->key, key))
            return f;
    return NULL;
}

static bool read_members(struct reading *d, const char *group);

/* A value of the record, or a whole group of them. */
static bool read_member(struct reading *d, const char *group, const char *key)
{
    static const char *const groups[] = {"object", "origin", "principal"};
    const struct field *f = find_field(group, key);
    if (f) {
        if (!read_value(d, f))
            d->wrong = f->key;
        return !d->wrong;
    }
    for (size_t i = 0; !group && i < BH_COUNT_OF(groups); i++)
        if (bh_str_eq(groups[i], key))
            return read_members(d, groups[i]);
    d->wrong = "a key that no record has";
    return false;
}

static bool read_members(struct reading *d, const char *group)
{
    char key[16];
    if (!bh_json_read_open(&d->json, '{'))
        return false;
    while (bh_json_read_member(&d->json, key, sizeof(key)))
        if (!read_member(d, group, key))
            return false;
    return !d->json.wrong;
}

int bh_audit_decode(const char *body, size_t n, struct bh_arena *arena, struct bh_audit_record *ret,
                    struct bh_err *err)
{
    BH_AUTOFREE struct reading *d = bh_alloc(1, sizeof(*d));
    struct bh_audit_record r = {0};
    struct bh_buf again;
    d->arena = arena;
    d->r = &r;
    bh_json_read_init(&d->json, body, n);
    if (!read_members(d, NULL) || !bh_json_read_end(&d->json))
        return bh_fail(err, BH_INVALID, "no audit record: %s",
                       d->wrong ? d->wrong : "it is not JSON of one object");
    /* There is one way to write a record; anything else could be read in two ways. */
    bh_buf_init(&again, BH_AUDIT_BODY_MAX);
    int rc = bh_audit_encode(&r, &again, err);
    if (rc == BH_OK && (again.n != n || memcmp(again.at, body, n) != 0))
        rc = bh_fail(err, BH_INVALID, "no audit record: it is not written in the one form that records have");
    bh_buf_fini(&again);
    if (rc == BH_OK)
        *ret = r;
    return rc;
}
