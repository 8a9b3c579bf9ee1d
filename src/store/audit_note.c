/* SPDX-License-Identifier: Apache-2.0 */
/* audit_note.c - the texts of keys and checkpoints, written and taken apart; every byte of them has one meaning. */
#include "store/audit_note.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ED25519 = 1 }; /* the algorithm's byte in signed notes */
static const char secret_head[] = "PRIVATE+KEY+";
static const char dash[] = "\xe2\x80\x94 "; /* a signature line begins with an em dash and a blank */

/* ---- keys ---- */

bool bh_audit_key_eq(const struct bh_audit_key *a, const struct bh_audit_key *b)
{
    return bh_str_eq(a->name, b->name) && memcmp(a->public, b->public, sizeof(a->public)) == 0;
}

/* A name of a key or a log: printable, in one word. */
static bool name_ok(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f || s[i] == '+')
            return false;
    return n > 0 && n < BH_NOTE_NAME_MAX;
}

static void copy_name(char ret[BH_NOTE_NAME_MAX], const char *s, size_t n)
{
    memcpy(ret, s, n);
    ret[n] = '\0';
}

int bh_audit_key_make(const char *name, const uint8_t public[BH_ED25519_BYTES], struct bh_audit_key *ret,
                      struct bh_err *err)
{
    struct bh_hash h;
    uint8_t tail[2 + BH_ED25519_BYTES] = {'\n', ED25519};
    char text[BH_NOTE_NAME_MAX + sizeof(tail)];
    const size_t n = strlen(name);
    if (!name_ok(name, n))
        return bh_fail(err, BH_INVALID, "'%.60s' is no name for a key: one word without a plus", name);
    memcpy(tail + 2, public, BH_ED25519_BYTES);
    memcpy(text, name, n);
    memcpy(text + n, tail, sizeof(tail));
    bh_hash_plain(text, n + sizeof(tail), &h);
    *ret = (struct bh_audit_key){0};
    copy_name(ret->name, name, n);
    memcpy(ret->public, public, BH_ED25519_BYTES);
    ret->id = (uint32_t)h.at[0] << 24 | (uint32_t)h.at[1] << 16 | (uint32_t)h.at[2] << 8 | h.at[3];
    return BH_OK;
}

static void format_key(const char *head, const struct bh_audit_key *k, const uint8_t key[BH_ED25519_BYTES],
                       char buf[BH_KEY_TEXT_MAX])
{
    uint8_t with_kind[1 + BH_ED25519_BYTES] = {ED25519};
    struct bh_buf b64;
    memcpy(with_kind + 1, key, BH_ED25519_BYTES);
    bh_buf_init(&b64, 64);
    bh_base64_add(&b64, with_kind, sizeof(with_kind));
    (void)snprintf(buf, BH_KEY_TEXT_MAX, "%s%s+%08" PRIx32 "+%s", head, k->name, k->id, bh_buf_text(&b64));
    explicit_bzero(with_kind, sizeof(with_kind));
    if (b64.at)
        explicit_bzero(b64.at, b64.n);
    bh_buf_fini(&b64);
}

const char *bh_audit_key_format(const struct bh_audit_key *k, char buf[BH_KEY_TEXT_MAX])
{
    format_key("", k, k->public, buf);
    return buf;
}

void bh_audit_secret_format(const struct bh_audit_key *k, const struct bh_sign_key *secret,
                            char buf[BH_KEY_TEXT_MAX])
{
    format_key(secret_head, k, secret->seed, buf);
}

static void trim(const char **text, size_t *n)
{
    while (*n && bh_is_space(**text))
        (*text)++, (*n)--;
    while (*n && bh_is_space((*text)[*n - 1]))
        (*n)--;
}

/* `name+id+base64` into its parts; the id is compared by the caller, who knows what it is of. */
static bool split_key(const char *text, size_t n, char name[BH_NOTE_NAME_MAX], char id[9],
                      uint8_t key[BH_ED25519_BYTES])
{
    const char *plus = memchr(text, '+', n);
    if (!plus || !name_ok(text, (size_t)(plus - text)))
        return false;
    const size_t left = n - (size_t)(plus - text) - 1;
    uint8_t with_kind[1 + BH_ED25519_BYTES];
    if (left < 9 || plus[9] != '+')
        return false;
    if (bh_base64_parse(plus + 10, left - 9, with_kind, sizeof(with_kind)) != (long)sizeof(with_kind) ||
        with_kind[0] != ED25519)
        return false;
    copy_name(name, text, (size_t)(plus - text));
    memcpy(id, plus + 1, 8);
    id[8] = '\0';
    memcpy(key, with_kind + 1, BH_ED25519_BYTES);
    explicit_bzero(with_kind, sizeof(with_kind));
    return true;
}

static int check_id(const struct bh_audit_key *k, const char id[9], struct bh_err *err)
{
    char want[9];
    (void)snprintf(want, sizeof(want), "%08" PRIx32, k->id);
    if (bh_str_eq(id, want))
        return BH_OK;
    return bh_fail(err, BH_INVALID, "the key says it is '%s' and is '%s': it was cut or changed", id, want);
}

int bh_audit_key_parse(const char *text, size_t n, struct bh_audit_key *ret, struct bh_err *err)
{
    char name[BH_NOTE_NAME_MAX], id[9];
    uint8_t public[BH_ED25519_BYTES];
    struct bh_audit_key k;
    trim(&text, &n);
    if (n > sizeof(secret_head) && memcmp(text, secret_head, sizeof(secret_head) - 1) == 0)
        return bh_fail(err, BH_INVALID, "a secret key stands where a public one is needed");
    if (!split_key(text, n, name, id, public))
        return bh_fail(err, BH_INVALID,
                       "no public key: it needs the form NAME+ID+BASE64 with an Ed25519 key");
    int rc = bh_audit_key_make(name, public, &k, err);
    if (rc == BH_OK)
        rc = check_id(&k, id, err);
    if (rc == BH_OK)
        *ret = k;
    return rc;
}

int bh_audit_secret_parse(const char *text, size_t n, struct bh_audit_key *ret,
                          struct bh_sign_key *ret_secret, struct bh_err *err)
{
    char name[BH_NOTE_NAME_MAX], id[9];
    struct bh_sign_key secret;
    struct bh_audit_key k;
    trim(&text, &n);
    const size_t head = sizeof(secret_head) - 1;
    if (n <= head || memcmp(text, secret_head, head) != 0 ||
        !split_key(text + head, n - head, name, id, secret.seed))
        return bh_fail(err, BH_INVALID, "no secret key: it needs the form PRIVATE+KEY+NAME+ID+BASE64");
    int rc = bh_sign_key_public(&secret, err);
    if (rc == BH_OK)
        rc = bh_audit_key_make(name, secret.public, &k, err);
    if (rc == BH_OK)
        rc = check_id(&k, id, err);
    if (rc == BH_OK) {
        *ret = k;
        *ret_secret = secret;
    }
    explicit_bzero(&secret, sizeof(secret));
    return rc;
}

void bh_audit_key_statement(const struct bh_audit_key *k, uint64_t seq, const struct bh_hash *prev,
                            struct bh_buf *out)
{
    char hex[BH_HASH_HEX], key[BH_KEY_TEXT_MAX];
    bh_buf_printf(out, "bulkhead audit key\n%s\n%" PRIu64 "\n%s\n%s\n", k->name, seq, bh_hash_hex(prev, hex),
                  bh_audit_key_format(k, key));
}

/* ---- checkpoints ---- */

void bh_checkpoint_text(const char *origin, uint64_t size, const struct bh_hash *root, struct bh_buf *out)
{
    bh_buf_printf(out, "%s\n%" PRIu64 "\n", origin, size);
    bh_base64_add(out, root->at, BH_HASH_BYTES);
    bh_buf_str(out, "\n");
}

int bh_checkpoint_sign(struct bh_buf *note, size_t n_text, const struct bh_audit_key *k,
                       const struct bh_sign_key *secret, struct bh_err *err)
{
    uint8_t with_id[4 + BH_SIGNATURE_BYTES] = {(uint8_t)(k->id >> 24), (uint8_t)(k->id >> 16),
                                               (uint8_t)(k->id >> 8), (uint8_t)k->id};
    int rc = bh_sign(secret, note->at, n_text, with_id + 4, err);
    if (rc < 0)
        return rc;
    if (note->n == n_text)
        bh_buf_str(note, "\n");
    bh_buf_printf(note, "%s%s ", dash, k->name);
    bh_base64_add(note, with_id, sizeof(with_id));
    bh_buf_str(note, "\n");
    return note->full ? bh_fail(err, BH_TOO_LARGE, "the checkpoint has too many signatures") : BH_OK;
}

/* The next line, without its newline; false: there is none that ends. */
static bool next_line(const char **at, const char *end, const char **ret, size_t *ret_n)
{
    const char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!newline)
        return false;
    *ret = *at;
    *ret_n = (size_t)(newline - *at);
    *at = newline + 1;
    return true;
}

static int malformed(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_INVALID, "no checkpoint: %s", what);
}

/* Origin, size, root and whatever else is signed, up to the empty line. */
static int parse_head(const char *text, const char **at, const char *end, struct bh_checkpoint *c,
                      struct bh_err *err)
{
    const char *line;
    char number[24];
    size_t n;
    if (!next_line(at, end, &line, &n) || !name_ok(line, n))
        return malformed(err, "the first line is no name of a log");
    copy_name(c->origin, line, n);
    if (!next_line(at, end, &line, &n) || n == 0 || n >= sizeof(number) || (n > 1 && line[0] == '0'))
        return malformed(err, "the second line is no number of records");
    memcpy(number, line, n);
    number[n] = '\0';
    if (strlen(number) != n || bh_uint_parse(number, INT64_MAX, &c->size, NULL) < 0)
        return malformed(err, "the second line is no number of records");
    if (!next_line(at, end, &line, &n) ||
        bh_base64_parse(line, n, c->root.at, BH_HASH_BYTES) != BH_HASH_BYTES)
        return malformed(err, "the third line is no root hash in base64");
    do {
        c->n_signed = (size_t)(*at - text);
        if (!next_line(at, end, &line, &n))
            return malformed(err, "no empty line stands before the signatures");
    } while (n);
    return BH_OK;
}

static int parse_signature(const char *line, size_t n, struct bh_checkpoint *c, struct bh_err *err)
{
    const size_t head = sizeof(dash) - 1;
    uint8_t with_id[256];
    const char *blank = n > head && memcmp(line, dash, head) == 0 ? memchr(line + head, ' ', n - head) : NULL;
    if (!blank || !name_ok(line + head, (size_t)(blank - line) - head))
        return malformed(err, "a line below the empty one is no signature");
    const long len = bh_base64_parse(blank + 1, n - (size_t)(blank + 1 - line), with_id, sizeof(with_id));
    if (len < 5)
        return malformed(err, "a signature is not in base64");
    if (len != 4 + BH_SIGNATURE_BYTES)
        return BH_OK; /* of another kind: somebody else's */
    if (c->n_signatures == BH_NOTE_SIGNATURES)
        return malformed(err, "too many signatures");
    struct bh_note_signature *s = &c->signature[c->n_signatures++];
    copy_name(s->name, line + head, (size_t)(blank - line) - head);
    s->id = (uint32_t)with_id[0] << 24 | (uint32_t)with_id[1] << 16 | (uint32_t)with_id[2] << 8 | with_id[3];
    memcpy(s->at, with_id + 4, BH_SIGNATURE_BYTES);
    return BH_OK;
}

int bh_checkpoint_parse(const char *text, size_t n, struct bh_checkpoint *ret, struct bh_err *err)
{
    const char *at = text, *end = text + n, *line;
    size_t n_line;
    *ret = (struct bh_checkpoint){0};
    if (n > BH_NOTE_MAX)
        return malformed(err, "it is too long");
    int rc = parse_head(text, &at, end, ret, err);
    while (rc == BH_OK && next_line(&at, end, &line, &n_line))
        rc = parse_signature(line, n_line, ret, err);
    if (rc == BH_OK && at != end)
        rc = malformed(err, "the last line does not end");
    if (rc == BH_OK && ret->n_signatures == 0)
        rc = malformed(err, "nobody signed it");
    return rc;
}

bool bh_checkpoint_signed_by(const struct bh_checkpoint *c, const char *text, const struct bh_audit_key *k)
{
    for (size_t i = 0; i < c->n_signatures; i++) {
        const struct bh_note_signature *s = &c->signature[i];
        if (s->id == k->id && bh_str_eq(s->name, k->name) &&
            bh_sign_check(k->public, text, c->n_signed, s->at))
            return true;
    }
    return false;
}
