/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - the text form of a recording, read and written from one table.
 *
 * The table says for each kind of call which word names it and which fields follow; the reader and the writer
 * both walk it, so they cannot disagree about the form.
 */
#include "record/record.h"

#include "base/str.h"
#include "gpu/abi/rm.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { WORDS_MAX = 32 };
static const char MAGIC[] = "bulkhead-recording 1";

enum form { DEC, HEX, OBJECT };
struct field {
    const char *label; /* NULL: the value stands alone */
    uint8_t form;      /* enum form */
    uint8_t width;     /* bytes in the structure */
    uint16_t at;
};
#define FIELD(label, form, member) \
    {label, form, (uint8_t)sizeof(((struct bh_call *)0)->member), (uint16_t)offsetof(struct bh_call, member)}

enum { FIELDS_MAX = 6 };
enum memory { NEVER, MAYBE, SIZE_ONLY };
struct shape {
    const char *word;
    uint32_t number; /* of the ioctl; 0: it is among the fields */
    bool verb_first; /* `open ctl` rather than `ctl open` */
    uint8_t memory;  /* enum memory: whether the memory fields may follow */
    struct field fields[FIELDS_MAX];
};

/* By enum bh_call_kind. Marks and processes are no calls and are dealt with apart. */
static const struct shape SHAPES[] = {
    [BH_CALL_OPEN] = {"open", 0, true, NEVER, {{0}}},
    [BH_CALL_CLOSE] = {"close", 0, true, NEVER, {{0}}},
    [BH_CALL_MAP] = {"map",
                     0,
                     true,
                     NEVER,
                     {FIELD(NULL, DEC, size), FIELD("prot", HEX, what), FIELD("flags", HEX, flags)}},
    [BH_CALL_ESCAPE] = {"escape", 0, false, NEVER, {FIELD(NULL, HEX, number), FIELD(NULL, DEC, bytes)}},
    [BH_CALL_ALLOC] = {"alloc",
                       RM_ALLOC,
                       false,
                       MAYBE,
                       {FIELD(NULL, DEC, bytes), FIELD("class", HEX, what), FIELD("new", OBJECT, object),
                        FIELD("in", OBJECT, parent), FIELD("params", DEC, params),
                        FIELD("flags", HEX, flags)}},
    [BH_CALL_CONTROL] = {"control",
                         RM_CONTROL,
                         false,
                         NEVER,
                         {FIELD(NULL, DEC, bytes), FIELD("command", HEX, what), FIELD("on", OBJECT, object),
                          FIELD("params", DEC, params), FIELD("flags", HEX, flags)}},
    [BH_CALL_FREE] = {"free", RM_FREE, false, NEVER, {FIELD(NULL, DEC, bytes), FIELD(NULL, OBJECT, object)}},
    [BH_CALL_DUP] = {"dup",
                     RM_DUP_OBJECT,
                     false,
                     NEVER,
                     {FIELD(NULL, DEC, bytes), FIELD("class", HEX, what), FIELD("new", OBJECT, object),
                      FIELD("in", OBJECT, parent), FIELD("from", OBJECT, source),
                      FIELD("flags", HEX, flags)}},
    [BH_CALL_HEAP] = {"heap",
                      RM_VID_HEAP_CONTROL,
                      false,
                      MAYBE,
                      {FIELD(NULL, DEC, bytes), FIELD("function", HEX, what), FIELD("new", OBJECT, object),
                       FIELD("in", OBJECT, parent)}},
    [BH_CALL_UVM] = {"call", 0, false, NEVER, {FIELD(NULL, DEC, number)}},
    [BH_CALL_MEMORY] = {"memory",
                        RM_ALLOC_MEMORY,
                        false,
                        SIZE_ONLY,
                        {FIELD(NULL, DEC, bytes), FIELD("class", HEX, what), FIELD("new", OBJECT, object),
                         FIELD("in", OBJECT, parent), FIELD("flags", HEX, flags)}},
};
/* The first stands for the whole group: where it is missing, so are the others. */
static const struct field MEMORY[] = {FIELD("size", DEC, size), FIELD("attr", HEX, attr),
                                      FIELD("attr2", HEX, attr2), FIELD("mflags", HEX, mflags)};
/* Written when they say something. */
static const struct field RESULTS[] = {FIELD("status", HEX, status), FIELD("errno", DEC, error),
                                       FIELD("times", DEC, times)};

static const char *const FILES[] = {
    [BH_FILE_CTL] = "ctl",         [BH_FILE_GPU] = "gpu",
    [BH_FILE_UVM] = "uvm",         [BH_FILE_UVM_TOOLS] = "uvm-tools",
    [BH_FILE_MODESET] = "modeset", [BH_FILE_CAP] = "cap",
    [BH_FILE_OTHER] = "other",
};

const char *bh_call_file_name(uint8_t file)
{
    return FILES[file < BH_COUNT_OF(FILES) ? file : BH_FILE_OTHER];
}

static bool is_call(unsigned kind)
{
    return kind < BH_COUNT_OF(SHAPES) && SHAPES[kind].word;
}
static bool field_used(const struct shape *s, size_t i)
{
    return i < FIELDS_MAX && s->fields[i].width;
}
static size_t memory_fields(uint8_t memory)
{
    return memory == NEVER ? 0 : memory == SIZE_ONLY ? 1 : BH_COUNT_OF(MEMORY);
}

/* The fields are of 4 or 8 bytes; errno, the only signed one, is never negative here. */
static uint64_t field_get(const struct bh_call *call, const struct field *f)
{
    uint32_t narrow;
    uint64_t wide;
    const char *at = (const char *)call + f->at;
    if (f->width == sizeof(wide)) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

static void field_set(struct bh_call *call, const struct field *f, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    char *at = (char *)call + f->at;
    if (f->width == sizeof(value))
        memcpy(at, &value, sizeof(value));
    else
        memcpy(at, &narrow, sizeof(narrow));
}

static uint64_t field_max(const struct field *f)
{
    return f->width == sizeof(uint64_t)               ? UINT64_MAX
           : f->at == offsetof(struct bh_call, error) ? INT32_MAX
                                                      : UINT32_MAX;
}

/* --- writing --- */

static void write_field(struct bh_buf *out, const struct bh_call *call, const struct field *f)
{
    uint64_t v = field_get(call, f);
    bh_buf_printf(out, " %s%s", f->label ? f->label : "", f->label ? " " : "");
    if (f->form == HEX)
        bh_buf_printf(out, "%" PRIx64, v);
    else
        bh_buf_printf(out, "%s%" PRIu64, f->form == OBJECT ? "#" : "", v);
}

static void write_file(struct bh_buf *out, const struct bh_call *call)
{
    bh_buf_str(out, bh_call_file_name(call->file));
    if (call->file == BH_FILE_GPU)
        bh_buf_printf(out, "%u", call->gpu);
}

void bh_call_write(struct bh_buf *out, const struct bh_call *call)
{
    if (call->kind == BH_CALL_MARK) {
        bh_buf_printf(out, "mark %s", call->text);
        return;
    }
    if (call->kind == BH_CALL_PROCESS) {
        bh_buf_printf(out, "process %" PRIu32, call->what);
        return;
    }
    const struct shape *s = &SHAPES[call->kind];
    if (s->verb_first)
        bh_buf_printf(out, "%s ", s->word);
    write_file(out, call);
    if (!s->verb_first)
        bh_buf_printf(out, " %s", s->word);
    for (size_t i = 0; field_used(s, i); i++)
        write_field(out, call, &s->fields[i]);
    for (size_t i = 0; call->memory && i < memory_fields(s->memory); i++)
        write_field(out, call, &MEMORY[i]);
    if (call->status)
        write_field(out, call, &RESULTS[0]);
    if (call->error)
        write_field(out, call, &RESULTS[1]);
    if (call->times > 1)
        write_field(out, call, &RESULTS[2]);
}

static uint32_t fnv(const char *s, size_t n)
{
    uint32_t sum = UINT32_C(0x811c9dc5);
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)s[i]) * UINT32_C(0x01000193);
    return sum;
}

void bh_recording_write(struct bh_buf *out, const struct bh_recording *r)
{
    size_t from = out->n, lines = 4 + r->calls.n;
    bh_buf_printf(out, "%s\ndriver %s\ngpu %s\nwhat %s\n", MAGIC, r->driver, r->gpu, r->what);
    for (size_t i = 0; i < r->calls.n; i++) {
        bh_call_write(out, &r->calls.at[i]);
        bh_buf_str(out, "\n");
    }
    bh_buf_printf(out, "end %zu %08" PRIx32 "\n", lines, fnv(bh_buf_text(out) + from, out->n - from));
}

/* --- in memory --- */

void bh_recording_fini(struct bh_recording *r)
{
    bh_vec_fini(&r->calls);
    bh_arena_fini(&r->arena);
    r->driver = r->gpu = r->what = "-";
}

const char *bh_recording_text(struct bh_arena *arena, const char *s)
{
    char text[BH_RECORDING_TEXT_MAX + 1];
    size_t n = 0;
    while (bh_is_space(*s))
        s++;
    for (; s[n] && n < BH_RECORDING_TEXT_MAX; n++)
        text[n] = s[n] >= ' ' && s[n] < 0x7f ? s[n] : '?';
    while (n && text[n - 1] == ' ')
        n--;
    return n ? bh_arena_strn(arena, text, n) : "-";
}

bool bh_call_same(const struct bh_call *a, const struct bh_call *b)
{
    return a->kind == b->kind && a->file == b->file && a->gpu == b->gpu && a->number == b->number &&
           a->bytes == b->bytes && a->what == b->what && a->object == b->object && a->parent == b->parent &&
           a->source == b->source && a->params == b->params && a->flags == b->flags &&
           a->status == b->status && a->error == b->error && a->memory == b->memory && a->size == b->size &&
           a->attr == b->attr && a->attr2 == b->attr2 && a->mflags == b->mflags &&
           bh_str_eq(a->text, b->text);
}

static bool repeats(const struct bh_recording *r, const struct bh_call *call)
{
    return is_call(call->kind) && r->calls.n && bh_call_same(&r->calls.at[r->calls.n - 1], call);
}

void bh_recording_add(struct bh_recording *r, const struct bh_call *call)
{
    uint32_t times = call->times ? call->times : 1;
    if (repeats(r, call)) {
        struct bh_call *last = &r->calls.at[r->calls.n - 1];
        last->times = last->times > UINT32_MAX - times ? UINT32_MAX : last->times + times;
        return;
    }
    struct bh_call *added = bh_vec_push(&r->calls);
    *added = *call;
    added->times = times;
    added->text = call->text ? bh_recording_text(&r->arena, call->text) : NULL;
}

bool bh_recording_section(const struct bh_recording *r, const char *name, size_t *ret_first, size_t *ret_n)
{
    for (size_t i = 0; i < r->calls.n; i++) {
        if (r->calls.at[i].kind != BH_CALL_MARK || !bh_str_eq(r->calls.at[i].text, name))
            continue;
        size_t end = i + 1;
        while (end < r->calls.n && r->calls.at[end].kind != BH_CALL_MARK)
            end++;
        *ret_first = i + 1;
        *ret_n = end - i - 1;
        return true;
    }
    return false;
}

/* --- reading --- */

struct reader {
    const char *name;
    const char *at, *end; /* what is left of the text */
    size_t line;          /* of the line read last, from 1 */
    char text[BH_RECORDING_TEXT_MAX + 16];
    struct bh_err *err;
};

#define refuse(r, ...) refuse_(r, BH_INVALID, __VA_ARGS__)
static int refuse_(struct reader *r, enum bh_code code, const char *fmt, ...) BH_PRINTF(3, 4);
static int refuse_(struct reader *r, enum bh_code code, const char *fmt, ...)
{
    char why[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return bh_fail(r->err, code, "%.120s:%zu: %s", r->name, r->line, why);
}

/* The next line into r->text. */
static int next_line(struct reader *r)
{
    size_t left = (size_t)(r->end - r->at);
    const char *nl = left ? memchr(r->at, '\n', left) : NULL;
    r->line++;
    if (!nl)
        return refuse(r, left ? "the line does not end" : "the recording ends before its last line");
    size_t n = (size_t)(nl - r->at);
    if (n >= sizeof(r->text))
        return refuse_(r, BH_TOO_LARGE, "the line is longer than %zu bytes", sizeof(r->text) - 1);
    for (size_t i = 0; i < n; i++)
        if (r->at[i] < ' ' || r->at[i] >= 0x7f)
            return refuse(r, "byte %zu is not printable ASCII", i + 1);
    memcpy(r->text, r->at, n);
    r->text[n] = '\0';
    r->at = nl + 1;
    return BH_OK;
}

/* One number in the only way it is written: no leading zero, no upper case. */
static bool parse_number(const char *s, uint8_t form, uint64_t max, uint64_t *ret)
{
    unsigned base = form == HEX ? 16 : 10;
    uint64_t v = 0;
    if (form == OBJECT && *s++ != '#')
        return false;
    if (!*s || (*s == '0' && s[1]))
        return false;
    for (; *s; s++) {
        unsigned digit = bh_is_digit(*s)                        ? (unsigned)(*s - '0')
                         : base == 16 && *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a') + 10
                                                                : base;
        if (digit == base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return false;
    }
    *ret = v;
    return v <= max;
}

struct words {
    char *at[WORDS_MAX];
    size_t n, i; /* i: the next one */
};

static bool split(char *text, struct words *ret)
{
    *ret = (struct words){0};
    for (char *from = text;;) {
        char *space = strchr(from, ' ');
        if (ret->n == WORDS_MAX || from == space || !*from)
            return false;
        ret->at[ret->n++] = from;
        if (!space)
            return true;
        *space = '\0';
        from = space + 1;
    }
}

static bool word_is(const struct words *w, const char *word)
{
    return w->i < w->n && strcmp(w->at[w->i], word) == 0;
}

static int parse_field(struct reader *r, struct words *w, const struct field *f, struct bh_call *call)
{
    static const char *const FORMS[] = {"decimal number", "hexadecimal number", "# and a number"};
    uint64_t v;
    if (f->label && !word_is(w, f->label))
        return refuse(r, "\"%s\" should stand where \"%.40s\" does", f->label,
                      w->i < w->n ? w->at[w->i] : "the end of the line");
    w->i += f->label != NULL;
    if (w->i >= w->n)
        return refuse(r, "the value of \"%s\" is missing", f->label ? f->label : "the call");
    if (!parse_number(w->at[w->i], f->form, field_max(f), &v))
        return refuse(r, "\"%.40s\" is no %s%s that fits", w->at[w->i], FORMS[f->form],
                      f->form == OBJECT ? "" : ", without zeros in front,");
    field_set(call, f, v);
    w->i++;
    return BH_OK;
}

static int parse_file(struct reader *r, struct words *w, struct bh_call *call)
{
    const char *word = w->i < w->n ? w->at[w->i] : "";
    uint64_t gpu;
    for (size_t i = 0; i < BH_COUNT_OF(FILES); i++) {
        if (i == BH_FILE_GPU ? bh_str_starts(word, "gpu") && parse_number(word + 3, DEC, UINT8_MAX, &gpu)
                             : strcmp(word, FILES[i]) == 0) {
            call->file = (uint8_t)i;
            call->gpu = i == BH_FILE_GPU ? (uint8_t)gpu : 0;
            w->i++;
            return BH_OK;
        }
    }
    return refuse(r, "\"%.40s\" is no file (ctl, gpu0, uvm ...)", word);
}

static int find_shape(struct reader *r, struct words *w, bool verb_first, const struct shape **ret)
{
    for (size_t k = 0; w->i < w->n && k < BH_COUNT_OF(SHAPES); k++) {
        if (is_call((unsigned)k) && SHAPES[k].verb_first == verb_first && word_is(w, SHAPES[k].word)) {
            w->i++;
            *ret = &SHAPES[k];
            return BH_OK;
        }
    }
    *ret = NULL;
    return verb_first ? BH_OK
                      : refuse(r, "\"%.40s\" is no call", w->i < w->n ? w->at[w->i] : "the end of the line");
}

/* status, errno and times: in this order, each only when it says something. */
static int parse_results(struct reader *r, struct words *w, struct bh_call *call)
{
    for (size_t i = 0; i < BH_COUNT_OF(RESULTS); i++) {
        const struct field *f = &RESULTS[i];
        if (!word_is(w, f->label))
            continue;
        int rc = parse_field(r, w, f, call);
        if (rc < 0)
            return rc;
        if (field_get(call, f) < (f->at == offsetof(struct bh_call, times) ? 2 : 1))
            return refuse(r, "\"%s\" is not written when it says nothing", f->label);
    }
    if (w->i < w->n)
        return refuse(r, "\"%.40s\" should not be there", w->at[w->i]);
    return BH_OK;
}

static int parse_call(struct reader *r, struct bh_call *call)
{
    struct words w;
    const struct shape *s;
    if (!split(r->text, &w))
        return refuse(r, "words stand apart by one blank");
    *call = (struct bh_call){.times = 1};
    int rc = find_shape(r, &w, true, &s);
    if (rc == BH_OK)
        rc = parse_file(r, &w, call);
    if (rc == BH_OK && !s)
        rc = find_shape(r, &w, false, &s);
    if (rc < 0)
        return rc;
    call->kind = (uint8_t)(s - SHAPES);
    call->number = s->number;
    for (size_t i = 0; rc == BH_OK && field_used(s, i); i++)
        rc = parse_field(r, &w, &s->fields[i], call);
    call->memory = rc == BH_OK && s->memory != NEVER && word_is(&w, MEMORY[0].label);
    if (rc == BH_OK && s->memory == SIZE_ONLY && !call->memory)
        return refuse(r, "\"size\" is missing");
    for (size_t i = 0; rc == BH_OK && call->memory && i < memory_fields(s->memory); i++)
        rc = parse_field(r, &w, &MEMORY[i], call);
    return rc == BH_OK ? parse_results(r, &w, call) : rc;
}

/* `driver 580.1`: the text behind the word, which neither starts nor ends with a blank. */
static int parse_text(struct reader *r, const char *word, struct bh_arena *arena, const char **ret)
{
    size_t n = strlen(word), all = strlen(r->text);
    if (!bh_str_starts(r->text, word) || r->text[n] != ' ')
        return refuse(r, "the line should start with \"%s\"", word);
    if (all <= n + 1 || r->text[n + 1] == ' ' || r->text[all - 1] == ' ')
        return refuse(r, "the text behind \"%s\" is empty or has blanks around it", word);
    if (all - n - 1 > BH_RECORDING_TEXT_MAX)
        return refuse_(r, BH_TOO_LARGE, "the text is longer than %d bytes", BH_RECORDING_TEXT_MAX);
    *ret = bh_arena_str(arena, r->text + n + 1);
    return BH_OK;
}

static int parse_head(struct reader *r, struct bh_recording *rec)
{
    const struct {
        const char *word, **to;
    } heads[] = {{"driver", &rec->driver}, {"gpu", &rec->gpu}, {"what", &rec->what}};
    int rc = next_line(r);
    if (rc < 0)
        return rc;
    if (strcmp(r->text, MAGIC) != 0)
        return refuse(r, "no recording: its first line is not \"%s\"", MAGIC);
    for (size_t i = 0; i < BH_COUNT_OF(heads); i++) {
        rc = next_line(r);
        if (rc == BH_OK)
            rc = parse_text(r, heads[i].word, &rec->arena, heads[i].to);
        if (rc < 0)
            return rc;
    }
    return BH_OK;
}

/* The sum over everything before this line, and nothing behind it. */
static int parse_end(struct reader *r, const char *text, const char *line)
{
    char want[64];
    uint32_t sum = fnv(text, (size_t)(line - text));
    snprintf(want, sizeof(want), "end %zu %08" PRIx32, r->line - 1, sum);
    if (strcmp(r->text, want) != 0)
        return refuse(r, "the recording was cut or changed: the last line should be \"%s\"", want);
    r->line++;
    return r->at == r->end ? BH_OK : refuse(r, "something follows the last line");
}

static int parse_line(struct reader *r, struct bh_recording *rec)
{
    struct bh_call call = {.times = 1};
    uint64_t process;
    int rc = BH_OK;
    if (bh_str_starts(r->text, "mark ")) {
        call.kind = BH_CALL_MARK;
        rc = parse_text(r, "mark", &rec->arena, &call.text);
    } else if (bh_str_starts(r->text, "process ")) {
        call.kind = BH_CALL_PROCESS;
        if (!parse_number(r->text + strlen("process "), DEC, UINT32_MAX, &process) || !process)
            return refuse(r, "\"%.40s\" is no process (1, 2 ...)", r->text + strlen("process "));
        call.what = (uint32_t)process;
    } else {
        rc = parse_call(r, &call);
    }
    if (rc < 0)
        return rc;
    if (repeats(rec, &call))
        return refuse(r, "the line before says the same: it should carry \"times\"");
    if (rec->calls.n == BH_RECORDING_CALLS_MAX)
        return refuse_(r, BH_TOO_LARGE, "more than %d lines", BH_RECORDING_CALLS_MAX);
    *bh_vec_push(&rec->calls) = call;
    return BH_OK;
}

int bh_recording_parse(const char *name, const char *text, size_t n, struct bh_recording *ret,
                       struct bh_err *err)
{
    struct reader r = {.name = name, .at = text, .end = text + n, .err = err};
    *ret = (struct bh_recording){.driver = "-", .gpu = "-", .what = "-"};
    if (n > BH_RECORDING_BYTES_MAX)
        return bh_fail(err, BH_TOO_LARGE, "%.120s: more than %d bytes", name, BH_RECORDING_BYTES_MAX);
    int rc = parse_head(&r, ret);
    while (rc == BH_OK) {
        const char *line = r.at;
        rc = next_line(&r);
        if (rc == BH_OK && bh_str_starts(r.text, "end ")) {
            rc = parse_end(&r, text, line);
            break;
        }
        if (rc == BH_OK)
            rc = parse_line(&r, ret);
    }
    if (rc < 0)
        bh_recording_fini(ret);
    return rc;
}
