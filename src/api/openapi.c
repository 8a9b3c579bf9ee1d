/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - the OpenAPI 3.1 document, written from the tables that serve: routes, shapes of what is sent, schemas of
 * what is answered. What is not in the tables is not served, and what is served is in the document.
 */
#include "api/inside.h"

#include "base/str.h"

#include <stdio.h>

enum { PIECE = 64, DOCUMENT_MAX = 1 << 20 };

static void ref(struct bh_json *j, const char *name)
{
    char path[PIECE + 32];
    (void)snprintf(path, sizeof(path), "#/components/schemas/%s", name);
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "$ref", path);
    bh_json_close(j, '}');
}

/* ---- what is answered ---- */

/* `text`, `int`, `bool`, `id`, `Job`, `[text]`, `[Job]`; a `?` behind it: or null. */
static void answer_type(struct bh_json *j, const char *type, size_t n)
{
    static const struct {
        const char *word, *json;
    } plain[] = {{"text", "string"}, {"id", "string"}, {"int", "integer"}, {"bool", "boolean"}};
    const bool nullable = type[n - 1] == '?';
    char word[PIECE];
    n -= nullable;
    if (type[0] == '[') {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "type", "array");
        bh_json_key(j, "items");
        answer_type(j, type + 1, n - 2);
        bh_json_close(j, '}');
        return;
    }
    (void)snprintf(word, sizeof(word), "%.*s", (int)n, type);
    for (size_t i = 0; i < BH_COUNT_OF(plain); i++) {
        if (!bh_str_eq(plain[i].word, word))
            continue;
        bh_json_open_flat(j, '{');
        bh_json_key(j, "type");
        bh_json_open_flat(j, '[');
        bh_json_str(j, plain[i].json);
        if (nullable)
            bh_json_str(j, "null");
        bh_json_close(j, ']');
        if (i == 1)
            bh_json_key_str(j, "pattern", "^[JLT][1-9][0-9]*$");
        bh_json_close(j, '}');
        return;
    }
    if (!nullable) {
        ref(j, word);
        return;
    }
    bh_json_open_flat(j, '{');
    bh_json_key(j, "anyOf");
    bh_json_open_flat(j, '[');
    ref(j, word);
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "type", "null");
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

/* All fields of a schema are there, always, unless marked `~`; there are no others. */
static void answer_schema(struct bh_json *j, const struct bh_api_schema *s)
{
    bh_json_key(j, s->name);
    bh_json_open(j, '{');
    bh_json_key_str(j, "type", "object");
    if (!s->fields) { /* any object */
        bh_json_close(j, '}');
        return;
    }
    bh_json_key_bool(j, "additionalProperties", false);
    bh_json_key(j, "properties");
    bh_json_open(j, '{');
    for (const char *at = s->fields; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, ":"), size = strcspn(at + n + 1, " ");
        char name[PIECE];
        (void)snprintf(name, sizeof(name), "%.*s", (int)(n - (at[n - 1] == '~')), at);
        bh_json_key(j, name);
        answer_type(j, at + n + 1, size);
        at += n + 1 + size;
    }
    bh_json_close(j, '}');
    bh_json_key(j, "required");
    bh_json_open_flat(j, '[');
    for (const char *at = s->fields; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, ":");
        char name[PIECE];
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, at);
        if (at[n - 1] != '~')
            bh_json_str(j, name);
        at += n + strcspn(at + n, " ");
    }
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

/* ---- what is sent ---- */

static void limits(struct bh_json *j, const struct bh_api_field *f)
{
    switch (f->type) {
    case BH_API_TEXT:
        bh_json_key_u64(j, "minLength", 1);
        bh_json_key_u64(j, "maxLength", f->max);
        break;
    case BH_API_NAME:
        bh_json_key_str(j, "pattern", "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$");
        break;
    case BH_API_ID:
        bh_json_key_str(j, "pattern",
                        f->letter == 'L'   ? "^L?[1-9][0-9]*$"
                        : f->letter == 'J' ? "^J?[1-9][0-9]*$"
                                           : "^T?[1-9][0-9]*$");
        break;
    case BH_API_U64:
        bh_json_key_u64(j, "minimum", 0);
        bh_json_key_u64(j, "maximum", f->max);
        break;
    case BH_API_I64:
        bh_json_key_i64(j, "minimum", -(int64_t)f->max);
        bh_json_key_u64(j, "maximum", f->max);
        break;
    default:
        break;
    }
}

static void sent_type(struct bh_json *j, const struct bh_api_field *f)
{
    static const char *const types[BH_API_TYPES] = {
        [BH_API_TEXT] = "string", [BH_API_NAME] = "string", [BH_API_WORD] = "string",
        [BH_API_U64] = "integer", [BH_API_I64] = "integer", [BH_API_BOOL] = "boolean",
        [BH_API_ID] = "string",   [BH_API_TEXTS] = "array", [BH_API_ONE] = NULL,
        [BH_API_MANY] = "array",
    };
    if (f->type == BH_API_ONE) {
        ref(j, f->of->name);
        return;
    }
    bh_json_open(j, '{');
    bh_json_key_str(j, "type", types[f->type]);
    limits(j, f);
    if (f->type == BH_API_WORD) {
        bh_json_key(j, "enum");
        bh_json_open_flat(j, '[');
        for (size_t i = 0; i < f->words->n; i++)
            bh_json_str(j, f->words->text[i]);
        bh_json_close(j, ']');
    }
    if (f->type == BH_API_TEXTS || f->type == BH_API_MANY) {
        bh_json_key_u64(j, "maxItems", f->most);
        bh_json_key(j, "items");
        if (f->type == BH_API_MANY)
            ref(j, f->of->name);
        else {
            bh_json_open_flat(j, '{');
            bh_json_key_str(j, "type", "string");
            bh_json_key_u64(j, "maxLength", f->max);
            bh_json_close(j, '}');
        }
    }
    bh_json_key_str(j, "description", f->doc);
    bh_json_close(j, '}');
}

static void sent_schema(struct bh_json *j, const struct bh_api_shape *s)
{
    bh_json_key(j, s->name);
    bh_json_open(j, '{');
    bh_json_key_str(j, "type", "object");
    bh_json_key_bool(j, "additionalProperties", false);
    bh_json_key(j, "properties");
    bh_json_open(j, '{');
    for (size_t i = 0; i < s->n; i++) {
        bh_json_key(j, s->fields[i].name);
        sent_type(j, &s->fields[i]);
    }
    bh_json_close(j, '}');
    bh_json_key(j, "required");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].required)
            bh_json_str(j, s->fields[i].name);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

/* ---- routes ---- */

static void parameter(struct bh_json *j, const char *name, const char *in, bool required)
{
    bh_json_open(j, '{');
    bh_json_key_str(j, "name", name);
    bh_json_key_str(j, "in", in);
    bh_json_key_bool(j, "required", required);
}

static void parameters(struct bh_json *j, const struct bh_api_route *r)
{
    const char *brace = strchr(r->path, '{');
    char name[PIECE];
    bh_json_key(j, "parameters");
    bh_json_open(j, '[');
    if (brace) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(brace + 1, "}"), brace + 1);
        parameter(j, name, "path", true);
        bh_json_key(j, "schema");
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "type", "string");
        bh_json_close(j, '}');
        bh_json_close(j, '}');
    }
    for (size_t i = 0; r->query && i < r->query->n; i++) {
        parameter(j, r->query->fields[i].name, "query", r->query->fields[i].required);
        bh_json_key(j, "schema");
        sent_type(j, &r->query->fields[i]);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void content(struct bh_json *j, const char *type, const char *schema)
{
    bh_json_key(j, "content");
    bh_json_open(j, '{');
    bh_json_key(j, type);
    bh_json_open(j, '{');
    if (schema) {
        bh_json_key(j, "schema");
        ref(j, schema);
    }
    bh_json_close(j, '}');
    bh_json_close(j, '}');
}

static void response(struct bh_json *j, const char *status, const char *words, const char *type,
                     const char *schema)
{
    bh_json_key(j, status);
    bh_json_open(j, '{');
    bh_json_key_str(j, "description", words);
    content(j, type, schema);
    bh_json_close(j, '}');
}

static void operation(struct bh_json *j, const struct bh_api_route *r)
{
    char method[8];
    size_t n = 0;
    for (; r->method[n] && n < sizeof(method) - 1; n++)
        method[n] = bh_to_lower(r->method[n]);
    method[n] = '\0';
    bh_json_key(j, method);
    bh_json_open(j, '{');
    bh_json_key_str(j, "summary", r->summary);
    bh_json_key(j, "tags");
    bh_json_open_flat(j, '[');
    bh_json_str(j, r->tag);
    bh_json_close(j, ']');
    bh_json_key(j, "x-roles");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < bh_words_role.n; i++)
        if (r->roles & UINT32_C(1) << i)
            bh_json_str(j, bh_words_role.text[i]);
    bh_json_close(j, ']');
    bh_json_key_bool(j, "x-all-tenants", r->everywhere);
    parameters(j, r);
    if (r->body) {
        bh_json_key(j, "requestBody");
        bh_json_open(j, '{');
        content(j, "application/json", r->body->name);
        bh_json_close(j, '}');
    }
    bh_json_key(j, "responses");
    bh_json_open(j, '{');
    response(j, "200", "done", r->type ? r->type : "application/json", r->answer);
    if (r->makes)
        response(j, "201", "made", "application/json", r->answer);
    response(j, "default", "refused or failed", "application/json", "Problem");
    bh_json_close(j, '}');
    bh_json_close(j, '}');
}

static void paths(struct bh_json *j)
{
    const char *open = NULL; /* routes of one path stand together in the table */
    bh_json_key(j, "paths");
    bh_json_open(j, '{');
    for (size_t i = 0; i < bh_api_route_count; i++) {
        const struct bh_api_route *r = &bh_api_routes[i];
        if (!bh_str_eq(open, r->path)) {
            if (open)
                bh_json_close(j, '}');
            bh_json_key(j, r->path);
            bh_json_open(j, '{');
            open = r->path;
        }
        operation(j, r);
    }
    if (open)
        bh_json_close(j, '}');
    bh_json_close(j, '}');
}

/* Is this the first route with the shape? */
static bool is_first(const struct bh_api_shape *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (bh_api_routes[k].body == s)
            return false;
    return true;
}

/* Shapes inside shapes come once: no two bodies share one, but for a job to submit. */
static void inner_schemas(struct bh_json *j, const struct bh_api_shape *s)
{
    for (size_t i = 0; i < s->n; i++) {
        bool served = false;
        for (size_t k = 0; s->fields[i].of && k < bh_api_route_count; k++)
            served |= bh_api_routes[k].body == s->fields[i].of;
        if (s->fields[i].of && !served)
            sent_schema(j, s->fields[i].of);
    }
}

void bh_api_openapi(struct bh_buf *out)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "openapi", "3.1.0");
    bh_json_key(&j, "info");
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "title", "Bulkhead node");
    bh_json_key_str(&j, "version", "1");
    bh_json_close(&j, '}');
    paths(&j);
    bh_json_key(&j, "components");
    bh_json_open(&j, '{');
    bh_json_key(&j, "schemas");
    bh_json_open(&j, '{');
    for (size_t i = 0; i < bh_api_schema_count; i++)
        answer_schema(&j, &bh_api_schemas[i]);
    for (size_t i = 0; i < bh_api_route_count; i++) {
        const struct bh_api_shape *s = bh_api_routes[i].body;
        if (s && is_first(s, i)) {
            sent_schema(&j, s);
            inner_schemas(&j, s);
        }
    }
    bh_json_close(&j, '}');
    bh_json_close(&j, '}');
    bh_json_close(&j, '}');
}
