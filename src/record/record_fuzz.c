/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a recording or are refused. One that is taken is written back byte for byte, is like itself,
 * and can be shown. The last line is a sum that a fuzzer does not guess, so the bytes are tried a second time
 * with it mended.
 */
#include "base/mem.h"
#include "record/compare.h"
#include "record/record.h"
#include "record/topic.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct bh_recording *r, const char *text, size_t n)
{
    struct bh_buf b;
    struct bh_comparison c;
    bh_buf_init(&b, n + 1024);
    bh_recording_write(&b, r);
    if (b.n != n || memcmp(b.at, text, n) != 0)
        abort();
    bh_buf_fini(&b);
    bh_recording_compare(r, r, &c);
    if (c.changes.n)
        abort();
    bh_comparison_fini(&c);
    bh_buf_init(&b, 64 * n + 4096);
    if (!bh_recording_summary(&b, r, NULL) || b.full)
        abort();
    bh_buf_fini(&b);
}

/* The refusal of a wrong last line says what it should be; the phrase is longer than any part of the input that
 * a refusal quotes. */
static bool mend(struct bh_buf *text, const char *msg)
{
    static const char SAYS[] = "the recording was cut or changed: the last line should be \"";
    const char *want = strstr(msg, SAYS);
    size_t at = 0;
    if (!want)
        return false;
    want += strlen(SAYS);
    for (; at < text->n; at++)
        if ((at == 0 || text->at[at - 1] == '\n') && strncmp(text->at + at, "end ", 4) == 0)
            break;
    text->n = at;
    bh_buf_printf(text, "%.*s\n", (int)strcspn(want, "\""), want);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_buf text;
    struct bh_recording r;
    struct bh_err err = {.msg = ""};
    bh_buf_init(&text, size + 64);
    bh_buf_add(&text, (const char *)data, size);
    bh_buf_str(&text, "");
    int rc = bh_recording_parse("f", bh_buf_text(&text), text.n, &r, &err);
    if (rc < 0 && mend(&text, err.msg)) {
        rc = bh_recording_parse("f", text.at, text.n, &r, &err);
        if (rc < 0)
            abort();
    }
    if (rc == BH_OK) {
        use(&r, text.at, text.n);
        bh_recording_fini(&r);
    }
    bh_buf_fini(&text);
    return 0;
}
