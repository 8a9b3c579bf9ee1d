/* SPDX-License-Identifier: Apache-2.0 */
/* audit_merkle_test.c - against the vectors that RFC 6962's implementations share, and against the definition itself. */
#include "store/audit_merkle.h"

#include "base/choice.h"
#include "base/test.h"

static const struct {
    const char *at;
    size_t n;
} inputs[8] = {{"", 0},
               {"\x00", 1},
               {"\x10", 1},
               {"\x20\x21", 2},
               {"\x30\x31", 2},
               {"\x40\x41\x42\x43", 4},
               {"\x50\x51\x52\x53\x54\x55\x56\x57", 8},
               {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16}};

static const char *const roots[9] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
};

static void leaf_of(const void *data, size_t n, struct bh_hash *ret)
{
    bh_hash_of(0, data, n, NULL, 0, ret);
}

TEST(the_roots_that_all_implementations_share)
{
    struct bh_merkle m = {0};
    char hex[BH_HASH_HEX];
    for (size_t i = 0;; i++) {
        struct bh_hash h;
        bh_merkle_root(&m, &h);
        CHECK_STR(bh_hash_hex(&h, hex), roots[i]);
        if (i == 8)
            break;
        leaf_of(inputs[i].at, inputs[i].n, &h);
        bh_merkle_add(&m, &h);
    }
}

static bool same_proof(const bh_hash_vec *p, const char *const *want, size_t n)
{
    char hex[BH_HASH_HEX];
    for (size_t i = 0; i < n && i < p->n; i++)
        if (strcmp(bh_hash_hex(&p->at[i], hex), want[i]) != 0)
            return false;
    return p->n == n;
}

TEST(the_proofs_that_all_implementations_share)
{
    static const char *const in_0_of_8[] = {
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"};
    static const char *const in_5_of_8[] = {
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"};
    static const char *const in_2_of_3[] = {
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"};
    static const char *const from_6_to_8[] = {
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"};
    static const char *const from_2_to_5[] = {
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"};
    struct bh_merkle_tree t;
    bh_hash_vec p = {0};
    bh_merkle_tree_init(&t, NULL);
    for (size_t i = 0; i < 8; i++) {
        struct bh_hash h;
        leaf_of(inputs[i].at, inputs[i].n, &h);
        bh_merkle_tree_add(&t, &h);
    }
    CHECK(bh_merkle_inclusion(&t, 0, 8, &p) && same_proof(&p, in_0_of_8, 3));
    CHECK(bh_merkle_inclusion(&t, 5, 8, &p) && same_proof(&p, in_5_of_8, 3));
    CHECK(bh_merkle_inclusion(&t, 2, 3, &p) && same_proof(&p, in_2_of_3, 1));
    CHECK(bh_merkle_inclusion(&t, 0, 1, &p) && p.n == 0);
    CHECK(bh_merkle_consistency(&t, 6, 8, &p) && same_proof(&p, from_6_to_8, 3));
    CHECK(bh_merkle_consistency(&t, 2, 5, &p) && same_proof(&p, from_2_to_5, 2));
    CHECK(bh_merkle_consistency(&t, 8, 8, &p) && p.n == 0);
    CHECK(!bh_merkle_inclusion(&t, 8, 8, &p));
    CHECK(!bh_merkle_inclusion(&t, 0, 9, &p));
    CHECK(!bh_merkle_consistency(&t, 0, 8, &p));
    CHECK(!bh_merkle_consistency(&t, 8, 7, &p));
    bh_vec_fini(&p);
    bh_merkle_tree_fini(&t);
}

/* ---- the definition, word for word, as slow as it is ---- */

static void naive_root(const struct bh_hash *d, size_t n, struct bh_hash *ret)
{
    struct bh_hash both[2];
    size_t k = 1;
    if (n == 1) {
        *ret = d[0];
        return;
    }
    while (k * 2 < n)
        k *= 2;
    naive_root(d, k, &both[0]);
    naive_root(d + k, n - k, &both[1]);
    bh_hash_of(1, both[0].at, 32, both[1].at, 32, ret);
}

enum { LEAVES = 70 };

static void fill_leaves(struct bh_hash *leaves, uint64_t seed)
{
    bh_choice_fill((uint8_t *)leaves, LEAVES * sizeof(*leaves), seed);
}

TEST(every_proof_of_every_small_tree_holds_and_no_other)
{
    struct bh_hash leaves[LEAVES], root, from_root, wrong;
    struct bh_merkle_tree t;
    bh_hash_vec p = {0};
    fill_leaves(leaves, 1);
    bh_hash_plain("wrong", 5, &wrong);
    bh_merkle_tree_init(&t, NULL);
    for (size_t i = 0; i < LEAVES; i++)
        bh_merkle_tree_add(&t, &leaves[i]);
    for (size_t n = 1; n <= LEAVES; n++) {
        naive_root(leaves, n, &root);
        for (size_t i = 0; i < n; i++) {
            CHECK(bh_merkle_inclusion(&t, i, n, &p));
            CHECK(bh_merkle_inclusion_check(&leaves[i], i, n, p.at, p.n, &root));
            CHECK(!bh_merkle_inclusion_check(&wrong, i, n, p.at, p.n, &root));
            CHECK(!bh_merkle_inclusion_check(&leaves[i], i, n, p.at, p.n, &wrong));
            CHECK(n == 1 || !bh_merkle_inclusion_check(&leaves[i], i ? i - 1 : 1, n, p.at, p.n, &root));
            CHECK(p.n == 0 || !bh_merkle_inclusion_check(&leaves[i], i, n, p.at, p.n - 1, &root));
        }
        for (size_t m = 1; m <= n; m++) {
            naive_root(leaves, m, &from_root);
            CHECK(bh_merkle_consistency(&t, m, n, &p));
            CHECK(bh_merkle_consistency_check(m, &from_root, n, &root, p.at, p.n));
            CHECK(!bh_merkle_consistency_check(m, &wrong, n, &root, p.at, p.n));
            CHECK(!bh_merkle_consistency_check(m, &from_root, n, &wrong, p.at, p.n));
            CHECK(p.n == 0 || !bh_merkle_consistency_check(m, &from_root, n, &root, p.at, p.n - 1));
            for (size_t k = 0; k < p.n; k++) {
                p.at[k].at[7] ^= 4;
                CHECK(!bh_merkle_consistency_check(m, &from_root, n, &root, p.at, p.n));
                p.at[k].at[7] ^= 4;
            }
        }
    }
    bh_vec_fini(&p);
    bh_merkle_tree_fini(&t);
}

TEST(a_tree_without_its_first_leaves_proves_the_rest)
{
    struct bh_hash leaves[LEAVES], root, from_root;
    bh_hash_vec p = {0};
    fill_leaves(leaves, 2);
    for (size_t gone = 0; gone < 40; gone++) {
        struct bh_merkle left = {0}, loaded;
        struct bh_merkle_tree t;
        for (size_t i = 0; i < gone; i++)
            bh_merkle_add(&left, &leaves[i]);
        CHECK(bh_merkle_load(&loaded, gone, left.peak, bh_merkle_peaks(&left) * 32));
        bh_merkle_tree_init(&t, &loaded);
        for (size_t i = gone; i < LEAVES; i++)
            bh_merkle_tree_add(&t, &leaves[i]);
        for (size_t n = gone + 1; n <= LEAVES; n += 3) {
            naive_root(leaves, n, &root);
            for (size_t i = gone; i < n; i++) {
                CHECK(bh_merkle_inclusion(&t, i, n, &p));
                CHECK(bh_merkle_inclusion_check(&leaves[i], i, n, p.at, p.n, &root));
            }
            for (size_t m = gone ? gone : 1; m <= n; m++) {
                naive_root(leaves, m, &from_root);
                CHECK(bh_merkle_consistency(&t, m, n, &p));
                CHECK(bh_merkle_consistency_check(m, &from_root, n, &root, p.at, p.n));
            }
            CHECK(gone == 0 || !bh_merkle_inclusion(&t, gone - 1, n, &p));
            CHECK(gone < 2 || !bh_merkle_consistency(&t, gone - 1, n, &p));
        }
        bh_merkle_tree_fini(&t);
    }
    bh_vec_fini(&p);
}

TEST(the_edge_is_the_tree)
{
    struct bh_hash leaves[LEAVES], a, b;
    struct bh_merkle m = {0}, loaded;
    fill_leaves(leaves, 3);
    for (size_t n = 1; n <= LEAVES; n++) {
        bh_merkle_add(&m, &leaves[n - 1]);
        bh_merkle_root(&m, &a);
        naive_root(leaves, n, &b);
        CHECK(bh_hash_eq(&a, &b));
        CHECK(!bh_merkle_load(&loaded, n, m.peak, bh_merkle_peaks(&m) * 32 + 32));
        CHECK(!bh_merkle_load(&loaded, n, m.peak, bh_merkle_peaks(&m) * 32 - 1));
    }
    CHECK(!bh_merkle_load(&loaded, UINT64_MAX, m.peak, 64 * 32));
}

/* Proofs that are noise: the check reads nothing that is not there, and none holds. */
TEST(noise_is_no_proof)
{
    uint8_t bytes[64 * 32];
    struct bh_hash proof[64], root, leaf;
    bh_hash_plain("root", 4, &root);
    bh_hash_plain("leaf", 4, &leaf);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        memcpy(proof, bytes, sizeof(proof));
        struct bh_choice c = {bytes, sizeof(bytes)};
        const uint64_t a = bh_choose(&c, 1u << 20), b = bh_choose(&c, 1u << 20);
        const size_t n = bh_choose(&c, 65);
        CHECK(!bh_merkle_inclusion_check(&leaf, a, b, proof, n, &root));
        CHECK(a == b || !bh_merkle_consistency_check(a, &leaf, b, &root, proof, n));
    }
}

TEST_MAIN
