/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audit_crypto.h"

#include "base/choice.h"
#include "base/test.h"

static bool unhex(const char *hex, uint8_t *ret, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdef", *a = strchr(digits, hex[2 * i]),
                   *b = strchr(digits, hex[2 * i + 1]);
        if (!a || !b)
            return false;
        ret[i] = (uint8_t)((a - digits) << 4 | (b - digits));
    }
    return true;
}

TEST(sha_256_of_known_texts)
{
    struct bh_hash h;
    char hex[BH_HASH_HEX];
    bh_hash_plain("abc", 3, &h); /* FIPS 180-4's example */
    CHECK_STR(bh_hash_hex(&h, hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    bh_hash_plain(NULL, 0, &h);
    CHECK_STR(bh_hash_hex(&h, hex), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    /* a tag and pieces are the bytes one after the other */
    struct bh_hash other;
    bh_hash_of('a', "b", 1, "c", 1, &h);
    bh_hash_plain("abc", 3, &other);
    CHECK(bh_hash_eq(&h, &other));
}

TEST(hex_is_taken_back_only_as_it_was_written)
{
    struct bh_hash h, back;
    char hex[BH_HASH_HEX];
    bh_hash_plain("x", 1, &h);
    CHECK(bh_hash_parse(bh_hash_hex(&h, hex), &back) && bh_hash_eq(&h, &back));
    hex[10] = 'A';
    CHECK(!bh_hash_parse(hex, &back));
    bh_hash_hex(&h, hex);
    hex[63] = '\0';
    CHECK(!bh_hash_parse(hex, &back));
    CHECK(!bh_hash_parse("", &back));
}

/* RFC 8032, 7.1, test 2. */
TEST(ed25519_signs_as_the_rfc_says)
{
    struct bh_sign_key k = {0};
    uint8_t want_public[32], want[64], signature[64];
    struct bh_err err;
    CHECK(unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", k.seed, 32));
    CHECK(unhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", want_public, 32));
    CHECK(unhex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
                want, 64));
    CHECK_EQ(bh_sign_key_public(&k, &err), 0);
    CHECK(memcmp(k.public, want_public, 32) == 0);
    CHECK_EQ(bh_sign(&k, "\x72", 1, signature, &err), 0);
    CHECK(memcmp(signature, want, 64) == 0);
    CHECK(bh_sign_check(k.public, "\x72", 1, signature));
}

TEST(a_signature_holds_for_one_text_and_one_key)
{
    struct bh_sign_key a, b;
    uint8_t signature[64];
    struct bh_err err;
    CHECK_EQ(bh_sign_key_new(&a, &err), 0);
    CHECK_EQ(bh_sign_key_new(&b, &err), 0);
    CHECK(memcmp(a.seed, b.seed, 32) != 0);
    CHECK_EQ(bh_sign(&a, "text", 4, signature, &err), 0);
    CHECK(bh_sign_check(a.public, "text", 4, signature));
    CHECK(!bh_sign_check(b.public, "text", 4, signature));
    CHECK(!bh_sign_check(a.public, "texu", 4, signature));
    CHECK(!bh_sign_check(a.public, "tex", 3, signature));
    for (size_t i = 0; i < 64; i++) {
        signature[i] ^= 1;
        CHECK(!bh_sign_check(a.public, "text", 4, signature));
        signature[i] ^= 1;
    }
    struct bh_sign_key again = {0};
    memcpy(again.seed, a.seed, 32);
    CHECK_EQ(bh_sign_key_public(&again, &err), 0);
    CHECK(memcmp(again.public, a.public, 32) == 0);
}

/* RFC 4648, 10. */
TEST(base64_of_known_texts)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    uint8_t back[16];
    for (size_t i = 0; i < 7; i++) {
        struct bh_buf b;
        bh_buf_init(&b, 64);
        bh_base64_add(&b, pairs[i][0], strlen(pairs[i][0]));
        CHECK_STR(bh_buf_text(&b), pairs[i][1]);
        CHECK_EQ(bh_base64_parse(b.at ? b.at : "", b.n, back, sizeof(back)), (long)strlen(pairs[i][0]));
        CHECK(memcmp(back, pairs[i][0], strlen(pairs[i][0])) == 0);
        bh_buf_fini(&b);
    }
}

TEST(base64_has_one_text_for_the_same_bytes)
{
    static const char *const bad[] = {
        "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm9v\n", "Zm=v", "Zg==Zg==", "Zm9 "};
    uint8_t back[16];
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(bh_base64_parse(bad[i], strlen(bad[i]), back, sizeof(back)), -1);
    CHECK_EQ(bh_base64_parse("Zm9vYmFy", 8, back, 5), -1); /* no room */
    CHECK_EQ(bh_base64_parse("Zm9vYmFy", 8, back, 6), 6);
}

TEST_MAIN
