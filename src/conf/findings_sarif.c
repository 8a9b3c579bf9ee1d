/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings_sarif.c - findings as SARIF 2.1.0, the form code hosts show beside the line.
 *
 * All rules are listed, found or not, so that ruleIndex means the same in every run
 * of a release. Columns count code points, as the YAML reader does.
 */
#include "conf/out.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

static const char *level_of(uint8_t severity)
{
    return severity == BH_SEV_ERROR ? "error" : severity == BH_SEV_WARNING ? "warning" : "note";
}

static size_t index_of(const struct bh_rule *rule)
{
    size_t i = 0;
    while (i < bh_rule_count() && bh_rule_at(i) != rule)
        i++;
    return i;
}

static void key_text(struct bh_json *j, const char *key, const char *text)
{
    bh_json_key(j, key);
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "text", text);
    bh_json_close(j, '}');
}

/* ---- the rules ---- */

/* `Hard SLO on a soft mechanism` -> `HardSLOOnASoftMechanism`: SARIF wants an identifier here. */
static void write_name(struct bh_json *j, const char *title)
{
    struct bh_buf name;
    bool start = true;
    bh_buf_init(&name, 256);
    for (const char *c = title; *c; c++) {
        bool word = bh_is_alpha(*c) || bh_is_digit(*c);
        char up = start && bh_is_lower(*c) ? (char)(*c - 32) : *c;
        if (word)
            bh_buf_add(&name, &up, 1);
        start = !word && *c != '\'';
    }
    bh_json_key_str(j, "name", bh_buf_text(&name));
    bh_buf_fini(&name);
}

static void write_help(struct bh_json *j, const struct bh_rule *r)
{
    struct bh_buf text, markdown;
    bh_buf_init(&text, 1u << 20);
    bh_buf_init(&markdown, 1u << 20);
    bh_buf_printf(&text, "%s\n\nFix: %s", r->why, r->fix);
    bh_buf_printf(&markdown, "%s\n\n**Fix:** %s", r->why, r->fix);
    if (r->fail_example)
        bh_buf_printf(&markdown, "\n\nFails:\n\n```yaml\n%s```", r->fail_example);
    if (r->pass_example)
        bh_buf_printf(&markdown, "\n\nPasses:\n\n```yaml\n%s```", r->pass_example);
    bh_json_key(j, "help");
    bh_json_open(j, '{');
    bh_json_key_str(j, "text", bh_buf_text(&text));
    bh_json_key_str(j, "markdown", bh_buf_text(&markdown));
    bh_json_close(j, '}');
    bh_buf_fini(&text);
    bh_buf_fini(&markdown);
}

static void write_rule(struct bh_json *j, const struct bh_rule *r)
{
    bh_json_open(j, '{');
    bh_json_key_str(j, "id", r->id);
    write_name(j, r->title);
    key_text(j, "shortDescription", r->title);
    key_text(j, "fullDescription", r->condition);
    write_help(j, r);
    bh_json_key(j, "defaultConfiguration");
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "level", level_of(r->severity));
    bh_json_close(j, '}');
    bh_json_key(j, "properties");
    bh_json_open_flat(j, '{');
    bh_json_key(j, "tags");
    bh_json_open_flat(j, '[');
    bh_json_str(j, "gpu-sharing");
    if (r->unwaivable)
        bh_json_str(j, "cannot-be-waived");
    for (const char *const *s = r->refs; s && *s; s++)
        bh_json_str(j, *s);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
    bh_json_close(j, '}');
}

static void write_tool(struct bh_json *j, const char *version)
{
    bh_json_key(j, "tool");
    bh_json_open(j, '{');
    bh_json_key(j, "driver");
    bh_json_open(j, '{');
    bh_json_key_str(j, "name", "Bulkhead");
    bh_json_key_str(j, "version", version);
    bh_json_key(j, "rules");
    bh_json_open(j, '[');
    for (size_t i = 0; i < bh_rule_count(); i++)
        write_rule(j, bh_rule_at(i));
    bh_json_close(j, ']');
    bh_json_close(j, '}');
    bh_json_close(j, '}');
}

/* ---- places ---- */

/* A path as a URI reference: everything but the unreserved characters and `/` is escaped. */
static void write_uri(struct bh_json *j, const char *path)
{
    struct bh_buf uri;
    bh_buf_init(&uri, 1u << 16);
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (path[0] == '/')
        bh_buf_str(&uri, "file://");
    for (const char *c = path; *c; c++) {
        if (bh_is_alpha(*c) || bh_is_digit(*c) || strchr("/-._~", *c))
            bh_buf_add(&uri, c, 1);
        else
            bh_buf_printf(&uri, "%%%02X", (unsigned)(unsigned char)*c);
    }
    bh_json_key_str(j, "uri", bh_buf_text(&uri));
    bh_buf_fini(&uri);
}

static void write_artifact(struct bh_json *j, const char *path)
{
    bh_json_key(j, "artifactLocation");
    bh_json_open_flat(j, '{');
    if (bh_str_eq(path, "-")) {
        bh_json_key_str(j, "uri", "stdin");
        key_text(j, "description", "standard input");
    } else {
        write_uri(j, path);
    }
    bh_json_close(j, '}');
}

static void write_physical(struct bh_json *j, const struct bh_input *in, struct bh_pos pos)
{
    bh_json_key(j, "physicalLocation");
    bh_json_open(j, '{');
    write_artifact(j, bh_input_file(in, pos.file));
    if (pos.line) {
        bh_json_key(j, "region");
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "startLine", pos.line);
        if (pos.column)
            bh_json_key_u64(j, "startColumn", pos.column);
        bh_json_close(j, '}');
    }
    bh_json_close(j, '}');
}

static void write_logical(struct bh_json *j, const struct bh_finding *f)
{
    bh_json_key(j, "logicalLocations");
    bh_json_open(j, '[');
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "fullyQualifiedName", f->subject);
    bh_json_close(j, '}');
    if (f->object) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "fullyQualifiedName", f->object);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_locations(struct bh_json *j, const struct bh_input *in, const struct bh_finding *f)
{
    bh_json_key(j, "locations");
    bh_json_open(j, '[');
    bh_json_open(j, '{');
    write_physical(j, in, bh_finding_where(f));
    write_logical(j, f);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    if (!f->cause.line || !f->pos.line)
        return;
    bh_json_key(j, "relatedLocations");
    bh_json_open(j, '[');
    bh_json_open(j, '{');
    bh_json_key_u64(j, "id", 1);
    write_physical(j, in, f->pos);
    key_text(j, "message", f->subject);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
}

/* ---- results ---- */

static uint64_t fnv(uint64_t h, const char *s)
{
    /* the closing NUL is hashed too: it keeps "ab"+"c" apart from "a"+"bc" */
    for (size_t i = 0, n = strlen(s) + 1; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The same finding keeps its mark when lines move: no position goes into it. */
static void write_fingerprint(struct bh_json *j, const struct bh_input *in, const struct bh_finding *f)
{
    char hex[17];
    uint64_t h = fnv(UINT64_C(0xcbf29ce484222325), f->rule->id);
    h = fnv(fnv(h, f->subject), bh_input_file(in, f->pos.file));
    h = fnv(h, f->object ? f->object : "");
    (void)snprintf(hex, sizeof(hex), "%016" PRIx64, h);
    bh_json_key(j, "partialFingerprints");
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "bulkheadFinding/v1", hex);
    bh_json_close(j, '}');
}

static void write_suppression(struct bh_json *j, const struct bh_finding *f)
{
    struct bh_buf text;
    bh_buf_init(&text, 4096);
    bh_buf_str(&text, "waived in the policy");
    if (f->waived_by)
        bh_buf_printf(&text, ", approved by %s", f->waived_by);
    bh_json_key(j, "suppressions");
    bh_json_open(j, '[');
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "kind", "external");
    bh_json_key_str(j, "justification", bh_buf_text(&text));
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    bh_buf_fini(&text);
}

static void write_result(struct bh_json *j, const struct bh_input *in, const struct bh_finding *f)
{
    struct bh_buf text;
    bh_buf_init(&text, 1u << 20);
    bh_buf_str(&text, f->message);
    if (f->fix)
        bh_buf_printf(&text, " Fix: %s", f->fix);
    bh_json_open(j, '{');
    bh_json_key_str(j, "ruleId", f->rule->id);
    bh_json_key_u64(j, "ruleIndex", index_of(f->rule));
    bh_json_key_str(j, "level", level_of(f->rule->severity));
    key_text(j, "message", bh_buf_text(&text));
    write_locations(j, in, f);
    write_fingerprint(j, in, f);
    if (f->waived)
        write_suppression(j, f);
    bh_json_close(j, '}');
    bh_buf_fini(&text);
}

/* ---- what could not be answered, and what was passed over ---- */

static void write_notifications(struct bh_json *j, const struct bh_findings *f)
{
    bh_unchecked_vec unchecked = {0};
    bh_findings_unchecked(f, &unchecked);
    bh_json_key(j, "toolExecutionNotifications");
    bh_json_open(j, '[');
    for (size_t i = 0; i < unchecked.n; i++) {
        bh_json_open(j, '{');
        bh_json_key_str(j, "level", "note");
        key_text(j, "message", unchecked.at[i].reason);
        bh_json_key(j, "associatedRule");
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "id", unchecked.at[i].rule->id);
        bh_json_key_u64(j, "index", index_of(unchecked.at[i].rule));
        bh_json_close(j, '}');
        bh_json_close(j, '}');
    }
    bh_vec_fini(&unchecked);
    for (size_t i = 0; i < f->in->diags.at.n; i++) {
        const struct bh_diag *d = &f->in->diags.at.at[i];
        if (d->is_error)
            continue;
        bh_json_open(j, '{');
        bh_json_key_str(j, "level", "note");
        key_text(j, "message", d->message);
        bh_json_key(j, "locations");
        bh_json_open(j, '[');
        bh_json_open(j, '{');
        write_physical(j, f->in, d->pos);
        bh_json_close(j, '}');
        bh_json_close(j, ']');
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_run(struct bh_json *j, const struct bh_findings *f)
{
    bh_json_open(j, '{');
    write_tool(j, f->version);
    bh_json_key(j, "invocations");
    bh_json_open(j, '[');
    bh_json_open(j, '{');
    bh_json_key_bool(j, "executionSuccessful", true);
    write_notifications(j, f);
    bh_json_close(j, '}');
    bh_json_close(j, ']');
    bh_json_key_str(j, "columnKind", "unicodeCodePoints");
    bh_json_key(j, "results");
    bh_json_open(j, '[');
    for (size_t i = 0; i < f->in->units.n; i++)
        for (size_t k = 0; k < f->reports[i].findings.n; k++)
            write_result(j, f->in, &f->reports[i].findings.at[k]);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

void bh_findings_sarif(struct bh_buf *out, const struct bh_findings *f)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "$schema", SCHEMA);
    bh_json_key_str(&j, "version", "2.1.0");
    bh_json_key(&j, "runs");
    bh_json_open(&j, '[');
    write_run(&j, f);
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}
