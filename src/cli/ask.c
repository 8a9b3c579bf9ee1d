/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include "base/str.h"
#include "cli/paint.h"

#include <string.h>

/* One line without the blanks around it; false at the end of the input. One too long is read to its end. */
static bool read_line(FILE *in, char line[BH_ANSWER_MAX], bool *ret_too_long)
{
    size_t n = 0;
    int c;
    *ret_too_long = false;
    while ((c = fgetc(in)) != EOF && c != '\n') {
        if (n + 1 < BH_ANSWER_MAX)
            line[n++] = (char)c;
        else
            *ret_too_long = true;
    }
    while (n && bh_is_space(line[n - 1]))
        n--;
    line[n] = '\0';
    size_t blanks = strspn(line, " \t");
    memmove(line, line + blanks, n + 1 - blanks);
    return c != EOF || n;
}

static void put_question(FILE *talk, bool paint, const struct bh_question *q, unsigned number, unsigned n)
{
    struct bh_buf b;
    char head[32];
    bh_buf_init(&b, 4096);
    (void)snprintf(head, sizeof(head), "%u/%u", number, n);
    bh_paint_add(&b, paint, BH_PAINT_DIM, head);
    bh_buf_str(&b, " ");
    bh_paint_add(&b, paint, BH_PAINT_BOLD, q->text);
    bh_buf_printf(&b, " %s [%s] ", q->choices, q->fallback);
    fputs(bh_buf_text(&b), talk);
    fflush(talk);
    bh_buf_fini(&b);
}

int bh_ask(FILE *in, FILE *talk, bool paint, const struct bh_question *q, unsigned number, unsigned n,
           char ret_answer[BH_ANSWER_MAX], struct bh_err *err)
{
    for (;;) {
        struct bh_err why = {0};
        char line[BH_ANSWER_MAX];
        bool too_long;
        put_question(talk, paint, q, number, n);
        if (!read_line(in, line, &too_long)) {
            fputs("\n", talk);
            return bh_fail(err, BH_USAGE, "no answer; nothing was written");
        }
        const char *answer = *line ? line : q->fallback;
        if (too_long)
            (void)bh_fail(&why, BH_USAGE, "that is longer than %d characters", BH_ANSWER_MAX - 1);
        else if (q->check(answer, &why) >= 0) {
            (void)snprintf(ret_answer, BH_ANSWER_MAX, "%s", answer);
            return BH_OK;
        }
        struct bh_buf b;
        bh_buf_init(&b, 4096);
        bh_text_add(&b, why.msg);
        fprintf(talk, "    %s\n", bh_buf_text(&b));
        bh_buf_fini(&b);
    }
}

int bh_confirm(FILE *in, FILE *talk, bool can_ask, const char *question, struct bh_err *err)
{
    char line[BH_ANSWER_MAX];
    bool too_long;
    if (!can_ask)
        return bh_fail(err, BH_USAGE, "nobody can be asked here; --yes does it without asking");
    fprintf(talk, "%s [y/N] ", question);
    fflush(talk);
    if (read_line(in, line, &too_long) && (bh_str_eq_nocase(line, "y") || bh_str_eq_nocase(line, "yes")))
        return BH_OK;
    return bh_fail(err, BH_REFUSED, "nothing was changed");
}
