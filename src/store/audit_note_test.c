/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audit_note.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

/* The key of C2SP's signed-note and of Go's note package, with the secret that they publish. */
static const char peter_public[] = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
static const char peter_secret[] =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
static const char peter_note[] =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
    "\xe2\x80\x94 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

TEST(keys_and_signatures_are_those_of_signed_notes)
{
    struct bh_audit_key k, p;
    struct bh_sign_key secret;
    struct bh_err err;
    char text[BH_KEY_TEXT_MAX];
    CHECK_EQ(bh_audit_key_parse(peter_public, strlen(peter_public), &k, &err), 0);
    CHECK_EQ(k.id, 0xc74f20a3);
    CHECK_EQ(bh_audit_secret_parse(peter_secret, strlen(peter_secret), &p, &secret, &err), 0);
    CHECK(bh_audit_key_eq(&k, &p));
    CHECK_STR(bh_audit_key_format(&p, text), peter_public);
    bh_audit_secret_format(&p, &secret, text);
    CHECK_STR(text, peter_secret);
    /* that text is no checkpoint; its signature is made in the same way */
    const size_t n = (size_t)(strstr(peter_note, "\n\n") + 1 - peter_note);
    struct bh_buf note;
    bh_buf_init(&note, BH_NOTE_MAX);
    bh_buf_add(&note, peter_note, n);
    CHECK_EQ(bh_checkpoint_sign(&note, n, &p, &secret, &err), 0);
    CHECK_STR(bh_buf_text(&note), peter_note);
    bh_buf_fini(&note);
}

TEST(what_is_no_key_is_refused)
{
    static const char *const bad[] = {"",
                                      "PeterNeumann",
                                      "PeterNeumann+c74f20a3",
                                      "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
                                      "PeterNeumann+c74f20a3+AhpcQcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
                                      "PeterNeumann+c74f20a3+AhpcQQcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
                                      "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
                                      "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"};
    struct bh_audit_key k;
    struct bh_sign_key secret;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK_EQ(bh_audit_key_parse(bad[i], strlen(bad[i]), &k, &err), BH_INVALID);
    CHECK_EQ(bh_audit_key_parse(peter_secret, strlen(peter_secret), &k, &err), BH_INVALID);
    CHECK(strstr(err.msg, "secret"));
    CHECK_EQ(bh_audit_secret_parse(peter_public, strlen(peter_public), &k, &secret, &err), BH_INVALID);
    const uint8_t zero[32] = {0};
    CHECK_EQ(bh_audit_key_make("a b", zero, &k, &err), BH_INVALID);
    CHECK_EQ(bh_audit_key_make("a+b", zero, &k, &err), BH_INVALID);
    CHECK_EQ(bh_audit_key_make("", zero, &k, &err), BH_INVALID);
}

struct signer {
    struct bh_audit_key key;
    struct bh_sign_key secret;
};

static bool make_signer(struct signer *s)
{
    return bh_sign_key_new(&s->secret, NULL) == BH_OK &&
           bh_audit_key_make("example.org/log", s->secret.public, &s->key, NULL) == BH_OK;
}

static bool make_note(struct bh_buf *note, const struct signer *a, const struct signer *b)
{
    struct bh_hash root;
    bh_hash_plain("root", 4, &root);
    bh_buf_init(note, BH_NOTE_MAX);
    bh_checkpoint_text("example.org/log", 120, &root, note);
    const size_t n = note->n;
    return bh_checkpoint_sign(note, n, &a->key, &a->secret, NULL) == BH_OK &&
           (!b || bh_checkpoint_sign(note, n, &b->key, &b->secret, NULL) == BH_OK);
}

TEST(a_checkpoint_is_read_back_and_held_by_its_keys)
{
    struct signer a, b, stranger;
    struct bh_buf note;
    struct bh_checkpoint c;
    struct bh_err err;
    CHECK(make_signer(&a) && make_signer(&b) && make_signer(&stranger));
    CHECK(make_note(&note, &a, &b));
    CHECK_EQ(bh_checkpoint_parse(note.at, note.n, &c, &err), 0);
    CHECK_STR(c.origin, "example.org/log");
    CHECK_EQ(c.size, 120);
    CHECK_EQ(c.n_signatures, 2);
    CHECK(bh_checkpoint_signed_by(&c, note.at, &a.key));
    CHECK(bh_checkpoint_signed_by(&c, note.at, &b.key));
    CHECK(!bh_checkpoint_signed_by(&c, note.at, &stranger.key));
    bh_buf_fini(&note);
}

TEST(no_bit_of_a_checkpoint_can_be_changed)
{
    struct signer a;
    struct bh_buf note;
    struct bh_checkpoint c;
    CHECK(make_signer(&a) && make_note(&note, &a, NULL));
    for (size_t i = 0; i < note.n; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            note.at[i] = (char)(note.at[i] ^ 1 << bit);
            CHECK(bh_checkpoint_parse(note.at, note.n, &c, NULL) < 0 ||
                  !bh_checkpoint_signed_by(&c, note.at, &a.key));
            note.at[i] = (char)(note.at[i] ^ 1 << bit);
        }
    for (size_t n = 0; n < note.n; n++)
        CHECK(bh_checkpoint_parse(note.at, n, &c, NULL) < 0);
    bh_buf_fini(&note);
}

TEST(what_is_no_checkpoint_is_refused_and_strangers_are_read_past)
{
    static const char root[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    static const struct {
        const char *size, *tail;
        bool good;
    } cases[] = {
        {"1", "\n\n\xe2\x80\x94 w AAAAAAAA\n", false}, /* only somebody else's: nobody signed it for us */
        {"01", "\n\n", false},
        {"-1", "\n\n", false},
        {"", "\n\n", false},
        {"99999999999999999999", "\n\n", false},
        {"1", "\n", false},
        {"1", "\n\n", false},
        {"1", "\n\n- w AAAAAAAA\n", false},
        {"1", "\n\n\xe2\x80\x94 w\n", false},
        {"1", "\n\n\xe2\x80\x94 w AAAA AAAA\n", false},
    };
    struct bh_checkpoint c;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text), "log\n%s\n%s%s", cases[i].size, root, cases[i].tail);
        CHECK_EQ(bh_checkpoint_parse(text, strlen(text), &c, NULL), BH_INVALID);
    }
    /* a witness' line, which has a time in it, and a line of the log's own */
    struct signer a;
    struct bh_buf note;
    CHECK(make_signer(&a) && make_note(&note, &a, NULL));
    uint8_t cosigned[4 + 8 + 64] = {1};
    bh_buf_str(&note, "\xe2\x80\x94 witness.example ");
    bh_base64_add(&note, cosigned, sizeof(cosigned));
    bh_buf_str(&note, "\n");
    CHECK_EQ(bh_checkpoint_parse(note.at, note.n, &c, NULL), 0);
    CHECK_EQ(c.n_signatures, 1);
    CHECK(bh_checkpoint_signed_by(&c, note.at, &a.key));
    bh_buf_fini(&note);
}

TEST(a_statement_fits_one_place)
{
    struct signer a, b;
    struct bh_hash one, two;
    struct bh_buf s[5];
    CHECK(make_signer(&a) && make_signer(&b));
    bh_hash_plain("1", 1, &one);
    bh_hash_plain("2", 1, &two);
    for (size_t i = 0; i < 5; i++)
        bh_buf_init(&s[i], 1024);
    bh_audit_key_statement(&a.key, 7, &one, &s[0]);
    bh_audit_key_statement(&b.key, 7, &one, &s[1]);
    bh_audit_key_statement(&a.key, 8, &one, &s[2]);
    bh_audit_key_statement(&a.key, 7, &two, &s[3]);
    bh_audit_key_statement(&a.key, 7, &one, &s[4]);
    CHECK_STR(bh_buf_text(&s[0]), bh_buf_text(&s[4]));
    for (size_t i = 1; i < 4; i++)
        CHECK(!bh_str_eq(bh_buf_text(&s[0]), bh_buf_text(&s[i])));
    for (size_t i = 0; i < 5; i++)
        bh_buf_fini(&s[i]);
}

TEST_MAIN
