/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any two texts either fail to parse or compare consistently, whatever a version accepts is at least itself,
 * and every component's advisories can be asked about them. Input: two texts with a newline between.
 */
#include "core/model/advisory.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 200 };

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Copies up to a newline or the end; returns how many bytes that took. */
static size_t take_line(char *ret, const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - data) : size, kept = n < TEXT_MAX ? n : TEXT_MAX;

    if (kept)
        memcpy(ret, data, kept);
    ret[kept] = '\0';
    return end ? n + 1 : n;
}

static void check_alone(const char *s, const struct bh_version *v)
{
    must(v->n >= 1 && v->n <= BH_VERSION_FIELDS);
    must(v->prerelease || v->pre_number == 0);
    must(bh_version_compare(v, v) == 0);
    must(bh_version_accepts(s, s));
}

static void check_exposure(const char *s, bool parses)
{
    for (size_t i = 0; i < bh_advisory_count(); i++) {
        struct bh_exposure e;

        if (i > 0 && strcmp(bh_advisory_at(i)->component, bh_advisory_at(i - 1)->component) == 0)
            continue;
        must((bh_advisory_check(bh_advisory_at(i)->component, s, INT32_MAX, &e, NULL) == 0) == parses);
        if (parses)
            must((e.n_open > 0) == (e.worst != NULL) && (e.n_open > 0) == (e.oldest != NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char a[TEXT_MAX + 1], b[TEXT_MAX + 1];
    size_t used = take_line(a, data, size);
    struct bh_version va, vb;
    bool has_a, has_b;
    int ab, ba;

    (void)take_line(b, data + used, size - used);
    has_a = bh_version_parse(a, &va, NULL) == 0;
    has_b = bh_version_parse(b, &vb, NULL) == 0;
    if (has_a)
        check_alone(a, &va);
    check_exposure(a, has_a);
    if (!has_a || !has_b) {
        must(!bh_version_accepts(a, b) && !bh_version_accepts(b, a));
        return 0;
    }
    ab = bh_version_compare(&va, &vb);
    ba = bh_version_compare(&vb, &va);
    must((ab < 0) == (ba > 0) && (ab == 0) == (ba == 0));
    if (ab == 0)
        must(bh_version_accepts(a, b) && bh_version_accepts(b, a));
    return 0;
}
