/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/mem.h"

static uint64_t hash_key[2];

void bh_map_key(uint64_t k0, uint64_t k1)
{
    hash_key[0] = k0;
    hash_key[1] = k1;
}

static uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

/* Up to eight bytes, the first one lowest, on any machine. */
static uint64_t word_at(const char *s, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)(unsigned char)s[i] << (8 * i);
    return w;
}

uint32_t bh_hash(const char *s, size_t n)
{
    uint64_t v[4] = {hash_key[0] ^ UINT64_C(0x736f6d6570736575), hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
                     hash_key[0] ^ UINT64_C(0x6c7967656e657261), hash_key[1] ^ UINT64_C(0x7465646279746573)};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = word_at(s + i, 8);
        v[3] ^= w;
        sip_round(v);
        v[0] ^= w;
    }
    uint64_t last = (uint64_t)n << 56 | word_at(s + i, n - i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int r = 0; r < 3; r++)
        sip_round(v);
    uint64_t h = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (uint32_t)(h ^ h >> 32);
}

void bh_map_fini(struct bh_map *m)
{
    free(m->slots);
    *m = (struct bh_map){0};
}

static struct bh_map_slot *probe(const struct bh_map *m, const char *key, uint32_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key && (m->slots[i].hash != hash || strcmp(m->slots[i].key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void grow(struct bh_map *m)
{
    struct bh_map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->slots = bh_alloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].key)
            *probe(m, old.slots[i].key, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

uint32_t bh_map_add(struct bh_map *m, const char *key, uint32_t value)
{
    if ((m->n + 1) * 4 > m->cap * 3)
        grow(m);
    uint32_t hash = bh_hash(key, strlen(key));
    struct bh_map_slot *s = probe(m, key, hash);
    if (s->key)
        return s->value;
    *s = (struct bh_map_slot){key, hash, value};
    m->n++;
    return BH_MAP_NONE;
}

uint32_t bh_map_find(const struct bh_map *m, const char *key)
{
    if (!m->cap)
        return BH_MAP_NONE;
    struct bh_map_slot *s = probe(m, key, bh_hash(key, strlen(key)));
    return s->key ? s->value : BH_MAP_NONE;
}
