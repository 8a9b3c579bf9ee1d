/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_read.h"

#include "base/str.h"

static bool is_plain(const char *key)
{
    for (; *key; key++)
        if ((unsigned char)*key >= 0x80)
            return false;
    return true;
}

/* Which of the known ones; n: none. */
static size_t find(struct bh_read *r, const struct bh_read_member *known, size_t n, const char *key)
{
    size_t i = 0;
    while (i < n && !bh_str_eq_nocase(known[i].key, key))
        i++;
    if (!is_plain(key) || (i < n && !bh_str_eq(known[i].key, key)))
        r->wrong = "a key is spelled in a way that runtimes read differently";
    return i;
}

void bh_read_object(struct bh_read *r, const struct bh_read_member *known, size_t n,
                    void (*other)(struct bh_read *r, const char *key))
{
    char key[BH_READ_KEY_MAX];
    unsigned seen = 0;
    if (bh_json_read_peek(&r->json) != '{') {
        (void)bh_json_read_skip(&r->json);
        return;
    }
    if (!bh_json_read_open(&r->json, '{'))
        return;
    while (bh_json_read_member(&r->json, key, sizeof(key))) {
        const size_t i = find(r, known, n, key);
        if (i < n) {
            if (seen & 1u << i)
                r->wrong = "a key stands there twice";
            seen |= 1u << i;
            known[i].read(r);
        } else if (other)
            other(r, key);
        else
            (void)bh_json_read_skip(&r->json);
    }
}

void bh_read_list(struct bh_read *r, void (*read)(struct bh_read *r))
{
    if (bh_json_read_peek(&r->json) != '[') {
        (void)bh_json_read_skip(&r->json);
        return;
    }
    if (bh_json_read_open(&r->json, '['))
        while (bh_json_read_item(&r->json))
            read(r);
}

void bh_read_raw(struct bh_read *r, const char **ret, size_t *ret_n)
{
    (void)bh_json_read_peek(&r->json); /* steps over the blanks */
    const char *from = r->json.at;
    const bool whole = bh_json_read_skip(&r->json);
    *ret = from;
    *ret_n = whole ? (size_t)(r->json.at - from) : 0;
}

bool bh_read_text(struct bh_read *r, char *buf, size_t size)
{
    struct bh_json_reader again;
    const char *text;
    size_t n;
    const bool is_text = bh_json_read_peek(&r->json) == '"';
    bh_read_raw(r, &text, &n);
    buf[0] = '\0';
    if (!is_text || n == 0)
        return false;
    bh_json_read_init(&again, text, n);
    if (bh_json_read_str(&again, buf, size) && bh_json_read_end(&again))
        return true;
    buf[0] = '\0';
    return false;
}

const char *bh_read_end(struct bh_read *r)
{
    if (!bh_json_read_end(&r->json))
        return r->json.wrong ? r->json.wrong : "something stands behind its end";
    return r->wrong;
}
