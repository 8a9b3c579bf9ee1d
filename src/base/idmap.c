/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - look-up by handle in constant time, whatever handles are picked without knowing the seed. */
#include "base/idmap.h"

#include "base/mem.h"

uint64_t bh_idmap_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void bh_idmap_fini(struct bh_idmap *m)
{
    free(m->slots);
    m->slots = NULL;
    m->n = m->cap = 0;
}

static size_t home(const struct bh_idmap *m, uint64_t key)
{
    return (size_t)bh_idmap_mix(key ^ m->seed) & (m->cap - 1);
}

/* Where the key is, or the empty slot where it would go. */
static size_t probe(const struct bh_idmap *m, uint64_t key)
{
    size_t i = home(m, key);
    while (m->slots[i].value_1 && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

static void grow(struct bh_idmap *m)
{
    struct bh_idmap old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->slots = bh_alloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].value_1)
            m->slots[probe(m, old.slots[i].key)] = old.slots[i];
    free(old.slots);
}

bool bh_idmap_add(struct bh_idmap *m, uint64_t key, uint32_t value)
{
    if ((m->n + 1) * 2 > m->cap)
        grow(m);
    struct bh_idmap_slot *s = &m->slots[probe(m, key)];
    if (s->value_1)
        return false;
    *s = (struct bh_idmap_slot){key, value + 1};
    m->n++;
    return true;
}

uint32_t bh_idmap_find(const struct bh_idmap *m, uint64_t key)
{
    return m->cap ? m->slots[probe(m, key)].value_1 - 1 : BH_IDMAP_NONE;
}

bool bh_idmap_remove(struct bh_idmap *m, uint64_t key)
{
    if (!m->cap)
        return false;
    size_t hole = probe(m, key), mask = m->cap - 1;
    if (!m->slots[hole].value_1)
        return false;
    /* Whoever was pushed past the hole moves back into it, so that no look-up stops short. */
    for (size_t i = (hole + 1) & mask; m->slots[i].value_1; i = (i + 1) & mask) {
        size_t from_home = (i - home(m, m->slots[i].key)) & mask;
        if (from_home >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].value_1 = 0;
    m->n--;
    return true;
}
